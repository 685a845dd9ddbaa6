"""`parabit demo`: the whole way from documents to answers, on documents that every machine has or on your own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parabit.cli.command import Json, Quiet, print_json, progress, verb
from parabit.cli.demo_kept import INDEX, MODEL, Place, place_of
from parabit.cli.options import reads_corpus
from parabit.corpus import Corpus, ReadOptions, names_dataset, open_corpus
from parabit.errors import CorpusError, ParabitError, need
from parabit.progress import Report

if TYPE_CHECKING:
    from parabit.cli.demo_answers import Answer

QUESTIONS = (
    "shortest path between two nodes of a graph",
    "solve a sparse linear system",
    "send an e-mail over smtp",
)


@verb
@reads_corpus
def demo(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH",
            help="Your own documents: a file or folder of text, Markdown, HTML, PDF, JSON lines, CSV or Parquet, or a "
            "data set. Default: the documentation of the Python packages installed here.",
            show_default=False,
        ),
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option("--ask", metavar="TEXT", help="What to look for; may be given again.", show_default=False),
    ] = None,
    bits: Annotated[int, typer.Option(min=8, max=1024, help="Bits per code.")] = 128,
    serve: Annotated[bool, typer.Option("--serve", help="Start the search page when all is done.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where the search page is, on this machine.")] = 8000,
    again: Annotated[bool, typer.Option("--again", help="Learn anew, and not take what an earlier demo kept.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Learn codes for a collection, index it, measure the codes, and answer questions: all in less than two minutes.

    Without PATH it reads the documentation of the Python packages installed here. Nothing is downloaded, no package is
    imported or run. Model and index are kept in your cache folder: the next start takes a second or two, until the
    documents change. A folder's files are documents, and its sub-folders labels; what cannot be read is skipped and
    counted. Examples:

        parabit demo

        parabit demo --ask "parse a date from a string" --ask "compress a file with gzip"

        parabit demo ~/papers --ask "learning without labels" --serve

        parabit demo articles.jsonl --text-field body --bits 64 --json
    """
    if ask is not None and not all(text.strip() for text in ask):
        raise ParabitError("a question is empty", hint="give --ask a text")
    if serve:
        for library in ("fastapi", "uvicorn"):  # what is missing is told before the work
            need(library, "web")
    with progress(quiet or json) as report:
        # The installed packages are known by their versions; to list their modules takes seconds.
        corpus = None if path is None else _opened(path, options, format, report)
        place = place_of(path, corpus, options, format, bits)
        found = None if again else _from_kept(place, path, ask)
        kept = found is not None
        if found is None:
            corpus = corpus or open_corpus("docstrings", options, format, report)
            found = _made(corpus, path, ask, bits, place, report)
        figures, answers = found
    if json:
        print_json(_result(figures, answers, path, place, kept))
    else:
        from parabit.cli.demo_show import show

        show(figures, answers, path, place, kept)
    if serve:
        from parabit.cli.serve import start_server

        start_server(
            place.index, port=port, quiet=quiet or json, examples=[answer.query for answer in answers if answer.known]
        )


def _opened(path: str, options: ReadOptions, format: str | None, report: Report) -> Corpus:
    if not names_dataset(path) and (path == "-" or (Path(path).exists() and not _is_file_or_folder(path))):
        raise CorpusError(
            "a demo keeps what it has learned for the next start, and a pipe comes but once",
            hint="write the documents to a file, and name that",
        )
    return open_corpus(path, options, format, report)


def _is_file_or_folder(path: str) -> bool:
    return Path(path).is_file() or Path(path).is_dir()


def _from_kept(place: Place, path: str | None, ask: list[str] | None) -> "tuple[dict[str, Any], list[Answer]] | None":
    """The figures and the answers of what an earlier demo kept; None where it kept nothing, or nothing good."""
    figures = place.figures()
    if figures is None:
        return None
    try:
        return figures, _answers(place, figures, path, ask)
    except Exception:  # whatever is wrong with it, it is made anew
        return None


def _made(
    corpus: Corpus, path: str | None, ask: list[str] | None, bits: int, place: Place, report: Report
) -> "tuple[dict[str, Any], list[Answer]]":
    from parabit.cli.demo_work import make

    figures = make(corpus, path or "docstrings", bits, place, report)
    return figures, _answers(place, figures, path, ask)


def _answers(place: Place, figures: dict[str, Any], path: str | None, ask: list[str] | None) -> "list[Answer]":
    from parabit.cli.demo_answers import answers

    own = figures["questions"] if path else [{"query": query} for query in QUESTIONS]
    return answers(place.index, [{"query": query} for query in ask] if ask else own)


def _result(
    figures: dict[str, Any], answers: "list[Answer]", path: str | None, place: Place, kept: bool
) -> dict[str, Any]:
    return {
        "corpus": path or "docstrings",
        **figures,
        "questions": [answer.as_json() for answer in answers],
        "folder": str(place.folder),
        "index": str(place.folder / INDEX),
        "model": str(place.folder / MODEL),
        "kept": kept,
    }

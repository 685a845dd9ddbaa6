"""`parabit demo`: from documents to answers, with documents that every machine has or with your own."""

import re
import shutil
import sys
import time
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit import __version__
from parabit.cli.command import Json, Quiet, print_json, progress, say, verb
from parabit.cli.index import about, show_index
from parabit.cli.options import complete_corpus, reads_corpus
from parabit.cli.output import reading_of
from parabit.cli.search import show_hit
from parabit.corpus import ReadOptions, as_corpus, cache_folder, open_corpus
from parabit.errors import ParabitError, need

if TYPE_CHECKING:
    from parabit.index import Hit

QUESTIONS = (
    "shortest path between two nodes of a graph",
    "solve a sparse linear system",
    "send an e-mail message",
)
_HITS = 4


@verb
@reads_corpus
def demo(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help="Your own documents. Default: the documentation of the Python packages installed here.",
            autocompletion=complete_corpus,
        ),
    ] = None,
    ask: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="What to look for; repeatable.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Start the search page afterwards.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of the search page.")] = 8000,
    again: Annotated[bool, typer.Option("--again", help="Read the packages' documentation again.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Index a collection and answer questions, in less than a minute.

    Without PATH it reads the documentation of the installed Python packages; nothing is downloaded, and no package is
    imported. The index is kept in your cache folder.

    Examples:
        parabit demo --ask "parse a date from a string"
        parabit demo ~/papers --serve
    """
    from parabit.index import Index

    if ask is not None and not all(text.strip() for text in ask):
        raise ParabitError("a question is empty", hint="give --ask a text")
    if serve:
        need("fastapi", "web")  # before the work
    folder = _folder(path, repr((options, format)))
    result: dict[str, Any] = {"index": str(folder), "corpus": path or "docstrings", "kept": folder.exists()}
    if path is not None or again or not folder.exists():
        result |= _build(folder, path, options, format, quiet or json) | {"kept": False}
    with Index.open(folder) as index:
        if result["kept"]:
            result |= {**about(index), "model": None}
        queries = ask or (list(QUESTIONS) if path is None else result["examples"])
        answers = list(zip(queries, index.search(queries, _HITS), strict=True)) if queries else []
        if json:
            result["questions"] = [{"query": query, "hits": [*map(_as_json, hits)]} for query, hits in answers]
            print_json(result)
        else:
            if not result["kept"]:
                show_index(result)
            for query, hits in answers:
                say(f"\n[bold underline]{escape(query)}[/bold underline]")
                for place, hit in enumerate(hits, 1):
                    show_hit(hit, place)
            say(f"\nSearch page: [bold]parabit serve {escape(str(folder))}[/bold], or this command with --serve")
            say("Your own documents: [bold]parabit demo PATH[/bold]; your own question: --ask TEXT")
    if serve:
        from parabit.cli.serve import start_server

        start_server(folder, port=port, quiet=quiet or json, examples=queries)


def _as_json(hit: "Hit") -> dict[str, Any]:
    return {"id": hit.id, "title": hit.title, "distance": hit.distance, "score": round(hit.score, 6)}


def _folder(path: str | None, how: str) -> Path:
    """Where the index of some documents is kept; that of the packages changes its name with their versions."""
    if path is None:
        installed = sorted(f"{one.name} {one.version}" for one in distributions())
        name, state = "docstrings", [sys.prefix, sys.version, *installed]
    else:
        name, state = Path(path).absolute().name, [str(Path(path).absolute()), how]
    digest = sha256("\n".join([__version__, *state]).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    readable = re.sub(r"[^\w.-]+", "-", name)[:40].strip("-.") or "documents"
    return cache_folder() / "demo" / f"{readable}-{digest}.index"


def _build(folder: Path, path: str | None, options: ReadOptions, format: str | None, quiet: bool) -> dict[str, Any]:
    from parabit.index import Index
    from parabit.model import learn_closed_form

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ParabitError(
            f"{folder.parent} cannot be created: {problem.strerror}", hint="set XDG_CACHE_HOME to a writable folder"
        ) from problem
    start = time.perf_counter()
    with progress(quiet) as report:
        corpus = open_corpus(path or "docstrings", options, format, report)
        documents = list(corpus)  # to parse all packages takes longer than everything else
        reading = time.perf_counter()
        model = learn_closed_form(as_corpus(documents), report=report)
        learning = time.perf_counter() - reading
        with Index.build(documents, folder, model=model, overwrite=True, report=report) as built:
            result = {**about(built), "model": None, "skipped": len(corpus.skipped), "reading": reading_of(corpus)}
    if path is None:
        for other in folder.parent.glob("docstrings-*.index"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
    result["seconds"] = {"learning": round(learning, 3), "all": round(time.perf_counter() - start, 3)}
    return result

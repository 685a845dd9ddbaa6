"""`parabit index`: from documents to an index, in one command."""

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.choices import Backend
from parabit.cli.command import Json, Quiet, print_json, progress, say, verb
from parabit.cli.options import CorpusNames, Overwrite, reads_corpus
from parabit.cli.output import readable_size, reading_of, say_skipped
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import ParabitError

if TYPE_CHECKING:
    from parabit.index import Index

_KEEP = "What to keep"


@verb
@reads_corpus
def index(
    corpus: CorpusNames,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="INDEX", help="The folder for the index.")],
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Use this model instead of learning one from CORPUS.")
    ] = None,
    bits: Annotated[int, typer.Option(min=8, max=1024, help="Bits per code.")] = 128,
    sample: Annotated[int, typer.Option(min=1, help="Learn from N random documents.")] = 50_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")] = 0,
    overwrite: Overwrite = False,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="No texts: hits have none.", rich_help_panel=_KEEP)
    ] = False,
    no_words: Annotated[
        bool, typer.Option("--no-words", help="No word index: search by codes alone.", rich_help_panel=_KEEP)
    ] = False,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Real vectors too, for --rank cosine.", rich_help_panel=_KEEP)
    ] = False,
    backend: Annotated[
        Backend,
        typer.Option(metavar="NAME", help="Search codes by auto, flat, tables or multi.", rich_help_panel=_KEEP),
    ] = "auto",
    milvus: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Keep documents on a Milvus server, or in a .db file.", rich_help_panel=_KEEP),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Learn a model from a corpus and index its documents.

    The index is a folder with everything that searching needs, the model too.

    Examples:
        parabit index notes/ -o notes.index
        parabit index articles.csv --text-field body -o articles.index
        parabit index new-posts/ --model news-128 -o posts.index
    """
    from parabit.index import Index
    from parabit.model import learn_closed_form, load_model

    if (output.exists() or output.is_symlink()) and not overwrite:
        raise ParabitError(f"{output} exists already", hint="choose another name, or replace it with --overwrite")
    engine = None
    if milvus is not None:
        from parabit.engines.milvus import Milvus

        engine = Milvus(milvus).checked()
    start = time.perf_counter()
    with progress(quiet or json) as report:
        documents = open_corpus(corpus, options, format, report)
        if model is None:
            learned = learn_closed_form(documents, bits, sample=sample, seed=seed, report=report)
        else:
            learned = load_model(model)
        learning = time.perf_counter() - start
        with Index.build(
            documents, output, model=learned, text=not no_text, words=not (no_words or no_text), vectors=vectors,
            backend=backend, engine=engine, overwrite=overwrite, report=report,
        ) as built:  # fmt: skip
            result = {
                "index": str(output),
                "corpus": " ".join(corpus),
                "model": None if model is None else str(model),
                **about(built),
                "skipped": len(documents.skipped),
                "reading": reading_of(documents),
            }
    result["seconds"] = {"learning": round(learning, 3), "all": round(time.perf_counter() - start, 3)}
    if json:
        print_json(result)
        return
    show_index(result)
    if result["examples"]:
        command = shlex.join(["parabit", "search", result["index"], result["examples"][0]])
        say(f"Try it: [bold]{escape(command)}[/bold]")


def about(built: "Index") -> dict[str, Any]:
    """What an index that was just built is, and what it takes."""
    from parabit.index import typical_phrases

    info, learned = built.info(), built.model.config["training"]
    sizes = {"codes": info["bytes_a_code"] * info["documents"], "words": info["words_bytes"]}
    rest = info["bytes"] - info["model_bytes"] - sum(sizes.values())
    return {
        "documents": info["documents"],
        "left_out": built.left_out,
        "bits": info["bits"],
        "words": learned["words"],
        "learned_from": learned["sampled"],
        "bytes": {"model": info["model_bytes"], **sizes, "texts": rest, "all": info["bytes"]},
        "backend": info["backends"][-1],
        "engine": info.get("engine"),
        "fields": info["fields"],
        "examples": typical_phrases(built.snapshot(), 3) if built.keeps_text else [],
    }


def show_index(result: dict[str, Any]) -> None:
    """The same for people."""
    count, seconds, sizes = result["documents"], result["seconds"], result["bytes"]
    say(f"[bold]{escape(result['index'])}[/bold]: {count:,} documents in {seconds['all']:.1f} s")
    if result["left_out"]:
        say(f"  {result['left_out']:,} documents skipped: no words to find them by")
    say_skipped(result["reading"])
    how = (
        f"learned in {seconds['learning']:.1f} s from"
        if result["model"] is None
        else f"{result['model']}, learned from"
    )
    say(f"  model: {escape(how)} {result['learned_from']:,} documents; it knows {result['words']:,} words")
    if result["engine"] is None:
        each = {name: readable_size(sizes[name] / max(count, 1)) for name in ("codes", "words", "texts")}
        say(
            f"  per document: {each['codes']} for the code, {each['words']} for the words, {each['texts']} for text "
            f"and fields; once: {readable_size(sizes['model'])} for the model"
        )
    else:
        say(f"  {engine_line(result['engine'])}")
    if result["fields"]:
        say(f"  fields: {escape(', '.join(result['fields']))}")


def engine_line(engine: dict[str, Any]) -> str:
    """Where the documents of an index are, if not in its folder."""
    return escape(f"the documents are in {engine['uri']}: {engine['name']} {engine['version']}, {engine['collection']}")

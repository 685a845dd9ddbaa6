"""`parabit index`: the documents of a corpus, to be searched."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from parabit.choices import BACKENDS
from parabit.cli.command import Json, Quiet, check_spelling, completing, print_json, progress, say, verb
from parabit.cli.index_options import engine_line, size_on_disk
from parabit.cli.options import CorpusNames, name_of, reading_of, reads_corpus, say_skipped
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import ParabitError


@verb
@reads_corpus
def index(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a model.", show_default=False)],
    corpus: CorpusNames,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="INDEX", help="The folder to keep the index in.")],
    no_text: Annotated[bool, typer.Option("--no-text", help="Keep no texts: hits come without them.")] = False,
    no_words: Annotated[
        bool,
        typer.Option("--no-words", help="Keep no word index: texts are then found by their codes alone."),
    ] = False,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Keep real vectors, 2 bytes a dimension: the rank cosine needs them.")
    ] = False,
    backend: Annotated[
        str,
        typer.Option(
            metavar="BACKEND",
            help=f"What to build beside the codes to search them faster: {', '.join(BACKENDS)}. auto takes the "
            "one that pays at this size.",
            autocompletion=completing(BACKENDS),
        ),
    ] = "auto",
    milvus: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="Keep and search the documents on a Milvus server, such as http://localhost:19530, or in a file of "
            "Milvus Lite, such as news.db.",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an old index.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Encode a corpus with a trained model, and keep its codes, texts and fields to be searched.

    The index is a folder with a copy of the model, so that it is all that searching needs. Documents without a word
    that the model knows are left out. Examples:

        parabit index news-128 20newsgroups/test -o news.index

        parabit index articles articles.csv --text-field body -o articles.index

        parabit index news-128 posts/ -o posts.index --no-text --no-words
    """
    check_spelling("back end", backend, BACKENDS)
    from parabit.index import Index
    from parabit.model import load_model

    if (output.exists() or output.is_symlink()) and not overwrite:
        raise ParabitError(f"{output} is there already", hint="choose another name, or replace it with --overwrite")
    engine = None
    if milvus is not None:
        from parabit.engines.milvus import Milvus

        engine = Milvus(milvus).checked()
    with progress(quiet or json) as report:
        loaded = load_model(model)
        start = time.perf_counter()
        documents = open_corpus(corpus, options, format, report)
        with Index.build(
            documents, output, model=loaded, text=not no_text, words=not (no_words or no_text), vectors=vectors,
            backend=backend, engine=engine, overwrite=overwrite, report=report,
        ) as built:  # fmt: skip
            about, left_out = built.info(), built.left_out
    seconds = time.perf_counter() - start
    result = {
        "model": str(model),
        "corpus": name_of(corpus),
        "index": str(output),
        "documents": about["documents"],
        "left_out": left_out,
        "skipped": len(documents.skipped),
        "reading": reading_of(documents),
        "bits": about["bits"],
        "bytes": about["bytes"],
        "model_bytes": about["model_bytes"],
        "backend": about["backends"][-1],
        "engine": about.get("engine"),
        "keeps": about["keeps"],
        "fields": about["fields"],
        "seconds": round(seconds, 3),
        "documents_per_second": round((about["documents"] + left_out) / seconds, 1),
    }
    if json:
        print_json(result)
    else:
        _show(result)


def _show(result: dict[str, Any]) -> None:
    say(
        f"[bold]{escape(result['index'])}[/bold]: {result['documents']:,} documents of {result['bits']} bits, "
        f"{size_on_disk(result)}"
    )
    say(f"  keeps the model, codes, ids{''.join(f', {name}' for name in result['keeps'])}")
    if result["fields"]:
        say(f"  fields: {escape(', '.join(result['fields']))}")
    say(f"  back end {result['backend']}")
    if result["engine"]:
        say(f"  {engine_line(result['engine'])}")
    say(f"  {result['seconds']:.1f} s, {result['documents_per_second']:,.0f} documents a second")
    if result["left_out"]:
        say(f"  {result['left_out']:,} skipped: no words to find them by")
    say_skipped(result["reading"])

"""`parabit encode`: the codes of a corpus as a file."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.choices import check_spelling
from parabit.cli.corpus_options import (
    CorpusName,
    Encoding,
    Format,
    IdField,
    LabelField,
    NoQuotes,
    SkipBad,
    TextField,
    read_options,
)
from parabit.cli.frame import Json, Quiet, print_json, progress, say, signal_of, verb
from parabit.cli.mode_option import Mode
from parabit.corpus import open_corpus
from parabit.errors import Interrupted
from parabit.shape import MODES

if TYPE_CHECKING:
    from parabit.encoding import Encoded, ParagraphVectors


@verb
def encode(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a model.", show_default=False)],
    corpus: CorpusName,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="CODES",
            help="The file to write: .npy for an array of packed codes, .parquet for a table of ids and codes.",
        ),
    ],
    mode: Mode = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Write the real vectors beside the codes; .parquet only.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an old file of codes, and forget an unfinished encoding.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished encoding.")] = False,
    text_field: TextField = None,
    id_field: IdField = None,
    label_field: LabelField = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    no_quotes: NoQuotes = False,
    skip_bad: SkipBad = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Encode a corpus of any size with a trained model, in the corpus' order and in constant memory.

    An .npy file holds a row of packed bytes a document (np.unpackbits gives the bits), or the vectors of a real-valued
    model; a .parquet file has the columns id, code and vector. While it runs, what is done is kept in
    CODES.npy.encoding; after Ctrl-C, a kill or a power cut the same command with --resume goes on. Examples:

        parabit encode news-128 20newsgroups/test -o test.npy

        parabit encode articles articles.csv -o articles.parquet --vectors

        zcat notes.txt.gz | parabit encode news-128 - -o notes.npy --mode exact
    """
    check_spelling("mode", mode, MODES)
    from parabit.encoding import ParagraphVectors, encode_to_file, need_room_for_codes, work_folder_of

    need_room_for_codes(output, resume, overwrite)
    options = read_options(text_field, id_field, label_field, encoding, no_quotes, skip_bad)
    try:
        with progress(quiet or json) as report:
            loaded = ParagraphVectors.load(model)
            start = time.perf_counter()
            documents = open_corpus(corpus, options, format, report)
            encoded = encode_to_file(
                loaded, documents, output, mode=mode, vectors=vectors, name=corpus, resume=resume, overwrite=overwrite,
                report=report,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemExit) as stop:
        work = work_folder_of(output)
        if not work.exists():
            raise
        number = int(stop.code or 0) - 128 if isinstance(stop, SystemExit) else signal_of(stop)
        message = f"interrupted; what is done is kept in {work}; go on with the same command and --resume"
        raise Interrupted(message, number) from stop
    result = {
        "model": str(model),
        "corpus": corpus,
        "output": str(output),
        **_summary(loaded, encoded, documents.skipped, time.perf_counter() - start),
    }
    if json:
        print_json(result)
    else:
        _show(result, loaded, encoded, vectors and loaded.shape_.bits is not None)


def _summary(model: "ParagraphVectors", encoded: "Encoded", skipped: int, seconds: float) -> dict[str, Any]:
    return {
        "documents": encoded.documents,
        "bits": model.shape_.bits,
        "dim": model.shape_.dim,
        "mode": encoded.mode,
        "bytes": encoded.bytes,
        "skipped": skipped,
        "without_words": encoded.without_words,
        "seconds": round(seconds, 3),
        "documents_per_second": round((encoded.documents - encoded.resumed) / seconds, 1),
    }


def _show(result: dict[str, Any], model: "ParagraphVectors", encoded: "Encoded", vectors: bool) -> None:
    with_vector = " with the vector" if vectors else ""
    say(
        f"[bold]{escape(result['output'])}[/bold]: {result['documents']:,} documents, each {model.shape_.size}, "
        f"{result['bytes']:,} bytes{with_vector}, mode {result['mode']}"
    )
    say(f"  {result['seconds']:.1f} s, {result['documents_per_second']:,.0f} documents a second")
    if encoded.resumed:
        say(f"  {encoded.resumed:,} of them were done before")
    if result["without_words"]:
        say(f"  {result['without_words']:,} without a word that the model knows; their codes are zeros")
    if result["skipped"]:
        say(f"  {result['skipped']:,} bad records left out")

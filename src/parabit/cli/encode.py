"""`parabit encode`: the codes of a corpus as a file."""

import time
from pathlib import Path
from typing import Annotated, Any

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
from parabit.cli.engine_options import Address, Engine, WorkerCores, Workers, on_ray
from parabit.cli.frame import Json, Quiet, print_json, progress, say, signal_of, verb
from parabit.cli.mode_option import Mode
from parabit.corpus import ReadOptions, open_corpus
from parabit.encoding.estimator import MODES
from parabit.errors import Interrupted
from parabit.networks.config import Shape
from parabit.progress import Report


@verb
def encode(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a model.", show_default=False)],
    corpus: CorpusName,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="CODES",
            help="The file to write: .npy for an array of packed codes, .parquet for a table of ids and codes. On a "
            "cluster, a folder or an address such as s3://… for a .parquet file a shard.",
        ),
    ],
    mode: Mode = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Write the real vectors beside the codes; .parquet only.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an old file of codes, and forget an unfinished encoding.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished encoding; a cluster does so anyway.")
    ] = False,
    text_field: TextField = None,
    id_field: IdField = None,
    label_field: LabelField = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    no_quotes: NoQuotes = False,
    skip_bad: SkipBad = False,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
    worker_cores: WorkerCores = None,
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

        parabit encode articles s3://bucket/articles/ -o s3://bucket/codes --engine ray --address auto

    On a cluster the codes of each shard are a file of their own, which is there when it is whole; the same command
    again does what is missing.
    """
    check_spelling("mode", mode, MODES)
    options = read_options(text_field, id_field, label_field, encoding, no_quotes, skip_bad)
    if on_ray(engine, address=address, workers=workers, worker_cores=worker_cores):
        with progress(quiet or json) as report:
            shape, result = _encode_on_ray(
                model, corpus, options, format, output, address, report, mode=mode, vectors=vectors,
                overwrite=overwrite, workers=workers, cores=worker_cores or 1,
            )  # fmt: skip
    else:
        with progress(quiet or json) as report:
            shape, result = _encode_here(
                model, corpus, options, format, Path(output), report, mode=mode, vectors=vectors, resume=resume,
                overwrite=overwrite,
            )  # fmt: skip
    if json:
        print_json(result)
    else:
        _show(result, shape, vectors)


def _encode_here(
    model: Path, corpus: str, options: ReadOptions, format: str | None, output: Path, report: Report, **how: Any
) -> tuple[Shape, dict[str, Any]]:
    from parabit.model import ParagraphVectors, encode_to_file, need_room_for_codes, work_folder_of

    need_room_for_codes(output, how["resume"], how["overwrite"])
    try:
        loaded = ParagraphVectors.load(model, slim=True)
        start = time.perf_counter()
        documents = open_corpus(corpus, options, format, report)
        encoded = encode_to_file(loaded, documents, output, name=corpus, report=report, **how)
    except (KeyboardInterrupt, SystemExit) as stop:
        work = work_folder_of(output)
        if not work.exists():
            raise
        number = signal_of(stop)
        message = f"interrupted; what is done is kept in {work}; go on with the same command and --resume"
        raise Interrupted(message, number) from stop
    counts = {"skipped": documents.skipped, "encoded": encoded.documents - encoded.resumed, **encoded._asdict()}
    shape = loaded.shape_
    return shape, _summary(shape, model, corpus, str(output), counts, time.perf_counter() - start)


def _encode_on_ray(
    model: Path,
    corpus: str,
    options: ReadOptions,
    format: str | None,
    output: str,
    address: str | None,
    report: Report,
    **how: Any,
) -> tuple[Shape, dict[str, Any]]:
    from parabit.cluster import connected, encode_shards, open_shards
    from parabit.model import ParagraphVectors

    loaded, shards = ParagraphVectors.load(model, slim=True), open_shards(corpus, options, format)
    try:
        with connected(address) as ray:
            start = time.perf_counter()
            encoded = encode_shards(ray, loaded, corpus, shards, output, report=report, **how)
    except (KeyboardInterrupt, SystemExit) as stop:
        number = signal_of(stop)
        message = f"interrupted; the shards that are done are in {output}; go on with the same command"
        raise Interrupted(message, number) from stop
    shape = loaded.shape_
    return shape, _summary(shape, model, corpus, output, encoded._asdict(), time.perf_counter() - start)


def _summary(
    shape: Shape, model: Path, corpus: str, output: str, counts: dict[str, Any], seconds: float
) -> dict[str, Any]:
    return {
        "model": str(model),
        "corpus": corpus,
        "output": output,
        "documents": counts["documents"],
        "bits": shape.bits,
        "dim": shape.dim,
        "mode": counts["mode"],
        "bytes": counts["bytes"],
        "skipped": counts["skipped"],
        "without_words": counts["without_words"],
        "resumed": counts["resumed"],
        **({"shards": counts["shards"]} if "shards" in counts else {}),
        "seconds": round(seconds, 3),
        "documents_per_second": round(counts["encoded"] / seconds, 1),
    }


def _show(result: dict[str, Any], shape: Shape, vectors: bool) -> None:
    with_vector = " with the vector" if vectors and shape.bits is not None else ""
    say(
        f"[bold]{escape(result['output'])}[/bold]: {result['documents']:,} documents, each {shape.size}, "
        f"{result['bytes']:,} bytes{with_vector}, mode {result['mode']}"
    )
    say(f"  {result['seconds']:.1f} s, {result['documents_per_second']:,.0f} documents a second")
    if result["resumed"]:
        of = f" of {result['shards']:,} shards" if "shards" in result else " of them"
        say(f"  {result['resumed']:,}{of} were done before")
    if result["without_words"]:
        say(f"  {result['without_words']:,} without a word that the model knows; their codes are zeros")
    if result["skipped"]:
        say(f"  {result['skipped']:,} bad records left out")

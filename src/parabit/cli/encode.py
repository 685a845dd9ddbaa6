"""`parabit encode`: the codes of a corpus as a file."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, progress, say, signal_of, verb
from parabit.cli.engine_options import Address, Engine, WorkerCores, Workers, on_ray
from parabit.cli.options import CorpusNames, name_of, reading_of, reads_corpus, say_skipped
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import Interrupted
from parabit.progress import Report

if TYPE_CHECKING:
    from parabit.model import TextEncoder


@verb
@reads_corpus
def encode(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a model.", show_default=False)],
    corpus: CorpusNames,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="CODES",
            help="The file to write: .npy for an array of packed codes, .parquet for a table of ids and codes. On a "
            "cluster, a folder or an address such as s3://… for one .parquet file per shard.",
        ),
    ],
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Write the real vectors beside the codes; .parquet only.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an old file of codes.")] = False,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
    worker_cores: WorkerCores = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Encode a corpus of any size with a model, in the corpus' order and in constant memory.

    An .npy file has one row of packed bytes per document (np.unpackbits gives the bits), or the vectors of a
    real-valued model; a .parquet file has the columns id, code and vector. It appears when it is complete. Examples:

        parabit encode news-128 20newsgroups/test -o test.npy

        parabit encode articles articles.csv -o articles.parquet --vectors

        zcat notes.txt.gz | parabit encode news-128 - -o notes.npy

        parabit encode articles s3://bucket/articles/ -o s3://bucket/codes --engine ray --address auto

    On a cluster each shard has a file of its own; the same command again does what is missing.
    """
    ray = on_ray(engine, address=address, workers=workers, worker_cores=worker_cores)
    from parabit.model import check_output, encode_to_file, load_model

    if not ray:
        check_output(Path(output), overwrite)
    loaded = load_model(model)
    start = time.perf_counter()
    with progress(quiet or json) as report:
        if ray:
            counts = _encode_on_ray(
                loaded, corpus, options, format, output, address, report, vectors=vectors, overwrite=overwrite,
                workers=workers, cores=worker_cores or 1,
            )  # fmt: skip
        else:
            documents = open_corpus(corpus, options, format, report)
            encoded = encode_to_file(loaded, documents, output, vectors=vectors, overwrite=overwrite, report=report)
            counts = {**encoded._asdict(), "skipped": len(documents.skipped), "encoded": encoded.documents}
            counts["reading"] = reading_of(documents)
    seconds = time.perf_counter() - start
    result = {
        "model": str(model),
        "corpus": name_of(corpus),
        "output": output,
        "bits": loaded.bits,
        "dim": loaded.dim,
        **counts,
        "seconds": round(seconds, 3),
        "documents_per_second": round(counts["encoded"] / seconds, 1),
    }
    if json:
        print_json(result)
    else:
        _show(result, loaded.size, vectors and loaded.bits is not None)


def _encode_on_ray(
    model: "TextEncoder",
    corpora: list[str],
    options: ReadOptions,
    format: str | None,
    output: str,
    address: str | None,
    report: Report,
    **how: Any,
) -> dict[str, Any]:
    from parabit.engines.ray import connected, encode_shards, open_shards

    shards = open_shards(corpora, options, format)
    try:
        with connected(address) as ray:
            return encode_shards(ray, model, corpora, shards, output, report=report, **how)._asdict()
    except (KeyboardInterrupt, SystemExit) as stop:
        number = signal_of(stop)
        message = f"interrupted; the finished shards are in {output}; run the same command again to continue"
        raise Interrupted(message, number) from stop


def _show(result: dict[str, Any], size: str, with_vector: bool) -> None:
    say(
        f"[bold]{escape(result['output'])}[/bold]: {result['documents']:,} documents, each {size}, "
        f"{result['bytes']:,} bytes{' with the vector' if with_vector else ''}"
    )
    say(f"  {result['seconds']:.1f} s, {result['documents_per_second']:,.0f} documents per second")
    if result.get("resumed"):
        say(f"  {result['resumed']:,} of {result['shards']:,} shards were done before")
    if result["without_words"]:
        say(f"  {result['without_words']:,} documents without known words; their codes are zeros")
    if "reading" in result:
        say_skipped(result["reading"])
    elif result["skipped"]:
        say(f"  {result['skipped']:,} files or records skipped")

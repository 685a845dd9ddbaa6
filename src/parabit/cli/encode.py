"""`parabit encode`: the codes of a corpus as a file."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, progress, say, signal_of, verb
from parabit.cli.options import CorpusNames, ModelFolder, Overwrite, may_use_cluster, reads_corpus
from parabit.cli.output import reading_of, say_skipped
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import Interrupted
from parabit.progress import Report

if TYPE_CHECKING:
    from parabit.model import TextEncoder


@verb
@reads_corpus
@may_use_cluster
def encode(
    model: ModelFolder,
    corpus: CorpusNames,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="CODES",
            help="The file to write, .npy or .parquet; on a cluster, a folder or an address such as s3://….",
        ),
    ],
    vectors: Annotated[bool, typer.Option("--vectors", help="Add the real vectors; .parquet only.")] = False,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
    cluster: dict[str, Any] | None,
) -> None:
    """Encode a corpus with a model, to a file of codes.

    An .npy file has one row of packed bytes per document (np.unpackbits gives the bits), or the vectors of a
    real-valued model; a .parquet file has the columns id, code and vector. It appears when it is complete. On a cluster
    each shard has its own file, and the same command again encodes what is missing.

    Examples:
        parabit encode news-128 20newsgroups/test -o test.npy
        parabit encode articles articles.csv -o articles.parquet --vectors
        parabit encode articles s3://bucket/in/ -o s3://bucket/out --engine ray
    """
    from parabit.model import check_output, encode_to_file, load_model

    if cluster is None:
        check_output(Path(output), overwrite)
    loaded = load_model(model)
    start = time.perf_counter()
    with progress(quiet or json) as report:
        if cluster is not None:
            counts = _encode_on_ray(
                loaded, corpus, options, format, output, cluster, report, vectors=vectors, overwrite=overwrite
            )
        else:
            documents = open_corpus(corpus, options, format, report)
            encoded = encode_to_file(loaded, documents, output, vectors=vectors, overwrite=overwrite, report=report)
            counts = {**encoded._asdict(), "skipped": len(documents.skipped), "encoded": encoded.documents}
            counts["reading"] = reading_of(documents)
    seconds = time.perf_counter() - start
    result = {
        "model": str(model),
        "corpus": " ".join(corpus),
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
        _show(result, loaded.size + (" and a vector" if vectors and loaded.bits is not None else ""))


def _encode_on_ray(
    model: "TextEncoder",
    corpora: list[str],
    options: ReadOptions,
    format: str | None,
    output: str,
    cluster: dict[str, Any],
    report: Report,
    **how: Any,
) -> dict[str, Any]:
    from parabit.engines.ray import connected, encode_shards, open_shards

    shards = open_shards(corpora, options, format)
    how |= {"workers": cluster["workers"], "cores": cluster["worker_cores"] or 1}
    try:
        with connected(cluster["address"]) as ray:
            return encode_shards(ray, model, corpora, shards, output, report=report, **how)._asdict()
    except (KeyboardInterrupt, SystemExit) as stop:
        message = f"interrupted; the finished shards are in {output}; run the same command again to continue"
        raise Interrupted(message, signal_of(stop)) from stop


def _show(result: dict[str, Any], size: str) -> None:
    say(
        f"[bold]{escape(result['output'])}[/bold]: {result['documents']:,} documents, {size} each, "
        f"{result['bytes'] * result['documents']:,} bytes in all"
    )
    say(f"  {result['seconds']:.1f} s, {result['documents_per_second']:,.0f} documents per second")
    if result.get("resumed"):
        say(f"  {result['resumed']:,} of {result['shards']:,} shards were finished before")
    if result["without_words"]:
        say(f"  {result['without_words']:,} documents without known words; their codes are zeros")
    if "reading" in result:
        say_skipped(result["reading"])
    elif result["skipped"]:
        say(f"  {result['skipped']:,} files or records skipped")

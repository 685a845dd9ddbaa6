"""Encoding on a Ray cluster: files of documents in, files of codes out, the same codes as on one machine.

Each file of the corpus is a shard, and each shard is one Ray task, which Ray runs again if its worker or its node is
lost. The Parquet file of a shard appears when it is complete. Its metadata say what it was made of, so the same command
again encodes only what is missing or has changed.
"""

import json
import logging
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from parabit import __version__
from parabit.corpus import ReadOptions, open_corpus
from parabit.corpus.files import FileCorpus
from parabit.corpus.sources import PipeSource, is_address, storage_of
from parabit.errors import ClusterError, CorpusError, ParabitError, need
from parabit.model import TextEncoder, encode_to_file
from parabit.model.code_files import META, SUFFIXES, widths_of
from parabit.parallel import limit_cores, ordered_map
from parabit.progress import Progress, Report, silent
from parabit.storage import whole_file

_PATIENCE = 5.0  # seconds for an address to answer; Ray itself would try for two minutes
_RETRIES = 3  # of a shard whose worker or node is lost
_FILES_AT_ONCE = 16  # whose metadata are read, which is mostly waiting for the storage

_COUNTS = (
    "documents",
    "without_words",
    "skipped",
)  # of a shard: `without_words` have zeros as codes

Counts = dict[str, int]


@contextmanager
def connected(address: str | None = None) -> Iterator[Any]:
    """The module `ray`, connected to a cluster until the block ends.

    `address` is HOST:PORT of the cluster's head, or `auto` for the cluster that this machine is a node of. Without one
    the environment variable RAY_ADDRESS counts; without that, Ray is started on this machine alone.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = need("ray", "ray", ClusterError)
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    host, _, port = address.rpartition(":")
    if port.isdigit() and "://" not in address:
        try:
            socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
        except OSError as problem:
            hint = "is the cluster running, and is this the port of its head (6379 unless set)?"
            raise ClusterError(
                f"no Ray cluster answers at {address}: {problem.strerror or problem}", hint
            ) from problem
    elif address not in ("auto", "local"):
        raise ClusterError(
            f"{address!r} is not an address of Ray",
            hint="give HOST:PORT or auto, on one of its nodes",
        )
    # polars would start one thread per core of the machine in every worker.
    environment = {"env_vars": {"POLARS_MAX_THREADS": "1"}}
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env=environment,
        )
    except (ConnectionError, RuntimeError, ValueError, OSError) as problem:
        where = (
            "Ray does not start here"
            if address == "local"
            else f"no Ray cluster can be used at {address}"
        )
        raise ClusterError(f"{where}: {_line(problem)}", hint="see `ray status`") from problem
    try:
        if address != "local":
            _check_versions(ray)
        yield ray
    except ray.exceptions.RayError as problem:
        raise ClusterError(
            f"the cluster failed: {_line(problem)}", hint="run the same command again"
        ) from problem
    finally:
        ray.shutdown()


def _check_versions(ray: Any) -> None:
    """Raise if a node has no parabit, or another version of it or of polars, whose codes might differ."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def versions() -> (
        str
    ):  # inside a function, so that Ray sends its code to a node without parabit
        from importlib import import_module, util

        found = {
            name: util.find_spec(name) and import_module(name).__version__
            for name in ("parabit", "polars")
        }
        return " and ".join(
            f"{name} {version}" if version else f"no {name}" for name, version in found.items()
        )

    here = versions()
    for node in ray.nodes():
        if node["Alive"]:
            only_there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            there = ray.get(
                ray.remote(versions).options(num_cpus=0, scheduling_strategy=only_there).remote()
            )
            if there != here:
                problem = (
                    f"the node {node['NodeManagerAddress']} has {there}, and here it is {here}"
                )
                raise ClusterError(problem, hint="install the same versions on every node")


def open_shards(names: Sequence[str], options: ReadOptions) -> list[FileCorpus]:
    """The files of a corpus that all nodes see at the same path or address, each as a corpus of its own."""
    # The workers of a cluster have other current folders.
    paths = [str(Path(name).absolute()) if Path(name).exists() else name for name in names]
    corpus = open_corpus(paths[0] if len(paths) == 1 else paths, options)
    if not isinstance(corpus, FileCorpus) or any(
        isinstance(source, PipeSource) for source in corpus.sources
    ):
        raise CorpusError(
            f"{', '.join(names)} cannot be read by the nodes of a cluster",
            hint="give a folder of files",
        )
    return corpus.shards()


def encode_shards(
    ray: Any,
    model: TextEncoder,
    names: Sequence[str],
    shards: Sequence[FileCorpus],
    output: str,
    *,
    vectors: bool = False,
    overwrite: bool = False,
    workers: int | None = None,
    cores: int = 1,
    report: Report = silent,
) -> Counts:
    """Write the codes of each shard to a Parquet file of its own in the folder `output`, a path or an address.

    `names` are the paths or addresses that the shards are from; codes written there would be read as documents next.
    The rows are those that `encode_to_file` writes for the whole corpus. A shard that cannot be read or that kills its
    worker does not stop the others; the error at the end names it. `workers` tasks run at once, each on `cores` cores.
    """
    if output.startswith("file://"):  # a path, where a file can appear in one step
        output = storage_of(output)[1]
    output, *roots = [
        name if is_address(name) else str(Path(name).absolute()) for name in (output, *names)
    ]
    if Path(output).suffix in SUFFIXES:
        raise ClusterError(
            f"{output} is a file, but each shard gets a file of its own", hint="name a folder"
        )
    if any(f"{output}/".startswith(f"{root.rstrip('/')}/") for root in roots):
        raise ClusterError(f"{output} is within the corpus", hint="write the codes elsewhere")
    most = sum(
        int(node["Resources"].get("CPU", 0)) // cores for node in ray.nodes() if node["Alive"]
    )
    if not most:
        raise ClusterError(
            f"no node of the cluster has {cores} cores", hint="ask for less with --worker-cores"
        )
    tasks = {f"{shard.sources[0].id.removesuffix('.parquet')}.parquet": shard for shard in shards}
    if len(tasks) < len(shards):
        raise CorpusError(
            "two shards have the same name", hint="give one folder, in which each has its own"
        )
    made_with = {"parabit": __version__, "model": model.fingerprint, "vectors": vectors}
    finished = _finished(output, tasks, made_with, overwrite)
    done, failed = [*finished.values()], list[str]()
    waiting = [name for name in tasks if name not in finished]
    shared = ray.put(model)
    encode = ray.remote(_encode).options(num_cpus=cores, max_retries=_RETRIES, name="encode")
    running: dict[Any, str] = {}
    while waiting or running:
        while waiting and len(running) < min(workers or most, most):
            name = waiting.pop(0)
            running[encode.remote(shared, tasks[name], output, name, made_with, cores)] = name
        [reference], _ = ray.wait(list(running), num_returns=1)
        name = running.pop(reference)
        try:
            found = ray.get(reference)
        except ray.exceptions.RayError:
            found = f"{tasks[name].sources[0].name}: its worker died each time"
        (failed if isinstance(found, str) else done).append(found)
        share, note = (
            (len(done) + len(failed)) / len(shards),
            f"{len(done):,} of {len(shards):,} shards",
        )
        report(
            Progress(
                "encoding", sum(counts["documents"] for counts in done), "documents", share, note
            )
        )
    if failed:
        more = f" and {len(failed) - 5:,} more" if len(failed) > 5 else ""
        problem = f"{len(failed):,} of {len(shards):,} shards failed: {'; '.join(failed[:5])}{more}"
        hint = f"the others are in {output}; run the same command again when these are repaired"
        raise CorpusError(problem, hint)
    totals = {name: sum(counts[name] for counts in done) for name in _COUNTS}
    if not totals["documents"]:
        raise CorpusError(f"no documents in {len(shards):,} shards", hint="are the files empty?")
    encoded = totals["documents"] - sum(counts["documents"] for counts in finished.values())
    width = sum(widths_of(model, vectors).values())
    # Shards that an earlier run had encoded, documents that this one did, and bytes per document, without its id.
    return {
        **totals,
        "shards": len(shards),
        "resumed": len(finished),
        "encoded": encoded,
        "bytes": width,
    }


def _finished(
    output: str, tasks: dict[str, FileCorpus], made_with: dict[str, Any], overwrite: bool
) -> dict[str, Counts]:
    """The counts of shards that an earlier run encoded. Codes of shards that have changed or are gone are removed."""
    with _explained(output) as (storage, folder):
        depth = len(PurePosixPath(folder).parts)
        paths = [path for path in storage.find(folder) if path.endswith(".parquet")]
        found = {"/".join(PurePosixPath(path).parts[depth:]): path for path in paths}
        headers = ordered_map(lambda path: _metadata(storage, path), paths, _FILES_AT_ONCE)
        known = dict(zip(found, headers, strict=True))
        for name, about in known.items():
            if about is None:
                raise ClusterError(
                    f"{output}/{name} is not a file of codes", hint="use another folder"
                )
            if not overwrite and any(about.get(key) != value for key, value in made_with.items()):
                hint = "use another folder, or replace them with --overwrite"
                raise ClusterError(
                    f"the codes in {output} were made with another model or other options", hint
                )
        done = {}
        for name, about in known.items():
            if name in tasks and about == {
                **(about or {}),
                **made_with,
                "shard": tasks[name].sources[0].version,
            }:
                done[name] = {count: about[count] for count in _COUNTS}
            else:
                storage.rm_file(found[name])
        return done


def _metadata(storage: Any, path: str) -> dict[str, Any] | None:
    """What a file of codes says about itself, from its last bytes; None for any other file."""
    import polars as pl

    others = (pl.exceptions.PolarsError, pl.exceptions.PanicException, KeyError, ValueError)
    with suppress(*others), storage.open(path, "rb") as file:
        return dict(json.loads(pl.read_parquet_metadata(file)[META]))
    return None


def _encode(
    model: TextEncoder,
    shard: FileCorpus,
    output: str,
    name: str,
    made_with: dict[str, Any],
    cores: int,
) -> Counts | str:
    """Encode one shard, on a worker: its counts, or what went wrong."""
    limit_cores(cores)
    source = shard.sources[0]
    try:
        version = source.version
        with tempfile.TemporaryDirectory(prefix="parabit-") as folder:
            file = Path(folder, "codes.parquet")
            about = {**made_with, "shard": version}
            encoded = encode_to_file(model, shard, file, vectors=made_with["vectors"], about=about)
            if source.version != version:
                raise CorpusError(f"{source.name} changed while it was read")
            with _explained(output) as (storage, there):
                path = PurePosixPath(there, name)
                storage.makedirs(str(path.parent), exist_ok=True)
                if is_address(output):  # object stores show a file when it is complete
                    storage.put_file(str(file), str(path))
                else:
                    with whole_file(Path(path), durable=True) as partial:
                        shutil.copyfile(file, partial)
    except Exception as problem:  # whatever it is, it is this shard's
        reason = problem.problem if isinstance(problem, ParabitError) else _line(problem)
        return reason if source.name in reason else f"{source.name}: {reason}"
    return {
        "documents": encoded.documents,
        "without_words": encoded.without_words,
        "skipped": len(shard.skipped),
    }


@contextmanager
def _explained(output: str) -> Iterator[tuple[Any, str]]:
    """The storage and the folder there; what it raises becomes a ClusterError."""
    try:
        if is_address(output):
            yield storage_of(output)
        else:  # not given to fsspec to parse: a path may look like an address
            yield need("fsspec", "remote", ClusterError).filesystem("file"), output
    except ParabitError:
        raise
    except Exception as problem:
        raise ClusterError(
            f"{output} cannot be used: {_line(problem)}", hint="check it and your access"
        ) from problem


def _line(problem: BaseException) -> str:
    return " ".join(str(problem).split())[:300] or type(problem).__name__

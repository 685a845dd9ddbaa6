"""The same codes on a Milvus server and in an embedded index: build time, memory, latency, and the same answers.

    pip install 'parabit[milvus]' milvus
    python benchmarks/milvus_search.py [--size 5000000] [--rounds 3] [--codes FILE.npy --queries FILE.npy]

128-bit codes with ids and no fields: synthetic and clustered ones (benchmarks/index_codes.py), or those of a real model
from a file. The server is that of the package `milvus`, on this machine, started for this run alone in a folder of its
own, as it comes. A latency is the whole call of `Index.search` and the ids of its hits, the median over queries that
are asked one after the other, or of a batch divided by its size; each is the median of the rounds. Milvus is asked with
the consistency strong, the default, which waits for its clock, and with bounded, which does not. Building ends when the
index can be opened and searched. The memory of the server is that of its process with all loaded and at rest, or after
two minutes (`at_rest` tells which), less what it takes with nothing in it; that of the embedded index is what the
process of a reader has more after searching than before opening it, of which all but a little are pages of files. The
floor of building is to write codes and ids to the disk, that of memory and disk the codes and ids themselves, and that
of a query which looks at all codes to read them once.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from common import keep, machine, run
from index_codes import Codes, changed, clustered
from milvus_table import fill, table
from parabit.errors import ParabitError, need
from parabit.index import Index, Milvus
from parabit.index.milvus.manifest import read_manifest, write_manifest

BITS, BATCH, ALONE = 128, 256, 20

_READER = """
import sys, numpy as np
from parabit.index import Index

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

before = resident()
with Index.open(sys.argv[1]) as index:
    index.search(np.load(sys.argv[2]), k=10).ids
    print(resident() - before)
"""


class Ask(NamedTuple):
    """A question that is timed."""

    name: str
    k: int | None
    radius: int | None


ASKS = (Ask("top 10", 10, None), Ask("radius 8", None, 8))


class Server(NamedTuple):
    """A server that was started for this run."""

    uri: str
    pid: int
    folder: Path

    @property
    def resident(self) -> int:
        """Bytes of memory that its process has."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def on_disk(self) -> int:
        """Bytes of its data, without its program."""
        return sum(path.stat().st_size for path in (self.folder / "data").rglob("*") if path.is_file())


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """A Milvus server in a folder, until the block ends."""
    milvus = need("milvus", "milvus", ParabitError)
    started = milvus.MilvusServer()
    started.set_base_dir(str(folder))
    started.start()
    try:
        yield Server(f"http://127.0.0.1:{started.listen_port}", started.server_proc.pid, folder)
    finally:
        started.stop()


def seconds(work: Callable[[], Any]) -> float:
    """How long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def build(codes: Codes, ids: list[str], folder: Path, **options: Any) -> float:
    """Index codes from nothing to a folder that can be opened; how long that takes."""
    return seconds(lambda: Index.of_codes(codes, BITS, folder, ids=ids, **options).close())


def latency(index: Index, queries: Codes, ask: Ask, rounds: int) -> dict[str, float]:
    """Milliseconds a query, alone and in a batch."""

    def search(some: Codes) -> None:
        index.search(some, ask.k, ask.radius).ids  # noqa: B018

    search(queries[:2])
    alone = [
        median(seconds(lambda place=place: search(queries[place : place + 1])) for place in range(ALONE))
        for _ in range(rounds)
    ]
    batch = [seconds(lambda: search(queries)) / len(queries) for _ in range(rounds)]
    return {"alone_ms": round(1000 * median(alone), 3), "batch_ms": round(1000 * median(batch), 3)}


def compared(one: Index, other: Index, queries: Codes, ask: Ask) -> dict[str, Any]:
    """How many answers of one are those of the other, to the order; how many hits there are; how many were found."""
    first, second = (index.search(queries, ask.k, ask.radius) for index in (one, other))
    same = sum(
        mine == theirs and near.tolist() == far.tolist()
        for mine, theirs, near, far in zip(first.ids, second.ids, first.distances, second.distances, strict=True)
    )
    found = sum(len(set(mine) & set(theirs)) for mine, theirs in zip(first.ids, second.ids, strict=True))
    hits = sum(map(len, second.ids))
    return {"queries": len(queries), "same_answers": same, "hits": hits, "recall": round(found / max(hits, 1), 4)}


def settled(found: Server, most: float = 120.0, every: float = 15.0) -> bool:
    """Wait until the server's memory has come to rest: it takes files into use some time after they are written.

    Whether that was seen within so many seconds.
    """
    end, last = time.monotonic() + most, 0
    while abs((now := found.resident) - last) > 0.01 * last:
        if time.monotonic() >= end:
            return False
        last = now
        time.sleep(every)
    return True


def reader_bytes(folder: Path, queries: Codes, scratch: Path) -> int:
    """What an embedded index takes of the memory of a process that searches it."""
    np.save(scratch / "queries.npy", queries)
    command = [sys.executable, "-c", _READER, str(folder), str(scratch / "queries.npy")]
    return int(subprocess.run(command, check=True, capture_output=True).stdout)


def floor_of(codes: Codes, ids: list[str], scratch: Path) -> dict[str, float]:
    """What can be had for nothing less: see above."""
    joined = "".join(ids).encode()

    def write() -> None:
        with (scratch / "floor").open("wb") as file:
            file.write(codes.tobytes())
            file.write(joined)
            file.flush()
            os.fsync(file.fileno())

    size = (codes.nbytes + len(joined)) / 1e6
    words = codes.view(np.uint64)
    read = min(seconds(words.sum) for _ in range(5))
    return {
        "build_seconds": round(seconds(write), 2),
        "memory_mb": round(size, 1),
        "disk_mb": round(size, 1),
        "alone_ms": round(1000 * read, 3),
    }


def measure(codes: Codes, ids: list[str], queries: Codes, rounds: int, index: str, folder: Path, found: Server) -> Any:
    """One kind of index on the server, beside the embedded one."""
    empty, disk = found.resident, found.on_disk
    built = build(codes, ids, folder / index, milvus=Milvus(found.uri, index=index))
    start = time.perf_counter()
    at_rest = settled(found)
    waited = time.perf_counter() - start
    told: dict[str, Any] = {
        "index": index,
        "build_seconds": round(built, 1),
        "until_at_rest_seconds": round(waited, 1),
        "at_rest": at_rest,
        "memory_mb": round((found.resident - empty) / 1e6, 1),
        "memory_when_empty_mb": round(empty / 1e6, 1),
        "disk_mb": round((found.on_disk - disk) / 1e6, 1),
        "rows": [],
    }
    with (
        Index.open(folder / "embedded") as embedded,
        Index.open(folder / index) as strong,
        _with_consistency(folder / index, "bounded") as bounded,
    ):
        told["milvus"] = strong.info()["milvus"]["version"]
        for ask in ASKS:
            row = {
                "ask": ask.name,
                "strong": latency(strong, queries, ask, rounds),
                "bounded": latency(bounded, queries, ask, rounds),
                "embedded": latency(embedded, queries, ask, rounds),
                **compared(strong, embedded, queries, ask),
            }
            told["rows"].append(row)
            print(f"  {index} {ask.name}: {row}", flush=True)
    return told


def _with_consistency(folder: Path, level: str) -> Index:
    """The same index, asked with another consistency."""
    other = folder.with_name(f"{folder.name}-{level}")
    other.mkdir()
    manifest = read_manifest(folder)
    write_manifest(other, manifest._replace(place=replace(manifest.place, consistency=level)))
    return Index.open(other)


def codes_for(options: argparse.Namespace, size: int) -> tuple[Codes, Codes, str]:
    """Codes, a batch of queries, and what they are."""
    if options.codes is None:
        codes, draw = clustered(size, BITS)
        return codes, np.concatenate([draw(BATCH // 2), changed(codes, BITS, BATCH // 2, 0.1)]), "clustered"
    codes, queries = np.load(options.codes)[:size], np.load(options.queries)[:BATCH]
    if codes.shape[1] * 8 != BITS or queries.shape[1] != codes.shape[1]:
        raise ParabitError(f"{options.codes} has no codes of {BITS} bits", hint="make some with index_codes.py")
    return np.ascontiguousarray(codes), np.ascontiguousarray(queries), "a real model"


def compare(codes: Codes, queries: Codes, rounds: int, indexes: list[str], folder: Path) -> dict[str, Any]:
    """All of it, in one run."""
    ids = [f"document{number}" for number in range(len(codes))]
    floor = floor_of(codes, ids, folder)
    embedded = build(codes, ids, folder / "embedded")
    told: dict[str, Any] = {
        "size": len(codes),
        "bits": BITS,
        "floor": floor,
        "embedded": {
            "build_seconds": round(embedded, 1),
            "memory_mb": round(reader_bytes(folder / "embedded", queries, folder) / 1e6, 1),
            "disk_mb": round(sum(path.stat().st_size for path in (folder / "embedded").rglob("*")) / 1e6, 1),
        },
        "servers": [],
    }
    with Index.open(folder / "embedded") as opened:
        told["embedded"]["backend"] = opened.info()["backends"][-1]
    print(f"{len(codes):,} codes, floor {floor}, embedded {told['embedded']}", flush=True)
    for index in indexes:
        with server(folder / f"server-{index}") as found:
            told["servers"].append(measure(codes, ids, queries, rounds, index, folder, found))
            print({name: value for name, value in told["servers"][-1].items() if name != "rows"}, flush=True)
    return told


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=5_000_000, help="how many codes")
    parser.add_argument("--codes", metavar="FILE", help=f"codes of {BITS} bits, an .npy file; the first --size of them")
    parser.add_argument("--queries", metavar="FILE", help=f"codes to ask with; the first {BATCH} of them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--indexes", nargs="+", default=["BIN_FLAT"], help="BIN_FLAT, BIN_IVF_FLAT, or both")
    parser.add_argument("--folder", metavar="FOLDER", help="where to work; a temporary one by default")
    parser.add_argument("--quick", action="store_true", help="100,000 codes and one round; nothing is kept")
    options = parser.parse_args()
    if (options.codes is None) != (options.queries is None):
        parser.error("give --codes and --queries, or neither")
    need("pymilvus", "milvus", ParabitError)
    size, rounds = (min(options.size, 100_000), 1) if options.quick else (options.size, options.rounds)
    codes, queries, what = codes_for(options, size)
    with tempfile.TemporaryDirectory(prefix="parabit-milvus-", dir=options.folder) as scratch:
        told = compare(codes, queries, rounds, options.indexes, Path(scratch))
    print(f"\n{table(told)}")
    if options.quick:
        return
    kind = "" if options.codes else "_clustered"
    name = f"milvus_search{kind}" + ("" if len(codes) == parser.get_default("size") else f"_{len(codes)}")
    files = "" if options.codes is None else "--codes FILE --queries FILE "
    told_to = f"{files}--size {size} --rounds {rounds} --indexes {' '.join(options.indexes)}"
    measured = {"command": f"python benchmarks/milvus_search.py {told_to}", "what": what, "rounds": rounds}
    result = {**measured, "machine": machine("numpy", "faiss-cpu", "pymilvus", "milvus"), **told}
    keep(name, result)
    if name == "milvus_search":
        fill(result)  # the page has the table of a real model


if __name__ == "__main__":
    run(main)

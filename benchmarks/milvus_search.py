"""The same codes on a Milvus server and in an embedded index: build time, memory, latency, and the same answers.

    pip install 'parabit[milvus]' milvus
    python benchmarks/milvus_search.py [--codes 5000000] [--rounds 3]

128-bit clustered codes (benchmarks/index_codes.py) with ids and no fields. The server is that of the package `milvus`,
on this machine, started for this run alone in a folder of its own. Queries are half new draws and half codes with up to
10% of the bits changed. A latency is the whole call of `Index.search` and the ids of its hits, the median over queries
that are asked one after the other, or of a batch divided by its size; each is the median of the rounds. Milvus is asked
with the consistency strong, the default, which waits for its clock, and with bounded, which does not. The memory of the
server is that of its process with all loaded, less what it takes with nothing in it; that of the embedded index is what
the process of a reader has more after searching than before opening it, of which all but a little are pages of files.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from common import keep, machine, run
from index_codes import Codes, changed, clustered
from parabit.errors import ParabitError
from parabit.extras import need
from parabit.index import Index, Milvus

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


ASKS = (Ask("k=10", 10, None), Ask("radius 8", None, 8))


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


def build(codes: Codes, folder: Path, **options: Any) -> float:
    """Index codes from nothing to a folder that can be opened; how long that takes."""
    ids = [f"document{number}" for number in range(len(codes))]
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
    """How many of the answers of one are those of the other, in the same order, and how many hits they have."""
    first, second = (index.search(queries, ask.k, ask.radius) for index in (one, other))
    same = sum(
        mine == theirs and near.tolist() == far.tolist()
        for mine, theirs, near, far in zip(first.ids, second.ids, first.distances, second.distances, strict=True)
    )
    return {"queries": len(queries), "same_answers": same, "hits": sum(map(len, first.ids))}


def settled(found: Server, most: float = 120.0) -> None:
    """Wait until the server's memory has come to rest: it takes files into use some time after they are written."""
    end, last = time.monotonic() + most, 0
    while time.monotonic() < end and abs(found.resident - last) > 0.01 * last:
        last = found.resident
        time.sleep(15)


def reader_bytes(folder: Path, queries: Codes, scratch: Path) -> int:
    """What an embedded index takes of the memory of a process that searches it."""
    import numpy as np

    np.save(scratch / "queries.npy", queries)
    command = [sys.executable, "-c", _READER, str(folder), str(scratch / "queries.npy")]
    return int(subprocess.run(command, check=True, capture_output=True).stdout)


def measure(codes: Codes, queries: Codes, rounds: int, index: str, folder: Path, found: Server) -> dict[str, Any]:
    """One kind of index on the server, beside the embedded one."""
    empty, disk = found.resident, found.on_disk
    place = Milvus(found.uri, index=index)
    built = build(codes, folder / index, milvus=place)
    waited = seconds(lambda: settled(found))
    told: dict[str, Any] = {
        "index": index,
        "build_seconds": round(built, 1),
        "until_at_rest_seconds": round(waited, 1),
        "memory_mb": round((found.resident - empty) / 1e6, 1),
        "disk_mb": round((found.on_disk - disk) / 1e6, 1),
        "rows": [],
    }
    with Index.open(folder / "embedded") as embedded, Index.open(folder / index) as strong:
        told["milvus"] = strong.info()["milvus"]["version"]
        bounded = _with_consistency(folder / index, "bounded")
        with bounded:
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
    from dataclasses import replace

    from parabit.index.milvus.manifest import read_manifest, write_manifest

    other = folder.with_name(f"{folder.name}-{level}")
    other.mkdir()
    manifest = read_manifest(folder)
    write_manifest(other, manifest._replace(place=replace(manifest.place, consistency=level)))
    return Index.open(other)


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codes", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--indexes", nargs="+", default=["BIN_FLAT"], help="BIN_FLAT, BIN_IVF_FLAT, or both")
    parser.add_argument("--folder", metavar="FOLDER", help="where to work; a temporary one by default")
    parser.add_argument("--quick", action="store_true", help="100,000 codes and one round; nothing is kept")
    options = parser.parse_args()
    count, rounds = (100_000, 1) if options.quick else (options.codes, options.rounds)
    need("pymilvus", "milvus", ParabitError)
    codes, draw = clustered(count, BITS)
    import numpy as np

    queries = np.concatenate([draw(BATCH // 2), changed(codes, BITS, BATCH // 2, 0.1)])
    with tempfile.TemporaryDirectory(prefix="parabit-milvus-", dir=options.folder) as scratch:
        folder = Path(scratch)
        embedded = build(codes, folder / "embedded")
        told: dict[str, Any] = {
            "codes": count,
            "bits": BITS,
            "embedded": {
                "build_seconds": round(embedded, 1),
                "memory_mb": round(reader_bytes(folder / "embedded", queries, folder) / 1e6, 1),
                "disk_mb": round(sum(path.stat().st_size for path in (folder / "embedded").rglob("*")) / 1e6, 1),
            },
        }
        print(f"{count:,} codes, embedded: {told['embedded']}", flush=True)
        told["servers"] = []
        for index in options.indexes:
            with server(folder / f"server-{index}") as found:
                told["servers"].append(measure(codes, queries, rounds, index, folder, found))
                print({name: value for name, value in told["servers"][-1].items() if name != "rows"}, flush=True)
    if options.quick:
        return
    name = "milvus_search" if count == parser.get_default("codes") else f"milvus_search_{count}"
    keep(
        name,
        {
            "command": f"python benchmarks/milvus_search.py --codes {count} --rounds {rounds} "
            f"--indexes {' '.join(options.indexes)}",
            "machine": machine("numpy", "faiss-cpu", "pymilvus", "milvus"),
            **told,
        },
    )


if __name__ == "__main__":
    run(main)

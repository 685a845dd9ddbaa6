"""An index in its folder as it grows: how long it takes to make, to open, to change and to compact.

    python benchmarks/index_keeping.py [--sizes 100000 1000000 10000000]

128-bit clustered codes (benchmarks/index_codes.py) with ids and a label. Opening is that of a new process's first
time and of later ones, with the files in the system's cache; each is the whole call of `Index.open`. The back end is
the scan, as building others is timed in index_speed.py.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from common import keep, machine, run
from index_codes import clustered
from parabit.index import Index

BITS, ADDED, DELETED = 128, 10_000, 1_000

_OPEN = """
import sys, time
from parabit.index import Index
start = time.perf_counter()
Index.open(sys.argv[1])
print(time.perf_counter() - start)
"""


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(count: int, folder: Path) -> dict[str, float]:
    """Everything about one size."""
    codes, draw = clustered(count, BITS)
    fields = [{"label": f"label{number % 100}"} for number in range(count)]
    ids = [f"document{number}" for number in range(count)]

    def make() -> None:
        Index.of_codes(codes, BITS, folder, ids=ids, fields=fields, backend="flat", overwrite=True).close()

    made = seconds(make)
    first = float(subprocess.run([sys.executable, "-c", _OPEN, folder], check=True, capture_output=True).stdout)
    again = median(seconds(lambda: Index.open(folder).close()) for _ in range(5))
    with Index.open(folder, write=True) as index:
        one = median(seconds(lambda n=n: index.put_codes(draw(1), [f"one{n}"], [{}])) for n in range(20))
        more = draw(ADDED)
        many = seconds(lambda: index.put_codes(more, [f"more{n}" for n in range(ADDED)], [{}] * ADDED))
        deleted = seconds(lambda: index.delete(ids[:DELETED]))
        with_log = median(seconds(lambda: Index.open(folder).close()) for _ in range(5))
        filtered = median(
            seconds(lambda: index.search(codes[:1], k=10, where={"label": "label7"}, backend="flat")) for _ in range(5)
        )
        compacted = seconds(index.compact)
        verified = seconds(index.verify)
    return {
        "documents": count,
        "make_seconds": round(made, 2),
        "open_first_milliseconds": round(first * 1e3, 1),
        "open_milliseconds": round(again * 1e3, 1),
        "add_one_milliseconds": round(one * 1e3, 2),
        f"add_{ADDED}_seconds": round(many, 3),
        f"delete_{DELETED}_seconds": round(deleted, 3),
        "open_with_that_log_milliseconds": round(with_log * 1e3, 1),
        "filtered_query_milliseconds": round(filtered * 1e3, 2),
        "compact_seconds": round(compacted, 2),
        "verify_seconds": round(verified, 2),
        "megabytes": round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
    }


def main() -> None:
    """Measure each size, print the table, keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    sizes = parser.parse_args().sizes
    rows = []
    for count in sizes:
        with tempfile.TemporaryDirectory() as name:
            rows.append(measure(count, Path(name) / "keep.index"))
        print(rows[-1], flush=True)
    keep(
        "index_keeping",
        {
            "command": "python benchmarks/index_keeping.py",
            "bits": BITS,
            "sizes": rows,
            "machine": machine("numpy", "faiss-cpu"),
        },
    )


if __name__ == "__main__":
    run(main)

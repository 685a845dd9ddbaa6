"""faiss's hash indexes beside our back end hashing: time, exactness, size, and time to open.

    python benchmarks/index_hashing.py [--codes 5000000] [--rounds 3]

Codes are synthetic and clustered (benchmarks/index_codes.py). Both use one thread, and times are that thread's own, so
that other work on the machine changes them little. `flips` is how many bits faiss flips in a substring; its k nearest
are those among what these flips reach. For the radius the flips suffice to find all.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import faiss
import numpy as np

from common import keep, machine, run
from index_codes import Codes, changed, clustered
from parabit.index.backends import Hashing
from parabit.parallel import limit_cores

BATCH, ALONE, K = 256, 60, 10  # queries in a batch and asked one by one, and hits


def milliseconds(search: Callable[[Codes], Any], queries: Codes) -> tuple[float, float]:
    """Of a query alone, and in a batch."""
    taken = []
    for query in queries[:ALONE]:
        start = time.process_time()
        search(query[None])
        taken.append(time.process_time() - start)
    start = time.process_time()
    search(queries)
    return median(taken) * 1e3, (time.process_time() - start) / len(queries) * 1e3


def measure(name: str, searches: dict[str, Callable[[Codes], Any]], queries: Codes, rounds: int) -> dict[str, Any]:
    """The median over rounds, in each of which all answer the same queries."""
    times = {method: [] for method in searches}
    for _ in range(rounds):
        for method, search in searches.items():
            times[method].append(milliseconds(search, queries))
    row = {method: [round(float(value), 3) for value in np.median(taken, axis=0)] for method, taken in times.items()}
    print(f"  {name}: " + ", ".join(f"{method} {one} alone, {many} in a batch" for method, (one, many) in row.items()))
    return {"ask": name, "milliseconds_alone_and_in_a_batch": row}


def compare(bits: int, count: int, radius: int, flips: tuple[int, int], rounds: int) -> dict[str, Any]:
    """Our back end for so many bits beside faiss's; the radius needs the first number of flips."""
    codes, draw = clustered(count, bits)
    queries = np.concatenate([draw(BATCH // 2), changed(codes, bits, BATCH // 2, 0.1)])
    seconds, opening, size = {}, {}, {}
    start = time.process_time()
    arrays = Hashing.build(codes, bits)
    seconds["parabit"], size["parabit"] = time.process_time() - start, sum(array.nbytes for array in arrays.values())
    start = time.process_time()
    own = Hashing(codes, bits, arrays)  # the store maps the arrays
    opening["parabit"] = time.process_time() - start
    width = codes.shape[1] * 8
    start = time.process_time()
    if own.substrings == 1:
        index = faiss.IndexBinaryHash(width, own.length)
    else:
        index = faiss.IndexBinaryMultiHash(width, own.substrings, own.length)
    index.add(codes)
    seconds["faiss"] = time.process_time() - start
    with TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        faiss.write_index_binary(index, str(path))
        size["faiss"] = path.stat().st_size
        start = time.process_time()
        faiss.read_index_binary(str(path), faiss.IO_FLAG_MMAP)
        opening["faiss"] = time.process_time() - start
    result: dict[str, Any] = {
        "codes": count,
        "bits": bits,
        "backend": own.name,
        "build_seconds": {name: round(value, 2) for name, value in seconds.items()},
        "open_seconds": {name: round(value, 4) for name, value in opening.items()},
        "bytes_per_code": {name: round(value / count, 1) for name, value in size.items()},
    }
    print(result)
    index.nflip = flips[0]
    assert len(index.range_search(queries, radius + 1)[2]) == len(own.search(queries, radius=radius).rows)
    searches = {"parabit": lambda some: own.search(some, radius=radius)}
    searches["faiss"] = lambda some: index.range_search(some, radius + 1)
    rows = [measure(f"radius {radius}, {flips[0]} flips", searches, queries, rounds)]
    true = own.search(queries, K).distances.reshape(-1, K)
    for number in flips:
        index.nflip = number
        searches = {"parabit": lambda some: own.search(some, K), "faiss": lambda some: index.search(some, K)}
        row = measure(f"top {K}, {number} flips", searches, queries, rounds)
        complete = (index.search(queries, K)[0] == true).all(axis=1).mean()
        print(f"    faiss finds all {K} for {complete:.1%} of the queries")
        rows.append(row | {"faiss_complete": round(float(complete), 3)})
    return result | {"rows": rows}


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codes", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    limit_cores(1)
    faiss.omp_set_num_threads(1)
    results = [
        compare(28, options.codes, 2, (2, 3), options.rounds),
        compare(128, options.codes, 8, (1, 2), options.rounds),
    ]
    keep("index_hashing", {"machine": machine("numpy", "faiss-cpu"), "results": results})


if __name__ == "__main__":
    run(main)

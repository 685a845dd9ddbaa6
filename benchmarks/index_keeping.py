"""An index in its folder as it grows: how long it takes to make, to open, to change and to compact.

    python benchmarks/index_keeping.py [--sizes 100000 1000000 10000000]

Random codes of 128 bits with ids and a label. Opening is that of a new process's first time and of later ones, with the
files in the system's cache; each is the whole call of `Index.open`. The back end is the scan, as building others is
timed in index_speed.py. Every size runs in a process of its own, whose lists of ids and fields are most of its memory.
"""

import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from common import about, apart, keep, options, peak_mb, run, seconds
from parabit.index import Index
from parabit.parallel import cores

BITS, ADDED, DELETED = 128, 10_000, 1_000


def opened(folder: Path) -> float:
    """Seconds of opening an index in this process."""
    return seconds(lambda: Index.open(folder).close())


def measure(count: int, folder: Path) -> dict[str, float]:
    """Everything about one size."""
    rng = np.random.default_rng(0)

    def draw(more: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
        return rng.integers(0, 256, (more, BITS // 8), dtype=np.uint8)

    codes = draw(count)
    fields = [{"label": f"label{number % 100}"} for number in range(count)]
    ids = [f"document{number}" for number in range(count)]

    def make() -> None:
        Index.of_codes(
            codes, BITS, folder, ids=ids, fields=fields, backend="flat", overwrite=True
        ).close()

    made = seconds(make)
    first, again = apart(opened, folder), median(opened(folder) for _ in range(5))
    with Index.open(folder, write=True) as index:
        one = median(
            seconds(lambda n=n: index.put_codes(draw(1), [f"one{n}"], [{}])) for n in range(20)
        )
        more = draw(ADDED)
        many = seconds(
            lambda: index.put_codes(more, [f"more{n}" for n in range(ADDED)], [{}] * ADDED)
        )
        deleted = seconds(lambda: index.delete(ids[:DELETED]))
        with_log = median(opened(folder) for _ in range(5))
        filtered = median(
            seconds(
                lambda: index.search(codes[:1], k=10, where={"label": "label7"}, backend="flat")
            )
            for _ in range(5)
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
        "megabytes": round(
            sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1
        ),
        "peak_megabytes": peak_mb(),
    }


def main() -> None:
    """Measure each size, print the table, keep the result."""
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    given = parser.parse_args()
    rows = []
    for count in [20_000] if given.small else given.sizes:
        with tempfile.TemporaryDirectory() as name:
            rows.append(apart(measure, count, Path(name) / "keep.index"))
        print(rows[-1], flush=True)
    measured = about(
        "numpy", "faiss-cpu", threads=cores(), repetitions="1, the median of 5 for opening"
    )
    keep("index_keeping", {"bits": BITS, "sizes": rows, "run": measured}, given.small)


if __name__ == "__main__":
    run(main)

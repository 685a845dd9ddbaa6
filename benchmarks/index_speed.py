"""Searching codes: the back ends beside faiss and usearch, all answers checked against a scan.

    PARABIT_DATA=FOLDER python benchmarks/index_speed.py [--codes 1000000 5000000] [--rounds 3] [--folder FOLDER]

Codes of a model, of different passages: Reuters-21578, the arXiv and the Wikipedia sample, cut into as many pieces. 256
of them are queries and are not searched. In a round each method answers the same queries, one by one and in a batch,
and ratios are taken within a round. Single queries get one thread, faster for faiss than two, and batches all cores.

Of the peers, the knob that matters is set to the least value that finds 95% of the 10 nearest, if one does: `nprobe` of
faiss's IndexBinaryIVF, `nflip` of its IndexBinaryHash and IndexBinaryMultiHash, `expansion_search` of usearch. A hit
counts if it is as near as the true one at its place. Within a radius the hash indexes flip as many bits as they need to
find everything; the others cannot promise to. `--folder` keeps codes and usearch's graphs, which take minutes to make.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import log2
from pathlib import Path
from statistics import median
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray
from usearch.index import Index as Graph

from common import about, keep, kept, options, passages, run, seconds
from parabit import ParagraphVectors
from parabit.index.code_search import BACKENDS, choose
from parabit.parallel import cores

BATCH, ALONE, K, RECALL = 256, 30, 10, 0.95
RADIUS = {28: 2, 128: 8}  # by the bits
SCAN = "faiss flat"
LEARNED = 50_000  # passages

Codes = NDArray[np.uint8]


@dataclass
class Method:
    """A way to search."""

    nearest: Callable[[Codes], Any]  # the K nearest: distances of (queries, K)
    within: Callable[[Codes], Any] | None  # how many are within the radius, if it finds them all
    built: float  # seconds
    size: float  # bytes per code, with the code
    tune: Callable[[int], None] | None = None
    values: tuple[int, ...] = ()
    knob: str = ""


def encoded(count: int, folder: Path | None) -> tuple[int, dict[int, Codes]]:
    """The words of a passage, and for each number of bits the codes of different passages, the queries last."""
    words, texts = passages(count + BATCH)
    path = folder and folder / f"codes-{count}.npz"
    if path and path.exists():
        with np.load(path) as file:
            return words, {bits: file[str(bits)] for bits in RADIUS}
    drawn = list(islice(texts, count + BATCH))
    held = set(np.random.default_rng(0).choice(len(drawn), BATCH, replace=False).tolist())
    ordered = [text for place, text in enumerate(drawn) if place not in held] + [
        drawn[place] for place in held
    ]
    found = {}
    for bits in RADIUS:
        model = ParagraphVectors(bits, random_state=0).fit(
            ordered[: count : max(1, count // LEARNED)]
        )
        found[bits] = np.concatenate([model.encoder_.infer(ordered[at : at + 100_000]).codes
                                      for at in range(0, len(ordered), 100_000)])  # fmt: skip
        print(f"{count:,} passages of {words} words: {bits} bits", flush=True)
    if path:
        np.savez(path, **{str(bits): codes for bits, codes in found.items()})
    return words, found


def of_faiss(index: Any, method: Callable[..., Any], asked: int) -> Callable[[Codes], Any]:
    """A search of faiss's, with a thread per query up to the number of cores."""

    def search(queries: Codes) -> Any:
        faiss.omp_set_num_threads(min(len(queries), cores()))
        return method(queries, asked)

    return search


def ours(name: str, codes: Codes, bits: int) -> Method:
    """A back end of parabit's."""
    start = time.perf_counter()
    arrays = BACKENDS[name].build(codes, bits)
    backend, built = BACKENDS[name](codes, bits, arrays), time.perf_counter() - start
    size = codes.shape[1] + sum(array.nbytes for array in arrays.values()) / len(codes)
    return Method(
        lambda queries: backend.search(queries, K).distances.reshape(-1, K),
        lambda queries: np.diff(backend.search(queries, None, RADIUS[bits]).offsets),
        built,
        size,
    )


def by_faiss(index: Any, codes: Codes, bits: int, exact: bool = False, **knob: Any) -> Method:
    """An index of faiss's; `train` and `add` are timed, and its size is that of its file."""
    faiss.omp_set_num_threads(cores())
    built = seconds(lambda: (index.train(codes), index.add(codes)))
    search = of_faiss(index, lambda queries, k: index.search(queries, k)[0], K)
    # faiss leaves out what is just at the radius.
    radius = of_faiss(
        index, lambda queries, far: np.diff(index.range_search(queries, far)[0]), RADIUS[bits] + 1
    )
    size = faiss.serialize_index_binary(index).nbytes / len(codes)
    return Method(search, radius if exact else None, built, size, **knob)


def by_lists(codes: Codes, bits: int) -> Method:
    """Inverted lists, as many as the documentation advises but 4,096 at most, learned from 40 codes per list."""
    width, lists = codes.shape[1] * 8, int(min(4096, 4 * len(codes) ** 0.5))
    index = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(width), width, lists)
    index.cp.niter, index.cp.max_points_per_centroid = 10, 40
    return by_faiss(index, codes, bits, tune=partial(setattr, index, "nprobe"),
                    values=(1, 2, 4, 8, 16, 32, 64, 128, 256), knob=f"{lists:,} lists, nprobe")  # fmt: skip


def by_hash(codes: Codes, bits: int) -> Method:
    """Hash tables of substrings that have about as many values as there are codes."""
    width, length = codes.shape[1] * 8, min(bits, max(8, round(log2(len(codes)))))
    tables = bits // length
    index = (
        faiss.IndexBinaryHash(width, length)
        if tables == 1
        else faiss.IndexBinaryMultiHash(width, tables, length)
    )
    method = by_faiss(index, codes, bits, exact=True, tune=partial(setattr, index, "nflip"), values=(0, 1, 2, 3),
                      knob=f"{tables} x {length} bits, nflip")  # fmt: skip
    within, flips = method.within, RADIUS[bits] // tables

    def complete(queries: Codes) -> Any:
        before, index.nflip = index.nflip, flips
        found = within(queries) if within else None
        index.nflip = before
        return found

    method.within = complete
    return method


def by_graph(codes: Codes, path: Path | None) -> Method:
    """usearch's graph."""
    index = Graph(ndim=codes.shape[1] * 8, metric="hamming", dtype="b1")
    built = float("nan")
    if path and path.exists():
        index.load(str(path))
    else:
        built = seconds(lambda: index.add(np.arange(len(codes)), codes, threads=cores()))
        if path:
            index.save(str(path))

    def search(queries: Codes) -> Any:
        return np.reshape(
            index.search(queries, K, threads=min(len(queries), cores())).distances, (-1, K)
        )

    return Method(search, None, built, index.memory_usage / len(codes), partial(setattr, index, "expansion_search"),
                  (16, 32, 64, 128, 256, 512, 1024), "expansion_search")  # fmt: skip


def tuned(method: Method, queries: Codes, true: NDArray[Any]) -> tuple[int, float]:
    """The least value of the knob that finds enough of the nearest, or the last, and what it finds."""
    assert method.tune is not None
    for value in method.values:
        method.tune(value)
        found = method.nearest(queries)
        recall = float(((found >= 0) & (found <= true[:, -1:])).mean())
        if recall >= RECALL:
            break
    return value, round(recall, 3)


def timed(search: Callable[[Codes], Any], queries: Codes, alone: bool) -> float:
    """Milliseconds per query."""
    if not alone:
        return seconds(lambda: search(queries)) / len(queries) * 1e3
    return (
        median(
            seconds(lambda row=row: search(queries[row : row + 1]))
            for row in range(min(ALONE, len(queries)))
        )
        * 1e3
    )


def rounds_of(
    searches: dict[str, Callable[[Codes], Any]], queries: Codes, alone: bool, rounds: int
) -> dict[str, Any]:
    """The medians over rounds, of milliseconds and of how many times as fast as the scan a method is."""
    times: dict[str, list[float]] = {name: [] for name in searches}
    for _ in range(rounds):
        for name, search in searches.items():
            times[name].append(timed(search, queries, alone))
    faster = {
        name: [scan / own for scan, own in zip(times[SCAN], taken, strict=True)]
        for name, taken in times.items()
    }
    return {
        "queries": 1 if alone else len(queries),
        "milliseconds": {name: round(median(taken), 4) for name, taken in times.items()},
        "times_as_fast": {name: round(median(ratios), 2) for name, ratios in faster.items()},
        "least_to_most": {
            name: [round(min(ratios), 2), round(max(ratios), 2)] for name, ratios in faster.items()
        },
    }


def measure(
    codes: Codes, queries: Codes, bits: int, rounds: int, folder: Path | None
) -> dict[str, Any]:
    """Everything about one set of codes."""
    [hashing] = (name for name in BACKENDS if name != "flat")
    methods = {
        SCAN: by_faiss(faiss.IndexBinaryFlat(codes.shape[1] * 8), codes, bits, exact=True),
        "parabit scan": ours("flat", codes, bits),
        "parabit hashing": ours(hashing, codes, bits),
        "faiss hashes": by_hash(codes, bits),
        "faiss IVF": by_lists(codes, bits),
    }
    if bits > 64:  # most short codes have dozens of equals, among which a graph leads nowhere
        methods["usearch"] = by_graph(codes, folder and folder / f"usearch-{len(codes)}.graph")
    print(
        f"  built in { ({name: round(method.built, 1) for name, method in methods.items()}) } s",
        flush=True,
    )
    true, counts = methods[SCAN].nearest(queries), methods[SCAN].within(queries)  # type: ignore[misc]
    settings, recalls = {}, {}
    for name, method in methods.items():
        if method.tune:
            value, recalls[name] = tuned(method, queries, true)
            settings[name] = f"{method.knob} {value}"
        else:
            assert np.array_equal(method.nearest(queries), true), f"{name}: not the nearest"
        assert method.within is None or np.array_equal(method.within(queries), counts), (
            f"{name}: not all"
        )
    rows = []
    for ask, searches in (
        (f"top {K}", {name: method.nearest for name, method in methods.items()}),
        (
            f"radius {RADIUS[bits]}",
            {name: method.within for name, method in methods.items() if method.within},
        ),
    ):
        for alone in (True, False):
            row = {"ask": ask, **rounds_of(searches, queries, alone, rounds)}
            asked = {"k": K} if ask.startswith("top") else {"radius": RADIUS[bits]}
            row["auto"] = choose(len(codes), bits, **asked, batch=row["queries"])
            rows.append(row)
            print(
                f"  {bits} bits, {ask}, {row['queries']} at a time: {row['milliseconds']} {row['auto']}",
                flush=True,
            )
    return {
        "hashing": hashing,
        "rows": rows,
        "recall": recalls,
        "settings": settings,
        "build_seconds": {
            name: round(method.built, 2) for name, method in methods.items() if method.built >= 0
        },
        "bytes_per_code": {name: round(method.size, 1) for name, method in methods.items()},
        "hits_within_the_radius": float(np.median(counts)),
    }


def main() -> None:
    """Measure each size, and keep the result beside those of other sizes."""
    parser = options(__doc__)
    parser.add_argument("--codes", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--folder", type=Path, help="keeps codes and usearch's graphs for another time"
    )
    given = parser.parse_args()
    sets = kept("index_speed").get("sets", [])
    for count in [5_000] if given.small else given.codes:
        words, codes = encoded(count, given.folder)
        for bits in RADIUS:
            what = {"codes": count, "bits": bits, "of": f"different passages of {words} words"}
            found = measure(
                codes[bits][:-BATCH], codes[bits][-BATCH:], bits, given.rounds, given.folder
            )
            threads = f"1 for a single query, {cores()} for a batch"
            measured = about(
                "faiss-cpu", "usearch", "numpy", threads=threads, repetitions=given.rounds
            )
            sets = [one for one in sets if {**one, **what} != one] + [
                {**what, **found, "run": measured}
            ]
            keep(
                "index_speed",
                {"sets": sorted(sets, key=lambda one: (one["codes"], one["bits"]))},
                given.small,
            )


if __name__ == "__main__":
    run(main)

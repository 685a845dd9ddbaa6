"""Searching codes: the back ends beside faiss and usearch, exactness checked for every query.

    python benchmarks/index_speed.py [--quick] [--rounds 3] [--codes FILE.npy --bits 128 [--queries FILE.npy]]

Codes are synthetic and clustered (benchmarks/index_codes.py), or those of a real model from a file. In a round each
method answers the same queries, one by one and in a batch, and ratios are taken within a round. For single queries
faiss gets one thread, which is faster for it than two. Approximate methods have their recall beside: the share of hits
that are as near as the true ones.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import faiss
import numpy as np

from common import keep, machine, run
from index_codes import Codes, changed, clustered
from parabit.index.backends import BACKENDS, Backend, Hashing, choose
from parabit.parallel import cores

BATCH, ALONE = 256, 30  # queries in a batch, and asked one by one
SIZES = [100_000, 1_000_000, 5_000_000, 10_000_000]
GRAPHS_UP_TO = 1_000_000  # codes; the graphs of HNSW take minutes to build for more
EXACT = ("flat", "hashing")
PEER = "faiss flat"


class Ask(NamedTuple):
    """What is asked: all within a radius, or the k nearest."""

    k: int | None = None
    radius: int | None = None

    @property
    def name(self) -> str:
        return f"top {self.k}" if self.radius is None else f"radius {self.radius}"


Search = Callable[[Codes, Ask], Any]


def ours(backend: Backend) -> Search:
    """A back end of parabit's."""
    return lambda queries, ask: backend.search(queries, ask.k, ask.radius)


def of_faiss(index: Any) -> Search:
    """An index of faiss's, whose radius is not included."""

    def search(queries: Codes, ask: Ask) -> Any:
        faiss.omp_set_num_threads(min(len(queries), cores()))
        if ask.radius is None:
            return index.search(queries, ask.k)
        return index.range_search(queries, ask.radius + 1)

    return search


class Method(NamedTuple):
    """A way to search, ready to be timed."""

    search: Search
    seconds: float  # to build
    bytes_a_code: float  # beside the codes, for what keeps no copy of its own
    distances: Callable[[Any], Any] | None = None  # of the k nearest, where the method is approximate


def build_ours(name: str, codes: Codes, bits: int) -> tuple[Method, Backend]:
    """One of our back ends."""
    start = time.perf_counter()
    arrays = BACKENDS[name].build(codes, bits)
    seconds = time.perf_counter() - start
    held = sum(array.nbytes for array in arrays.values()) / len(codes)
    backend = BACKENDS[name](codes, bits, arrays)
    return Method(ours(backend), seconds, held), backend


def build_peers(codes: Codes, graphs: bool) -> dict[str, Method]:
    """The peers, each built as its makers advise."""
    wide, peers = codes.shape[1] * 8, {}

    def add(name: str, index: Any, train: bool = False) -> None:
        faiss.omp_set_num_threads(cores())
        start = time.perf_counter()
        if train:
            index.train(np.ascontiguousarray(codes[:: max(1, len(codes) // 100_000)]))
        index.add(codes)
        seconds = time.perf_counter() - start
        # The codes, and in lists an id of 8 bytes each; a graph is measured.
        held = {PEER: wide / 8, "faiss IVF": wide / 8 + 8}.get(name)
        if held is None:
            held = faiss.serialize_index_binary(index).nbytes / len(codes)
        distances = None if name == PEER else (lambda found: found[0])
        peers[name] = Method(of_faiss(index), seconds, held, distances)

    add(PEER, faiss.IndexBinaryFlat(wide))
    inverted = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(wide), wide, int(min(2048, 4 * len(codes) ** 0.5)))
    inverted.nprobe = 8
    add("faiss IVF", inverted, train=True)
    if graphs:
        graph = faiss.IndexBinaryHNSW(wide, 16)
        graph.hnsw.efSearch = 64
        add("faiss HNSW", graph)
        from usearch.index import Index

        other = Index(ndim=wide, metric="hamming", dtype="b1")
        start = time.perf_counter()
        other.add(np.arange(len(codes)), codes, threads=cores())
        peers["usearch"] = Method(
            lambda queries, ask: other.search(queries, ask.k, threads=min(len(queries), cores())),
            time.perf_counter() - start,
            other.memory_usage / len(codes),
            lambda found: np.reshape(found.distances, (-1, 10)),
        )
    return peers


def check(methods: dict[str, Method], queries: Codes, ask: Ask) -> dict[str, float]:
    """Compare exact methods with the scan, row by row; the recall of the others."""
    true = methods[PEER].search(queries, ask)
    recalls: dict[str, float] = {}
    for name, method in methods.items():
        if name == PEER or (ask.radius is not None and method.distances):
            continue
        found = method.search(queries, ask)
        if method.distances:
            there = method.distances(found)
            recalls[name] = round(float(((there >= 0) & (there <= true[0][:, -1:])).mean()), 3)
        elif ask.radius is None:
            assert np.array_equal(found.rows, true[1].ravel()), f"{name}: not the rows of the scan"
            assert np.array_equal(found.distances, true[0].ravel()), f"{name}: not the distances of the scan"
        else:
            limits, distances, rows = (np.asarray(array) for array in true)
            order = np.lexsort((rows, distances, np.repeat(np.arange(len(queries)), np.diff(limits.astype(int)))))
            assert np.array_equal(found.offsets, limits), f"{name}: not as many as the scan"
            assert np.array_equal(found.rows, rows[order]), f"{name}: not the rows of the scan"
    return recalls


def timed(search: Search, queries: Codes, ask: Ask, alone: bool) -> float:
    """Milliseconds per query."""
    if not alone:
        start = time.perf_counter()
        search(queries, ask)
        return (time.perf_counter() - start) / len(queries) * 1e3
    taken = []
    for query in queries[:ALONE]:
        start = time.perf_counter()
        search(query[None], ask)
        taken.append(time.perf_counter() - start)
    return median(taken) * 1e3


def rows_of(
    methods: dict[str, Method], codes: Codes, bits: int, queries: Codes, ask: Ask, rounds: int, what: str
) -> list[dict[str, Any]]:
    """The table's rows for one question: single queries, and a batch."""
    recalls, rows = check(methods, queries, ask), []
    able = {name: method for name, method in methods.items() if ask.radius is None or not method.distances}
    for alone in (True, False):
        times: dict[str, list[float]] = {name: [] for name in able}
        for _ in range(rounds):
            for name, method in able.items():
                times[name].append(timed(method.search, queries, ask, alone))
        faster = {
            name: round(median(peer / own for peer, own in zip(times[PEER], taken, strict=True)), 2)
            for name, taken in times.items()
        }
        auto = choose(len(codes), bits, ask.k, ask.radius, 1 if alone else len(queries))
        built = {name: faster[name] for name in EXACT if name in faster}
        row = {
            "codes": len(codes),
            "bits": bits,
            "what": what,
            "ask": ask.name,
            "queries": 1 if alone else len(queries),
            "milliseconds": {name: round(median(taken), 4) for name, taken in times.items()},
            "times_as_fast_as_faiss_flat": faster,
            "recall": recalls,
            "auto": auto,
            "auto_slower_than_best": round(max(built.values()) / built[auto], 2) if auto in built else None,
        }
        rows.append(row)
        summary = ", ".join(f"{name} {row['milliseconds'][name]:.3f} (x{faster[name]:.1f})" for name in able)
        print(
            f"{len(codes):>10,} {bits:>3} bits {ask.name:>9} {row['queries']:>3} at a time: {summary}; auto: {auto}"
            f" ({row['auto_slower_than_best']})",
            flush=True,
        )
    return rows


def by_distance(hashing: Backend, flat: Search, bits: int, queries: Codes, rounds: int) -> list[dict[str, Any]]:
    """How much faster multi-index hashing is than the scan, by the distance of the tenth hit."""
    tenth, rows = hashing.search(queries, 10).distances[9::10], []
    for low in range(0, 40, 3):
        some = queries[(tenth >= low) & (tenth < low + 3)][:64]
        if len(some) < 16:
            continue
        summary: dict[str, Any] = {"tenth_from": low, "tenth_to": low + 2, "queries": len(some)}
        for alone in (True, False):
            pairs = [
                (timed(flat, some, Ask(k=10), alone), timed(ours(hashing), some, Ask(k=10), alone))
                for _ in range(rounds)
            ]
            summary["alone" if alone else "batch"] = round(median(peer / own for peer, own in pairs), 2)
        print(f"tenth hit at {low} to {low + 2}: {summary['alone']} times as fast alone, {summary['batch']} in a batch")
        rows.append(summary)
    return rows


def work(backend: Hashing, queries: Codes, ask: Ask) -> dict[str, float]:
    """The floor: what a search reads, and what reading so much costs when nothing else is done."""
    counted = {"look_ups": 0, "candidates": 0}
    take, measure = Hashing._take, Hashing._measure

    def counting_take(self: Hashing, values: Any, needed: Any, ring: int, stop: int) -> Any:
        keys = self._keys_in[[ring * self.substrings, stop * self.substrings]]
        counted["look_ups"] += len(values) * int(keys[1] - keys[0])
        return take(self, values, needed, ring, stop)

    def counting_measure(self: Hashing, words: Any, starts: Any, counts: Any, *rest: Any) -> Any:
        counted["candidates"] += int(counts.sum())
        return measure(self, words, starts, counts, *rest)

    Hashing._take, Hashing._measure = counting_take, counting_measure  # type: ignore[method-assign]
    try:
        ours(backend)(queries, ask)
    finally:
        Hashing._take, Hashing._measure = take, measure  # type: ignore[method-assign]
    places = np.random.default_rng(0).integers(0, len(backend.starts), 1 << 20)
    start = time.perf_counter()
    backend.starts.take(places)
    read = (time.perf_counter() - start) / len(places)
    reads = {name: number / len(queries) for name, number in counted.items()}
    floor = (reads["look_ups"] + 2 * reads["candidates"]) * read
    return {name: round(number, 1) for name, number in reads.items()} | {
        "nanoseconds_a_random_read": round(read * 1e9, 1),
        "floor_milliseconds_one_core": round(floor * 1e3, 4),
    }


def one_size(
    codes: Codes, bits: int, queries: Codes, asks: list[Ask], rounds: int, graphs: bool, what: str
) -> dict[str, Any]:
    """Everything about one set of codes."""
    methods = build_peers(codes, graphs)
    backends: dict[str, Backend] = {}
    for name in EXACT:
        methods[name], backends[name] = build_ours(name, codes, bits)
    rows = [row for ask in asks for row in rows_of(methods, codes, bits, queries, ask, rounds, what)]
    summary: dict[str, Any] = {
        "codes": len(codes),
        "bits": bits,
        "what": what,
        "rows": rows,
        "build_seconds": {name: round(method.seconds, 2) for name, method in methods.items()},
        "bytes_a_code": {name: round(method.bytes_a_code, 1) for name, method in methods.items()},
        "scan_reads_megabytes": round(codes.nbytes / 1e6, 1),
    }
    hashing = backends["hashing"]
    assert isinstance(hashing, Hashing)
    summary["work"] = {ask.name: work(hashing, queries, ask) for ask in asks}
    print(f"  built in {summary['build_seconds']} s, bytes per code {summary['bytes_a_code']}")
    if bits > 64 and len(codes) >= 1_000_000:
        wide = np.concatenate([changed(codes, bits, 600, most, seed=3) for most in (0.1, 0.3)])
        summary["by_distance"] = by_distance(hashing, methods[PEER].search, bits, wide, rounds)
    return summary


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes alone; nothing is kept")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of synthetic codes; kept under a name of its own")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--codes", metavar="FILE", help="packed codes of a real model, .npy, in place of synthetic ones"
    )
    parser.add_argument(
        "--queries", metavar="FILE", help="codes to ask with; else some of the codes, which are left out"
    )
    parser.add_argument("--bits", type=int, default=128, help="of the codes in the file")
    options = parser.parse_args()
    summary = []
    name = "index_speed"
    if options.codes:
        name = f"index_speed_real_{options.bits}"
        codes = np.load(options.codes)
        if options.queries:
            queries = np.load(options.queries)[:BATCH]
        else:
            held = np.random.default_rng(0).choice(len(codes), BATCH, replace=False)
            queries, codes = codes[held], np.delete(codes, held, axis=0)
        asks = [Ask(k=10), Ask(radius=2)]
        graphs = len(codes) <= GRAPHS_UP_TO
        summary.append(one_size(codes, options.bits, queries, asks, options.rounds, graphs, "a real model"))
    else:
        sizes = options.sizes or ([20_000, 100_000] if options.quick else SIZES)
        for bits, asks in ((28, [Ask(radius=2), Ask(k=10)]), (128, [Ask(k=10), Ask(radius=8)])):
            largest, draw = clustered(sizes[-1], bits)
            queries = np.concatenate([draw(BATCH // 2), changed(largest, bits, BATCH // 2, 0.1)])
            for count in sizes:
                codes = largest[:count]
                # Most 28-bit codes have dozens of equals: graphs find few of their neighbours, and slowly.
                graphs = count <= (GRAPHS_UP_TO if bits > 64 else 100_000) and not options.sizes
                summary.append(one_size(codes, bits, queries, asks, options.rounds, graphs, "clustered"))
        if options.sizes:
            name += "_" + "_".join(str(count) for count in sizes)
    if options.quick:
        return
    keep(
        name,
        {
            "command": "python benchmarks/index_speed.py"
            + (" --codes FILE" if options.codes else "")
            + (f" --sizes {' '.join(map(str, options.sizes))} --rounds {options.rounds}" if options.sizes else ""),
            "machine": machine("numpy", "faiss-cpu", "usearch"),
            "sizes": summary,
        },
    )


if __name__ == "__main__":
    run(main)

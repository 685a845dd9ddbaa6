"""How long an epoch takes beside what the machine can do at most, and as everything grows: a part of train_speed.py.

The floor of an epoch is what its steps cannot do without. A step of B documents with E distinct words in all, their
neighbours' among them, and S sampled words touches T rows of the word matrix; a row has H hidden units, D bits and one:

    bytes    = 16 T H + 16 B D + 8 E     parameters and AdaGrad's squares read and written; word ids and counts read
    products = 2 H (3 B S + 2 E)         logits and two gradients, and the two sparse products of the documents' words
    seconds  = bytes / bandwidth + products / rate

with the bandwidth of a large copy and the rate of a large matrix product. It leaves out drawing, sorting and
exponentials; and a cache that holds the word matrix would be faster than the memory of the copy.

The growth table varies one thing at a time, without neighbours: the median of three epochs' steps after a first one.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array

from parabit.networks import Documents, WordStatistics
from parabit.networks.recipe import preset
from parabit.networks.shape import choose_shape
from parabit.networks.training import Training
from parabit.progress import Progress

BITS = 128
TIMED_EPOCHS = 4  # the first does not count: in it all memory is touched for the first time
GROWTH: dict[str, dict[str, dict[str, int]]] = {  # what is varied, and how; an empty one is the same in all
    "documents": {"1/4": {"every": 4}, "1/2": {"every": 2}, "1": {}},
    "min_count": {"1": {}, "2": {"min_count": 2}, "5": {"min_count": 5}, "10": {"min_count": 10}},
    "bits": {"32": {"bits": 32}, "64": {"bits": 64}, "128": {}, "256": {"bits": 256}},
    "samples": {"256": {"samples": 256}, "1024": {}, "4096": {"samples": 4096}},
}


class Counted(NamedTuple):
    """A corpus as counts: what training reads."""

    documents: Documents
    statistics: WordStatistics

    def part(self, every: int = 1, min_count: int = 1) -> "Counted":
        """Every so-many-th document, and of its words those that are frequent enough in the whole corpus."""
        bags, known = self
        words = int((known.counts >= min_count).sum())  # the most frequent have the lowest numbers
        shape = (len(bags), len(known.counts))
        matrix = csr_array((bags.counts, bags.features, bags.feature_offsets), shape=shape)[::every, :words]
        return Counted(
            Documents.of_counts(matrix.indices, matrix.data, matrix.indptr.astype(np.int64)),
            WordStatistics(known.counts[:words], known.document_frequencies[:words], known.documents),
        )


class EpochClock:
    """A report that notes when an epoch's steps end, and when the epoch does, its completion scored."""

    def __init__(self) -> None:
        self._stepped: dict[int, float] = {}
        self._ended: dict[int, float] = {}

    def __call__(self, progress: Progress) -> None:
        done = (progress.share or 0.0) * TIMED_EPOCHS
        if progress.stage == "training" and abs(done - round(done)) < 1e-9:
            self._ended[round(done)] = time.perf_counter()  # told twice: after the last step, and after the epoch
            self._stepped.setdefault(round(done), self._ended[round(done)])

    def medians(self) -> tuple[float, float]:
        """Seconds of an epoch's steps, and of all that an epoch does."""
        epochs = list(pairwise(self._ended))
        steps = median(self._stepped[after] - self._ended[before] for before, after in epochs)
        return steps, median(self._ended[after] - self._ended[before] for before, after in epochs)


def time_epochs(
    corpus: Counted, scratch: Path, bits: int = BITS, **changes: int | None
) -> tuple[Training, float, float]:
    """A training that has run, and the seconds of an epoch's steps and of a whole epoch."""
    clock, shape = EpochClock(), choose_shape(bits=bits)
    recipe = preset("default", shape, epochs=TIMED_EPOCHS, patience=0, **changes)
    training = Training(*corpus, shape, recipe, scratch, 0, "cpu", None, clock)
    training.run()
    return training, *clock.medians()


def beside_floor(corpus: Counted, scratch: Path) -> dict[str, float]:
    """Seconds of an epoch of the default recipe, and those that this machine needs at least."""
    training, seconds, whole = time_epochs(corpus, scratch)
    steps = training.table.plan(training.trained, 0, 0)
    prepared = training.table.prepare(steps, training.sampler, torch.Generator().manual_seed(0))
    rows = sum(len(batch.touched.ids) for _, batch in prepared)
    entries = sum(len(batch.weights) for _, batch in prepared)
    documents, hidden = len(training.trained), training.shape.hidden
    moved = 16 * rows * hidden + 16 * documents * training.shape.dim + 8 * entries
    products = 2 * hidden * (3 * documents * training.sampler.size + 2 * entries)
    bandwidth, rate = _bandwidth(), _product_rate()
    return {
        "seconds": round(whole, 3),
        "seconds_of_steps": round(seconds, 3),
        "steps": len(steps),
        "rows_in_a_step": round(rows / len(steps)),
        "words_in_a_step": round(entries / len(steps)),
        "megabytes": round(moved / 1e6),
        "gigaflop": round(products / 1e9, 1),
        "bandwidth_gb_per_second": round(bandwidth / 1e9, 1),
        "gigaflop_per_second": round(rate / 1e9, 1),
        "floor_seconds_of_bytes": round(moved / bandwidth, 3),
        "floor_seconds_of_products": round(products / rate, 3),
        "floor_seconds": round(moved / bandwidth + products / rate, 3),
    }


def growth(corpus: Counted, scratch: Path) -> dict[str, list[dict[str, Any]]]:
    """Seconds of an epoch's steps as one thing after the other is varied."""
    _, same, _ = time_epochs(corpus, scratch, neighbours=0)
    table: dict[str, list[dict[str, Any]]] = {}
    for what, settings in GROWTH.items():
        table[what] = []
        for value, changes in settings.items():
            options = dict(changes)
            part = corpus.part(options.pop("every", 1), options.pop("min_count", 1))
            seconds = time_epochs(part, scratch, neighbours=0, **options)[1] if changes else same
            sizes = {"documents": len(part.documents), "words": len(part.statistics.counts)}
            table[what].append({"value": value, **sizes, "seconds": round(seconds, 3)})
    return table


def _bandwidth() -> float:
    """Bytes a second that a large copy reads and writes."""
    source = torch.ones(1 << 26)
    target = torch.empty_like(source)
    return 2 * source.nbytes / _least_seconds(lambda: target.copy_(source))


def _product_rate() -> float:
    """Operations a second of a large matrix product."""
    square = torch.ones(2048, 2048)
    return 2 * len(square) ** 3 / _least_seconds(lambda: square @ square)


def _least_seconds(work: Callable[[], Any]) -> float:
    """Of ten times; the first, in which memory is touched for the first time, is never the least."""
    seconds = []
    for _ in range(10):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)

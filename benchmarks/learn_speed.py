"""How long the closed form takes on 20 Newsgroups, from bags to encoder, beside gensim's 20 epochs in the same run.

    PARABIT_DATA=FOLDER python benchmarks/learn_speed.py

Three rounds, parabit and gensim in turn; the ratio is within a round. gensim's Doc2Vec is PV-DBOW with 128 floats,
`sample=1e-4`, two workers, on the same words as lists of strings. Each step of the closed form stands beside its
floor: the time of the library calls that it cannot do without, on data of the same size.
"""

import time
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
from gensim.models.doc2vec import Doc2Vec, TaggedDocument
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from common import keep, machine, run
from parabit import Tokenizer, open_corpus
from parabit.model.closed_form import DIMENSIONS, default_levels
from parabit.model.learning import learn_from_counts
from parabit.progress import Progress
from parabit.text import count_bags, inverse_frequencies, tf_idf_rows

ROUNDS, BITS, EPOCHS = 3, 128, 20


def timed(work: Callable[[], Any]) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def steps_of(counts: csr_array) -> dict[str, float]:
    """Seconds of each step of the closed form."""
    seconds: dict[str, float] = {}
    last = ["weighting words", time.perf_counter()]

    def report(progress: Progress) -> None:
        now = time.perf_counter()
        seconds[str(last[0])] = now - float(last[1])
        last[:] = [progress.stage, now]

    learn_from_counts(counts, [default_levels(BITS)], report=report)
    report(Progress("", 0, "", None))
    return seconds


def floors_of(counts: csr_array) -> dict[str, float]:
    """The seconds of bare library calls."""
    kept = np.bincount(counts.indices, minlength=counts.shape[1]) > 1
    counts = counts[:, np.flatnonzero(kept)]
    idf = inverse_frequencies(np.bincount(counts.indices, minlength=counts.shape[1]), counts.shape[0])
    rows = tf_idf_rows(counts.indices, counts.data, counts.indptr, idf)
    columns, rng = rows.T.tocsr(), np.random.default_rng(0)
    wide = rng.standard_normal((rows.shape[0], DIMENSIONS + 10), dtype=np.float32)
    narrow = rng.standard_normal((rows.shape[0], BITS), dtype=np.float32)
    vectors = np.ascontiguousarray(wide[:, :DIMENSIONS])
    index = faiss.IndexFlatIP(DIMENSIONS)
    index.add(vectors)

    def products(times: int, dense: np.ndarray[Any, Any]) -> float:
        return timed(lambda: [rows @ (columns @ dense) for _ in range(times)])

    with threadpool_limits(1):
        return {
            "latent semantic analysis": products(3, wide),
            "finding neighbours": timed(lambda: index.search(vectors, 31)),
            "finding neighbours again": timed(lambda: index.search(vectors[:, :].copy(), 31)),
            "learning the encoder": products(6, narrow),
        }


def main() -> None:
    """Measure, print the table, keep the result."""
    texts = [document.text for document in open_corpus("20newsgroups/train")]
    vocabulary, bags = count_bags(texts)
    counts = bags.matrix(len(vocabulary))
    words = Tokenizer().content_words
    tagged = [TaggedDocument(words(text), [number]) for number, text in enumerate(texts)]
    rounds, steps = [], []
    for number in range(ROUNDS):
        steps.append(steps_of(counts))
        ours = sum(steps[-1].values())
        theirs = timed(
            lambda: Doc2Vec(tagged, dm=0, vector_size=BITS, epochs=EPOCHS, negative=5, sample=1e-4, seed=0, workers=2)
        )
        rounds.append({"closed form": round(ours, 2), "gensim": round(theirs, 2), "ratio": round(ours / theirs, 3)})
        print(f"round {number + 1}: {rounds[-1]}", flush=True)
    floors = floors_of(counts)
    table = {
        step: {
            "seconds": round(float(np.median([one[step] for one in steps])), 2),
            "floor": round(floors[step], 2) if step in floors else None,
        }
        for step in steps[0]
    }
    for step, row in table.items():
        print(f"{step:28} {row['seconds']:6.2f} s   floor {row['floor']}")
    ratio = float(np.median([one["ratio"] for one in rounds]))
    print(f"the closed form takes {ratio:.3f} of the time of gensim's {EPOCHS} epochs")
    keep(
        "learn_speed",
        {
            "machine": machine("numpy", "scipy", "faiss-cpu", "gensim"),
            "documents": len(texts),
            "words": len(vocabulary),
            "bits": BITS,
            "rounds": rounds,
            "ratio": ratio,
            "steps": table,
        },
    )


if __name__ == "__main__":
    run(main)

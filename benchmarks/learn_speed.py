"""How long learning and encoding take, beside gensim's Doc2Vec, and what a million documents take.

    PARABIT_DATA=FOLDER python benchmarks/learn_speed.py [--only learning encoding million]

**Learning**: 20 Newsgroups, 128 bits, from bags to encoder. Three rounds, parabit and gensim in turn; the ratio is
within a round. gensim's Doc2Vec is PV-DBOW with 128 floats, `sample=1e-4` and 20 epochs on the same words, read from a
file as its documentation advises for speed, with the number of workers that was fastest for one epoch. Each step of the
closed form stands beside its floor: the time of the library calls that it cannot do without, on data of the same size.

**Encoding**: the test posts, from text to codes, and one text alone; gensim's `infer_vector` has 1,000 of them.

**A million**: abstracts as JSON lines on disk (benchmarks/common.py), read and learned from in a fresh process.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from common import about, abstracts, apart, keep, kept, options, peak_mb, run, seconds, write_lines
from parabit import ParagraphVectors, Tokenizer, open_corpus
from parabit.parallel import cores
from parabit.progress import Progress

ROUNDS, BITS, EPOCHS, WORKERS = 3, 128, 20, (1, 2, 3, 4)
QUERY = "the shuttle crew repaired the Hubble telescope in orbit"


def steps_of(counts: csr_array) -> dict[str, float]:
    """Seconds of each step of the closed form."""
    from parabit.model.closed_form import default_levels, learn_from_counts

    taken: dict[str, float] = {}
    last = ["weighting words", time.perf_counter()]

    def report(progress: Progress) -> None:
        now = time.perf_counter()
        taken[str(last[0])] = now - float(last[1])
        last[:] = [progress.stage, now]

    learn_from_counts(counts, [default_levels(BITS)], report=report)
    report(Progress("", 0, "", None))
    return taken


def floors_of(counts: csr_array) -> dict[str, float]:
    """The seconds of bare library calls."""
    import faiss

    from parabit.model.closed_form import DIMENSIONS
    from parabit.text.bags import inverse_frequencies, tf_idf_rows

    counts = counts[:, np.flatnonzero(np.bincount(counts.indices, minlength=counts.shape[1]) > 1)]
    idf = inverse_frequencies(
        np.bincount(counts.indices, minlength=counts.shape[1]), counts.shape[0]
    )
    rows = tf_idf_rows(counts, idf)
    columns, rng = rows.T.tocsr(), np.random.default_rng(0)
    wide = rng.standard_normal((rows.shape[0], DIMENSIONS + 10), dtype=np.float32)
    narrow = np.ascontiguousarray(wide[:, :BITS])
    vectors = np.ascontiguousarray(wide[:, :DIMENSIONS])
    index = faiss.IndexFlatIP(DIMENSIONS)
    index.add(vectors)

    def products(times: int, dense: np.ndarray[Any, Any]) -> float:
        return seconds(lambda: [rows @ (columns @ dense) for _ in range(times)])

    with threadpool_limits(1):
        return {
            "latent semantic analysis": products(3, wide),
            "finding neighbours": seconds(lambda: index.search(vectors, 31)),
            "finding neighbours again": seconds(lambda: index.search(vectors, 31)),
            "learning the encoder": products(6, narrow),
        }


def doc2vec(path: Path, workers: int, epochs: int = EPOCHS) -> Any:
    """gensim's model of a file with one document per line."""
    from gensim.models.doc2vec import Doc2Vec

    return Doc2Vec(
        corpus_file=str(path),
        dm=0,
        vector_size=BITS,
        epochs=epochs,
        negative=5,
        sample=1e-4,
        seed=0,
        workers=workers,
    )


def learning(texts: list[str], folder: Path) -> dict[str, Any]:
    """The closed form and gensim in turn."""
    from parabit.text import count_bags

    vocabulary, bags = count_bags(texts)
    counts = bags.matrix(len(vocabulary))
    path, words = folder / "words.txt", Tokenizer().content_words
    path.write_text("".join(" ".join(words(text)) + "\n" for text in texts))
    workers = min(WORKERS, key=lambda number: seconds(lambda: doc2vec(path, number, epochs=1)))
    rounds, steps = [], []
    for number in range(ROUNDS):
        steps.append(steps_of(counts))
        own, other = sum(steps[-1].values()), seconds(lambda: doc2vec(path, workers))
        rounds.append(
            {
                "closed form": round(own, 2),
                "gensim": round(other, 2),
                "ratio": round(own / other, 3),
            }
        )
        print(f"round {number + 1}: {rounds[-1]}", flush=True)
    floors = floors_of(counts)
    return {
        "documents": len(texts),
        "words": len(vocabulary),
        "gensim": f"PV-DBOW, {BITS} floats, {EPOCHS} epochs, sample 1e-4, {workers} workers",
        "rounds": rounds,
        "ratio": float(np.median([one["ratio"] for one in rounds])),
        "steps": {
            step: {
                "seconds": round(float(np.median([one[step] for one in steps])), 2),
                "floor": round(floors[step], 2) if step in floors else None,
            }
            for step in steps[0]
        },
        "run": about("numpy", "scipy", "faiss-cpu", "gensim", threads=cores(), repetitions=ROUNDS),
    }


def encoding(texts: list[str], tested: list[str], folder: Path) -> dict[str, Any]:
    """Documents per second, and one text alone."""
    model = ParagraphVectors(BITS).fit(texts)
    encoder = model.encoder_
    words = Tokenizer().content_words
    path = folder / "learned.txt"
    path.write_text("".join(" ".join(words(text)) + "\n" for text in texts))
    peer, few = (
        doc2vec(path, cores(), epochs=2),
        [words(text) for text in tested[:1000]],
    )  # epochs do not matter here
    peer.epochs = EPOCHS
    model.transform(tested[:500])
    rounds = []
    for _ in range(ROUNDS):
        own = len(tested) / seconds(lambda: model.transform(tested))
        alone = np.median([seconds(lambda: encoder.infer([QUERY])) for _ in range(2000)])
        other = len(few) / seconds(lambda: [peer.infer_vector(text) for text in few])
        rounds.append(
            {
                "parabit": own,
                "one text, ms": 1e3 * float(alone),
                "gensim": other,
                "ratio": own / other,
            }
        )
    medians = {name: float(np.median([one[name] for one in rounds])) for name in rounds[0]}
    return {
        "documents": len(tested),
        "documents_per_second": round(medians["parabit"]),
        "gensim_documents_per_second": round(medians["gensim"]),
        "ratio_to_gensim": round(medians["ratio"], 1),
        "ms_per_text": round(medians["one text, ms"], 4),
        "run": about(
            "numpy",
            "scipy",
            "polars",
            "gensim",
            threads={"parabit": cores(), "gensim": 1},
            repetitions=ROUNDS,
        ),
    }


def learn(path: Path, output: Path) -> dict[str, Any]:
    """Learn and save a model in this process."""
    stages: dict[str, float] = {}
    last = start = time.perf_counter()

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.perf_counter()
        stages[progress.stage] = stages.get(progress.stage, 0.0) + now - last
        last = now

    model = ParagraphVectors(BITS).fit(open_corpus(path), report=report)
    model.save(output)
    whole = time.perf_counter() - start
    reading = stages.get(
        "reading", 0.0
    )  # the first report of each later stage comes when the one before has ended
    return {
        **model.encoder_.config["training"],
        "reading_seconds": round(reading, 1),
        "learning_seconds": round(whole - reading, 1),
        "peak_mb": peak_mb(),
        "model_mb": round(sum(path.stat().st_size for path in output.iterdir()) / 1e6, 1),
    }


def million(count: int, folder: Path) -> dict[str, Any]:
    """From files to the saved model."""
    path = folder / "documents.jsonl"
    write_lines(path, abstracts(count))
    found: dict[str, Any] = apart(learn, path, folder / "model")
    measured = about("numpy", "scipy", "polars", threads=cores(), repetitions=1)
    return {"text_mb": round(path.stat().st_size / 1e6), **found, "run": measured}


def main() -> None:
    """Measure all parts or some, and keep each when it is done."""
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", choices=["learning", "encoding", "million"])
    given = parser.parse_args()
    few = 300 if given.small else None
    train, test = (
        [one.text for one in open_corpus(f"20newsgroups/{part}")][:few]
        for part in ("train", "test")
    )
    with tempfile.TemporaryDirectory() as name:
        parts: dict[str, Callable[[], dict[str, Any]]] = {
            "learning": lambda: learning(train, Path(name)),
            "encoding": lambda: encoding(train, test, Path(name)),
            "million": lambda: million(2_000 if given.small else 1_000_000, Path(name)),
        }
        for part in given.only or parts:
            keep("learn_speed", {**kept("learn_speed"), part: parts[part]()}, given.small)


if __name__ == "__main__":
    run(main)

"""Encoding new documents beside gensim's infer_vector, from text to codes, with one core and with all.

    python benchmarks/encode_speed.py [--rounds 3]

Both models are trained on the training posts of 20 Newsgroups without headers and see the test posts as text. gensim's
words are cut by a regular expression and inferred with as many epochs as it was trained with. parabit's `transform` is
timed whole, in a process of its own for each number of cores, and so are its parts: cutting and counting words, and
the sparse product. The floor of the product is reading a row of the encoder for each word of each document at the
memory's speed.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from common import keep, machine, run

BITS, EPOCHS = 128, 20
SAMPLED = 300  # posts that gensim infers
REPEATED = 4  # times that parabit encodes the test posts in a round


def measure(model_folder: str, rounds: int) -> None:
    """In a process of its own: the rates on the cores that it has, as JSON."""
    import numpy as np

    from parabit import ParagraphVectors, open_corpus
    from parabit.text import batch_bags

    model = ParagraphVectors.load(model_folder)
    texts = [post.text for post in open_corpus("20newsgroups/test")] * REPEATED
    model.transform(texts[:500])

    def rate(work: Any) -> float:
        taken = []
        for _ in range(rounds):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
        return len(texts) / median(taken)

    tokenizer, vocabulary = model.vocabulary_.tokenizer, model.vocabulary_
    bags = batch_bags(tokenizer.tokenize(texts), vocabulary)
    offsets = np.concatenate([[0], np.cumsum(bags.feature_lengths)])
    encoder = model._fast
    assert encoder is not None
    source, target = np.ones(1 << 26, dtype=np.float32), np.zeros(1 << 26, dtype=np.float32)
    target += 1  # its pages are there before the clock starts
    start = time.perf_counter()
    np.copyto(target, source)
    bandwidth = 2 * source.nbytes / (time.perf_counter() - start)
    entries = len(bags.features) / len(texts)
    print(
        json.dumps(
            {
                "documents_per_second": round(rate(lambda: model.transform(texts))),
                "words_alone": round(rate(lambda: batch_bags(tokenizer.tokenize(texts), vocabulary))),
                "product_alone": round(rate(lambda: encoder.embed(bags.features, bags.counts, offsets))),
                "product_floor": round(bandwidth / (entries * BITS * 4)),
                "words_a_document": round(entries, 1),
                "copy_gb_per_second": round(bandwidth / 1e9, 1),
            }
        )
    )


def on_cores(count: int, folder: Path, rounds: int) -> dict[str, Any]:
    """The rates with so many cores."""
    mine = sorted(os.sched_getaffinity(0))[:count]
    told = subprocess.run(
        [sys.executable, __file__, "--measure", str(folder), "--rounds", str(rounds)],
        env={**os.environ, "POLARS_MAX_THREADS": str(count), "OMP_NUM_THREADS": str(count)},
        preexec_fn=lambda: os.sched_setaffinity(0, mine),
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(told.stdout)
    return result


def gensim_rate() -> float:
    """Posts a second from text to vector."""
    from gensim.models.doc2vec import Doc2Vec, TaggedDocument

    from parabit import open_corpus
    from parabit.parallel import cores
    from parabit.text import read_stop_words

    stop, word = read_stop_words("english"), re.compile("[a-z]+")

    def cut(text: str) -> list[str]:
        return [found for found in word.findall(text.lower()) if 2 <= len(found) <= 15 and found not in stop]

    posts = [TaggedDocument(cut(post.text), [place]) for place, post in enumerate(open_corpus("20newsgroups/train"))]
    model = Doc2Vec(posts, vector_size=BITS, dm=0, min_count=1, epochs=EPOCHS, workers=cores(), seed=0)
    texts = [post.text for post in open_corpus("20newsgroups/test")][:: 7532 // SAMPLED]
    start = time.perf_counter()
    for text in texts:
        model.infer_vector(cut(text))
    return len(texts) / (time.perf_counter() - start)


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", metavar="MODEL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.measure, options.rounds)
    from parabit import ParagraphVectors, open_corpus
    from parabit.parallel import cores

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "model")
        # How long it was trained does not change how fast it encodes.
        ParagraphVectors(BITS, epochs=2).fit(open_corpus("20newsgroups/train")).save(folder, slim=True)
        peer = gensim_rate()
        rates = {count: on_cores(count, folder, options.rounds) for count in sorted({1, cores()})}
    print(f"gensim infer_vector: {peer:,.0f} posts a second")
    for count, told in rates.items():
        ratio = told["documents_per_second"] / peer
        print(f"parabit, {count} cores: {told['documents_per_second']:,} posts a second, {ratio:.0f} times gensim's")
        print(f"  {told}")
    keep(
        "encode_speed",
        {
            "command": "python benchmarks/encode_speed.py",
            "machine": machine("numpy", "scipy", "polars", "gensim"),
            "gensim_documents_per_second": round(peer, 1),
            "parabit": {str(count): told for count, told in rates.items()},
            "times_gensim": {
                str(count): round(told["documents_per_second"] / peer, 1) for count, told in rates.items()
            },
        },
    )
    return None


if __name__ == "__main__":
    run(main)

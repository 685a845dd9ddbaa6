"""Documents a second from text to bags, beside scikit-learn's CountVectorizer over the same posts.

    python benchmarks/text_speed.py [--rounds 7]

Each round runs everything once, one after the other, so that a busy moment of the machine hits all alike; a ratio is
taken within a round, and the median over the rounds is reported with the smallest and the largest.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
from sklearn.feature_extraction.text import CountVectorizer

from common import keep, machine, run
from parabit import Tokenizer, VocabularyRule, build_bags, open_corpus, write_bags
from parabit.corpus.document import as_corpus
from parabit.parallel import ordered_map

PATTERN = "[a-z]+"


def cut_words(texts: list[str]) -> None:
    """The floor: lower-casing the text and cutting words out of it, all that any tokenizer with a regex must do."""

    def cut(batch: list[Any]) -> int:
        series = pl.Series([document.text for document in batch])
        return series.str.to_lowercase().str.extract_all(PATTERN).list.len().sum()

    sum(ordered_map(cut, as_corpus(texts).batches()))


def one_round(texts: list[str]) -> dict[str, float]:
    """Seconds of each contender."""
    # Alike in what they do: letters only, stop words left out. CountVectorizer's own defaults are slower, and shown.
    defaults = CountVectorizer()
    vectorizer = CountVectorizer(token_pattern=PATTERN, stop_words="english")
    rule = VocabularyRule(Tokenizer(pattern=PATTERN))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built: list[Any] = []

        def timed(work: Callable[[], Any]) -> float:
            start = time.perf_counter()
            built.append(work())
            return time.perf_counter() - start

        seconds = {
            "floor: cut words": timed(lambda: cut_words(texts)),
            "scikit-learn fit_transform": timed(lambda: vectorizer.fit_transform(texts)),
            "parabit vocabulary and bags": timed(lambda: build_bags(texts, folder / "a", rule)),
            "scikit-learn transform": timed(lambda: vectorizer.transform(texts)),
            "parabit bags": timed(lambda: write_bags(texts, built[-2][0], folder / "b")),
            "scikit-learn fit_transform, its defaults": timed(lambda: defaults.fit_transform(texts)),
            "scikit-learn transform, its defaults": timed(lambda: defaults.transform(texts)),
            "parabit vocabulary and bags, with bigrams": timed(
                lambda: build_bags(texts, folder / "c", VocabularyRule(rule.tokenizer, bigrams=True))
            ),
        }
        # The same work: every word that scikit-learn counts is counted as often here, but for lengths out of bounds.
        lengths = range(rule.tokenizer.min_length, rule.tokenizer.max_length + 1)
        columns = [column for word, column in vectorizer.vocabulary_.items() if len(word) in lengths]
        assert len(columns) == len(built[2][0].words)
        assert built[1][:, columns].sum() == built[2][1].counts.sum() == built[4].counts.sum()
    return seconds


def main() -> None:
    """Run the rounds, print the table, keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds

    texts = [document.text for document in open_corpus("20newsgroups-raw/train")]
    one_round(texts[:500])  # everything is imported and warm before the first round counts
    results = [one_round(texts) for _ in range(rounds)]
    rates = {name: median(len(texts) / result[name] for result in results) for name in results[0]}

    def ratio(ours: str, peer: str) -> dict[str, float]:
        ratios = [result[peer] / result[ours] for result in results]
        return {"median": round(median(ratios), 2), "least": round(min(ratios), 2), "most": round(max(ratios), 2)}

    ratios = {
        "vocabulary and bags / fit_transform": ratio("parabit vocabulary and bags", "scikit-learn fit_transform"),
        "bags / transform": ratio("parabit bags", "scikit-learn transform"),
    }
    print(f"{len(texts):,} posts, {sum(map(len, texts)) / 1e6:.1f} million characters, {rounds} rounds\n")
    for name, rate in rates.items():
        print(f"{name:45} {rate:10,.0f} documents/s")
    for name, values in ratios.items():
        print(f"{name:45} {values['median']:10.2f} times ({values['least']} to {values['most']})")
    keep(
        "text_speed",
        {
            "command": f"python benchmarks/text_speed.py --rounds {rounds}",
            "corpus": "20newsgroups-raw/train",
            "documents": len(texts),
            "rounds": rounds,
            "documents_per_second": {name: round(rate) for name, rate in rates.items()},
            "ratios": ratios,
            "machine": machine("polars", "numpy", "scikit-learn"),
        },
    )


if __name__ == "__main__":
    run(main)

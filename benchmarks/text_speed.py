"""Documents per second from text to bags, beside scikit-learn's CountVectorizer over the same posts.

    python benchmarks/text_speed.py [--rounds 3]

Each round runs everything once, one after the other, so that a busy moment of the machine hits all alike; a ratio is
taken within a round, and the median over the rounds is reported with the smallest and the largest. scikit-learn uses
one thread, parabit one per core; CPU time adds up all threads, and hardly depends on what else the machine does.
"""

import argparse
import os
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer

from common import keep, machine, run
from parabit import Bags, Tokenizer, VocabularyRule, count_bags, open_corpus
from parabit.corpus.document import as_corpus
from parabit.parallel import cores, ordered_map
from parabit.text import Vocabulary, make_bags

# The same tokens in both: runs of letters and digits, without stop words. The few posts with c++ and the like, or with
# characters beyond ASCII, are left out, because the two differ there.
POSTS = 8_000  # about 14 million characters
PATTERN, TOKENIZER = r"[^\W_]+", Tokenizer(min_length=1, max_length=100_000)


def bags_of(texts: list[str], vocabulary: Vocabulary) -> Bags:
    """The bags of many texts with a vocabulary, on all cores."""
    batches = ([document.text for document in batch] for batch in as_corpus(texts).batches(1_000_000))
    return Bags.joined(list(ordered_map(lambda batch: make_bags(batch, vocabulary), batches)))


def one_round(texts: list[str]) -> dict[str, tuple[float, float]]:
    """Seconds of each contender, and seconds of CPU time."""
    seconds = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start, cpu = time.perf_counter(), time.process_time()
        result = work()
        seconds[name] = time.perf_counter() - start, time.process_time() - cpu
        return result

    vectorizer, rule = CountVectorizer(token_pattern=PATTERN, stop_words="english"), VocabularyRule(TOKENIZER)
    theirs = timed("scikit-learn fit_transform", lambda: vectorizer.fit_transform(texts))
    vocabulary, ours = timed("parabit vocabulary and bags", lambda: count_bags(texts, rule))
    again = timed("scikit-learn transform", lambda: vectorizer.transform(texts))
    bags = timed("parabit bags", lambda: bags_of(texts, vocabulary))
    assert theirs.shape[1] == len(vocabulary.words)
    assert theirs.sum() == again.sum() == ours.counts.sum() == bags.counts.sum()
    timed("parabit vocabulary and bags, with bigrams", lambda: count_bags(texts, VocabularyRule(bigrams=True)))
    return seconds


def main() -> None:
    """Run the rounds, print the table, keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds

    posts = (document.text for document in open_corpus("20newsgroups-raw/train"))
    special = ("c++", "c#", "f#", ".net")
    texts = [post for post in posts if post.isascii() and not any(word in post.lower() for word in special)][:POSTS]
    one_round(texts[:500])  # everything is imported and warm before the first round counts
    results = [one_round(texts) for _ in range(rounds)]
    rates = {name: median(len(texts) / result[name][0] for result in results) for name in results[0]}

    def ratio(ours: str, peer: str, clock: int) -> dict[str, float]:
        ratios = [result[peer][clock] / result[ours][clock] for result in results]
        return {"median": round(median(ratios), 2), "least": round(min(ratios), 2), "most": round(max(ratios), 2)}

    pairs = {
        "vocabulary and bags / fit_transform": ("parabit vocabulary and bags", "scikit-learn fit_transform"),
        "bags / transform": ("parabit bags", "scikit-learn transform"),
    }
    ratios = {name: ratio(*pair, 0) for name, pair in pairs.items()}
    ratios |= {f"{name}, CPU time": ratio(*pair, 1) for name, pair in pairs.items()}
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
            "threads": {"parabit": cores(), "scikit-learn": 1},
            "documents_per_second": {name: round(rate) for name, rate in rates.items()},
            "ratios": ratios,
            "load": round(os.getloadavg()[0], 1),  # processes that wanted the machine's cores, this one among them
            "machine": machine("polars", "numpy", "scikit-learn"),
        },
    )


if __name__ == "__main__":
    run(main)

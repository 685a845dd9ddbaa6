"""Documents per second from text to bags, beside scikit-learn's CountVectorizer, and the memory that counting takes.

    PARABIT_DATA=FOLDER python benchmarks/text_speed.py [--only speed memory] [--rounds 3]

**Speed**: posts of 20 Newsgroups with headers, in memory. Each round runs everything once, so that a busy moment of the
machine hits all alike; a ratio is taken within a round, and the median over the rounds is reported with the smallest
and the largest. scikit-learn uses one thread, parabit one per core; CPU time adds up all threads.

**Memory**: the peak of `build_vocabulary`, each time in a fresh process. The paper's vocabulary of 20 Newsgroups (every
word and bigram), words and bigrams that occur at least 5 times in 20,000 and in 100,000 abstracts, the last again with
bounds of 200,000 words and 800,000 bigrams, which it exceeds, and a million abstracts, words alone and with bigrams
(benchmarks/common.py).
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from common import about, abstracts, apart, keep, kept, options, peak_mb, run, write_lines
from parabit import Bags, Tokenizer, VocabularyRule, build_vocabulary, count_bags, open_corpus
from parabit.corpus.document import as_corpus
from parabit.parallel import cores, ordered_map
from parabit.text import Vocabulary, counting, make_bags

# The same tokens in both: runs of letters and digits, without stop words. The few posts with c++ and the like, or with
# characters beyond ASCII, are left out, because the two differ there.
POSTS = 8_000  # about 14 million characters
PATTERN, TOKENIZER = r"[^\W_]+", Tokenizer(min_length=1, max_length=100_000)
RATIOS = {
    "vocabulary and bags / fit_transform": (
        "parabit vocabulary and bags",
        "scikit-learn fit_transform",
    ),
    "bags / transform": ("parabit bags", "scikit-learn transform"),
}
PAPER, BOUNDED, WORDS_ALONE = "20newsgroups-raw/train", "bounded", "words alone"


def bags_of(texts: list[str], vocabulary: Vocabulary) -> Bags:
    """The bags of many texts with a vocabulary, on all cores."""
    batches = (
        [document.text for document in batch] for batch in as_corpus(texts).batches(1_000_000)
    )
    return Bags.joined(list(ordered_map(lambda batch: make_bags(batch, vocabulary), batches)))


def one_round(texts: list[str]) -> dict[str, tuple[float, float]]:
    """Seconds of each contender, and seconds of CPU time."""
    from sklearn.feature_extraction.text import CountVectorizer  # not where memory is measured

    taken = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start, cpu = time.perf_counter(), time.process_time()
        result = work()
        taken[name] = time.perf_counter() - start, time.process_time() - cpu
        return result

    vectorizer, rule = (
        CountVectorizer(token_pattern=PATTERN, stop_words="english"),
        VocabularyRule(TOKENIZER),
    )
    theirs = timed("scikit-learn fit_transform", lambda: vectorizer.fit_transform(texts))
    vocabulary, ours = timed("parabit vocabulary and bags", lambda: count_bags(texts, rule))
    again = timed("scikit-learn transform", lambda: vectorizer.transform(texts))
    bags = timed("parabit bags", lambda: bags_of(texts, vocabulary))
    assert theirs.shape[1] == len(vocabulary.words)
    assert theirs.sum() == again.sum() == ours.counts.sum() == bags.counts.sum()
    timed(
        "parabit vocabulary and bags, with bigrams",
        lambda: count_bags(texts, VocabularyRule(bigrams=True)),
    )
    return taken


def speed(posts: int, rounds: int) -> dict[str, Any]:
    """Rates, and ratios within rounds."""
    texts = [document.text for document in open_corpus(PAPER)]
    special = ("c++", "c#", "f#", ".net")
    texts = [
        text
        for text in texts
        if text.isascii() and not any(word in text.lower() for word in special)
    ][:posts]
    one_round(texts[:500])  # everything is imported and warm before the first round counts
    results = [one_round(texts) for _ in range(rounds)]

    def ratio(ours: str, peer: str, clock: int) -> dict[str, float]:
        ratios = [result[peer][clock] / result[ours][clock] for result in results]
        return {
            "median": round(median(ratios), 2),
            "least": round(min(ratios), 2),
            "most": round(max(ratios), 2),
        }

    return {
        "corpus": PAPER,
        "documents": len(texts),
        "documents_per_second": {
            name: round(median(len(texts) / result[name][0] for result in results))
            for name in results[0]
        },
        "ratios": {
            **{name: ratio(*pair, 0) for name, pair in RATIOS.items()},
            **{f"{name}, CPU time": ratio(*pair, 1) for name, pair in RATIOS.items()},
        },
        "run": about(
            "polars",
            "numpy",
            "scikit-learn",
            threads={"parabit": cores(), "scikit-learn": 1},
            repetitions=rounds,
        ),
    }


def counted(what: str, path: Path) -> dict[str, Any]:
    """Count a corpus in this process."""
    rule = VocabularyRule(bigrams=not what.endswith(WORDS_ALONE), min_count=5)
    if what == PAPER:
        rule = VocabularyRule(Tokenizer.paper(), bigrams=True)
    if what.endswith(BOUNDED):
        counting.MOST_WORDS, counting.MOST_BIGRAMS = 200_000, 800_000
    corpus = open_corpus(what if what == PAPER else path)
    start = time.perf_counter()
    vocabulary = build_vocabulary(corpus, rule)
    taken = time.perf_counter() - start
    return {
        "corpus": what,
        "documents": vocabulary.documents,
        "tokens": vocabulary.tokens,
        "words": len(vocabulary.words),
        "bigrams": len(vocabulary.bigrams),
        "documents_per_second": round(vocabulary.documents / taken),
        "peak_mb": peak_mb(),
    }


def memory(sizes: list[int]) -> dict[str, Any]:
    """The runs, each in a process of its own."""
    rows = [apart(counted, PAPER, Path())]
    few, some, many = sizes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "documents.jsonl")
        for size, kinds in (
            (few, ("",)),
            (some, ("", f", {BOUNDED}")),
            (many, (f", {WORDS_ALONE}", "")),
        ):
            write_lines(path, abstracts(size))
            rows += [apart(counted, f"{size:,} abstracts{kind}", path) for kind in kinds]
            print(rows[-1], flush=True)
    return {"runs": rows, "run": about("polars", "numpy", threads=cores(), repetitions=1)}


def main() -> None:
    """Measure one part or both, and keep each when it is done."""
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", choices=["speed", "memory"])
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    sizes = [1_000, 2_000, 3_000] if given.small else [20_000, 100_000, 1_000_000]
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "speed": lambda: speed(500 if given.small else POSTS, given.rounds),
        "memory": lambda: memory(sizes),
    }
    for part in given.only or parts:
        keep("text_speed", {**kept("text_speed"), part: parts[part]()}, given.small)


if __name__ == "__main__":
    run(main)

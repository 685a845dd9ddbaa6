"""Peak memory and rate of `build_vocabulary`: 20 Newsgroups as in the paper, and arXiv abstracts.

    PARABIT_DATA=FOLDER python benchmarks/text_memory.py

The paper's vocabulary of 20 Newsgroups (every word and bigram), and words and bigrams that occur at least 5 times in
20,000 and in 100,000 abstracts, the last again with bounds of 200,000 words and 800,000 bigrams, which it exceeds.
Then a million abstracts, words alone and with bigrams: the sample ten times over, each copy without another tenth of
its words, as JSON lines on disk. Each runs in a process of its own, whose peak resident memory the system reports.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from common import keep, machine, run
from parabit import Tokenizer, VocabularyRule, build_vocabulary, open_corpus
from parabit.corpus import as_corpus
from parabit.text import counting

MILLION = "a million abstracts"
RUNS = [
    "20newsgroups-raw/train",
    "arxiv 20000",
    "arxiv 100000",
    "arxiv 100000 bounded",
    f"{MILLION}, words alone",
    MILLION,
]


def measure(what: str, million: str) -> dict[str, Any]:
    """Count a corpus in this process."""
    name, *size = what.split()
    rule = VocabularyRule(bigrams="alone" not in size, min_count=5)
    if name.startswith("20newsgroups"):
        rule = VocabularyRule(Tokenizer.paper(), bigrams=True)
    if "bounded" in size:
        counting.MOST_WORDS, counting.MOST_BIGRAMS = 200_000, 800_000
    corpus = open_corpus(million if what.startswith(MILLION) else name)
    if name == "arxiv":
        corpus = as_corpus(Some(corpus, int(size[0])))
    start = time.perf_counter()
    vocabulary = build_vocabulary(corpus, rule)
    seconds = time.perf_counter() - start
    return {
        "corpus": what,
        "documents": vocabulary.documents,
        "tokens": vocabulary.tokens,
        "words": len(vocabulary.words),
        "bigrams": len(vocabulary.bigrams),
        "documents_per_second": round(vocabulary.documents / seconds),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


class Some:
    """The first documents of a corpus."""

    def __init__(self, corpus: Any, size: int) -> None:
        self._corpus, self._size = corpus, size

    def __iter__(self) -> Any:
        return islice(self._corpus, self._size)


def main() -> None:
    """Measure all, print the table, keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    one = parser.parse_args().one
    if one:
        print(json.dumps(measure(*one)))
        return
    from learn_million import write  # not where memory is measured: it imports all that learning needs

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        million = Path(folder, "documents.jsonl")
        write(million)
        for what in RUNS:
            command = [sys.executable, __file__, "--one", what, str(million)]
            child = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            rows.append(json.loads(child.stdout))
            print(f"{what:25} {rows[-1]}", flush=True)
    keep(
        "text_memory",
        {"command": "python benchmarks/text_memory.py", "runs": rows, "machine": machine("polars", "numpy")},
    )


if __name__ == "__main__":
    run(main)

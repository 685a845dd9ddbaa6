"""Peak memory and rate of vocabulary and bags as the corpus grows from 100,000 to 1,000,000 documents.

    python benchmarks/text_memory.py

The arxiv sample, once and ten times over with new ids; words and bigrams that occur at least 5 times. Each size runs in
a process of its own, whose peak resident memory the system reports.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import keep, machine, run
from parabit import Corpus, Document, VocabularyRule, build_bags, open_corpus
from parabit.progress import Progress


class Copies(Corpus):
    """A corpus several times over, with ids of their own."""

    def __init__(self, corpus: Corpus, copies: int) -> None:
        self._corpus = corpus
        self._copies = copies

    def __iter__(self) -> Iterator[Document]:
        for copy in range(self._copies):
            for document in self._corpus:
                yield replace(document, id=f"{copy}-{document.id}")


def measure(copies: int) -> dict[str, Any]:
    """Build the bags of so many copies in this process."""
    spent: dict[str, float] = {}
    last = time.perf_counter()

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.perf_counter()
        spent[progress.stage] = spent.get(progress.stage, 0.0) + now - last
        last = now

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        vocabulary, bags = build_bags(
            Copies(open_corpus("arxiv"), copies),
            Path(folder, "bags"),
            VocabularyRule(bigrams=True, min_count=5),
            report=report,
        )
        seconds = time.perf_counter() - start
        size = sum(path.stat().st_size for path in bags.folder.iterdir())
    return {
        "documents": vocabulary.documents,
        "tokens": vocabulary.tokens,
        "words": len(vocabulary.words),
        "bigrams": len(vocabulary.bigrams),
        "seconds": round(seconds, 1),
        "seconds_by_stage": {stage: round(took, 1) for stage, took in spent.items()},
        "documents_per_second": round(vocabulary.documents / seconds),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "before_mb": before // 1024,
        "bags_mb": round(size / 1e6),
    }


def main() -> None:
    """Measure both sizes, print the table, keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, help="measure this many copies in this process, and print JSON")
    copies = parser.parse_args().copies
    if copies:
        print(json.dumps(measure(copies)))
        return
    rows = []
    for count in (1, 10):
        child = subprocess.run([sys.executable, __file__, "--copies", str(count)], stdout=subprocess.PIPE, check=True)
        rows.append(json.loads(child.stdout))
        row = rows[-1]
        print(
            f"{row['documents']:>9,} documents: {row['peak_mb']:,} MB at most, {row['documents_per_second']:,} "
            f"documents/s, {row['words']:,} words, {row['bigrams']:,} bigrams, bags of {row['bags_mb']} MB"
        )
    keep(
        "text_memory",
        {
            "command": "python benchmarks/text_memory.py",
            "corpus": "arxiv, ten times over",
            "sizes": rows,
            "machine": machine("polars", "numpy"),
        },
    )


if __name__ == "__main__":
    run(main)

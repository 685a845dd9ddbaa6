"""Peak memory and time of a whole training as the corpus grows from 100,000 to 1,000,000 documents.

    python benchmarks/train_memory.py

The arxiv sample, once and ten times over with new ids; words that occur at least 5 times; 128 bits, one epoch. Each
training runs in a process of its own, whose peak resident memory the system reports. In it are pages of files, those
of the bags and of large document tables, which the system drops when it needs the room; `own_mb` is what it cannot
drop, looked at once a second.

Without neighbours first. What neighbours cost is measured on half of the sample and on all of it; from the two follows
the power of the number of documents that it grows with, and from that the time for a million. Only if that is below
five minutes are a million documents trained with neighbours too.
"""

import argparse
import json
import math
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import keep, machine, run
from parabit import ParagraphVectors, open_corpus
from parabit.progress import Progress
from text_memory import Copies

BITS = 128
COPIES = 10
FINDING = "finding neighbours"
PATIENCE = 300.0  # seconds that neighbours of a million documents may take


class Watch:
    """A report that adds up the seconds of each stage and looks at the memory now and then."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.own = 0  # kilobytes
        self._last = self._looked = time.perf_counter()

    def __call__(self, progress: Progress) -> None:
        now = time.perf_counter()
        self.seconds[progress.stage] = self.seconds.get(progress.stage, 0.0) + now - self._last
        self._last = now
        if now - self._looked > 1.0:
            self._looked = now
            self.own = max(self.own, _own_kilobytes())


def _own_kilobytes() -> int:
    """Memory of this process that is no page of a file."""
    status = Path("/proc/self/status")
    found = re.search(r"RssAnon:\s*(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) if found else 0


def measure(corpus: str, copies: int, neighbours: int | None) -> dict[str, Any]:
    """Train in this process."""
    import torch  # noqa: F401 - or its seconds would count as those of reading

    watch = Watch()
    start = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = ParagraphVectors(bits=BITS, epochs=1, neighbours=neighbours, min_count=5, device="cpu")
    model.fit(Copies(open_corpus(corpus), copies), report=watch)
    seconds = time.perf_counter() - start
    watch.seconds["ending"] = seconds - sum(watch.seconds.values())
    documents = model.vocabulary_.documents
    return {
        "documents": documents,
        "tokens": model.vocabulary_.tokens,
        "words": len(model.vocabulary_.words),
        "neighbours": model.recipe_.neighbours,
        "seconds": round(seconds, 1),
        "seconds_by_stage": {stage: round(took, 1) for stage, took in watch.seconds.items()},
        "documents_per_second": round(documents / seconds),
        "trained_documents_per_second": round(documents / watch.seconds["training"]),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "own_mb": max(watch.own, _own_kilobytes()) // 1024,
        "before_mb": before // 1024,
    }


def measured(corpus: str, copies: int = 1, neighbours: int | None = 0) -> dict[str, Any]:
    """Train in a process of its own, and print how it went."""
    options = json.dumps({"corpus": corpus, "copies": copies, "neighbours": neighbours})
    child = subprocess.run([sys.executable, __file__, "--measure", options], stdout=subprocess.PIPE, check=True)
    row: dict[str, Any] = json.loads(child.stdout)
    stages = ", ".join(f"{stage} {took} s" for stage, took in row["seconds_by_stage"].items())
    print(
        f"{row['documents']:>9,} documents, {row['neighbours']:2} neighbours: {row['peak_mb']:,} MB at most, "
        f"{row['own_mb']:,} MB its own; {row['documents_per_second']:,} documents/s ({stages})",
        flush=True,
    )
    return row


def neighbours_cost(corpus: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What finding neighbours costs, and the whole measurement of the larger size."""
    half, whole = measured(f"{corpus}/train", neighbours=None), measured(corpus, neighbours=None)
    seconds = [row["seconds_by_stage"].get(FINDING, 0.0) for row in (half, whole)]
    power = (
        math.log(seconds[1] / seconds[0]) / math.log(whole["documents"] / half["documents"]) if all(seconds) else 0.0
    )
    cost = {
        "documents": [half["documents"], whole["documents"]],
        "seconds": seconds,
        "power": round(power, 2),
        "estimated_documents": COPIES * whole["documents"],
        "estimated_seconds": round(seconds[1] * COPIES**power),
    }
    return cost, whole


def main() -> None:
    """Measure all sizes, print the table, keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", type=json.loads, help=argparse.SUPPRESS)  # what this process is to measure
    if options := parser.parse_args().measure:
        print(json.dumps(measure(**options)))
        return
    rows = [measured("arxiv"), measured("arxiv", COPIES)]
    cost, whole = neighbours_cost("arxiv")
    rows.append(whole)
    cost["measured"] = cost["estimated_seconds"] <= PATIENCE
    if cost["measured"]:
        rows.append(measured("arxiv", COPIES, neighbours=None))
    told = "measured" if cost["measured"] else f"left out: more than {PATIENCE:.0f} s"
    print(f"neighbours of {cost['estimated_documents']:,} documents: some {cost['estimated_seconds']:,} s; {told}")
    keep(
        "train_memory",
        {
            "command": "python benchmarks/train_memory.py",
            "corpus": "arxiv, ten times over",
            "bits": BITS,
            "sizes": rows,
            "neighbours": cost,
            "machine": machine("torch", "polars", "numpy", "scipy"),
        },
    )


if __name__ == "__main__":
    run(main)

"""A model of a million documents, from files to the saved folder: time by stage, and peak memory.

    PARABIT_DATA=FOLDER python benchmarks/learn_million.py

The arXiv sample ten times over, each copy without another tenth of its words, as JSON lines on disk. Learning runs in a
process of its own, whose peak resident memory the system reports; most of its time is reading.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import keep, machine, run
from parabit import ParagraphVectors, open_corpus
from parabit.progress import Progress

COPIES, DROPPED = 10, 0.1


def write(path: Path) -> int:
    """Write the documents; how many there are."""
    rng, documents = random.Random(0), 0
    with path.open("w") as file:
        for copy in range(COPIES):
            for document in open_corpus("arxiv"):
                words = [word for word in document.text.split() if not copy or rng.random() >= DROPPED]
                file.write(json.dumps({"id": f"{copy}-{document.id}", "text": " ".join(words)}) + "\n")
                documents += 1
    return documents


def learn(path: Path, output: Path) -> dict[str, Any]:
    """Learn and save a model in this process."""
    seconds: dict[str, float] = {}
    last, start = time.perf_counter(), time.perf_counter()

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.perf_counter()
        seconds[progress.stage] = seconds.get(progress.stage, 0.0) + now - last
        last = now

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = ParagraphVectors().fit(open_corpus(path), report=report)
    model.save(output)
    whole = time.perf_counter() - start
    return {
        **model.encoder_.config["training"],
        "seconds": round(whole, 1),
        # The first report of each later stage comes when the one before has ended.
        "reading_seconds": round(seconds["reading"], 1),
        "learning_seconds": round(whole - seconds["reading"], 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "before_mb": before // 1024,
        "model_mb": round(sum(path.stat().st_size for path in output.iterdir()) / 1e6, 1),
    }


def main() -> None:
    """Make the documents, learn in another process, keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learn", type=Path, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.learn:
        print(json.dumps(learn(*arguments.learn)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "documents.jsonl")
        documents = write(path)
        print(f"{documents:,} documents, {path.stat().st_size / 1e9:.2f} GB", flush=True)
        size = round(path.stat().st_size / 1e6)
        command = [sys.executable, __file__, "--learn", path, Path(folder, "model")]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(json.dumps(result, indent=1))
    keep("learn_million", {"machine": machine("numpy", "scipy", "polars"), "text_mb": size, **result})


if __name__ == "__main__":
    run(main)

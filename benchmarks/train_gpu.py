"""Documents a second when training on a GPU, and what that says of all of English Wikipedia.

    python benchmarks/train_gpu.py --prepare FOLDER
    PYTHONPATH=src python benchmarks/train_gpu.py --arrays FOLDER --out train_gpu.json

The first command, where parabit is installed and the data sets are, writes the bags of three corpora as compressed
arrays. The second, where there are torch, numpy and scipy alone, trains 128 bits on each, with the default recipe but
for patience, in batches of 256 documents; without a GPU it takes the CPU, and `--epochs 1` makes that short.

The time is that of a whole training: arrays to the device, neighbours and start, 30 epochs of steps, and the completion
scored after each; the rates are those of the epochs. The median of five trainings is given. Two epochs of the first
corpus come before: in them the device loads its kernels.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch

from common import keep, machine, run
from parabit.errors import CorpusError
from parabit.networks import Documents, WordStatistics, choose_device, train
from parabit.networks.recipe import preset
from parabit.networks.shape import choose_shape
from parabit.paper.corpora import PaperCorpus, prepare, read_prepared
from parabit.progress import Progress

BITS, BATCH = 128, 256
ARTICLES = 7_000_000  # of English Wikipedia, about


class Source(NamedTuple):
    name: str
    min_count: int

    def file(self, folder: Path) -> Path:
        return folder / f"{self.name}.npz"


SOURCES = (Source("20newsgroups", 1), Source("enwiki", 2), Source("arxiv", 2))
EPOCHS = 30


def write(folder: Path) -> None:
    """Write the bags of the corpora."""
    for source in SOURCES:
        path = source.file(folder)
        # Nothing is tested here, so one test document is enough.
        corpus = PaperCorpus(source.name, source.name, source.name, source.min_count, "shared", most_tested=1)
        prepare(path, corpus, bigrams=False)
        print(f"{path}, {path.stat().st_size / 1e6:.1f} MB", flush=True)


def load(path: Path) -> tuple[Documents, WordStatistics]:
    """The documents of a corpus, and how frequent their words are."""
    if not path.exists():
        raise CorpusError(f"no file {path}", hint="write it with --prepare where the data sets are")
    read = read_prepared(path)
    return read.training.documents, read.statistics


def measure(
    source: Source, folder: Path, epochs: int | None, repeats: int, device: torch.device, scratch: Path
) -> dict[str, Any]:
    """Train on a corpus, some times over."""
    documents, statistics = load(source.file(folder))
    shape = choose_shape(bits=BITS)
    wanted = epochs or EPOCHS
    recipe = preset("default", shape, epochs=wanted, batch_size=BATCH, patience=0)
    told: list[int] = []  # documents trained on so far, after each step and each epoch
    begun: list[float] = []  # when the first step was done

    def report(progress: Progress) -> None:
        if progress.stage == "training":
            begun.append(time.perf_counter())
            told.append(progress.done)

    times, starts = [], []
    for _ in range(repeats):
        told.clear()
        begun.clear()
        _wait(device)
        start = time.perf_counter()
        trained = train(documents, statistics, shape, recipe, scratch, device=device.type, report=report)
        _wait(device)
        times.append(time.perf_counter() - start)
        starts.append(begun[0] - start)
    seconds, first = median(times), median(starts)
    completion = trained.history[-1].completion
    return {
        "corpus": f"{source.name}/train",
        "documents": len(documents),
        "words": len(statistics.counts),
        "words_per_document": round(int(documents.counts.sum()) / len(documents), 1),
        "distinct_words_per_document": round(len(documents.features) / len(documents), 1),
        "epochs": wanted,
        "seconds": round(seconds, 2),
        "seconds_least_to_most": [round(min(times), 2), round(max(times), 2)],
        "seconds_before_the_first_step": round(first, 2),
        "documents_per_second": round(told[-1] / (seconds - first)),
        "steps_per_second": round((len(told) - wanted) / (seconds - first), 1),
        "completion": None if completion is None else round(completion, 3),
    }


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def wikipedia(row: dict[str, Any]) -> dict[str, Any]:
    """What the sample's times say of the whole: if articles are alike, they are in proportion to their number."""
    epoch = ARTICLES / row["documents_per_second"]
    start = ARTICLES / row["documents"] * row["seconds_before_the_first_step"]
    return {
        "articles": ARTICLES,
        "seconds_an_epoch": round(epoch),
        "minutes_before_the_first_step": round(start / 60, 1),
        "minutes_30_epochs": round((start + EPOCHS * epoch) / 60, 1),
        "estimated_from": f"{row['documents']:,} articles of {row['words_per_document']} words that count",
    }


def main() -> None:
    """Write the arrays, or train on them, print the table and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prepare", type=Path, metavar="FOLDER", help="write the arrays here")
    what.add_argument("--arrays", type=Path, metavar="FOLDER", help="train on the arrays here")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the result, in place of results/train_gpu.json")
    parser.add_argument("--epochs", type=int, help="in place of 30, to try it out")
    parser.add_argument("--repeats", type=int, default=5, help="trainings of each corpus; the median is told")
    options = parser.parse_args()
    if options.prepare:
        write(options.prepare)
        return
    device = choose_device("auto")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    print(f"{name}, torch {torch.__version__}, {BITS} bits, batches of {BATCH}\n")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        measure(SOURCES[0], options.arrays, 2, 1, device, Path(scratch))  # the device loads its kernels
        for source in SOURCES:
            row = measure(source, options.arrays, options.epochs, options.repeats, device, Path(scratch))
            rows.append(row)
            print(
                f"{row['corpus']:20} {row['documents']:>7,} documents, {row['epochs']} epochs: {row['seconds']} s "
                f"({row['seconds_least_to_most'][0]} to {row['seconds_least_to_most'][1]}), "
                f"{row['seconds_before_the_first_step']} s of them before the first step, "
                f"{row['documents_per_second']:,} documents/s, {row['steps_per_second']:,} steps/s",
                flush=True,
            )
    estimate = wikipedia(next(row for row in rows if row["corpus"] == "enwiki/train"))
    print(f"\n{ARTICLES:,} articles: some {estimate['seconds_an_epoch']:,} s an epoch", end=", ")
    print(f"{estimate['minutes_30_epochs']:,} minutes in all, {estimate['minutes_before_the_first_step']} of the start")
    result = {
        "command": "python benchmarks/train_gpu.py --arrays FOLDER"
        + (f" --epochs {options.epochs}" * bool(options.epochs)),
        "device": name,
        "bits": BITS,
        "batch_size": BATCH,
        "corpora": rows,
        "english_wikipedia": estimate,
        "machine": machine("torch", "numpy", "scipy"),
    }
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    else:
        keep("train_gpu", result)


if __name__ == "__main__":
    run(main)

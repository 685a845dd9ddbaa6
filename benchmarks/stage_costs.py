"""What each stage costs a document, on one core: the constants that `parabit plan` computes with.

    python benchmarks/stage_costs.py [--ship]

The arxiv sample: reading, cutting and counting words, bigrams, bags; the parts of training, at several sizes of codes
and batches; the fast encoder; encoding; the exact scan. Each is the median of a few rounds, in seconds of the
processor, by a process that has one core. What making an index and multi-index hashing take is not measured anew: it
comes from the results of index_keeping.py and index_speed.py. With --ship the result also becomes the one that the
package carries; `python docs/scaling.py` then fills in the pages.

Then it is looked at how far the constants carry. From them the times of 20 Newsgroups are predicted, whose documents
are others, and compared with what they take; so are the sizes of what was written, the memory of trainings that
train_memory.py measured, and the bytes that two workers exchange.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from common import RESULTS, keep, machine, run

BITS, EPOCHS = 128, 3
CORPUS, OTHER = "arxiv", "20newsgroups/train"
TOGETHER = ((CORPUS, 8192), (OTHER, 8192))  # what two workers train on
PORT = 29_517
SHIPPED = Path(__file__).parent.parent / "src" / "parabit" / "planning" / "stage_costs.json"


def measure(most: int | None) -> dict[str, Any]:
    """All costs, of the corpus that they are measured on; in a process with one core."""
    from stage_text import Texts, encoded, peak, scans, size_of
    from stage_training import SAMPLES, Costs

    process = peak()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        texts = Texts(CORPUS, most, folder)
        training = Costs(texts, folder)
        costs = {**texts.costs(), **texts.products(), **training.all(), **scans()}
        rows = training.rows(texts.bags, texts.vocabulary, SAMPLES[0])
        bigram_rows = training.rows(texts.bigram_bags, texts.with_bigrams, SAMPLES[1])
        model = _model(epochs=1, neighbours=0, start="random").fit(texts.documents)
        model.save(folder / "model")
        written = encoded(model, texts.documents, folder)
        about = texts.about()
        whole = costs["cut_character"] * about["characters"] + costs["count_word"] * about["words"]
        whole += (costs["product_entry"] + BITS * costs["product_entry_unit"]) * about["entries"]
        costs["encode_document"] = max(written["encode_seconds"] / texts.count * 1e9 - whole, 0.0)
        partial = texts.partial_counts()
        return {
            "nanoseconds": costs,
            "about": about | partial,
            "bytes": {
                "process": process,
                "feature_name": (folder / "model" / "vocabulary.parquet").stat().st_size / len(texts.vocabulary),
                # Its bytes, where they are, its hash, id, two counts, and the weights made of them.
                "feature_memory": partial["word_bytes"] + 16 + 8 + 4 + 8 + 8 + 4,
            },
            "curves": {**texts.growth(), "rows": rows, "bigram_rows": bigram_rows},
            "written": {
                "features": len(texts.vocabulary),
                "bags": size_of(texts.bags.folder),
                "bags_with_bigrams": size_of(texts.bigram_bags.folder),
                "bigram_words": len(texts.bigram_bags.tokens) / texts.count,
                "bigram_entries": len(texts.bigram_bags.features) / texts.count,
                "model": size_of(folder / "model"),
                **written,
            },
        }


def bookkeeping() -> float:
    """Bytes of a worker's memory for each document of the whole corpus, be it its own or not.

    Of documents with one word: by how much the peak of getting them ready for training grows with their number.
    """
    child = [sys.executable, __file__, "--bookkeeping"]
    counts = (200_000, 4_200_000)
    least, most = (
        float(subprocess.run([*child, str(count)], stdout=subprocess.PIPE, check=True).stdout) for count in counts
    )
    return (most - least) / (counts[1] - counts[0])


def kept_in_mind(count: int) -> float:
    """What the peak rises by when so many documents are got ready for training."""
    import numpy as np

    from parabit.networks import Documents
    from parabit.networks.documents import WordStatistics
    from parabit.networks.recipe import preset
    from parabit.networks.shape import choose_shape
    from parabit.networks.training import Training
    from parabit.progress import silent
    from stage_text import peak

    ones = np.ones(count, dtype=np.int32)
    documents = Documents.of_counts(ones - 1, ones, np.arange(count + 1))
    statistics = WordStatistics(np.array([count, 1]), np.array([count, 1]), count)
    before, shape = peak(), choose_shape(bits=8)
    recipe = preset("default", shape, neighbours=0, start="random")
    Training(documents, statistics, shape, recipe, Path(), 0, "cpu", None, silent)
    return peak() - before


def whole(name: str) -> dict[str, float]:
    """A corpus from text to codes, each stage as it comes; in a process with one core."""
    from stage_text import Texts, Watch, encoded

    with tempfile.TemporaryDirectory() as scratch:
        texts = Texts(name, None, Path(scratch))
        watch = Watch()
        model = _model(epochs=EPOCHS, neighbours=None, start=None).fit(texts.documents, report=watch)
        spent = watch.seconds
        written = encoded(model, texts.documents, Path(scratch))
        return {
            **texts.about(),
            "features": len(texts.vocabulary),
            "epochs": len(model.history_),
            "reading": texts.reading,
            "cutting words": texts.taken["reading"],
            "bags": texts.taken["making bags"],
            "training": spent["finding neighbours"] + spent["training"],
            "fast encoder": spent["fast encoder"],
            "encoding": written["encode_seconds"],
            "index": written["index_seconds"],
        }


def worker(folder: Path, documents: int) -> None:
    """One of two workers that train on a part of the corpus: the bytes that it sends in an epoch."""
    import torch

    from parabit.networks import join_group, train
    from parabit.networks.exact import statistics_of
    from parabit.networks.recipe import preset
    from parabit.networks.shape import choose_shape
    from parabit.text import Bags, Vocabulary
    from stage_training import documents_of

    torch.set_num_threads(1)
    group = join_group("cpu")
    statistics = statistics_of(Vocabulary.load(folder / "vocabulary.parquet"))
    mine = documents_of(Bags.open(folder / "bags"))
    shape, sent = choose_shape(bits=BITS), []
    scratch = folder / str(group.rank)
    scratch.mkdir()
    together, spent = group.together, 0.0

    def timed(gradients: Any) -> Any:
        nonlocal spent
        start = time.process_time()
        added = together(gradients)
        spent += time.process_time() - start
        return added

    group.together = timed  # type: ignore[method-assign]
    for epochs in (1, 5):
        group.sent, spent = 0, 0.0
        start = time.process_time()
        recipe = preset("default", shape, epochs=epochs, patience=0)
        train(mine, statistics, shape, recipe, scratch, device="cpu", group=group)
        sent.append((group.sent, time.process_time() - start, spent))
    each, seconds, exchange = ((last - first) / 4 for first, last in zip(*sent, strict=True))
    if group.rank == 0:
        print(json.dumps({"documents": documents, "sent": each, "seconds": seconds, "exchange": exchange}))


def exchanged(corpus: str, documents: int) -> dict[str, Any]:
    """What two workers send each other in an epoch on some documents, counted by themselves."""
    from itertools import islice

    from parabit import VocabularyRule, build_bags, open_corpus
    from stage_text import LEAST

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        texts = list(islice(open_corpus(corpus), documents))
        vocabulary, bags = build_bags(texts, folder / "bags", VocabularyRule(min_count=LEAST))
        vocabulary.save(folder / "vocabulary.parquet")
        group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(PORT), "OMP_NUM_THREADS": "1"}
        processes = [
            subprocess.Popen(
                [sys.executable, __file__, "--worker", str(folder), "--documents", str(documents)],
                env={**os.environ, **group, "RANK": str(rank)},
                stdout=subprocess.PIPE,
            )
            for rank in range(2)
        ]
        first, _ = (process.communicate()[0] for process in processes)
        found: dict[str, Any] = json.loads(first)
        entries, words = len(bags.features) / len(bags), len(bags.tokens) / len(bags)
        return {**found, "corpus": corpus, "features": len(vocabulary), "words": words, "entries": entries}


def taken_over() -> tuple[dict[str, list[list[float]]], dict[str, str]]:
    """Curves from the results of other benchmarks, and which."""
    keeping, speed, together = (
        json.loads((RESULTS / f"{name}.json").read_text()) for name in ("index_keeping", "index_speed", "train_workers")
    )
    alone = {row["threads"]: row["seconds_an_epoch"] for row in together["speed"] if row["workers"] == 1}
    sizes = [size for size in speed["sizes"] if size["bits"] == BITS]
    asked = [row for size in sizes for row in size["rows"] if (row["ask"], row["queries"]) == ("top 10", 1)]
    curves = {
        "index": [[size["documents"], size["make_seconds"]] for size in keeping["sizes"]],
        "multi_build": [[size["codes"], size["build_seconds"]["multi"]] for size in sizes],
        "multi_alone": [[row["codes"], row["milliseconds"]["multi"]] for row in asked if row["codes"] >= 1e6],
        "threads": [[threads, alone[1] / seconds] for threads, seconds in sorted(alone.items())],  # times as fast
    }
    return curves, {
        "index": "benchmarks/results/index_keeping.json",
        "multi_build": "benchmarks/results/index_speed.json",
        "multi_alone": "benchmarks/results/index_speed.json",
        "threads": "benchmarks/results/train_workers.json",
        "counting": "benchmarks/results/text_memory.json",
    }


def _model(**options: Any) -> Any:
    from parabit import ParagraphVectors
    from stage_text import LEAST

    return ParagraphVectors(BITS, min_count=LEAST, patience=0, device="cpu", **options)


def on_one_core(*arguments: str) -> dict[str, Any]:
    """What this program says in a process that has one core."""
    core = {sorted(os.sched_getaffinity(0))[-1]}
    child = subprocess.Popen(
        [sys.executable, __file__, *arguments],
        env={**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: os.sched_setaffinity(0, core),  # noqa: PLW1509 - there are no threads yet
        stdout=subprocess.PIPE,
        text=True,
    )
    told = child.communicate()[0]
    if child.returncode:
        sys.exit(child.returncode)
    *lines, last = told.splitlines()
    print("\n".join(lines), flush=True)
    result: dict[str, Any] = json.loads(last)
    return result


def main() -> None:
    """Measure, look how far it carries, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ship", action="store_true", help="the package is to compute with these costs")
    parser.add_argument("--documents", type=int, help="of the corpus; to try it out")
    for hidden in ("--bookkeeping", "--whole", "--worker"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bookkeeping:
        print(kept_in_mind(int(options.bookkeeping)))
    elif options.worker:
        worker(Path(options.worker), options.documents)
    elif options.whole:
        print(json.dumps(whole(options.whole)))
    elif options.measure:
        print(json.dumps(measure(options.documents)))
    else:
        _all(options.documents, options.ship)


def _all(documents: int | None, ship: bool) -> None:
    from stage_checks import checks

    start = time.perf_counter()
    found = on_one_core("--measure", *([] if documents is None else ["--documents", str(documents)]))
    written = found.pop("written")
    curves, sources = taken_over()
    memory = json.loads((RESULTS / "text_memory.json").read_text())["sizes"]
    found["curves"] |= curves
    pairs = [exchanged(*some) for some in TOGETHER]
    found["nanoseconds"]["exchange_byte"] = median(one["exchange"] / one["sent"] * 1e9 for one in pairs)
    found["bytes"] |= {"counting": memory[0]["peak_mb"] * 2**20, "bookkeeping": bookkeeping()}
    result = {
        "format": 1,
        "command": "python benchmarks/stage_costs.py",
        "date": datetime.now(UTC).date().isoformat(),
        "corpus": CORPUS,
        **_rounded(found),
        "sources": sources,
        "machine": machine("torch", "polars", "numpy", "scipy", "faiss-cpu"),
    }
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "stage_costs.json")
        path.write_text(json.dumps(result))
        result["checks"] = checks(path, written, on_one_core("--whole", OTHER), pairs)
    print(f"in {time.perf_counter() - start:.0f} s")
    keep("stage_costs", result)
    if ship:
        shutil.copyfile(RESULTS / "stage_costs.json", SHIPPED)


def _rounded(found: Any) -> Any:
    """Figures with no more digits than were measured."""
    if isinstance(found, dict):
        return {name: _rounded(value) for name, value in found.items()}
    if isinstance(found, list):
        return [_rounded(value) for value in found]
    return float(f"{found:.4g}") if isinstance(found, float) else found


if __name__ == "__main__":
    run(main)

"""Training with 1, 2 and 4 workers: as good as with one, what it sends, and how long it takes.

    python benchmarks/train_workers.py --prepare FOLDER
    PYTHONPATH=src python benchmarks/train_workers.py --arrays FOLDER --out train_workers.json
    python benchmarks/train_workers.py --table train_workers.json

The first command, where parabit is installed and the data sets are, writes the bags of 20 Newsgroups as compressed
arrays. The second, where there are torch, numpy and scipy alone, trains 128 bits with the default recipe under torchrun
(gloo, on CPUs), learns the fast encoder and lets the test posts query each other, as the report on the paper's tables
does. The third prints the tables of a result once more.

Trainings with the first seed have the machine for themselves, `--threads` threads a worker and as many cores; their
seconds count. Those with the other seeds run side by side with one thread a worker: only how good they are counts.
Further numbers of threads are timed with the first seed, too. What needs more cores than there are is not timed.

Each training that has ended is kept in a file beside the result, which a second run goes on from: with `--seconds`,
nothing is begun that would not end in time, and the run after it makes the rest.

What is sent is counted by the workers, as the bytes of their tensors. "Exchange" is the time in which a step's
gradients are sent, waited for and added up, by workers on one machine.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed

from common import keep, machine, run
from parabit.codes import pack
from parabit.errors import CorpusError, TrainingError
from parabit.evaluation import evaluate_codes
from parabit.networks import Gradients, Group, distill, join_group, train
from parabit.networks.recipe import preset
from parabit.networks.shape import choose_shape
from parabit.paper.corpora import PaperCorpus, paper_corpora, prepare, read_facts, read_prepared
from parabit.parallel import cores
from parabit.progress import Progress
from workers_table import summary, tables

BITS = 128
WORKERS, SEEDS = (1, 2, 4), (0, 1, 2)
LONGEST = 150.0  # seconds: a training's, as long as none is known
RESULT = "result.json"  # of a training, in its scratch folder


def newsgroups() -> PaperCorpus:
    """20 Newsgroups as the paper's tables use it."""
    [corpus] = [corpus for corpus in paper_corpora([]) if corpus.name == "20newsgroups"]
    return corpus


def arrays(folder: Path) -> Path:
    return folder / f"{newsgroups().name}.npz"


def write(folder: Path, documents: int | None) -> None:
    """Write the bags of the corpus."""
    path, corpus = arrays(folder), newsgroups()
    prepare(path, corpus.small(documents, documents) if documents else corpus, bigrams=False)
    print(f"{path}, {path.stat().st_size / 1e6:.1f} MB")


@dataclass
class TimedGroup(Group):
    """Workers that know how long they were busy with each other."""

    seconds: float = 0.0

    def together(self, gradients: Gradients) -> Gradients:
        start = time.perf_counter()
        added = super().together(gradients)
        self.seconds += time.perf_counter() - start
        return added


def work(folder: Path, scratch: Path, seed: int, epochs: int | None) -> None:
    """Train as one of the workers; the first of them learns the fast encoder, scores, and writes what was measured."""
    data, corpus, shape = read_prepared(arrays(folder)), newsgroups(), choose_shape(bits=BITS)
    joined = join_group("cpu")
    group = TimedGroup(joined.rank, joined.size)
    told: list[tuple[float, float | None]] = []  # when, and which share of the training was done

    def report(progress: Progress) -> None:
        if progress.stage == "training":
            told.append((time.perf_counter(), progress.share))

    mine = scratch / str(group.rank)
    mine.mkdir()
    recipe = preset("default", shape, epochs=epochs)
    group.wait()
    began = time.perf_counter()
    trained = train(
        data.training.documents, data.statistics, shape, recipe, mine, seed, "cpu", report=report, group=group
    )
    group.wait()
    seconds = time.perf_counter() - began
    np.save(mine / "embeddings.npy", trained.embeddings.numpy())
    sent, exchange = zip(*group.gathered((group.sent, group.seconds)), strict=True)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    if group.rank:
        return
    # After the last step of an epoch the same share is told once more, when the epoch has been scored.
    scored = [now - before for (before, share), (now, same) in pairwise(told) if share == same]
    done = len(trained.history)
    start = time.perf_counter()
    embeddings = np.concatenate([np.load(scratch / str(rank) / "embeddings.npy") for rank in range(group.size)])
    words = trained.network.words
    encoder = distill(data.training.documents, data.statistics, words, torch.from_numpy(embeddings), seed)
    encoder_seconds = time.perf_counter() - start
    part = data.tests[corpus.name]
    documents = part.documents
    hidden = encoder.embed(documents.features, documents.counts, documents.feature_offsets)
    scores = evaluate_codes(pack(hidden > 0), part.labels, relevance=corpus.relevance)
    result = {
        "map": round(scores.map, 4),
        "ndcg10": round(scores.ndcg, 4),
        "queries": scores.queries,
        "documents": len(data.training.documents),
        "words": len(data.statistics.counts),
        "word_matrix_mb": round(words.nbytes / 1e6, 1),
        "epochs": done,
        "seconds": round(seconds, 2),
        "seconds_before_the_first_step": round(told[0][0] - began, 2),
        "seconds_an_epoch": round((told[-1][0] - told[0][0]) / done, 3),
        "seconds_of_exchange_an_epoch": round(mean(exchange) / done, 3),
        "seconds_of_scoring_an_epoch": round(sum(scored) / done, 3),
        "seconds_of_the_fast_encoder": round(encoder_seconds, 2),
        "mb_sent_an_epoch_by_a_worker": round(mean(sent) / done / 1e6, 2),
        "mb_sent_an_epoch_together": round(sum(sent) / done / 1e6, 2),
        "torch_threads": torch.get_num_threads(),
    }
    (scratch / RESULT).write_text(json.dumps(result))


class Job(NamedTuple):
    """A training."""

    workers: int
    threads: int  # of a worker
    seed: int
    alone: bool  # on the machine: its seconds count

    @property
    def cores(self) -> int:
        return min(self.workers * self.threads, cores())

    def __str__(self) -> str:
        return (
            f"{self.workers} x {self.threads} (workers x threads), seed {self.seed}"
            f"{', alone' if self.alone else ', beside others'}"
        )

    def start(self, scratch: Path, mine: set[int], options: argparse.Namespace) -> "subprocess.Popen[bytes]":
        """Begin it on some of the cores."""
        command = [sys.executable]
        if self.workers > 1:
            torchrun = ("-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1")
            command += [*torchrun, "--nproc-per-node", str(self.workers)]
        command += [__file__, "--worker", str(scratch), "--arrays", str(options.arrays), "--seed", str(self.seed)]
        command += ["--epochs", str(options.epochs)] * bool(options.epochs)
        environment = os.environ | {"OMP_NUM_THREADS": str(self.threads), "CUDA_VISIBLE_DEVICES": ""}
        with (scratch / "log").open("wb") as log, _on(mine):
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


@contextmanager
def _on(mine: set[int]) -> Iterator[None]:
    """What is begun in here runs on these cores alone, so that it has as many as it has threads."""
    if not hasattr(os, "sched_setaffinity"):  # on macOS and Windows
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, mine)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def plan(workers: list[int], threads: list[int], seeds: list[int]) -> list[Job]:
    """The trainings: those that are timed, then the other seeds, then other numbers of threads."""

    def timed(count: int) -> list[Job]:
        return [Job(size, count, seeds[0], True) for size in workers if size * count <= cores()]

    first = timed(threads[0])
    known = {(job.workers, job.seed) for job in first}
    others = [Job(size, 1, seed, False) for size in sorted(workers, reverse=True) for seed in seeds]
    rest = [job for count in threads[1:] for job in timed(count)]
    return first + [job for job in others if (job.workers, job.seed) not in known] + rest


def _expected(job: Job, kept: list[dict[str, Any]]) -> float:
    """How long a training takes, by those that were like it."""
    alike = [line for line in kept if (line["workers"], line["alone"]) == (job.workers, job.alone)]
    return 1.1 * max((line["seconds_with_its_start"] for line in alike), default=LONGEST)


def perform(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Make the trainings that are missing, as far as time allows; all that were made."""
    end = time.monotonic() + options.seconds if options.seconds else None
    if not arrays(options.arrays).exists():
        raise CorpusError(f"no file {arrays(options.arrays)}", hint="write it with --prepare where the data sets are")
    same = {
        "fingerprint": read_facts(arrays(options.arrays))["fingerprint"],
        "epochs_at_most": options.epochs,
        "cores_in_all": cores(),
    }
    path = options.out.with_suffix(".jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    kept = [line for line in lines if all(line[name] == value for name, value in same.items())]
    made = {Job(*(line[name] for name in Job._fields)) for line in kept}
    jobs = [job for job in plan(options.workers, options.threads, options.seeds) if job not in made]
    free = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(cores()))
    running: list[tuple[Job, Path, set[int], float, subprocess.Popen[bytes]]] = []
    with tempfile.TemporaryDirectory(prefix="parabit-") as scratch:
        try:
            while jobs or running:
                now = time.monotonic()
                if jobs and end is not None and now + _expected(jobs[0], kept) > end:
                    print(f"no time for {len(jobs)} more trainings: run it again", flush=True)
                    jobs = []
                if end is not None and now > end:
                    print(f"no time to end {len(running)} trainings: run it again", flush=True)
                    break
                if jobs and jobs[0].cores <= len(free) and not any(jobs[0].alone or one[0].alone for one in running):
                    job = jobs.pop(0)
                    folder = Path(tempfile.mkdtemp(dir=scratch))
                    mine = set(sorted(free)[: job.cores])
                    free -= mine
                    running.append((job, folder, mine, now, job.start(folder, mine, options)))
                    continue
                for one in list(running):
                    job, folder, mine, began, process = one
                    if process.poll() is None:
                        continue
                    if process.returncode or not (folder / RESULT).exists():
                        raise TrainingError(f"{job} failed", hint=(folder / "log").read_text()[-6000:])
                    line = {**job._asdict(), "cores": job.cores, **json.loads((folder / RESULT).read_text()), **same}
                    line["seconds_with_its_start"] = round(now - began, 1)
                    with path.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                    kept.append(line)
                    print(f"{job}: MAP {line['map']}, NDCG@10 {line['ndcg10']}, {line['seconds']} s", flush=True)
                    running.remove(one)
                    free |= mine
                time.sleep(0.1)
        finally:
            for *_, process in running:
                process.terminate()
            for *_, process in running:
                process.wait()
    return kept


def main() -> None:
    """Write the arrays, or train on them, print the tables and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help="write the arrays here")
    parser.add_argument("--arrays", type=Path, metavar="FOLDER", help="train on the arrays here")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the tables of this result")
    parser.add_argument("--worker", type=Path, metavar="SCRATCH", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, metavar="FILE", help="the result, in place of results/train_workers.json")
    parser.add_argument("--threads", type=int, nargs="+", default=[4], help="of a worker, where its time counts")
    parser.add_argument("--workers", type=int, nargs="+", default=list(WORKERS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--seconds", type=float, help="begin nothing that would end after so long")
    parser.add_argument("--epochs", type=int, help="in place of 30, to try it out")
    parser.add_argument("--documents", type=int, help="with --prepare: so many of each split, to try it out")
    options = parser.parse_args()
    if options.prepare:
        write(options.prepare, options.documents)
    elif options.table:
        print(tables(json.loads(options.table.read_text())))
    elif options.worker:
        work(options.arrays, options.worker, options.seed, options.epochs)
    elif options.arrays:
        measure(options)
    else:
        parser.error("give --prepare, --arrays or --table")


def measure(options: argparse.Namespace) -> None:
    """Train, and tell and keep what was found."""
    kept_here = options.out is None
    if kept_here:
        options.out = options.arrays / "train_workers.json"
    lines = perform(options)
    if not lines:
        return
    result = {
        "command": "python benchmarks/train_workers.py --arrays FOLDER --threads "
        + " ".join(map(str, options.threads))
        + f" --epochs {options.epochs}" * bool(options.epochs),
        "corpus": newsgroups().name,
        "bits": BITS,
        **summary(lines),
        "trainings": lines,
        "machine": machine("torch", "numpy", "scipy"),
    }
    if kept_here:
        keep("train_workers", result)
    else:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    print("\n" + tables(result))


if __name__ == "__main__":
    run(main)

"""Runs: which are finished and which are missing, and what came out of them.

What came out is one long table, `results.jsonl`, with a row per (corpus, job, seed, part, metric, value); `runs.jsonl`
says with which code, on what device and in how many seconds each run was made. A run is finished when its line
is there, so an interrupted command continues where it stopped.

Runs of networks need torch, numpy, scipy and scikit-learn only, so they can be made on another machine, with arrays
that were prepared here:

    python -m parabit.paper.runs REPORT --corpus 20newsgroups --workers 8
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from parabit.errors import EvaluationError, ParabitError
from parabit.paper.corpora import (
    HEADERS_KEPT,
    PaperCorpus,
    Prepared,
    paper_corpora,
    prepare,
    read_facts,
    read_prepared,
)
from parabit.paper.experiments import ALL, EXPERIMENTS, JOBS, Run, runs_of
from parabit.paper.jobs import Finished, perform
from parabit.progress import Report, silent


class Store:
    """The folder of a report: the long table, what its runs were made with, and arrays to work with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results, self.runs = folder / "results.jsonl", folder / "runs.jsonl"
        self._read = lru_cache(maxsize=1)(read_prepared)

    def arrays(self, corpus: PaperCorpus, bigrams: bool) -> Path:
        size = "" if corpus.most_trained is None else f"-{corpus.most_trained}-{corpus.most_tested}"
        return self.folder / "work" / "arrays" / f"{corpus.name}{size}" / ("bigrams.npz" if bigrams else "words.npz")

    def prepare(self, run: Run, corpora: Iterable[PaperCorpus], report: Report = silent) -> None:
        """Write the arrays of a run's collection, unless they are there; `corpora` are all those of the paper."""
        transfers = run.job.bigrams and run.corpus.collection == "English Wikipedia"
        others = [other for other in corpora if other.collection != run.corpus.collection] if transfers else []
        facts = self.facts(run.corpus, run.job.bigrams)
        if facts is None or not {other.name for other in others} <= facts["tests"].keys():
            work = self.folder / "work"
            work.mkdir(parents=True, exist_ok=True)
            (work / ".gitignore").write_text("*\n")
            prepare(self.arrays(run.corpus, run.job.bigrams), run.corpus, run.job.bigrams, others, report)
            self._read.cache_clear()

    def facts(self, corpus: PaperCorpus, bigrams: bool) -> dict[str, Any] | None:
        """What is known of a collection; None if it is not prepared, or its arrays are damaged."""
        try:
            return read_facts(self.arrays(corpus, bigrams))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return None

    def data(self, run: Run) -> Prepared:
        """The arrays of a run."""
        path = self.arrays(run.corpus, run.job.bigrams)
        if not path.exists():
            raise EvaluationError(f"{run.corpus.name} is not prepared: no {path}", hint="`parabit reproduce` does it")
        return self._read(path)

    def finished(self) -> dict[tuple[str, str, int, bool], dict[str, Any]]:
        """What each run was made with, the last one of each; a line that was cut off is ignored."""
        return {(line["corpus"], line["job"], line["seed"], line["quick"]): line for line in _lines(self.runs)}

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Runs that are not finished, or were made with other code, parameters or data."""
        kept = self.finished()
        return [run for run in runs if not self.is_current(run, kept.get(run.key))]

    def is_current(self, run: Run, line: dict[str, Any] | None) -> bool:
        facts = self.facts(run.corpus, run.job.bigrams)
        return line is not None and line["id"] == run.id and (not facts or line["data"] == facts["fingerprint"])

    def keep(self, about: dict[str, Any], finished: Finished) -> None:
        """Write what came out: rows first, as their run counts only when its line is there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        where = {name: about[name] for name in ("corpus", "job", "seed")}
        lines = [{**where, "part": p, "metric": m, "value": v, "run": about["id"]} for p, m, v in finished.rows]
        _append(self.results, lines)
        if finished.picture:
            path = self.folder / "work" / f"picture-{about['corpus']}{'-quick' if about['quick'] else ''}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(finished.picture))
        _append(self.runs, [about])


def _append(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    torn = path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    with path.open("a") as file:
        file.write("\n" * bool(torn) + "".join(json.dumps(line) + "\n" for line in lines))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:  # written when the power went
            continue


def _work(tasks: Any, results: Any, folder: Path, device: str, deadline: float) -> None:
    """Perform runs until none is left; several processes keep one GPU busy."""
    import torch

    from parabit.parallel import limit_cores

    torch.set_num_threads(1)
    limit_cores(1)
    store = Store(folder)
    while time.time() < deadline and (run := tasks.get()) is not None:
        try:
            results.put(perform(run, store.data(run), device))
        except Exception as problem:  # it is the caller's to say
            results.put((run, problem))
    results.put(None)


def main() -> None:
    """Perform runs on arrays that are prepared, on several processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--corpus", nargs="*", default=[])
    parser.add_argument("--job", nargs="*", default=[name for name, job in JOBS.items() if job.on_gpu])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no run after so many")
    parser.add_argument("--arrays", type=Path, help="another folder to read arrays from")
    options = parser.parse_args()
    corpora = [*paper_corpora(["arxiv", "enwiki"])]
    corpora.insert(1, HEADERS_KEPT)
    corpora = [corpus for corpus in corpora if not options.corpus or corpus.name in options.corpus]
    store = Store(options.report)
    names = tuple(name for name in EXPERIMENTS if name != ALL)
    runs = store.missing(runs_of(names, corpora, options.seeds, jobs=tuple(options.job)))
    # The paper's own collections first, then one seed of what stands in for the others.
    runs.sort(key=lambda run: run.corpus.stand_in * (1 + run.seed))
    context = multiprocessing.get_context("spawn")
    tasks, results = context.Queue(), context.Queue()
    for run in [*runs, *[None] * options.workers]:
        tasks.put(run)
    deadline = time.time() + options.seconds
    arguments = (tasks, results, options.arrays or options.report, options.device, deadline)
    workers = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(options.workers)]
    for worker in workers:
        worker.start()
    ended = done = 0
    while ended < len(workers):
        result = results.get()
        if result is None:
            ended += 1
            continue
        done += 1
        if isinstance(result[1], Exception):
            sys.stdout.write(f"{result[0].key} failed: {result[1]!r}\n")
            continue
        store.keep(*result)
        about, finished = result
        shown = [value for _, metric, value in finished.rows if metric in ("map", "ndcg@10")]
        name = f"{about['corpus']} {about['job']} {about['seed']}"
        sys.stdout.write(f"{done} of {len(runs)}: {name} {about['seconds']} s {shown}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except ParabitError as problem:
        sys.exit(f"parabit.paper.runs: {problem}")
    except KeyboardInterrupt:
        sys.stderr.write("parabit.paper.runs: interrupted; finished runs are kept\n")
        sys.exit(130)

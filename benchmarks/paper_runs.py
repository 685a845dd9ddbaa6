"""Perform runs of `parabit reproduce` in several processes, which keep one GPU busy.

Runs of networks need torch, numpy, scipy and scikit-learn only, so they can be made on another machine, with the arrays
that `parabit reproduce` prepared in REPORT/work:

    python benchmarks/paper_runs.py REPORT --corpus 20newsgroups --workers 8
"""

import argparse
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

from parabit.errors import ParabitError
from parabit.paper.corpora import paper_corpora
from parabit.paper.experiments import EXPERIMENTS, JOBS, runs_of
from parabit.paper.jobs import perform
from parabit.paper.runs import Store


def work(tasks: Any, results: Any, folder: Path, device: str, deadline: float) -> None:
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
    corpora = paper_corpora(["arxiv", "enwiki"])
    corpora = [corpus for corpus in corpora if not options.corpus or corpus.name in options.corpus]
    store = Store(options.report)
    runs = store.missing(runs_of(tuple(EXPERIMENTS), corpora, options.seeds, jobs=tuple(options.job)))
    # The paper's own collections first, then one seed of what stands in for the others.
    runs.sort(key=lambda run: run.corpus.stand_in * (1 + run.seed))
    context = multiprocessing.get_context("spawn")
    tasks, results = context.Queue(), context.Queue()
    for run in [*runs, *[None] * options.workers]:
        tasks.put(run)
    deadline = time.time() + options.seconds
    arguments = (tasks, results, options.arrays or options.report, options.device, deadline)
    workers = [context.Process(target=work, args=arguments, daemon=True) for _ in range(options.workers)]
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
        about, rows, _ = result
        shown = [value for _, metric, value in rows if metric in ("map", "ndcg@10")]
        name = f"{about['corpus']} {about['job']} {about['seed']}"
        sys.stdout.write(f"{done} of {len(runs)}: {name} {about['seconds']} s {shown}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except ParabitError as problem:
        sys.exit(f"paper_runs: {problem}")
    except KeyboardInterrupt:
        sys.stderr.write("paper_runs: interrupted; finished runs are kept\n")
        sys.exit(130)

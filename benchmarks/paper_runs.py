"""Perform runs of `parabit reproduce` in several processes, which keep one GPU busy.

Runs of networks need torch, numpy, scipy and scikit-learn only, so they can be made on another machine, with the arrays
that `parabit reproduce` prepared in REPORT/work:

    python benchmarks/paper_runs.py REPORT --corpus 20newsgroups --workers 8
"""

import argparse
import sys
import time
from functools import cache, partial
from pathlib import Path
from typing import Any

from parabit.errors import ParabitError
from parabit.paper.corpora import paper_corpora
from parabit.paper.experiments import EXPERIMENTS, JOBS, runs_of
from parabit.paper.jobs import perform
from parabit.paper.results import Store
from pool import each


def work(run: Any, arrays: Path, device: str) -> Any:
    """Perform a run."""
    return perform(run, _store(arrays).data(run), device)


@cache
def _store(folder: Path) -> Store:
    return Store(folder)


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
    parser.add_argument("--small", action="store_true", help="the first run only, to try the script")
    options = parser.parse_args()
    corpora = paper_corpora(["arxiv", "enwiki"])
    corpora = [corpus for corpus in corpora if not options.corpus or corpus.name in options.corpus]
    store = Store(options.report)
    runs = store.missing(runs_of(tuple(EXPERIMENTS), corpora, options.seeds, jobs=tuple(options.job)))
    # The paper's own collections first, then one seed of what stands in for the others.
    runs.sort(key=lambda run: run.corpus.stand_in * (1 + run.seed))
    if options.small:
        del runs[1:]
    perform_one = partial(work, arrays=options.arrays or options.report, device=options.device)
    deadline = time.time() + options.seconds
    for number, (run, result) in enumerate(each(perform_one, runs, options.workers, deadline), start=1):
        if isinstance(result, Exception):
            print(f"{run.key} failed: {result!r}", flush=True)
            continue
        store.keep(*result)
        about, rows, _ = result
        shown = [value for _, metric, value in rows if metric in ("map", "ndcg@10")]
        name = f"{about['corpus']} {about['job']} {about['seed']}"
        print(f"{number} of {len(runs)}: {name} {about['seconds']} s {shown}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except ParabitError as problem:
        sys.exit(f"paper_runs: {problem}")
    except KeyboardInterrupt:
        sys.stderr.write("paper_runs: interrupted; finished runs are kept\n")
        sys.exit(130)

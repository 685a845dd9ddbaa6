"""The folder that runs are kept in: the collections as arrays, and a file for each finished run.

Runs need torch, numpy and scipy alone, those of Table 4 faiss too, so that they can also be made on another machine,
with arrays that were prepared here:

    python -m parabit.paper.work WORK --corpus 20newsgroups --seed 0
"""

import argparse
import json
import sys
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
    further_corpora,
    paper_corpora,
    prepare,
    read_facts,
    read_prepared,
)
from parabit.paper.jobs import JOBS, Job, Run
from parabit.progress import Report, silent
from parabit.storage import whole_file


class Work:
    """A folder of arrays and finished runs.

    `corpora` are all collections that there are, not only those that are asked for: each decides what the network that
    is trained on Wikipedia is asked about.
    """

    def __init__(self, folder: Path, corpora: Iterable[PaperCorpus]) -> None:
        self.folder = folder
        self.corpora = list(corpora)
        self._read = lru_cache(maxsize=1)(read_prepared)

    def prepare(self, corpus: PaperCorpus, bigrams: bool, report: Report = silent) -> None:
        """Write the arrays of a collection, unless they are there."""
        path = self._arrays(corpus, bigrams)
        # What the network that is trained on Wikipedia is asked about has to be in its words.
        transfers = bigrams and corpus.collection == "English Wikipedia"
        others = [other for other in self.corpora if other.collection != corpus.collection] if transfers else []
        facts = self.facts(corpus, bigrams)
        if facts is None or not {other.name for other in others} <= facts["tests"].keys():
            prepare(path, corpus, bigrams, others, report)
            self._read.cache_clear()

    def data(self, run: Run) -> Prepared:
        """The arrays of a run."""
        path = self._arrays(run.corpus, run.job.bigrams)
        if not path.exists():
            raise EvaluationError(
                f"{run.corpus.name} is not prepared: there is no {path}", hint="`parabit reproduce` prepares it"
            )
        return self._read(path)

    def facts(self, corpus: PaperCorpus, bigrams: bool) -> dict[str, Any] | None:
        """What is known of a collection; None where it is not prepared, or its arrays are damaged."""
        try:
            return read_facts(self._arrays(corpus, bigrams))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return None

    def has(self, run: Run) -> bool:
        """Whether there is a result of a run, whatever it was made with."""
        return (self.folder / "runs" / run.file).exists()

    def kept(self, run: Run) -> dict[str, Any] | None:
        """The result of a run, if it is here and was made with the same data and parameters."""
        try:
            result: dict[str, Any] = json.loads((self.folder / "runs" / run.file).read_text())
        except (OSError, ValueError):
            return None
        facts = self.facts(run.corpus, run.job.bigrams)  # the arrays themselves need not be read for it
        same = facts and isinstance(result, dict) and result.get("identity") == run.identity(facts["fingerprint"])
        return result if same else None

    def keep(self, run: Run, result: dict[str, Any]) -> None:
        """Write the result of a run."""
        path = self.folder / "runs" / run.file
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial:
            partial.write_text(json.dumps(result) + "\n")

    def missing(self, runs: Iterable[Run]) -> Iterator[Run]:
        """Those that have not been finished."""
        return (run for run in runs if self.kept(run) is None)

    def _arrays(self, corpus: PaperCorpus, bigrams: bool) -> Path:
        size = "" if corpus.most_trained is None else f"-{corpus.most_trained}-{corpus.most_tested}"
        return self.folder / "arrays" / f"{corpus.name}{size}" / ("bigrams.npz" if bigrams else "words.npz")


def runs_of(
    corpora: Iterable[PaperCorpus], jobs: Iterable[Job], seeds: Iterable[int], quick: bool = False
) -> list[Run]:
    """All runs of some jobs on some collections; where chance plays no part, one seed is enough."""
    seeds = list(seeds)
    jobs = list(jobs)
    return [
        Run(job, corpus, seed, quick)
        for corpus in corpora
        for bigrams in (False, True)  # one after the other, so that arrays are read once
        for job in jobs
        if job.bigrams == bigrams and (job.name != "transfer" or corpus.collection == "English Wikipedia")
        for seed in (seeds if job.seeds else seeds[:1])
    ]


def main() -> None:
    """Make runs on arrays that are prepared."""
    from parabit.paper.runs import perform

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--corpus", nargs="*", default=["20newsgroups", "reuters21578", "arxiv", "enwiki"])
    parser.add_argument("--job", nargs="*", default=list(JOBS))
    parser.add_argument("--seed", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    corpora = [_named(name) for name in options.corpus]
    for name in options.job:
        if name not in JOBS:
            raise EvaluationError(f"no job {name!r}", hint=f"there are {', '.join(JOBS)}")
    work = Work(options.work, corpora)
    for run in work.missing(runs_of(corpora, [JOBS[name] for name in options.job], options.seed)):
        result = perform(run, work.data(run), options.device)
        work.keep(run, result)
        scores = {name: score.get("map", score.get("ndcg@10")) for name, score in result["results"].items()}
        sys.stdout.write(f"{run.file} {result['seconds']} s {scores}\n")
        sys.stdout.flush()


def _named(name: str) -> PaperCorpus:
    everything = (("arxiv", "enwiki"), ("rcv1", "wikipedia"))
    known = {corpus.name: corpus for present in everything for corpus in paper_corpora(present)}
    known |= {corpus.name: corpus for corpus in (HEADERS_KEPT, *further_corpora(everything[0]))}
    if name not in known:
        raise EvaluationError(f"no collection {name!r}", hint=f"there are {', '.join(known)}")
    return known[name]


if __name__ == "__main__":
    try:
        main()
    except ParabitError as problem:
        sys.exit(f"parabit.paper.work: {problem}")
    except KeyboardInterrupt:
        sys.stderr.write("parabit.paper.work: interrupted; finished runs are kept\n")
        sys.exit(130)

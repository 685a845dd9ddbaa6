"""Runs: which are finished and which are missing, and what came out of them.

What came out is one long table, `results.jsonl`, with a row per (corpus, job, seed, part, metric, value); `runs.jsonl`
says with which code, on what device and in how many seconds each run was made. A run is finished when its line
is there, so an interrupted command continues where it stopped.
"""

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from parabit.errors import EvaluationError
from parabit.paper.corpora import PaperCorpus, Prepared, prepare, read_facts, read_prepared
from parabit.paper.experiments import Run
from parabit.paper.jobs import Rows
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

    def picture(self, corpus: str, quick: bool) -> Path:
        """The codes of the t-SNE picture."""
        return self.folder / "work" / f"picture-{corpus}{'-quick' if quick else ''}.npz"

    def prepare(self, run: Run, corpora: Iterable[PaperCorpus], report: Report = silent) -> None:
        """Write the arrays of a run's collection, unless they are there; `corpora` are all those of the paper."""
        transfers = run.job.bigrams and run.corpus.wikipedia
        others = [other for other in corpora if other.collection != run.corpus.collection] if transfers else []
        facts = self.facts(run.corpus, run.job.bigrams)
        if facts is None or not {other.name for other in others} <= facts["tests"].keys():
            work = self.folder / "work"
            work.mkdir(parents=True, exist_ok=True)
            (work / ".gitignore").write_text("*\n")
            prepare(self.arrays(run.corpus, run.job.bigrams), run.corpus, run.job.bigrams, others, report)
            self._read.cache_clear()

    def facts(self, corpus: PaperCorpus, bigrams: bool) -> dict[str, Any] | None:
        """What is known of a collection; None if it is not prepared."""
        path = self.arrays(corpus, bigrams)
        return read_facts(path) if path.exists() else None

    def data(self, run: Run) -> Prepared:
        """The arrays of a run."""
        path = self.arrays(run.corpus, run.job.bigrams)
        if not path.exists():
            raise EvaluationError(f"{run.corpus.name} is not prepared: no {path}", hint="`parabit reproduce` does it")
        return self._read(path)

    def finished(self) -> dict[tuple[str, str, int, bool], dict[str, Any]]:
        """What each run was made with, the last one of each; a line that was cut off is ignored."""
        lines = []
        for line in self.runs.read_text().splitlines() if self.runs.exists() else ():
            try:
                lines.append(json.loads(line))
            except ValueError:  # written when the power went
                continue
        return {(line["corpus"], line["job"], line["seed"], line["quick"]): line for line in lines}

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Runs that are not finished, or were made by an older method, with other parameters or data."""
        kept = self.finished()
        return [run for run in runs if not self.is_current(run, kept.get(run.key))]

    def is_current(self, run: Run, line: dict[str, Any] | None) -> bool:
        facts = self.facts(run.corpus, run.job.bigrams)
        return line is not None and line["id"] == run.id and (not facts or line["data"] == facts["fingerprint"])

    def keep(self, about: dict[str, Any], rows: Rows, picture: dict[str, Any] | None = None) -> None:
        """Write what came out: rows first, as their run counts only when its line is there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        where = {name: about[name] for name in ("corpus", "job", "seed")}
        lines = [{**where, "part": p, "metric": m, "value": v, "run": about["id"]} for p, m, v in rows]
        _append(self.results, lines)
        if picture:
            path = self.picture(about["corpus"], about["quick"])
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, **picture)
        _append(self.runs, [about])


def _append(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    torn = path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    with path.open("a") as file:
        file.write("\n" * bool(torn) + "".join(json.dumps(line) + "\n" for line in lines))

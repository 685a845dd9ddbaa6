"""`parabit reproduce`: perform what is missing, draw the figures, and write one page."""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from parabit.errors import BaselineError, EvaluationError, need
from parabit.paper.claims import claims
from parabit.paper.corpora import HEADERS_KEPT, PaperCorpus, paper_corpora
from parabit.paper.experiments import ALL, EXPERIMENTS, JOBS, PICTURED, QUICK_EPOCHS, SIZES, runs_of
from parabit.paper.jobs import perform
from parabit.paper.machine import processor, versions
from parabit.paper.plots import RECALLS, Curve, Family, draw, points, precision_recall
from parabit.paper.runs import Store
from parabit.paper.tables import Figures, tables
from parabit.parallel import cores
from parabit.progress import Progress, silent
from parabit.progress import Report as ProgressReport
from parabit.storage import whole_file

_QUICK_TRAINED, _QUICK_TESTED = 2000, 600  # documents
_QUICK_CORPORA = ("20newsgroups", "reuters21578")
_FEWEST_POINTS = 4  # that t-SNE can place


@dataclass(frozen=True)
class Plan:
    """What is to be run, and how."""

    what: str = ALL
    quick: bool = False
    seeds: int = 3
    corpora: tuple[str, ...] = ()  # all if none is named
    jobs: tuple[str, ...] = ()  # likewise
    device: str = "auto"
    only_report: bool = False  # of what is finished; nothing is run

    @property
    def experiments(self) -> tuple[str, ...]:
        return tuple(EXPERIMENTS) if self.what == ALL else (self.what,)

    def check(self) -> None:
        """Raise for what does not exist."""
        if self.what not in (*EXPERIMENTS, ALL):
            raise EvaluationError(f"no experiment {self.what!r}", hint=f"there are {', '.join((*EXPERIMENTS, ALL))}")
        known = dict.fromkeys(name for what in self.experiments for name in EXPERIMENTS[what].jobs)
        for name in self.jobs:
            if name not in known:
                raise EvaluationError(f"no job {name!r} in {self.what}", hint=f"there are {', '.join(known)}")


class Outcome(NamedTuple):
    """What a report says in sum."""

    page: Path
    runs: int
    stale: int
    compared: dict[str, int]  # figures of 20 Newsgroups above, equal and below the paper's


def reproduce(plan: Plan, folder: Path, command: str, report: ProgressReport = silent) -> Outcome:
    """Perform the runs that are missing or stale, and write `report.html` with `figures/`.

    Runs that are finished are kept in `results.jsonl` and `runs.jsonl`, so an interrupted command continues.
    """
    plan.check()
    need("jinja2", "paper", EvaluationError)
    need("matplotlib", "plot", EvaluationError)
    need("openTSNE", "plot", EvaluationError)
    corpora, store = _corpora(plan), Store(folder)
    if not plan.only_report:
        _perform(plan, corpora, store, report)
    figures = Figures(folder, corpora, plan.quick)
    if not figures.runs:
        raise EvaluationError("no run is finished, so there is nothing to report", hint="omit --only-report")
    report(Progress("drawing", 0, "figures", 0.0))
    (folder / "figures").mkdir(exist_ok=True)
    pictures = [*_curve_pictures(figures, folder), *_point_pictures(figures, folder)]
    page = folder / "report.html"
    with whole_file(page) as partial:
        partial.write_text(_render(figures, pictures, store, command))
    stale = sum(line["stale"] for line in figures.runs)
    return Outcome(page, len(figures.runs), stale, figures.compared("20newsgroups"))


def _corpora(plan: Plan) -> list[PaperCorpus]:
    """The collections that are here, or those named."""
    from parabit.corpus.datasets import DATASETS, data_folder, find_dataset

    present = [name for name in DATASETS if find_dataset(name).found(data_folder())]
    corpora = paper_corpora(present)
    corpora.insert(1, HEADERS_KEPT)
    if plan.quick:
        corpora = [corpus.small(_QUICK_TRAINED, _QUICK_TESTED) for corpus in corpora if corpus.name in _QUICK_CORPORA]
    known = [corpus.name for corpus in corpora]
    for name in plan.corpora:
        if name not in known:
            raise EvaluationError(f"no collection {name!r} here", hint=f"there are {', '.join(known)}")
    return [corpus for corpus in corpora if not plan.corpora or corpus.name in plan.corpora]


def _perform(plan: Plan, corpora: list[PaperCorpus], store: Store, report: ProgressReport) -> None:
    from parabit.networks import choose_device

    # The pretrained encoder is a large download, so it is run only if it is there.
    jobs = plan.jobs or tuple(name for name in JOBS if name != "sentences" or find_spec("sentence_transformers"))
    runs = runs_of(plan.experiments, corpora, 1 if plan.quick else plan.seeds, plan.quick, jobs)
    if not runs:
        raise EvaluationError("there is nothing to run", hint="transfer is a job of Wikipedia and its samples only")
    for run in {(run.corpus.name, run.job.bigrams): run for run in runs}.values():
        store.prepare(run, [corpus for corpus in corpora if corpus.group == "paper"], report)
    missing = store.missing(runs)
    # What is not there is said before long work.
    choose_device(plan.device)
    for peer, library in (("bm25", "bm25s"), ("doc2vec", "gensim.models.doc2vec")):
        if any(run.job.peer == peer for run in missing):
            need(library, "baselines", BaselineError)
    for number, run in enumerate(missing):
        note = f"{run.corpus.title}, {run.job.name}, seed {run.seed}"
        report(Progress("runs", number, "runs", number / len(missing), note))
        store.keep(*perform(run, store.data(run), plan.device, report))


Picture = tuple[str, str, str]  # file, title, caption

_CURVES: tuple[tuple[str, Family, str, str], ...] = (
    ("PV-DBOW, bigrams", "real", "pv-dbow-{size}-bigrams", "vectors"),
    ("PV-DM", "real", "pv-dm-{size}", "vectors"),
    ("Binary PV-DBOW, words", "binary", "binary-pv-dbow-{size}-words", "codes"),
    ("Binary PV-DBOW, bigrams", "binary", "binary-pv-dbow-{size}-bigrams", "codes"),
    ("Binary PV-DM", "binary", "binary-pv-dm-{size}", "codes"),
    ("closed form (parabit's own)", "binary", "closed-form-{size}", "codes"),
    ("semantic hashing", "baseline", "semantic-hashing-{size}", "codes"),
)
_REAL_BINARY: tuple[tuple[str, Family, str, str], ...] = (
    ("PV-DBOW, 300 dimensions", "baseline", "separate", "vectors"),
    ("Real-Binary PV-DBOW, 300 dimensions", "real", "real-binary-28", "vectors"),
    ("Real-Binary PV-DBOW, 28 bits", "binary", "real-binary-28", "codes"),
)


def _curve_pictures(figures: Figures, folder: Path) -> Iterator[Picture]:
    """Precision-recall curves: all networks, transfer, and Real-Binary's two representations."""
    for corpus in figures.corpora:
        title = f"{corpus.title}, stands in for {corpus.collection}" if corpus.stand_in else corpus.title
        wanted = {}
        for size in SIZES:
            wanted[f"curves-{corpus.name}-{size}"] = (
                f"{title}: {size}",
                "Cosine similarity for real-valued vectors, Hamming distance for codes.",
                [(label, family, corpus.name, job.format(size=size), part) for label, family, job, part in _CURVES],
            )
        if corpus.collection != "English Wikipedia":
            if figures.get("enwiki", "transfer", corpus.name, "map"):
                wanted[f"transfer-{corpus.name}"] = (
                    f"{title}: transfer",
                    "128-bit codes of Binary PV-DBOW with bigrams.",
                    [
                        ("trained on its own documents", "binary", corpus.name, PICTURED, "codes"),
                        ("trained on Wikipedia", "baseline", "enwiki", "transfer", corpus.name),
                    ],
                )
            wanted[f"real-binary-{corpus.name}"] = (
                f"{title}: Real-Binary",
                "The code and the real-valued vector that one network learns, beside a network of vectors only.",
                [(label, family, corpus.name, job, part) for label, family, job, part in _REAL_BINARY],
            )
        for name, (heading, caption, lines) in wanted.items():
            curves = []
            for label, family, source, job, part in lines:
                found = [(at / 100, figures.value(source, job, part, f"precision@recall={at:g}%")) for at in RECALLS]
                if known := [(at, value) for at, value in found if value is not None]:
                    curves.append(Curve(label, family, *zip(*known, strict=True)))
            if curves:
                draw(folder / "figures" / f"{name}.svg", partial(precision_recall, curves=curves))
                yield f"figures/{name}.svg", heading, caption


def _point_pictures(figures: Figures, folder: Path) -> Iterator[Picture]:
    """t-SNE of 128-bit codes by Hamming distance; the codes are those of the run that was made last."""
    from parabit.index.map import embed_codes

    for corpus in figures.corpora:
        path, file = Store(folder).picture(corpus.name, figures.quick), f"figures/tsne-{corpus.name}.png"
        if path.exists():
            picture = json.loads(path.read_text())
            if len(picture["labels"]) < _FEWEST_POINTS:
                continue
            codes = np.frombuffer(base64.b64decode(picture["codes"]), dtype=np.uint8).reshape(-1, picture["bytes"])
            x, y = embed_codes(codes).T.tolist()
            draw(folder / file, partial(points, x=x, y=y, labels=picture["labels"]), square=True)
        if (folder / file).exists():
            caption = "128-bit codes that Binary PV-DBOW with bigrams inferred for test documents, by Hamming distance."
            yield file, f"{corpus.title}: t-SNE", caption


def _render(figures: Figures, pictures: Iterable[Picture], store: Store, command: str) -> str:
    from jinja2 import Environment

    source = (files("parabit.paper") / "report.html.j2").read_text()
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = lambda value: f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:,.1f}"
    kinds = ["code", "stale", "device", "torch", "date"]
    made = pl.DataFrame(figures.runs).group_by(kinds).agg(pl.len(), pl.sum("seconds")).sort(kinds)
    page: str = environment.from_string(source).render(
        claims=claims(figures),
        tables=tables(figures),
        pictures=pictures,
        counts=[(c.title, figures.compared(c.name), figures.below(c.name)) for c in figures.corpora if not c.stand_in],
        corpora=[(corpus, facts) for corpus in figures.corpora if (facts := _facts(corpus, store))],
        stand_ins=[corpus for corpus in figures.corpora if corpus.stand_in],
        made=made.rows(named=True),
        stale=sum(line["stale"] for line in figures.runs),
        runs=len(figures.runs),
        quick=figures.quick and {"trained": _QUICK_TRAINED, "tested": _QUICK_TESTED, "epochs": QUICK_EPOCHS},
        parameters=_parameters(figures),
        command=command,
        date=datetime.now(UTC).date().isoformat(),
        machine=f"{processor()}, {cores()} cores",
        versions=versions("torch", "numpy", "scipy", "scikit-learn", "polars"),
    )
    return page


def _facts(corpus: PaperCorpus, store: Store) -> dict[str, Any] | None:
    found = [facts for bigrams in (False, True) if (facts := store.facts(corpus, bigrams))]
    if not found:
        return None
    return found[0] | {"features": found[-1]["features"], "tested": found[0]["tests"][corpus.name]["documents"]}


def _parameters(figures: Figures) -> Iterator[tuple[str, str]]:
    """The parameters of each job that has a run."""
    performed = {line["job"] for line in figures.runs}
    for name in (name for name in JOBS if name in performed):
        parameters = JOBS[name].parameters(figures.quick)
        for one in parameters.get("networks", [parameters]):
            values = {key: round(value, 5) if isinstance(value, float) else value for key, value in one.items()}
            yield name, json.dumps(values).strip("{}").replace('"', "")

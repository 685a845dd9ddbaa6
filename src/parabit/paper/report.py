"""`parabit reproduce`: perform what is missing, draw the figures, and write one page."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from parabit.corpus.datasets import DATASETS, data_folder, find_dataset
from parabit.errors import BaselineError, EvaluationError, need
from parabit.explore import embed_codes
from parabit.networks.training import choose_device
from parabit.paper.corpora import PaperCorpus, paper_corpora
from parabit.paper.experiments import CURVES, EXPERIMENTS, JOBS, QUICK_EPOCHS, Run, runs_of
from parabit.paper.jobs import perform
from parabit.paper.plots import RECALLS, Curve, draw, points, precision_recall
from parabit.paper.results import Figures, Store, claims, tables
from parabit.progress import Progress, Report, silent
from parabit.storage import whole_file

_QUICK_TRAINED, _QUICK_TESTED = 2000, 600  # documents
_QUICK_CORPORA = ("20newsgroups", "reuters21578")


def reproduce(
    what: str,
    folder: Path,
    command: str,
    *,
    quick: bool = False,
    seeds: int = 3,
    corpora: Sequence[str] = (),
    jobs: Sequence[str] = (),
    device: str = "auto",
    only_report: bool = False,
    report: Report = silent,
) -> dict[str, Any]:
    """Perform the runs that are missing or stale, and write `report.html` with `figures/`.

    Without names of `corpora` and `jobs` all are run, with `only_report` none. Finished runs are kept. Returns the
    report in sum: its path, runs, and the figures of 20 Newsgroups above, equal to and below the paper's.
    """
    for name, library in (("jinja2", "paper"), ("matplotlib", "plot"), ("openTSNE", "plot")):
        need(name, library, EvaluationError)
    experiments = tuple(EXPERIMENTS) if what == "all" else (what,)
    _check("job", jobs, [job for name in experiments for job in EXPERIMENTS[name]], f" in {what}")
    used, store = _corpora(corpora, quick), Store(folder)
    if not only_report:
        # The pretrained encoder is a large download, so it is run only if it is there.
        jobs = jobs or [
            name for name in JOBS if name != "sentences" or find_spec("sentence_transformers")
        ]
        _perform(
            runs_of(experiments, used, 1 if quick else seeds, quick, jobs),
            used,
            store,
            device,
            report,
        )
    figures = Figures(folder, used, quick)
    if not figures.runs:
        raise EvaluationError(
            "no run is finished, so there is nothing to report", hint="omit --only-report"
        )
    report(Progress("drawing", 0, "figures", 0.0))
    (folder / "figures").mkdir(exist_ok=True)
    pictures = [*_curve_pictures(figures, folder), *_point_pictures(figures, folder)]
    stale = sum(line["stale"] for line in figures.runs)
    page = folder / "report.html"
    with whole_file(page) as partial:
        partial.write_text(
            _render(figures, pictures, store, command=command, stale=stale), encoding="utf-8"
        )
    standings = {
        standing: len(cells) for standing, cells in figures.compared("20newsgroups").items()
    }
    return {"report": str(page), "runs": len(figures.runs), "stale": stale, **standings}


def _check(kind: str, names: Iterable[str], known: Iterable[str], where: str = "") -> None:
    for name in names:
        if name not in known:
            raise EvaluationError(
                f"no {kind} {name!r}{where}", hint=f"there are {', '.join(dict.fromkeys(known))}"
            )


def _corpora(names: Sequence[str], quick: bool) -> list[PaperCorpus]:
    """The collections that are here, or those named."""
    corpora = paper_corpora([name for name in DATASETS if find_dataset(name).found(data_folder())])
    if quick:
        corpora = [corpus for corpus in corpora if corpus.name in _QUICK_CORPORA]
        corpora = [
            replace(corpus, most_trained=_QUICK_TRAINED, most_tested=_QUICK_TESTED)
            for corpus in corpora
        ]
    _check("collection", names, [corpus.name for corpus in corpora], " here")
    return [corpus for corpus in corpora if not names or corpus.name in names]


def _perform(
    runs: list[Run], corpora: list[PaperCorpus], store: Store, device: str, report: Report
) -> None:
    """Perform the runs that are missing, with the arrays of their collections."""
    if not runs:
        raise EvaluationError(
            "there is nothing to run", hint="transfer is a job of Wikipedia and its samples only"
        )
    for run in {(run.corpus.name, run.job.bigrams): run for run in runs}.values():
        store.prepare(run, [corpus for corpus in corpora if not corpus.headers], report)
    missing = store.missing(runs)
    # A missing GPU or library is an error before the first run, not after hours.
    choose_device(device)
    for peer, library in (("bm25", "bm25s"), ("doc2vec", "gensim.models.doc2vec")):
        if any(run.job.peer == peer for run in missing):
            need(library, "baselines", BaselineError)
    for number, run in enumerate(missing):
        note = f"{run.corpus.title}, {run.job.name}, seed {run.seed}"
        report(Progress("runs", number, "runs", number / len(missing), note))
        store.keep(*perform(run, store.data(run), device, report))


Picture = tuple[
    str, str, str, list[str]
]  # file, the collection, what is shown of it, and which curves are missing


def _curve_pictures(figures: Figures, folder: Path) -> Iterator[Picture]:
    """Precision-recall curves: all networks, transfer, and Real-Binary's two representations."""
    for corpus in figures.corpora:
        for shown, lines in CURVES.items():
            curves, missing = [], []
            for label, look, job, part in lines:
                keys = {
                    at / 100: (corpus.name, job, part, f"precision@recall={at:g}%")
                    for at in RECALLS
                }
                known = {
                    at: figures.cells[key].value for at, key in keys.items() if key in figures.cells
                }
                if known:
                    curves.append(Curve(label, look, list(known), list(known.values())))
                else:
                    missing.append(label)
            # Several networks are shown as far as they have run, what is compared in pairs only whole.
            if curves and (shown.isdigit() or not (missing or corpus.wikipedia)):
                name = (
                    f"curves-{corpus.name}-{shown}"
                    if shown.isdigit()
                    else f"{shown.lower()}-{corpus.name}"
                )
                draw(folder / "figures" / f"{name}.svg", partial(precision_recall, curves=curves))
                yield f"figures/{name}.svg", corpus.heading, shown, missing


def _point_pictures(figures: Figures, folder: Path) -> Iterator[Picture]:
    """t-SNE of 128-bit codes by Hamming distance; the codes are those of the run that was made last."""
    for corpus in figures.corpora:
        path, file = (
            Store(folder).picture(corpus.name, figures.quick),
            f"figures/tsne-{corpus.name}.png",
        )
        if path.exists():
            with np.load(path) as picture:
                codes, labels = picture["codes"], picture["labels"].tolist()
            x, y = embed_codes(codes).T.tolist()
            draw(folder / file, partial(points, x=x, y=y, labels=labels), square=True)
        if (folder / file).exists():
            yield file, corpus.title, "t-SNE", []


def _render(figures: Figures, pictures: list[Picture], store: Store, **about: Any) -> str:
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = lambda value: (
        f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:,.1f}"
    )
    environment.filters["paper"] = lambda value: f"{value:.2f}".removeprefix("0")
    kinds = ["code", "stale", "device", "torch", "date"]
    made = pl.DataFrame(figures.runs).group_by(kinds).agg(pl.len(), pl.sum("seconds")).sort(kinds)
    template = environment.from_string(
        (files("parabit.paper") / "report.html.j2").read_text("utf-8")
    )
    return template.render(
        about,
        figures=figures,
        claims=claims(figures),
        tables=tables(figures),
        pictures=pictures,
        store=store,
        made=made.rows(named=True),
        quick=figures.quick
        and {"trained": _QUICK_TRAINED, "tested": _QUICK_TESTED, "epochs": QUICK_EPOCHS},
        jobs=[job for job in JOBS.values() if job.name in {line["job"] for line in figures.runs}],
        date=datetime.now(UTC).date().isoformat(),
    )

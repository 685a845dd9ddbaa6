"""Every table and figure of the paper, run again."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from parabit import __version__
from parabit.choices import RELEVANCE
from parabit.errors import BaselineError, EvaluationError, need
from parabit.paper.beyond import table_everywhere, table_peers
from parabit.paper.corpora import HEADERS_KEPT, PaperCorpus, further_corpora, paper_corpora
from parabit.paper.figures import picture_figures, precision_recall_figures, real_binary_figures, transfer_figures
from parabit.paper.jobs import JOBS, QUICK_EPOCHS, RADII, SIZES, Job, Run
from parabit.paper.machine import machine, versions
from parabit.paper.report import CorpusFacts, Figure, Report, Table
from parabit.paper.tables import (
    Finished,
    table_1,
    table_1_headers,
    table_2,
    table_3,
    table_4,
    table_4_strict,
)
from parabit.paper.work import Work, runs_of
from parabit.progress import Progress, silent
from parabit.progress import Report as ProgressReport
from parabit.storage import whole_file

_NETWORKS = [
    f"{kind}-{size}{bigrams}"
    for size in SIZES
    for kind in ("binary-pv-dbow", "pv-dbow", "binary-pv-dm", "pv-dm")
    for bigrams in (("-words", "-bigrams") if kind.endswith("dbow") else ("",))
]
_REAL_BINARY = [f"real-binary-{bits}" for bits in RADII]
_CODED = "binary-pv-dbow-128-bigrams"


@dataclass(frozen=True)
class Experiment:
    """A part of the report: the jobs that it needs, and what is made of them."""

    jobs: tuple[str, ...]
    tables: tuple[Callable[[Finished], Table], ...] = ()
    figures: tuple[Callable[[Finished], Sequence[Figure]], ...] = ()
    groups: tuple[str, ...] = ("paper",)  # of collections that it runs on

    def among(self, corpora: Iterable[PaperCorpus]) -> list[PaperCorpus]:
        """The collections that it runs on."""
        return [corpus for corpus in corpora if corpus.group in self.groups]


EXPERIMENTS = {
    "table1": Experiment(tuple(_NETWORKS), (table_1,)),
    "headers": Experiment(tuple(_NETWORKS), (table_1_headers,), groups=("headers",)),
    "table2": Experiment(("pv-dbow-32-bigrams", "binary-pv-dbow-32-bigrams"), (table_2,)),
    "table3": Experiment(("transfer", _CODED), (table_3,), (transfer_figures,)),
    "table4": Experiment(
        (*_REAL_BINARY, "separate"),
        (table_4, table_4_strict),
        (real_binary_figures,),
    ),
    "figures": Experiment(
        (
            *_NETWORKS,
            *(f"{kind}-{size}" for size in SIZES for kind in ("default", "semantic-hashing")),
            *_REAL_BINARY,
            "separate",
            "transfer",
        ),
        (),
        (precision_recall_figures, transfer_figures, real_binary_figures, picture_figures),
    ),
    "peers": Experiment(
        tuple(
            name
            for name, job in JOBS.items()
            if job.baseline or (name.startswith("binary-pv-dbow") and not job.bigrams)
        ),
        (table_peers,),
    ),
    "everywhere": Experiment(
        (*(f"{kind}-{size}" for kind in ("default", "lsa") for size in SIZES), "doc2vec-128"),
        (table_everywhere,),
        groups=("paper", "beyond"),
    ),
}
_LONG = ("headers", "everywhere")  # what the quick version leaves out
ALL = "all"
_QUICK_TRAINED, _QUICK_TESTED = 2000, 600  # documents


@dataclass(frozen=True)
class Plan:
    """What is to be run, and how."""

    what: str = ALL
    quick: bool = False
    seeds: int = 3
    corpora: tuple[str, ...] = ()  # all where none is named
    jobs: tuple[str, ...] = ()  # likewise
    device: str = "auto"
    only_report: bool = False  # of what is finished; nothing is run

    @property
    def experiments(self) -> list[Experiment]:
        if self.what != ALL:
            return [EXPERIMENTS[self.what]]
        return [experiment for name, experiment in EXPERIMENTS.items() if not (self.quick and name in _LONG)]

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        return tuple(range(1 if self.quick else self.seeds))

    def check(self) -> None:
        """Raise for what does not exist."""
        if self.what != ALL and self.what not in EXPERIMENTS:
            raise EvaluationError(f"no experiment {self.what!r}", hint=f"there are {', '.join((*EXPERIMENTS, ALL))}")
        mine = dict.fromkeys(name for experiment in self.experiments for name in experiment.jobs)
        for name in self.jobs:
            if name not in mine:
                raise EvaluationError(f"no job {name!r} in {self.what}", hint=f"there are {', '.join(mine)}")


def reproduce(plan: Plan, folder: Path, command: str, report: ProgressReport = silent) -> Report:
    """Run what is missing, and write the report: `report.html`, `report.json` and `figures/`.

    Finished runs are kept in `work/`, so what was broken off goes on where it stopped.
    """
    plan.check()
    _need_drawing(any(picture_figures in experiment.figures for experiment in plan.experiments))
    corpora = _corpora(plan)
    work = Work(folder / "work", [corpus for corpus in corpora if corpus.group == "paper"])
    corpora = [corpus for corpus in corpora if not plan.corpora or corpus.name in plan.corpora]
    runs = _runs(plan, corpora)
    if not runs:
        raise EvaluationError("there is nothing to run", hint="transfer is a job of Wikipedia and its samples alone")
    if plan.only_report:  # and nothing is prepared that no finished run needs
        runs = [run for run in runs if work.has(run)]
    else:
        work.folder.mkdir(parents=True, exist_ok=True)
        (work.folder / ".gitignore").write_text("*\n")
    for corpus, bigrams in dict.fromkeys((run.corpus, run.job.bigrams) for run in runs):
        work.prepare(corpus, bigrams, report)
    if not plan.only_report:
        _need_libraries(work.missing(runs), plan.device)
    results = []
    for number, run in enumerate(runs):
        report(Progress("runs", number, "runs", number / len(runs), f"{run.corpus.title}, {run.job.name}"))
        result = work.kept(run)
        if result is None and not plan.only_report:
            from parabit.paper.runs import perform

            result = perform(run, work.data(run), plan.device, report)
            work.keep(run, result)
        if result is not None:
            results.append((run, result))
    report(Progress("runs", len(runs), "runs", 1.0))
    if not results:
        raise EvaluationError("no run is finished, so there is nothing to report", hint="leave out --only-report")
    told = _report(plan, work, corpora, results, command)
    _write(told, folder, report)
    return told


def _corpora(plan: Plan) -> list[PaperCorpus]:
    """All collections that are here, if those that are named are among them."""
    from parabit.corpus.datasets import DATASETS, data_folder, find_dataset

    present = [name for name in DATASETS if find_dataset(name).found(data_folder())]
    corpora = paper_corpora(present)
    groups = {group for experiment in plan.experiments for group in experiment.groups}
    corpora += [corpus for corpus in (HEADERS_KEPT, *further_corpora(present)) if corpus.group in groups]
    if plan.quick:
        corpora = [corpus.small(_QUICK_TRAINED, _QUICK_TESTED) for corpus in corpora if corpus.name != "arxiv"]
    known = [corpus.name for corpus in corpora]
    for name in plan.corpora:
        if name not in known:
            raise EvaluationError(f"no collection {name!r} here", hint=f"there are {', '.join(known)}")
    return corpora


def _runs(plan: Plan, corpora: Sequence[PaperCorpus]) -> list[Run]:
    """The runs of all experiments, each once, those with the same arrays one after the other."""
    jobs = {job.name: job for job in _jobs(plan)}
    runs = [
        run
        for experiment in plan.experiments
        for run in runs_of(
            experiment.among(corpora),
            [jobs[name] for name in experiment.jobs if name in jobs],
            plan.seed_numbers,
            plan.quick,
        )
    ]
    return sorted(dict.fromkeys(runs), key=lambda run: (corpora.index(run.corpus), run.job.bigrams))


def _jobs(plan: Plan) -> list[Job]:
    wanted = dict.fromkeys(name for experiment in plan.experiments for name in experiment.jobs)
    if plan.jobs:
        return [JOBS[name] for name in wanted if name in plan.jobs]
    has_pretrained = find_spec("sentence_transformers") is not None
    return [
        JOBS[name]
        for name in wanted
        if (has_pretrained or name != "sentences") and not (plan.quick and name.startswith("wide"))
    ]


def _report(
    plan: Plan, work: Work, corpora: Sequence[PaperCorpus], results: list[tuple[Run, dict[str, Any]]], command: str
) -> Report:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run, result in results:
        found.setdefault((run.corpus.name, run.job.name), []).append(result["results"])
    tables: list[Table] = []
    figures: dict[str, Figure] = {}
    for experiment in plan.experiments:
        finished = Finished(experiment.among(corpora), found)
        tables += [_for(plan, make(finished)) for make in experiment.tables if finished.corpora]
        for make in experiment.figures:
            figures |= {figure.name: figure for figure in make(finished)}
    return Report(
        title="Binary Paragraph Vectors, run again",
        command=command,
        quick=plan.quick,
        parabit=__version__,
        generated=datetime.now(UTC).date().isoformat(),
        seconds=round(sum(result["seconds"] for _, result in results), 1),
        seeds=plan.seed_numbers,
        machine={**machine(), "trained on": ", ".join(sorted({result["device"] for _, result in results}))},
        versions=versions("torch", "numpy", "scipy", "scikit-learn", "polars", "matplotlib", "openTSNE"),
        parameters=tuple(_parameters(results)),
        remarks=tuple(_remarks(plan, corpora)),
        corpora=tuple(facts for corpus in corpora if (facts := _facts(corpus, work, results))),
        tables=tuple(tables),
        figures=tuple(figures.values()),
        runs=[_record(result) for _, result in results],
    )


def _for(plan: Plan, table: Table) -> Table:
    """A table of the quick version: its commands say so, and so does the reason why it is below the paper."""
    if not plan.quick:
        return table
    rows = tuple(
        replace(row, cells=tuple(cell and replace(cell, command=f"{cell.command} --quick") for cell in row.cells))
        for row in table.rows
    )
    reason = "Below the paper's figures, as the quick version sees fewer documents, less often."
    return replace(table, rows=rows, below=(reason,) if table.below else ())


def _parameters(results: Iterable[tuple[Run, dict[str, Any]]]) -> Iterable[tuple[str, dict[str, Any]]]:
    """All parameters of each job; they are the same for all collections and seeds."""
    seen = set()
    for run, result in results:
        if run.job.name in seen:
            continue
        seen.add(run.job.name)
        identity = result["identity"]
        for network in identity["networks"]:
            about = {name: value for name, value in network.items() if name != "recipe"}
            yield run.job.name, {**about, **network["recipe"]}
        if "baseline" in identity:
            yield run.job.name, {name: identity[name] for name in identity if name not in ("data", "seed", "networks")}


def _remarks(plan: Plan, corpora: Iterable[PaperCorpus]) -> Iterable[str]:
    yield (
        "What the paper leaves open (rates, epochs, batch sizes, how AdaGrad starts, how words are sampled) was chosen "
        "on a validation part of 20 Newsgroups' training posts, a quarter of them, with networks trained on the other "
        "three quarters, and is the same for all collections. Test labels chose none of it."
    )
    yield (
        "The networks are the paper's. The closed form, parabit's default, is its own: derived from the same "
        "likelihood, without gradient descent, with the same constants for all collections."
    )
    yield (
        "Scores of codes are expected values over all orders inside a tie of equal distance, so they do not depend on "
        "how documents are stored."
    )
    if plan.quick:
        yield (
            f"This is the quick version: of each collection {_QUICK_TRAINED:,} training and {_QUICK_TESTED:,} test "
            f"documents, {QUICK_EPOCHS['dbow']} epochs ({QUICK_EPOCHS['dm']} of distributed memory) with fewer samples "
            "of the softmax, one seed. Its figures are below those of the whole."
        )
    stand_ins = [corpus for corpus in corpora if corpus.stands_for]
    if stand_ins:
        named = "; ".join(f"{corpus.title} stands in for {corpus.stands_for}" for corpus in stand_ins)
        yield f"Collections that are not here have a stand-in, whose figures cannot be set beside the paper's: {named}."


def _facts(corpus: PaperCorpus, work: Work, results: list[tuple[Run, dict[str, Any]]]) -> CorpusFacts | None:
    """What a collection was; None where no run is finished that tells."""
    mine = [(run, result) for run, result in results if run.corpus == corpus]
    ways = sorted({run.job.bigrams for run, _ in mine})
    facts = {bigrams: found for bigrams in ways if (found := work.facts(corpus, bigrams))}
    if not facts:
        return None
    any_facts = next(iter(facts.values()))
    tests = any_facts["tests"][corpus.name]
    scored = next(
        (
            scores
            for run, result in mine
            if run.job.name != "transfer"
            for scores in result["results"].values()
            if "skipped" in scores and "empty" not in scores
        ),
        None,
    )
    notes = []
    if corpus.most_trained:
        notes.append(f"At most {corpus.most_trained:,} training documents, a random part.")
    if corpus.most_tested:
        notes.append(f"At most {corpus.most_tested:,} test documents, a random part.")
    if corpus.min_count > 1:
        notes.append(f"Words and bigrams with at least {corpus.min_count} occurrences.")
    return CorpusFacts(
        name=corpus.name,
        title=corpus.title,
        stands_for=corpus.stands_for,
        training_documents=any_facts["training_documents"],
        test_documents=tests["documents"],
        words=any_facts["words"],
        features=facts[True]["features"] if True in facts else None,
        relevance=f"Two documents are {RELEVANCE[corpus.relevance]}.",
        queries=scored["queries"] if scored else None,
        skipped=scored["skipped"] if scored else None,
        unlabelled=tests["unlabelled"],
        note=" ".join(notes),
    )


def _record(result: dict[str, Any]) -> dict[str, Any]:
    """A run as the report's JSON has it: without curves, which the figures have."""
    scores = {
        name: {key: value for key, value in part.items() if key not in ("recall", "precision")}
        for name, part in result["results"].items()
        if name != "picture"
    }
    identity = {"seed": result["identity"]["seed"], "data": result["identity"]["data"]}
    return {**{name: result[name] for name in ("job", "corpus", "device", "seconds")}, **identity, "results": scores}


def _write(told: Report, folder: Path, report: ProgressReport) -> None:
    from parabit.paper.html import render
    from parabit.paper.plots import draw

    pictures = folder / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    for number, figure in enumerate(told.figures):
        report(Progress("drawing", number, "figures", number / len(told.figures), figure.name))
        draw(figure, pictures)
    drawn = {figure.name: (pictures / f"{figure.name}.svg").read_text() for figure in told.figures}
    with whole_file(folder / "report.html") as partial:
        partial.write_text(render(told, drawn), encoding="utf-8")
    with whole_file(folder / "report.json") as partial:
        partial.write_text(json.dumps(told.to_json(), indent=1) + "\n", encoding="utf-8")


def _need_libraries(runs: Iterable[Run], device: str) -> None:
    """Raise before long work if a run's library or device is not there."""
    from parabit.networks import choose_device

    baselines = {run.job.baseline for run in runs}
    if baselines:
        choose_device(device)
    for baseline, library in (("bm25", "bm25s"), ("doc2vec", "gensim.models.doc2vec")):
        if baseline in baselines:
            need(library, "baselines", BaselineError)


def _need_drawing(points: bool) -> None:
    """Raise before long work if what it ends with is not installed."""
    need("matplotlib", "plot", EvaluationError)
    if points:
        need("openTSNE", "plot", EvaluationError)

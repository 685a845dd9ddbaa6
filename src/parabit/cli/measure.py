"""`parabit evaluate` and `reproduce`: how good codes are, and the paper's tables and figures, run again."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from parabit.choices import RELEVANCE, Relevant
from parabit.cli.command import Result, verb
from parabit.cli.options import CorpusName, Device, ModelFolder, Reading, argument, option
from parabit.cli.output import check_file, escape, headline, say, say_skipped
from parabit.errors import EvaluationError, Interrupted, need
from parabit.progress import Report

if TYPE_CHECKING:
    from parabit.evaluation import Curve, Ranking

_DEPTH = 100
# Written out, as importing the experiments takes long; a test compares it with what there is.
What = Literal["table1", "table2", "table3", "table4", "figures", "claims", "peers", "all"]


def _show_scores(result: Result) -> None:
    where = f" against {escape(result['searched'])}" if result["searched"] else ""
    say(f"[bold]{escape(result['model'])}[/bold] on {escape(result['corpus'])}{where}, by {result['rank']}")
    for name, value in result.items():
        if name.startswith(("map", "ndcg@", "precision@")):
            say(f"  {name if name.startswith('p') else name.upper():<13}  {value:.4f}")
    say(f"  {result['queries']:,} queries; two documents are {RELEVANCE[result['relevance']]}")
    if result["queries_skipped"]:
        say(f"  {result['queries_skipped']:,} queries skipped: no relevant document")
    if result["unlabelled"]:
        say(f"  {result['unlabelled']:,} documents skipped: no label")
    say_skipped(result)
    if "plot" in result:
        say(f"  precision-recall curve: {escape(result['plot'])}")


@verb(_show_scores)
def evaluate(
    model: ModelFolder,
    corpus: CorpusName,
    searched: Annotated[str | None, option("Search this corpus, not CORPUS.", "CORPUS")] = None,
    relevance: Annotated[Relevant | None, option("By a shared label, or the share of them.", "shared|overlap")] = None,
    rank: Annotated[
        Literal["hamming", "asymmetric", "cosine"] | None,
        option("As in `parabit search`. Default: hamming, or cosine if there are no codes.", "NAME"),
    ] = None,
    k: Annotated[int, option("Documents that NDCG looks at.", "-k", min=1)] = 10,
    least: Annotated[int, option("Drop labels of fewer documents.", min=1)] = 1,
    plot: Annotated[Path | None, option("Draw the precision-recall curve, as .svg or .png.", "FILE")] = None,
    *,
    reading: Reading,
    report: Report,
) -> Result:
    """Measure how well a model finds documents with the same labels.

    The documents of a labelled corpus query each other, as in the paper, or another corpus (--searched), as usual for
    hashing. Scores are expected values over all orders of documents at the same distance.

    Examples:
        parabit evaluate news-128 20newsgroups/test
        parabit evaluate news-128 posts.csv --searched old-posts.csv --plot curve.svg
    """
    from parabit.evaluation import Relevance
    from parabit.evaluation import evaluate as score
    from parabit.evaluation.relevance import labelled, relevance_of
    from parabit.model import load_model

    if plot is not None:
        check_file(plot, (".svg", ".png"), overwrite=True)
        need("matplotlib", "plot", EvaluationError)
    loaded = load_model(model)
    by = rank or ("cosine" if loaded.bits is None else "hamming")
    if by != "cosine" and loaded.bits is None:
        raise EvaluationError("this model has no codes to rank by", hint="it is real-valued: leave out --rank")
    kind = relevance or relevance_of(corpus)
    names = [corpus, *([searched] if searched is not None else [])]
    corpora = [reading.open(name, report) for name in names]
    queries, *others = [labelled(documents, name, least) for documents, name in zip(corpora, names, strict=True)]
    inferred = loaded.infer(queries.documents, report)
    found = loaded.infer(others[0].documents, report) if others else None
    relevant = Relevance(queries.labels, kind, others[0].labels if others else None)
    scores = score(_ranking(by, inferred, found), relevant, k, _DEPTH, report)
    if plot is not None:
        _draw(scores.curve, plot, f"{model.absolute().name} on {corpus}")
    return {
        "searched": searched,
        "rank": by,
        "relevance": kind,
        "documents": len(queries.labels),
        "unlabelled": queries.unlabelled,
        "map": scores.map,
        f"ndcg@{k}": scores.ndcg,
        f"precision@{_DEPTH}": scores.precision,
        "queries": scores.queries,
        "queries_skipped": scores.skipped,
        "curve": scores.curve._asdict(),
        **({} if plot is None else {"plot": str(plot)}),
    }


def _ranking(by: str, queries: Any, found: Any) -> "Ranking":
    """The documents that are found, or else the queries themselves, in the order of their similarity to each query."""
    from parabit.evaluation import HammingRanking, asymmetric_ranking, cosine_ranking

    if by == "cosine":
        return cosine_ranking(queries.vectors, found and found.vectors)
    if by == "hamming":
        return HammingRanking(queries.codes, found and found.codes)
    return asymmetric_ranking(queries.activations, (found or queries).codes, itself=found is None)


def _draw(curve: "Curve", path: Path, title: str) -> None:
    from matplotlib.figure import Figure  # not pyplot, which keeps state

    from parabit.storage import whole_file

    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(curve.recall, curve.precision, marker=".")
    axes.set(title=title, xlabel="recall", ylabel="precision", xscale="log")
    with whole_file(path) as partial:
        figure.savefig(partial, format=path.suffix[1:], dpi=150)


def _show_report(result: Result) -> None:
    stale = f", {result['stale']} of them stale" if result["stale"] else ""
    headline(result, "report", "{runs} runs{old}", old=stale)
    counts = ", ".join(f"{result[name]} {name}" for name in ("above", "equal", "below"))
    say(f"  20 Newsgroups beside the paper's figures: {counts}")


@verb(_show_report)
def reproduce(
    what: Annotated[
        What,
        argument(
            "table1, table2, table3, table4, figures, claims (what the paper says that it tried), peers (what one "
            "would try instead) or all.",
            "WHAT",
        ),
    ],
    output: Annotated[Path, option("The folder of the report.", "--output", "-o", "REPORT")] = Path("report"),
    quick: Annotated[bool, option("One seed, fewer documents and epochs of two collections.", "--quick")] = False,
    seeds: Annotated[int, option("Runs of each cell; the report has mean and spread.", min=1)] = 3,
    corpus: Annotated[list[str] | None, option("Only this collection; repeatable.", "NAME")] = None,
    job: Annotated[list[str] | None, option("Only this job; repeatable.", "NAME")] = None,
    device: Annotated[Device, option("Where to train.", "auto|cpu|cuda")] = "auto",
    only_report: Annotated[bool, option("Run nothing; report what is finished.", "--only-report")] = False,
    *,
    report: Report,
) -> Result:
    """Run the paper's experiments again.

    REPORT gets report.html with figures/, results.jsonl with every figure, and runs.jsonl with what made it. Finished
    runs are kept, so the same command continues after an interrupt; runs of older code are repeated. RCV1 and English
    Wikipedia are used if they are here (`parabit datasets`); otherwise stand-ins are, and named as such.

    Examples:
        parabit reproduce table2 --quick
        parabit reproduce all -o results
    """
    need("torch", "networks")
    from parabit.paper.report import reproduce as run

    command = shlex.join(["parabit", *sys.argv[1:]])
    try:
        return run(
            what, output, command, quick=quick, seeds=seeds, corpora=corpus or (), jobs=job or (), device=device,
            only_report=only_report, report=report,
        )  # fmt: skip
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; finished runs are kept; continue with: {command}") from None

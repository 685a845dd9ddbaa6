"""`parabit evaluate`: how well a model finds documents of the same label."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from parabit.choices import RELEVANCE, Relevant
from parabit.cli.command import Json, Quiet, print_json, progress, say, verb
from parabit.cli.options import CorpusName, ModelFolder, complete_corpus, reads_corpus
from parabit.cli.output import reading_of, say_skipped, say_table
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import EvaluationError, need
from parabit.progress import Report

if TYPE_CHECKING:
    from parabit.evaluation.metrics import Curve
    from parabit.model import Inferred, TextEncoder

Order = Literal["hamming", "asymmetric", "cosine"]
_DEPTH = 100


@verb
@reads_corpus
def evaluate(
    model: ModelFolder,
    corpus: CorpusName,
    searched: Annotated[
        str | None,
        typer.Option(metavar="CORPUS", help="Search this corpus, not CORPUS itself.", autocompletion=complete_corpus),
    ] = None,
    relevance: Annotated[
        Relevant | None, typer.Option(help="Share a label, or by the share of labels. Default: by the data set.")
    ] = None,
    rank: Annotated[
        Order | None,
        typer.Option(
            metavar="NAME",
            help="hamming (codes), asymmetric (codes beside the query's real activations) or cosine (real vectors). "
            "Default: hamming, or cosine if the model has no codes.",
        ),
    ] = None,
    radius: Annotated[
        int | None, typer.Option(min=0, help="With --dim models: score vectors of documents within N bits, too.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Documents that NDCG looks at.")] = 10,
    least: Annotated[int, typer.Option(min=1, help="Drop labels of fewer documents.")] = 1,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the precision-recall curve, as .svg or .png.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Measure how well a model finds documents with the same labels.

    The documents of a labelled corpus query each other, as in the paper, or another corpus (--searched), as usual for
    hashing. Scores are expected values over all orders of documents at the same distance.

    Examples:
        parabit evaluate news-128 20newsgroups/test
        parabit evaluate news-128 posts.csv --searched old-posts.csv --plot curve.svg
    """
    from parabit.evaluation.relevance import labelled, relevance_of
    from parabit.model import load_model

    _check_plot(plot)
    start = time.perf_counter()
    with progress(quiet or json) as report:
        loaded = load_model(model)
        by = rank or ("cosine" if loaded.bits is None else "hamming")
        _check_parts(loaded, by, radius, searched)
        kind = relevance or relevance_of(corpus)
        names = [corpus, *([searched] if searched is not None else [])]
        opened = [open_corpus(name, options, format, report) for name in names]
        queries, *found = [labelled(documents, name, least) for documents, name in zip(opened, names, strict=True)]
        coded = loaded.infer(queries.documents, report)
        others = (loaded.infer(found[0].documents, report), found[0].labels) if found else None
        scores = _scores(coded, queries.labels, by, kind, k, others, report)
        result = {
            "model": str(model),
            "corpus": corpus,
            "searched": searched,
            "rank": by,
            "relevance": kind,
            "documents": len(queries.labels),
            "unlabelled": queries.unlabelled,
            "reading": reading_of(*opened),
            "map": scores.map,
            f"ndcg@{k}": scores.ndcg,
            f"precision@{_DEPTH}": scores.precision,
            "queries": scores.queries,
            "skipped": scores.skipped,
        }
        if radius is not None:
            result |= _within(coded, queries.labels, radius, kind, k, report)
    result["curve"] = scores.curve._asdict()
    if plot is not None:
        _draw(scores.curve, plot, f"{model.absolute().name} on {corpus}")
        result["plot"] = str(plot)
    result["seconds"] = round(time.perf_counter() - start, 3)
    if json:
        print_json(result)
    else:
        _show(result, k, radius)


def _check_plot(plot: Path | None) -> None:
    """Find out before the work that a plot cannot be drawn or written."""
    if plot is None:
        return
    from parabit.storage import need_room_for_file

    if plot.suffix not in (".svg", ".png"):
        raise EvaluationError(f"{plot} is neither .svg nor .png", hint="give one of these endings")
    need("matplotlib", "plot", EvaluationError)
    need_room_for_file(plot)


def _check_parts(model: "TextEncoder", by: str, radius: int | None, searched: str | None) -> None:
    """Find out before the work that the model lacks what is asked for."""
    if by != "cosine" and model.bits is None:
        raise EvaluationError("this model has no codes to rank by", hint="it is real-valued: leave out --rank")
    if radius is not None and (model.bits is None or model.dim == model.bits):
        raise EvaluationError("a radius needs a code and a real vector", hint="train with both --bits and --dim")
    if radius is not None and searched is not None:
        raise EvaluationError("--radius with --searched", hint="within a radius, documents query each other")


def _scores(
    coded: "Inferred", labels: list[tuple[str, ...]], by: str, kind: str, k: int, others: Any, report: Report
) -> Any:
    from parabit.evaluation import HammingRanking, Relevance, asymmetric_ranking, cosine_ranking
    from parabit.evaluation import evaluate as evaluate_ranking

    found, found_labels = others or (None, None)
    if by == "cosine":
        ranking: Any = cosine_ranking(coded.vectors, found and found.vectors)
    else:
        assert coded.codes is not None
        if by == "hamming":
            ranking = HammingRanking(coded.codes, found and found.codes)
        else:
            assert coded.activations is not None
            codes = coded.codes if found is None else found.codes
            ranking = asymmetric_ranking(coded.activations, codes, itself=found is None)
    return evaluate_ranking(ranking, Relevance(labels, kind, found_labels), k, _DEPTH, report)


def _within(
    coded: "Inferred", labels: list[tuple[str, ...]], radius: int, kind: str, k: int, report: Report
) -> dict[str, Any]:
    from parabit.evaluation import evaluate_filtered

    assert coded.codes is not None
    inside = evaluate_filtered(coded.codes, coded.vectors, labels, radius, k, kind, report)
    return {
        "radius": radius,
        f"radius_ndcg@{k}": inside.ndcg,
        f"radius_cut_ndcg@{k}": inside.cut_ndcg,
        f"radius_strict_ndcg@{k}": inside.strict_ndcg,
        "radius_retrieved": inside.retrieved,
        "radius_queries": inside.queries,
        "radius_empty": inside.empty,
    }


def _draw(curve: "Curve", path: Path, title: str) -> None:
    from matplotlib.figure import Figure  # not pyplot, which keeps state

    from parabit.storage import whole_file

    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(curve.recall, curve.precision, marker=".")
    axes.set(title=title, xlabel="recall", ylabel="precision", xscale="log")
    with whole_file(path) as partial:
        figure.savefig(partial, format=path.suffix[1:], dpi=150)


def _show(result: dict[str, Any], k: int, radius: int | None) -> None:
    from rich.table import Table

    where = f" against {escape(result['searched'])}" if result["searched"] else ""
    say(f"[bold]{escape(result['model'])}[/bold] on {escape(result['corpus'])}{where}, by {result['rank']}")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("map", f"ndcg@{k}", f"precision@{_DEPTH}"):
        table.add_row(name if name.startswith("p") else name.upper(), f"{result[name]:.4f}")
    say_table(table)
    if radius is not None:
        say(
            f"  NDCG@{k} of real vectors within {radius} bits: {result[f'radius_ndcg@{k}']:.4f} of what was retrieved, "
            f"{result[f'radius_strict_ndcg@{k}']:.4f} of everything; {result['radius_retrieved']:.1f} documents "
            f"retrieved, {result['radius_empty']:,} queries without any"
        )
    say(f"  {result['queries']:,} queries; two documents are {RELEVANCE[result['relevance']]}")
    if result["skipped"]:
        say(f"  {result['skipped']:,} queries skipped: no relevant document")
    if result["unlabelled"]:
        say(f"  {result['unlabelled']:,} documents skipped: no label")
    say_skipped(result["reading"])
    if "plot" in result:
        say(f"  precision-recall curve: {escape(result['plot'])}")

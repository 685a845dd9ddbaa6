"""`parabit evaluate`: how well a model's codes find documents of the same label."""

import re
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from parabit.choices import RELEVANCE
from parabit.cli.command import Json, Quiet, check_spelling, completing, print_json, progress, say, verb
from parabit.cli.options import CorpusName, complete_corpus, reading_of, reads_corpus, say_skipped
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import EvaluationError, ParabitError, need

_RANKS = ("hamming", "asymmetric", "cosine")
_DEPTH = 100


@verb
@reads_corpus
def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a model.", show_default=False)],
    corpus: CorpusName,
    searched: Annotated[
        str | None,
        typer.Option(
            metavar="CORPUS",
            help="Search these documents instead of CORPUS itself: the hashing literature's protocol, where test "
            "documents query the training set.",
            show_default=False,
            autocompletion=complete_corpus,
        ),
    ] = None,
    relevance: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(RELEVANCE),
            help=f"Two documents are: {'; '.join(f'{name}, {about}' for name, about in RELEVANCE.items())}. Default: "
            "overlap for the newswire and abstract data sets, shared for all others.",
            show_default=False,
            autocompletion=completing([*RELEVANCE]),
        ),
    ] = None,
    rank: Annotated[
        str | None,
        typer.Option(
            metavar="RANK",
            help="Order documents by their codes (hamming), by their codes beside the query's real activations "
            "(asymmetric), or by real vectors (cosine). Default: hamming where the model has codes.",
            show_default=False,
            autocompletion=completing(_RANKS),
        ),
    ] = None,
    radius: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Of a Real-Binary model: also score real vectors among the documents within so many bits.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="NDCG of the first so many documents.")] = 10,
    least: Annotated[int, typer.Option(min=1, help="Leave out labels of fewer documents.")] = 1,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the precision-recall plot goes, .svg or .png. Default: MODEL-CORPUS.svg in this folder.",
            show_default=False,
        ),
    ] = None,
    no_plot: Annotated[bool, typer.Option("--no-plot", help="Draw none.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Measure a model on a labelled corpus: MAP, NDCG@10, precision@100 and the precision-recall curve.

    The documents query each other, as in the paper, or a collection given with --searched. Scores are expected values
    over all orders of documents at the same distance. Examples:

        parabit evaluate news-128 20newsgroups/test

        parabit evaluate news-128 20newsgroups/test --rank asymmetric --json

        parabit evaluate news-128 posts.csv --searched old-posts.csv --no-plot
    """
    check_spelling("order", rank, _RANKS)
    check_spelling("relevance", relevance, RELEVANCE)
    from parabit.evaluation.relevance import labelled, relevance_of
    from parabit.model import load_model

    if rank is not None and rank not in _RANKS:
        raise EvaluationError(f"no order {rank!r}", hint=f"there are {', '.join(_RANKS)}")
    if relevance is not None and relevance not in RELEVANCE:
        raise EvaluationError(f"no relevance {relevance!r}", hint=f"there are {' and '.join(RELEVANCE)}")
    place = _plot_place(plot, no_plot, model, corpus)
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
    result["plot"] = _draw(place, plot is not None, model, corpus, by, scores)
    result["seconds"] = round(time.perf_counter() - start, 3)
    if json:
        print_json(result)
    else:
        _show(result, k, radius)


def _check_parts(model: Any, by: str, radius: int | None, searched: str | None) -> None:
    """Find out before the work that the model lacks what is asked for."""
    if by != "cosine" and model.bits is None:
        raise EvaluationError("this model has no codes to rank by", hint="it is real-valued: leave out --rank")
    if radius is not None and (model.bits is None or model.dim == model.bits):
        raise EvaluationError("a radius needs a code and a real vector", hint="train with both --bits and --dim")
    if radius is not None and searched is not None:
        raise EvaluationError("--radius with --searched", hint="inside a radius, documents query each other")


def _scores(coded: Any, labels: list[tuple[str, ...]], by: str, kind: str, k: int, others: Any, report: Any) -> Any:
    from parabit.evaluation import HammingRanking, Relevance, asymmetric_ranking, cosine_ranking
    from parabit.evaluation import evaluate as evaluate_ranking

    found, found_labels = others or (None, None)
    if by == "hamming":
        ranking: Any = HammingRanking(coded.codes, found and found.codes)
    elif by == "asymmetric":
        codes = coded.codes if found is None else found.codes
        ranking = asymmetric_ranking(coded.activations, codes, itself=found is None)
    else:
        ranking = cosine_ranking(coded.vectors, found and found.vectors)
    return evaluate_ranking(ranking, Relevance(labels, kind, found_labels), k, _DEPTH, report)


def _within(coded: Any, labels: list[tuple[str, ...]], radius: int, kind: str, k: int, report: Any) -> dict[str, Any]:
    from parabit.evaluation import evaluate_filtered

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


def _plot_place(plot: Path | None, no_plot: bool, model: Path, corpus: str) -> Path | None:
    """Where the plot goes; what is asked for by name and cannot be drawn or written is told before the work."""
    if no_plot:
        return None
    if plot is not None and plot.suffix not in (".svg", ".png"):
        raise EvaluationError(f"{plot} is neither .svg nor .png", hint="give one of these endings")
    if plot is not None:
        from parabit.storage import need_room_for_file

        need("matplotlib", "plot", EvaluationError)
        need_room_for_file(plot)
    return plot or Path(re.sub(r"[^\w.-]+", "-", f"{model.absolute().name}-{corpus}").strip("-") + ".svg")


def _draw(place: Path | None, asked: bool, model: Path, corpus: str, by: str, scores: Any) -> str | None:
    """Draw the curve; where nobody asked for it by name, a place where it cannot be drawn or kept goes without."""
    from parabit.paper.plots import draw_to
    from parabit.paper.report import Curve, CurveFigure

    if place is None:
        return None
    line = Curve(
        model.absolute().name, "binary" if by == "hamming" else "real", scores.curve.recall, scores.curve.precision
    )
    figure = CurveFigure("precision-recall", corpus, "", (line,))
    try:
        draw_to(figure, place)
    except (ParabitError, OSError):
        if asked:
            raise
        return None
    return str(place)


def _show(result: dict[str, Any], k: int, radius: int | None) -> None:
    where = f" against {escape(result['searched'])}" if result["searched"] else ""
    say(f"[bold]{escape(result['model'])}[/bold] on {escape(result['corpus'])}{where}, by {result['rank']}")
    say(f"  MAP            {result['map']:.4f}")
    say(f"  NDCG@{k:<9} {result[f'ndcg@{k}']:.4f}")
    say(f"  precision@{_DEPTH:<4} {result[f'precision@{_DEPTH}']:.4f}")
    if radius is not None:
        say(
            f"  NDCG@{k} of real vectors within {radius} bits: {result[f'radius_ndcg@{k}']:.4f} of what was retrieved, "
            f"{result[f'radius_strict_ndcg@{k}']:.4f} counting what was lost; {result['radius_retrieved']:.1f} "
            f"documents retrieved, {result['radius_empty']:,} queries without any"
        )
    say(f"  {result['queries']:,} queries; two documents are {RELEVANCE[result['relevance']]}")
    if result["skipped"]:
        say(f"  {result['skipped']:,} more have no relevant document and were left out")
    if result["unlabelled"]:
        say(f"  {result['unlabelled']:,} documents without a label were left out")
    say_skipped(result["reading"])
    if result["plot"]:
        say(f"  precision-recall plot: {escape(result['plot'])}")

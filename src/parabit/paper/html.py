"""The report as one page that needs nothing but itself: no script, no font and no picture from elsewhere."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any

from parabit.paper.html_table import render_table
from parabit.paper.markup import element, inline_svg, text
from parabit.paper.report import CorpusFacts, Counts, Curve, CurveFigure, Figure, PointsFigure, Report

_READING = (
    "In the tables, ours is the mean over seeds ± the standard deviation, and the difference is ours less the paper's."
)

# Per cent of recall at which a curve's precision is given in words.
_RECALLS = (1, 2, 5, 10, 20, 50, 100)

# No name of a table or a figure has a point, so that these are ids of their own.
_FIGURES, _CORPORA, _PARAMETERS = "about.figures", "about.corpora", "about.parameters"
_MACHINE, _RUNS = "about.machine", "about.runs"


def render(report: Report, pictures: Mapping[str, str]) -> str:
    """The page, with `pictures` the SVG of each figure by its name; a figure without one is given in words alone.

    Example:
        >>> report = Report("Binary Paragraph Vectors, rerun", "parabit reproduce all", quick=True, parabit="0.1.0",
        ...                 generated="2026-11-15", seconds=95, seeds=(0, 1), machine={"cpu": "2 cores"})
        >>> page = render(report, {})
        >>> page.startswith("<!doctype html>") and "quick version" in page and "1 min 35 s" in page
        True
    """
    style = files("parabit.paper").joinpath("report.css").read_text(encoding="utf-8")
    sections = [
        *(_section(table.name, table.title, render_table(table, len(report.seeds))) for table in report.tables),
        _section(_FIGURES, "Figures", _figures(report.figures, pictures)) if report.figures else "",
        _section(_CORPORA, "Corpora", _corpora(report.corpora)) if report.corpora else "",
        _section(_PARAMETERS, "Parameters", element("div", *_parameters(report.parameters), class_="sets"))
        if report.parameters
        else "",
        _section(_MACHINE, "Machine, versions, time", _circumstances(report)),
        _section(_RUNS, "Runs", _runs(report.runs)) if report.runs else "",
    ]
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            element("title", text(report.title)),
            f"<style>{style}</style></head><body>",
            element("div", element("header", *_opening(report)), _contents(report), class_="top"),
            element("main", *sections),
            "</body></html>\n",
        ]
    )


def _opening(report: Report) -> Iterable[str]:
    yield element("h1", text(report.title))
    yield element(
        "p",
        f"parabit {text(report.parabit)} · ",
        element("time", text(report.generated[:10]), datetime=report.generated),
        f" · {text(_seeds(report.seeds))} · {_duration(report.seconds)}",
        class_="byline",
    )
    yield element("p", element("code", text(report.command)), class_="byline")
    if report.quick:
        yield element(
            "p",
            element("strong", "This is the quick version."),
            " It was run on less than the whole: its figures show that everything works, not how well.",
            class_="quick",
            role="note",
        )
    counts = report.counts()
    yield element("p", text(_summary(counts)), class_="summary")
    yield _bar(counts)
    if report.tables:
        yield element("p", text(_READING), class_="byline")
    yield from (element("p", text(remark)) for remark in report.remarks)


def _summary(counts: Counts) -> str:
    compared = counts.above + counts.equal + counts.below
    said = [
        f"Of {compared:,} figures of the paper that were run again on the same corpus, ours is above in "
        f"{counts.above:,}, equal in {counts.equal:,} (to the two decimals that the paper gives) and below in "
        f"{counts.below:,}."
    ]
    if counts.missing:
        said.append(f"Not run: {counts.missing:,}.")
    if counts.stand_in:
        said.append(
            f"On corpora that stand in for ones of the paper, shown beside its figures but not compared: "
            f"{counts.stand_in:,}."
        )
    if counts.unmatched:
        said.append(f"Without a counterpart in the paper: {counts.unmatched:,}.")
    return " ".join(said)


def _bar(counts: Counts) -> str:
    """The shares of above, equal and below, as lengths."""
    parts = (("above", "+", counts.above), ("equal", "=", counts.equal), ("below", "−", counts.below))
    if not any(count for *_, count in parts):
        return ""
    spans = (
        element("span", f"{sign}{count:,}", class_=name, style=f"flex-grow:{count}")
        for name, sign, count in parts
        if count
    )
    said = ", ".join(f"{count:,} {name}" for name, _, count in parts)
    return element("div", *spans, class_="bar", role="img", aria_label=said)


def _contents(report: Report) -> str:
    def entry(name: str, title: str, more: str = "") -> str:
        return element("li", element("a", text(title), href=f"#{name}"), element("small", more) if more else "")

    entries = [entry(table.name, table.title, _tally(table.counts())) for table in report.tables]
    entries += [entry(figure.name, figure.title) for figure in report.figures]
    last = (
        (_CORPORA, "Corpora", report.corpora),
        (_PARAMETERS, "Parameters", report.parameters),
        (_MACHINE, "Machine, versions, time", True),
        (_RUNS, "Runs", report.runs),
    )
    entries += [entry(name, title) for name, title, there in last if there]
    return element("nav", element("ul", *entries), aria_label="Contents")


def _tally(counts: Counts) -> str:
    parts = (("above", counts.above), ("equal", counts.equal), ("below", counts.below), ("not run", counts.missing))
    return ", ".join(f"{count:,} {name}" for name, count in parts if count)


def _section(name: str, title: str, *inside: str) -> str:
    return element("section", element("h2", text(title)), *inside, id=name)


def _figures(figures: Sequence[Figure], pictures: Mapping[str, str]) -> str:
    return element("div", *(_figure(figure, pictures.get(figure.name)) for figure in figures), class_="gallery")


def _figure(figure: Figure, picture: str | None) -> str:
    if isinstance(figure, CurveFigure):
        said = f"{figure.caption} Curves: {', '.join(curve.label for curve in figure.curves)}."
        numbers = _curve_numbers(figure.curves)
    else:
        said = f"{figure.caption} {len(figure.x):,} points of {len(set(figure.labels)):,} labels."
        numbers = _point_numbers(figure)
    drawn = (
        element("p", "This figure was not drawn.", class_="missing")
        if picture is None
        else element("div", inline_svg(picture, figure.name, figure.title, said), class_="picture")
    )
    return element(
        "figure",
        element("h3", text(figure.title)),
        drawn,
        element("figcaption", text(figure.caption)),
        element("details", element("summary", "In numbers"), element("div", numbers, class_="box")),
        id=figure.name,
    )


def _curve_numbers(curves: Sequence[Curve]) -> str:
    heads = ["Recall (%)", *map(str, _RECALLS)]
    rows = []
    for curve in curves:
        precisions = (_precision_at(curve, recall / 100) for recall in _RECALLS)
        rows.append([curve.label, *("–" if value is None else f"{100 * value:.1f}" for value in precisions)])
    return _grid("Precision (%), read off the curve between its two nearest points", heads, rows)


def _precision_at(curve: Curve, recall: float) -> float | None:
    """A straight line between the points on both sides; None before the first and after the last."""
    along = sorted(zip(curve.recall, curve.precision, strict=True))
    for (before, high), (after, low) in pairwise(along):
        if before <= recall <= after:
            return high if before == after else high + (low - high) * (recall - before) / (after - before)
    return along[0][1] if along[0][0] == recall else None


def _point_numbers(figure: PointsFigure) -> str:
    counts = Counter(figure.labels)
    return _grid("Points by label", ["Label", "Points"], [[label, f"{counts[label]:,}"] for label in sorted(counts)])


def _corpora(corpora: Sequence[CorpusFacts]) -> str:
    heads = ["Corpus", "Training documents", "Test documents", "Words", "Words and bigrams", "Queries",
             "Queries skipped", "Without a label"]  # fmt: skip
    rows = []
    for facts in corpora:
        counts = (
            facts.training_documents, facts.test_documents, facts.words, facts.features, facts.queries, facts.skipped,
            facts.unlabelled,
        )  # fmt: skip
        title = f"{facts.title} (stands in for {facts.stands_for})" if facts.stands_for else facts.title
        rows.append([title, *("–" if count is None else f"{count:,}" for count in counts)])
    caption = (
        "Words and bigrams are those of the vocabulary. Skipped are queries without any relevant document; documents "
        "without a label were left out of the test."
    )
    sentences = (
        element("dt", text(facts.title)) + element("dd", text(f"{facts.relevance} {facts.note}".strip()))
        for facts in corpora
    )
    grid = _grid(caption, heads, rows)
    return element("div", grid, class_="box") + element("h3", "What is relevant") + element("dl", *sentences)


def _parameters(sets: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterable[str]:
    for name, parameters in sets:
        rows = [[key, _said(value)] for key, value in parameters.items()]
        grid = _grid(f"Parameters of {name}", ["Parameter", "Value"], rows, seen=False)
        yield element("details", element("summary", text(name)), element("div", grid, class_="box"))


def _circumstances(report: Report) -> str:
    facts = [
        *report.machine.items(),
        ("time taken", _duration(report.seconds)),
        ("seeds", ", ".join(map(str, report.seeds))),
        ("parabit", report.parabit),
        *((name, version) for name, version in report.versions.items() if name != "parabit"),
        ("made", report.generated),
    ]
    pairs = (element("div", element("dt", text(name)), element("dd", text(fact))) for name, fact in facts)
    return element("dl", *pairs, class_="facts")


def _runs(runs: Sequence[Mapping[str, Any]]) -> str:
    heads = list(dict.fromkeys(key for run in runs for key in run))
    rows = [[_said(run[key]) if key in run else "" for key in heads] for run in runs]
    summary = element("summary", f"All {len(runs):,} runs" if len(runs) > 1 else "The run")
    return element(
        "details", summary, element("div", _grid("Each training and what it gave", heads, rows), class_="box")
    )


def _grid(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], seen: bool = True) -> str:
    """A plain table: the first column names the row. A caption that repeats what is above it is for the ear alone."""
    lines = list(rows)
    # Columns of numbers stand to the right, so that digits are below each other; words to the left.
    names = [None if all(_is_number(line[place]) for line in lines) else "words" for place in range(len(heads))]
    head = (element("th", text(name), scope="col", class_=kind) for name, kind in zip(heads, names, strict=True))
    body = []
    for first, *rest in lines:
        cells = (element("td", text(value), class_=kind) for value, kind in zip(rest, names[1:], strict=True))
        body.append(element("tr", element("th", text(first), scope="row"), *cells))
    said = element("caption", text(caption), class_=None if seen else "unseen")
    return element("table", said, element("thead", element("tr", *head)), element("tbody", *body))


def _is_number(value: str) -> bool:
    try:
        float(value.replace(",", ""))
    except ValueError:
        return value in ("", "–")
    return True


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _seeds(seeds: Sequence[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"


def _duration(seconds: float) -> str:
    """Hours and minutes, or minutes and seconds: two units say enough."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

"""What a run of `parabit reproduce` found, as plain data: to be shown by `html`, drawn by `plots` and kept as JSON.

Nothing here measures or draws. A report holds what was measured, with the paper's figure beside each of ours.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from math import isfinite
from typing import Any, Literal, NamedTuple, get_args

from parabit.errors import EvaluationError

FORMAT = 1  # of the JSON

Family = Literal["binary", "real", "baseline"]
Standing = Literal["above", "equal", "below"]

# The paper gives two decimals: what is nearer than half of the last one cannot be told from it.
_ROUNDING = 0.005


@dataclass(frozen=True)
class Cell:
    """A figure of the paper and ours: the mean over seeds and its spread (standard deviation).

    Example:
        >>> cell = Cell(paper=0.35, mean=0.4115, spread=0.0039, seeds=3)
        >>> round(cell.difference, 4), cell.standing
        (0.0615, 'above')
    """

    paper: float | None  # None: the paper has no such figure
    mean: float | None  # None: not run
    spread: float | None  # None: not run, or with one seed
    seeds: int
    note: str = ""
    command: str = ""  # that gives this figure again

    def __post_init__(self) -> None:
        for name in ("paper", "mean", "spread"):
            value = getattr(self, name)
            if value is not None and not isfinite(value):
                raise EvaluationError(f"a cell's {name} is {value}", hint="give None for what was not measured")

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's; None where one of them is missing."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    @property
    def standing(self) -> Standing | None:
        """Whether ours is above, equal to or below the paper's figure, which has two decimals."""
        if self.difference is None:
            return None
        if abs(self.difference) < _ROUNDING:
            return "equal"
        return "above" if self.difference > 0 else "below"


@dataclass(frozen=True)
class Row:
    """A row of a table: what it is about, then its cells. A cell is None where the combination has no sense.

    Example:
        >>> Row(("128", "PV-DM"), (Cell(0.41, 0.43, 0.005, seeds=3), None)).labels
        ('128', 'PV-DM')
    """

    labels: tuple[str, ...]
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Group:
    """A corpus and the metrics that a table has for it.

    A corpus that stands in for one of the paper's, which cannot be had, is a check of the method: the paper's figure
    beside it is that of another corpus.

    Example:
        >>> Group("Reuters-21578", stands_for="RCV1", metrics=("MAP", "NDCG@10")).stands_for
        'RCV1'
    """

    title: str
    stands_for: str | None
    metrics: tuple[str, ...]


class Counts(NamedTuple):
    """How many cells stand how beside the paper's figures."""

    above: int
    equal: int
    below: int
    missing: int  # the paper has a figure and we have none
    stand_in: int  # run on a corpus that stands in for the paper's, so not compared
    unmatched: int  # run, and the paper has no such figure


@dataclass(frozen=True)
class Table:
    """A table: a row's cells go through the metrics of all groups, in order.

    Example:
        >>> group = Group("20 Newsgroups", None, ("MAP", "NDCG@10"))
        >>> row = Row(("PV-DM",), (Cell(0.41, 0.43, 0.005, seeds=3), Cell(0.73, None, None, seeds=0)))
        >>> table = Table("table1", "Table 1", "Retrieval.", ("Model",), (group,), (row,), below=())
        >>> table.counts()
        Counts(above=1, equal=0, below=0, missing=1, stand_in=0, unmatched=0)
    """

    name: str
    title: str
    caption: str
    label_heads: tuple[str, ...]
    groups: tuple[Group, ...]
    rows: tuple[Row, ...]
    below: tuple[str, ...]  # sentences under the table: where ours is below the paper's, and why

    def __post_init__(self) -> None:
        _check_name(self.name)
        columns = len(self.columns)
        for row in self.rows:
            if len(row.labels) != len(self.label_heads) or len(row.cells) != columns:
                raise EvaluationError(
                    f"a row of {self.name} has {len(row.labels)} labels and {len(row.cells)} cells, where its heads "
                    f"have {len(self.label_heads)} and {columns}",
                    hint="give a cell, or None, for each metric of each group",
                )

    @property
    def columns(self) -> tuple[tuple[Group, str], ...]:
        """Group and metric of each cell of a row."""
        return tuple((group, metric) for group in self.groups for metric in group.metrics)

    def cells(self) -> Iterator[tuple[Row, Group, str, Cell]]:
        """All cells that are there, with where they are, row by row."""
        for row in self.rows:
            for (group, metric), cell in zip(self.columns, row.cells, strict=True):
                if cell is not None:
                    yield row, group, metric, cell

    def counts(self) -> Counts:
        """How ours stand beside the paper's, counted from the cells."""
        same = [cell for _, group, _, cell in self.cells() if not group.stands_for]
        standings = [cell.standing for cell in same]
        return Counts(
            above=standings.count("above"),
            equal=standings.count("equal"),
            below=standings.count("below"),
            missing=sum(cell.mean is None and cell.paper is not None for cell in same),
            stand_in=sum(cell.mean is not None for _, group, _, cell in self.cells() if group.stands_for),
            unmatched=sum(cell.mean is not None and cell.paper is None for cell in same),
        )


@dataclass(frozen=True)
class Curve:
    """A precision-recall curve, the mean over seeds; both are shares, from 0 to 1.

    The family decides how it is drawn: binary codes, real-valued vectors, or what others reached.

    Example:
        >>> Curve("Binary PV-DBOW", "binary", recall=(0.01, 1.0), precision=(0.8, 0.05)).family
        'binary'
    """

    label: str
    family: Family
    recall: tuple[float, ...]
    precision: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.family not in get_args(Family):
            raise EvaluationError(
                f"the curve {self.label!r} is of the family {self.family!r}",
                hint=f"give one of {', '.join(get_args(Family))}",
            )
        if len(self.recall) != len(self.precision) or not self.recall:
            raise EvaluationError(
                f"the curve {self.label!r} has {len(self.recall)} recalls and {len(self.precision)} precisions",
                hint="give one precision for each recall, and one or more",
            )
        if not all(0 <= share <= 1 for share in (*self.recall, *self.precision)):
            raise EvaluationError(
                f"the curve {self.label!r} leaves the range from 0 to 1", hint="give shares, not per cents"
            )


@dataclass(frozen=True)
class CurveFigure:
    """A figure of precision-recall curves.

    Example:
        >>> curve = Curve("Binary PV-DBOW", "binary", (0.01, 1.0), (0.8, 0.05))
        >>> CurveFigure("figure4-news-128", "20 Newsgroups, 128 bits", "Precision-recall.", (curve,)).name
        'figure4-news-128'
    """

    name: str
    title: str
    caption: str
    curves: tuple[Curve, ...]

    def __post_init__(self) -> None:
        _check_name(self.name)


@dataclass(frozen=True)
class PointsFigure:
    """A figure of documents as points in the plane, as t-SNE lays them out, each with its label.

    Example:
        >>> PointsFigure("figure7", "t-SNE", "Codes.", (0.0, 1.0), (2.0, 0.5), ("sci.crypt", "sci.space")).labels
        ('sci.crypt', 'sci.space')
    """

    name: str
    title: str
    caption: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not len(self.x) == len(self.y) == len(self.labels):
            raise EvaluationError(
                f"{self.name} has {len(self.x)} x, {len(self.y)} y and {len(self.labels)} labels",
                hint="give one of each for a point",
            )


@dataclass(frozen=True)
class CorpusFacts:
    """What a corpus was, as it was used. A number is None where this run did not count it.

    Example:
        >>> CorpusFacts("20newsgroups", "20 Newsgroups", None, 11_314, 7_532, words=101_631, features=None,
        ...             relevance="The same newsgroup.", queries=7_532, skipped=0, unlabelled=0).stands_for
    """

    name: str
    title: str
    stands_for: str | None
    training_documents: int
    test_documents: int
    words: int | None  # in the vocabulary
    features: int | None  # words and bigrams
    relevance: str  # a sentence: when a document is relevant to a query
    queries: int | None
    skipped: int | None  # queries without any relevant document
    unlabelled: int | None  # documents left out because they have no label
    note: str = ""


Figure = CurveFigure | PointsFigure


@dataclass(frozen=True)
class Report:
    """Everything that a run found. The dictionaries hold plain JSON values: text, numbers, lists, dictionaries.

    Example:
        >>> report = Report("Binary Paragraph Vectors, rerun", "parabit reproduce all", quick=False, parabit="0.1.0",
        ...                 generated="2026-11-15", seconds=1.5, seeds=(0, 1), machine={"cpu": "2 cores"})
        >>> Report.from_json(report.to_json()) == report
        True
    """

    title: str
    command: str
    quick: bool  # whether it is the short version, on fewer documents or epochs
    parabit: str  # version
    generated: str  # ISO date
    seconds: float
    seeds: tuple[int, ...]
    machine: dict[str, str]
    versions: dict[str, str] = field(default_factory=dict)
    parameters: tuple[tuple[str, dict[str, Any]], ...] = ()
    remarks: tuple[str, ...] = ()
    corpora: tuple[CorpusFacts, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    runs: list[dict[str, Any]] = field(default_factory=list)  # a record of each training

    def __post_init__(self) -> None:
        names = [part.name for part in (*self.tables, *self.figures)]
        for name in names:
            if names.count(name) > 1:
                raise EvaluationError(f"two parts of the report are called {name}", hint="give each its own name")

    def counts(self) -> Counts:
        """How ours stand beside the paper's, over all tables."""
        counts = [table.counts() for table in self.tables]
        return Counts(*(sum(getattr(count, name) for count in counts) for name in Counts._fields))

    def to_json(self) -> dict[str, Any]:
        """The report as JSON has it: `json.dumps` takes it, and loading that gives the same again."""
        return {"format": FORMAT, **_plain(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Report":
        """The report that `to_json` was called on."""
        given = dict(data)
        format = given.pop("format", None)
        if not isinstance(format, int):
            raise EvaluationError("this JSON is no report of `parabit reproduce`", hint="give its report.json")
        if format > FORMAT:
            raise EvaluationError(
                f"the report has format {format}, and this parabit knows up to {FORMAT}", hint="install a newer parabit"
            )
        try:
            return cls(
                **{
                    **given,
                    "seeds": tuple(given["seeds"]),
                    "parameters": tuple((name, parameters) for name, parameters in given["parameters"]),
                    "remarks": tuple(given["remarks"]),
                    "corpora": tuple(CorpusFacts(**facts) for facts in given["corpora"]),
                    "tables": tuple(_table(table) for table in given["tables"]),
                    "figures": tuple(_figure(figure) for figure in given["figures"]),
                }
            )
        except (KeyError, TypeError) as problem:
            raise EvaluationError(
                f"this JSON is no whole report of `parabit reproduce`: {problem}", hint="give its report.json"
            ) from problem


def _plain(value: Any) -> Any:
    """Dataclasses as dictionaries and tuples as lists, all the way down."""
    if is_dataclass(value):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def _table(data: Mapping[str, Any]) -> Table:
    groups = tuple(Group(**{**group, "metrics": tuple(group["metrics"])}) for group in data["groups"])
    rows = tuple(
        Row(tuple(row["labels"]), tuple(None if cell is None else Cell(**cell) for cell in row["cells"]))
        for row in data["rows"]
    )
    heads, below = tuple(data["label_heads"]), tuple(data["below"])
    return Table(**{**data, "label_heads": heads, "groups": groups, "rows": rows, "below": below})


def _figure(data: Mapping[str, Any]) -> Figure:
    if "curves" not in data:
        return PointsFigure(**{**data, **{name: tuple(data[name]) for name in ("x", "y", "labels")}})
    curves = (
        Curve(**{**curve, "recall": tuple(curve["recall"]), "precision": tuple(curve["precision"])})
        for curve in data["curves"]
    )
    return CurveFigure(**{**data, "curves": tuple(curves)})


def _check_name(name: str) -> None:
    """A name is that of a file and of a place on the page."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise EvaluationError(
            f"{name!r} cannot name a table or a figure", hint="take letters, digits, - and _, and begin with a letter"
        )

import json
from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_report import make_report

from parabit.errors import EvaluationError
from parabit.paper.report import Cell, Counts, Curve, CurveFigure, Group, PointsFigure, Report, Row, Table

FIGURES = st.none() | st.floats(allow_nan=False, allow_infinity=False)
CELLS = st.none() | st.builds(
    Cell, paper=FIGURES, mean=FIGURES, spread=FIGURES, seeds=st.integers(0, 9), note=st.text(), command=st.text()
)


def table_of(*cells: Cell | None, stands_for: str | None = None) -> Table:
    group = Group("News", stands_for, tuple(f"metric {number}" for number in range(len(cells))))
    return Table("table1", "Table 1", "", ("Model",), (group,), (Row(("PV-DM",), cells),), ())


def test_a_report_comes_back_from_json_as_it_was() -> None:
    report = make_report()
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_json_holds_nothing_that_json_would_change() -> None:
    data = make_report().to_json()
    assert json.loads(json.dumps(data)) == data


@given(st.lists(CELLS, max_size=4), st.text(), st.none() | st.text())
def test_cells_of_any_kind_come_back_from_json(cells: list[Cell | None], label: str, stands_for: str | None) -> None:
    table = replace(table_of(*cells, stands_for=stands_for), rows=(Row((label,), tuple(cells)),))
    report = replace(make_report(), tables=(table,))
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_json_of_a_newer_parabit_or_of_something_else_is_told_as_such() -> None:
    data = make_report().to_json()
    with pytest.raises(EvaluationError, match="format 99.*install a newer parabit"):
        Report.from_json({**data, "format": 99})
    with pytest.raises(EvaluationError, match="no report"):
        Report.from_json({"hits": []})
    with pytest.raises(EvaluationError, match="no whole report.*'tables'"):
        Report.from_json({key: value for key, value in data.items() if key != "tables"})
    with pytest.raises(EvaluationError, match="no whole report.*surprise"):
        Report.from_json({**data, "surprise": 1})


@pytest.mark.parametrize(
    ("paper", "mean", "standing"),
    [
        (0.35, 0.36, "above"),
        (0.35, 0.3549, "equal"),
        (0.35, 0.35, "equal"),
        (0.35, 0.3451, "equal"),
        (0.35, 0.3449, "below"),
        (0.35, None, None),
        (None, 0.35, None),
    ],
)
def test_a_figure_is_compared_to_the_decimals_that_the_paper_gives(
    paper: float | None, mean: float | None, standing: str | None
) -> None:
    assert Cell(paper, mean, None, 1).standing == standing


def test_the_difference_is_ours_minus_the_papers() -> None:
    assert Cell(0.25, 0.5, None, 1).difference == 0.25
    assert Cell(0.5, 0.25, None, 1).difference == -0.25
    assert Cell(0.5, None, None, 0).difference is None


def test_cells_are_counted_by_how_they_stand() -> None:
    cells = (
        Cell(0.3, 0.4, None, 1), Cell(0.3, 0.5, None, 1), Cell(0.3, 0.301, None, 1), Cell(0.3, 0.2, None, 1),
        Cell(0.3, None, None, 0), Cell(None, 0.3, None, 1), Cell(None, None, None, 0), None,
    )  # fmt: skip
    assert table_of(*cells).counts() == Counts(above=2, equal=1, below=1, missing=1, stand_in=0, unmatched=1)
    stand_in = table_of(*cells, stands_for="RCV1")
    assert stand_in.counts() == Counts(above=0, equal=0, below=0, missing=0, stand_in=5, unmatched=0)
    both = replace(make_report(), tables=(table_of(*cells), replace(stand_in, name="table2")))
    assert both.counts() == Counts(above=2, equal=1, below=1, missing=1, stand_in=5, unmatched=1)


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_what_is_no_number_is_no_figure(value: float) -> None:
    with pytest.raises(EvaluationError, match="give None"):
        Cell(0.3, value, None, 1)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: replace(table_of(None), rows=(Row(("PV-DM",), ()),)), "1 labels and 0 cells.*have 1 and 1"),
        (lambda: replace(table_of(None), rows=(Row((), (None,)),)), "0 labels and 1 cells"),
        (lambda: replace(table_of(None), name="../table1"), "cannot name"),
        (lambda: CurveFigure("a b", "", "", ()), "cannot name"),
        (lambda: PointsFigure("figure7", "", "", (0.0,), (), ("a",)), "1 x, 0 y and 1 labels"),
        (lambda: Curve("PV-DM", "binary", (1.0, 100.0), (0.9, 0.1)), "give shares, not per cents"),
        (lambda: Curve("PV-DM", "binary", (nan,), (0.9,)), "from 0 to 1"),
        (lambda: Curve("PV-DM", "binary", (0.1,), ()), "1 recalls and 0 precisions"),
        (lambda: Curve("PV-DM", "binary", (), ()), "0 recalls"),
        (lambda: Curve("PV-DM", "boolean", (0.1,), (0.9,)), "give one of binary, real, baseline"),  # type: ignore[arg-type]
        (lambda: replace(make_report(), tables=(table_of(None), table_of(None))), "called table1"),
    ],
)
def test_parts_that_do_not_fit_are_told_where_they_are_made(make: Any, told: str) -> None:
    with pytest.raises(EvaluationError, match=told):
        make()

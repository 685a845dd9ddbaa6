import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import get_args

import matplotlib as mpl
import numpy as np
import pytest
from made_up_report import make_report
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from parabit.errors import EvaluationError, ParabitError
from parabit.paper.plots import draw, points, precision_recall
from parabit.paper.report import Curve, CurveFigure, Family, PointsFigure

REPORT = make_report()
KINDS = [REPORT.figures[0], REPORT.figures[2]]

# In the words of the paper.
NEWSGROUPS = {
    "soc.religion.christian": "green",
    "talk.politics.guns": "red",
    "rec.sport.hockey": "blue",
    "talk.politics.mideast": "brown",
    "comp.graphics": "magenta",
    "sci.crypt": "black",
}


def new_axes() -> Axes:
    return FigureCanvasAgg(Figure()).figure.add_subplot()


def curves(count: int) -> list[Curve]:
    families = get_args(Family)
    return [
        Curve(f"model {number}", families[number % 3], (0.01, 0.1, 1.0), (0.9 - number / 20, 0.4, 0.05))
        for number in range(count)
    ]


@pytest.mark.parametrize("figure", KINDS, ids=lambda figure: figure.name)
def test_a_figure_drawn_twice_is_the_same_byte_for_byte(figure: CurveFigure | PointsFigure, tmp_path: Path) -> None:
    files = []
    # Nor do the reader's own settings change it.
    for name, settings in (("a", {}), ("b", {"font.size": 30, "svg.hashsalt": "x", "savefig.facecolor": "red"})):
        (tmp_path / name).mkdir()
        with mpl.rc_context(settings):
            draw(figure, tmp_path / name)
        files.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert files[0].keys() == {f"{figure.name}.svg", f"{figure.name}.png"}
    assert files[0] == files[1]
    assert files[0][f"{figure.name}.png"].startswith(b"\x89PNG")
    assert b"<dc:date>" not in files[0][f"{figure.name}.svg"]


def test_a_figure_is_drawn_again_over_the_old_one_and_needs_its_folder(tmp_path: Path) -> None:
    draw(KINDS[1], tmp_path)
    draw(KINDS[1], tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ParabitError, match="no folder"):
        draw(KINDS[1], tmp_path / "nowhere")


def test_curves_are_in_per_cent_on_named_axes() -> None:
    axes = new_axes()
    assert precision_recall(axes, [Curve("PV-DM", "real", (0.01, 1.0), (0.75, 0.05))]) is axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Recall (%)", "Precision (%)")
    assert axes.get_xscale() == "log"
    assert axes.get_xlim() == (0.1, 100)
    assert axes.get_ylim()[0] == 0
    ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert ticks[0] == "0.1"
    assert ticks[-1] == "100"
    assert np.allclose(axes.lines[0].get_xydata(), [[1, 75], [100, 5]])


def test_ten_curves_differ_in_colour_and_without_it() -> None:
    axes = precision_recall(new_axes(), curves(10))
    colours = [to_hex(line.get_color()) for line in axes.lines]
    assert len(set(colours)) == 10
    assert len({(line.get_linestyle(), line.get_marker()) for line in axes.lines}) == 10


def test_a_family_has_one_kind_of_line_and_no_other_has_it() -> None:
    given = curves(6)
    axes = precision_recall(new_axes(), given)
    kinds: dict[str, set[object]] = {}
    for curve, line in zip(given, axes.lines, strict=True):
        kinds.setdefault(curve.family, set()).add(str(line._dash_pattern) + str(line.get_linewidth()))  # type: ignore[attr-defined]
    assert all(len(kind) == 1 for kind in kinds.values())
    assert len(set.union(*kinds.values())) == 3


@pytest.mark.parametrize("count", [1, 4, 10])
def test_the_legend_names_each_curve_and_covers_none(count: int) -> None:
    axes = precision_recall(new_axes(), curves(count))
    axes.figure.canvas.draw()
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [f"model {number}" for number in range(count)]
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())
    assert not legend.get_window_extent().overlaps(axes.xaxis.label.get_window_extent())


def test_points_have_the_papers_colours_or_ones_of_their_own() -> None:
    labels = [*NEWSGROUPS, "sci.space", "misc.forsale"]
    axes = points(new_axes(), range(8), range(8), labels)
    colours = {cloud.get_label(): to_rgb(cloud.get_facecolor()[0][:3]) for cloud in axes.collections}
    for name, colour in NEWSGROUPS.items():
        apart = {named: np.abs(np.subtract(colours[name], to_rgb(named))).sum() for named in NEWSGROUPS.values()}
        assert min(apart, key=lambda named: apart[named]) == colour
    assert all(colours[one] != colours[other] for one, other in combinations(labels, 2))


def test_points_lie_where_they_are_on_equal_axes_without_ticks() -> None:
    axes = points(new_axes(), [0.0, 3.0, 1.0], [5.0, -2.0, 1.0], ["b", "a", "b"])
    assert axes.get_aspect() == 1
    assert not len(axes.get_xticks()) + len(axes.get_yticks())
    clouds = {str(cloud.get_label()): np.asarray(cloud.get_offsets()).tolist() for cloud in axes.collections}
    assert clouds == {"a": [[3, -2]], "b": [[0, 5], [1, 1]]}
    axes.figure.canvas.draw()
    legend = axes.get_legend()
    assert legend is not None
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())


def test_twenty_labels_look_different_from_each_other() -> None:
    labels = [f"topic {number}" for number in range(20)]
    axes = points(new_axes(), range(20), range(20), labels)
    looks = {(to_hex(cloud.get_facecolor()[0]), cloud.get_paths()[0].vertices.tobytes()) for cloud in axes.collections}
    assert len(looks) == 20


def test_nothing_to_draw_is_an_empty_figure(tmp_path: Path) -> None:
    draw(CurveFigure("empty-curves", "", "", ()), tmp_path)
    draw(PointsFigure("empty-points", "", "", (), (), ()), tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_drawing_leaves_pyplot_alone_and_importing_leaves_matplotlib_alone(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from parabit.paper.plots import draw
from parabit.paper.report import Curve, CurveFigure
import parabit.paper.html, parabit.index.map
assert not {"matplotlib", "openTSNE", "torch", "sklearn"} & sys.modules.keys()
draw(CurveFigure("figure4", "", "", (Curve("a", "real", (0.1,), (0.5,)),)), Path(sys.argv[1]))
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program, str(tmp_path)], check=True)


def test_a_missing_library_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    axes = new_axes()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for call in (
        lambda: draw(KINDS[0], tmp_path),
        lambda: precision_recall(axes, []),
        lambda: points(axes, [], [], []),
    ):
        with pytest.raises(EvaluationError, match=r"matplotlib is not installed.*parabit\[plot\]"):
            call()
    assert not list(tmp_path.iterdir())

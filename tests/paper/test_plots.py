"""Figures say what they were given, and are the same each time."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from parabit.paper.plots import Curve, draw, points, precision_recall

RECALL = (0.001, 0.01, 0.1, 1.0)
CURVES = [
    Curve("words", "Binary PV-DBOW, words", RECALL, (0.9, 0.7, 0.4, 0.05)),
    Curve("bigrams", "Binary PV-DBOW", RECALL, (0.9, 0.7, 0.4, 0.05)),
    Curve("floats", "PV-DBOW", RECALL, (0.95, 0.8, 0.5, 0.06)),
]


def test_curves_are_in_per_cent_and_differ_by_marker_and_line_not_only_by_colour() -> None:
    axes = precision_recall(Figure().add_subplot(), CURVES)
    lines = axes.get_lines()
    assert np.allclose(lines[0].get_ydata(), [90, 70, 40, 5])
    assert len({line.get_marker() for line in lines}) == 3
    assert (
        len({(line.get_linewidth(), str(vars(line)["_unscaled_dash_pattern"])) for line in lines})
        == 3
    )
    # Where curves coincide, all are still seen: a narrower one lies on a wider one, and markers stand apart.
    assert lines[0].get_linewidth() > lines[1].get_linewidth()
    assert lines[0].get_zorder() < lines[1].get_zorder()
    assert len({line.get_markevery() for line in lines}) == 3
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["words", "bigrams", "floats"]
    assert axes.get_ylim() == (40, 100)  # but for the last point, at which all curves meet


def test_every_label_has_its_points_and_its_own_shape() -> None:
    labels = ["sci.crypt", "rec.autos", "sci.crypt", "misc.forsale"]
    axes = points(Figure().add_subplot(), [0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0], labels)
    drawn = {
        collection.get_label(): len(np.asarray(collection.get_offsets()))
        for collection in axes.collections
    }
    assert drawn == {"sci.crypt": 2, "rec.autos": 1, "misc.forsale": 1}
    shapes = [
        np.asarray(collection.get_paths()[0].vertices).tobytes() for collection in axes.collections
    ]
    assert len(set(shapes)) == 3


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_figure_is_the_same_file(kind: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        draw(tmp_path / f"{name}.{kind}", lambda axes: precision_recall(axes, CURVES))
    assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()

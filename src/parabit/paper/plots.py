"""The paper's figures: precision-recall curves, and documents as points in the plane.

Functions take axes, draw on them and return them; only `draw` writes a file. pyplot is never imported, so that a
program that uses it finds its figures and settings unchanged.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from parabit.paper.corpora import PAPER
from parabit.storage import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Curve(NamedTuple):
    """A precision-recall curve; both are shares, from 0 to 1."""

    label: str
    look: str  # one of `looks` in paper.toml
    recall: Sequence[float]
    precision: Sequence[float]


# Per cent of recall, each twice the one before, as in Salakhutdinov and Hinton's figures.
RECALLS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 100.0)

# Of points in the plane.
_COLOURS = ("#0072B2", "#E69F00", "#882255", "#009E73", "#56B4E9", "#1A1A1A", "#D55E00")
_MARKERS = "os^DvP<"

_NEWSGROUPS: dict[str, str] = PAPER["newsgroups"]
_STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that the figure is the same everywhere
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "svg.hashsalt": "parabit",  # ids inside the file are random otherwise
    "svg.fonttype": "path",
}


def precision_recall(axes: "Axes", curves: Sequence[Curve]) -> "Axes":
    """Draw precision over recall, both in per cent, recall on a logarithmic axis; the legend is below."""
    from matplotlib.ticker import NullLocator

    for number, curve in enumerate(curves):
        axes.plot(
            100 * np.array(curve.recall),
            100 * np.array(curve.precision),
            label=curve.label,
            markevery=(number % 4, 4),  # at different places, so that curves that coincide all show
            **{"markersize": 4.5} | PAPER["looks"][curve.look],
        )
    axes.set_xscale("log")
    axes.set_xlim(RECALLS[0], RECALLS[-1])
    axes.set_xticks(RECALLS, [f"{recall:g}" for recall in RECALLS])
    axes.xaxis.set_minor_locator(NullLocator())
    # The last point is that of all documents, where every curve falls to the same precision: it may leave the frame.
    highest = 100 * max(max(curve.precision) for curve in curves)
    lowest = 100 * min(min(curve.precision[:-1]) for curve in curves)
    axes.set_ylim(10 * np.floor(lowest / 10), min(100.0, 10 * np.ceil(1.02 * highest / 10)))
    axes.set_xlabel("Recall (%)")
    axes.set_ylabel("Precision (%)")
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    _legend_below(axes, [curve.label for curve in curves], handlelength=3.5)
    return axes


def points(axes: "Axes", x: Sequence[float], y: Sequence[float], labels: Sequence[str]) -> "Axes":
    """Draw documents as points, coloured by label; the six newsgroups of the paper have the colours it gives them."""
    across, up, of = np.asarray(x), np.asarray(y), np.asarray(labels)
    names = [
        *(name for name in _NEWSGROUPS if name in labels),
        *sorted(set(labels) - _NEWSGROUPS.keys()),
    ]
    # Points shrink as they become many, so that a cluster stays a cloud of points.
    area = float(np.clip(16_000 / len(labels), 4, 22))
    for number, name in enumerate(names):
        axes.scatter(
            across[of == name],
            up[of == name],
            s=area,
            label=name,
            color=_NEWSGROUPS.get(name, _COLOURS[number % len(_COLOURS)]),
            marker=_MARKERS[number % len(_MARKERS)],
            alpha=0.8,
            edgecolors="white",  # a thin line around each, or a dense cluster would be a blot
            linewidths=0.2,
        )
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#BBBBBB")
    legend = _legend_below(axes, names, handletextpad=0.3)
    for handle in legend.legend_handles:
        handle.set(sizes=[32], alpha=1)
    return axes


def draw(path: Path, on: "Callable[[Axes], Axes]", square: bool = False) -> None:
    """Write what a function draws on axes to a file, by its ending SVG or PNG: the same each time, byte for byte."""
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # From matplotlib's own settings, not the reader's.
    with style.context(["default", _STYLE]):
        canvas = FigureCanvasAgg(Figure(figsize=(5.2, 5.2 if square else 3.5)))
        on(canvas.figure.add_subplot())
        with whole_file(path) as partial:
            canvas.figure.savefig(
                partial,
                format=path.suffix[1:],
                dpi=150,
                bbox_inches="tight",
                metadata={"Date": None},
            )


def _legend_below(axes: "Axes", names: Sequence[str], **options: Any) -> Any:
    """A legend under the axes, in as many columns as the names leave room for."""
    columns = min(len(names), max(1, 84 // (max(map(len, names)) + 12)), 3)
    below = (0.5, -0.17 if axes.get_xlabel() else -0.02)
    return axes.legend(
        loc="upper center",
        bbox_to_anchor=below,
        ncols=columns,
        frameon=False,
        columnspacing=1.5,
        **options,
    )

"""The paper's figures: precision-recall curves, and documents as points in the plane.

Functions take axes, draw on them and return them; only `draw` writes a file. matplotlib is imported when something is
drawn, and pyplot never, so that a program that uses it finds its figures and settings unchanged.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from parabit.errors import EvaluationError, need
from parabit.storage import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Family = Literal["binary", "real", "baseline"]


class Curve(NamedTuple):
    """A precision-recall curve; both are shares, from 0 to 1. The family decides how it is drawn."""

    label: str
    family: Family
    recall: Sequence[float]
    precision: Sequence[float]


# Okabe and Ito's colours, for all kinds of eyes, without the yellow that is invisible on white, and three more;
# neighbours differ in lightness. In grey, each curve still has its own marker, and each family its own kind of line.
_COLOURS = (
    "#0072B2",
    "#E69F00",
    "#882255",
    "#009E73",
    "#56B4E9",
    "#1A1A1A",
    "#D55E00",
    "#CC79A7",
    "#808020",
    "#777777",
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
_AREAS = {"s": 0.8, "D": 0.7, "P": 1.2, "^": 1.15, "v": 1.15}  # of a marker that looks as large as a circle of area 1

_LINES: dict[Family, dict[str, Any]] = {
    "binary": {"linestyle": "-", "linewidth": 1.7},
    "real": {"linestyle": (0, (5, 2)), "linewidth": 1.3, "markerfacecolor": "white"},
    "baseline": {"linestyle": (0, (1, 1.5)), "linewidth": 1.3, "markerfacecolor": "white"},
}

# Per cent of recall, each twice the one before, as in Salakhutdinov and Hinton's figures.
_RECALLS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 100)

# The colours that the paper's appendix names, in shades that print.
_NEWSGROUPS = {
    "soc.religion.christian": "#1B9E3E",
    "talk.politics.guns": "#E31A1C",
    "rec.sport.hockey": "#1F5FD6",
    "talk.politics.mideast": "#8C5A1E",
    "comp.graphics": "#E815C4",
    "sci.crypt": "#1A1A1A",
}

_STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that the figure is the same everywhere
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.titlesize": 10,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "svg.hashsalt": "parabit",  # ids inside the file are random otherwise
    "svg.fonttype": "path",
}

# What a file would say of when and by what it was written.
_TELLTALE = {"svg": ("Date", "Creator", "Format", "Type"), "png": ("Software",)}


def precision_recall(axes: "Axes", curves: Sequence[Curve]) -> "Axes":
    """Draw precision over recall, both in per cent, recall on a logarithmic axis; the legend is below.

    What a curve has below 0.1 % recall is off the axis.

    Example:
        >>> from matplotlib.figure import Figure
        >>> curve = Curve("Binary PV-DBOW", "binary", recall=(0.01, 0.1, 1.0), precision=(0.8, 0.6, 0.05))
        >>> precision_recall(Figure().add_subplot(), [curve]).get_xlabel()
        'Recall (%)'
    """
    need("matplotlib", "plot", EvaluationError)
    from matplotlib.ticker import NullLocator

    for number, curve in enumerate(curves):
        recall, precision = 100 * np.array(curve.recall), 100 * np.array(curve.precision)
        shown = recall > 0  # a logarithm has no 0
        axes.plot(
            recall[shown],
            precision[shown],
            label=curve.label,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=4.5,
            # Every tenth of the axes' diagonal, and not all curves at the same places.
            markevery=(0.1 * (number % 4) / 4 + 0.01, 0.1),
            zorder=3 if curve.family == "binary" else 2.5,
            **_LINES[curve.family],
        )
    axes.set_xscale("log")
    axes.set_xlim(_RECALLS[0], _RECALLS[-1])
    axes.set_xticks(_RECALLS, [f"{recall:g}" for recall in _RECALLS])
    axes.xaxis.set_minor_locator(NullLocator())
    highest = max((100 * precision for curve in curves for precision in curve.precision), default=100.0)
    axes.set_ylim(0, min(100.0, 10 * np.ceil(1.02 * highest / 10)))
    axes.set_xlabel("Recall (%)")
    axes.set_ylabel("Precision (%)")
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if curves:
        _legend_below(axes, [curve.label for curve in curves], handlelength=3.5)
    return axes


def points(axes: "Axes", x: Sequence[float], y: Sequence[float], labels: Sequence[str]) -> "Axes":
    """Draw documents as points, coloured by label; the six newsgroups of the paper have the colours it gives them.

    The legend, below, has the paper's newsgroups in its order, then the other labels by name.

    Example:
        >>> from matplotlib.figure import Figure
        >>> axes = points(Figure().add_subplot(), [0.0, 1.0], [2.0, 0.5], ["sci.crypt", "sci.space"])
        >>> [text.get_text() for text in axes.get_legend().get_texts()]
        ['sci.crypt', 'sci.space']
    """
    need("matplotlib", "plot", EvaluationError)
    across, up, of = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64), np.asarray(labels)
    names = [*(name for name in _NEWSGROUPS if name in labels), *sorted(set(labels) - _NEWSGROUPS.keys())]
    # Points shrink as they become many, so that a cluster stays a cloud of points.
    area = float(np.clip(16_000 / max(1, len(labels)), 4, 22))
    free = [colour for colour in _COLOURS if colour not in _NEWSGROUPS.values()]
    for number, name in enumerate(names):
        marker = _MARKERS[number % 7]  # 7 shapes and 9 free colours: 63 labels before one repeats
        axes.scatter(
            across[of == name],
            up[of == name],
            s=area * _AREAS.get(marker, 1),
            label=name,
            color=_NEWSGROUPS.get(name, free[number % len(free)]),
            marker=marker,
            alpha=0.8,
            edgecolors="white",  # a thin line around each, or a dense cluster would be a blot
            linewidths=0.2,
        )
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#BBBBBB")
    if names:
        legend = _legend_below(axes, names, handletextpad=0.3)
        for handle in legend.legend_handles:
            handle.set(sizes=[32], alpha=1)
    return axes


def draw(path: Path, on: "Callable[[Axes], Axes]", square: bool = False) -> None:
    """Write what a function draws on axes to a file, by its ending SVG or PNG: the same each time, byte for byte.

    Example:
        >>> import tempfile
        >>> curve = Curve("Binary PV-DBOW", "binary", recall=(0.01, 0.1, 1.0), precision=(0.8, 0.6, 0.05))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     draw(Path(folder) / "figure4.svg", lambda axes: precision_recall(axes, [curve]))
        ...     [path.name for path in Path(folder).iterdir()]
        ['figure4.svg']
    """
    need("matplotlib", "plot", EvaluationError)
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # From matplotlib's own settings, not the reader's.
    with style.context(["default", _STYLE]):
        canvas = FigureCanvasAgg(Figure(figsize=(5.2, 5.2 if square else 3.5)))
        on(canvas.figure.add_subplot())
        kind = path.suffix[1:]
        with whole_file(path) as partial:
            canvas.figure.savefig(
                partial, format=kind, dpi=150, bbox_inches="tight", metadata=dict.fromkeys(_TELLTALE[kind])
            )


def _legend_below(axes: "Axes", names: Sequence[str], **options: Any) -> Any:
    """A legend under the axes, in as many columns as the names leave room for."""
    longest = max(map(len, names))
    columns = min(len(names), max(1, 84 // (longest + 12)), 3)
    return axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.17 if axes.get_xlabel() else -0.02), ncols=columns, frameon=False,
        columnspacing=1.5, **options,
    )  # fmt: skip

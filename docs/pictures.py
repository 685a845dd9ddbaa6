"""Draws the pictures of the documentation: `python docs/pictures.py` writes docs/images/.

Quality against bytes per document comes from results/report.json alone, and is drawn only if that report is of the
closed form; how it works is drawn by hand. Both are plain SVG with a light background, so that they are readable on
light and dark pages, and the same each time they are drawn.
"""

import json
from collections.abc import Sequence
from html import escape
from math import log2
from pathlib import Path
from typing import NamedTuple

from parabit.paper.report import Report

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"

INK, SOFT, LINE, PAPER = "#1f2933", "#5b6773", "#c3cad2", "#fbfcfd"
OURS, PUBLISHED, BITS, FLOATS = "#1558b0", "#1f2933", "#8a6d3b", "#6a7f5a"

# Rows of the report's table of peers, by how much they keep of a document: 32 bits or floats, and 128.
_BITS, _FLOATS = (4, 16), (128, 512)


class Series(NamedTuple):
    """What a line shows: quality by bytes per document."""

    name: str
    points: tuple[tuple[int, float], ...]
    colour: str
    strong: bool = False


class Panel(NamedTuple):
    """One metric of 20 Newsgroups."""

    metric: str
    series: tuple[Series, ...]
    words: float  # of BM25, whose index has no fixed size per document
    lowest: float
    highest: float


def panels(report: Report) -> list[Panel]:
    """The figures that are drawn, from the report."""
    tables = {table.name: table for table in report.tables}
    found = {
        (name, row.labels, metric): cell
        for name in ("peers", "table1")
        for row, group, metric, cell in tables[name].cells()
        if group.title == "20 Newsgroups"
    }

    def ours(metric: str, *rows: str) -> tuple[float, ...]:
        figures = [found["peers", (row,), metric].mean for row in rows]
        assert all(figure is not None for figure in figures)
        return tuple(figure for figure in figures if figure is not None)

    def by_size(metric: str, row: str, unit: str) -> tuple[float, ...]:
        return ours(metric, *(f"{row}, {size} {unit}" for size in (32, 128)))

    def published(metric: str) -> tuple[float, ...]:
        figures = [found["table1", (size, "Binary PV-DBOW", "no"), metric].paper for size in ("32", "128")]
        return tuple(figure for figure in figures if figure is not None)

    drawn = []
    for metric, lowest, highest in (("MAP", 0.15, 0.6), ("NDCG@10", 0.5, 0.78)):
        wide = "the same with 10,000 words"
        series = (
            Series("parabit", _at(_BITS, by_size(metric, "parabit, default", "bits")), OURS, strong=True),
            Series("the paper", _at(_BITS, published(metric)), PUBLISHED),
            Series("semantic hashing", _at(_BITS, by_size(metric, wide, "bits")), BITS),
            Series("LSA + ITQ", _at(_BITS, by_size(metric, "LSA + iterative quantization", "bits")), BITS),
            Series("LSA + hyperplanes", _at(_BITS, by_size(metric, "LSA + random hyperplanes", "bits")), BITS),
            Series("LSA, floats", _at(_FLOATS, by_size(metric, "LSA", "floats")), FLOATS),
            Series("Doc2Vec, floats", _at(_FLOATS, by_size(metric, "gensim Doc2Vec", "floats")), FLOATS),
        )
        [words] = ours(metric, "BM25")
        drawn.append(Panel(metric, series, words, lowest, highest))
    return drawn


def _at(sizes: Sequence[int], figures: Sequence[float]) -> tuple[tuple[int, float], ...]:
    return tuple(zip(sizes, figures, strict=True))


def quality_bytes(drawn: Sequence[Panel]) -> str:
    """Quality against bytes per document, one panel per metric."""
    width, height, gap = 470, 420, 20
    parts = [
        _text(24, 32, "Quality against bytes per document", size=17, weight="600"),
        _text(24, 52, "20 Newsgroups: test posts query each other; higher is better. Mean of 3 seeds.", colour=SOFT),
    ]
    for number, panel in enumerate(drawn):
        parts += _panel(panel, 24 + number * (width + gap), 76, width, height)
    return _svg(24 + 2 * width + gap + 12, 76 + height + 20, parts)


def _panel(panel: Panel, left: int, top: int, width: int, height: int) -> list[str]:
    inner_left, inner_right, inner_top, inner_bottom = left + 40, left + width - 14, top + 22, top + height - 44

    def across(size: float) -> float:
        return inner_left + 18 + (inner_right - inner_left - 36) * log2(size / 4) / log2(512 / 4)

    def up(figure: float) -> float:
        return inner_bottom - (inner_bottom - inner_top) * (figure - panel.lowest) / (panel.highest - panel.lowest)

    parts = [_text(left, top + 6, panel.metric, size=14, weight="600")]
    step = 0.1
    ticks = [round(step * tick, 1) for tick in range(10) if panel.lowest <= step * tick <= panel.highest + 1e-9]
    for tick in ticks:
        parts.append(_line(inner_left, up(tick), inner_right, up(tick), LINE, 0.7))
        parts.append(_text(inner_left - 8, up(tick) + 4, f"{tick:.1f}".lstrip("0"), colour=SOFT, anchor="end"))
    for size in (4, 16, 64, 128, 256, 512):
        parts.append(_line(across(size), inner_bottom, across(size), inner_bottom + 5, SOFT, 1))
        parts.append(_text(across(size), inner_bottom + 19, str(size), colour=SOFT, anchor="middle"))
    middle = (across(4) + across(512)) / 2
    parts.append(_text(middle, inner_bottom + 37, "bytes per document", colour=SOFT, anchor="middle"))
    parts.append(_line(inner_left, up(panel.words), inner_right, up(panel.words), SOFT, 1.2, dash="5 4"))
    parts.append(
        _text(inner_right, up(panel.words) - 5, f"BM25, all words {_shown(panel.words)}", colour=SOFT, anchor="end")
    )
    lowest_name = 0.0
    for one in sorted(panel.series, key=lambda one: -one.points[-1][1]):
        spots = [(across(size), up(figure)) for size, figure in one.points]
        parts += _marked(one, spots)
        x, y = spots[-1]
        name = f"{one.name} {_shown(one.points[-1][1])}"
        if one.points[-1][0] > 16:  # there is no room to the right
            heights = [height for _, height in spots]
            place = min(heights) - 7 if one.name.startswith("LSA") else max(heights) + 17
            parts.append(_text((x + spots[0][0]) / 2, place, name, colour=one.colour, anchor="middle"))
            continue
        # Names are moved apart where they would touch.
        place = max(y, lowest_name + 15)
        lowest_name = place
        if place > y + 1:
            parts.append(_line(x + 5, y, x + 13, place, one.colour, 0.8))
        parts.append(_text(x + 16, place + 4, name, colour=one.colour, weight="600" if one.strong else "400"))
    return parts


def _shown(figure: float) -> str:
    return f"{figure:.2f}".lstrip("0")


def _marked(one: Series, spots: Sequence[tuple[float, float]]) -> list[str]:
    """A line with a mark at each end."""
    (first_x, first_y), (x, y) = spots
    radius, fill = 5.5 if one.strong else 4, PAPER if one.colour == PUBLISHED else one.colour
    return [
        _line(first_x, first_y, x, y, one.colour, 3 if one.strong else 1.6),
        *(
            f'<circle cx="{spot_x:.1f}" cy="{spot_y:.1f}" r="{radius}" fill="{fill}" stroke="{one.colour}" '
            'stroke-width="1.6"/>'
            for spot_x, spot_y in spots
        ),
    ]


def how_it_works() -> str:
    """From documents to codes to hits, in one figure."""
    bits = "1011001000101110"
    other = "1011011000101010"
    parts = [
        _text(24, 34, "Learn", size=16, weight="600", colour=OURS),
        _text(84, 34, "once, without labels", size=13, colour=SOFT),
        *_box(24, 48, 150, 150, "Documents"),
        *_written(40, 88, (110, 96, 104, 60, 110, 88)),
        *_arrow(174, 123, 204, 123),
        *_box(204, 48, 150, 150, "Words, counted"),
        *_listed(220, 92, ("telescope  2", "orbit  1", "repaired  1", "astronauts  1")),
        *_arrow(354, 123, 384, 123),
        *_box(384, 48, 366, 150, "Closed form: codes, then word vectors"),
        _text(404, 92, "LSA, neighbours", colour=SOFT),
        *_bars(404, 134, (12, -9, 15, 7, -14, -5, 18, -10)),
        *_arrow(492, 134, 518, 134),
        _text(526, 92, "rotated, signs", colour=SOFT),
        *_squares(526, 126, bits[:8]),
        *_arrow(644, 134, 666, 134),
        _text(672, 92, "words", colour=SOFT),
        *_listed(672, 122, ("log odds", "of each", "bit"), 15),
        _text(404, 182, "Similar words and neighbours, similar bits.", colour=SOFT),
        *_arrow(750, 123, 780, 123),
        *_box(780, 48, 176, 150, "Encoder"),
        *_listed(796, 92, ("words × matrix", "signs of the sums", "= the code"), 19),
        _text(796, 160, "one sparse product,", colour=SOFT),
        _text(796, 177, "8 bits per number", colour=SOFT),
        _text(24, 246, "Search", size=16, weight="600", colour=OURS),
        _text(96, 246, "millions of documents", size=13, colour=SOFT),
        *_box(24, 260, 216, 150, "Index: 16 bytes each"),
    ]
    for row, code in enumerate((other, "0100110111010001", "1110001010010110", "0011101001101100")):
        parts += _squares(40, 298 + row * 22, code, size=9, gap=2, strong=row == 0)
    parts += [
        _text(40, 400, "every document, encoded", colour=SOFT),
        *_box(24, 428, 216, 62, "Query"),
        _text(40, 474, "“hubble telescope repair”", style="italic"),
        *_arrow(240, 459, 300, 459),
        _text(248, 450, "encode", colour=SOFT, size=11),
        *_squares(308, 454, bits, size=9, gap=2, strong=True),
        *_arrow(396, 448, 396, 412),
        *_box(300, 260, 230, 150, "1  Select"),
        *_listed(316, 302, ("codes that differ least:",), 18),
        *_squares(316, 312, bits, size=9, gap=2),
        *_squares(316, 328, other, size=9, gap=2, strong=True),
        *_squares(316, 344, "".join("10"[a == b] for a, b in zip(bits, other, strict=True)), size=9, gap=2, marks=True),
        _text(500, 353, "2", weight="600", colour="#b03a2e"),
        _text(316, 382, "exact, and without a scan", colour=SOFT),
        _text(316, 398, "if there are many", colour=SOFT),
        *_arrow(240, 335, 300, 335),
        *_arrow(530, 335, 560, 335),
        *_box(560, 260, 190, 150, "2  Rank"),
        *_listed(
            576, 308, ("by distance, or by", "real activations,", "real vectors, words,", "words and activations"), 19
        ),
        _text(576, 394, "what was selected", colour=SOFT),
        *_arrow(750, 335, 780, 335),
        *_box(780, 260, 176, 150, "Hits"),
    ]
    for row, widths in enumerate(((120, 96), (112, 70), (126, 88))):
        parts.append(_text(796, 302 + row * 38, str(row + 1), weight="600", colour=OURS))
        parts += _written(814, 294 + row * 38, widths, 11)
    return _svg(980, 510, parts)


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, -apple-system, \'Segoe UI\', Helvetica, Arial, sans-serif" font-size="12.5">',
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{PAPER}" stroke="{LINE}"/>',
        *parts,
        "</svg>\n",
    ])  # fmt: skip


def _text(
    x: float, y: float, text: str, *, size: float | None = None, colour: str = INK, weight: str = "400",
    anchor: str = "start", style: str = "normal",
) -> str:  # fmt: skip
    more = "" if size is None else f' font-size="{size}"'
    more += "" if weight == "400" else f' font-weight="{weight}"'
    more += "" if anchor == "start" else f' text-anchor="{anchor}"'
    more += "" if style == "normal" else f' font-style="{style}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{more}>{escape(text)}</text>'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, width: float, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}" '
        f'stroke-width="{width}" stroke-linecap="round"{dashed}/>'
    )


def _box(x: int, y: int, width: int, height: int, title: str) -> list[str]:
    return [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="#ffffff" stroke="{LINE}"/>',
        _text(x + 16, y + 24, title, weight="600", size=13),
    ]


def _arrow(x: float, y: float, to_x: float, to_y: float) -> list[str]:
    points = (
        f"{to_x},{to_y} {to_x - 7},{to_y - 4} {to_x - 7},{to_y + 4}"
        if y == to_y
        else f"{to_x},{to_y} {to_x - 4},{to_y + 7} {to_x + 4},{to_y + 7}"
    )
    start = x + 3 if y == to_y else x
    return [_line(start, y, to_x, to_y, SOFT, 1.6), f'<polygon points="{points}" fill="{SOFT}"/>']


def _written(x: float, y: float, widths: Sequence[int], step: float = 16) -> list[str]:
    """Lines that stand for text."""
    return [_line(x, y + row * step, x + width, y + row * step, LINE, 5) for row, width in enumerate(widths)]


def _listed(x: float, y: float, lines: Sequence[str], step: float = 24) -> list[str]:
    return [_text(x, y + row * step, line) for row, line in enumerate(lines)]


def _bars(x: float, y: float, heights: Sequence[int]) -> list[str]:
    """The numbers of an embedding, up and down."""
    return [
        _line(x + 4 + place * 10, y, x + 4 + place * 10, y - height, OURS, 5) for place, height in enumerate(heights)
    ]


def _squares(
    x: float, y: float, bits: str, *, size: int = 12, gap: int = 3, strong: bool = False, marks: bool = False
) -> list[str]:
    """Bits: filled for 1; as marks, only those that differ."""
    filled = "#b03a2e" if marks else OURS if strong or size > 9 else SOFT
    empty = "none" if marks else "#ffffff"
    edge = "none" if marks else filled
    return [
        f'<rect x="{x + place * (size + gap):.1f}" y="{y:.1f}" width="{size}" height="{size}" rx="1.5" '
        f'fill="{filled if bit == "1" else empty}" stroke="{edge}" stroke-width="0.8"/>'
        for place, bit in enumerate(bits)
    ]


def pictures() -> dict[str, str]:
    """All pictures by the names of their files."""
    report = Report.from_json(json.loads((ROOT / "results" / "report.json").read_text(encoding="utf-8")))
    drawn = {"how-it-works.svg": how_it_works()}
    if is_of_closed_form(report):
        drawn["quality-bytes.svg"] = quality_bytes(panels(report))
    return drawn


def is_of_closed_form(report: Report) -> bool:
    """Whether the default of the report is today's, not the network that was the default before."""
    return any("closed form" in table.title for table in report.tables if table.name == "peers")


if __name__ == "__main__":
    for name, content in pictures().items():
        (IMAGES / name).write_text(content, encoding="utf-8")

"""Draws the pictures of the documentation: `python docs/pictures.py` writes docs/images/.

They are plain SVG with a light background, so that they are readable on light and dark pages, and the same each time.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"

INK, SOFT, LINE, PAPER = "#1f2933", "#5b6773", "#c3cad2", "#fbfcfd"
OURS = "#1558b0"


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
        *_box(24, 260, 216, 150, "Index: 16 bytes per code"),
    ]
    for row, code in enumerate((other, "0100110111010001", "1110001010010110", "0011101001101100")):
        parts += _squares(40, 298 + row * 22, code, size=9, gap=2, strong=row == 0)
    parts += [
        _text(40, 400, "and the words of the texts", colour=SOFT),
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
        *_squares(
            316,
            344,
            "".join("10"[a == b] for a, b in zip(bits, other, strict=True)),
            size=9,
            gap=2,
            marks=True,
        ),
        _text(500, 353, "2", weight="600", colour="#b03a2e"),
        _text(316, 378, "and the best by words, BM25"),
        _text(316, 398, "exact, no scan if there are many", colour=SOFT),
        *_arrow(240, 335, 300, 335),
        *_arrow(530, 335, 560, 335),
        *_box(560, 260, 190, 150, "2  Rank"),
        *_listed(
            576,
            308,
            (
                "by words and code,",
                "or by one of: distance,",
                "real activations,",
                "real vectors, words",
            ),
            19,
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


def _line(
    x: float, y: float, to_x: float, to_y: float, colour: str, width: float, dash: str = ""
) -> str:
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
    return [
        _line(x, y + row * step, x + width, y + row * step, LINE, 5)
        for row, width in enumerate(widths)
    ]


def _listed(x: float, y: float, lines: Sequence[str], step: float = 24) -> list[str]:
    return [_text(x, y + row * step, line) for row, line in enumerate(lines)]


def _bars(x: float, y: float, heights: Sequence[int]) -> list[str]:
    """The numbers of an embedding, up and down."""
    return [
        _line(x + 4 + place * 10, y, x + 4 + place * 10, y - height, OURS, 5)
        for place, height in enumerate(heights)
    ]


def _squares(
    x: float,
    y: float,
    bits: str,
    *,
    size: int = 12,
    gap: int = 3,
    strong: bool = False,
    marks: bool = False,
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
    return {"how-it-works.svg": how_it_works()}


if __name__ == "__main__":
    for name, content in pictures().items():
        (IMAGES / name).write_text(content, encoding="utf-8")

"""Pieces of HTML: what comes from data is escaped here, and every element that is opened is closed."""

import re
from html import escape
from xml.etree import ElementTree

from parabit.errors import EvaluationError

_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"


def element(name: str, *inside: str, **attributes: str | int | None) -> str:
    """An element around HTML; attributes are escaped, those that are None left out, and a final _ is cut off.

    Example:
        >>> element("td", text("R&D"), class_="ours", title='say "why"', colspan=None)
        '<td class="ours" title="say &quot;why&quot;">R&amp;D</td>'
    """
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{said}>{''.join(inside)}</{name}>"


def text(value: object) -> str:
    """Data as text of the page.

    Example:
        >>> text("a < b")
        'a &lt; b'
    """
    return escape(str(value), quote=False)


def share(value: float, places: int, signed: bool = False) -> str:
    """A figure between -1 and 1 as the paper's tables would have it: no zero before the point, and a true minus.

    Example:
        >>> share(0.5087, 3), share(1, 2), share(0.061, 2, signed=True), share(-0.061, 2, signed=True)
        ('.509', '1.00', '+.06', '−.06')
    """
    number = f"{value:+.{places}f}" if signed else f"{value:.{places}f}"
    return re.sub(r"^([+-]?)0\.", r"\1.", number).replace("-", "−")


def inline_svg(svg: str, name: str, title: str, description: str) -> str:
    """A picture to stand inside a page with others: its ids begin with its name, and it says what it shows.

    Example:
        >>> svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9"><g id="a"/><use href="#a"/></svg>'
        >>> print(inline_svg(svg, "figure4", "Curves", "Two curves."))
        <svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="figure4.title figure4.description"
        data-figure="figure4"><title id="figure4.title">Curves</title><desc id="figure4.description">Two
        curves.</desc><g id="figure4.a"></g><use href="#figure4.a"></use></svg>
    """
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as problem:
        raise EvaluationError(f"the picture of {name} is no SVG: {problem}", hint="draw it again") from problem
    for part in root.iter():
        for key, value in part.attrib.items():
            if key == "id":
                part.set(key, f"{name}.{value}")
            elif key in ("href", _LINK) and value.startswith("#"):
                part.set(key, f"#{name}.{value[1:]}")
            elif "url(#" in value:
                part.set(key, value.replace("url(#", f"url(#{name}."))
        if part.tag == f"{{{_SVG}}}style":
            # matplotlib's one rule is for all elements; on the page it should be for those of its picture alone.
            part.text = (part.text or "").replace("*{", f'[data-figure="{name}"] *{{')
    # Its size is the page's to choose; the viewBox keeps its proportions.
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.attrib.update({"role": "img", "aria-labelledby": f"{name}.title {name}.description", "data-figure": name})
    for place, (kind, said) in enumerate((("title", title), ("desc", description))):
        label = ElementTree.Element(f"{{{_SVG}}}{kind}", id=f"{name}.{'description' if kind == 'desc' else kind}")
        label.text = said
        root.insert(place, label)
    # Without prefixes, which HTML does not know; and with each element closed by a tag, as HTML's parsers like it.
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _LINK[1:].partition("}")[0])
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)

"""Markdown as text: what a reader sees of it, code included."""

import re
from collections.abc import Iterator
from html import unescape

# Two rules with a text between them are none: front matter begins with a name or a comment.
_FRONT_MATTER = re.compile(
    r"""\A(---|\+\+\+)[ \t]*\n(?=[ \t]*+(?:["'\w.-]+[ \t]*+[:=]|[#\[]|\1))(?:.*\n)*?(?:\1|\.\.\.)[ \t]*(?:\n|\Z)"""
)
_FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?(?P<marks>`{3,}|~{3,})(?P<rest>[^\n]*)")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.{1,2000}?)(?<!`)\1(?!`)", re.DOTALL)  # within a paragraph
_UNSEEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.I)
# What marks a line as a whole, in the order in which it is taken off. White space is matched once and for all (`*+`):
# to try again with less of it would take the square of its length.
_LINES = [
    (re.compile(r"^(?:[ \t]{0,3}>[ \t]?)+", re.M), ""),  # a quotation
    (re.compile(r"^[ \t]*+(?:=+|(?:[-*_][ \t]*+){3,})[ \t]*+$", re.M), ""),  # a rule, or what underlines a heading
    (re.compile(r"^[ \t]*+\|?[ \t]*+:?-+:?[ \t]*+(?:\|[ \t]*+:?-+:?[ \t]*+)+\|?[ \t]*+$", re.M), ""),  # in a table
    (re.compile(r"^[ \t]*+\[(?!\^)[^\]\n]+\]:[ \t]*+\S.*$", re.M), ""),  # where a link goes
    (re.compile(r"^[ \t]*+\[\^[^\]\n]+\]:[ \t]*+", re.M), ""),  # a footnote
    (re.compile(r"^[ \t]*+(?:[-*+]|\d{1,9}[.)])[ \t]++(?:\[[ xX]\][ \t]++)?", re.M), ""),  # an item of a list
    (re.compile(r"^[ \t]{0,3}#{1,6}(?:[ \t]++|$)", re.M), ""),  # a heading
    (re.compile(r"(?<![ \t])[ \t]++#++[ \t]*+$", re.M), ""),  # its end
    (re.compile(r"^[ \t]*+\|[ \t]*+|(?<![ \t])[ \t]*+\|[ \t]*+$", re.M), ""),  # the edges of a table
]
_LINK = re.compile(
    r"""!?\[((?:[^\[\]\\]|\\.)*)\]  # what is shown
    (?:\((?:[^()\\\n]|\\.|\([^()\n]*\))*\)  # (where it goes)
    |\ ?\[[^\[\]\n]*\])  # [by which name]
    """,
    re.VERBOSE | re.DOTALL,
)
_INLINE = [
    (re.compile(r"\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]*)\]\]"), r"\1"),  # a wiki's link
    (_LINK, r"\1"),
    (_LINK, r"\1"),  # a picture that is a link has one inside the other
    (re.compile(r"\[\^[^\]\n]+\]"), ""),  # a footnote's number
    (re.compile(r"<(?:https?|ftp|mailto):[^>\s]*>", re.I), ""),
    (re.compile(r"</?(?:a|abbr|b|code|em|i|kbd|mark|s|small|span|strong|sub|sup|u)(?:\s[^<>]*)?>", re.I), ""),
    (re.compile(r"</?[a-zA-Z][^<>]*>"), " "),
    (re.compile(r"(?<![\w\\*])\*{1,3}(?=\S)|(?<=[^\s\\*])\*{1,3}(?!\w)"), ""),
    (re.compile(r"(?<![\w\\_])_{1,3}(?=\S)|(?<=[^\s\\_])_{1,3}(?!\w)"), ""),
    (re.compile(r"~~|=="), ""),
    (re.compile(r"(?<![ \t])[ \t]++\|[ \t]++"), "  "),  # between the cells of a table
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
]


def markdown_to_text(markdown: str) -> str:
    r"""The text of a Markdown document: without front matter, links' targets and marks of headings, lists, emphasis.

    Example:
        >>> print(markdown_to_text("# Boats\n\n- *oars* and [sails](https://sails.example)\n- `snake_case`"))
        Boats
        <BLANKLINE>
        oars and sails
        snake_case
    """
    text = _FRONT_MATTER.sub("", markdown.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), count=1)
    parts = [part if is_code else _plain(part) for is_code, part in _fenced(text)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip("\n")


def _fenced(text: str) -> Iterator[tuple[bool, str]]:
    """The text cut at the fences of code blocks, without the fences, and whether each part is code."""
    lines: list[str] = []
    fence = ""  # the marks that opened the code
    for line in text.split("\n"):
        found = _FENCE.match(line)
        opens = found and not fence and ("`" not in found["rest"] or found["marks"][0] == "~")
        closes = found and fence and found["marks"].startswith(fence) and not found["rest"].strip()
        if found and (opens or closes):
            yield bool(fence), "\n".join(lines)
            lines, fence = [], found["marks"] if opens else ""
        else:
            lines.append(line)
    yield bool(fence), "\n".join(lines)


def _plain(text: str) -> str:
    text = _UNSEEN.sub("", text)
    for pattern, instead in _LINES:
        text = pattern.sub(instead, text)
    # Every third part is code, which stays as it is; before it stand its marks.
    parts = _CODE.split(text)
    for place in range(0, len(parts), 3):
        parts[place] = _without_marks(parts[place])
    del parts[1::3]
    return "".join(parts)


def _without_marks(text: str) -> str:
    for pattern, instead in _INLINE:
        text = pattern.sub(instead, text)
    return unescape(text)

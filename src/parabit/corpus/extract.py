"""The text and the title of Markdown, HTML and PDF documents."""

import codecs
import logging
import re
import warnings
from collections.abc import Sequence
from typing import BinaryIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from selectolax.lexbor import LexborHTMLParser, LexborNode

from parabit.corpus.readers import GUESSED, WIDE_MARKS
from parabit.corpus.sources import Source, UnreadableError
from parabit.errors import CorpusError, need

_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)|<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w.:-]+)""",
    re.I,
)
# In XML `<script src="x"/>` is a whole element, in HTML it opens one.
_EMPTY_ELEMENT = re.compile(
    r"<(script|style|title|textarea|iframe|noscript)((?:\s[^<>]*)?)/>", re.I
)
_TAG = re.compile(r"(</?)([a-z][^\s/<>]*)", re.I)
_RAW = frozenset(
    ("script", "style", "iframe", "noembed", "noframes")
)  # never shown, and no markup in them
# For other browsers and other devices.
_FALLBACK = re.compile(r"(</?)(?:noscript|object|canvas|audio|video|datalist)\b", re.I)
_BLOCKS = (
    "address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol optgroup option p "
    "pre search section select summary table tbody textarea tfoot thead title tr ul xmp"
)
_GAPS = dict.fromkeys(_BLOCKS.split(), "\n") | {"td": " ", "th": " "}
_PREFORMATTED = frozenset(("pre", "textarea", "listing", "xmp"))
_HIDING_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.I)
_INVISIBLE = re.compile(
    "[\u00ad\u200b\u2060\ufeff]"
)  # soft hyphens and the like, which would split words


Extracted = tuple[str, str | None]  # what a reader sees of a file, and its title if it has one


def from_html(
    content: bytes, encoding: str | None = None, source: Source | None = None
) -> Extracted:
    """The visible text of a page: its title first, then one line per block.

    The encoding is that of the byte order mark, else the one that the page declares, else the given one; without
    any, UTF-8 or, where that does not fit, Windows-1252. The source gets a note if bytes do not fit.
    """
    marks = {codecs.BOM_UTF8: "utf-8", **WIDE_MARKS}
    known = next((name for mark, name in marks.items() if content.startswith(mark)), None)
    if known is None and (found := _DECLARED.search(content[:4096])):
        known = _encoding(found[1] or found[2])
    known = known or (encoding if encoding != "utf-8" else None)
    try:
        html, note = content.decode(known or "utf-8"), ""
    except UnicodeDecodeError:
        html, note = (
            content.decode(known or "cp1252", "replace"),
            f"bytes that are not {known}" if known else GUESSED,
        )
    if source is not None:
        source.note = note
    return _page(html.removeprefix("\ufeff"))


def _encoding(declared: bytes) -> str | None:
    try:
        name = codecs.lookup(declared.decode("ascii")).name
        b"x".decode(name)  # some codecs, such as rot13, do not decode bytes
    except (LookupError, ValueError):
        return None
    # Pages that declare Latin-1 or ASCII mean Windows-1252, and browsers read them so.
    return "cp1252" if name in ("iso8859-1", "ascii") else name


def _page(html: str) -> Extracted:
    if html.startswith("<?xml"):
        html = _EMPTY_ELEMENT.sub(r"<\1\2></\1>", html)
    parts: list[str] = []
    titles: dict[str, str] = {}
    preformatted = 0
    # A template is not shown; a paragraph inside the elements that it stands for would end them.
    root = LexborHTMLParser(_FALLBACK.sub(r"\1template", html)).root
    # The number: where in `parts` an element began.
    waiting: list[tuple[LexborNode | None, int | None]] = [(root, None)]
    while waiting:
        node, start = waiting.pop()
        if node is None:
            continue
        tag = node.tag or ""
        if start is not None:  # the element ends
            preformatted -= tag in _PREFORMATTED
            if (
                tag in ("title", "h1")
                and tag not in titles
                and not (node.parent and node.parent.tag == "svg")
            ):
                titles[tag] = " ".join("".join(parts[start:]).split())
                if tag == "title":  # it comes first, wherever it stands
                    del parts[start:]
            parts.append(_GAPS.get(tag, ""))
            continue
        waiting.append((node.next, None))
        if node.is_text_node:
            text = _INVISIBLE.sub("", node.text_content or "")
            parts.append(text if preformatted else text.replace("\n", " "))
        elif node.is_element_node and tag not in _RAW and not _is_hidden(node.attributes):
            parts.append(_GAPS.get(tag, ""))
            if node.first_child is not None:
                waiting += [(node, len(parts)), (node.first_child, None)]
                preformatted += tag in _PREFORMATTED
    lines = (
        " ".join(line.split())
        for line in f"{titles.get('title', '')}\n{''.join(parts)}".split("\n")
    )
    return "\n".join(filter(None, lines)), titles.get("title") or titles.get("h1") or None


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    return "hidden" in attributes or bool(_HIDING_STYLE.search(attributes.get("style") or ""))


_MARKDOWN = MarkdownIt("js-default", {"html": True})
# Front matter begins with a name or a comment; other text between two rules is text.
_FRONT_MATTER = re.compile(
    r"""\A(---|\+\+\+)[ \t]*\n(?=[ \t]*+(?:["'\w.-]+[ \t]*+[:=]|[#\[]|\1))((?:.*\n)*?)(?:\1|\.\.\.)[ \t]*(?:\n|\Z)"""
)
_FRONT_TITLE = re.compile(r"""^title[ \t]*[:=][ \t]*(["']?)(.+?)\1[ \t]*$""", re.M | re.I)
_EXTENSIONS = [  # of Markdown, which the parser takes for text
    (re.compile(r"\[\^[^\[\]\s]+\]:?"), ""),  # footnotes
    (re.compile(r"\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]*)\]\]"), r"\1"),  # links of a wiki
    (re.compile(r"\A\[[ xX]\][ \t]+"), ""),  # tasks
]
_UNSEEN_TAG = re.compile(r"<(script|style)\b", re.I)


def from_markdown(text: str) -> Extracted:
    """The text of a Markdown document: code, link texts and table cells, without marks, addresses and front matter."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    title = None
    if front := _FRONT_MATTER.match(text):
        named = _FRONT_TITLE.search(front[2])
        text, title = text[front.end() :], named and named[2]
    parts: list[str] = []
    tokens = _MARKDOWN.parse(text)
    for place, token in enumerate(tokens):
        match token.type:
            case "inline":
                content = _inline_text(token.children or [])
                parts.append(content)
                if title is None and tokens[place - 1].type == "heading_open":
                    title = " ".join(content.split()) or None
            case "fence" | "code_block":
                parts.append(f"{token.content}\n")
            case "html_block":
                shown, heading = _page(token.content)
                parts.append(f"{shown}\n\n")
                title = title or heading
            case "td_close" | "th_close":
                parts.append("  ")
            case "tr_close":
                parts.append("\n")
            case "paragraph_close" | "heading_close" | "table_close":
                parts.append(
                    "\n" if token.hidden else "\n\n"
                )  # hidden in a list without blank lines
            case "bullet_list_close" | "ordered_list_close" if not token.level:
                parts.append("\n\n")
    lines = (line.rstrip() for line in "".join(parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n"), title


def _inline_text(tokens: Sequence[Token]) -> str:
    parts: list[str] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        match token.type:
            case "text":
                content = token.content
                for pattern, instead in _EXTENSIONS:
                    content = pattern.sub(instead, content)
                parts.append(content)
            case "code_inline":
                parts.append(token.content)
            case "softbreak" | "hardbreak":
                parts.append("\n")
            case "image":
                parts.append(_inline_text(token.children or []))
            case "link_open" if token.markup == "autolink":
                place += 1  # its text is the address
            case "html_inline":
                if unseen := _UNSEEN_TAG.match(token.content):
                    end = f"</{unseen[1].lower()}"
                    ends = (
                        at
                        for at in range(place, len(tokens))
                        if tokens[at].content.lower().startswith(end)
                    )
                    place = next(ends, place)
                elif found := _TAG.match(token.content):
                    parts.append(_GAPS.get(found[2].lower(), ""))
    return "".join(parts)


_HYPHENATED = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
logging.getLogger("pypdf").addHandler(logging.NullHandler())  # else its warnings go to the terminal


def from_pdf(stream: BinaryIO, name: str) -> Extracted:
    """The text of all pages of a PDF file; an error if it is encrypted, damaged, or has only pictures."""
    try:
        pypdf = need("pypdf", "pdf", CorpusError)
    except CorpusError as problem:  # a folder's other files can still be read
        raise UnreadableError(name, f"{problem.problem}: {problem.hint}") from problem
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # what is odd in other people's files is not our user's business
            reader = pypdf.PdfReader(stream)
            # Many files are encrypted without a password, only against changes.
            if reader.is_encrypted and not reader.decrypt(""):
                raise UnreadableError(
                    name, "not readable as PDF: encrypted", "save it without a password"
                )
            pages = [page.extract_text().strip() for page in reader.pages]
            title = reader.metadata and reader.metadata.title
    except (CorpusError, MemoryError):
        raise
    except Exception as problem:  # pypdf raises whatever comes up inside a damaged file
        reason = str(problem).partition("\n")[0] or type(problem).__name__
        raise UnreadableError(
            name, f"not readable as PDF: {reason}", "download or export it again"
        ) from problem
    if not any(pages):
        reason = (
            f"not readable as PDF: no text on its {len(pages):,} pages, which seem to be pictures"
        )
        raise UnreadableError(name, reason, "run text recognition (OCR) on it first")
    # A wrong font makes halves of surrogate pairs.
    text, title = (
        part.encode("utf-8", "replace").decode() for part in ("\n\n".join(pages), str(title or ""))
    )
    return _HYPHENATED.sub("", text), " ".join(title.split()) or None

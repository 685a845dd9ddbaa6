"""The text and the title of Markdown, HTML and PDF documents."""

import codecs
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from parabit.corpus.limits import ReadLimits, over_limit
from parabit.corpus.pages import GUESSED, WIDE_MARKS
from parabit.errors import CorpusError, UnreadableError

# Each library is imported for the first file that needs it: that takes longer than to read most files.
if TYPE_CHECKING:
    from types import ModuleType

    from markdown_it.token import Token
    from pypdf import PdfReader
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)|<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w.:-]+)""",
    re.I,
)
# In XML `<script src="x"/>` is a whole element, in HTML it opens one.
_EMPTY_ELEMENT = re.compile(
    r"<(script|style|title|textarea|iframe|noscript)((?:\s[^<>]*)?)/>", re.I
)
_TAG = re.compile(r"(</?)([a-z][^\s/<>]*)", re.I)
# Never shown, and no markup in them.
_RAW = frozenset(("script", "style", "iframe", "noembed", "noframes"))
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
# Soft hyphens and the like, which would split words.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")


# The encodings that browsers know, by Python's names. Python has others, which are none of text, or
# decode only whole files, or a page in UTF-7 that no browser would show so.
_PAGE_ENCODINGS = (
    "big5 big5hkscs cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp866 cp874 "
    "cp932 cp949 euc_jp euc_kr gb18030 gb2312 gbk iso2022_jp iso8859-10 iso8859-11 iso8859-13 "
    "iso8859-14 iso8859-15 iso8859-16 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 "
    "iso8859-8 iso8859-9 koi8-r koi8-u mac-cyrillic mac-roman shift_jis utf-8"
)


class Page(NamedTuple):
    """A file as a reader sees it."""

    text: str  # the title first, if the file shows one
    title: str | None
    note: str = ""  # if its bytes do not fit its encoding


def from_html(content: bytes, encoding: str | None = None) -> Page:
    r"""The visible text of a page: its title first, then one line per block.

    The encoding is that of the byte order mark, else the one that the page declares, else the given
    one; without any, UTF-8 or, where that does not fit, Windows-1252. The note says if bytes do not
    fit.

    Parameters:
        content: The page.
        encoding: The encoding if the page does not name one.

    Example:
        >>> from_html(b"<title>Hubble</title><p>It was repaired.").text
        'Hubble\nIt was repaired.'
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
    text, title = _visible(html.removeprefix("\ufeff"))
    return Page(text, title, note)


def _encoding(declared: bytes) -> str | None:
    try:
        name = codecs.lookup(declared.decode("ascii")).name
    except (LookupError, ValueError):
        return None
    if name in ("iso8859-1", "ascii"):
        # Pages that declare Latin-1 or ASCII mean Windows-1252, and browsers read them so.
        return "cp1252"
    return name if name in _PAGE_ENCODINGS.split() else None


@cache
def _html_parser() -> "type[LexborHTMLParser]":
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser


def _visible(html: str) -> tuple[str, str | None]:
    """The visible text of a page, and its title."""
    if html.startswith("<?xml"):
        html = _EMPTY_ELEMENT.sub(r"<\1\2></\1>", html)
    parts: list[str] = []
    titles: dict[str, str] = {}
    preformatted = 0
    # A template is not shown; a paragraph inside the elements that it stands for would end them.
    root = _html_parser()(_FALLBACK.sub(r"\1template", html)).root
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


# Front matter begins with a name or a comment; other text between two rules is text.
_FRONT_START = re.compile(r"""(---|\+\+\+)[ \t]*\n(?=[ \t]*+(?:["'\w.-]++[ \t]*+[:=]|[#\[]|\1))""")
_FRONT_ENDS = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.M),
    "+++": re.compile(r"^(?:\+\+\+|\.\.\.)[ \t]*$", re.M),
}
_EXTENSIONS = [  # of Markdown, which the parser takes for text
    (re.compile(r"\[\^[^\[\]\s]+\]:?"), ""),  # footnotes
    (re.compile(r"\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]*)\]\]"), r"\1"),  # links of a wiki
    (re.compile(r"\A\[[ xX]\][ \t]+"), ""),  # tasks
]
_UNSEEN_TAG = re.compile(r"<(script|style)\b", re.I)


@cache
def _markdown_parser() -> "Callable[[str], list[Token]]":
    from markdown_it import MarkdownIt

    return MarkdownIt("js-default", {"html": True}).parse


def from_markdown(text: str) -> Page:
    r"""The text of a Markdown document: code, link texts and table cells.

    Marks, addresses and front matter are left out.

    Parameters:
        text: The document.

    Example:
        >>> from_markdown("# Hubble\n\nIt was *repaired*.").text
        'Hubble\n\nIt was repaired.'
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    title = None
    front_start = _FRONT_START.match(text)
    if front_start:
        front_end = _FRONT_ENDS[front_start[1]].search(text, front_start.end())
        if front_end:
            title = _front_title(text[front_start.end() : front_end.start()])
            text = text[front_end.end() + 1 :]
    parts: list[str] = []
    tokens = _markdown_parser()(text)
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
                shown, heading = _visible(token.content)
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
    return Page(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n"), title)


def _front_title(front_matter: str) -> str | None:
    """The title that front matter names."""
    for line in front_matter.split("\n"):
        if line[:5].lower() != "title":
            continue
        value = line[5:].lstrip(" \t")
        if not value.startswith((":", "=")):
            continue
        value = value[1:].strip(" \t")
        if len(value) > 2 and value[0] in "\"'" and value[0] == value[-1]:
            return value[1:-1]
        if value:
            return value
    return None


def _inline_text(tokens: "Sequence[Token]") -> str:
    texts: list[str] = []
    unclosed_tags = set[str]()  # so that no end is searched again and again
    position = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        match token.type:
            case "text":
                texts.append(_without_extensions(token.content))
            case "code_inline":
                texts.append(token.content)
            case "softbreak" | "hardbreak":
                texts.append("\n")
            case "image":
                texts.append(_inline_text(token.children or []))
            case "link_open" if token.markup == "autolink":
                position += 1  # its text is the address
            case "html_inline":
                unseen = _UNSEEN_TAG.match(token.content)
                tag = _TAG.match(token.content)
                if unseen:
                    name = unseen[1].lower()
                    end = None if name in unclosed_tags else _end_of(name, tokens, position)
                    if end is None:
                        unclosed_tags.add(name)
                    else:
                        position = end
                elif tag:
                    texts.append(_GAPS.get(tag[2].lower(), ""))
    return "".join(texts)


def _without_extensions(text: str) -> str:
    """A text without what extensions of Markdown mean by marks."""
    for pattern, instead in _EXTENSIONS:
        text = pattern.sub(instead, text)
    return text


def _end_of(tag: str, tokens: "Sequence[Token]", start: int) -> int | None:
    """The first token at `start` or after it that closes a tag; None if there is none."""
    closing = f"</{tag}"
    for position in range(start, len(tokens)):
        if tokens[position].content[: len(closing)].lower() == closing:
            return position
    return None


_HYPHENATED = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")


@cache
def _pypdf() -> "ModuleType":
    import logging

    import pypdf

    logging.getLogger("pypdf").addHandler(
        logging.NullHandler()
    )  # else its warnings go to the terminal
    return pypdf


def from_pdf(stream: BinaryIO, name: str, limits: ReadLimits | None = None) -> Page:
    """The text of all pages of a PDF file.

    Parameters:
        stream: The file.
        name: Its name, for errors.
        limits: How many pages and how much text it may have; by default those of `ReadLimits`.

    Raises:
        UnreadableError: if it is encrypted, damaged, over a limit, or has only pictures.
    """
    limits = limits or ReadLimits()
    import warnings

    pypdf = _pypdf()

    try:
        with warnings.catch_warnings():
            # What is odd in other people's files is not our user's business.
            warnings.simplefilter("ignore")
            reader = pypdf.PdfReader(stream)
            # Many files are encrypted without a password, only against changes.
            if reader.is_encrypted and not reader.decrypt(""):
                raise UnreadableError(
                    name, "not readable as PDF: encrypted", "save it without a password"
                )
            pages = _pages_of(reader, name, limits)
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
    return Page(_HYPHENATED.sub("", text), " ".join(title.split()) or None)


def _pages_of(reader: "PdfReader", name: str, limits: ReadLimits) -> list[str]:
    """The text of each page."""
    pages: list[str] = []
    characters = 0
    for page in reader.pages:
        if len(pages) == limits.pages:
            what = f"more than {limits.pages:,} pages"
            raise over_limit(name, what, limits, "pages")
        text = page.extract_text().strip()
        characters += len(text)
        if characters > limits.document_bytes:
            what = f"more than {limits.document_mb} MB of text"
            raise over_limit(name, what, limits, "document_mb")
        pages.append(text)
    return pages

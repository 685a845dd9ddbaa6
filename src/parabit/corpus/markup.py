"""HTML as text: what a reader sees of a page, whatever state its markup is in."""

import codecs
import re
from contextlib import suppress
from html.parser import HTMLParser

# A mark at the start says more than a tag; the longer ones first, as one of UTF-32 begins like one of UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)|<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.I
)
_LOOKED_AT = 4096  # bytes in which a page says how it is encoded
# Encodings of pages; Python has others under such names that are none, as rot13.
_ENCODINGS = re.compile(
    r"utf-8|ascii|iso8859-\d+|cp\d+|koi8-\w+|gb\w+|big5\w*|shift_jis\w*|euc_\w+|mac-\w+|tis-620|johab"
)


def _names(several: str) -> frozenset[str]:
    return frozenset(several.split())


# What a page does not show, and what stands in its place where the page cannot be shown as it was meant.
_HIDDEN = _names("script style template noscript iframe object noembed noframes canvas audio video datalist")
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
# Elements that often go without an end tag: where one is hidden nobody can tell where that ends.
_OPEN_ENDED = _names("html head body p li dt dd option optgroup tr td th thead tbody tfoot rt rp colgroup")
_IN_HEAD = _names("title meta link base bgsound basefont") | _HIDDEN
_BLOCKS = _names(
    "address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p pre "
    "search section select summary table tbody textarea tfoot thead title tr ul"
)
_OPENS = re.compile("<[a-zA-Z/!?]")
_CELLS = frozenset(("td", "th"))
_AS_WRITTEN = frozenset(("pre", "textarea", "listing", "xmp"))
_NOT_SHOWN = re.compile("[\u00ad\u200b\u2060\ufeff]")  # soft hyphens and the like, which would cut words
_HIDES = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.I)


def html_to_text(html: str) -> str:
    """The visible text of a page, its title first, a line for each block; broken markup is read as far as it goes.

    Example:
        >>> print(html_to_text("<title>Boats</title><h1>On boats</h1><p>Oars &amp; <b>sails</b>.<script>x()</script>"))
        Boats
        On boats
        Oars & sails.
    """
    page = _Page()
    # What opens after the last > never closes, and browsers drop it; the parser would look for the end again and again.
    last = html.rfind(">") + 1
    whole = html[:last] + _OPENS.split(html[last:], maxsplit=1)[0]
    with suppress(AssertionError):  # of the parser's own, on what it does not expect
        page.feed(whole)
        page.close()
    return page.text()


def decoded_html(content: bytes, otherwise: str = "utf-8") -> str:
    """A page's bytes as characters: by the mark at its start, by what it says of itself, or otherwise as told.

    Bytes that are wrong in that encoding become replacement characters.

    Example:
        >>> decoded_html('<meta charset="iso-8859-2"><p>čaj'.encode("iso-8859-2"))
        '<meta charset="iso-8859-2"><p>čaj'
    """
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            return content.decode(encoding, "replace").removeprefix("\ufeff")
    declared = _DECLARED.search(content[:_LOOKED_AT])
    return content.decode(_known(declared and (declared[1] or declared[2])) or otherwise, "replace")


def has_wide_mark(content: bytes) -> bool:
    """Whether bytes begin as UTF-16 or UTF-32 do, in which zero bytes are no sign of a binary file."""
    return content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))


def _known(name: bytes | None) -> str | None:
    if not name:
        return None
    try:
        encoding = codecs.lookup(name.decode("ascii")).name
    except (LookupError, ValueError):
        return None
    # Pages that say Latin-1 or ASCII mean Windows's superset of it, as every browser knows.
    return "cp1252" if encoding in ("iso8859-1", "ascii") else encoding if _ENCODINGS.fullmatch(encoding) else None


class _Page(HTMLParser):
    """Collects what is shown."""

    # Newer versions of the parser take all up to </title> for text. Where that is missing, so would be the page.
    RCDATA_CONTENT_ELEMENTS = ()  # type: ignore[misc]

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._title: list[str] = []
        self._in_title = self._in_head = False
        self._hidden, self._depth = "", 0  # the element that hides what is in it, and how many of its kind are open
        self._written = ""  # the element whose white space counts
        self._xml = False

    def text(self) -> str:
        """What was collected, as lines without blank ones."""
        lines = (" ".join(line.split()) for line in "".join([*self._title, "\n", *self._parts]).split("\n"))
        return "\n".join(line for line in lines if line)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden:
            self._depth += tag == self._hidden
            return
        if tag == "head":
            self._in_head = True
        elif tag == "body" or (self._in_head and tag not in _IN_HEAD):
            self._in_head = self._in_title = False
        if tag in _HIDDEN or (tag not in _OPEN_ENDED and tag not in _VOID and _is_hidden(dict(attrs))):
            self._hidden, self._depth = tag, 1
        elif tag == "title" and not self._title:
            self._in_title = True
        elif tag in _AS_WRITTEN and not self._written:
            self._written = tag
        self._break(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self._xml:
            self.handle_endtag(tag)
        elif tag in self.CDATA_CONTENT_ELEMENTS:  # in HTML the slash of <script/> says nothing
            self.set_cdata_mode(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            self._depth -= tag == self._hidden
            if not self._depth:
                self._hidden = ""
            return
        if tag == "title":
            self._in_title = False
        elif tag == "head":
            self._in_head = self._in_title = False
        elif tag == self._written:
            self._written = ""
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._hidden or (self._in_head and not self._in_title):
            return
        data = _NOT_SHOWN.sub("", data)
        if self._in_title:
            self._title.append(data.replace("\n", " "))
        else:
            self._parts.append(data if self._written else data.replace("\n", " "))

    def handle_pi(self, data: str) -> None:
        self._xml = self._xml or data.startswith("xml ")

    def handle_decl(self, decl: str) -> None:
        self._xml = self._xml or "xhtml" in decl.lower()

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Take `<![if IE]>` and the like for comments; the parser's own way with them may raise."""
        return self.parse_bogus_comment(i)

    def _break(self, tag: str) -> None:
        if tag in _BLOCKS:
            self._parts.append("\n")
        elif tag in _CELLS:
            self._parts.append(" ")


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    return "hidden" in attributes or bool(_HIDES.search(attributes.get("style") or ""))

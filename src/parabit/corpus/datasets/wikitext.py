"""MediaWiki markup as the text that a reader of the page sees, and its categories; parsed by mwparserfromhell."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any, NamedTuple

from parabit.errors import CorpusError, need


class Namespaces(NamedTuple):
    """The names, in lower case, of a wiki's namespaces of files and of categories."""

    files: frozenset[str] = frozenset(("file", "image"))
    categories: frozenset[str] = frozenset(("category",))


ENGLISH = Namespaces()  # which hold on every wiki, beside its own names


class Article(NamedTuple):
    """What a reader sees of an article, one paragraph, heading or list item per line, and its categories."""

    text: str
    categories: tuple[str, ...]


# Comments, and elements that hold no prose. In nowiki and pre there is no markup.
_UNREAD = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?P<tag>nowiki|pre|ref|math|chem|ce|gallery|source|syntaxhighlight|timeline|score|hiero|imagemap"
    r"|graph|mapframe|maplink|inputbox|categorytree|templatedata|includeonly)\b[^<>]*?(?:/>|>(?P<content>.*?)</(?P=tag)\s*>)",
    re.DOTALL | re.IGNORECASE,
)
_AS_ENTITIES = {ord(char): f"&#{ord(char)};" for char in "[]{}|<>'=*#:;_-/"}
# Most of an article's markup is templates, and a parsed one takes longer than one that is cut out.
_TEMPLATE = re.compile(r"\{\{\{[^{}]*+\}\}\}|(?<!\{)\{\{[^{}]*+\}\}(?!\})")
_LIST_ITEM = re.compile(r"^[*#:;]+", re.MULTILINE)
_BLOCK = re.compile("blockquote|br|center|dd|div|dl|dt|h[1-6]|hr|li|ol|p|poem|table|ul")
_LANGUAGE = re.compile(r"(?:[a-z]{2,3}(?:-[a-z-]+)?|simple):\S")  # [[de:Biene]] links to another Wikipedia
# A wiki's older names for its files ("Bild" beside "Datei") are not in its dump, but the files have their endings.
_MEDIA = re.compile(r"\.(?:jpe?g|png|gif|svg|tiff?|og[gvai]|webm|webp|djvu|pdf|xcf|midi?|wav|flac|mp3)\s*$", re.I)
_LEFT_OVER = re.compile(
    r"'''''|'''|''"  # bold and italic
    r"|__[^\W\da-z]{2,40}__"  # magic words
    r"|\{\{+|\}\}+|\[\[+|\]\]+|^(?:\{\||\|-|\|\}|\|\+).*$|^[|!]"  # what is not closed, or not opened
    r"|</?(?:ref|nowiki|math|gallery)\b[^<>]*+>|-->"
    r"|^-{4,}",
    re.MULTILINE,
)
_EMPTY_PARENTHESES = re.compile(r"\([\s,;:]*+\)")
_DIRECTION_MARKS = dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F)])


def without_comments(markup: str) -> str:
    """Markup without comments, references, formulas and the like; what is in nowiki becomes entities."""

    def instead(found: re.Match[str]) -> str:
        is_prose = (found["tag"] or "").lower() in ("nowiki", "pre")
        return (found["content"] or "").translate(_AS_ENTITIES) if is_prose else ""

    return _UNREAD.sub(instead, markup)


def read_article(markup: str, names: Namespaces = ENGLISH) -> Article:
    """The text and the categories of an article, without templates, tables, files, references and formulas."""
    parser = need("mwparserfromhell", "wikipedia", CorpusError)
    markup = without_comments(markup)
    for _ in range(20):  # innermost first
        markup, found = _TEMPLATE.subn("", markup)
        if not found:
            break
    categories: dict[str, None] = {}
    # Bold and italic are left to a pattern: quotes that do not match would hide links from the parser.
    code = parser.parse(_LIST_ITEM.sub("", markup), skip_style_tags=True)
    text = _LEFT_OVER.sub("", "".join(_shown(code, names, categories)))
    # Entities last, so that what is written as one is never taken for markup.
    lines = (" ".join(line.split()) for line in unescape(_EMPTY_PARENTHESES.sub("", text)).split("\n"))
    return Article("\n".join(filter(None, lines)), tuple(categories))


def _shown(code: Any, names: Namespaces, categories: dict[str, None]) -> Iterator[str]:
    """What is shown of parsed markup; its categories are added to those given."""
    for node in code.nodes:
        match type(node).__name__:
            case "Text":
                yield node.value
            case "HTMLEntity":
                yield str(node)
            case "Heading":
                yield from ("\n", *_shown(node.title, names, categories), "\n")
            case "ExternalLink" if node.brackets and node.title is not None:
                yield from _shown(node.title, names, categories)
            case "Wikilink":
                yield from _link(node, names, categories)
            case "Tag":
                tag = str(node.tag).strip().lower()
                gap = "\n" if _BLOCK.fullmatch(tag) else ""
                shown = node.contents is not None and tag not in ("table", "ref")
                yield from (gap, *(_shown(node.contents, names, categories) if shown else ()), gap)


def _link(node: Any, names: Namespaces, categories: dict[str, None]) -> Iterator[str]:
    title = " ".join(unescape(str(node.title)).translate(_DIRECTION_MARKS).replace("_", " ").split())
    prefix, _, rest = title.partition(":")
    kind = prefix.strip().lower()
    if kind in names.categories:
        name = rest.strip()
        if name:
            categories[name[:1].upper() + name[1:]] = None
    elif not (kind in names.files or (kind and _MEDIA.search(rest)) or _LANGUAGE.match(title)):
        if node.text is not None and node.text.strip_code().strip():
            yield from _shown(node.text, names, categories)
        else:
            yield title.lstrip(":#")

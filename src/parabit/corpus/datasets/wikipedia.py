"""Wikipedia from its official dumps, read as a stream; a tenth is held out, as in the paper.

An article is the text that a reader of the page sees, without templates, tables and references, and its categories.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any, BinaryIO

from parabit.corpus.datasets import Dataset, DatasetCorpus, in_split
from parabit.corpus.document import CommonLabels, Corpus, Document
from parabit.corpus.sources import Source
from parabit.errors import CorpusError, need

Namespaces = Mapping[
    str, str
]  # what a wiki calls its files and categories, in lower case: "file" or "category"

# They hold on every wiki, beside its own names.
ENGLISH = {"file": "file", "image": "file", "category": "category"}

# Beside a dump may be its index, a feed, or a download under way.
_DUMP = re.compile(r".+-pages-articles(?:-multistream)?\d*\.xml(?:-p\d+p\d+)?(?:\.(?:bz2|gz|zst))?")
_REDIRECT = re.compile(r"\s*#redirect", re.IGNORECASE)
# The template's name must end here: {{disambiguation needed}} marks a link on an ordinary page, and lists of people
# of one name ({{surname}}, {{given name}}) are articles.
_DISAMBIGUATION = re.compile(
    r"""\{\{\s*+(?:template:\s*+)?
    (?: (?:[\w\u2013-]+[ _])* disambiguation (?:[ _-]page | [ _-]cleanup)? | disambig (?:-cleanup)? | disamb | dab
    | hndis (?:-cleanup)? | geodis | schooldis | numberdis | mathdab | roaddis | callsigndis | mil-unit-dis )
    \s*+(?=\||\}\}) | __DISAMBIG__""",
    re.IGNORECASE | re.VERBOSE,
)


def is_disambiguation(title: str, markup: str) -> bool:
    """Whether a page only lists the pages that its title may mean."""
    is_named_so = title.lower().endswith("(disambiguation)")
    return is_named_so or _DISAMBIGUATION.search(_without_comments(markup)) is not None


def _read(source: Source, split: str | None) -> Iterator[Document]:
    with source.open() as stream:
        for page, names in _pages(stream, source.name):
            title = page.findtext("{*}title", "")
            # A page's history, if it is in the dump, goes from old to new.
            markups = [found.text or "" for found in page.iterfind("{*}revision/{*}text")] or [""]
            if (
                page.findtext("{*}ns") == "0"
                and page.find("{*}redirect") is None
                and in_split(title, split, held_out=0.1)
                and not _REDIRECT.match(markups[-1])
                and not is_disambiguation(title, markups[-1])
            ):
                text, categories = read_article(markups[-1], names)
                if text:
                    yield Document(page.findtext("{*}id", ""), text, categories, {"title": title})


def _pages(stream: BinaryIO, name: str) -> Iterator[tuple[ET.Element, Namespaces]]:
    """The pages of a dump with what its wiki calls its namespaces; no more than one is held in memory."""
    names = ENGLISH
    try:
        events = ET.iterparse(stream, events=("start", "end"))
        _, root = next(events)
        # Each version of the export format has an XML namespace of its own.
        if (tag := root.tag.rpartition("}")[2]) != "mediawiki":
            hint = "get the file that ends in pages-articles.xml.bz2"
            raise CorpusError(f"{name}: <{tag}> is not a MediaWiki dump", hint)
        for event, element in events:
            tag = element.tag.rpartition("}")[2]
            if event == "end" and tag == "page":
                yield element, names
                root.clear()
            elif event == "end" and tag == "siteinfo":
                called = {
                    found.get("key"): (found.text or "").lower()
                    for found in element.iterfind(".//{*}namespace")
                }
                # Their keys are the same on every wiki.
                names = {
                    called.get("6", "file"): "file",
                    called.get("14", "category"): "category",
                } | ENGLISH
    except ET.ParseError as problem:
        hint = "copy or download the file again, it is not whole"
        raise CorpusError(f"{name} is damaged or cut off: {problem}", hint) from problem


def _corpus(paths: Sequence[Path], split: str | None) -> Corpus:
    dumps = [path for path in paths if _DUMP.fullmatch(path.name)]
    names = ", ".join(path.name for path in dumps or paths)
    if not dumps:
        hint = "a dump is called like enwiki-latest-pages-articles.xml.bz2"
        raise CorpusError(f"{names}: none is a whole Wikipedia dump", hint)
    parts = [re.sub(r"(\d*)\.xml.*", r" \1", path.name).split(" ") for path in dumps]
    if (
        len({dump for dump, _ in parts}) > 1
        or len({part for _, part in parts} - {""}) < len(parts) > 1
    ):
        hint = "keep one there, or every page would be read twice"
        raise CorpusError(
            f"{dumps[0].parent} has more than one dump, or one in two forms: {names}", hint
        )
    corpus = DatasetCorpus(dumps, split, _read)
    return CommonLabels(corpus) if split == "test" else corpus


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
_LANGUAGE = re.compile(
    r"(?:[a-z]{2,3}(?:-[a-z-]+)?|simple):\S"
)  # [[de:Biene]] links to another Wikipedia
# A wiki's older names for its files ("Bild" beside "Datei") are not in its dump, but the files have their endings.
_MEDIA = re.compile(
    r"\.(?:jpe?g|png|gif|svg|tiff?|og[gvai]|webm|webp|djvu|pdf|xcf|midi?|wav|flac|mp3)\s*$", re.I
)
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


def _without_comments(markup: str) -> str:
    """Markup without comments, references, formulas and the like; what is in nowiki becomes entities."""

    def instead(found: re.Match[str]) -> str:
        is_prose = (found["tag"] or "").lower() in ("nowiki", "pre")
        return (found["content"] or "").translate(_AS_ENTITIES) if is_prose else ""

    return _UNREAD.sub(instead, markup)


def read_article(markup: str, names: Namespaces = ENGLISH) -> tuple[str, tuple[str, ...]]:
    """The text of an article, one paragraph, heading or list item per line, and its categories."""
    parser = need("mwparserfromhell", "wikipedia", CorpusError)
    markup = _without_comments(markup)
    for _ in range(20):  # innermost first
        markup, found = _TEMPLATE.subn("", markup)
        if not found:
            break
    categories: dict[str, None] = {}
    # Bold and italic are left to a pattern: quotes that do not match would hide links from the parser.
    code = parser.parse(_LIST_ITEM.sub("", markup), skip_style_tags=True)
    text = _LEFT_OVER.sub("", "".join(_shown(code, names, categories)))
    # Entities last, so that what is written as one is never taken for markup.
    lines = (
        " ".join(line.split()) for line in unescape(_EMPTY_PARENTHESES.sub("", text)).split("\n")
    )
    return "\n".join(filter(None, lines)), tuple(categories)


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
    title = " ".join(
        unescape(str(node.title)).translate(_DIRECTION_MARKS).replace("_", " ").split()
    )
    prefix, _, rest = title.partition(":")
    kind = names.get(prefix.strip().lower())
    if kind == "category":
        if name := rest.strip():
            categories[name[:1].upper() + name[1:]] = None
    elif not (kind == "file" or (prefix.strip() and _MEDIA.search(rest)) or _LANGUAGE.match(title)):
        if node.text is not None and node.text.strip_code().strip():
            yield from _shown(node.text, names, categories)
        else:
            yield title.lstrip(":#")


DATASETS = {
    "wikipedia": Dataset(
        about="Wikipedia from an official dump, a tenth held out; labels are categories of 20 test articles or more",
        licence="CC BY-SA 4.0 and GFDL",
        files="wikipedia/*pages-articles*.xml*",
        corpus=_corpus,
        # Not downloaded: a dump has 20 GB and more, and is replaced every few weeks, so that no checksum can be fixed.
        obtain=(
            "get enwiki-latest-pages-articles.xml.bz2 (about 25 GB) from https://dumps.wikimedia.org/enwiki/latest/, "
            "or another wiki's dump, and put it as it is in wikipedia/ below the data folder"
        ),
    )
}

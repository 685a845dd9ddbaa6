"""Wikipedia from its official dumps, read as a stream; a tenth is held out, as in the paper."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from parabit.corpus.datasets.dataset import Dataset, DatasetCorpus, in_split
from parabit.corpus.datasets.wikitext import ENGLISH, Namespaces, read_article, without_comments
from parabit.corpus.document import CommonLabels, Corpus, Document
from parabit.corpus.sources import Source
from parabit.errors import CorpusError

# The keys that every wiki's namespaces have, whatever it calls them.
_FILE, _CATEGORY = "6", "14"

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
    if title.lower().endswith("(disambiguation)"):
        return True
    # Most pages never say the words, so few have to be freed of comments for the second look.
    return _DISAMBIGUATION.search(markup) is not None and _DISAMBIGUATION.search(without_comments(markup)) is not None


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
                called = {found.get("key"): (found.text or "").lower() for found in element.iterfind(".//{*}namespace")}
                names = Namespaces(
                    files=ENGLISH.files | {called.get(_FILE, "file")},
                    categories=ENGLISH.categories | {called.get(_CATEGORY, "category")},
                )
    except ET.ParseError as problem:
        raise CorpusError(
            f"{name} is damaged or cut off: {problem}", hint="copy or download the file again, it is not whole"
        ) from problem


def _corpus(paths: Sequence[Path], split: str | None) -> Corpus:
    dumps = [path for path in paths if _DUMP.fullmatch(path.name)]
    if not dumps:
        raise CorpusError(
            f"{', '.join(path.name for path in paths)}: none is a whole Wikipedia dump",
            hint="a dump is called like enwiki-latest-pages-articles.xml.bz2",
        )
    parts = [re.sub(r"(\d*)\.xml.*", r" \1", path.name).split(" ") for path in dumps]
    if len({dump for dump, _ in parts}) > 1 or len({part for _, part in parts} - {""}) < len(parts) > 1:
        raise CorpusError(
            f"{dumps[0].parent} has more than one dump, or one in two forms: {', '.join(path.name for path in dumps)}",
            hint="keep one there, or every page would be read twice",
        )
    corpus = DatasetCorpus(dumps, split, _read)
    return CommonLabels(corpus) if split == "test" else corpus


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

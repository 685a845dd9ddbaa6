"""Reuters Corpus Volume 1 from a licensed copy, cleansed to RCV1-v2 as Lewis et al. describe (JMLR 5, 2004)."""

import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from parabit.corpus.datasets.dataset import Dataset, DatasetCorpus
from parabit.corpus.document import Corpus, Document
from parabit.corpus.sources import Source
from parabit.corpus.split import in_split
from parabit.errors import CorpusError

_ROOTS = {"C": "CCAT", "E": "ECAT", "G": "GCAT", "M": "MCAT"}

# What zipfile lets through when bytes of a zip are wrong: beside its own error those of the steps that it takes.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)


def with_ancestors(topics: Sequence[str]) -> tuple[str, ...]:
    """Topic codes and all that lie above them, sorted: the hierarchy policy, which Reuters did not always keep.

    A code with digits is below the one without its last digit; the others are right below the root of their letter.

    Example:
        >>> with_ancestors(["C1511", "GSPO"])
        ('C15', 'C151', 'C1511', 'CCAT', 'GCAT', 'GSPO')
    """
    found = set(topics)
    for topic in topics:
        while topic[1:].isdigit() and len(topic) > 3:
            topic = topic[:-1]
            found.add(topic)
        found.add(_ROOTS.get(topic[:1], topic))
    return tuple(sorted(found))


def _read(source: Source, split: str | None) -> Iterator[Document]:
    for name, xml in _from_folder(source) if source.path.is_dir() else _from_zip(source):
        story = _story(xml, f"{source.name}, {name}")
        if story and in_split(story.id, split, held_out=0.5):
            yield story


def _from_zip(source: Source) -> Iterator[tuple[str, bytes]]:
    where = source.name
    with source.open(decompress=False) as stream:
        try:
            archive = zipfile.ZipFile(stream)
            names = sorted(filter(_is_story, archive.namelist()))
        except _DAMAGE as problem:
            raise _damaged(where, problem) from problem
        with archive:
            for name in names:
                try:
                    xml = archive.read(name)
                except _DAMAGE as problem:
                    raise _damaged(f"{where}, {name}", problem) from problem
                yield name, xml


def _from_folder(source: Source) -> Iterator[tuple[str, bytes]]:
    for path in sorted(source.path.iterdir()):
        if _is_story(path.name):
            yield path.name, path.read_bytes()


def _is_story(name: str) -> bool:
    return name.lower().endswith("newsml.xml")


def _damaged(where: str, problem: Exception) -> CorpusError:
    return CorpusError(f"{where}: the zip is damaged: {problem}", hint="copy the zip again, it is not whole")


def _story(xml: bytes, where: str) -> Document | None:
    """The document that a newsitem holds; None for the stories that RCV1-v2 leaves out."""
    try:
        item = ET.fromstring(xml)
    except (ET.ParseError, LookupError, ValueError) as problem:  # the last two: an encoding that is none
        raise CorpusError(f"{where}: no well-formed XML: {problem}", hint="copy the file again") from problem
    number = item.get("itemid")
    if item.tag != "newsitem" or not number:
        raise CorpusError(
            f"{where}: <{item.tag}> is no newsitem with an itemid", hint="give the corpus as Reuters made it"
        )
    topics = _codes(item, "bip:topics:1.0")
    # The minimum code policy: each story had to have a topic and a region, so one without is a story badly coded.
    if not topics or not _codes(item, "bip:countries:1.0"):
        return None
    paragraphs = [_text(item.find("headline")), *map(_text, item.iterfind("text/p"))]
    return Document(
        id=number,
        text="\n".join(filter(None, paragraphs)),
        labels=with_ancestors(topics),
        fields={"title": _text(item.find("title")), "date": item.get("date", "")},
    )


def _codes(item: ET.Element, kind: str) -> list[str]:
    return [code for found in item.iterfind(f"metadata/codes[@class='{kind}']/code") if (code := found.get("code"))]


def _text(element: ET.Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip()


def _corpus(paths: Sequence[Path], split: str | None) -> Corpus:
    days: dict[str, Path] = {}
    # A day that is there twice is read once, and from its zip, which is whole where a folder may be half unpacked.
    for path in sorted(paths, key=lambda path: path.is_dir()):
        days.setdefault(path.name[:8], path)
    return DatasetCorpus([days[day] for day in sorted(days)], partial(_read, split=split))


RCV1 = Dataset(
    name="rcv1",
    about="Reuters newswire stories of 1996 and 1997 cleansed to RCV1-v2, half held out; the labels are the topics",
    licence="Reuters/NIST agreement, research use only, not to be passed on",
    splits=("train", "test"),
    # A day's stories are in 19960820.zip on the two CDs, and in the folder 19960820 of what NIST sends today.
    files="rcv1/**/199[67][01][0-9][0-3][0-9]*",
    corpus=_corpus,
    obtain=(
        "request Reuters Corpus Volume 1 (RCV1) from NIST, who send it under licence "
        "(https://trec.nist.gov/data/reuters/reuters.html), and put its daily zips 19960820.zip to 19970819.zip, "
        "or the daily folders of the unpacked rcv1.tar.xz, in rcv1/ below the data folder"
    ),
)

"""News and samples: 20 Newsgroups, Reuters-21578, Reuters Corpus Volume 1 (RCV1), and parts of Wikipedia and arXiv."""

import html
import re
import tarfile
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from parabit.corpus.datasets import Dataset, DatasetCorpus, in_split
from parabit.corpus.document import CommonLabels, Corpus, Document
from parabit.corpus.files import FileCorpus
from parabit.corpus.readers import ReadOptions
from parabit.corpus.sources import Source
from parabit.errors import CorpusError


def _members(source: Source) -> Iterator[tuple[str, str]]:
    """The files of a tar archive: name and text."""
    with source.open() as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)):
                yield member.name, file.read().decode("latin-1")


def _newsgroups(source: Source, split: str | None, headers: bool) -> Iterator[Document]:
    """20 Newsgroups in its "bydate" version, with the official split."""
    for name, post in _members(source):
        part, *rest = PurePosixPath(name).parts
        if len(rest) == 2 and (not split or part.endswith(f"-{split}")):
            group, number = rest
            # The headers, which name the newsgroup, end with the first blank line.
            text = post if headers else post.partition("\n\n")[2]
            yield Document(id=f"{group}/{number}", text=text, labels=(group,))


_STORY = re.compile(r"<REUTERS ([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TAG = re.compile(r"<[^>]*>")
_TOPIC = re.compile(r"<D>(.*?)</D>")
_CONTROL = re.compile(r"&#(?:\d|[12]\d|3[01]|127);|[\x00-\x08\x0b-\x1f\x7f]")


def _reuters(source: Source, split: str | None) -> Iterator[Document]:
    """Reuters-21578 from its SGML files, with the ModApte split."""
    for match in (
        match
        for name, sgml in _members(source)
        if name.endswith(".sgm")
        for match in _STORY.finditer(sgml)
    ):
        attributes = dict(_ATTRIBUTE.findall(match[1]))
        # ModApte: of the stories that Lewis put in this part, those that indexers looked at for topics.
        if split and (attributes["LEWISSPLIT"] != split.upper() or attributes["TOPICS"] != "YES"):
            continue
        title, body, date = (_plain(_element(name, match[2])) for name in ("TITLE", "BODY", "DATE"))
        # Stories of the type UNPROC have no title or body of their own, only the text.
        text = f"{title}\n\n{body}" if body else _plain(_TAG.sub(" ", _element("TEXT", match[2])))
        yield Document(
            id=attributes["NEWID"],
            text=text,
            labels=tuple(_TOPIC.findall(_element("TOPICS", match[2]))),
            fields={"title": title, "date": date},
        )


def _element(name: str, story: str) -> str:
    found = re.search(rf"<{name}[^>]*>(.*?)</{name}>", story, re.DOTALL)
    return found[1] if found else ""


def _plain(content: str) -> str:
    # The wire's control characters stand between words as &#1; to &#31; and &#127;, which unescaping would drop.
    return html.unescape(_CONTROL.sub(" ", content)).strip()


def with_ancestors(topics: Sequence[str]) -> tuple[str, ...]:
    """Topic codes and all that lie above them, sorted: the hierarchy policy, which Reuters did not always keep.

    A code with digits is below the one without its last digit; the others are right below the root of their letter.
    """
    found = set(topics)
    for topic in topics:
        while topic[1:].isdigit() and len(topic) > 3:
            topic = topic[:-1]
            found.add(topic)
        if topic[0] in "CEGM":
            found.add(f"{topic[0]}CAT")
    return tuple(sorted(found))


def _rcv1(source: Source, split: str | None) -> Iterator[Document]:
    """RCV1 from a licensed copy, cleansed to RCV1-v2 as Lewis et al. describe (JMLR 5, 2004)."""
    try:
        path = Path(source.location)
        day = path if path.is_dir() else zipfile.Path(path)
        stories = {
            path.name: path.read_bytes()
            for path in day.iterdir()
            if path.name.lower().endswith("newsml.xml")
        }
    except Exception as problem:  # zipfile lets many things through when bytes are wrong
        raise CorpusError(
            f"{source.name}: damaged: {problem}", hint="copy the file again"
        ) from problem
    for name, xml in sorted(stories.items()):
        try:
            item = ET.fromstring(xml)
        except (
            ET.ParseError,
            LookupError,
            ValueError,
        ) as problem:  # the last two: an encoding that is none
            reason = f"{source.name}, {name}: not well-formed XML: {problem}"
            raise CorpusError(reason, "copy the file again") from problem
        number, topics = item.get("itemid", ""), _codes(item, "bip:topics:1.0")
        # The minimum code policy: each story had to have a topic and a region, so one without is a story badly coded.
        if topics and _codes(item, "bip:countries:1.0") and in_split(number, split, held_out=0.5):
            elements = [*item.iterfind("headline"), *item.iterfind("text/p")]
            paragraphs = ("".join(element.itertext()).strip() for element in elements)
            fields = {"title": item.findtext("title", "").strip(), "date": item.get("date", "")}
            yield Document(
                number, "\n".join(filter(None, paragraphs)), with_ancestors(topics), fields
            )


def _codes(item: ET.Element, kind: str) -> list[str]:
    return [
        code
        for found in item.iterfind(f"metadata/codes[@class='{kind}']/code")
        if (code := found.get("code"))
    ]


def _rcv1_corpus(paths: Sequence[Path], split: str | None) -> Corpus:
    # A day that is there twice is read once, and from its zip, which is whole where a folder may be half unpacked.
    days = {path.name[:8]: path for path in sorted(paths, key=Path.is_file)}
    return DatasetCorpus([days[day] for day in sorted(days)], split, _rcv1)


def _sample(source: Source, split: str | None) -> Iterator[Document]:
    """Articles in JSON lines, half of them held out by a hash of the title."""
    options = ReadOptions(id_field="", label_field="categories", format="jsonl", strict=True)
    for article in FileCorpus([source], options, source.name):
        if article.title is None:
            raise CorpusError(
                f"{article.id}: no title", hint="`parabit datasets` says what the file must hold"
            )
        if in_split(article.title, split, held_out=0.5):
            # Titles occur twice, so the id is the position in the sample.
            yield replace(article, id=str(int(article.id.rpartition(":")[2]) - 1))


def _enwiki_corpus(paths: Sequence[Path], split: str | None) -> Corpus:
    corpus = DatasetCorpus(paths, split, _sample)
    return CommonLabels(corpus) if split == "test" else corpus


_OBTAIN_SAMPLE = (
    "put a JSON-lines file at {file} below the data folder: one article per line, with the fields title (a string), "
    "text (a string) and categories (a list of strings)"
)
_NEWSGROUPS = Dataset(
    about="Usenet posts of 20 newsgroups without their headers; the label is the newsgroup",
    licence="freely distributed for research",
    files="20newsgroups/20news-bydate.tar.gz",
    corpus=partial(DatasetCorpus, read=partial(_newsgroups, headers=False)),
    # The collection's own page, then the copy that scikit-learn keeps of the same file.
    urls=(
        "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
        "https://ndownloader.figshare.com/files/5975967",
    ),
    sha256="8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
)

DATASETS = {
    "20newsgroups": _NEWSGROUPS,
    "20newsgroups-raw": replace(
        _NEWSGROUPS,
        about="the same posts with their headers, as the paper's vocabulary size suggests",
        corpus=partial(DatasetCorpus, read=partial(_newsgroups, headers=True)),
    ),
    "reuters21578": Dataset(
        about="newswire stories of 1987, the ModApte split; the labels are the topics, several or none",
        licence="research use only",
        files="reuters21578/reuters21578.tar.gz",
        corpus=partial(DatasetCorpus, read=_reuters),
        urls=(
            "https://archive.ics.uci.edu/ml/machine-learning-databases/reuters21578-mld/reuters21578.tar.gz",
        ),
        sha256="3bae43c9b14e387f76a61b6d82bf98a4fb5d3ef99ef7e7075ff2ccbcf59f9d30",
    ),
    "rcv1": Dataset(
        about="Reuters newswire stories of 1996 and 1997 cleansed to RCV1-v2, half held out; the labels are the topics",
        licence="Reuters/NIST agreement, research use only, not to be passed on",
        # A day's stories are in 19960820.zip on the two CDs, and in the folder 19960820 of what NIST sends today.
        files="rcv1/**/199[67][01][0-9][0-3][0-9]*",
        corpus=_rcv1_corpus,
        obtain=(
            "request Reuters Corpus Volume 1 (RCV1) from NIST, who send it under licence "
            "(https://trec.nist.gov/data/reuters/reuters.html), and put its daily zips 19960820.zip to 19970819.zip, "
            "or the daily folders of the unpacked rcv1.tar.xz, in rcv1/ below the data folder"
        ),
    ),
    "enwiki": Dataset(
        about="a sample of English Wikipedia, half held out; the labels are categories, in test those of 20 or more",
        licence="CC BY-SA 3.0",
        files="enwiki/enwiki-sample.jsonl.gz",
        corpus=_enwiki_corpus,
        obtain=_OBTAIN_SAMPLE.format(file="enwiki/enwiki-sample.jsonl.gz"),
    ),
    "arxiv": Dataset(
        about="a sample of arXiv abstracts, half held out; the labels are the paper's categories",
        licence="CC0",
        files="arxiv/arxiv-sample.jsonl.gz",
        corpus=partial(DatasetCorpus, read=_sample),
        obtain=_OBTAIN_SAMPLE.format(file="arxiv/arxiv-sample.jsonl.gz"),
    ),
}

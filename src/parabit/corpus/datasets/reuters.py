"""Reuters-21578 from its SGML files, with the ModApte split."""

import html
import re
import tarfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from parabit.corpus.datasets.dataset import Dataset, DatasetCorpus
from parabit.corpus.document import Corpus, Document
from parabit.corpus.download import Download
from parabit.corpus.sources import Source

_STORY = re.compile(r"<REUTERS ([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_ELEMENT = {
    name: re.compile(rf"<{name}[^>]*>(.*?)</{name}>", re.DOTALL) for name in ("TITLE", "BODY", "TOPICS", "DATE")
}
# Stories of the type UNPROC have no title or body of their own, only the text.
_WHOLE = re.compile(r"<TEXT[^>]*>(.*?)</TEXT>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_TOPIC = re.compile(r"<D>(.*?)</D>")
_CONTROL = re.compile(r"&#(?:\d|[12]\d|3[01]|127);|[\x00-\x08\x0b-\x1f\x7f]")
_LEWIS_SPLIT = {"train": "TRAIN", "test": "TEST"}


def _read(source: Source, split: str | None) -> Iterator[Document]:
    with source.open() as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.name.endswith(".sgm"):
                file = archive.extractfile(member)
                assert file is not None  # a regular file always opens
                yield from _stories(file.read().decode("latin-1"), split)


def _stories(sgml: str, split: str | None) -> Iterator[Document]:
    for match in _STORY.finditer(sgml):
        attributes = dict(_ATTRIBUTE.findall(match[1]))
        # ModApte: of the stories that Lewis put in this part, those that indexers looked at for topics.
        if split and (attributes["LEWISSPLIT"] != _LEWIS_SPLIT[split] or attributes["TOPICS"] != "YES"):
            continue
        title, body, topics, date = (_element(name, match[2]) for name in ("TITLE", "BODY", "TOPICS", "DATE"))
        text = f"{title}\n\n{body}" if body else _plain(_TAG.sub(" ", _first(_WHOLE, match[2])))
        yield Document(
            id=attributes["NEWID"],
            text=text,
            labels=tuple(_TOPIC.findall(topics)),
            fields={"title": title, "date": date},
        )


def _element(name: str, story: str) -> str:
    content = _first(_ELEMENT[name], story)
    return content if name == "TOPICS" else _plain(content)


def _first(pattern: re.Pattern[str], story: str) -> str:
    found = pattern.search(story)
    return found[1] if found else ""


def _plain(content: str) -> str:
    # The wire's control characters stand between words as &#1; to &#31; and &#127;, which unescaping would drop.
    return html.unescape(_CONTROL.sub(" ", content)).strip()


def _corpus(paths: Sequence[Path], split: str | None) -> Corpus:
    return DatasetCorpus(paths, partial(_read, split=split))


REUTERS = Dataset(
    name="reuters21578",
    about="newswire stories of 1987, the ModApte split; the labels are the topics, several or none",
    licence="research use only",
    splits=("train", "test"),
    files="reuters21578/reuters21578.tar.gz",
    corpus=_corpus,
    download=Download(
        urls=("https://archive.ics.uci.edu/ml/machine-learning-databases/reuters21578-mld/reuters21578.tar.gz",),
        sha256="3bae43c9b14e387f76a61b6d82bf98a4fb5d3ef99ef7e7075ff2ccbcf59f9d30",
        path="reuters21578/reuters21578.tar.gz",
    ),
)

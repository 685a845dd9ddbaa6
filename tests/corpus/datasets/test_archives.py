"""Small archives in the true formats, for the data sets that are archives."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from parabit.corpus import open_corpus
from parabit.errors import CorpusError


def archive(path: Path, files: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def test_newsgroups_are_read_by_split(data: Path) -> None:
    post = b"From: a@b\nSubject: Hubble\n\nIt was caf\xe9.\n\nIn orbit."
    names = ("20news-bydate-test/sci.space/2", "20news-bydate-train/sci.space/1", "20news-bydate-train/rec.autos/1")
    archive(data / "20newsgroups" / "20news-bydate.tar.gz", dict.fromkeys(names, post))
    [test] = open_corpus("20newsgroups/test")
    assert (test.id, test.text, test.labels) == ("sci.space/2", "It was café.\n\nIn orbit.", ("sci.space",))
    assert [document.id for document in open_corpus("20newsgroups/train")] == ["sci.space/1", "rec.autos/1"]
    assert len(list(open_corpus("20newsgroups"))) == 3
    assert next(iter(open_corpus("20newsgroups-raw/test"))).text.startswith("From: a@b\nSubject: Hubble\n\n")


STORY = """<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="1" NEWID="{id}">
<DATE>03-MAR-1987 09:10:11.12</DATE>
<TOPICS>{codes}</TOPICS>
<PLACES><D>brazil</D></PLACES>
<UNKNOWN>&#5;&#5;C</UNKNOWN>
<TEXT>&#2;
<TITLE>MUGS &amp; TEA</TITLE>
<DATELINE>    LEITH, March 3 - </DATELINE><BODY>Kettles&#31;&lt;sold>
in&#127;Leith. Reuter
&#3;</BODY></TEXT>
</REUTERS>
"""
UNPROCESSED = """<REUTERS TOPICS="NO" LEWISSPLIT="NOT-USED" CGISPLIT="NONE" OLDID="2" NEWID="9">
<TOPICS></TOPICS>
<TEXT TYPE="UNPROC">&#2;
raw <AUTHOR>text</AUTHOR> only
&#3;</TEXT>
</REUTERS>
"""


def test_reuters_is_read_by_the_modapte_split(data: Path) -> None:
    stories = [
        STORY.format(topics="YES", split="TRAIN", id=1, codes="<D>mugs</D><D>tea</D>"),
        STORY.format(topics="YES", split="TRAIN", id=2, codes=""),
        STORY.format(topics="NO", split="TRAIN", id=3, codes=""),
        STORY.format(topics="YES", split="TEST", id=4, codes="<D>tea</D>"),
        STORY.format(topics="BYPASS", split="TEST", id=5, codes="<D>tea</D>"),
    ]
    files = {
        "README.txt": b"not a story",
        "reut2-000.sgm": ("<!DOCTYPE lewis SYSTEM 'lewis.dtd'>\n" + "".join(stories)).encode("latin-1"),
        "reut2-001.sgm": UNPROCESSED.encode("latin-1"),
    }
    archive(data / "reuters21578" / "reuters21578.tar.gz", files)
    first, second = open_corpus("reuters21578/train")
    assert (first.id, first.labels, second.labels) == ("1", ("mugs", "tea"), ())
    assert first.text == "MUGS & TEA\n\nKettles <sold>\nin Leith. Reuter"
    assert first.fields == {"title": "MUGS & TEA", "date": "03-MAR-1987 09:10:11.12"}
    assert [document.id for document in open_corpus("reuters21578/test")] == ["4"]
    everything = {document.id: document.text.split() for document in open_corpus("reuters21578")}
    assert set(everything) == {"1", "2", "3", "4", "5", "9"}
    assert everything["9"] == ["raw", "text", "only"]


def test_the_samples_are_halved_and_rare_categories_leave_the_test(data: Path) -> None:
    articles = [
        {"title": f"title {n}", "text": f"text {n}", "categories": ["common", f"rare {n}"] if n % 2 else []}
        for n in range(200)
    ]
    for name in ("enwiki", "arxiv"):
        path = data / name / f"{name}-sample.jsonl.gz"
        path.parent.mkdir()
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, articles)).encode()))
    train, test = (list(open_corpus(f"arxiv/{split}")) for split in ("train", "test"))
    assert sorted(int(document.id) for document in [*train, *test]) == list(range(200))
    assert test[0].fields["title"] == f"title {test[0].id}"
    assert len(list(open_corpus("arxiv"))) == 200
    # The same half, but only what has a category of at least 20 test articles.
    common = list(open_corpus("enwiki/test"))
    assert [document.id for document in common] == [document.id for document in test if int(document.id) % 2]
    assert {document.labels for document in common} == {("common",)}
    assert list(open_corpus("enwiki/train")) == train


def test_a_sample_of_another_form_is_named(data: Path) -> None:
    path = data / "arxiv" / "arxiv-sample.jsonl.gz"
    path.parent.mkdir()
    for line, words in (
        (b"{", "line 2: not valid JSON"),
        (b'{"title": "a", "text": "b"}', "line 2: no label field: 'categories'"),
        (b'{"title": 5, "text": "b", "categories": []}', "arxiv-sample.jsonl.gz:2: no title"),
    ):
        path.write_bytes(gzip.compress(b'{"title": "a", "text": "b", "categories": []}\n' + line))
        with pytest.raises(CorpusError, match=words):
            list(open_corpus("arxiv"))

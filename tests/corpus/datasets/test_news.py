"""News and the samples, as small files in the true formats."""

import gzip
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from made_up_collections import write_archive, write_sample
from parabit.corpus import open_corpus
from parabit.corpus.datasets import find_dataset
from parabit.corpus.datasets.news import with_ancestors
from parabit.corpus.document import Document
from parabit.errors import CorpusError


def test_newsgroups_are_read_by_split(data: Path) -> None:
    post = b"From: a@b\nSubject: Hubble\n\nIt was caf\xe9.\n\nIn orbit."
    names = (
        "20news-bydate-test/sci.space/2",
        "20news-bydate-train/sci.space/1",
        "20news-bydate-train/rec.autos/1",
    )
    write_archive(data / "20newsgroups" / "20news-bydate.tar.gz", dict.fromkeys(names, post))
    [test] = open_corpus("20newsgroups/test")
    assert (test.id, test.text, test.labels) == (
        "sci.space/2",
        "It was café.\n\nIn orbit.",
        ("sci.space",),
    )
    assert [document.id for document in open_corpus("20newsgroups/train")] == [
        "sci.space/1",
        "rec.autos/1",
    ]
    assert len(list(open_corpus("20newsgroups"))) == 3
    assert next(iter(open_corpus("20newsgroups-raw/test"))).text.startswith(
        "From: a@b\nSubject: Hubble\n\n"
    )


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
        "reut2-000.sgm": ("<!DOCTYPE lewis SYSTEM 'lewis.dtd'>\n" + "".join(stories)).encode(
            "latin-1"
        ),
        "reut2-001.sgm": UNPROCESSED.encode("latin-1"),
    }
    write_archive(data / "reuters21578" / "reuters21578.tar.gz", files)
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
        {
            "title": f"title {n}",
            "text": f"text {n}",
            "categories": ["common", f"rare {n}"] if n % 2 else [],
        }
        for n in range(200)
    ]
    for name in ("enwiki", "arxiv"):
        write_sample(data / name, articles)
    train, test = (list(open_corpus(f"arxiv/{split}")) for split in ("train", "test"))
    assert sorted(int(document.id) for document in [*train, *test]) == list(range(200))
    assert test[0].fields["title"] == f"title {test[0].id}"
    assert len(list(open_corpus("arxiv"))) == 200
    # The same half, but only what has a category of at least 20 test articles.
    common = list(open_corpus("enwiki/test"))
    assert [document.id for document in common] == [
        document.id for document in test if int(document.id) % 2
    ]
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


# RCV1: from the zips of its CDs, and from the folders that NIST sends, as Lewis et al. cleansed it.
RCV1 = find_dataset("rcv1")
# Topics and their parents: appendix 2 of Lewis et al.
PARENTS = {
    "C11": "CCAT",
    "C1511": "C151",
    "C331": "C33",
    "E513": "E51",
    "E71": "ECAT",
    "GVIO": "GCAT",
    "M132": "M13",
}


def newsitem(
    itemid: int, topics: Sequence[str] = ("E51",), countries: Sequence[str] = ("MEX",)
) -> bytes:
    """A story in the form of the corpus: ISO-8859-1, with elements that are no part of the text."""

    def codes(kind: str, found: Sequence[str]) -> str:
        inner = "\n".join(
            f'<code code="{code}">\n<editdetail date="1996-08-20"/>\n</code>' for code in found
        )
        return f'<codes class="bip:{kind}:1.0">\n{inner}\n</codes>' if found else ""

    return f"""<?xml version="1.0" encoding="iso-8859-1" ?>
<newsitem itemid="{itemid}" id="root" date="1996-08-20" xml:lang="en">
<title>ELBONIA: Crown gains.</title>
<headline>Crown gains.</headline>
<byline>A. Writer</byline>
<dateline>PORT TOWN</dateline>
<text>
<p>Traders said the crown&apos;s rate went up &amp; stayed there.</p>
<p>The caf\xe9s of Elb\xf3nia were full.</p>
</text>
<copyright>(c) Reuters Limited 1996</copyright>
<metadata>
{codes("countries", countries)}
{codes("industries", ["I81402"])}
{codes("topics", topics)}
<dc element="dc.publisher" value="Reuters Holdings Plc"/>
<dc element="dc.date.published" value="1996-08-20"/>
</metadata>
</newsitem>
""".encode("latin-1")


def write_zip(path: Path, stories: Mapping[int, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for itemid, xml in stories.items():
            archive.writestr(f"{itemid}newsML.xml", xml)
    return path


def read(data: Path, split: str | None = None) -> list[Document]:
    return list(RCV1.corpus(RCV1.found(data), split))


def test_a_story_is_its_headline_and_paragraphs(tmp_path: Path) -> None:
    write_zip(tmp_path / "rcv1" / "19960820.zip", {2286: newsitem(2286, topics=["E513", "GCAT"])})
    text = "Crown gains.\nTraders said the crown's rate went up & stayed there.\nThe cafés of Elbónia were full."
    fields = {"title": "ELBONIA: Crown gains.", "date": "1996-08-20"}
    assert read(tmp_path) == [Document("2286", text, ("E51", "E513", "ECAT", "GCAT"), fields)]


def test_a_topic_brings_its_parent() -> None:
    for topic, parent in PARENTS.items():
        assert set(with_ancestors([topic])) == {topic, *with_ancestors([parent])}


def test_stories_with_topic_and_region_are_read_in_the_order_of_days_and_names(
    tmp_path: Path,
) -> None:
    write_zip(tmp_path / "rcv1" / "cd2" / "19970301.zip", {9: newsitem(9), 8: newsitem(8)})
    write_zip(
        tmp_path / "rcv1" / "cd1" / "disk" / "19960820.zip",
        {5: newsitem(5), 7: newsitem(7), 6: newsitem(6)},
    )
    unlabelled = {1: newsitem(1, topics=[]), 2: newsitem(2, countries=[]), 3: newsitem(3, [], [])}
    write_zip(tmp_path / "rcv1" / "19960821.zip", {**unlabelled, 4: newsitem(4)})
    write_zip(
        tmp_path / "rcv1" / "cd1" / "19960821.zip", {4: newsitem(4)}
    )  # a day that is there twice
    (tmp_path / "rcv1" / "codes.zip").write_bytes(b"no zip")
    with zipfile.ZipFile(tmp_path / "rcv1" / "19960821.zip", "a") as archive:
        archive.writestr("readme.txt", "no story")
    corpus = RCV1.corpus(RCV1.found(tmp_path), None)
    assert [story.id for story in corpus] == ["5", "6", "7", "4", "8", "9"]
    assert list(corpus) == list(corpus)
    assert corpus.share_read == 1.0


def test_folders_as_nist_sends_them_are_the_same_corpus(tmp_path: Path) -> None:
    path = write_zip(
        tmp_path / "zips" / "rcv1" / "19960820.zip", {i: newsitem(i) for i in range(2000, 2020)}
    )
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "folders" / "rcv1" / "rcv1" / "19960820")
    assert len(read(tmp_path / "zips")) == 20
    assert read(tmp_path / "zips") == read(tmp_path / "folders")


def test_what_is_damaged_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rcv1" / "19960820.zip"
    for offset in (0, 70, 140):
        write_zip(path, {1: newsitem(1), 2: newsitem(2)})
        with zipfile.ZipFile(path) as archive:
            start = archive.getinfo("2newsML.xml").header_offset + 30 + len("2newsML.xml")
        damaged = bytearray(path.read_bytes())
        damaged[start + offset] ^= 0xFF
        path.write_bytes(damaged)
        with pytest.raises(CorpusError, match=r"19960820\.zip"):
            read(tmp_path)
    no_code = newsitem(1).replace(b"iso-8859-1", b"no-such-code")
    for xml in (newsitem(1)[:-20], b"", b"no xml", no_code):
        write_zip(path, {1: xml})
        with pytest.raises(CorpusError, match=r"19960820\.zip, 1newsML\.xml"):
            read(tmp_path)

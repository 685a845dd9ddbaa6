"""A Wikipedia dump is read as a stream: the articles and nothing else, in memory that does not grow."""

import bz2
import tracemalloc
from collections.abc import Iterable
from html import escape
from pathlib import Path

import pytest

from parabit.corpus.datasets import find_dataset, in_split
from parabit.corpus.datasets.wikipedia import is_disambiguation
from parabit.corpus.document import Document
from parabit.errors import CorpusError

WIKIPEDIA = find_dataset("wikipedia")
NAME = "enwiki-20160405-pages-articles.xml.bz2"
ENGLISH = {"-1": "Special", "0": "", "1": "Talk", "6": "File", "10": "Template", "14": "Category"}


def page(id: int, title: str, *texts: str | None, ns: int = 0, redirect: str = "") -> str:
    """A page in the form of the export: revisions with ids of their own, the newest last; one of no text is deleted."""
    revisions = ""
    for text in texts or ("Text.",):
        content = (
            ' deleted="deleted" />' if text is None else f">{escape(text, quote=False)}</text>"
        )
        revisions += f"""
    <revision>
      <id>{id + 70_000}</id>
      <contributor><username>A bee</username><id>7</id></contributor>
      <text xml:space="preserve"{content}
      <sha1>0000</sha1>
    </revision>"""
    target = f'<redirect title="{escape(redirect)}" />' if redirect else ""
    return f"""  <page>
    <title>{escape(title)}</title>
    <ns>{ns}</ns>
    <id>{id}</id>{target}{revisions}
  </page>
"""


def head(namespaces: dict[str, str] = ENGLISH, version: str = "0.10") -> str:
    names = (
        f'<namespace key="{key}" case="first-letter">{name}</namespace>'
        for key, name in namespaces.items()
    )
    xmlns = f"http://www.mediawiki.org/xml/export-{version}/"
    return f"""<mediawiki xmlns="{xmlns}" version="{version}" xml:lang="en">
  <siteinfo><sitename>Wikipedia</sitename><namespaces>{"".join(names)}</namespaces></siteinfo>
"""


def dump(*pages: str, start: str = "") -> bytes:
    return f"{start or head()}{''.join(pages)}</mediawiki>\n".encode()


def write(data: Path, content: bytes, name: str = NAME) -> Path:
    path = data / "wikipedia" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(bz2.compress(content) if name.endswith(".bz2") else content)
    return path


def read(data: Path, split: str | None = None) -> list[Document]:
    return list(WIKIPEDIA.corpus(WIKIPEDIA.found(data), split))


def titles(documents: Iterable[Document]) -> list[str]:
    return [document.fields["title"] for document in documents]


@pytest.mark.parametrize("version", ["0.6", "0.11"])
def test_an_article_is_the_newest_text_its_categories_and_its_title(
    tmp_path: Path, version: str
) -> None:
    markup = "'''Bees''' & <b>wasps</b> {{x}}are [[insect]]s.<ref>y</ref>\n\n[[Category:Bees| ]]\n[[category:insects]]"
    write(tmp_path, dump(page(12, "Bees & wasps", "Old.", markup), start=head(version=version)))
    for name in (f"{NAME}-rss.xml", f"{NAME}.aria2", f"{NAME}.part"):  # what comes with a dump
        write(tmp_path, b"<rss/>", name)
    title = {"title": "Bees & wasps"}
    assert read(tmp_path) == [
        Document("12", "Bees & wasps are insects.", ("Bees", "Insects"), title)
    ]


def test_only_articles_are_read(tmp_path: Path) -> None:
    pages = [
        page(1, "Bee"),
        page(2, "Talk:Bee", ns=1),
        page(3, "Template:Bee", ns=10),
        page(4, "Category:Bees", ns=14),
        page(5, "Bees", "#REDIRECT [[Bee]]", redirect="Bee"),
        page(6, "The bee", "Moved.", redirect="Bee"),
        page(7, "A bee", "\n#Redirect [[Bee]]"),
        page(8, "Bee (disambiguation)"),
        page(9, "Hive", "'''Hive''' may be:\n* [[x]]\n{{Disambiguation}}"),
        page(10, "Nothing", "{{x}}\n[[Category:Empty]]"),
        page(11, "Deleted", None),
        page(12, "Star Trek: Voyager"),
        page(13, "Wasp", "Text without. <!-- {{disambig}} -->"),
    ]
    write(tmp_path, dump(*pages))
    assert titles(read(tmp_path)) == ["Bee", "Star Trek: Voyager", "Wasp"]


DISAMBIGUATIONS = [
    "disambiguation", "Disambiguation|geo|surname", "disambig", "Disambig\n", "dab", "DAB", "hndis|Smith, John",
    "geodis", "schooldis", "Numberdis", "Letter-number combination disambiguation", " disambig ",
    "Letter\u2013number combination disambiguation",
    "Human name disambiguation", "place_name_disambiguation", "Template:Disambig", "disambiguation cleanup|date=x",
]  # fmt: skip
ARTICLES = [
    "{{surname}}", "{{given name}}", "{{Surname|disambig=no}}", "{{disambiguation needed|date=May 2015}}",
    "{{about|the insect|others|Bee (disambiguation)}}", "{{other uses}}", "{{For|x|Bee (disambiguation)}}",
    "{{dablink|x}}", "{{dab needed}}", "{{set index article}}", "disambiguation", "[[disambiguation]]",
    "<nowiki>{{disambig}}</nowiki>", "{{Disambigua",
]  # fmt: skip


def test_a_disambiguation_template_marks_the_page_and_no_other_does() -> None:
    for markup in (*(f"{{{{{name}}}}}" for name in DISAMBIGUATIONS), *ARTICLES):
        found = is_disambiguation("Bee", f"'''Bee''' may be:\n* [[a]]\n{markup}\n")
        assert found == (markup not in ARTICLES), markup


def test_for_testing_a_category_has_20_articles_or_more(tmp_path: Path) -> None:
    held_out = [f"Article {i}" for i in range(800) if in_split(f"Article {i}", "test", 0.1)]
    twenty, nineteen = set(held_out[:20]), set(held_out[20:39])
    assert len(nineteen) == 19

    def markup(title: str) -> str:
        return (
            "Text."
            + "[[Category:Often]]" * (title in twenty)
            + "[[Category:Rare]]" * (title in nineteen)
        )

    write(tmp_path, dump(*(page(i, f"Article {i}", markup(f"Article {i}")) for i in range(800))))
    test = read(tmp_path, "test")
    assert set(titles(test)) == twenty
    assert {document.labels for document in test} == {("Often",)}
    assert ("Rare",) in {document.labels for document in read(tmp_path)}


def test_the_namespaces_are_called_as_the_dump_says(tmp_path: Path) -> None:
    german = head({"0": "", "1": "Diskussion", "6": "Datei", "14": "Kategorie"})
    markup = "Bienen[[Datei:Biene|mini|Eine [[Biene]]]] fliegen.[[File:y|z]]\n"
    markup += "[[Kategorie:Biene| ]][[Category:Insekt]][[en:Bee]]"
    write(
        tmp_path,
        dump(page(1, "Bienen", markup), start=german),
        "dewiki-latest-pages-articles.xml.bz2",
    )
    [document] = read(tmp_path)
    assert (document.text, document.labels) == ("Bienen fliegen.", ("Biene", "Insekt"))


def test_a_multistream_dump_is_the_same_corpus(tmp_path: Path) -> None:
    pages = [page(i, f"Article {i}") for i in range(30)]
    path = write(tmp_path, dump(*pages))
    one = read(tmp_path)
    assert len(one) == 30
    path.unlink()
    streams = [head(), *("".join(pages[i : i + 10]) for i in range(0, 30, 10)), "</mediawiki>\n"]
    path = path.with_name("enwiki-20160405-pages-articles-multistream.xml.bz2")
    path.write_bytes(b"".join(bz2.compress(stream.encode()) for stream in streams))
    path.with_name("enwiki-20160405-pages-articles-multistream-index.txt.bz2").write_bytes(
        bz2.compress(b"600:1:A\n")
    )
    assert read(tmp_path) == one


def test_a_dump_in_parts_is_read_in_order(tmp_path: Path) -> None:
    for part, range_ in (("1", "p1p2"), ("2", "p3p4")):
        pages = [page(2 * int(part) + i, f"Article {part}{i}") for i in range(2)]
        write(tmp_path, dump(*pages), f"enwiki-20160405-pages-articles{part}.xml-{range_}.bz2")
    assert titles(read(tmp_path)) == ["Article 10", "Article 11", "Article 20", "Article 21"]


def test_two_dumps_at_once_are_refused(tmp_path: Path) -> None:
    write(tmp_path, dump(page(1, "Bee")))
    for other in (
        *(
            f"enwiki-20160405-pages-articles{rest}"
            for rest in ("-multistream.xml.bz2", ".xml", "1.xml-p1p2.bz2")
        ),
        "enwiki-20260101-pages-articles.xml.bz2",
        "dewiki-20160405-pages-articles.xml.bz2",
    ):
        path = write(tmp_path, dump(page(1, "Bee")), other)
        with pytest.raises(CorpusError, match=r"more than one dump.*keep one"):
            read(tmp_path)
        path.unlink()


def test_what_is_no_dump_is_named(tmp_path: Path) -> None:
    for content, words in (
        (b"", "is damaged"),
        (b"no xml", "is damaged"),
        (dump(page(1, "A") + "&nope;"), "is damaged"),
        (b"<rss version='2.0'><channel/></rss>", "<rss> is not a MediaWiki dump"),
    ):
        write(tmp_path, content)
        with pytest.raises(CorpusError, match=rf"pages-articles\.xml\.bz2:? {words}"):
            read(tmp_path)


def test_a_cut_off_dump_is_named_after_its_whole_pages(tmp_path: Path) -> None:
    write(tmp_path, dump(page(1, "Bee"), page(2, "Wasp"))[:-40], "enwiki-latest-pages-articles.xml")
    documents = iter(WIKIPEDIA.corpus(WIKIPEDIA.found(tmp_path), None))
    assert next(documents).id == "1"
    with pytest.raises(
        CorpusError, match=r"enwiki-latest-pages-articles\.xml is damaged or cut off.*download"
    ):
        list(documents)


def test_memory_does_not_grow_with_the_number_of_pages(tmp_path: Path) -> None:
    def peak(pages: int) -> int:
        markup = "'''Bees''' are [[insect]]s. {{x}} " * 3 + "[[Category:Bees]]"
        write(tmp_path, dump(*(page(i, f"Article {i}", markup, ns=i % 3) for i in range(pages))))
        corpus = WIKIPEDIA.corpus(WIKIPEDIA.found(tmp_path), None)
        tracemalloc.start()
        try:
            count = sum(1 for _ in corpus)
            _, highest = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert count == (pages + 2) // 3
        return highest

    peak(20)  # what is made once and kept, such as compiled patterns
    few, many = peak(300), peak(3000)
    # The empty shells of 2,700 pages alone would take 240 kB.
    assert many < few + 100_000

"""What a file may cost: one that costs more is named and skipped, and the others are read."""

import bz2
import gzip
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from worst_files import NAMED, READ, write_worst_files

from made_up_files import make_pdf
from parabit.corpus import ReadOptions, open_corpus
from parabit.corpus.extract import from_html, from_markdown
from parabit.corpus.limits import ReadLimits
from parabit.corpus.sources import may_pass
from parabit.errors import CorpusError

Write = Callable[[str, str | bytes], Path]

SMALL = ReadLimits(seconds=0.5, memory_mb=500, document_mb=5, pages=50)


def test_the_worst_files_are_named_and_the_good_ones_read(tmp_path: Path) -> None:
    # Small ones of their kind, and small limits: with the large ones and the default limits it takes minutes.
    write_worst_files(tmp_path, big=120_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    corpus = open_corpus(tmp_path, ReadOptions(limits=SMALL))
    assert [document.id for document in corpus] == sorted(READ)
    reasons = {place.partition(":")[0]: reason for place, reason in corpus.skipped}
    assert sorted(reasons) == sorted(NAMED)
    for name, reason in reasons.items():
        assert reason.startswith(NAMED[name]), (name, reason)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kilobytes


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("f.jsonl", b'{"text": "' + b"x" * 2_000_000 + b'"}\n{"text": "good"}',
         "over a limit: more than 1 MB in one line (limit: document_mb=1)"),
        ("f.csv", b"text\n" + b"x" * 2_000_000 + b"\ngood\n",
         "over a limit: more than 1 MB in one line (limit: document_mb=1)"),
        ("f.csv", b"text\ngood\n" + b'"' + b"a line\n" * 200_000,
         "over a limit: more than 1 MB in one record, or a quote is never closed (limit: document_mb=1)"),
        ("f.csv", b"text\n" + b'good\n' + b"," * 200_000,
         "over a limit: more than 20 columns (limit: columns=20)"),
        ("f.jsonl", b'{"text": "good"}\n{"text": "x", "deep": [[[[1]]]]}',
         "over a limit: nested more than 3 deep (limit: depth=3)"),
    ],
)  # fmt: skip
def test_a_record_over_a_limit_costs_no_record_before_it(
    name: str, content: bytes, reason: str, write: Write
) -> None:
    limits = ReadLimits(document_mb=1, columns=20, depth=3)
    corpus = open_corpus(write(name, content), ReadOptions(limits=limits))
    assert [document.text for document in corpus] == ["good"]
    assert [skipped.reason for skipped in corpus.skipped] == [reason]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("f.txt", b"x" * 2_000_000, "more than 1 MB in one document (limit: document_mb=1)"),
        ("f.html", b"x" * 2_000_000, "more than 1 MB in one document (limit: document_mb=1)"),
        ("f.json", b'["' + b"x" * 2_000_000, "more than 1 MB in one document (limit: document_mb=1)"),
        ("f.jsonl.gz", gzip.compress(b'{"text": "x"}\n' * 200_000),
         "more than 5 times its size when decompressed (limit: expansion=5)"),
        ("f.csv.bz2", bz2.compress(b"," * 900_000), "more than 20 columns (limit: columns=20)"),
        ("f.pdf", make_pdf(*["x"] * 21), "more than 20 pages (limit: pages=20)"),
        ("f.md", b"[" * 200_000, "took more than 0.2 s (limit: seconds=0.2)"),
    ],
)  # fmt: skip
def test_a_file_over_a_limit_is_named_with_the_limit(
    name: str, content: bytes, reason: str, write: Write
) -> None:
    write(f"docs/a-{name}", content)
    write("docs/0.md", "good")
    folder = write(f"docs/{name}", content).parent
    write("docs/z.md", "good")
    limits = ReadLimits(document_mb=1, columns=20, expansion=5, pages=20, seconds=0.2)
    corpus = open_corpus(folder, ReadOptions(limits=limits))
    texts = [document.text for document in corpus]
    assert (texts[0], texts[-1]) == ("good", "good")
    assert [place.partition(":")[0] for place, _ in corpus.skipped] == [f"a-{name}", name]
    assert {skipped.reason for skipped in corpus.skipped} == {f"over a limit: {reason}"}
    assert corpus.skipped.counts == {"over a limit": 2}
    with pytest.raises(CorpusError, match="over a limit.*PARABIT_LIMITS"):
        list(open_corpus(folder / name, ReadOptions(limits=limits, strict=True)))


def test_a_large_file_of_small_records_has_no_limit(write: Write) -> None:
    records = b'{"text": "one of many"}\n' * 100_000
    path = write("f.jsonl", records)
    assert (
        sum(1 for _ in open_corpus(path, ReadOptions(limits=ReadLimits(document_mb=1)))) == 100_000
    )


def test_limits_come_from_python_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARABIT_LIMITS", "seconds=.5 pages=7")
    assert ReadOptions().limits == ReadLimits(seconds=0.5, pages=7)
    assert ReadOptions(limits=ReadLimits(pages=9)).limits == ReadLimits(pages=9)
    for wrong in ("second=1", "seconds", "seconds=many", "seconds=0", "seconds=nan", "pages=-1"):
        monkeypatch.setenv("PARABIT_LIMITS", wrong)
        with pytest.raises(CorpusError, match="seconds=60|it is a number above 0"):
            ReadOptions()


def test_what_took_too_long_is_tried_again_and_what_is_too_large_is_not() -> None:
    assert may_pass("over a limit: took more than 20 s (limit: seconds=20)")
    assert not may_pass("over a limit: more than 100 MB in one line (limit: document_mb=100)")


@pytest.mark.parametrize(
    "codec", ["idna", "punycode", "unicode_escape", "undefined", "utf-7", "hex", "mbcs", "utf-16"]
)
def test_a_page_in_no_encoding_of_pages_is_read_by_its_bytes(codec: str) -> None:
    page = from_html(f'<meta charset="{codec}"><p>caf'.encode() + b"\xe9")
    assert (page.text, page.note) == ("café", "decoded as Windows-1252")


@pytest.mark.parametrize("encoding", ["idna", "undefined", "rot13", "no such"])
def test_an_encoding_that_decodes_no_text_is_refused(encoding: str) -> None:
    with pytest.raises(CorpusError, match="no such encoding"):
        ReadOptions(encoding=encoding)


def test_an_unexpected_error_of_a_reader_costs_one_file(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(text: str) -> str:
        if "bad" in text:
            raise MemoryError if "large" in text else ZeroDivisionError("by\nzero")
        return ""

    monkeypatch.setattr("parabit.corpus.readers._subject", broken)
    write("docs/1.txt", "bad")
    write("docs/2.txt", "bad and large")
    folder = write("docs/3.txt", "good").parent
    corpus = open_corpus(folder)
    assert [document.id for document in corpus] == ["3.txt"]
    assert [skipped.reason for skipped in corpus.skipped] == [
        "cannot be read: ZeroDivisionError: by",
        "cannot be read: out of memory",
    ]
    with pytest.raises(CorpusError, match="ZeroDivisionError"):
        list(open_corpus(folder, ReadOptions(strict=True)))


# No clock: each took more than a minute when its time was the square of its length.
SLOW = {
    "title": "---\ntitle: a" + " " * 200_000 + "b\n---\ntext",
    "titles": "---\n" + "title: ' a\n" * 100_000 + "---\ntext",
    "ends": "---\na: b\n" + "--- x\n" * 100_000,
    "spaces": "---" + " " * 200_000 + "x",
    "scripts": "a " + "<script> b " * 20_000,
    "styles": "a " + "<style> b <script> c " * 20_000,
    "footnotes": "a " + "[^" * 10_000,
}


@pytest.mark.parametrize("case", SLOW)
def test_our_own_steps_of_markdown_are_linear(case: str) -> None:
    program = "import sys; from parabit.corpus.extract import from_markdown; from_markdown(sys.stdin.read())"
    subprocess.run(
        [sys.executable, "-c", program], input=SLOW[case], text=True, timeout=55, check=True
    )


def test_titles_of_front_matter() -> None:
    for line, title in (
        ("title: A  b ", "A  b"), ("TITLE = 'a'", "a"), ('title: "a', '"a'), ('title: "a" b', '"a" b'),
        ("title: ''", "''"), ("title:", None), ("titles: a", None), ("subtitle: x\ntitle : b", "b"),
    ):  # fmt: skip
        assert from_markdown(f"---\n{line}\n---\ntext") == ("text", title, "")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors")
def test_reading_leaves_no_descriptors_open(write: Write) -> None:
    folder = write("docs/a.md", "good").parent
    list(open_corpus(folder))
    descriptors = Path("/proc/self/fd")
    before = len([*descriptors.iterdir()])
    for _ in range(5):
        next(iter(open_corpus(folder)))
        list(open_corpus(folder))
    assert len([*descriptors.iterdir()]) <= before

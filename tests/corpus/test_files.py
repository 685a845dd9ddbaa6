"""Formats: what each file holds as documents, and what is said of those that cannot be read."""

import bz2
import contextlib
import csv
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from made_up_files import encrypted_pdf, make_pdf
from parabit.corpus import Document, ReadOptions, open_corpus
from parabit.corpus.limits import ReadLimits
from parabit.corpus.parquet import tables_of
from parabit.errors import CorpusError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Write = Callable[[str, str | bytes], Path]

RECORDS = [
    {"id": "a", "text": "Hubble, repaired\nin orbit", "label": "space", "year": "1993"},
    {"id": "b", "text": 'the "goalie" stood\tstill', "label": "hockey", "year": "1994"},
    {"id": "c", "text": "čaj à la reine", "label": "food", "year": "1995"},
]
DOCUMENTS = [Document(r["id"], r["text"], (r["label"],), {"year": r["year"]}) for r in RECORDS]


def table(delimiter: str) -> bytes:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(RECORDS[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(RECORDS)
    return buffer.getvalue().encode()


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


LINES = "\n".join(json.dumps(record) for record in RECORDS).encode()
FORMATS = {
    "jsonl": LINES,
    "ndjson": "\n\n".join(json.dumps(record, ensure_ascii=False) for record in RECORDS).encode()
    + b"\n",
    "json": json.dumps(RECORDS, indent=1).encode(),
    "csv": table(","),
    "tsv": table("\t"),
    "parquet": parquet(pl.DataFrame(RECORDS)),
}
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".zst": zstd.compress, ".bz2": bz2.compress,
}  # fmt: skip


def test_every_format_gives_the_same_documents(write: Write) -> None:
    for format, content in FORMATS.items():
        for ending, compressed in COMPRESSIONS.items():
            corpus = open_corpus(
                write(f"[f].{format}{ending}", compressed(content))
            )  # a name, and no pattern
            assert list(corpus) == list(corpus) == DOCUMENTS
            assert corpus.share_read == 1.0


def test_a_record_without_an_id_is_named_by_its_path_and_line(write: Write) -> None:
    for name, content, ids in (
        ("f.jsonl", '\n{"text": "a"}\n{"text": "b", "id": 7}', ["sub/f.jsonl:2", "7"]),
        ("f.json", '{"text": "a"}\n{"text": "b"}', ["sub/f.json:1", "sub/f.json:2"]),
        ("f.json", '[{"text": "a"}, {"text": "b"}]', ["sub/f.json:1", "sub/f.json:2"]),
        ("f.json", '{\n"text": "a"\n}', ["sub/f.json:1"]),
        ("f.csv", 'text\n"two\nlines"\nb', ["sub/f.csv:2", "sub/f.csv:4"]),
        (
            "f.parquet",
            parquet(pl.DataFrame({"text": ["a", "b"]})),
            ["sub/f.parquet:1", "sub/f.parquet:2"],
        ),
    ):
        path = write(f"docs/sub/{name}", content)
        assert [d.id for d in open_corpus(path)] == [id.removeprefix("sub/") for id in ids]
        assert [d.id for d in open_corpus(path.parent.parent)] == ids
        path.unlink()


def test_lines_are_documents_when_asked_for(write: Write) -> None:
    content = "\ufeffone\r\n\r\nthree\u2028still three"
    for encoding in ("utf-8", "utf-16", "utf-32"):
        path = write("f.txt", content.encode(encoding))
        assert [(d.id, d.text) for d in open_corpus(path, ReadOptions(format="lines"))] == [
            ("f.txt:1", "one"), ("f.txt:2", ""), ("f.txt:3", "three\u2028still three"),
        ]  # fmt: skip
    with pytest.raises(CorpusError, match="the formats are"):
        open_corpus("f.txt", ReadOptions(format="xml"))


def test_fields_are_chosen_by_name(write: Write) -> None:
    path = write(
        "f.jsonl", '{"title": "T", "body": "B", "key": 7, "topics": ["x", "y", "x"], "n": 1}'
    )
    options = ReadOptions(text_fields=("title", "body"), id_field="key", label_field="topics")
    [document] = open_corpus(path, options)
    assert document == Document("7", "T\n\nB", ("x", "y"), {"n": 1, "title": "T"})
    [document] = open_corpus(path, ReadOptions(text_fields=("body",), id_field=""))
    assert document.id == "f.jsonl:1"
    # A field may serve twice.
    options = ReadOptions(text_fields=("title",), id_field="title", label_field="title")
    assert [(d.id, d.text, d.labels) for d in open_corpus(path, options)] == [("T", "T", ("T",))]


def test_labels_are_none_one_or_many(write: Write) -> None:
    several = ['"x"', "3", "null", '""', '["x", 3]']
    path = write("f.jsonl", "\n".join(f'{{"text": "t", "labels": {labels}}}' for labels in several))
    assert [document.labels for document in open_corpus(path)] == [
        ("x",),
        ("3",),
        (),
        (),
        ("x", "3"),
    ]


# What can be wrong with a file, and the error if it is read alone.
BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("f.jsonl", b"", r"f\.jsonl: empty file"),
    "blank": ("f.txt", b" \n", "no text"),
    "blank lines": ("f.jsonl", b"\n\n", "no records"),
    "header alone": ("f.csv", b"id,text\n", "no records"),
    "invalid JSON": ("f.jsonl", b'{"text": "a"}\n{"text": \n', r"f\.jsonl, line 2: not valid JSON"),
    "invalid JSON file": ("f.json", b'[{"text": "a"},', r"f\.json: not valid JSON"),
    "JSON array": ("f.jsonl", b'["text"]', r'line 1: not a JSON object: \["text"\]'),
    "endless number": ("f.jsonl", b'{"text": "a", "n": ' + b"9" * 5000 + b"}", "line 1: not valid JSON: .*digits"),
    "half a surrogate": (
        "f.jsonl",
        b'{"id": "\\ud800", "text": "a"}',
        "line 1: half of a surrogate pair in the id",
    ),
    "deep nesting": ("f.jsonl", b"[" * 100_000, "line 1: not valid JSON"),
    "missing field": ("f.jsonl", b'{"a": "a", "b": "b"}', "line 1: no text field: 'text' is not among a, b"),
    "missing CSV field": ("f.csv", b"a,b\na,b\n", r"f\.csv: no text field: 'text' is not among a, b; .*--text-field"),
    "text is a number": ("f.jsonl", b'{"text": 7}', "text not usable: the field 'text' has type int"),
    "text is null": ("f.jsonl", b'{"text": null}', "text is missing"),
    "id is a list": ("f.jsonl", b'{"text": "a", "id": []}', "id not usable: the field 'id' has type list"),
    "id is empty": ("f.csv", b"id,text\n,a\n", "line 2: id is missing: the field 'id' is empty; .*--id-field ''"),
    "labels are objects": ("f.jsonl", b'{"text": "a", "labels": {"x": 1}}', "label not usable"),
    "binary": ("f.txt", bytes(range(256)) * 10, "binary file; parabit reads text, Markdown, HTML"),
    "no zeros, yet binary": ("f.key", bytes(range(1, 256)), "binary file"),
    "binary JSON": ("f.json", bytes(range(1, 256)), r"f\.json: binary file"),
    "Japanese": ("f.txt", "、日本語".encode("shift-jis"), "unknown encoding: neither UTF-8 nor .*--encoding"),
    "lone carriage return": ("f.csv", b"text\none\rtwo\n", "line 2: not valid CSV: a carriage return within a line"),
    "ragged CSV": ("f.csv", b"id,text\n1,a,b\n", "line 2: wrong number of fields: 3 where the header names 2"),
    "unclosed quote": ("f.csv", b'text\n"never closed\n', "line 2: not valid CSV: .*--no-quotes"),
    "same field twice": ("f.csv", b"text,text\na,b\n", "two fields of one name: 'text'"),
    "truncated gzip": ("f.txt", gzip.compress(b"line\n" * 100_000)[:-20], "damaged or cut off"),
    "damaged bzip2": ("f.txt", b"BZh91AY&SY" + b"junk" * 20, "damaged or cut off"),
    "truncated Parquet": ("f.parquet", FORMATS["parquet"][:-30], "damaged or cut off"),
    "archive": ("f.tar.gz", b"not even looked at", "archive; unpack it first"),
    "encrypted PDF": ("f.pdf", encrypted_pdf("password"), "not readable as PDF: .*encrypted"),
    "PDF of pictures": ("f.pdf", make_pdf("", ""), "not readable as PDF: no text"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_an_error_if_strict_and_skipped_in_a_folder(case: str, write: Write) -> None:
    name, content, words = BAD_FILES[case]
    path = write(f"docs/{name}", content)
    with pytest.raises(CorpusError, match=f"(?s){words}"):
        list(open_corpus(path, ReadOptions(strict=True)))
    if ", line" not in words and "line" not in words.split(":")[0]:
        with pytest.raises(CorpusError, match=f"(?s)no documents in .*f\\.|{words}"):
            list(open_corpus(path))
    write("docs/good.txt", "good")
    corpus = open_corpus(path.parent)
    assert "good.txt" in [document.id for document in corpus]
    [skipped] = corpus.skipped
    assert skipped.place.partition(":")[0] == name


def test_bad_records_are_skipped_and_named(write: Write) -> None:
    lines = [b'{"text": "good"}', b"{", b"[]", b'{"title": "no text"}', b'{"text": "good too"}']
    corpus = open_corpus(write("f.jsonl", b"\n".join(lines)))
    for _ in range(2):  # those of the latest reading
        assert [(d.id, d.text) for d in corpus] == [
            ("f.jsonl:1", "good"),
            ("f.jsonl:5", "good too"),
        ]
        assert [skipped.place for skipped in corpus.skipped] == [
            "f.jsonl:2",
            "f.jsonl:3",
            "f.jsonl:4",
        ]
        assert corpus.skipped.counts == {
            "not valid JSON": 1,
            "not a JSON object": 1,
            "no text field": 1,
        }
    with pytest.raises(
        CorpusError, match=r"2 skipped \(2 not valid JSON\), the first is g.jsonl:1"
    ):
        list(open_corpus(write("g.jsonl", "{\n{")))


def test_a_bad_row_costs_its_whole_record_and_no_other(write: Write) -> None:
    rows = [
        b"id,text",
        b'1,"first',
        b"b\x81d line",
        b'last"',
        b"2,good",
        b"3,ragged,row",
        b"",
        b"4,caf\xe9",
    ]
    corpus = open_corpus(write("f.csv", b"\n".join(rows)))
    assert [(d.id, d.text) for d in corpus] == [("2", "good"), ("4", "café")]
    assert [skipped.place for skipped in corpus.skipped] == ["f.csv:3", "f.csv:6"]
    with pytest.raises(CorpusError, match="line 3: not valid utf-8: byte 0x81 at 1"):
        list(
            open_corpus(
                write("f.csv", b"\n".join(rows)), ReadOptions(encoding="utf-8", strict=True)
            )
        )


def test_encodings_are_known_by_the_first_bytes_or_guessed_and_said(write: Write) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        for name in ("f.txt", "f.md", "f.html", "f.jsonl"):
            content = (
                json.dumps({"text": "naïve čaj"}, ensure_ascii=False)
                if name == "f.jsonl"
                else "naïve čaj"
            )
            corpus = open_corpus(write(name, content.encode(encoding)))
            assert [d.text for d in corpus] == ["naïve čaj"]
            assert not len(corpus.notes)
    write("old/a.txt", "naïve “café”".encode("cp1252"))
    write("old/b.jsonl", '{"text": "ascii"}\n{"text": "café"}'.encode("cp1252"))
    corpus = open_corpus(write("old/c.txt", "plain").parent)
    assert [d.text for d in corpus] == ["naïve “café”", "ascii", "café", "plain"]
    assert [place for place, _ in corpus.notes] == ["a.txt", "b.jsonl"]
    assert corpus.notes.counts == {"decoded as Windows-1252": 2}
    write("pages/a.html", "<p>café".encode("cp1252"))
    corpus = open_corpus(write("pages/b.html", b"<meta charset=utf-8><p>caf\xe9").parent)
    assert [d.text for d in corpus] == ["café", "caf\ufffd"]
    assert [*corpus.notes] == [
        ("a.html", "decoded as Windows-1252"),
        ("b.html", "bytes that are not utf-8"),
    ]
    forced = open_corpus(
        write("g.txt", "čaj".encode("iso-8859-2")), ReadOptions(encoding="iso-8859-2")
    )
    assert ([d.text for d in forced], len(forced.notes)) == (["čaj"], 0)


def test_columns_that_are_not_fields_are_not_read(write: Write) -> None:
    """Vectors and nested records make a table several times larger."""
    frame = pl.DataFrame(
        {
            "id": [1], "text": ["a"], "labels": [[1, 2]], "title": ["T"], "tags": [["x"]], "year": [1993],
            "day": [date(1993, 12, 2)], "vector": [[0.5] * 9], "blob": [b"x"], "nested": [{"a": 1}],
        }
    )  # fmt: skip
    path = write("f.parquet", parquet(frame))
    [document] = open_corpus(path)
    head, table = tables_of(str(path), ["id", "text", "labels"], ReadLimits())
    assert head.columns == frame.columns
    assert table.columns == ["id", "text", "labels", "title", "tags", "year", "day"]
    fields = {"title": "T", "tags": ["x"], "year": 1993, "day": "1993-12-02"}
    assert document == Document("1", "a", ("1", "2"), fields)


def test_a_missing_file_is_named(write: Write) -> None:
    path = write("articles.jsonl", "{}")
    with pytest.raises(
        CorpusError, match=r"no such file or folder: .*article\.jsonl; `parabit datasets` lists"
    ):
        open_corpus(path.with_name("article.jsonl"))
    corpus = open_corpus(path)
    path.unlink()
    with pytest.raises(CorpusError, match="not there any more"):
        list(corpus)


def test_options_are_checked() -> None:
    wrong: list[dict[str, Any]] = [
        {"text_fields": "body"},
        {"text_fields": ()},
        {"include": "*.md"},
        {"encoding": "x"},
    ]
    for options in wrong:
        with pytest.raises(CorpusError, match="it is a tuple|no such encoding: x"):
            ReadOptions(**options)


@pytest.mark.parametrize(
    ("content", "format", "expected"),
    [
        (gzip.compress(FORMATS["parquet"]), None, ["a", "b", "c"]),
        (FORMATS["csv"], "csv", ["a", "b", "c"]),
        (b'{"text": "x"}\n\n{"text": "y"}', None, ["0", "1"]),
        (b"one\n\nthree", None, ["0", "1", "2"]),
    ],
)
def test_standard_input_is_read_more_than_once(
    content: bytes, format: str | None, expected: list[str]
) -> None:
    program = (
        "from parabit import ReadOptions, open_corpus\n"
        f"corpus = open_corpus('-', ReadOptions(format={format!r}))\n"
        "assert (first := list(corpus)) == list(corpus)\n"
        "print([d.id for d in first])"
    )
    child = subprocess.run(
        [sys.executable, "-c", program], input=content, capture_output=True, check=True
    )
    assert child.stdout.decode() == f"{expected}\n"


def test_pipes_are_kept_to_be_read_again(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        pool.submit(pipe.write_bytes, gzip.compress(LINES))
        corpus = open_corpus(pipe)
        assert list(corpus) == list(corpus) == DOCUMENTS


PEAK = (
    "import resource; from parabit import open_corpus\n"
    "list(zip(open_corpus('docstrings'), range(1)))\n"
    "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
    "read = [sum(len(d.text) for d in open_corpus({path!r}))]\n"
    "print(*read, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
)


def peak(path: Path) -> tuple[int, int]:
    """The characters of a corpus, and by how many MB a process grows while it reads them."""
    child = subprocess.run(
        [sys.executable, "-c", PEAK.format(path=str(path))], capture_output=True, check=True
    )
    characters, grown = map(int, child.stdout.split())
    return characters, grown


def test_parquet_is_read_piece_by_piece(tmp_path: Path) -> None:
    """250 MB of text in row groups of 12 MB must not become 250 MB of memory."""
    path = tmp_path / "big.parquet"
    digits = np.random.default_rng(0).integers(10**17, size=(1000, 700))
    texts = [" ".join(map(str, row)) for row in digits.tolist()] * 20
    pl.DataFrame({"text": texts}).write_parquet(path, row_group_size=1000)
    characters, grown = peak(path)
    assert (characters, grown < 150) == (sum(map(len, texts)), True)


def test_what_is_binary_is_not_decompressed_whole(write: Write) -> None:
    """A small file that unpacks to 300 MB, under names that do and do not say that it is an archive."""
    packed = gzip.compress(bytes(300_000_000), compresslevel=1)
    for name in ("backup.gz", "backup.tar.gz", "dump.jsonl.gz", "page.html.gz"):
        write(f"docs/{name}", packed)
    characters, grown = peak(write("docs/a.txt", "text").parent)
    assert (characters, grown < 50) == (4, True)


def test_a_flipped_byte_in_a_table_loses_no_row_in_silence(tmp_path: Path) -> None:
    """polars may stop in the middle of a damaged file without a word."""
    path = tmp_path / "f.parquet"
    rng = np.random.default_rng(0)
    pl.DataFrame(
        {"text": [" ".join(map(str, rng.integers(10**9, size=9))) for _ in range(3000)]}
    ).write_parquet(path)
    whole = path.read_bytes()
    for place in rng.integers(len(whole), size=60).tolist():
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with contextlib.suppress(CorpusError):
            corpus = open_corpus(path)
            assert sum(1 for _ in corpus) + len(corpus.skipped) == 3000


def test_rows_that_polars_leaves_out_are_missed(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("f.parquet", FORMATS["parquet"])
    monkeypatch.setattr(
        pl.LazyFrame, "collect_batches", lambda *_, **__: iter([pl.DataFrame(RECORDS[:2])])
    )
    with pytest.raises(CorpusError, match="damaged or cut off: 2 of 3 rows can be read"):
        list(tables_of(str(path), ["text"], ReadLimits()))


def test_what_a_table_holds_stays_as_it_is(write: Write) -> None:
    assert [d.text for d in open_corpus(write("f.csv", b'text\r\n"a\r\nb"\r\n  spaced  \r\nlast'))] == [
        "a\r\nb", "  spaced  ", "last",
    ]  # fmt: skip
    path = write("f.tsv", 'id\ttext\n1\t"Hello she said\n2\tfoo"\n3\tbar')
    assert [d.text for d in open_corpus(path, ReadOptions(quotes=False))] == [
        '"Hello she said',
        'foo"',
        "bar",
    ]
    long = "word " * 100_000
    for name, content in (("l.csv", f'text\n"{long}"\n'), ("l.jsonl", json.dumps({"text": long}))):
        assert next(iter(open_corpus(write(name, content)))).text == long


def test_compression_is_known_by_content(write: Write) -> None:
    assert [d.text for d in open_corpus(write("f.txt", "BZhubble"))] == ["BZhubble"]
    window: dict[int, int] = {
        zstd.CompressionParameter.window_log: 28,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
    }
    packed = zstd.compress(b"line\n" * 9, options=window)
    skipped = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"skip"
    for content in (packed, skipped + packed):
        assert len(list(open_corpus(write("g.txt.zst", content), ReadOptions(format="lines")))) == 9
    two = gzip.compress(b"one\n") + gzip.compress(b"two\n")
    assert [d.text for d in open_corpus(write("h.txt", two))] == ["one\ntwo\n"]


def test_compressed_pages_are_known_by_content(write: Write) -> None:
    page = b"<p>one"
    skipped = b"\x5f\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"skip"
    ways = [gzip.compress(page), bz2.compress(page), zstd.compress(page)]
    ways.append(skipped + zstd.compress(page))
    ways.append(b"BZh<p>one")  # not compressed
    for number, content in enumerate(ways):
        folder = write(f"docs/{number}.html", content).parent
    assert [document.text for document in open_corpus(folder)] == ["one"] * 4 + ["BZh\none"]

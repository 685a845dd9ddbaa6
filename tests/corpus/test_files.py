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
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from parabit.corpus import Document, ReadOptions, open_corpus
from parabit.corpus.sources import zstd
from parabit.errors import CorpusError

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


def parquet() -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(RECORDS).write_parquet(buffer)
    return buffer.getvalue()


FORMATS = {
    "jsonl": "\n".join(json.dumps(record) for record in RECORDS).encode(),
    "ndjson": "\n\n".join(json.dumps(record, ensure_ascii=False) for record in RECORDS).encode() + b"\n",
    "csv": table(","),
    "tsv": table("\t"),
    "parquet": parquet(),
}
COMPRESSIONS = {"": bytes, ".gz": gzip.compress, ".zst": zstd.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_every_format_gives_the_same_documents(format: str, ending: str, write: Write) -> None:
    corpus = open_corpus(write(f"f.{format}{ending}", COMPRESSIONS[ending](FORMATS[format])))
    assert list(corpus) == DOCUMENTS
    assert list(corpus) == DOCUMENTS  # and again
    assert corpus.share_read == 1.0


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_a_folder_of_shards_is_one_corpus(format: str, write: Write) -> None:
    for place in range(2):
        write(f"shards/part-{place}.{format}", FORMATS[format])
    assert list(open_corpus(write("shards/.hidden", "").parent)) == DOCUMENTS * 2


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_a_text_file_has_a_document_a_line(ending: str, write: Write) -> None:
    path = write(f"f.txt{ending}", COMPRESSIONS[ending]("\ufeffone\r\n\r\nthree\u2028still three".encode()))
    assert [(d.id, d.text) for d in open_corpus(path)] == [("0", "one"), ("1", ""), ("2", "three\u2028still three")]


def test_in_a_folder_each_text_file_is_a_document_and_its_sub_folder_the_label(write: Write) -> None:
    write("posts/sci.space/1", "Hubble\nrepaired")
    write("posts/rec/hockey/2.txt", "goalie")
    write("posts/3.txt.gz", gzip.compress(b"no label"))
    folder = write("posts/.git/config", "hidden").parent.parent
    assert list(open_corpus(folder)) == [
        Document("3.txt.gz", "no label"),
        Document("rec/hockey/2.txt", "goalie", ("rec/hockey",)),
        Document("sci.space/1", "Hubble\nrepaired", ("sci.space",)),
    ]


def test_fields_are_chosen_by_name(write: Write) -> None:
    path = write("f.jsonl", '{"title": "T", "body": "B", "key": 7, "topics": ["x", "y", "x"], "n": 1}')
    options = ReadOptions(text_fields=("title", "body"), id_field="key", label_field="topics")
    assert list(open_corpus(path, options)) == [Document("7", "T\n\nB", ("x", "y"), {"n": 1})]
    # A field may serve twice.
    options = ReadOptions(text_fields=("title",), id_field="title", label_field="title")
    assert [(d.id, d.text, d.labels) for d in open_corpus(path, options)] == [("T", "T", ("T",))]


@pytest.mark.parametrize(
    ("labels", "expected"), [('"x"', ("x",)), ("3", ("3",)), ("null", ()), ('""', ()), ('["x", 3]', ("x", "3"))]
)
def test_labels_are_none_one_or_many(labels: str, expected: tuple[str, ...], write: Write) -> None:
    assert next(iter(open_corpus(write("f.jsonl", f'{{"text": "t", "labels": {labels}}}')))).labels == expected


def test_without_an_id_field_the_position_is_the_id(write: Write) -> None:
    assert [d.id for d in open_corpus(write("f.jsonl", '{"text": "a"}\n{"text": "b"}'))] == ["0", "1"]


def test_the_format_can_be_named(write: Write) -> None:
    assert len(list(open_corpus(write("strange.name", FORMATS["csv"]), format="csv"))) == 3
    assert [d.text for d in open_corpus(write("f.log", "a\nb"), format="lines")] == ["a", "b"]
    with pytest.raises(CorpusError, match="the formats are"):
        open_corpus("f.txt", format="xml")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-32"])
def test_other_encodings_are_read_when_named(encoding: str, write: Write) -> None:
    path = write("f.txt", "café\nnaïve".encode(encoding))
    assert [d.text for d in open_corpus(path, ReadOptions(encoding=encoding))] == ["café", "naïve"]


def test_a_long_field_is_not_cut(write: Write) -> None:
    text = "word " * 100_000
    for name, content in (("f.csv", f'text\n"{text}"\n'), ("f.jsonl", json.dumps({"text": text}))):
        assert next(iter(open_corpus(write(name, content)))).text == text


# What can be wrong with a file, and what the user must read of it.
BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("f.jsonl", b"", "no documents in .*the file is empty"),
    "empty text": ("f.txt", b"", "no documents"),
    "blank lines": ("f.jsonl", b"\n\n", "no documents in .*holds no records"),
    "header alone": ("f.csv", b"id,text\n", "no documents in .*holds no records"),
    "invalid JSON": ("f.jsonl", b'{"text": "a"}\n{"text": \n', r"f\.jsonl, line 2: not valid JSON"),
    "JSON array": ("f.jsonl", b'["text"]', r"line 1: a JSON array where an object is needed"),
    "endless number": ("f.jsonl", b'{"text": "a", "n": ' + b"9" * 5000 + b"}", "line 1: .*a number is too long"),
    "half a surrogate": ("f.jsonl", b'{"text": "\\ud800"}', "line 1: half of a surrogate pair"),
    "deep nesting": ("f.jsonl", b"[" * 100_000, "line 1: not valid JSON"),
    "missing field": ("f.jsonl", b'{"title": "a", "body": "b"}', "line 1: no field 'text'; there are: title, body"),
    "missing CSV field": ("f.csv", b"title,body\na,b\n", "line 2: no field 'text'; there are: title, body"),
    "text is a number": ("f.jsonl", b'{"text": 7}', "the field 'text' holds a int, not text"),
    "text is null": ("f.jsonl", b'{"text": null}', "the field 'text' holds nothing"),
    "id is a list": ("f.jsonl", b'{"text": "a", "id": []}', "the id in 'id' is a list"),
    "labels are objects": ("f.jsonl", b'{"text": "a", "labels": {"x": 1}}', "the labels in 'labels' are a dict"),
    "wrong encoding": ("f.txt", "ok\ncafé".encode("latin-1"), r"line 2: not valid utf-8: byte 0xe9 at 3; .*--encoding"),
    "binary": ("f.txt", bytes(range(256)) * 10, "is a binary file, not text"),
    "UTF-16": ("f.txt", "text".encode("utf-16"), "is UTF-16, not utf-8; read it with --encoding utf-16"),
    "UTF-32": ("f.txt", "text".encode("utf-32"), "is UTF-32, not utf-8; read it with --encoding utf-32"),
    "lone carriage return": ("f.csv", b"text\none\rtwo\n", "line 2: a carriage return within a line"),
    "truncated gzip": ("f.txt", gzip.compress(b"line\n" * 100_000)[:-20], "is damaged or cut off"),
    "damaged gzip": ("f.txt", gzip.compress(b"line\n" * 100)[:10] + b"junk" * 20, "is damaged or cut off"),
    "truncated zstd": ("f.txt", zstd.compress(bytes(range(100)) * 999)[:-9], "is damaged or cut off"),
    "truncated bzip2": ("f.txt", bz2.compress(b"line\n" * 100_000)[:-9], "is damaged or cut off"),
    "damaged bzip2": ("f.txt", b"BZh91AY&SY" + b"junk" * 20, "is damaged or cut off"),
    "truncated Parquet": ("f.parquet", FORMATS["parquet"][:-30], "is not a whole Parquet file"),
    "Parquet in name": ("f.parquet", b"just text", "is not a whole Parquet file"),
    "ragged CSV": ("f.csv", b"id,text\n1,a,b\n", "line 2: 3 fields where the header names 2"),
    "unclosed quote": ("f.csv", b'text\n"never closed\n', "not valid CSV"),
    "same field twice": ("f.csv", b"text,text\na,b\n", "names the field 'text' twice"),
    "unknown ending": ("f.docx", b"text", "the ending of .* tells no format; name one with --format"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_told_in_words(case: str, write: Write) -> None:
    name, content, words = BAD_FILES[case]
    path = write(name, content)
    with pytest.raises(CorpusError, match=f"(?s){words}"):
        list(open_corpus(path))


def test_bad_records_can_be_skipped_and_are_counted(write: Write) -> None:
    lines = [b'{"text": "good"}', b"{", b"[]", b'{"title": "no text"}', b'{"text": "caf\xe9"}', b'{"text": "good too"}']
    corpus = open_corpus(write("f.jsonl", b"\n".join(lines)), ReadOptions(skip_bad=True))
    for _ in range(2):  # the count is that of the latest reading
        assert [(d.id, d.text) for d in corpus] == [("0", "good"), ("1", "good too")]
        assert corpus.skipped == 4


def test_bad_rows_of_a_table_can_be_skipped(write: Write) -> None:
    path = write("f.csv", b"id,text\n1,good\n2,bad,row\n3,caf\xe9\n\n4,good\n")
    corpus = open_corpus(path, ReadOptions(skip_bad=True))
    assert [d.id for d in corpus] == ["1", "4"]
    assert corpus.skipped == 2


def test_binary_files_in_a_folder_can_be_skipped(write: Write) -> None:
    write("posts/1.txt", "text")
    folder = write("posts/2.png", b"\x89PNG\0\0").parent
    with pytest.raises(CorpusError, match=r"2\.png is a binary file"):
        list(open_corpus(folder))
    corpus = open_corpus(folder, ReadOptions(skip_bad=True))
    assert [d.id for d in corpus] == ["1.txt"]
    assert corpus.skipped == 1


def test_all_records_bad_is_no_corpus(write: Write) -> None:
    with pytest.raises(CorpusError, match="all 2 records were bad"):
        list(open_corpus(write("f.jsonl", "{\n{"), ReadOptions(skip_bad=True)))


def test_a_missing_file_is_told_with_the_nearest_name(write: Write) -> None:
    path = write("articles.jsonl", "{}")
    with pytest.raises(CorpusError, match=r"no such file or folder: .*did you mean .*articles\.jsonl"):
        open_corpus(path.with_name("article.jsonl"))
    with pytest.raises(CorpusError, match="is not there either"):
        open_corpus(path.parent / "no" / "such")


def test_an_empty_folder_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no files in the folder"):
        open_corpus(tmp_path)


def test_a_file_that_goes_away_is_told(write: Write) -> None:
    path = write("f.txt", "text")
    corpus = open_corpus(path)
    path.unlink()
    with pytest.raises(CorpusError, match="not there any more"):
        list(corpus)


def test_text_fields_are_a_tuple() -> None:
    for wrong in ("body", ()):
        with pytest.raises(CorpusError, match="it is a tuple of one or more names"):
            ReadOptions(text_fields=wrong)  # type: ignore[arg-type]


def test_an_unknown_encoding_is_told() -> None:
    with pytest.raises(CorpusError, match="no such encoding: utf-9"):
        ReadOptions(encoding="utf-9")


@pytest.mark.parametrize("content", [*FORMATS.values()], ids=[*FORMATS])
@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input_is_read_more_than_once(content: bytes, compress: Callable[[bytes], bytes]) -> None:
    format = "csv" if content.startswith(b"id,") else "tsv" if content.startswith(b"id\t") else None
    program = (
        "from parabit import open_corpus\n"
        f"corpus = open_corpus('-', format={format!r})\n"
        "assert (first := list(corpus)) == list(corpus)\n"
        "print(len(first), first[2].text)"
    )
    child = subprocess.run(
        [sys.executable, "-c", program],
        input=compress(content),
        capture_output=True,
        check=True,
        env={"PYTHONUTF8": "1"},
    )
    assert child.stdout.decode() == "3 čaj à la reine\n"


def test_parquet_is_read_piece_by_piece(tmp_path: Path) -> None:
    """250 MB of text in row groups of 12 MB must not become 250 MB of memory."""
    path = tmp_path / "big.parquet"
    digits = np.random.default_rng(0).integers(10**17, size=(20_000, 700))
    texts = [" ".join(map(str, row)) for row in digits.tolist()]
    pl.DataFrame({"text": texts}).write_parquet(path, row_group_size=1000)
    program = (
        "import resource; from parabit import open_corpus\n"
        "list(zip(open_corpus('docstrings'), range(1)))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"assert sum(len(d.text) for d in open_corpus({str(path)!r})) == {sum(map(len, texts))}\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    grown = int(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
    assert grown < 150


def test_a_name_that_looks_like_a_pattern_is_a_name(write: Write) -> None:
    other = io.BytesIO()
    pl.DataFrame({"text": ["other"]}).write_parquet(other)
    write("d1.parquet", other.getvalue())
    assert list(open_corpus(write("d[1].parquet", FORMATS["parquet"]))) == DOCUMENTS


def test_line_breaks_in_a_quoted_field_stay_as_they_are(write: Write) -> None:
    assert [d.text for d in open_corpus(write("f.csv", b'text\r\n"a\r\nb"\r\n  spaced  \r\nlast'))] == [
        "a\r\nb",
        "  spaced  ",
        "last",
    ]


def test_a_flipped_byte_in_a_table_loses_no_row_in_silence(tmp_path: Path) -> None:
    """polars may stop in the middle of a damaged file without a word."""
    path = tmp_path / "f.parquet"
    rng = np.random.default_rng(0)
    pl.DataFrame({"text": [" ".join(map(str, rng.integers(10**9, size=9))) for _ in range(3000)]}).write_parquet(path)
    whole = path.read_bytes()
    for place in rng.integers(len(whole), size=60).tolist():
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with contextlib.suppress(CorpusError):
            assert sum(1 for _ in open_corpus(path)) == 3000


def test_rows_that_polars_leaves_out_are_missed(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("f.parquet", FORMATS["parquet"])
    monkeypatch.setattr(pl.LazyFrame, "collect_batches", lambda *_, **__: iter([pl.DataFrame(RECORDS[:2])]))
    with pytest.raises(CorpusError, match="is not a whole Parquet file: row 2 of 3 cannot be read"):
        list(open_corpus(path))


def test_a_bad_byte_in_a_table_costs_its_whole_record_and_no_other(write: Write) -> None:
    lines = [b"id,text", b'1,"first', b"b\xe9d line", b'last"', b"2,good", b"3,ragged,row"]
    path = write("f.csv", b"\n".join(lines))
    corpus = open_corpus(path, ReadOptions(skip_bad=True))
    assert [(d.id, d.text) for d in corpus] == [("2", "good")]
    assert corpus.skipped == 2
    with pytest.raises(CorpusError, match="line 3: not valid utf-8"):
        list(open_corpus(path))
    path.write_bytes(path.read_bytes().replace(b"\xe9", b"e"))
    with pytest.raises(CorpusError, match="line 6: 3 fields"):
        list(open_corpus(path))
    path.write_bytes(b"id,t\xe9xt\n1,a\n")
    with pytest.raises(CorpusError, match="line 1: not valid utf-8"):
        list(open_corpus(path, ReadOptions(skip_bad=True)))


def test_quotes_can_be_plain_characters(write: Write) -> None:
    path = write("f.tsv", 'id\ttext\n1\t"Hello she said\n2\tfoo"\n3\tbar')
    assert [d.text for d in open_corpus(path, ReadOptions(quotes=False))] == ['"Hello she said', 'foo"', "bar"]
    with pytest.raises(CorpusError, match="lines 2 to 3: not valid CSV: .*--no-quotes"):
        list(open_corpus(write("g.tsv", 'id\ttext\n1\t"never\n2\tclosed')))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32"])
def test_lines_end_alike_in_every_encoding(encoding: str, write: Write) -> None:
    path = write("f.txt", "\ufeffone\u2028still one\r\nt\x85wo\x0cx\n".encode(encoding))
    assert [d.text for d in open_corpus(path, ReadOptions(encoding=encoding))] == ["one\u2028still one", "t\x85wo\x0cx"]


def test_a_folder_of_several_kinds_is_not_guessed_at(write: Write) -> None:
    folder = write("mixed/part-0.jsonl", FORMATS["jsonl"]).parent
    write("mixed/_SUCCESS", b"")  # a mark that Spark leaves
    assert list(open_corpus(folder)) == DOCUMENTS
    write("mixed/README.md", "what this is")
    with pytest.raises(CorpusError, match=r"several kinds, such as part-0\.jsonl and README\.md; .*--format: jsonl"):
        open_corpus(folder)
    assert list(open_corpus(folder, format="jsonl")) == DOCUMENTS
    assert {d.id for d in open_corpus(folder, format="folder")} == {"part-0.jsonl", "_SUCCESS", "README.md"}


def test_a_folder_of_text_files_has_no_fields(write: Write) -> None:
    with pytest.raises(CorpusError, match="have no fields"):
        open_corpus(write("posts/1.txt", "text").parent, ReadOptions(id_field="key"))


def test_links_are_followed_but_not_round_and_round(write: Write, tmp_path: Path) -> None:
    write("real/1.txt", "linked")
    folder = write("posts/2.txt", "here").parent
    (folder / "link").symlink_to(tmp_path / "real")
    (folder / "again").symlink_to(tmp_path / "real")
    (folder / "loop").symlink_to(folder)
    (tmp_path / "real" / "back").symlink_to(folder)
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    assert [d.id for d in open_corpus(folder)] == ["2.txt", "again/1.txt", "link/1.txt"]


def test_a_name_that_is_not_utf_8_is_written_out(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("text")
    assert [d.id for d in open_corpus(tmp_path)] == ["caf\\xe9.txt"]


def test_a_damaged_file_in_a_folder_can_be_skipped(write: Write) -> None:
    write("posts/a.txt", "text")
    folder = write("posts/b.txt.gz", gzip.compress(b"cut off" * 99)[:-9]).parent
    corpus = open_corpus(folder, ReadOptions(skip_bad=True))
    assert [d.id for d in corpus] == ["a.txt"]
    assert corpus.skipped == 1


def test_pipes_are_kept_to_be_read_again(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        pool.submit(pipe.write_bytes, gzip.compress(FORMATS["jsonl"]))
        corpus = open_corpus(pipe)
        assert list(corpus) == list(corpus) == DOCUMENTS


def test_compression_is_known_by_content(write: Write) -> None:
    assert [d.text for d in open_corpus(write("f.txt", "BZhubble"))] == ["BZhubble"]
    window = {zstd.CompressionParameter.window_log: 28, zstd.CompressionParameter.enable_long_distance_matching: 1}
    packed = zstd.compress(b"line\n" * 9, options=window)
    assert len(list(open_corpus(write("g.txt.zst", packed)))) == 9
    skipped = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"skip"
    assert len(list(open_corpus(write("i.txt.zst", skipped + packed)))) == 9
    two = gzip.compress(b"one\n") + gzip.compress(b"two\n")
    assert [d.text for d in open_corpus(write("h.txt", two))] == ["one", "two"]

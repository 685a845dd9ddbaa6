"""`parabit vocabulary` and `parabit datasets`, and the options of reading."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from commands import answer, run

from parabit.corpus.datasets import DATASETS

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def corpus(write: Write) -> Path:
    return write(
        "news.jsonl",
        '{"text": "Hubble space telescope"}\n{"text": "space telescope, the telescope"}\n',
    )


def test_the_figures_are_given_as_json_in_words_and_as_a_table(
    corpus: Path, tmp_path: Path
) -> None:
    figures = answer(
        "vocabulary", corpus, "--bigrams", "--min-count", "2", "-o", tmp_path / "v.parquet"
    )
    assert figures.pop("seconds") > 0
    assert len(figures.pop("fingerprint")) == 64
    assert figures == {
        "corpus": str(corpus), "documents": 2, "tokens": 6, "words": 2, "bigrams": 1, "coverage": pytest.approx(5 / 6),
        "frequent_words": ["telescope", "space"], "frequent_bigrams": ["space telescope"], "skipped": 0,
        "reading": {"skipped": {}, "places": [], "notes": []},
    }  # fmt: skip
    assert pl.read_parquet(tmp_path / "v.parquet").row(0) == ("telescope", 3, 2)
    said = run("vocabulary", corpus, "--bigrams").stdout
    for words in (
        "2 documents",
        "6 tokens, 3 per document",
        "3 words, which cover 100.0% of the tokens",
        "most frequent: telescope, space, hubble",
        "3 bigrams",
    ):
        assert words in said


def test_every_option_of_the_tokenizer_arrives(write: Write) -> None:
    path, stop = write("f.txt", "Dér Hünd 42 bellt x"), write("stop.txt", "der\n")
    options = ["--min-length", "1", "--max-length", "4", "--max-size", "2", "--fold-accents"]
    kept = path.with_name("v.parquet")
    assert (
        run(
            "vocabulary", path, *options, "--pattern", r"\w+", "--stop-words", stop, "-o", kept
        ).exit_code
        == 0
    )
    assert pl.read_parquet(kept, glob=False)["feature"].to_list() == ["42", "hund"]


def test_every_option_of_the_readers_arrives(write: Write) -> None:
    content = "key;titel;körper\n1;hubble;space\nbad\n2;orbit;moon\n".replace(";", "\t").encode(
        "latin-1"
    )
    path = write("strange.name", content)
    options = (
        "--format",
        "tsv",
        "--encoding",
        "latin-1",
        "--id-field",
        "key",
        "--label-field",
        "key",
    )
    figures = answer(
        "vocabulary", path, *options, "--text-field", "titel", "--text-field", "körper"
    )
    assert (figures["documents"], figures["tokens"], figures["skipped"]) == (2, 4, 1)
    quoted = write("q.tsv", 'text\n"hubble\nspace"\n')
    assert answer("vocabulary", quoted)["documents"] == 1
    assert answer("vocabulary", quoted, "--no-quotes")["documents"] == 2
    said = run("vocabulary", path, *options, "--text-field", "titel").stdout
    assert "  1 skipped: 1 wrong number of fields\n" in said
    write("more/a.txt", "pluto")
    write("more/b.md", "neptune")
    figures = answer("vocabulary", quoted, path.parent / "more", "--exclude", "*.md", "--no-quotes")
    assert (figures["documents"], figures["corpus"]) == (3, f"{quoted} {path.parent / 'more'}")
    for number in range(12):
        write(f"more/{number}.png", b"\x89PNG\0")
    write("more/c.txt", "caf\u00e9".encode("cp1252"))
    result = run("vocabulary", path.parent / "more")
    assert "  12 skipped: 12 binary file\n    0.png: binary file\n" in result.stdout
    assert "    and 2 more; --json lists them\n  decoded as Windows-1252: c.txt\n" in result.stdout
    reading = answer("vocabulary", path.parent / "more")["reading"]
    assert (len(reading["places"]), reading["notes"][0]["place"]) == (12, "c.txt")
    assert run("vocabulary", path.parent / "more", "--strict").stderr.startswith("parabit: ")


def test_datasets_are_listed_with_what_they_need(data: Path, write: Write) -> None:
    write("data/reuters21578/reuters21578.tar.gz", b"")
    listed = answer("datasets")
    assert listed["folder"] == str(data)
    rows = {row["name"]: row for row in listed["datasets"]}
    assert set(rows) == set(DATASETS)
    assert {name for name, row in rows.items() if row["here"]} == {"reuters21578", "docstrings"}
    assert rows["20newsgroups"]["needs"].startswith("downloaded on first use, from http")
    assert "rcv1/" in rows["rcv1"]["needs"]
    table = run("datasets", "--quiet").stdout
    assert all(name in table for name in DATASETS)
    assert max(len(line) for line in table.splitlines() if str(data) not in line) <= 80

"""`parabit search`: hits for people and for scripts."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner, Result

from parabit import Document, ParagraphVectors
from parabit.cli.app import app
from parabit.cli.bit_pattern import bit_pattern
from parabit.cli.hits_table import hits_table
from parabit.index import Index
from without_torch import WITHOUT_TORCH

Run = Callable[..., subprocess.CompletedProcess[str]]


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["search", *map(str, arguments)], input=stdin)


def hits_of(result: Result) -> list[dict[str, object]]:
    assert (result.exit_code, result.stderr) == (0, "")
    hits: list[dict[str, object]] = json.loads(result.stdout)["hits"]
    return hits


@pytest.fixture
def text(topic_documents: list[Document]) -> str:
    return topic_documents[7].text


def test_json_has_what_the_library_finds(news: Path, text: str) -> None:
    result = run(news, text, "--json")
    told = json.loads(result.stdout)
    assert (told["rank"], told["documents"], told["bits"], told["k"], told["radius"]) == ("hybrid", 300, 20, None, None)
    with Index.open(news) as index:
        [wanted] = index.search([text], rank="hybrid")
    assert len(wanted) == 10
    for hit, other in zip(hits_of(result), wanted, strict=True):
        assert list(hit) == ["id", "title", "distance", "score", "snippet", "why", "text", "fields"]
        assert (hit["id"], hit["title"], hit["distance"]) == (other.id, other.title, other.distance)
        assert (hit["text"], hit["why"]) == (other.text, other.why._asdict())
        assert str(hit["snippet"]).count("**") == 2 * sum(piece.mark for piece in other.snippet) > 0
        assert hit["score"] == pytest.approx(other.score, abs=1e-6)
        assert hit["fields"] == other.fields
    assert hits_of(result)[0]["id"] == "post7"


def test_the_options_are_the_librarys(news: Path, text: str) -> None:
    assert len(hits_of(run(news, text, "-k", "3", "--json"))) == 3
    near = hits_of(run(news, text, "--radius", "4", "--rank", "hamming", "--json"))
    assert [hit["distance"] for hit in near] == sorted(int(str(hit["distance"])) for hit in near)
    assert len(hits_of(run(news, text, "--radius", "4", "-k", "2", "--json"))) == 2
    assert len(hits_of(run(news, text, "--radius", "2000", "--backend", "flat", "--json"))) == 300
    assert len(hits_of(run(news, text, "-k", "9999", "--candidates", "5", "--json"))) == 300
    labels = {
        str(hit["fields"])
        for hit in hits_of(run(news, text, "-k", "300", "--json", "--where", "labels=topic1", "--where", "year=1991"))
    }
    assert labels == {"{'year': 1991, 'labels': ['topic1']}"}
    either = ("--where", "year=1991", "--where", "year=1993")
    years = {str(hit["fields"])[9:13] for hit in hits_of(run(news, text, "-k", "300", "--json", *either))}
    assert years == {"1991", "1993"}
    assert [hit["id"] for hit in hits_of(run(news, text, "--json", "--where", "id=post9"))] == ["post9"]
    assert hits_of(run(news, text, "--json", "--where", "labels=topic1", "--where", "year=1992")) == []


@pytest.mark.parametrize(
    ("conditions", "years"),
    [
        (("year=1991..1992",), {1991, 1992}),
        (("year>=1992",), {1992, 1993}),
        (("year=..1990",), {1990}),
        (("year!=1991", "year<1993"), {1990, 1992}),
        (("labels!=topic0", "labels!=topic1"), {1992, 1993}),
        (("year=1991", "year=1993"), {1991, 1993}),
        (("year=soon",), set()),
    ],
)
def test_conditions_may_be_ranges_and_negations(
    news: Path, text: str, conditions: tuple[str, ...], years: set[int]
) -> None:
    options = [part for condition in conditions for part in ("--where", condition)]
    hits = hits_of(run(news, text, "-k", "300", "--json", *options))
    assert {hit["fields"]["year"] for hit in hits} == years  # type: ignore[index]


def test_operators_and_what_was_done_with_the_query(news: Path, topic_documents: list[Document]) -> None:
    first, second, *_ = dict.fromkeys(topic_documents[7].text.split())
    [label] = topic_documents[7].labels
    both = hits_of(run(news, f"{first} +{second} labels:{label} year:1990..", "-k", "300", "--json"))
    assert both
    for hit in both:
        assert second in str(hit["text"]).split()
        assert hit["fields"]["labels"] == [label]  # type: ignore[index]
    result = run(news, f"{first} qqqqqqqq", "-k", "1")
    assert result.stdout.splitlines()[1] == "  no document has qqqqqqqq"
    told = json.loads(run(news, f"{first}x", "-k", "1", "--json").stdout)
    assert told["notes"] == [f"searched for {told['hits'][0]['why']['words'].copy().popitem()[0]} instead of {first}x"]


def test_the_query_may_come_from_standard_input(news: Path, text: str) -> None:
    assert hits_of(run(news, "-", "--json", stdin=text)) == hits_of(run(news, text, "--json"))
    assert "the query is empty" in run(news, "-", stdin="\n").stderr


def test_without_words_the_rank_is_asymmetric_and_that_is_told(
    topic_model: Path, topic_documents: list[Document], tmp_path: Path, text: str
) -> None:
    model = ParagraphVectors.load(topic_model)
    Index.build(topic_documents, tmp_path / "a.index", model=model, words=False, text=False, vectors=True).close()
    result = run(tmp_path / "a.index", text)
    assert result.stdout.splitlines()[0] == f"{tmp_path}/a.index: 10 of 300 documents, ranked by asymmetric"
    assert "text" not in result.stdout.splitlines()[1]
    assert json.loads(run(tmp_path / "a.index", text, "--json", "--rank", "cosine").stdout)["hits"][0]["id"] == "post7"


def test_people_get_a_table(news: Path, parabit: Run, text: str) -> None:
    wide = parabit("search", news, text, "-k", "2", COLUMNS="120", PYTHONIOENCODING="utf-8").stdout.splitlines()
    assert wide[0] == "news.index: 2 of 300 documents, ranked by hybrid"
    assert wide[1].split() == ["bits", "score", "differing", "id", "labels", "text"]
    assert wide[2].split()[:2] == ["1", "0"]
    assert wide[2].split()[3:5] == ["⠀⠀⠀", "post7"]
    assert text[:40] in wide[2]
    assert wide[2].endswith("…")
    assert {cell_len(line) for line in wide[2:4]} <= set(range(100, 121))
    narrow = parabit("search", news, text, "-k", "2", COLUMNS="60", PYTHONIOENCODING="ascii").stdout.splitlines()
    assert narrow[2].split()[:2] == ["1", "0"]
    assert narrow[2].split()[3:5] == ["...", "post7"]
    assert narrow[3] == f"    {text[:54].rpartition(' ')[0]}..."
    assert all(len(line) <= 60 for line in narrow)
    assert "2 of 300 documents within 20 of 20 bits where id=post9, id=post7, ranked by words" in (
        run(news, text, "--radius", "20", "--where", "id=post9", "--where", "id=post7", "--rank", "words").stdout
    )
    assert run(news, text, "--where", "id=nobody").stdout == (
        "news.index: 0 of 300 documents where id=nobody, ranked by hybrid\n"
    )


def test_lines_fit_whatever_the_text_has_in_it() -> None:
    strange = "\x1b[31mred\n\ttabs\u202e\x00 " + "漢字" * 100
    fields = [{"labels": [strange], "text": strange}, {"labels": "one"}]
    index = Index.of_codes(np.zeros((2, 1), dtype=np.uint8), 8, ids=[strange, 7], fields=fields)
    [hits] = index.search(np.zeros((1, 1), dtype=np.uint8))
    differing = np.arange(2 * 300).reshape(2, 300) % 7 == 0
    for width in (20, 60, 100, 150, 250):
        for plain in (False, True):
            lines = list(hits_table(hits, differing, width, plain))
            assert all(line.isprintable() for line in lines)
            assert all(cell_len(line) <= width for line in lines)
    assert list(hits_table([], differing[:0], 80)) == []


@pytest.mark.parametrize("bits", [1, 7, 8, 28, 128, 256, 257, 300, 512, 1000])
def test_a_pattern_shows_each_bit_or_the_share_of_a_group(bits: int) -> None:
    nothing, everything = np.zeros(bits, dtype=np.bool_), np.ones(bits, dtype=np.bool_)
    for plain in (False, True):
        patterns = {bit_pattern(nothing, plain), bit_pattern(everything, plain)}
        for place in {0, bits // 2, bits - 1}:
            one = nothing.copy()
            one[place] = True
            patterns.add(bit_pattern(one, plain))
        assert len({len(pattern) for pattern in patterns}) == 1
        assert all(len(pattern) <= 32 for pattern in patterns)
        assert len(patterns) >= min(bits + 1, 3)
    if bits <= 256:
        rng = np.random.default_rng(bits)
        some = rng.random(bits) < 0.3
        assert sum((ord(cell) - 0x2800).bit_count() for cell in bit_pattern(some)) == some.sum()
        assert sum(int(digit) for digit in bit_pattern(some, plain=True) if digit != ".") == some.sum()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nowhere", "x"), 1, "no index in nowhere; make one with `parabit index MODEL CORPUS -o FOLDER`"),
        (("posts.jsonl", "x"), 1, "no index in posts.jsonl"),
        (("{model}", "x"), 1, "is a model, not an index; index documents with"),
        (("news.index", ""), 1, "the query is empty; give a text, or - to read it from standard input"),
        (("news.index", "qqqq xxxx"), 1, "no document has a word of the query 'qqqq xxxx'; use words that"),
        (("news.index", "x", "--rank", "best"), 1, "no rank 'best'; there are hybrid, words, hamming"),
        (("news.index", "x", "--rank", "cosine"), 1, "rank cosine needs vectors, which this index does not keep"),
        (("news.index", "x", "--backend", "tree"), 1, "no back end 'tree'"),
        (("news.index", "x", "--backend", "multi"), 1, "the index was not built with the back end multi"),
        (("news.index", "x", "--where", "author=a"), 1, "no document has a field 'author'; there are id, year, labels"),
        (("news.index", "x", "--where", "text=a"), 1, "there are id, year, labels"),
        (("news.index", "x", "--where", "labels"), 1, "'labels' is not a condition; write labels=space"),
        (("news.index", "x", "--where", "year=1993..1990"), 1, "the range 1993..1990 of the field 'year' is empty"),
        (("news.index", "x", "--where", "labels>3"), 1, "no document has a number or a date in the field 'labels'"),
        (("news.index", "x", "-k", "0"), 2, "-k"),
        (("news.index", "x", "-k", "-3"), 2, "-k"),
        (("news.index", "x", "--radius", "-1"), 2, "--radius"),
        (("news.index", "x", "--candidates", "0"), 2, "--candidates"),
        (("news.index",), 2, "QUERY"),
    ],
)
def test_what_is_wrong_is_told_in_a_line_and_by_the_exit_code(
    arguments: tuple[str, ...], code: int, words: str, news: Path, topic_model: Path, lines_file: Path
) -> None:
    result = run(*(argument.format(model=topic_model) for argument in arguments))
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    if code == 1:
        assert result.stderr.count("\n") == 1


def test_strange_bytes_in_a_query_are_no_error(news: Path, text: str) -> None:
    command = [sys.executable, "-m", "parabit", "search", "news.index", text.encode() + b" \xff\xfe", "--json"]
    result = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(result.stdout)["hits"][0]["id"] == "post7"


def test_searching_needs_no_torch(news: Path, text: str) -> None:
    program = f"{WITHOUT_TORCH}\nfrom parabit.cli import main\nmain()"
    result = subprocess.run(
        [sys.executable, "-c", program, "search", "news.index", text, "--json"], capture_output=True, check=True
    )
    assert json.loads(result.stdout)["hits"][0]["id"] == "post7"

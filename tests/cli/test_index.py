"""`parabit index`, `search`, `info`, `add`, `delete` and `compact`."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import answer, run
from rich.cells import cell_len

from parabit import Document, ParagraphVectors
from parabit.index import Index
from parabit.index.store import Store
from parabit.model import load_model


@pytest.fixture
def text(topic_documents: list[Document]) -> str:
    return topic_documents[7].text


def corpus(*documents: dict[str, Any]) -> Path:
    path = Path("corpus.jsonl")
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


# Building


def test_one_command_learns_a_model_and_indexes_the_corpus(here: Path, text: str) -> None:
    with (here / "news.jsonl").open("a") as file:
        file.write('{"id": "strange", "text": "qqqq xxxx"}\n{"id": "empty", "text": "?!"}\nbad\n')
    found = answer("index", "news.jsonl", "-o", "news.index", "--bits", "20", "--seed", "3")
    assert found.pop("learning_seconds") < found.pop("seconds")
    size = sum(path.stat().st_size for path in Path("news.index").rglob("*") if path.is_file())
    sizes = found.pop("bytes")
    assert sizes.pop("all") == size == sum(sizes.values())
    assert sizes["codes"] == 301 * 3
    assert min(sizes.values()) > 0
    assert found.pop("reading")["skipped"] == {"not valid JSON": 1}
    examples = found.pop("examples")
    assert found == {
        "index": "news.index", "corpus": "news.jsonl", "documents": 301, "left_out": 1, "skipped": 1,
        "bits": 20, "words": 202, "learned_from": 302, "unknown_words": 0.0, "backend": "flat", "engine": None,
        "fields": ["year", "labels"],
    }  # fmt: skip
    assert answer("search", "news.index", text)["hits"][0]["id"] == "post7"
    assert answer("search", "news.index", examples[0])["hits"]
    again = ("-o", "again.index", "--bits", "20", "--seed", "3", "--sample", "0")
    shown = run("index", "news.jsonl", *again).stdout.splitlines()
    assert shown[0].startswith("again.index: 301 documents in ")
    assert "  1 document skipped: no words to be found by" in shown
    assert "  1 skipped: 1 not valid JSON" in shown
    assert any(line.startswith("  per document: 3 bytes for the code, ") for line in shown)
    command = shlex.split(shown[-1].removeprefix("Try it: "))
    assert run(*command[1:]).exit_code == 0
    models = [load_model(next(Path(name).glob("model*"))) for name in ("news.index", "again.index")]
    assert models[0].fingerprint == models[1].fingerprint


def test_a_model_can_be_given_and_what_is_kept_be_chosen(topic_model: Path, here: Path) -> None:
    place = here / "a.index"
    options = ("--no-text", "--no-words", "--vectors", "--backend", "hashing")
    result = run("index", "news.jsonl", "--model", topic_model, "-o", place, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Try it" not in result.stdout
    about = answer("info", place)
    assert (about["keeps"], about["backends"], about["bits"]) == (
        ["vectors"],
        ["flat", "hashing"],
        20,
    )
    assert (
        run("index", "news.jsonl", "--model", topic_model, "-o", place, "--overwrite").exit_code
        == 0
    )
    assert answer("info", place)["keeps"] == ["text", "words"]


# Searching


def test_json_has_what_the_library_finds(news: Path, text: str) -> None:
    found = answer("search", news, text)
    assert [found[name] for name in ("rank", "documents", "bits", "k", "like")] == [
        "hybrid",
        300,
        20,
        None,
        [],
    ]
    with Index.open(news) as index:
        [wanted] = index.search([text], rank="hybrid")
        for hit, other in zip(found["hits"], wanted, strict=True):
            assert list(hit) == [
                "id",
                "title",
                "distance",
                "score",
                "snippet",
                "why",
                "text",
                "fields",
            ]
            assert (hit["id"], hit["title"], hit["distance"]) == (
                other.id,
                other.title,
                other.distance,
            )
            assert (hit["text"], hit["fields"]) == (other.text, other.fields)
            assert hit["why"]["words"] == pytest.approx(other.why.words, abs=1e-3)
            assert [hit["why"][name] for name in ("distance", "bits")] == [other.distance, 20]
            assert (
                str(hit["snippet"]).count("**")
                == 2 * sum(piece.mark for piece in other.snippet)
                > 0
            )
            assert hit["score"] == pytest.approx(other.score, abs=1e-6)
    assert found["hits"][0]["id"] == "post7"
    assert answer("search", news, "-", stdin=text)["hits"] == found["hits"]


def test_the_options_are_the_librarys(news: Path, text: str) -> None:
    assert len(answer("search", news, text, "-k", "3")["hits"]) == 3
    near = answer("search", news, text, "--radius", "4", "--rank", "hamming")["hits"]
    assert [hit["distance"] for hit in near] == sorted(hit["distance"] for hit in near)
    assert len(answer("search", news, text, "--radius", "2000", "--backend", "flat")["hits"]) == 300
    assert len(answer("search", news, text, "-k", "9999")["hits"]) == 300
    where = ("--where", "year>=1991", "--where", "labels!=topic3")
    assert {
        hit["fields"]["year"] for hit in answer("search", news, text, "-k", "300", *where)["hits"]
    } == {1991, 1992}
    found = answer("search", news, "--like", "post7", "-k", "3")
    with Index.open(news) as index:
        assert [hit["id"] for hit in found["hits"]] == index.like("post7", 3).ids[0]
    assert {hit["like"] for hit in found["hits"]} == {"post7"}
    several = run("search", news, "--like", "post7", "--like", "post9", "-k", "2")
    assert several.stdout.count("documents like post") == 2


def test_people_see_titles_passages_and_why(news: Path, text: str) -> None:
    words = text.split()
    shown = run("search", news, " ".join(words[:3]), "-k", "2", "--explain").stdout.splitlines()
    assert shown[0] == "2 of 300 documents, by hybrid"
    assert shown[1].startswith("the query's code comes from ")
    assert shown[3].startswith(" 1. ")
    assert max(map(cell_len, shown)) <= 80
    [why] = [line for line in shown if line.startswith("    why: ")][:1]
    assert "code " in why
    assert shown[4].endswith(" of 20 bits differ")
    full = run("search", news, text, "-k", "1", "--full").stdout
    assert all(word in full for word in words)
    wide = run("search", news, text, "-k", "2", COLUMNS="").stdout.splitlines()
    assert 80 < max(map(cell_len, wide)) <= 100
    assert run("search", news, text, "--where", "id=nobody").stdout == (
        "0 of 300 documents where id=nobody, by hybrid\n"
        "no document meets the conditions; = and != compare whole values\n"
    )


def test_what_was_done_with_the_query_is_said(news: Path, text: str) -> None:
    first = text.split(maxsplit=1)[0]
    assert (
        run("search", news, f"{first} qqqqqqqq", "-k", "1").stdout.splitlines()[1]
        == "no document has qqqqqqqq"
    )
    for query, note in (
        ("qqqqqqqq", "no document has qqqqqqqq"),
        ("?!", "nothing that can be searched for is in the query"),
    ):
        found = answer("search", news, query)  # to find nothing is no failure
        assert (found["hits"], found["notes"]) == ([], [note])
    assert answer("search", news, f"{first}x", "-k", "1")["notes"][0].endswith(
        f"instead of {first}x"
    )
    operators = answer("search", news, f"{first} -qqqqqqqq labels:nobody", "-k", "1", "--explain")
    assert list(operators["moved"]) == [first]
    assert operators["notes"] == [
        "no document has labels=nobody; field:value needs the whole value"
    ]


def test_what_is_only_listed_has_no_score(news: Path) -> None:
    assert "needs -- before it" in run("search", news, "-zzzzzz").stderr
    listed = run("search", news, "-k", "1", "--explain", "--", "-zzzzzz").stdout
    assert not re.search("score|bits|why", listed)


def test_json_has_no_numbers_that_json_does_not_know(tmp_path: Path) -> None:
    documents = [
        Document("a", "red tabs", fields={"n": float("inf")}),
        Document("b", "red", fields={"n": 1.5}),
    ]
    Index.build(
        documents, tmp_path / "a.index", model=ParagraphVectors(8).fit(["red tabs"] * 9)
    ).close()
    assert [
        hit["fields"]["n"] for hit in answer("search", tmp_path / "a.index", "red tabs")["hits"]
    ] == [None, 1.5]


def test_lines_fit_whatever_the_text_has_in_it(tmp_path: Path) -> None:
    strange = "\x1b[31mred\n\ttabs\u202e\x00 " + "漢字" * 100
    documents = [Document("a\u202e" * 50, strange, (strange,)), Document("b", "red tabs")]
    Index.build(
        documents, tmp_path / "a.index", model=ParagraphVectors(8).fit(["red tabs"] * 9)
    ).close()
    for columns in ("30", "60", "150"):
        lines = run("search", tmp_path / "a.index", "red", COLUMNS=columns).stdout.splitlines()
        assert len(lines) > 4
        assert all(line.isprintable() for line in lines)
        assert max(map(cell_len, lines)) <= max(int(columns), 45)


# Changing


def test_documents_are_added_and_found(news: Path, text: str) -> None:
    path = corpus(
        {"id": "new1", "text": text, "labels": "fresh"},
        {"id": "new2", "text": text},
        {"id": "c", "text": "?!"},
    )
    found = answer("add", news, path)
    assert found.pop("seconds") > 0
    assert found == {
        "index": "news.index", "corpus": "corpus.jsonl", "added": 2, "replaced": 0, "removed": 0, "left_out": 1,
        "unknown_words": 0.0, "skipped": 0, "documents": 302, "reading": {"skipped": {}, "places": [], "notes": []},
    }  # fmt: skip
    assert [
        hit["id"] for hit in answer("search", news, text, "--where", "labels=fresh")["hits"]
    ] == ["new1"]
    strange = [
        {"id": f"strange{number}", "text": "parole mai viste", "labels": "odd"}
        for number in range(10)
    ]
    shown = run("add", news, corpus(*strange)).stdout
    assert "  the model does not know 100% of their words; `parabit retrain` learns them\n" in shown
    assert run("delete", news, "--where", "labels=odd").exit_code == 0
    Path("more.jsonl").write_text(json.dumps({"id": "new3", "body": text}) + "\nbad\n")
    result = run("add", news, "more.jsonl", "--text-field", "body")
    assert result.stdout.startswith("news.index: 1 document added, 303 now; ")
    assert (
        "  1 skipped: 1 not valid JSON\n    more.jsonl:2: not valid JSON: Expecting value\n"
        in result.stdout
    )


def test_what_was_added_before_an_interrupt_stays(
    news: Path, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = corpus(
        *({"id": f"new{number}", "text": topic_documents[number].text} for number in range(9))
    )
    monkeypatch.setattr("parabit.model.encoder.AT_ONCE", 2)
    put, batches = Store.put, 0

    def stop(store: Store, *arguments: Any) -> int:
        nonlocal batches
        batches += 1
        if batches == 3:
            raise KeyboardInterrupt
        return put(store, *arguments)

    monkeypatch.setattr(Store, "put", stop)
    result = run("add", news, path)
    assert result.exit_code == 130
    assert (
        result.stderr
        == "parabit: interrupted; 4 documents are in the index and stay; go on with --update\n"
    )
    assert answer("info", news)["documents"] == 304
    found = answer("add", news, path, "--update")
    assert (found["added"], found["replaced"], found["documents"]) == (5, 4, 309)
    assert run("add", news, path, "--update").stdout.startswith(
        "news.index: 0 documents added, 9 replaced, 309 now; "
    )


def test_documents_are_deleted_by_id_or_by_a_condition(news: Path, tmp_path: Path) -> None:
    assert (
        run("delete", news, "post1", "post2").stdout
        == "news.index: 2 documents deleted, 298 left\n"
    )
    assert answer("delete", news, "-", stdin="post3\r\n\npost4\n")["deleted"] == 2
    assert answer("delete", news, "-", stdin="")["documents"] == 296
    found = answer("delete", news, "--where", "year=..1991", "--where", "labels!=topic1")
    with Index.open(news) as index:
        assert {hit.fields["year"] for hit in index.stored(index.ids_where([]))} == {
            1991,
            1992,
            1993,
        }
        assert found == {
            **found,
            "index": "news.index",
            "deleted": 296 - len(index),
            "documents": len(index),
        }
    assert answer("delete", news, "--where", "labels=nothing")["deleted"] == 0
    Index.of_codes(np.zeros((3, 1), dtype=np.uint8), 8, tmp_path / "codes.index").close()
    assert (
        answer("delete", tmp_path / "codes.index", "1")["documents"] == 2
    )  # an id that is a number


def test_compacting_merges_and_changes_no_answer(news: Path, text: str) -> None:
    run("add", news, corpus({"id": "new1", "text": text}, {"id": "new2", "text": text}))
    run("delete", news, "post8", "post9")
    hits = answer("search", news, text)["hits"]
    assert "  2 added and 2 deleted since the last merge" in run("info", news, "--verify").stdout
    found = answer("compact", news)
    assert [found[name] for name in ("documents", "added", "deleted", "backends")] == [
        300,
        2,
        2,
        ["flat"],
    ]
    assert found["bytes"] == answer("info", news)["bytes"]
    assert answer("search", news, text)["hits"] == hits
    assert "all files are as they were written" in run("info", news, "--verify").stdout
    assert "  0 additions and 0 deletions merged" in run("compact", news).stdout

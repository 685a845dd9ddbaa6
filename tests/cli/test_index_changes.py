"""`parabit add`, `delete` and `compact`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from parabit import Document
from parabit.cli.app import app
from parabit.index import Index
from parabit.index.store import Store

FIRST = '{"id": "new1", "text": "%s", "labels": "fresh"}\n{"id": "new2", "text": "%s"}\n'


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], input=stdin)


def told(*arguments: object, stdin: str | None = None) -> dict[str, Any]:
    result = run(*arguments, "--json", stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.count("\n") == 1
    figures: dict[str, Any] = json.loads(result.stdout)
    return figures


def corpus(lines: str) -> Path:
    path = Path("corpus.jsonl")
    path.write_text(lines)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}


def text_of(index: Path, identity: str) -> str | None:
    with Store.open(index) as store:
        snapshot = store.snapshot()
        [row] = snapshot.rows_of([identity])
        return None if row < 0 else snapshot.fields_of(np.array([row]))[0]["text"]


def test_documents_are_added_and_found(news: Path, topic_documents: list[Document]) -> None:
    lines = FIRST % (topic_documents[0].text, topic_documents[1].text) + '{"id": "c", "text": "?!"}\n'
    figures = told("add", news, corpus(lines))
    assert figures.pop("seconds") > 0
    assert figures == {
        "index": "news.index", "corpus": "corpus.jsonl", "added": 2, "replaced": 0, "removed": 0, "left_out": 1,
        "skipped": 0, "documents": 302, "reading": {"skipped": {}, "places": [], "notes": []},
    }  # fmt: skip
    hits = told("search", news, topic_documents[0].text, "--where", "labels=fresh")["hits"]
    assert [hit["id"] for hit in hits] == ["new1"]
    Path("more.jsonl").write_text(f'{{"id": "new3", "body": "{topic_documents[2].text}"}}\nbad\n')
    result = run("add", news, "more.jsonl", "--text-field", "body")
    assert result.stdout.startswith("news.index: 1 documents added, 303 now; ")
    assert "  1 skipped: 1 not valid JSON\n    more.jsonl:2: not valid JSON: Expecting value\n" in result.stdout


def test_an_update_replaces_what_is_there_and_adds_the_rest(news: Path, topic_documents: list[Document]) -> None:
    text = topic_documents[5].text
    lines = "".join(
        json.dumps({"id": identity, "text": said}) + "\n"
        for identity, said in (
            ("post0", text),
            ("post1", "?!"),
            ("brand-new", text),
            ("nobody", "..."),
            ("post2", "qqqq"),
        )
    )
    figures = told("add", news, corpus(lines), "--update")
    assert [figures[name] for name in ("added", "replaced", "removed", "left_out", "documents")] == [1, 2, 1, 2, 300]
    assert text_of(news, "post0") == text
    assert text_of(news, "brand-new") == text
    assert [hit["id"] for hit in told("search", news, "qqqq")["hits"]] == ["post2"]  # a word that the model knows not
    # Its text is now one that nobody could find, so the old one must not be found either.
    assert text_of(news, "post1") is None
    result = run("add", news, corpus(lines), "--update")
    assert result.stdout.startswith("news.index: 0 documents added, 3 replaced, 300 now; ")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            '{"id": "a", "text": "%s"}\n{"id": "post7", "text": "%s"}\n',
            "the id 'post7' is in the index already; no",
        ),
        ('{"id": "a", "text": "%s"}\n{"id": "a", "text": "%s"}\n', "two documents have the id 'a': numbers 0 and 1"),
        (
            '{"id": "a", "text": "%s"}\n{"id": "b", "words": "%s"}\n',
            "line 2: no text field: 'text' is not among id, words",
        ),
        ("", "corpus.jsonl: empty file"),
    ],
)
@pytest.mark.parametrize("small", [False, True])
def test_what_is_wrong_with_a_corpus_is_told_before_anything_is_changed(
    lines: str, words: str, small: bool, news: Path, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    if small:  # a batch a document: what comes first is not written either
        monkeypatch.setattr("parabit.model.encoder.AT_ONCE", 1)
        monkeypatch.setattr("parabit.corpus.document.BATCH_DOCUMENTS", 1)
    before = contents(news)
    source = corpus(lines.replace("%s", topic_documents[0].text))
    result = run("add", news, source, "--strict")
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert contents(news) == before
    if "two documents" in words:
        assert words in run("add", news, source, "--update").stderr
        assert contents(news) == before


def test_what_was_added_before_an_interrupt_stays_and_is_told(
    news: Path, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(
        json.dumps({"id": f"new{number}", "text": topic_documents[number].text}) + "\n" for number in range(9)
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
    result = run("add", news, corpus(lines))
    assert result.exit_code == 130
    assert result.stderr == (
        "parabit: interrupted; nothing half-written was left; 4 documents are in the index and stay; "
        "go on with --update\n"
    )
    assert told("info", news)["documents"] == 304
    figures = told("add", news, corpus(lines), "--update")
    assert (figures["added"], figures["replaced"], figures["documents"]) == (5, 4, 309)


def test_documents_are_deleted_by_id_all_or_none(news: Path) -> None:
    before = contents(news)
    for arguments, words in (
        (("post1", "nobody"), "there is no document with the id 'nobody'; nothing was changed"),
        (("post1", "post1"), "the id 'post1' is given twice"),
        ((), "there are no ids to delete; name them after INDEX, or give --from FILE"),
        (("--from", "nofile"), "nofile cannot be read: No such file or directory"),
    ):
        result = run("delete", news, *arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
    assert contents(news) == before
    assert run("delete", news, "post1", "post2").stdout == "news.index: 2 documents deleted, 298 left\n"
    Path("ids.txt").write_text("post3\r\n\npost4\n")
    assert told("delete", news, "--from", "ids.txt") == {"index": "news.index", "deleted": 2, "documents": 296}
    assert told("delete", news, "post5", "--from", "-", stdin="post6\n")["documents"] == 294
    assert [text_of(news, f"post{number}") is None for number in range(8)] == [False, *[True] * 6, False]


def test_ids_that_are_numbers_can_be_named(tmp_path: Path) -> None:
    place = tmp_path / "codes.index"
    Index.of_codes(np.zeros((3, 1), dtype=np.uint8), 8, place).close()
    assert told("delete", place, "1")["documents"] == 2
    assert "no document with the id '1'" in run("delete", place, "1").stderr


def test_compacting_merges_and_changes_no_answer(news: Path, topic_documents: list[Document]) -> None:
    query = topic_documents[9].text
    run("add", news, corpus(FIRST % (query, query)))
    run("delete", news, "post8", "post9")
    hits = told("search", news, query)["hits"]
    figures = told("compact", news)
    assert [figures[name] for name in ("documents", "added", "deleted", "backend")] == [300, 2, 2, "flat"]
    assert figures["bytes"] == told("info", news)["bytes"]
    assert told("info", news)["to_merge"] == {"added": 0, "deleted": 0, "bytes": 0}
    assert told("search", news, query)["hits"] == hits
    shown = run("compact", news).stdout
    assert shown.startswith("news.index: 300 documents, ")
    assert "merged 0 that were added and 0 that were deleted" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("add", "{model}", "old.csv"), 1, "is a model, not an index"),
        (("delete", "{model}", "a"), 1, "is a model, not an index"),
        (("compact", "{model}"), 1, "is a model, not an index"),
        (("info", "{model}"), 1, "is a model, not an index"),
        (("info", "nowhere"), 1, "no index in nowhere"),
        (("add", "news.index", "nothing.jsonl"), 1, "no such file or folder: nothing.jsonl"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_changed(
    arguments: tuple[str, ...], code: int, words: str, news: Path, topic_model: Path
) -> None:
    Path("old.csv").write_text("text\nhello\n")
    before = contents(Path())
    result = run(*(argument.format(model=topic_model) for argument in arguments))
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr
    assert contents(Path()) == before

"""`parabit index` and `parabit info`."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from parabit import Document, ParagraphVectors
from parabit.cli.app import app
from parabit.index import Index


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], input=stdin)


def test_all_is_told_as_json(
    topic_model: Path, lines_file: Path, monkeypatch: pytest.MonkeyPatch, topic_documents: list[Document]
) -> None:
    monkeypatch.chdir(lines_file.parent)
    with lines_file.open("a") as file:
        file.write('{"id": "strange", "text": "qqqq xxxx"}\n{"id": "empty", "text": ""}\nbad\n')
    result = run("index", topic_model, "posts.jsonl", "-o", "news.index", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert told.pop("seconds") > 0
    assert told.pop("documents_per_second") > 0
    size = sum(path.stat().st_size for path in Path("news.index").rglob("*") if path.is_file())
    assert (told.pop("bytes"), told.pop("model_bytes") > 0) == (size, True)
    assert told.pop("reading")["skipped"] == {"not valid JSON": 1}
    assert told == {
        "model": str(topic_model), "corpus": "posts.jsonl", "index": "news.index", "documents": 301, "left_out": 1,
        "skipped": 1, "bits": 20, "backend": "flat", "keeps": ["text", "words"],
        "fields": ["year", "labels"], "engine": None,
    }  # fmt: skip
    with Index.open("news.index") as index:
        [hits] = index.search([topic_documents[7].text], k=1, rank="hybrid")
    assert hits[0].id == "post7"
    assert hits[0].fields == {"year": topic_documents[7].fields["year"], "labels": list(topic_documents[7].labels)}


def test_what_is_kept_and_built_can_be_chosen(topic_model: Path, lines_file: Path, tmp_path: Path) -> None:
    place = tmp_path / "a.index"
    options = ("--no-text", "--no-words", "--vectors", "--backend", "tables")
    result = run("index", topic_model, lines_file, "-o", place, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    first, *rest = result.stdout.splitlines()
    assert first.startswith(f"{place}: 300 documents of 20 bits, ")
    assert rest[:3] == ["  keeps the model, codes, ids, vectors", "  fields: year, labels", "  back end tables"]
    assert run("search", place, "anything").exit_code == 1
    assert run("index", topic_model, lines_file, "-o", place, "--overwrite").exit_code == 0
    about = json.loads(run("info", place, "--json").stdout)
    assert (about["keeps"], about["backends"]) == (["text", "words"], ["flat"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{model}", "posts.jsonl", "-o", "posts.jsonl"), "posts.jsonl is there already; choose another name, or"),
        (("{model}", "posts.jsonl", "-o", "posts.jsonl", "--overwrite"), "exists and is something else"),
        (("{model}", "posts.jsonl", "-o", "no/such/a.index"), "there is no folder no/such to write a.index in"),
        (("{model}", "nothing.jsonl", "-o", "a.index"), "no such file or folder: nothing.jsonl"),
        (("{model}", "twice.jsonl", "-o", "a.index"), "two documents have the id 'a': numbers 0 and 1"),
        (("{model}", "posts.jsonl", "-o", "a.index", "--backend", "tree"), "no back end 'tree'; there are auto, flat"),
        (
            ("{model}", "posts.jsonl", "-o", "a.index", "--text-field", "body"),
            "no text field: 'body' is not among id, text",
        ),
        (("nowhere", "posts.jsonl", "-o", "a.index"), "no model in nowhere"),
        (("real", "posts.jsonl", "-o", "a.index"), "a real-valued model has no codes to index; train one with bits"),
        (
            ("news.index", "posts.jsonl", "-o", "a.index"),
            "news.index is an index, not a model; its model is news",
        ),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_written(
    arguments: tuple[str, ...], words: str, news: Path, topic_model: Path, lines_file: Path
) -> None:
    Path("twice.jsonl").write_text('{"id": "a", "text": "b"}\n' * 2)
    if "real" in arguments:
        ParagraphVectors(None, dim=2).fit(["one text", "another text"]).save("real")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    result = run("index", *(argument.format(model=topic_model) for argument in arguments))
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def test_info_tells_what_is_there_and_what_is_to_be_merged(news: Path) -> None:
    assert run("delete", news, "post0", "post1").exit_code == 0
    about = json.loads(run("info", news, "--json").stdout)
    assert (about["documents"], about["bits"], about["bytes_a_code"]) == (298, 20, 3)
    assert (about["to_merge"]["added"], about["to_merge"]["deleted"], about["verified"]) == (0, 2, False)
    shown = run("info", news, "--verify").stdout
    assert shown.startswith("news.index: 298 documents of 20 bits (3 bytes), ")
    assert "  0 added and 2 deleted since it was merged" in shown
    assert "  every byte is what was written\n" in shown
    codes = Index.of_codes(np.zeros((2, 1), dtype=np.uint8), 8, "codes.index")
    codes.close()
    assert "made of codes, without a model" in run("info", "codes.index").stdout
    result = run("search", "codes.index", "hubble")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "this index was made of codes and knows no texts" in result.stderr


@pytest.mark.parametrize("verb", ["info", "search", "compact"])
def test_a_damaged_index_is_told(verb: str, news: Path) -> None:
    [codes] = news.glob("generation-*/codes.npy")
    content = bytearray(codes.read_bytes())
    content[-1] ^= 1
    codes.write_bytes(content)
    result = run(verb, news, *(["anything"] if verb == "search" else []))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "damaged" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", ["index", "search", "add", "delete", "compact", "info"])
def test_the_verbs_have_help_with_examples_that_are_true(verb: str) -> None:
    result = CliRunner().invoke(app, [verb, "-h"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for line in result.stdout.splitlines():
        if "parabit " + verb in line and "Usage" not in line:
            options = [word for word in line.split() if word.startswith("--")]
            assert all(f"{option} " in result.stdout for option in options)

"""`parabit demo`, on small collections."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import answer, run

from made_up_files import make_pdf
from parabit.cli.explore import QUESTIONS
from parabit.corpus import as_corpus
from topics import Topics

Write = Callable[[str, str | bytes], Path]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "parabit" / "demo"


@pytest.fixture
def folder(tmp_path: Path, topics: Topics) -> Path:
    """Documents of several kinds, and a picture."""
    place = tmp_path / "papers"
    place.mkdir()
    for number, text in enumerate(topics.texts):
        (place / f"{number}.txt").write_text(f"{' '.join(text.split()[:6])}\n\n{text}")
    (place / "a.md").write_text("# Boats\n\nA boat floats on the *wide* river")
    (place / "b.pdf").write_bytes(make_pdf("The oars of the boat"))
    (place / "picture.png").write_bytes(b"\x89PNG\0\0")
    return place


def test_your_own_documents_are_indexed_and_answer_questions(folder: Path, cache: Path) -> None:
    found = answer("demo", folder, "--ask", "a boat on the river")
    assert (found["documents"], found["skipped"], found["kept"]) == (302, 1, False)
    assert [question["query"] for question in found["questions"]] == ["a boat on the river"]
    assert {hit["id"] for hit in found["questions"][0]["hits"][:2]} == {"a.md", "b.pdf"}
    assert Path(found["index"]).parent == cache
    shown = run("demo", folder).stdout
    assert "302 documents in " in shown
    assert "1 binary file" in shown
    assert f"parabit serve {found['index']}" in shown.replace("\n", "")
    examples = answer("demo", folder)["questions"]  # made from the documents
    assert all(question["hits"] for question in examples)
    assert len(list(cache.iterdir())) == 1


def test_documentation_is_read_again_if_it_changed(
    monkeypatch: pytest.MonkeyPatch, topics: Topics, cache: Path
) -> None:
    read = []

    def open_corpus(name: str, *_: object) -> object:
        read.append(name)
        return as_corpus(
            [f"{question} {text}" for question in QUESTIONS for text in topics.texts[:60]]
        )

    monkeypatch.setattr("parabit.cli.command.open_corpus", open_corpus)
    first = answer("demo")
    assert [question["query"] for question in first["questions"]] == list(QUESTIONS)
    second = answer("demo")
    assert second["questions"] == first["questions"]
    assert ([first["kept"], second["kept"]], read) == ([False, True], ["docstrings"])
    assert run("demo").stdout.count("score") > 4
    monkeypatch.setattr("parabit.__version__", "another")
    assert not answer("demo")["kept"]
    assert read == ["docstrings"] * 2
    assert len(list(cache.iterdir())) == 1  # the index of other versions is gone

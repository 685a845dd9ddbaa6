"""A model and an index of texts about four topics, made once."""

import json
import shutil
from pathlib import Path

import pytest

from parabit import Document, ParagraphVectors
from parabit.index import Index
from topics import Topics


@pytest.fixture(scope="session")
def topic_model(topics: Topics, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model of 20 bits."""
    folder = tmp_path_factory.mktemp("model") / "news-20"
    ParagraphVectors(20, epochs=2, samples=64, device="cpu").fit(topics.texts).save(folder)
    return folder


@pytest.fixture(scope="session")
def topic_documents(topics: Topics) -> list[Document]:
    return [
        Document(f"post{number}", text, (f"topic{label}",), {"year": 1990 + label})
        for number, (text, label) in enumerate(zip(topics.texts, topics.labels, strict=True))
    ]


@pytest.fixture(scope="session")
def _made(topic_model: Path, topic_documents: list[Document], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index") / "news.index"
    Index.build(ParagraphVectors.load(topic_model), topic_documents, folder).close()
    return folder


@pytest.fixture
def news(_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of 300 documents to work with, `news.index` in the current folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(_made, "news.index")
    return Path("news.index")


def as_lines(documents: list[Document]) -> str:
    """Documents as a corpus of JSON lines."""
    return "".join(
        json.dumps({"id": one.id, "text": one.text, "labels": list(one.labels), **one.fields}) + "\n"
        for one in documents
    )


@pytest.fixture
def lines_file(topic_documents: list[Document], tmp_path: Path) -> Path:
    """The same documents as a corpus, `posts.jsonl`."""
    path = tmp_path / "posts.jsonl"
    path.write_text(as_lines(topic_documents))
    return path

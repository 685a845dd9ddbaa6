import json
from pathlib import Path

import pytest

from topics import Topics


@pytest.fixture(scope="session")
def lines(topics: Topics) -> str:
    return "".join(json.dumps({"id": number, "text": text}) + "\n" for number, text in enumerate(topics.texts))


@pytest.fixture
def here(tmp_path: Path, lines: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a corpus, to work in."""
    (tmp_path / "news.jsonl").write_text(lines)
    monkeypatch.chdir(tmp_path)
    return tmp_path

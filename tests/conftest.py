import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from made_up_files import as_lines
from parabit import Document, ParagraphVectors
from parabit.corpus.datasets import data_folder, find_dataset
from parabit.index import Index
from topics import Topics, make_topics

# A busy machine is no failure, and the same code passes or fails each time. `pytest --hypothesis-profile=explore`
# tries other examples.
for profile, same in {"same": True, "explore": False}.items():
    settings.register_profile(
        profile, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=same
    )
settings.load_profile("same")

# In the background or under nohup signals are ignored, and so they would be in processes that the tests start: what is
# ignored is inherited, a handler is not.
for number, handler in {"SIGINT": signal.default_int_handler, "SIGHUP": lambda *_: None}.items():
    if (
        getattr(signal, number, None)
        and signal.getsignal(getattr(signal, number)) is signal.SIG_IGN
    ):
        signal.signal(getattr(signal, number), handler)

# These stop processes by signals, limit their files or run pages in a shell, as Windows cannot.
POSIX_ALONE = ["test_documentation.py", "web/test_serve.py"]
POSIX_ALONE += [f"cli/test_{name}.py" for name in ("encode", "process", "resume", "train")]
POSIX_ALONE += [f"index/test_{name}.py" for name in ("store_damage", "kills")]
collect_ignore = POSIX_ALONE if os.name == "nt" else []

REAL_DATA = data_folder() if os.environ.get("PARABIT_DATA") else None


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Nobody pulls the plug here, and on a busy disk some tests would wait for minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture
def real() -> Callable[[str], str]:
    """Gives back the name of a data set whose real files are here; skips the test where they are not."""

    def need(name: str) -> str:
        dataset = find_dataset(name.partition("/")[0])
        if REAL_DATA is None or not dataset.found(REAL_DATA):
            pytest.skip(f"{name} is not here; set PARABIT_DATA to a folder that has it")
        return name

    return need


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("PARABIT_DATA", str(folder))
    return folder


@pytest.fixture
def parabit(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the real command in a process of its own, in an empty folder."""

    def run(
        *arguments: str | Path, stdin: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        command, environment = (
            [sys.executable, "-m", "parabit", *map(str, arguments)],
            {**os.environ, **environment},
        )
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env=environment,
            encoding="utf-8",
            check=False,
        )

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Writes a file, and the folders above it."""

    def to(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return to


@pytest.fixture(scope="session")
def topics() -> Topics:
    """300 texts about four topics."""
    return make_topics(300)


@pytest.fixture(scope="session")
def lines(topic_documents: list[Document]) -> str:
    return as_lines(topic_documents)


@pytest.fixture
def here(tmp_path: Path, lines: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a corpus, to work in."""
    (tmp_path / "news.jsonl").write_text(lines)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def topic_model(topics: Topics, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model of 20 bits."""
    folder = tmp_path_factory.mktemp("model") / "news-20"
    ParagraphVectors(20).fit(topics.texts).save(folder)
    return folder


@pytest.fixture(scope="session")
def topic_documents(topics: Topics) -> list[Document]:
    return [
        Document(f"post{number}", text, (f"topic{label}",), {"year": 1990 + label})
        for number, (text, label) in enumerate(zip(topics.texts, topics.labels, strict=True))
    ]


@pytest.fixture(scope="session")
def _made(
    topic_model: Path, topic_documents: list[Document], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("index") / "news.index"
    Index.build(topic_documents, folder, model=ParagraphVectors.load(topic_model)).close()
    return folder


@pytest.fixture
def news(_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of 300 documents to work with, `news.index` in the current folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(_made, "news.index")
    return Path("news.index")

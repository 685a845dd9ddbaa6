"""Killed at any moment, a writer loses nothing that was acknowledged, and the index opens.

Writers kill themselves at points that the seed decides, so a busy machine makes no difference.
`PARABIT_KILLS=200 pytest tests/index/test_store_kills.py` kills as often as the project promises.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed_writer import IDS
from made_up_documents import Document, check, contents, differing, document, make_store

from parabit.index.store import Id, Store

KILLS = int(os.environ.get("PARABIT_KILLS", "25"))


class Writer:
    """Starts writers one after the other, and hears what they say."""

    def __init__(self, program: str = "killed_writer.py", *arguments: str) -> None:
        script = Path(__file__).with_name(program)
        self._process = subprocess.Popen(
            [sys.executable, str(script), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, **task: Any) -> list[str]:
        """All that a writer says until its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(task), file=self._process.stdin, flush=True)
        said = [line.strip() for line in iter(self._process.stdout.readline, "ended\n")]
        assert not any(line.startswith("failed") for line in said), said
        return said

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def writer() -> Iterator[Writer]:
    with Writer() as writer:
        yield writer


def operations_in(said: list[str]) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The operations that were acknowledged, and the one that was under way."""
    operations = [json.loads(line) for line in said if line.startswith("{")]
    unfinished = operations.pop() if said.count("done") < len(operations) else None
    return operations, unfinished


def applied(documents: dict[Id, Any], operation: dict[str, Any], make: Callable[[int], Any]) -> dict[Id, Any]:
    """What an index should hold after an operation; `make` gives what it holds of a seed."""
    if operation["kind"] == "compact":
        return documents
    rest = {identity: some for identity, some in documents.items() if identity not in operation["ids"]}
    if operation["kind"] == "delete":
        return rest
    return rest | dict(zip(operation["ids"], map(make, operation["seeds"]), strict=True))


def hold(folder: Path, expected: dict[Id, Document], said: list[str]) -> tuple[dict[Id, Document], str]:
    """Make sure that the index holds what was acknowledged, or one operation more; that, and what was under way."""
    operations, unfinished = operations_in(said)
    for operation in operations:
        expected = applied(expected, operation, document)
    with Store(folder) as reader:  # before any writer has cleared up
        found = contents(reader)
        check(reader, found, IDS)
    if unfinished is not None and differing(found, expected):
        expected = applied(expected, unfinished, document)
    with Store(folder, write=True) as store:
        check(store, expected, IDS)
        names = sorted(path.name.partition("-")[0] for path in folder.iterdir())
        assert names == ["generation", "lock", "log", "manifest.json"]
    with Store(folder) as reader:
        check(reader, expected, IDS)
    return expected, unfinished["kind"] if unfinished else "nothing"


@pytest.fixture
def expected(tmp_path: Path) -> dict[Id, Document]:
    first: dict[Id, Document] = {identity: document(seed) for seed, identity in enumerate(IDS[::3])}
    make_store(tmp_path / "index", first)
    return first


def test_killed_anywhere_nothing_acknowledged_is_lost(
    writer: Writer, expected: dict[Id, Document], tmp_path: Path
) -> None:
    rng, hit = np.random.default_rng(0), Counter[str]()
    for kill in range(KILLS):
        calls = int(10 ** rng.uniform(2, 4.5))
        said = writer.run(folder=str(tmp_path / "index"), seed=kill, calls=calls)
        expected, kind = hold(tmp_path / "index", expected, said)
        hit[kind] += 1
    assert hit["compact"] > KILLS // 10, hit


def test_killed_at_each_step_of_an_addition_and_a_compaction(
    writer: Writer, expected: dict[Id, Document], tmp_path: Path
) -> None:
    at, said = 0, [""]
    while said.count("done") < 2:
        at += 1 if KILLS >= 200 else 4
        said = writer.run(folder=str(tmp_path / "index"), seed=at, at=at)
        expected, _ = hold(tmp_path / "index", expected, said)
    assert at > 40

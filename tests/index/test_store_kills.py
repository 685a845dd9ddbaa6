"""Killed at any moment, a writer loses nothing that was acknowledged, and the index opens.

`PARABIT_KILLS=200 pytest tests/index/test_store_kills.py` kills as often as the project promises.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from killed_writer import IDS, act
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

    def start(self, **asked: Any) -> int:
        assert self._process.stdin is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return int(self.line())

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def said(self) -> list[str]:
        """All that it says until its end."""
        return list(iter(self.line, "ended"))

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def writer() -> Iterator[Writer]:
    writer = Writer()
    yield writer
    writer.close()


class Dictionary:
    """What a store should hold, done to by the same operations."""

    def __init__(self, documents: dict[Id, Document]) -> None:
        self.documents = dict(documents)

    def act(self, operation: dict[str, Any]) -> None:
        if operation["kind"] in ("delete", "update"):
            for identity in operation["ids"]:
                del self.documents[identity]
        if operation["kind"] in ("append", "update"):
            self.documents |= dict(zip(operation["ids"], map(document, operation["seeds"]), strict=True))


def hold(folder: Path, expected: Dictionary, said: list[str]) -> str:
    """Make sure that the index holds what was acknowledged, or one operation more; tells which was under way."""
    assert not any(line.startswith("failed") for line in said), said
    operations = [json.loads(line) for line in said if line.startswith("{")]
    unfinished = operations.pop() if said.count("done") < len(operations) else None
    for operation in operations:
        expected.act(operation)
    with Store.open(folder) as reader:  # before any writer has cleared up
        found = contents(reader)
        check(reader, found, IDS)
    if unfinished is not None and differing(found, expected.documents):
        expected.act(unfinished)
    with Store.open(folder, write=True) as store:
        check(store, expected.documents, IDS)
        assert sorted(path.name.partition("-")[0] for path in folder.iterdir()) == [
            "generation",
            "lock",
            "log",
            "manifest.json",
        ]
    with Store.open(folder) as reader:
        check(reader, expected.documents, IDS)
    return unfinished["kind"] if unfinished else "nothing"


def test_killed_at_random_moments_nothing_acknowledged_is_lost(writer: Writer, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    first: dict[Id, Document] = {identity: document(seed) for seed, identity in enumerate(IDS[::3])}
    make_store(folder, first)
    expected = Dictionary(first)
    chance = random.Random(time.time_ns())
    hit = {}
    for kill in range(KILLS):
        process = writer.start(folder=str(folder), seed=chance.randrange(2**32))
        if kill % 5:  # else it may be killed while it opens
            assert writer.line() == "ready"
        time.sleep(chance.uniform(0, 0.05))
        os.kill(process, signal.SIGKILL)
        kind = hold(folder, expected, writer.said())
        hit[kind] = hit.get(kind, 0) + 1
    assert hit.get("compact", 0) > KILLS // 10, hit


def test_killed_at_each_step_of_an_addition_and_a_compaction(writer: Writer, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    first: dict[Id, Document] = {identity: document(seed) for seed, identity in enumerate(IDS[::3])}
    make_store(folder, first)
    expected = Dictionary(first)
    at, said = 0, [""]
    while said.count("done") < 2:
        at += 1 if KILLS >= 200 else 4
        writer.start(folder=str(folder), seed=at, at=at)
        said = writer.said()
        hold(folder, expected, said)
    assert at > 40


def test_what_the_writer_does_is_what_the_dictionary_does(tmp_path: Path) -> None:
    make_store(tmp_path / "index", {})
    expected = Dictionary({})
    with Store.open(tmp_path / "index", write=True) as store:
        for operation in (
            {"kind": "append", "ids": [1, "1"], "seeds": [1, 2]},
            {"kind": "update", "ids": [1], "seeds": [3]},
            {"kind": "delete", "ids": ["1"], "seeds": [4]},
        ):
            act(store, operation)
            expected.act(operation)
        check(store, expected.documents)

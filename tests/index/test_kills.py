"""Killed at any moment, a writer loses nothing that was acknowledged: the index opens, and finds that and nothing else.

Writers kill themselves at points that the seed decides, so a busy machine makes no difference.
`PARABIT_KILLS=200 pytest tests/index/test_kills.py` kills as often as the project promises.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_models import TEXTS, binary
from killed_writer import IDS, document

from parabit import Document, Index
from parabit.index.store import Id

KILLS = int(os.environ.get("PARABIT_KILLS", "25"))
SOME = TEXTS[:20]


class Writer:
    """Starts writers one after the other, and hears what they say."""

    def __init__(self) -> None:
        command = [
            sys.executable,
            str(Path(__file__).with_name("killed_writer.py")),
            json.dumps(SOME),
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, **task: Any) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """The operations of a writer that were acknowledged, and the one that was under way when it ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(task), file=self.process.stdin, flush=True)
        said = [line.strip() for line in iter(self.process.stdout.readline, "ended\n")]
        assert not any(line.startswith("failed") for line in said), said
        operations = [json.loads(line) for line in said if line.startswith("{")]
        unfinished = operations.pop() if said.count("done") < len(operations) else None
        return operations, unfinished


@pytest.fixture(scope="module")
def writer() -> Iterator[Writer]:
    writer = Writer()
    yield writer
    writer.process.communicate()


def documents_of(seeds: dict[Id, int]) -> list[Document]:
    return [document(identity, seed, SOME) for identity, seed in seeds.items()]


class Killed:
    """An index whose writers are killed, what it should hold, and a reader that has it open all the time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seeds: dict[Id, int] = {identity: number for number, identity in enumerate(IDS[::2])}
        self.gone: set[int] = set()
        Index.build(documents_of(self.seeds), folder, model=binary(), vectors=True).close()
        self.reader = Index.open(folder, model=binary())

    def apply(self, operation: dict[str, Any]) -> None:
        if operation["kind"] == "compact":
            return
        self.gone |= {*self.seeds.values()}
        self.seeds = {
            identity: seed
            for identity, seed in self.seeds.items()
            if identity not in operation["ids"]
        }
        if operation["kind"] != "delete":
            self.seeds |= dict(zip(operation["ids"], operation["seeds"], strict=True))

    def hold(
        self,
        operations: list[dict[str, Any]],
        unfinished: dict[str, Any] | None,
        writer_first: bool = False,
    ) -> str:
        """Make sure that the index holds what was acknowledged, or one operation more; and say what was under way."""
        for operation in operations:
            self.apply(operation)
        with Index.open(self.folder, write=writer_first, model=binary()) as index:
            there = [identity for identity in IDS if index.has([identity])[0]]
            stored = {one.id: one.fields["seed"] for one in index.stored(there)}
            if (
                unfinished is not None and stored != self.seeds
            ):  # it was done as a whole, or not at all
                self.apply(unfinished)
            if not writer_first:  # before a writer has cleared up
                self.reader.refresh()
                self.check(self.reader)
            self.check(index)
        with Index.open(self.folder, write=not writer_first, model=binary()) as index:
            self.check(index)
            index.verify()
            names = sorted(path.name.partition("-")[0] for path in self.folder.iterdir())
            assert names == ["generation", "lock", "log", "manifest.json", "model", "words"]
        return unfinished["kind"] if unfinished else "nothing"

    def check(self, index: Index) -> None:
        """Make sure that these documents are in the index as they were given, in whatever way they are searched."""
        assert len(index) == len(self.seeds)
        lost = [*self.gone - {*self.seeds.values()}][-50:]
        words = [f"own{seed}word" for seed in (*self.seeds.values(), *lost)]
        found = index.search(words, k=3, rank="words").ids
        assert found == [*([identity] for identity in self.seeds), *([] for _ in lost)]
        if not self.seeds:
            return
        documents = documents_of(self.seeds)
        texts, codes = (
            [one.text for one in documents],
            binary().transform([one.text for one in documents]),
        )
        for one, kept, code in zip(documents, index.stored([*self.seeds]), codes, strict=True):
            assert (kept.id, kept.text, kept.code.tolist()) == (one.id, one.text, code.tolist())
            assert kept.fields == {**one.fields, "labels": [*one.labels]}
        same = index.search(codes, radius=0)
        assert all(one.id in ids for one, ids in zip(documents, same.ids, strict=True))
        assert index.search(texts, k=1).ids == [[one.id] for one in documents]
        near = index.search(texts, k=len(texts), rank="cosine")
        for one, ids, scores in zip(documents, near.ids, near.scores, strict=True):
            assert scores[ids.index(one.id)] > 0.999
        some = [one.id for one in documents if "label1" in one.labels]
        assert sorted(index.search(codes[:1], k=99, where={"labels": "label1"}).ids[0]) == sorted(
            some
        )


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Killed]:
    killed = Killed(tmp_path / "index")
    yield killed
    killed.reader.close()


def test_killed_anywhere_nothing_acknowledged_is_lost(writer: Writer, killed: Killed) -> None:
    rng, hit = np.random.default_rng(0), Counter[str]()
    for kill in range(KILLS):
        said = writer.run(folder=str(killed.folder), seed=kill, calls=int(rng.integers(10, 5000)))
        hit[killed.hold(*said, writer_first=bool(kill % 2))] += 1
    assert hit["compact"] > KILLS // 10, hit
    assert hit.total() - hit["nothing"] > KILLS // 4, hit


def test_killed_at_each_step_of_an_addition_and_a_compaction(
    writer: Writer, killed: Killed
) -> None:
    at, operations = 0, list[dict[str, Any]]()
    unfinished: dict[str, Any] | None = None
    while unfinished is not None or len(operations) < 2:
        at += 1 if KILLS >= 200 else 4
        operations, unfinished = writer.run(folder=str(killed.folder), seed=at, at=at)
        killed.hold(operations, unfinished)
    assert at > 40

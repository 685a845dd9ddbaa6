"""Several workers, as processes of their own under torchrun."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributed import HashStore

from parabit import ParagraphVectors
from parabit.codes import hamming
from parabit.errors import TrainingError
from parabit.networks import Checkpoints, Group
from parabit.networks.group import unused_part
from parabit.storage import CHECKPOINT
from topics import Topics

TRAIN = ["--bits", "16", "--epochs", "60", "--seed", "1", "--checkpoint-every", "0.01", "--quiet", "--device", "cpu"]


def torchrun(workers: int, *options: str) -> list[str]:
    return [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(workers)),
        *(*options, "-m", "parabit", "train", "news.jsonl", *TRAIN),
    ]


def run(here: Path, *arguments: str) -> None:
    result = subprocess.run(arguments, cwd=here, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


def apart(folder: Path, labels: np.ndarray) -> float:
    """How much nearer documents of one topic are than others, in bits."""
    codes = ParagraphVectors.load(folder).codes_
    assert codes is not None
    away, together = hamming(codes, codes), np.equal.outer(labels, labels)
    return float(away[~together].mean() - away[together].mean())


@contextmanager
def ending(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive the test, whatever becomes of it."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.scale
def test_two_workers_learn_what_one_does_and_the_same_twice(here: Path, topics: Topics) -> None:
    run(here, sys.executable, "-m", "parabit", "train", "news.jsonl", *TRAIN, "-o", "one")
    for name in ("two", "again"):
        run(here, *torchrun(2), "-o", name)
    assert {path.name for path in here.iterdir()} == {"news.jsonl", "one", "two", "again"}
    assert contents(here / "two") == contents(here / "again")
    alone, both = apart(here / "one", topics.labels), apart(here / "two", topics.labels)
    assert alone > 4
    assert both > 0.9 * alone
    model = ParagraphVectors.load(here / "two")
    assert model.embeddings_ is not None
    assert len(model.embeddings_) == len(topics.texts)
    # The encoder was learned from the embeddings of both, and each document's is in its place.
    inferred, trained = model.transform(topics.texts), model.codes_
    assert trained is not None
    assert np.bitwise_count(inferred ^ trained).sum(axis=1).mean() < 3


@pytest.mark.scale
def test_a_worker_that_is_killed_is_replaced_and_training_goes_on_from_the_last_checkpoint(here: Path) -> None:
    run(here, *torchrun(2), "-o", "unbroken")
    with ending(
        subprocess.Popen(
            [*torchrun(2, "--max-restarts", "1"), "-o", "model"],
            cwd=here,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    ) as process:
        work = here / "model.training"
        limit = time.monotonic() + 60
        while len(list(work.glob(f"{CHECKPOINT}*-of-2-*"))) < 2:
            assert time.monotonic() < limit
            time.sleep(0.01)
        [victim] = [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and _is_worker(entry, process.pid, rank=1)
        ]
        os.kill(victim, signal.SIGKILL)
        _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told
    assert "did not foresee" not in told
    assert "parabit: another worker of the group is lost" in told
    assert contents(here / "model") == contents(here / "unbroken")
    assert not work.exists()


def _is_worker(entry: Path, parent: int, rank: int) -> bool:
    try:
        status = (entry / "status").read_text()
        environment = (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"PPid:\t{parent}\n" in status and f"RANK={rank}".encode() in environment


def test_workers_that_are_started_again_do_not_take_the_dead_for_one_another() -> None:
    store = HashStore()  # outlives the workers, as that of torchrun does
    names = []
    with ThreadPoolExecutor() as threads:
        for _ in range(3):
            first = threads.submit(unused_part, store, 0, 3)
            time.sleep(0.1)  # the first has seen what the others of before have left
            others = [threads.submit(unused_part, store, rank, 3) for rank in (1, 2)]
            parts = [worker.result(timeout=30) for worker in (first, *others)]
            parts[0].set("name", str(len(names)))
            names.append({part.get("name") for part in parts})
    assert names == [{b"0"}, {b"1"}, {b"2"}]


def test_a_worker_that_does_not_come_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parabit.networks.group._START", timedelta(seconds=0.1))
    with pytest.raises(TrainingError, match="of 3 workers, 2 did not come: the first of them is 1"):
        unused_part(HashStore(), 0, 3)


def test_a_restart_does_not_replace_a_model_that_was_there(here: Path) -> None:
    model = here / "model"
    model.mkdir()
    (model / "config.json").write_text('{"recipe": {}}')
    command = [sys.executable, "-m", "parabit", "train", "news.jsonl", *TRAIN, "-o", "model"]
    environment = {**os.environ, "TORCHELASTIC_RESTART_COUNT": "1"}  # torchrun has refused it once, and tries again
    result = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr.startswith("parabit: model is there already")) == (1, True)
    assert contents(model) == {"config.json": b'{"recipe": {}}'}


def test_own_documents_are_all_documents_once() -> None:
    for size in (1, 2, 3, 7):
        parts = [Group(rank, size).own(20) for rank in range(size)]
        assert [number for part in parts for number in range(*part)] == list(range(20))


def test_a_checkpoint_of_another_number_of_workers_is_told(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, {"bits": 32})
    kept.save(7, {"words": torch.ones(2)}, {"epoch": 1})
    (tmp_path / f"{CHECKPOINT}000000000007").rename(tmp_path / f"{CHECKPOINT}0-of-2-000000000007")
    with pytest.raises(TrainingError, match="is of 2 workers, and there are 1 now"):
        kept.load()


@pytest.mark.scale
def test_a_json_summary_is_told_by_the_first_worker_alone(here: Path) -> None:
    result = subprocess.run(
        [*torchrun(2), "-o", "model", "--json", "--epochs", "1"], cwd=here, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["documents"] == 300

from pathlib import Path

import pytest
import torch

from parabit.errors import TrainingError
from parabit.networks.room import choose_device, need_room, room_for_documents
from parabit.networks.shape import choose_shape

CPU = torch.device("cpu")


def have(memory: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parabit.networks.room.free_memory", lambda: memory)


def test_a_device_has_a_name() -> None:
    assert choose_device("cpu") == CPU
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(TrainingError, match="^no device 'tpu'; there are cpu, cuda and auto$"):
        choose_device("tpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_told() -> None:
    with pytest.raises(TrainingError, match="^cuda was asked for, and torch finds no GPU here; take cpu, or auto$"):
        choose_device("cuda")


def test_a_vocabulary_too_large_for_the_memory_is_told_with_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    have(4_000_000_000, monkeypatch)
    shape = choose_shape(128)
    need_room(shape, 1_000_000, CPU, keeps_best=True)
    with pytest.raises(TrainingError) as refused:
        need_room(shape, 10_000_000, CPU, keeps_best=False)
    told = str(refused.value)
    assert told.startswith("a vocabulary of 10,000,000 words and bigrams with 129 units each needs 10.3 GB of memory")
    assert "4.0 GB are free" in told
    assert "a higher minimum count" in told


def test_memory_that_nobody_knows_is_no_reason_to_refuse(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    have(None, monkeypatch)
    need_room(choose_shape(128), 10**12, CPU, keeps_best=True)
    room_for_documents(["values", "squares"], (10, 4), CPU, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_document_tables_larger_than_their_share_of_memory_lie_in_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    have(4 * 2 * 100 * 16 * 4, monkeypatch)
    room_for_documents(["values", "squares"], (100, 16), CPU, tmp_path)
    assert list(tmp_path.iterdir()) == []
    values, squares = room_for_documents(["values", "squares"], (101, 16), CPU, tmp_path)
    assert values.shape == squares.shape == (101, 16)
    assert sorted(path.stat().st_size for path in tmp_path.iterdir()) == [101 * 16 * 4] * 2
    values.fill_(2.5)
    squares.fill_(0.5)
    assert {tuple(set(path.read_bytes())) for path in tmp_path.iterdir()} == {
        tuple(set(table.numpy().tobytes())) for table in (values, squares)
    }

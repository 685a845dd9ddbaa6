import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from parabit.errors import TrainingError
from parabit.networks.training import Checkpoints

IDENTITY: dict[str, Any] = {
    "bits": 32,
    "corpus": "c0ffee",
    "stop_words": ["a", "the"],
    "epochs": None,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "news.training"


def save(folder: Path, step: int = 7) -> Path:
    tensors = {
        "words": torch.full((3, 2), float(step)),
        "words.squares": torch.ones(3, 2, dtype=torch.float64),
    }
    Checkpoints(folder, IDENTITY).save(step, tensors, {"epoch": 1, "step": step, "history": []})
    [checkpoint] = folder.iterdir()
    return checkpoint


def test_what_was_saved_is_found_again(folder: Path) -> None:
    assert Checkpoints(folder, IDENTITY).load() is None
    folder.mkdir()
    assert Checkpoints(folder, IDENTITY).load() is None
    save(folder)
    # Tuples are the same as the lists that JSON makes of them.
    saved = Checkpoints(folder, {**IDENTITY, "stop_words": ("a", "the")}).load()
    assert saved is not None
    about, tensors = saved
    assert (about["epoch"], about["step"], about["history"]) == (1, 7, [])
    assert torch.equal(tensors["words"], torch.full((3, 2), 7.0))
    assert tensors["words.squares"].dtype == torch.float64


def test_older_ones_are_removed_and_the_last_one_counts(folder: Path) -> None:
    for step in (9, 10, 11_000_000_000, 11_000_000_000):  # the same step can be saved again
        assert save(folder, step).name == f"checkpoint-{step:012d}"  # the only one
    (folder / "checkpoint-000000000007").mkdir()  # as a kill while older ones are removed leaves it
    saved = Checkpoints(folder, IDENTITY).load()
    assert saved is not None
    assert saved[0]["step"] == 11_000_000_000
    assert save(folder, 12_000_000_000).name == "checkpoint-012000000000"


def test_a_save_that_fails_leaves_the_one_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = save(folder)
    content = {path.name: path.read_bytes() for path in before.iterdir()}

    def full_disk(path: Path, array: np.ndarray) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full_disk)
    with pytest.raises(OSError, match="No space"):
        Checkpoints(folder, IDENTITY).save(8, {"words": torch.ones(2)}, {})
    assert list(folder.iterdir()) == [before]
    assert {path.name: path.read_bytes() for path in before.iterdir()} == content


def test_a_checkpoint_of_another_training_is_refused_with_what_differs(folder: Path) -> None:
    save(folder)
    with pytest.raises(TrainingError) as refused:
        Checkpoints(
            folder, {**IDENTITY, "bits": 64, "corpus": "decade", "epochs": 5, "dropout": 0.5}
        ).load()
    assert str(refused.value) == (
        f"the checkpoint in {folder} is from another training run: bits was 32, now 64; "
        "corpus was 'c0ffee', now 'decade'; dropout was None, now 0.5; epochs was None, now 5; "
        "use the same corpus and parameters, or delete it to start over"
    )


CHANGES = [b"", b"\xff\xfe\x00 not what was written", None]
TOO_LITTLE = [b"[]", b"{}", json.dumps({"identity": IDENTITY}).encode(), b'{"identity": 7}']


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *product(["about.json", "words.npy", "words.squares.npy"], [*CHANGES, -9]),
        *product(["about.json"], TOO_LITTLE),
    ],
)
def test_a_damaged_checkpoint_is_an_error(
    folder: Path, name: str, change: bytes | int | None
) -> None:
    checkpoint = save(folder)
    content = (checkpoint / name).read_bytes()
    (checkpoint / name).unlink()
    if change is not None:
        (checkpoint / name).write_bytes(change if isinstance(change, bytes) else content[:change])
    with pytest.raises(TrainingError) as refused:
        Checkpoints(folder, IDENTITY).load()
    assert str(refused.value) == f"the checkpoint {checkpoint} is damaged; delete it to start over"


def change_about(checkpoint: Path, **changes: Any) -> None:
    path = checkpoint / "about.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"tensors": ["../../words"]},
        {"tensors": ["/etc/passwd"]},
        {"tensors": 7},
        {"epoch": -1},
        {"epoch": True},
        {"step": "7"},
        {"step": 10**30},
        {"history": [7]},
        {"history": [{"loss": None}]},
        {"identity": []},
        {"more": 1},
    ],
)
def test_what_a_checkpoint_says_of_itself_is_checked(folder: Path, changes: dict[str, Any]) -> None:
    checkpoint = save(folder)
    change_about(checkpoint, **changes)
    with pytest.raises(TrainingError, match=r"the checkpoint .* is damaged; delete it"):
        Checkpoints(folder, IDENTITY).load()


@pytest.mark.parametrize(
    "tensor", [np.zeros((3, 3), np.float32), np.zeros((3, 2)), np.zeros((0, 2), np.float32), None]
)
def test_tensors_of_other_shapes_or_names_are_refused(
    folder: Path, tensor: np.ndarray | None
) -> None:
    checkpoint = save(folder)
    state = {"words": torch.zeros(3, 2), "words.squares": torch.ones(3, 2, dtype=torch.float64)}
    assert Checkpoints(folder, IDENTITY).load(state) is not None
    if tensor is None:
        change_about(checkpoint, tensors=["words"])
    else:
        np.save(checkpoint / "words.npy", tensor)
    with pytest.raises(TrainingError, match=r"the checkpoint .* is damaged; delete it"):
        Checkpoints(folder, IDENTITY).load(state)


def test_links_are_not_followed_and_a_users_folder_is_no_checkpoint(folder: Path) -> None:
    checkpoint = save(folder)
    mine = [folder / "checkpoint-mine", folder / "checkpoint-000000000005.txt"]
    for path in mine:
        path.mkdir()
        (path / "notes.txt").write_text("mine")
    (folder / "checkpoint-000000000099").symlink_to("checkpoint-mine")
    checkpoints = Checkpoints(folder, IDENTITY)
    saved = checkpoints.load()
    assert saved is not None
    assert saved[0]["step"] == 7
    checkpoints.save(8, {"words": torch.ones(2)}, {"epoch": 1, "step": 8, "history": []})
    checkpoints.forget()
    assert not checkpoint.exists()
    assert {path.name for path in folder.iterdir()} == {
        "checkpoint-000000000099",
        *(path.name for path in mine),
    }
    assert all((path / "notes.txt").read_text() == "mine" for path in mine)
    checkpoint = save_beside(folder)
    (checkpoint / "words.npy").rename(folder.parent / "words.npy")
    (checkpoint / "words.npy").symlink_to(folder.parent / "words.npy")
    with pytest.raises(TrainingError, match="is damaged"):
        checkpoints.load()


def save_beside(folder: Path) -> Path:
    """Save a checkpoint where other things are too."""
    tensors = {"words": torch.ones(3, 2)}
    Checkpoints(folder, IDENTITY).save(9, tensors, {"epoch": 1, "step": 9, "history": []})
    return folder / "checkpoint-000000000009"

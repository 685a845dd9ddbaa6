"""Files and folders are complete or not there, whenever the work stops."""

import gc
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parabit.errors import ParabitError
from parabit.storage import copy_folder, need_room, recover, whole_file, whole_folder

CALLS = (
    "open",
    "fsync",
    "close",
    "mkdir",
    "rename",
    "replace",
    "unlink",
    "rmdir",
)  # all that change the disk
OLD, NEW = {"a": "old", "b": "old"}, {"a": "new", "c": "new"}


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """What other tests left is not removed meanwhile, by the calls that are counted here."""
    gc.disable()
    yield
    gc.enable()


def write_folder(path: Path) -> None:
    with whole_folder(path, replaces=lambda _: True) as partial:
        for name, text in NEW.items():
            (partial / name).write_text(text)


def write_file(path: Path) -> None:
    with whole_file(path, durable=True) as partial:
        partial.write_text("new")


def content(path: Path) -> object:
    if path.is_dir():
        return {file.name: file.read_text() for file in path.iterdir()}
    return path.read_text() if path.exists() else None


def stop_at(number: int, dead: bool, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Interrupt after the call of this number; a dead process does nothing afterwards, not even clean up."""
    done: list[str] = []

    def patch(name: str, call: Callable[..., Any]) -> None:
        def stopping(*args: Any, **options: Any) -> Any:
            if dead and len(done) >= number:
                raise KeyboardInterrupt
            result = call(*args, **options)
            done.append(name)
            if len(done) == number:
                raise KeyboardInterrupt
            return result

        monkeypatch.setattr(os, name, stopping)

    for name in CALLS:
        patch(name, getattr(os, name))
    return done


@pytest.mark.parametrize("dead", [False, True], ids=["interrupted", "killed"])
@pytest.mark.parametrize(
    ("write", "old", "new"),
    [
        (write_folder, OLD, NEW),
        (write_folder, None, NEW),
        (write_file, "old", "new"),
        (write_file, None, "new"),
    ],
    ids=["replaced folder", "new folder", "replaced file", "new file"],
)
def test_stopped_after_any_call_the_old_or_the_new_is_there(
    write: Callable[[Path], None], old: Any, new: Any, dead: bool, tmp_path: Path
) -> None:
    number, stopped, outcomes = 0, True, []
    while stopped:
        number += 1
        home = tmp_path / str(number)
        home.mkdir()
        path = home / "model"
        if isinstance(old, dict):
            path.mkdir()
            for name, text in old.items():
                (path / name).write_text(text)
        elif old is not None:
            path.write_text(old)
        with pytest.MonkeyPatch.context() as monkeypatch:
            stop_at(number, dead, monkeypatch)
            try:
                write(path)
                stopped = False
            except KeyboardInterrupt:
                pass
        if dead:
            recover(path)  # as the next use does
        outcomes.append(content(path))
        assert outcomes[-1] in (old, new)
        write(path)
        assert content(path) == new
        left = {file.name for file in home.iterdir()} - {"model"}
        assert all(name.endswith(".partial") for name in left)  # stopped while it removed them
    assert outcomes[0] == old
    assert outcomes[-1] == new
    assert number > 6


def test_a_folder_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with pytest.raises(ParabitError, match="exists already"), whole_folder(path):
        path.joinpath("notes").mkdir(parents=True)
    assert [file.name for file in path.iterdir()] == ["notes"]
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_a_reader_that_recovers_does_not_stop_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    write_folder(path)
    rename, done = os.rename, list[bool]()

    def with_reader(source: Path, target: Path) -> None:
        rename(source, target)
        if source == path and not done:
            done.append(True)
            recover(path)

    monkeypatch.setattr(os, "rename", with_reader)
    write_folder(path)
    assert done
    assert content(path) == NEW
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "model").symlink_to("disk/model")
    with pytest.raises(ParabitError, match="exists"):
        need_room(tmp_path / "model", folder=True)
    (tmp_path / "disk" / "model").mkdir()
    write_folder(tmp_path / "model")
    assert (tmp_path / "model").is_symlink()
    assert content(tmp_path / "disk" / "model") == NEW


MAKE = """
import os
del os.umask  # to ask for it is to change it, for all threads
from parabit import Document, Index, ParagraphVectors
from parabit.model import encode_to_file
texts = ["hubble telescope", "telescope in orbit", "ice hockey", "hockey goalie"] * 5
model = ParagraphVectors(8).fit(texts)
model.save("model")
model.save("model", overwrite=True)
encode_to_file(model.encoder_, texts, "codes.npy")
encode_to_file(model.encoder_, texts, "codes.parquet")
with Index.build(texts, "index", model=model) as index:
    index.add([Document("new", "ice in orbit")])
    index.save("copy")
Index.build(texts, "index", model=model, overwrite=True).close()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    umask = 0o027  # neither what is usual nor what a temporary file has
    subprocess.run([sys.executable, "-c", MAKE], cwd=tmp_path, umask=umask, check=True)
    written = list(tmp_path.rglob("*"))
    assert {"model.safetensors", "manifest.json", "codes.npy", "codes.parquet", "lock"} <= {
        path.name for path in written
    }
    for path in written:
        expected = (0o777 if path.is_dir() else 0o666) & ~umask
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
def test_a_copy_does_not_take_over_permissions(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "private" / "file").touch(mode=0o600)
    copy_folder(tmp_path / "private", tmp_path / "copy")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("copy/file", "new")]
    assert modes[0] == modes[1]

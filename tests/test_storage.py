"""Files and folders are complete or not there, whenever the work stops."""

import errno
import gc
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parabit import storage
from parabit.errors import ParabitError
from parabit.storage import copy_folder, need_room, whole_file, whole_folder

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


def stop_at(number: int, dead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupt after the call of this number; a dead process is killed there and does not clean up."""
    done: list[str] = []

    def patch(owner: object, name: str) -> None:
        call = getattr(owner, name)

        def stopping(*args: Any, **options: Any) -> Any:
            result = call(*args, **options)
            done.append(name)
            if len(done) == number:
                if dead:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise KeyboardInterrupt
            return result

        monkeypatch.setattr(owner, name, stopping)

    for name in CALLS:
        patch(os, name)
    patch(storage, "_exchange")  # the one change of the disk that is no function of Python


def was_stopped(number: int, dead: bool, write: Callable[[Path], None], path: Path) -> bool:
    """Whether writing was stopped after the call of this number; to be killed it gets a process."""
    if dead:
        child = os.fork()
        if not child:
            try:
                stop_at(number, dead, pytest.MonkeyPatch())
                write(path)
            finally:
                os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with pytest.MonkeyPatch.context() as monkeypatch:
        stop_at(number, dead, monkeypatch)
        try:
            write(path)
        except (KeyboardInterrupt, OSError):  # rmtree closes again what it was closing
            return True
    return False


def read(path: Path) -> object:
    """What a reader finds, who changes nothing."""
    return content(storage.folder_to_read(path, lambda folder: content(folder) in (OLD, NEW)))


def left(home: Path) -> set[str]:
    return {file.name for file in home.iterdir()} - {"model"}


@pytest.fixture(params=["exchanged", "set aside"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How an old folder is replaced; the second way is that of systems that cannot exchange names."""
    if request.param == "set aside":
        monkeypatch.setattr(storage, "_exchange", lambda first, second: False)
    elif sys.platform != "linux":
        pytest.skip("only Linux exchanges names")
    return str(request.param)


@pytest.mark.parametrize(
    "dead",
    [
        False,
        pytest.param(
            True, marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
        ),
    ],
    ids=["interrupted", "killed"],
)
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
def test_stopped_after_any_call_the_old_or_the_new_is_there_and_the_next_leaves_no_litter(
    write: Callable[[Path], None], old: Any, new: Any, dead: bool, way: str, tmp_path: Path
) -> None:
    number, stopped, outcomes, litter = 0, True, [], 0
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
        stopped = was_stopped(number, dead, write, path)
        before = {file.name for file in home.iterdir()}
        outcomes.append(read(path))
        assert outcomes[-1] in (old, new)
        assert {file.name for file in home.iterdir()} == before  # a reader changes nothing
        litter += len(left(home))
        write(path)
        assert content(path) == new
        assert not left(home)
    assert outcomes[0] == old
    assert outcomes[-1] == new
    assert number > 6
    assert litter > 0  # there was something to remove


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_of_a_folder_that_was_set_aside_by_a_killed_writer_nothing_is_lost_without_overwriting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_exchange", lambda first, second: False)
    number, restored = 0, 0
    while True:
        number += 1
        path = tmp_path / str(number) / "model"
        path.parent.mkdir()
        path.mkdir()
        for name, text in OLD.items():
            (path / name).write_text(text)
        if not was_stopped(number, True, write_folder, path):
            break
        missing = not path.exists()
        restored += missing
        with pytest.raises(ParabitError, match="exists already"), whole_folder(path):
            pass
        assert content(path) in ((OLD,) if missing else (OLD, NEW))
    assert restored == 1  # between two renames


def test_a_folder_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with pytest.raises(ParabitError, match="exists already"), whole_folder(path):
        path.joinpath("notes").mkdir(parents=True)
    assert [file.name for file in path.iterdir()] == ["notes"]
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_what_takes_the_name_at_the_last_moment_is_not_replaced(tmp_path: Path, way: str) -> None:
    path = tmp_path / "model"
    asked: list[Path] = []

    def replaces(folder: Path) -> bool:
        if (folder / "mine.txt").exists():
            return False
        asked.append(folder)
        if len(asked) == 2:  # before the work and after it; then somebody is faster
            path.rename(tmp_path / "moved")
            path.mkdir()
            (path / "mine.txt").write_text("mine")
        return True

    path.mkdir()
    for name, text in OLD.items():
        (path / name).write_text(text)
    with (
        pytest.raises(ParabitError, match="is something else"),
        whole_folder(path, replaces) as partial,
    ):
        (partial / "a").write_text("new")
    assert content(path) == {"mine.txt": "mine"}
    assert content(tmp_path / "moved") == OLD
    assert left(tmp_path) == {"moved"}


def test_what_has_no_locked_companion_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    names = [
        ".notes.old",  # as a user may call an old folder
        ".notes.0123abcd.partial",
        ".notes.0123abcd.old",
        ".notes.mine.lock",
        ".notes.0123abc.lock",
        ".other.0123abcd.lock",
    ]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text("mine")
    (tmp_path / ".notes.76543210.lock").write_text("a file of mine")
    (tmp_path / ".notes.76543210.partial").write_text("mine")
    before = {file.relative_to(tmp_path) for file in tmp_path.rglob("*")}
    write_folder(path)
    write_folder(path)
    need_room(tmp_path / "notes", folder=True, replaces=lambda _: True)
    shutil.rmtree(path)
    write_file(path)
    path.unlink()
    assert {file.relative_to(tmp_path) for file in tmp_path.rglob("*")} == before


WRITE = """
import signal, sys
from pathlib import Path
from parabit.storage import parts_folder, whole_file, whole_folder
path, kind = Path(sys.argv[1]), sys.argv[2]
with (whole_file if kind == "file" else whole_folder)(path) as partial:
    if kind == "file":
        partial.write_bytes(b"x" * 100_000)
        with parts_folder(partial) as parts:
            (parts / "0.parquet").write_bytes(b"x" * 100_000)
            print("writing", flush=True)
            sys.stdin.readline()
    else:
        (partial / "big").write_bytes(b"x" * 100_000)
        (partial / "link").symlink_to(path.parent / "mine")
        print("writing", flush=True)
        sys.stdin.readline()
        (partial / "link").unlink()
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_litter_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not(
    kind: str, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    path = tmp_path / "model"
    command = [sys.executable, "-c", WRITE, str(path), kind]
    writers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
    all_temporaries = left(tmp_path) - {"mine"}
    assert len(all_temporaries) == (9 if kind == "file" else 6)
    need_room(path, folder=kind == "folder")
    assert left(tmp_path) - {"mine"} == all_temporaries  # all three live
    for writer in writers[:2]:
        writer.kill()
        writer.communicate()
    assert left(tmp_path) - {"mine"} == all_temporaries
    need_room(path, folder=kind == "folder")
    of_the_living = left(tmp_path) - {"mine"}
    assert len(of_the_living) == len(all_temporaries) // 3
    assert len({name.split(".")[2] for name in of_the_living}) == 1
    writers[2].communicate("go on\n")
    assert writers[2].returncode == 0
    assert path.exists()
    assert left(tmp_path) == {"mine"}
    assert content(tmp_path / "mine") == {"notes.txt": "mine"}  # the link was not followed


def test_many_writers_of_one_name_do_not_disturb_each_other(tmp_path: Path, way: str) -> None:
    path = tmp_path / "model"
    problems: list[BaseException] = []

    def write_often(number: int) -> None:
        try:
            for _ in range(15):
                with whole_folder(path, replaces=lambda _: True) as partial:
                    (partial / "a").write_text(str(number))
                with whole_file(tmp_path / "file") as partial:
                    partial.write_text(str(number) * 1000)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write_often, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert left(tmp_path) == {"file"}
    assert content(path) in [{"a": str(number)} for number in range(4)]
    assert (tmp_path / "file").read_text() in [str(number) * 1000 for number in range(4)]


@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_companion_that_cannot_be_made_is_a_clear_error(
    problem: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = os.open

    def refuse(path: Any, flags: int, *others: Any, **options: Any) -> int:
        if str(path).endswith(".lock"):
            raise OSError(problem, os.strerror(problem), path)
        return real_open(path, flags, *others, **options)

    monkeypatch.setattr(os, "open", refuse)
    for write in (write_file, write_folder):
        with pytest.raises(ParabitError, match=f"model cannot be written: {os.strerror(problem)}"):
            write(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="Windows has other locks")
def test_where_there_are_no_locks_files_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def no_locks(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    write_folder(tmp_path / "model")
    write_file(tmp_path / "file")
    assert content(tmp_path / "model") == NEW
    assert left(tmp_path) == {"file"}


@pytest.mark.parametrize("names", [("manifest.json", "lock"), ("config.json", "model.safetensors")])
def test_nothing_is_written_into_the_folder_of_an_index_or_a_model(
    names: tuple[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "x.index"
    inside = folder / "generation-1"
    inside.mkdir(parents=True)
    for name in names:
        (folder / name).touch()
    (tmp_path / "link").symlink_to("x.index/model-mine")
    before = sorted(tmp_path.rglob("*"))
    for path in (folder / "model-mine", inside / "mine"):
        for write in (write_file, write_folder, need_room):
            with pytest.raises(ParabitError, match=r"would be in .*, the folder of an? "):
                write(path)
    with pytest.raises(ParabitError, match="the folder of"):
        need_room(tmp_path / "link", folder=True)
    assert sorted(tmp_path.rglob("*")) == before
    with whole_file(folder / names[0], locked=False) as partial:  # the owner's own
        assert partial.parent == folder
        assert not list(folder.glob(".*.lock"))
    with whole_file(folder / "map.safetensors", inside=True):
        assert list(folder.glob(".*.lock"))
    with whole_folder(folder / "model-2", locked=False):
        pass
    assert {path.name for path in folder.iterdir()} == {
        *names,
        "generation-1",
        "map.safetensors",
        "model-2",
    }


def test_a_link_in_a_folder_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "README.md").symlink_to("../secret")
    with pytest.raises(ParabitError, match="is not a regular file"):
        copy_folder(tmp_path / "model", tmp_path / "copy")
    assert left(tmp_path) == {"secret"}


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

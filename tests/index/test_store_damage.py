"""Damage, mix-ups, full disks and other people's folders: a clear error or a correct answer, never a wrong one."""

import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from made_up_documents import batch_of, check, document, make_store, some_documents

from parabit import Index
from parabit.errors import IndexFolderError
from parabit.index.store import Batch, Manifest, Store, generation, manifest


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with a log of three records."""
    path = tmp_path_factory.mktemp("template") / "index"
    make_store(path, some_documents(12))
    with closing(Store(path, write=True)) as store:
        store.put(batch_of(some_documents(3, first=12)))
        store.put(None, [1])
        store.put(batch_of({3: document(1003)}))
    return path


@pytest.fixture
def index(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "index")
    return tmp_path / "index"


EXPECTED = some_documents(15) | {3: document(1003)}
del EXPECTED[1]


def files_of(index: Path) -> list[Path]:
    return sorted(path for path in index.rglob("*") if path.is_file())


def opens_right_or_not_at_all(index: Path) -> bool:
    """Whether it opens; it must hold what it should, then."""
    try:
        store = Store(index)
    except IndexFolderError as problem:
        assert problem.hint  # noqa: PT017
        return False
    with closing(store):
        check(store, EXPECTED, [1])
    return True


def test_a_flipped_byte_in_any_file_is_an_error_or_harmless(index: Path) -> None:
    harmless, log_errors, rng = set(), 0, np.random.default_rng(0)
    for path in files_of(index):
        content = path.read_bytes()
        places = {
            0,
            60,
            len(content) - 1,
            *rng.integers(0, len(content), 12 if path.suffix == ".npy" else 100),
        }
        if path.name == "log-1":
            places |= {
                *range(64),
                *range(64, len(content), 7),
                *range(len(content) - 40, len(content)),
            }
        for place in places & {*range(len(content))}:
            path.write_bytes(
                content[:place]
                + bytes([content[place] ^ 1 << rng.integers(8)])
                + content[place + 1 :]
            )
            if opens_right_or_not_at_all(index):
                harmless.add(path.name)
            else:
                log_errors += path.name == "log-1"
        path.write_bytes(content)
    assert opens_right_or_not_at_all(index)
    # A blank in the manifest, the process number in the lock, and what the log has twice.
    assert harmless <= {"manifest.json", "lock", "log-1"}
    assert log_errors > 100


def test_files_cut_short_too_long_missing_or_of_another_index_are_errors(
    index: Path, tmp_path: Path
) -> None:
    make_store(tmp_path / "other", some_documents(12, first=100))
    for path in files_of(index):
        if path.name == "lock":
            continue
        content, other = (
            path.read_bytes(),
            (tmp_path / "other" / path.relative_to(index)).read_bytes(),
        )
        contents = [
            content[:length] for length in (0, 1, len(content) // 2, len(content) - 2)
        ]  # at the end is "\n"
        for changed in [*contents, *([other] if other != content else [])]:
            path.write_bytes(changed)
            assert not opens_right_or_not_at_all(index), path
        path.write_bytes(content + b"x")
        assert opens_right_or_not_at_all(index) == (
            path.name == "log-1"
        )  # where a record may be under way
        path.unlink()
        with pytest.raises(IndexFolderError, match=f"{path} is missing"):
            Store(index)
        path.write_bytes(content)
    assert opens_right_or_not_at_all(index)


def test_a_large_index_is_checked_by_verify_and_by_merging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "_SMALL", 0)
    ids = [f"{number:06}" for number in range(40_000)]
    fields = [{"text": f"text {identity}", "third": int(identity) % 3} for identity in ids]
    Store.create(
        tmp_path / "index", Manifest(128), [Batch(ids, np.zeros((len(ids), 16), np.uint8), fields)]
    )
    for path in sorted((tmp_path / "index" / "generation-1").iterdir()):
        content = bytearray(path.read_bytes())
        place = 128 + (len(content) - 128) * 30_000 // 40_000
        content[place] ^= 1
        path.write_bytes(content)
        with closing(Store(tmp_path / "index", write=True)) as store:
            for ask in (Store.verify, Store.compact):
                with pytest.raises(IndexFolderError, match=f"{path.name} is damaged"):
                    ask(store)
        content[place] ^= 1
        content[60] ^= 1
        path.write_bytes(content)
        with pytest.raises(IndexFolderError, match=f"{path.name} is damaged"):
            Store(tmp_path / "index")
        content[60] ^= 1
        path.write_bytes(content)
    with closing(Store(tmp_path / "index", write=True)) as store:
        store.verify()
        assert store.snapshot().ids_of(np.array([30_000])) == ["030000"]
        assert np.array_equal(store.snapshot().rows_of(ids[::7]), np.arange(0, 40_000, 7))


def test_impossible_offsets_in_a_large_index_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "_SMALL", 0)
    make_store(tmp_path / "index", some_documents(12))
    path = tmp_path / "index" / "generation-1" / "records.offsets.npy"
    content = bytearray(path.read_bytes())
    content[128 + 8 * 5 + 6] ^= 1
    path.write_bytes(content)
    with closing(Store(tmp_path / "index")) as store:
        for row in (4, 5):
            with pytest.raises(IndexFolderError, match="is damaged"):
                store.snapshot().fields_of(np.array([row]))


def test_an_index_of_another_version_is_an_error(index: Path) -> None:
    path = index / "manifest.json"
    content = json.loads(path.read_text())
    del content["digest"]
    for change, problem in (
        ({"format": 2}, "has format 2, this version of parabit reads up to 1; upgrade parabit"),
        (
            {"engine": {"name": "elsewhere", "uri": "", "collection": "a"}},
            "kept by 'elsewhere', an engine that this version does not have",
        ),
    ):
        path.write_text(
            json.dumps({**content, **change, "digest": manifest._digest({**content, **change})})
        )
        with pytest.raises(IndexFolderError, match=problem):
            Index.open(index)


@pytest.mark.parametrize("write", [False, True])
def test_what_is_no_index_is_an_error_and_is_not_touched(tmp_path: Path, write: bool) -> None:
    (tmp_path / "file").touch()
    for name in ("nothing", "file", "."):
        with pytest.raises(IndexFolderError, match="no index in .*; make one with `parabit index"):
            Store(tmp_path / name, write=write)
    for content in ("{}", "[]", '{"format": "1"}', '{"format": 1, "arrays": {}}'):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(IndexFolderError, match="not that of an index"):
            Store(tmp_path, write=write)
    assert len(list(tmp_path.iterdir())) == 2


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """A disk that is full when a file has so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_at_any_step_is_an_error_and_the_index_stays_as_it_was(index: Path) -> None:
    expected, outcomes = dict(EXPECTED), []
    long = batch_of({"long": document(1)})._replace(fields=[{"text": "long " * 100_000}])
    for limit in (0, 100, 130, 200, 300, 500, 1000, 2000, 100_000):
        with closing(Store(index, write=True)) as store:
            before = {path: path.read_bytes() for path in files_of(index) if path.name != "lock"}
            with full_disk(limit), pytest.raises(OSError, match="File too large"):
                store.put(long)
            for act in (
                partial(store.save, index.parent / f"copy{limit}", store.manifest),
                store.compact,
            ):
                try:
                    with full_disk(limit):
                        act()
                    outcomes.append("done")
                except OSError:
                    outcomes.append("error")
                    assert {
                        path: path.read_bytes() for path in files_of(index) if path.name != "lock"
                    } == before
            assert (index.parent / f"copy{limit}").exists() == (outcomes[-2] == "done")
            store.put(batch_of({f"new {limit}": document(limit)}))
            expected[f"new {limit}"] = document(limit)
            check(store, expected)
            assert len([*index.iterdir()]) == 4
        with closing(Store(index)) as store:
            check(store, expected)
    assert outcomes == ["error"] * 16 + ["done"] * 2


def test_the_names_in_the_manifest_are_as_documented(index: Path) -> None:
    manifest = json.loads((index / "manifest.json").read_text())
    assert (manifest["format"], manifest["documents"], manifest["bits"]) == (1, 12, 20)
    assert set(manifest["arrays"]) >= {"codes", "ids", "records", "vectors", "fields.values"}
    assert np.load(index / "generation-1" / "codes.npy").shape == (12, 3)

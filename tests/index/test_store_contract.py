"""What the store keeps, and how it is changed."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_documents import batch_of, check, document, make_store, some_documents

from parabit.errors import ParabitError
from parabit.index.store import Batch, Manifest, Store, generation, store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_store(tmp_path / "index", some_documents(40))
    return tmp_path / "index"


def one(identity: Any = "new", seed: int = 999) -> Batch:
    return batch_of({identity: document(seed)})


def test_what_cannot_be_done_is_an_error_and_writes_nothing(folder: Path) -> None:
    refused: list[tuple[Callable[[Store], object], str]] = [
        (lambda store: store.put(one(7), [7]), "the id 7 is given twice"),
        (lambda store: store.put(one()._replace(vectors=None)), "found no vectors"),
        (
            lambda store: store.put(one()._replace(vectors=np.zeros((1, 4), np.float16))),
            r"\(1, 3\), found .* \(1, 4\)",
        ),
    ]
    with closing(Store(folder, write=True)) as store:
        log = (folder / "log-1").read_bytes()
        for act, problem in refused:
            with pytest.raises(ParabitError, match=problem):
                act(store)
        assert (store.put(batch_of({})), store.put(None, ["nobody"])) == (
            0,
            0,
        )  # nor what changes nothing
        assert (folder / "log-1").read_bytes() == log
        check(store, some_documents(40))


def test_a_back_end_that_fails_leaves_the_index_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with closing(Store(folder, write=True)) as writer:
        with monkeypatch.context() as patch:
            patch.setattr(generation, "build_arrays", fail)
            with pytest.raises(OSError, match="No space left"):
                writer.compact()
            patch.setattr(store, "_MERGED_CHANGES", 0)
            patch.setattr(store, "_MERGED_SHARE", 100)
            writer.put(one())  # which the log keeps, as it cannot be merged
        check(writer, some_documents(40) | {"new": document(999)})
        assert sorted(path.name for path in folder.iterdir()) == [
            "generation-1",
            "lock",
            "log-1",
            "manifest.json",
        ]
        writer.put(None, [3])


def test_a_long_log_is_merged_on_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = some_documents(40)
    monkeypatch.setattr(store, "_MERGED_CHANGES", 25)
    with closing(Store(folder, write=True)) as writer:
        added = []
        for first in range(40, 140, 10):
            writer.put(batch_of(some_documents(10, first)), delete=[first - 39])
            expected |= some_documents(10, first)
            del expected[first - 39]
            added.append(writer.snapshot().added)
            check(writer, expected)
        assert added == [10, 20, 0, 10, 20, 0, 10, 20, 0, 10]
        monkeypatch.setattr(store, "_MERGED_BYTES", 1000)
        text = "long " * 10_000
        writer.put(one()._replace(fields=[{"text": text}]))
        assert writer.snapshot().added == 0
        assert writer.snapshot().fields_of(writer.snapshot().rows_of(["new"])) == [{"text": text}]


def test_the_serial_number_of_a_deleted_document_is_not_given_again(tmp_path: Path) -> None:
    codes = np.zeros((3, 1), np.uint8)
    Store.create(tmp_path / "index", Manifest(8), [Batch(["a", "b", "c"], codes)])
    with closing(Store(tmp_path / "index", write=True)) as store:
        store.put(Batch(["d", "e"], codes[:2]))
        store.put(None, ["a", "e"])
        store.compact()
        store.save(tmp_path / "copy", store.manifest)
    for name in ("index", "copy"):
        with closing(Store(tmp_path / name, write=True)) as store:
            store.put(Batch(["f"], codes[:1]))
            assert (store.snapshot().serials.tolist(), store.snapshot().last_serial) == (
                [2, 3, 4, 6],
                6,
            )

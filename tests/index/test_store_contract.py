"""What the store keeps, and how it is changed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_documents import (
    BITS,
    DIM,
    batch_of,
    check,
    document,
    make_store,
    rows_having,
    some_documents,
)

from parabit.errors import IndexFolderError, ParabitError
from parabit.index.filters import number_of
from parabit.index.store import Batch, Id, Store, generation, store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_store(tmp_path / "index", some_documents(40))
    return tmp_path / "index"


NAMED_7: Any = {7: 1}


def one(identity: Any = "new", seed: int = 999) -> Batch:
    return batch_of({identity: document(seed)})


def test_putting_says_how_many_were_replaced_and_writes_nothing_if_nothing_changes(folder: Path) -> None:
    log = (folder / "log-1").read_bytes()
    with Store(folder, write=True) as store:
        assert (store.put(batch_of({})), store.put(None, ["nobody"])) == (0, 0)
        assert (folder / "log-1").read_bytes() == log
        assert store.put(batch_of({"new": document(1), 1: document(2), 3: document(3)}), delete=[5, "nobody"]) == 2
        assert store.snapshot().documents == 40
        store.compact()
        assert (store.snapshot().added, store.snapshot().alive) == (0, None)
        assert sorted(path.name for path in folder.iterdir()) == ["generation-2", "lock", "log-2", "manifest.json"]


def test_a_snapshot_does_not_see_later_changes(folder: Path) -> None:
    with Store(folder, write=True) as store:
        store.put(batch_of(some_documents(3, first=40)), delete=[1])
        before = store.snapshot()

        def asked() -> list[Any]:
            rows = before.sample(100)
            return [
                rows.tolist(),
                before.rows_of([1, 3, 41, 5, "late", "é100"]).tolist(),
                before.ids_of(rows),
                before.fields_of(rows),
                before.codes(rows).tolist(),
                before.vectors(rows).tolist(),
                rows_having(before, "year", 1991).tolist(),
                before.numbers("seed")[rows].tolist(),
                before.find(before.codes(rows), most=3, radius=None).rows.tolist(),
                (before.documents, before.rows, before.last_serial, before.serials.tolist(), before.field_names),
            ]

        was = asked()
        store.put(batch_of(some_documents(50, first=100)), delete=[3, 41])
        store.put(batch_of({5: document(1005), 42: document(1042)}))
        store.put(one("late")._replace(fields=[{"seed": 7, "new": 1}]))
        assert asked() == was
        store.compact()
        assert asked() == was
        store.put(one("later"))
    assert asked() == was


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        (lambda store: store.put(one(7), [7]), "the id 7 is given twice"),
        (lambda store: store.put(one(True)), "must be a string or an integer, found True"),
        (lambda store: store.put(one()._replace(codes=np.zeros((2, 3), np.uint8))), "1 ids and codes of shape"),
        (lambda store: store.put(one()._replace(fields=[NAMED_7])), "a field named 7"),
        (lambda store: store.put(one()._replace(vectors=None)), "found no vectors"),
        (
            lambda store: store.put(one()._replace(vectors=np.zeros((1, 4), np.float16))),
            "keeps float16 vectors of shape .1, 3., found float16 vectors of shape .1, 4.",
        ),
        (lambda store: store.snapshot().ids_of(np.array([0, 40])), "there is no row 40, only 0 to 39"),
        (lambda store: store.snapshot().ids_of(np.array([-1])), "there is no row -1"),
    ],
)
def test_what_cannot_be_done_is_an_error_and_changes_nothing(folder: Path, act: Any, problem: str) -> None:
    with Store(folder, write=True) as store:
        log = (folder / "log-1").read_bytes()
        with pytest.raises(ParabitError, match=problem):
            act(store)
        assert (folder / "log-1").read_bytes() == log
        check(store, some_documents(40))


def test_what_cannot_be_created_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    twice = [batch_of(some_documents(10)), batch_of({"other": document(1), 7: document(2)})]
    with pytest.raises(IndexFolderError, match="two documents have the id 7: numbers 7 and 11"):
        Store.create(tmp_path / "index", BITS, twice, dim=DIM)
    assert list(tmp_path.iterdir()) == []


def test_a_back_end_that_fails_leaves_the_index_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    expected = some_documents(40)
    with Store(folder, write=True) as writer:
        writer.put(None, [1])
        with monkeypatch.context() as patch:
            patch.setattr(generation, "build_arrays", fail)
            with pytest.raises(OSError, match="No space left"):
                writer.compact()
            patch.setattr(store, "_MERGED_CHANGES", 0)
            patch.setattr(store, "_MERGED_SHARE", 100)
            writer.put(one())  # which the log keeps, as it cannot be merged
        expected["new"] = document(999)
        del expected[1]
        check(writer, expected)
        assert sorted(path.name for path in folder.iterdir()) == ["generation-1", "lock", "log-1", "manifest.json"]
        writer.put(None, [3])


def test_a_long_log_is_merged_on_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = some_documents(40)
    monkeypatch.setattr(store, "_MERGED_CHANGES", 25)
    with Store(folder, write=True) as writer, Store(folder) as reader:
        added = []
        for first in range(40, 140, 10):
            writer.put(batch_of(some_documents(10, first)), delete=[first - 39])
            expected |= some_documents(10, first)
            del expected[first - 39]
            added.append(writer.snapshot().added)
            check(writer, expected)
        assert added == [10, 20, 0, 10, 20, 0, 10, 20, 0, 10]
        assert reader.refresh()
        check(reader, expected)
        monkeypatch.setattr(store, "_MERGED_BYTES", 1000)
        text = "long " * 10_000
        writer.put(one()._replace(fields=[{"text": text}]))
        assert writer.snapshot().added == 0
        assert writer.snapshot().fields_of(writer.snapshot().rows_of(["new"])) == [{"text": text}]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (7, 7.0), (-0.5, -0.5), (np.float32(0.5), 0.5), ("1970-01-02", 86400.0), ("1969-12-31T23:59:30", -30.0),
        ("1970-01-01 00:00:00.5", 0.5), ("1970-01-01T02:00:00+01:00", 3600.0), ("1970-01-01T00:01Z", 60.0),
        ("0001-01-01", -62135596800.0), (True, None), (float("nan"), None), (10**400, None), ("7", None),
        ("2001-02-30", None), ("2001-05", None), ("in 2001-05-03", None), ([1], None), (None, None),
    ],
)  # fmt: skip
def test_numbers_and_dates_are_compared_as_numbers(value: Any, number: float | None) -> None:
    assert number_of(value) == number


def test_strings_come_back_whatever_they_are(tmp_path: Path) -> None:
    strings = ["", "\ud800", "a\0b", "\N{ROCKET}", "\r\n\t\"'\\", "-1", " "]
    codes = np.zeros((len(strings), 1), np.uint8)
    Store.create(tmp_path / "index", 8, [Batch(strings, codes, [{"text": text, text: text} for text in strings])])
    with Store(tmp_path / "index", write=True) as store:
        for _ in range(2):
            assert store.snapshot().ids_of(np.arange(len(strings))) == strings
            assert store.snapshot().fields_of(np.arange(len(strings))) == [
                {"text": text, text: text} for text in strings
            ]
            assert store.snapshot().rows_of(strings).tolist() == list(range(len(strings)))
            store.put(Batch(strings, codes, [{"text": text, text: text} for text in strings]))
            store.compact()


def test_every_document_has_a_serial_number_of_its_own_that_it_keeps(tmp_path: Path) -> None:
    codes = np.zeros((3, 1), np.uint8)
    Store.create(tmp_path / "index", 8, [Batch(["a", "b", "c"], codes)])
    with Store(tmp_path / "index", write=True) as store:
        store.put(Batch(["d", "e"], codes[:2]))
        store.put(Batch(["b"], codes[:1]))
        before = store.snapshot()
        store.put(None, ["a", "e"])
        store.put(None, ["b"])
        wanted = np.array([5, 1, 3, 2, 4, 6, 99, 0])
        assert before.rows_of_serials(wanted).tolist() == [4, 0, 2, -1, 3, 5, -1, -1]
        assert (before.serials.tolist(), before.last_serial) == ([1, 2, 3, 4, 5, 6], 6)
        for rows in ([-1, -1, 2, -1, 3, -1, -1, -1], [-1, -1, 0, -1, 1, -1, -1, -1]):
            now = store.snapshot()
            assert now.rows_of_serials(wanted).tolist() == rows
            assert now.last_serial == 6
            store.compact()
        store.save(tmp_path / "copy")
    for name in ("index", "copy"):
        with Store(tmp_path / name, write=True) as store:
            store.put(Batch(["f"], codes[:1]))  # the number of the last one is not given again
            assert (store.snapshot().serials.tolist(), store.snapshot().last_serial) == ([3, 4, 7], 7)


def test_ids_with_one_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def few(rows: list[bytes]) -> np.ndarray:
        return np.array([len(row) for row in rows], dtype=np.uint64)

    for module in ("generation", "snapshot"):
        monkeypatch.setattr(f"parabit.index.store.{module}.hashes", few)
    ids: list[Id] = ["a", "b", "c", "dd", 1, 2, 33]
    Store.create(tmp_path / "index", 8, [Batch(ids, np.zeros((7, 1), np.uint8))])
    with Store(tmp_path / "index", write=True) as store:
        assert store.snapshot().rows_of([33, 2, "a", "c", "x", "dd", 3]).tolist() == [6, 5, 0, 2, -1, 3, -1]
        store.put(None, ["b"])
        store.compact()
        assert store.snapshot().rows_of([33, "b", "c", "dd"]).tolist() == [5, -1, 1, 2]

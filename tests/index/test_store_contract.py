"""What the store keeps, and how it is changed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_documents import (
    BITS,
    EXTRA,
    batch_of,
    check,
    contents,
    derive,
    document,
    make_store,
    some_documents,
)

from parabit.errors import IndexFolderError, ParabitError
from parabit.index.embedded import Embedded
from parabit.index.store import Batch, Kind, Ragged, Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_store(tmp_path / "index", some_documents(40))
    return tmp_path / "index"


def one(identity: Any = "new", seed: int = 999) -> Batch:
    return batch_of({identity: document(seed)})


def test_what_was_created_is_there(folder: Path) -> None:
    with Store.open(folder) as store:
        check(store, some_documents(40), ids=["é1", 0, "0", "", 10**30])
        assert store.ids_of(np.arange(3)) == ["é0", 1, "é2"]  # in their order
        assert (store.bits, store.fingerprint, store.meta) == (BITS, "of a model", {"backend": "flat"})
        assert store.base.alive is None
        assert len(store.tail) == 0
        assert set(store.field_names) == {"labels", "year", "good", "note", "seed", "text"}
        assert sorted(store.extra) == sorted(EXTRA)


def test_an_empty_index_can_be_made_and_filled(tmp_path: Path) -> None:
    make_store(tmp_path / "index", {})
    with Store.open(tmp_path / "index", write=True) as store:
        check(store, {}, ids=["a"])
        store.append(one())
        store.compact(derive)
        check(store, {"new": document(999)})
        store.delete(["new"])
        store.compact()
        check(store, {}, ids=["new"])


def test_adding_deleting_and_updating(folder: Path) -> None:
    expected = some_documents(40)
    with Store.open(folder, write=True) as store:
        store.append(batch_of(some_documents(10, first=40)))
        expected |= some_documents(10, first=40)
        store.delete([3, "é44"])
        del expected[3], expected["é44"]
        store.update(batch_of({5: document(1005), 45: document(1045)}))
        store.append(batch_of({3: document(1003)}))  # an id that was deleted is free again
        for identity in (5, 45):
            del expected[identity]
        expected |= {5: document(1005), 45: document(1045), 3: document(1003)}
        check(store, expected)
    with Store.open(folder, write=True) as store:
        check(store, expected)
        before = store.documents, store.generation
        store.compact(derive)
        check(store, expected)
        assert (store.documents, store.generation) == (before[0], before[1] + 1)
        assert (len(store.tail), store.base.alive, store.log_bytes) == (0, None, 0)
        assert sorted(path.name for path in folder.iterdir()) == ["generation-2", "lock", "log-2", "manifest.json"]
    with Store.open(folder) as store:
        check(store, expected)


def test_rows_of_the_tail_follow_on_those_of_the_base(folder: Path) -> None:
    with Store.open(folder, write=True) as store:
        store.append(one())
        assert store.rows_of(["new", 1]).tolist() == [40, 1]
        assert (store.tail.first, len(store.tail)) == (40, 1)
        assert store.fields_of(np.array([40, 1, 40])) == [
            document(999)["fields"],
            document(1)["fields"],
            document(999)["fields"],
        ]
        with pytest.raises(IndexFolderError, match="there is no row 41, only 0 to 40"):
            store.ids_of(np.array([0, 41]))
        with pytest.raises(IndexFolderError, match="there is no row -1"):
            store.ids_of(np.array([-1]))


def test_what_was_taken_before_a_change_stays_as_it_was(folder: Path) -> None:
    with Store.open(folder, write=True) as store:
        store.append(batch_of(some_documents(3, first=40)))
        store.delete([1])
        state, (base, tail) = store.state, store.segments
        assert base.alive is not None
        was = [base.alive.copy(), base.codes.copy(), tail.codes.copy(), tail.extra("vectors").copy()]
        store.delete([3, 41])
        store.append(batch_of(some_documents(50, first=100)))
        store.compact()
        is_ = [base.alive, base.codes, tail.codes, tail.extra("vectors")]
        assert all(np.array_equal(a, b) for a, b in zip(was, is_, strict=True))
        assert tail.alive is None
        assert len(tail.matching("year", 1991)) == len(tail) == 3
        assert state.ids_of(np.array([3, 41])) == [3, 41]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda store: store.append(one(7)), "the id 7 is in the index already"),
        (lambda store: store.append(batch_of({"new": document(1)} | {"é0": document(2)})), "the id 'é0' is in"),
        (lambda store: store.delete(["7"]), "no document with the id '7'"),
        (lambda store: store.delete([7, 7]), "the id 7 is given twice"),
        (lambda store: store.update(one()), "no document with the id 'new'"),
        (lambda store: store.append(one(True)), "must be a string or an integer, found True"),
        (lambda store: store.append(one(1.5)), "must be a string or an integer, found 1.5"),
        (lambda store: store.append(one()._replace(codes=np.zeros((1, 4), np.uint8))), "20 bits take 3 bytes"),
        (lambda store: store.append(one()._replace(codes=np.full((1, 3), 255, np.uint8))), "after the first 20"),
        (lambda store: store.append(one()._replace(codes=np.zeros((2, 3), np.uint8))), "1 ids and codes of shape"),
        (lambda store: store.append(one()._replace(fields=[])), "1 ids and fields of 0 documents"),
        (lambda store: store.append(one()._replace(fields=[{"at": object()}])), "'new' cannot be kept: a object"),
        (lambda store: store.append(one()._replace(fields=[{7: 1}])), "a field named 7"),
        (lambda store: store.append(one()._replace(extra={})), "keeps the extra arrays .*found \\[\\]"),
        (
            lambda store: store.append(one()._replace(extra={**one().extra, "vectors": np.zeros((1, 3))})),
            "vectors must be float16 of shape \\(1, 3\\), found float64",
        ),
        (
            lambda store: store.append(one()._replace(extra={**one().extra, "bags": np.zeros(3)})),
            "bags is ragged, found an array",
        ),
        (
            lambda store: store.append(
                one()._replace(
                    extra={**one().extra, "bags": Ragged(np.zeros(2, EXTRA["bags"].dtype), np.array([0, 1]))}
                )
            ),
            "the offsets of bags do not go with 1 documents and 2 values",
        ),
        (lambda store: store.base.extra("bags"), "no extra array 'bags' of fixed rows"),
        (lambda store: store.base.ragged("vector"), "no extra array 'vector' of ragged rows"),
    ],
)
def test_what_cannot_be_done_is_told_and_changes_nothing(folder: Path, change: Any, problem: str) -> None:
    with Store.open(folder, write=True) as store:
        log = (folder / "log-1").read_bytes()
        with pytest.raises(ParabitError, match=problem):
            change(store)
        assert (folder / "log-1").read_bytes() == log
        check(store, some_documents(40))


def test_nothing_to_do_is_no_error(folder: Path) -> None:
    with Store.open(folder, write=True) as store:
        store.append(batch_of({}))
        store.update(batch_of({}))
        store.delete([])
        assert store.log_bytes == 0


def test_an_id_twice_in_all_batches_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    batches = [batch_of(some_documents(10)), batch_of({"other": document(1), 7: document(2)})]
    with pytest.raises(IndexFolderError, match="two documents have the id 7: numbers 7 and 11"):
        Store.create(tmp_path / "index", BITS, batches, extra=EXTRA)
    assert list(tmp_path.iterdir()) == []


def test_creating_replaces_an_index_only_when_asked_and_nothing_else_ever(folder: Path) -> None:
    with pytest.raises(ParabitError, match="exists already"):
        make_store(folder, {})
    with Store.open(folder) as reader:
        make_store(folder, some_documents(5), overwrite=True)
        check(reader, some_documents(40))
        assert reader.refresh()
        check(reader, some_documents(5))
    with Store.open(folder, write=True), pytest.raises(IndexFolderError, match="is being written by process"):
        make_store(folder, {}, overwrite=True)
    (folder / "precious").touch()
    with pytest.raises(ParabitError, match="is something else; nothing was changed"):
        make_store(folder, {}, overwrite=True)


def test_a_damaged_index_can_be_replaced(folder: Path) -> None:
    (folder / "manifest.json").write_text("{")
    make_store(folder, some_documents(5), overwrite=True)
    with Store.open(folder) as store:
        check(store, some_documents(5))


def test_saving_to_another_folder(folder: Path, tmp_path: Path) -> None:
    with Store.open(folder, write=True) as store:
        store.delete([1])
        store.append(one())
        expected = contents(store)
        store.save(tmp_path / "copy", derive, meta={"backend": "tables"})
        check(store, expected)
    with Store.open(tmp_path / "copy") as store:
        check(store, expected)
        assert (len(store.base), store.meta) == (40, {"backend": "tables"})


def test_a_new_back_end_comes_with_compaction(folder: Path) -> None:
    with Store.open(folder, write=True) as store:
        assert sorted(store.base.derived) == ["size", "sums"]
        store.compact(lambda codes: {"table": np.zeros((2, 0, 3), np.float32), "codes": codes[:, 0]}, {"backend": "x"})
        assert store.base.derived["table"].shape == (2, 0, 3)
        assert np.array_equal(store.base.derived["codes"], store.base.codes[:, 0])
        assert store.meta == {"backend": "x"}
        with pytest.raises(ValueError, match="read-only"):
            store.base.codes[0] = 0


def test_a_back_end_that_fails_leaves_the_index_as_it_was(folder: Path) -> None:
    def fail(codes: np.ndarray) -> dict[str, np.ndarray]:
        raise MemoryError

    with Store.open(folder, write=True) as store:
        store.delete([1])
        with pytest.raises(MemoryError):
            store.compact(fail)
        expected = some_documents(40)
        del expected[1]
        check(store, expected)
        assert sorted(path.name for path in folder.iterdir()) == ["generation-1", "lock", "log-1", "manifest.json"]
        store.delete([3])


def test_values_of_fields_are_equal_as_python_has_it_but_truth_is_no_number(tmp_path: Path) -> None:
    values: list[Any] = [1, 1.0, True, "1", None, [1, "a"], ("a", "a"), [], {"a": 1}, float("inf"), np.int64(2), [[1]]]
    codes = np.zeros((len(values), 1), np.uint8)
    fields = [{"field": value} for value in values]
    Store.create(tmp_path / "index", 8, [Batch(range(len(values)), codes, fields)])
    with Store.open(tmp_path / "index", write=True) as store:
        store.append(Batch(range(100, 100 + len(values)), codes, fields))
        for segment in store.segments:
            found = {
                repr(value): np.flatnonzero(segment.matching("field", value)).tolist()
                for value in (1, 1.0, True, "1", None, "a", float("inf"), 2.0, "b")
            }
            assert found == {
                "1": [0, 1, 5], "1.0": [0, 1, 5], "True": [2], "'1'": [3], "None": [4], "'a'": [5, 6],
                "inf": [9], "2.0": [10], "'b'": [],
            }  # fmt: skip
            assert not segment.matching("other", 1).any()
        assert store.fields_of(np.array([6, 8, 10, 11])) == [
            {"field": ["a", "a"]}, {"field": {"a": 1}}, {"field": 2}, {"field": [[1]]},
        ]  # fmt: skip


def test_strings_come_back_whatever_they_are(tmp_path: Path) -> None:
    strings = ["", "\ud800", "a\0b", "\N{ROCKET}", "\r\n\t\"'\\", "-1", " "]
    codes = np.zeros((len(strings), 1), np.uint8)
    Store.create(tmp_path / "index", 8, [Batch(strings, codes, [{"text": text, text: text} for text in strings])])
    with Store.open(tmp_path / "index", write=True) as store:
        for _ in range(2):
            assert store.ids_of(np.arange(len(strings))) == strings
            assert store.fields_of(np.arange(len(strings))) == [{"text": text, text: text} for text in strings]
            assert store.rows_of(strings).tolist() == list(range(len(strings)))
            store.update(Batch(strings, codes, [{"text": text, text: text} for text in strings]))
            store.compact()


def test_names_and_kinds_of_extra_arrays_that_cannot_be_kept(tmp_path: Path) -> None:
    for name, kind in (("../etc", Kind("float16", 3)), ("objects", Kind(object, 3))):
        with pytest.raises(IndexFolderError, match=name):
            Store.create(tmp_path / "index", 8, [], extra={name: kind})
    with pytest.raises(ParabitError, match="1 bit or more"):
        Store.create(tmp_path / "index", 0, [])


def test_a_store_that_was_closed_or_is_open_for_reading_says_so(folder: Path) -> None:
    reader = Store.open(folder)
    for change in (lambda: reader.append(one()), lambda: reader.delete([1]), reader.compact):
        with pytest.raises(IndexFolderError, match="is open for reading; open it with write=True"):
            change()
    reader.close()
    with pytest.raises(IndexFolderError, match="was closed; open it again"):
        len(reader.base)


def test_a_reader_follows_the_writer_when_it_refreshes(folder: Path) -> None:
    expected = some_documents(40)
    with Store.open(folder, write=True) as writer, Store.open(folder) as reader:
        assert not reader.refresh()
        writer.append(one())
        check(reader, expected)
        assert reader.refresh()
        expected["new"] = document(999)
        check(reader, expected)
        writer.delete([1])
        writer.compact(derive)
        check(reader, expected)  # from files that are gone
        assert reader.refresh()
        del expected[1]
        check(reader, expected)
        assert not writer.refresh()


def test_every_document_has_a_serial_number_of_its_own_that_it_keeps(tmp_path: Path) -> None:
    codes = np.zeros((3, 1), np.uint8)
    Store.create(tmp_path / "index", 8, [Batch(["a", "b", "c"], codes)])
    with Embedded.open(tmp_path / "index", write=True) as store:
        store.append(Batch(["d", "e"], codes[:2]))
        store.update(Batch(["b"], codes[:1]))
        before = store.view()
        store.delete(["a", "e"])
        store.delete(["b"])
        wanted = np.array([5, 1, 3, 2, 4, 6, 99, 0], dtype=np.uint64)
        assert before.rows_of_serials(wanted).tolist() == [4, 0, 2, -1, 3, 5, -1, -1]
        assert (before.serials.tolist(), before.last_serial) == ([1, 2, 3, 4, 5, 6], 6)
        for rows in ([-1, -1, 2, -1, 3, -1, -1, -1], [-1, -1, 0, -1, 1, -1, -1, -1]):
            now = store.view()
            assert now.rows_of_serials(wanted).tolist() == rows
            assert now.last_serial == 6
            store.compact()
        store.append(Batch(["f"], codes[:1]))  # the number of the last one is not given again
    with Embedded.open(tmp_path / "index") as store:
        assert (store.view().serials.tolist(), store.view().last_serial) == ([3, 4, 7], 7)

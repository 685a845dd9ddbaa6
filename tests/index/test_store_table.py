"""The table of keys: what numpy would find, whatever the pieces that it is sorted and read in."""

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from parabit.index.store import Batch, Store, arrays, table
from parabit.index.store.arrays import CheckedWriter, MappedArrays, write_checksums
from parabit.index.store.schema import Layout
from parabit.index.store.table import HEADS, KEYS, ROWS, Table, TableWriter

# Few keys, at both ends and in two buckets, so that many entries share one.
KEY = st.sampled_from([0, 1, 2, 2**48, 2**48 + 1, 2**63, 2**64 - 1])


@given(keys=st.lists(KEY, max_size=60), pieces=st.integers(1, 20), at_once=st.integers(1, 40))
def test_a_table_finds_the_rows_of_each_key(
    keys: list[int], pieces: int, at_once: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("table")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_AT_ONCE", at_once)
        patch.setattr(table, "_STEP", 4)
        patch.setattr(arrays, "BLOCK", 32)
        given_keys = np.array(keys, dtype=np.uint64)
        writer = TableWriter(folder, "t")
        for start in range(0, len(keys), pieces):
            some = given_keys[start : start + pieces]
            writer.add(some, np.arange(start, start + len(some)))
        layouts = {KEYS: np.uint64, ROWS: np.int64, HEADS: np.uint64}
        writers = {
            f"t{part}": CheckedWriter(folder / f"t{part}.npy", Layout(np.dtype(of))) for part, of in layouts.items()
        }
        with writers["t.keys"], writers["t.rows"], writers["t.heads"]:
            writer.finish(*writers.values())
        mapped = MappedArrays(
            folder, {name: one.form for name, one in writers.items()}, write_checksums(folder, writers)
        )
        mapped.verify()
        found = Table(mapped, "t")
        assert np.array_equal(found.keys, np.sort(given_keys))
        for key in {*keys, 3, 2**62}:
            assert found.rows_of(key).tolist() == np.flatnonzero(given_keys == np.uint64(key)).tolist()


def test_ids_with_one_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def few(rows: list[bytes]) -> np.ndarray:
        return np.array([len(row) for row in rows], dtype=np.uint64)

    monkeypatch.setattr("parabit.index.store.generation.hashes", few)
    ids = ["a", "b", "c", "dd", 1, 2, 33]
    Store.create(tmp_path / "index", 8, [Batch(ids, np.zeros((7, 1), np.uint8))])
    with Store.open(tmp_path / "index", write=True) as store:
        assert store.rows_of([33, 2, "a", "c", "x", "dd", 3]).tolist() == [6, 5, 0, 2, -1, 3, -1]
        store.delete(["b"])
        store.compact()
        assert store.rows_of([33, "b", "c", "dd"]).tolist() == [5, -1, 1, 2]

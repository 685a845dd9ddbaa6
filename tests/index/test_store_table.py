"""The table of keys: what numpy would find, whatever the pieces that it is sorted in."""

from contextlib import ExitStack
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from parabit.index.store import Batch, Store
from parabit.index.store.arrays import ROWS, VALUES, CheckedWriter, MappedArrays, Table, TableWriter

# Few keys, at both ends and in two buckets, so that many entries share one.
KEY = st.sampled_from([0, 1, 2, 2**48, 2**48 + 1, 2**63, 2**64 - 1])


@given(keys=st.lists(KEY, max_size=60), pieces=st.integers(1, 20))
def test_a_table_finds_the_rows_of_each_key(
    keys: list[int], pieces: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("table")
    given_keys = np.array(keys, dtype=np.uint64)
    writer = TableWriter({ROWS: np.int64, VALUES: np.float64})
    for start in range(0, len(keys), pieces):
        rows = np.arange(start, min(start + pieces, len(keys)))
        writer.add(given_keys[rows], rows, rows / 2)
    writers = {part: CheckedWriter(folder / f"t{part}.npy", layout) for part, layout in writer.layouts.items()}
    with ExitStack() as stack:
        writer.finish({part: stack.enter_context(one) for part, one in writers.items()})
    mapped = MappedArrays(folder, {f"t{part}": one.form for part, one in writers.items()})
    mapped.verify()
    found = Table(mapped, "t")
    assert np.array_equal(found.keys, np.sort(given_keys))
    for key in {*keys, 3, 2**62}:
        expected = np.flatnonzero(given_keys == np.uint64(key))
        rows, values = found.find(key)
        assert (rows.tolist(), values.tolist()) == (expected.tolist(), (expected / 2).tolist())


def test_ids_with_one_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def few(rows: list[bytes]) -> np.ndarray:
        return np.array([len(row) for row in rows], dtype=np.uint64)

    for module in ("generation", "snapshot"):
        monkeypatch.setattr(f"parabit.index.store.{module}.hashes", few)
    ids = ["a", "b", "c", "dd", 1, 2, 33]
    Store.create(tmp_path / "index", 8, [Batch(ids, np.zeros((7, 1), np.uint8))])
    with Store.open(tmp_path / "index", write=True) as store:
        assert store.snapshot().rows_of([33, 2, "a", "c", "x", "dd", 3]).tolist() == [6, 5, 0, 2, -1, 3, -1]
        store.put(None, ["b"])
        store.compact()
        assert store.snapshot().rows_of([33, "b", "c", "dd"]).tolist() == [5, -1, 1, 2]

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabit.corpus import Document, as_corpus
from parabit.errors import CorpusError
from parabit.index.unique import UniqueIds


@given(st.lists(st.text(max_size=3), max_size=40), st.integers(1, 7))
def test_the_first_id_that_occurs_again_is_found(ids: list[str], size: int) -> None:
    watch = UniqueIds(as_corpus([Document(identity, "") for identity in ids]))

    def watch_all() -> None:
        for start in range(0, len(ids), size):
            watch.add(ids[start : start + size])

    if len(set(ids)) == len(ids):
        watch_all()
        return
    with pytest.raises(CorpusError, match="two documents have the id") as caught:
        watch_all()
    assert any(ids.count(identity) > 1 and repr(identity) in str(caught.value) for identity in ids)


def test_the_places_of_both_are_told() -> None:
    ids = ["a", "b", "c", "b"]
    watch = UniqueIds(as_corpus([Document(identity, "") for identity in ids]))
    with pytest.raises(CorpusError, match="'b': numbers 1 and 3"):
        watch.add(ids)


def test_equal_hashes_of_different_ids_are_no_duplicates() -> None:
    watch = UniqueIds(as_corpus(["x", "y"]))
    watch.add(["0"])
    watch._seen._runs[0][:] = pl.Series(["1"]).hash().to_numpy()  # as if "0" had the hash of "1"
    watch.add(["1"])

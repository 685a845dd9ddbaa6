"""Documents as an index keeps them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.reading import Reading
from parabit.index.store import Id, State


class Stored(NamedTuple):
    """A document of an index."""

    id: Id
    code: NDArray[np.uint8]  # (bytes,)
    text: str
    fields: Mapping[str, Any]  # the others that were stored, labels among them


def stored_with(state: State, ids: Sequence[Id]) -> list[Stored]:
    """The documents with these ids; an IndexFolderError names one that is not there.

    Example:
        >>> from tempfile import mkdtemp
        >>> from parabit.index.store import Batch, Store
        >>> batch = Batch(["a", "b"], np.array([[1], [2]], np.uint8), [{"text": "Hubble"}, {"year": 1993}])
        >>> Store.create(folder := mkdtemp() + "/a.index", 8, [batch])
        >>> stored_with(Store.open(folder).state, ["b"])
        [Stored(id='b', code=array([2], dtype=uint8), text='', fields={'year': 1993})]
    """
    rows = rows_with(state, ids)
    if not len(rows):
        return []
    codes, fields = Reading(state.segments).codes(rows), state.fields_of(rows)
    return [
        Stored(identity, code, its.pop("text", ""), its)
        for identity, code, its in zip(state.ids_of(rows), codes, fields, strict=True)
    ]


def rows_with(state: State, ids: Sequence[Id]) -> NDArray[np.int64]:
    """The rows of documents; an IndexFolderError names one that is not there."""
    rows = state.rows_of(ids)
    if (rows < 0).any():
        missing = ids[int(np.argmax(rows < 0))]
        raise IndexFolderError(f"there is no document {missing!r}", hint="give the id of one that is in the index")
    return rows

"""Documents as an index keeps them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.store import Id, Snapshot


class Stored(NamedTuple):
    """A document of an index."""

    id: Id
    code: NDArray[np.uint8]  # (bytes,)
    text: str
    fields: Mapping[str, Any]  # the others that were stored, labels among them


def stored_with(view: Snapshot, ids: Sequence[Id]) -> list[Stored]:
    """The documents with these ids; an IndexFolderError names one that is not there.

    Example:
        >>> from tempfile import mkdtemp
        >>> from parabit.index.store import Batch, Store
        >>> batch = Batch(["a", "b"], np.array([[1], [2]], np.uint8), [{"text": "Hubble"}, {"year": 1993}])
        >>> Store.create(folder := mkdtemp() + "/a.index", 8, [batch])
        >>> stored_with(Store.open(folder).snapshot(), ["b"])
        [Stored(id='b', code=array([2], dtype=uint8), text='', fields={'year': 1993})]
    """
    rows = rows_with(view, ids)
    if not len(rows):
        return []
    codes, fields = view.codes(rows), view.fields_of(rows)
    return [
        Stored(identity, code, its.pop("text", ""), its)
        for identity, code, its in zip(view.ids_of(rows), codes, fields, strict=True)
    ]


def rows_with(view: Snapshot, ids: Sequence[Id]) -> NDArray[np.int64]:
    """The rows of documents; an IndexFolderError names one that is not there."""
    rows = view.rows_of(ids)
    if (rows < 0).any():
        missing = ids[int(np.argmax(rows < 0))]
        raise IndexFolderError(f"there is no document {missing!r}", hint="give the id of one that is in the index")
    return rows


def ids_of_written(view: Snapshot, written: Sequence[str]) -> list[Id]:
    """Ids as people write them: 7 is the number 7 where no document has the string as its id and one has the number."""
    ids: list[Id] = list(written)
    for place in np.flatnonzero(view.rows_of(ids) < 0).tolist():
        number = int(written[place]) if re.fullmatch(r"-?[0-9]{1,4000}", written[place]) else None
        if number is not None and view.rows_of([number])[0] >= 0:
            ids[place] = number
    return ids

"""The labels of the documents in an index, and how many have each."""

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.index.filtering import alive_in
from parabit.index.store import State

_LOOKED_AT = 20_000  # documents, in some 200 ms


class Labels(NamedTuple):
    """Labels with the number of their documents, the most frequent first."""

    counts: dict[str, int]
    complete: bool  # whether every document was looked at; in a large index a rare label may be missing


def labels_of(state: State, most: int, looked_at: int = _LOOKED_AT) -> Labels:
    """The most frequent labels. Their names come from a sample of a large index, their counts are exact.

    Example:
        >>> from tempfile import mkdtemp
        >>> from parabit.index.store import Batch, Store
        >>> fields = [{"labels": ["space", "orbit"]}, {"labels": ["space"]}, {}]
        >>> batch = Batch(["a", "b", "c"], np.zeros((3, 1), np.uint8), fields)
        >>> Store.create(folder := mkdtemp() + "/a.index", 8, [batch])
        >>> labels_of(Store.open(folder).state, most=10)
        Labels(counts={'space': 2, 'orbit': 1}, complete=True)
    """
    rows = alive_rows(state, looked_at)
    if "labels" not in state.field_names:
        return Labels({}, complete=True)
    found = Counter(label for fields in state.fields_of(rows) for label in labels_in(fields.get("labels")))
    complete = len(rows) == state.documents
    first = sorted(found, key=lambda label: (-found[label], label))[:most]
    if not complete:
        segments = state.segments
        exact = {label: sum(int(part.matching("labels", label).sum()) for part in segments) for label in first}
        return Labels({label: exact[label] for label in sorted(exact, key=lambda label: -exact[label])}, complete=False)
    return Labels({label: found[label] for label in first}, complete=len(first) == len(found))


def labels_in(stored: object) -> list[str]:
    """A document's labels as they were stored: a list, or a single one.

    Example:
        >>> labels_in(["space", 7]), labels_in("space"), labels_in(None)
        (['space'], ['space'], [])
    """
    if isinstance(stored, str):
        return [stored]
    return [label for label in stored if isinstance(label, str)] if isinstance(stored, list) else []


def alive_rows(state: State, most: int, seed: int = 0) -> NDArray[np.int64]:
    """The rows of documents that were not deleted, ascending; of more than `most` a random sample.

    Example:
        >>> from tempfile import mkdtemp
        >>> from parabit.index.store import Batch, Store
        >>> Store.create(folder := mkdtemp() + "/a.index", 8, [Batch(["a", "b"], np.zeros((2, 1), np.uint8))])
        >>> alive_rows(Store.open(folder).state, most=5)
        array([0, 1])
    """
    parts = [np.flatnonzero(alive_in(segment)) + segment.first for segment in state.segments]
    rows = np.concatenate([part.astype(np.int64) for part in parts])
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))

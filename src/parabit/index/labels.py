"""The labels of the documents in an index, and how many have each."""

from collections import Counter
from typing import NamedTuple

from parabit.index.store import Snapshot

_LOOKED_AT = 20_000  # documents, in some 200 ms


class Labels(NamedTuple):
    """Labels with the number of their documents, the most frequent first."""

    counts: dict[str, int]
    complete: bool  # whether every document was looked at; in a large index a rare label may be missing


def labels_of(view: Snapshot, most: int, looked_at: int = _LOOKED_AT) -> Labels:
    """The most frequent labels. Their names come from a sample of a large index.

    Example:
        >>> from tempfile import mkdtemp
        >>> import numpy as np
        >>> from parabit.index.store import Batch, Store
        >>> fields = [{"labels": ["space", "orbit"]}, {"labels": ["space"]}, {}]
        >>> batch = Batch(["a", "b", "c"], np.zeros((3, 1), np.uint8), fields)
        >>> Store.create(folder := mkdtemp() + "/a.index", 8, [batch])
        >>> labels_of(Store.open(folder).snapshot(), most=10)
        Labels(counts={'space': 2, 'orbit': 1}, complete=True)
    """
    documents = view.documents
    rows = view.sample(looked_at)
    if "labels" not in view.field_names:
        return Labels({}, complete=True)
    found = Counter(label for fields in view.fields_of(rows) for label in labels_in(fields.get("labels")))
    complete = documents <= looked_at
    first = sorted(found, key=lambda label: (-found[label], label))[:most]
    if not complete:
        counts = {label: view.count("labels", label) for label in first}
        most_first = sorted(counts, key=lambda label: -counts[label])
        return Labels({label: counts[label] for label in most_first}, complete=False)
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

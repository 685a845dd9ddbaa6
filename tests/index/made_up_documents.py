"""Documents for the tests of the store, and what it should hold of them, as a plain dictionary."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from parabit.index.filters import conditions
from parabit.index.store import Batch, Id, Manifest, Snapshot, Store

BITS = 20  # no multiple of 8
DIM = 3
LABELS = ("space", "hockey", "cars")

Document = dict[str, Any]


def document(seed: int) -> Document:
    """A document that a number decides: every kind of field, text that is not ASCII, sometimes no text."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 256, 3, dtype=np.uint8)
    code[2] &= 0xF0
    fields: dict[str, Any] = {
        "labels": [str(label) for label in rng.choice(LABELS, rng.integers(0, 3), replace=False)],
        "year": int(rng.integers(1990, 1993)),
        "good": bool(rng.integers(2)),
        "note": None,
        "seed": seed,
    }
    if seed % 3:
        fields["text"] = f"Gödel, Escher\n{seed} \N{ROCKET} " * int(rng.integers(0, 4))
    vector = rng.standard_normal(DIM).astype(np.float16)
    return {"code": code, "fields": fields, "vectors": vector}


def batch_of(documents: dict[Id, Document]) -> Batch:
    """Documents as the store takes them."""
    some = list(documents.values())
    return Batch(
        list(documents),
        np.array([document["code"] for document in some], dtype=np.uint8).reshape(-1, 3),
        [document["fields"] for document in some],
        np.array([document["vectors"] for document in some], dtype=np.float16).reshape(-1, DIM),
    )


def make_store(folder: Path, documents: dict[Id, Document]) -> None:
    """Create a store of documents that come in batches."""
    items = list(documents.items())
    batches = (batch_of(dict(items[start : start + 7])) for start in range(0, len(items), 7))
    manifest = Manifest(BITS, fingerprint="ab" * 32, dim=DIM, backend="hashing")
    Store.create(folder, manifest, batches)


def some_documents(count: int, first: int = 0) -> dict[Id, Document]:
    """Documents whose ids are strings and integers in turn."""
    return {
        (seed if seed % 2 else f"é{seed}"): document(seed) for seed in range(first, first + count)
    }


def check(store: Store, expected: dict[Id, Document], ids: Iterable[Id] = ()) -> None:
    """Make sure that a store holds these documents and nothing else, whichever way it is asked."""
    snapshot = store.snapshot()
    rows = snapshot.rows_of([*expected, *ids])
    assert (rows >= 0).tolist() == [identity in expected for identity in [*expected, *ids]]
    rows = rows[: len(expected)]
    assert snapshot.documents == len(snapshot.sample(10**6)) == len(expected)
    assert snapshot.ids_of(rows) == list(expected)
    assert snapshot.fields_of(rows) == [document["fields"] for document in expected.values()]
    assert np.array_equal(
        snapshot.codes(rows), [document["code"] for document in expected.values()]
    )
    assert np.array_equal(
        snapshot.vectors(rows), [document["vectors"] for document in expected.values()]
    )
    assert np.array_equal(snapshot.columns(rows).arrays["serials"], snapshot.serials[rows])
    assert all(type(a) is type(b) for a, b in zip(snapshot.ids_of(rows), expected, strict=True))
    assert np.array_equal(snapshot.rows_of_serials(snapshot.serials[rows]), rows)
    assert (np.diff(snapshot.serials.astype(np.int64)) > 0).all()
    assert snapshot.last_serial >= snapshot.serials.max(initial=0)
    for field, value in (
        ("labels", "space"),
        ("year", 1991),
        ("good", True),
        ("note", None),
        ("none", 1),
    ):
        having = snapshot.ids_of(np.flatnonzero(rows_having(snapshot, field, value)))
        assert set(having) == {
            identity
            for identity, document in expected.items()
            if _has(document["fields"], field, value)
        }
        assert snapshot.count(field, value) == len(having)
    years = snapshot.numbers("year")[rows].tolist()
    assert years == [document["fields"]["year"] for document in expected.values()]
    assert np.isnan(snapshot.numbers("good")).all()
    codes = snapshot.codes(rows[:3])
    for backend in ("auto", "flat"):
        found = snapshot.find(codes, most=None, radius=0, backend=backend)
        assert all(row in found.rows[found.queries == place] for place, row in enumerate(rows[:3]))


def _has(fields: dict[str, Any], field: str, value: object) -> bool:
    found = fields.get(field, "lacking")
    return value in found if isinstance(found, list) else found == value


def rows_having(snapshot: Snapshot, field: str, value: object) -> np.ndarray:
    """Which rows have a value in a field; none if no document has such a field."""
    if field not in snapshot.field_names:
        return np.zeros(snapshot.rows, dtype=np.bool_)
    return snapshot.select(conditions({field: value}))

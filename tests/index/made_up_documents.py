"""Documents for the tests of the store, and what it should hold of them, as a plain dictionary."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from parabit.index.store import Batch, Id, Kind, Ragged, Store

BITS = 20  # no multiple of 8
EXTRA = {
    "vectors": Kind("float16", 3),
    "weight": Kind("float64"),
    "bags": Kind([("feature", "<i4"), ("weight", "<f4")], ragged=True),
}
LABELS = ("space", "hockey", "cars")

Document = dict[str, Any]


def document(seed: int) -> Document:
    """A document that a number decides: every kind of field, text that is not ASCII, sometimes no text, no bag."""
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
    bag = np.zeros(int(rng.integers(0, 4)), dtype=EXTRA["bags"].dtype)
    bag["feature"], bag["weight"] = rng.integers(0, 99, len(bag)), rng.random(len(bag))
    vector = rng.standard_normal(3).astype(np.float16)
    return {"code": code, "fields": fields, "vectors": vector, "weight": float(seed), "bags": bag}


def batch_of(documents: dict[Id, Document]) -> Batch:
    """Documents as the store takes them."""
    some = list(documents.values())
    bags = [document["bags"] for document in some]
    offsets = np.cumsum([0, *map(len, bags)])
    return Batch(
        list(documents),
        np.array([document["code"] for document in some], dtype=np.uint8).reshape(-1, 3),
        [document["fields"] for document in some],
        {
            "vectors": np.array([document["vectors"] for document in some], dtype=np.float16).reshape(-1, 3),
            "weight": np.array([document["weight"] for document in some], dtype=np.float64),
            "bags": Ragged(np.concatenate([np.zeros(0, dtype=EXTRA["bags"].dtype), *bags]), offsets),
        },
    )


def derive(codes: np.ndarray) -> dict[str, np.ndarray]:
    """A back end's arrays that tell whether they belong to the codes."""
    return {"sums": codes.astype(np.int64).sum(axis=1), "size": np.array([len(codes)])}


def make_store(folder: Path, documents: dict[Id, Document], each: int = 7, **options: Any) -> None:
    """Create a store of documents that come in batches."""
    items = list(documents.items())
    batches = (batch_of(dict(items[start : start + each])) for start in range(0, len(items), each))
    options = {"fingerprint": "of a model", "meta": {"backend": "flat"}, "extra": EXTRA, "derive": derive, **options}
    Store.create(folder, BITS, batches, **options)


def some_documents(count: int, first: int = 0) -> dict[Id, Document]:
    """Documents whose ids are strings and integers in turn."""
    return {(seed if seed % 2 else f"é{seed}"): document(seed) for seed in range(first, first + count)}


def contents(store: Store) -> dict[Id, Document]:
    """All that a store holds, by way of its segments."""
    found: dict[Id, Document] = {}
    for segment in store.segments:
        alive = np.ones(len(segment), dtype=bool) if segment.alive is None else segment.alive
        rows = np.flatnonzero(alive)
        bags = segment.ragged("bags")
        ids, fields = store.ids_of(segment.first + rows), store.fields_of(segment.first + rows)
        for row, identity, some in zip(rows, ids, fields, strict=True):
            assert identity not in found
            found[identity] = {
                "code": segment.codes[row],
                "fields": some,
                "vectors": segment.extra("vectors")[row],
                "weight": float(segment.extra("weight")[row]),
                "bags": bags.values[bags.offsets[row] : bags.offsets[row + 1]],
            }
    return found


def differing(found: dict[Id, Document], expected: dict[Id, Document]) -> list[Id]:
    """The ids that one of the two has not, or has with another document."""
    return [
        identity
        for identity in {**found, **expected}
        if identity not in found
        or identity not in expected
        or any(not np.array_equal(found[identity][part], expected[identity][part]) for part in expected[identity])
    ]


def check(store: Store, expected: dict[Id, Document], ids: Iterable[Id] = ()) -> None:
    """Make sure that a store holds these documents and nothing else, whichever way it is asked."""
    assert differing(contents(store), expected) == []
    assert store.documents == len(expected)
    if store.base.derived:
        assert store.base.derived["sums"].tolist() == store.base.codes.astype(int).sum(axis=1).tolist()
    wanted = [*expected, *(identity for identity in ids if identity not in expected)]
    rows = store.rows_of(wanted)
    assert (rows >= 0).tolist() == [identity in expected for identity in wanted]
    assert store.ids_of(rows[rows >= 0]) == list(expected)
    assert all(type(a) is type(b) for a, b in zip(store.ids_of(rows[rows >= 0]), expected, strict=True))
    for field, value in (("labels", "space"), ("year", 1991), ("good", True), ("note", None), ("none", 1)):
        masks = [segment.matching(field, value) for segment in store.segments]
        matching = set(store.ids_of(np.flatnonzero(np.concatenate(masks))))
        assert matching == {
            identity for identity, document in expected.items() if _has(document["fields"], field, value)
        }


def _has(fields: dict[str, Any], field: str, value: object) -> bool:
    found = fields.get(field, "lacking")
    return value in found if isinstance(found, list) else found == value

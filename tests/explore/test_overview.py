"""What a collection has: fields, newest documents and typical phrases."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parabit import Document, Index
from parabit.explore import field_types, newest, overview, typical_phrases


@pytest.fixture
def index(news: Path) -> Index:
    return Index.open(news, write=True)


def test_fields_are_counted_without_deleted_documents(
    index: Index, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Counter(document.labels[0] for document in topic_documents)
    year, labels = field_types(index.snapshot())
    assert (year.kind, year.least, year.most) == ("number", 1990, 1993)
    assert (labels.name, labels.kind, dict(labels.values)) == ("labels", "choice", dict(counts))
    assert [count for _, count in labels.values] == sorted(counts.values(), reverse=True)
    index.delete([document.id for document in topic_documents if document.labels == ("topic0",)])
    everything = field_types(index.snapshot())
    with monkeypatch.context() as patch:
        patch.setattr(overview, "_LISTED", 1)
        year, labels = field_types(index.snapshot())
        assert (year.least, len(labels.values), labels.complete) == (1991, 1, False)
    monkeypatch.setattr(overview, "_LOOKED_AT", 100)
    _, labels = field_types(
        index.snapshot()
    )  # values come from a sample of a large index, and counts from all
    assert (labels.values, labels.complete) == (everything[1].values, True)
    index.add([Document("other", topic_documents[0].text, fields={"labels": ["rare"]})])
    _, labels = field_types(index.snapshot())
    assert labels.complete == ("rare" in dict(labels.values))


def test_every_kind_of_field_is_recognised() -> None:
    fields: list[dict[str, Any]] = [
        {
            "n": 1.5,
            "day": "2001-05-03",
            "on": True,
            "kind": "a",
            "name": f"name {row}",
            "mixed": row or "x",
            "deep": {},
        }
        for row in range(6)
    ]
    index = Index.of_codes(
        np.zeros((6, 1), np.uint8), 8, fields=[*fields[:5], {}], ids=list("abcdef")[:6]
    )
    found = {
        field.name: (field.kind, dict(field.values), field.least)
        for field in field_types(index.snapshot())
    }
    assert found == {
        "n": ("number", {}, 1.5),
        "day": ("date", {}, "2001-05-03"),
        "on": ("boolean", {True: 5}, None),
        "kind": ("choice", {"a": 5}, None),
        "name": ("string", {}, None),
        "mixed": ("string", {}, None),
    }
    assert [one.id for one in newest(index.snapshot(), 2)] == ["f", "e"]
    assert [one.id for one in newest(index.snapshot(), 9, "day")] == list("abcde")


def test_typical_phrases_are_pairs_of_words_that_stand_together_and_no_names() -> None:
    texts = [
        "A space telescope by Ada Moore.",
        "The space telescope, again.",
        "No space telescope? Ada Moore",
    ]
    texts.append("Ada Moore")
    index = Index.of_codes(np.zeros((4, 1), np.uint8), 8, fields=[{"text": text} for text in texts])
    assert typical_phrases(index.snapshot()) == ["space telescope"]

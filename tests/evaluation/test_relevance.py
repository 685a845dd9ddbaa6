"""Which documents are evaluated, with which labels, and how relevant they are to each other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from parabit.choices import RELEVANCE
from parabit.corpus import Document, as_corpus
from parabit.errors import EvaluationError
from parabit.evaluation import Relevance
from parabit.evaluation.relevance import Labelled, labelled, relevance_of

NAMES = st.sampled_from(["orbit", "goal", "verse", "crude", 3, -7, 2**70, b"orbit"])
label_lists = st.lists(st.sets(NAMES, max_size=4), min_size=1, max_size=8)
LABELS = ["orbit", "orbit", "goal", "goal"]


def by_sets(
    queries: Sequence[set[Any]], documents: Sequence[set[Any]], kind: str
) -> list[list[float]]:
    def of(mine: set[Any], theirs: set[Any]) -> float:
        common = len(mine & theirs)
        return float(common > 0) if kind == "shared" else common / max(1, len(mine | theirs))

    return [[of(mine, theirs) for theirs in documents] for mine in queries]


def dense(relevance: Relevance, block: slice | None = None) -> NDArray[np.float64]:
    return np.asarray(relevance.of(block or slice(0, relevance.queries)).toarray())


@given(label_lists, label_lists, st.sampled_from(list(RELEVANCE)))
def test_relevance_is_what_the_sets_of_labels_say(
    labels: list[set[Any]], searched: list[set[Any]], kind: str
) -> None:
    expected = by_sets(labels, labels, kind)
    for document, row in enumerate(expected):
        row[document] = 0  # itself
    assert dense(Relevance(labels, kind)).tolist() == expected
    relevance = Relevance(
        labels, kind, searched
    )  # a collection may have labels that the queries lack
    assert (relevance.queries, relevance.documents, relevance.itself) == (
        len(labels),
        len(searched),
        False,
    )
    assert dense(relevance).tolist() == by_sets(labels, searched, kind)


def test_a_label_that_is_said_twice_counts_once() -> None:
    labels = [["orbit", "orbit", "goal"], ["orbit"]]
    assert dense(Relevance(labels, "overlap"))[0, 1] == 1 / 2


def test_there_may_be_no_labels_and_no_queries() -> None:
    assert Relevance([(), [], frozenset()]).of(slice(0, 3)).nnz == 0
    assert Relevance([], searched=["orbit"]).queries == 0


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        tuple(LABELS),
        [7, 7, -2, -2],
        np.array([True, True, False, False]),
        np.array(LABELS),
        np.array(LABELS, dtype=object),
        np.array(LABELS, dtype="S"),
        np.array(LABELS, dtype=np.dtypes.StringDType()),
        np.array([2**63, 2**63, 5, 5], dtype=np.uint64),
        list(np.array([4, 4, 9, 9])),
        [
            np.array(["orbit", "moon"]),
            np.array(["orbit"]),
            np.array(["goal"]),
            np.array(["goal", "puck"]),
        ],
        [("orbit",), {"orbit", "moon"}, ["goal"], frozenset({"goal"})],
        ["orbit", {"orbit", "moon"}, "goal", ["puck", "goal"]],
    ],
)
def test_labels_may_be_integers_or_strings_of_any_kind(labels: Any) -> None:
    assert dense(Relevance(labels)).tolist() == dense(Relevance([0, 0, 1, 1])).tolist()


def with_labels(labels: Sequence[tuple[str, ...]], least: int = 1) -> Labelled:
    documents = [
        Document(str(number), f"text {number}", mine) for number, mine in enumerate(labels)
    ]
    return labelled(as_corpus(documents), "news.jsonl", least)


@given(
    st.lists(st.lists(st.sampled_from("abcd"), max_size=4).map(tuple), max_size=30),
    st.integers(1, 4),
)
def test_what_is_kept_has_a_common_label_and_what_is_left_out_none(
    labels: list[tuple[str, ...]], least: int
) -> None:
    common = {label for label in "abcd" if sum(label in mine for mine in labels) >= least}
    if not common:
        with pytest.raises(EvaluationError):
            with_labels(labels, least)
        return
    found = with_labels(labels, least)
    kept = [tuple(label for label in mine if label in common) for mine in labels]
    assert found.labels == [mine for mine in kept if mine]
    assert found.unlabelled == sum(not mine for mine in kept)
    documents = list(found.documents)
    assert [document.labels for document in documents] == found.labels
    assert [document.id for document in documents] == [
        str(place) for place, mine in enumerate(kept) if mine
    ]
    assert [document.text for document in documents] == [
        f"text {document.id}" for document in documents
    ]


def test_the_documents_can_be_read_again_and_tell_how_far() -> None:
    found = with_labels([("a",), (), ("b",), ("a",)])
    assert list(found.documents) == list(found.documents)
    reading = iter(found.documents)
    next(reading)
    assert found.documents.share_read == 0.25
    next(reading)
    assert found.documents.share_read == 0.75  # the one without a label is passed


def test_graded_relevance_is_that_of_the_newswire_and_abstract_data_sets() -> None:
    for corpus in ("reuters21578/test", "rcv1", "arxiv/train"):
        assert relevance_of(corpus) == "overlap"
    for corpus in ("20newsgroups/test", "wikipedia/test", "./rcv1/test", "rcv1.jsonl", "-"):
        assert relevance_of(corpus) == "shared"

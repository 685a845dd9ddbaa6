"""Which documents of a corpus are evaluated, and with which labels."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabit.corpus import Document, as_corpus
from parabit.errors import EvaluationError
from parabit.evaluation.relevance import Labelled, labelled, relevance_of

LABELS = st.lists(st.lists(st.sampled_from("abcd"), max_size=4).map(tuple), max_size=30)


def of(labels: Sequence[tuple[str, ...]], least: int = 1) -> Labelled:
    documents = [Document(str(number), f"text {number}", mine) for number, mine in enumerate(labels)]
    return labelled(as_corpus(documents), "news.jsonl", least)


@given(LABELS, st.integers(1, 4))
def test_what_is_left_has_a_common_label_and_what_is_left_out_has_none(
    labels: list[tuple[str, ...]], least: int
) -> None:
    common = {label for label in "abcd" if sum(label in mine for mine in labels) >= least}
    if not common:
        with pytest.raises(EvaluationError):
            of(labels, least)
        return
    found = of(labels, least)
    kept = [tuple(label for label in mine if label in common) for mine in labels]
    assert found.labels == [mine for mine in kept if mine]
    assert found.unlabelled == sum(not mine for mine in kept)
    documents = list(found.documents)
    assert [document.labels for document in documents] == found.labels
    assert [document.id for document in documents] == [str(place) for place, mine in enumerate(kept) if mine]
    assert [document.text for document in documents] == [f"text {document.id}" for document in documents]


def test_the_documents_can_be_read_again_and_tell_how_far() -> None:
    found = of([("a",), (), ("b",), ("a",)])
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

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


def test_a_label_that_a_document_has_twice_is_that_of_one_document() -> None:
    with pytest.raises(EvaluationError, match=r"no label of news.jsonl has 2 documents.* has 1; lower --least"):
        of([("a", "a"), ("b",)], least=2)


def test_nothing_and_nothing_with_a_label_are_told_apart() -> None:
    with pytest.raises(EvaluationError, match="news.jsonl has no documents"):
        of([])
    with pytest.raises(EvaluationError, match="no document of news.jsonl has a label.*--label-field.*sub-folders"):
        of([(), ()])


def test_the_documents_can_be_read_again_and_tell_how_far() -> None:
    found = of([("a",), (), ("b",), ("a",)])
    assert list(found.documents) == list(found.documents)
    reading = iter(found.documents)
    next(reading)
    assert found.documents.share_read == 0.25
    next(reading)
    assert found.documents.share_read == 0.75  # the one without a label is passed


@pytest.mark.parametrize(
    ("corpus", "kind"),
    [
        ("reuters21578/test", "overlap"),
        ("rcv1", "overlap"),
        ("arxiv/train", "overlap"),
        ("20newsgroups/test", "shared"),
        ("enwiki/test", "shared"),
        ("wikipedia/test", "shared"),
        ("./rcv1/test", "shared"),  # a path
        ("rcv1.jsonl", "shared"),
        ("-", "shared"),
    ],
)
def test_relevance_by_degrees_is_that_of_the_newswire_and_abstract_data_sets(corpus: str, kind: str) -> None:
    assert relevance_of(corpus) == kind

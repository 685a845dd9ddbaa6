from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabit.corpus import Corpus, Document, as_corpus
from parabit.errors import CorpusError

TEXTS = ["first text", "second text", ""]


def test_strings_get_their_position_as_id() -> None:
    assert list(as_corpus(TEXTS)) == [Document(str(place), text) for place, text in enumerate(TEXTS)]


def test_documents_are_taken_as_they_are() -> None:
    documents = [Document("a", "text", ("label",), {"year": 1993})]
    assert list(as_corpus(documents)) == documents


def test_a_corpus_can_be_read_again() -> None:
    class Anew:
        def __iter__(self) -> Iterator[str]:
            return iter(TEXTS)

    corpus = as_corpus(Anew())
    assert list(corpus) == list(corpus)
    assert len(list(corpus)) == len(TEXTS)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ("a bare string", "single str"),
        (b"bytes", "single bytes"),
        ({"text": "a mapping"}, "single dict"),
        (Document("1", "one document"), "single Document"),
        ((text for text in TEXTS), "one-shot generator"),
        (iter(TEXTS), "one-shot list_iterator"),
        (7, "must be iterable"),
    ],
)
def test_what_is_no_corpus_is_refused_in_words(wrong: object, word: str) -> None:
    with pytest.raises(CorpusError, match=word):
        as_corpus(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 7, b"bytes", ["nested"]])
def test_a_document_of_the_wrong_type_is_named_by_its_place(wrong: object) -> None:
    with pytest.raises(CorpusError, match="document 1 is a"):
        list(as_corpus(["text", wrong]))  # type: ignore[list-item]


@given(st.lists(st.text(max_size=20), max_size=30), st.integers(1, 40), st.integers(1, 5))
def test_batches_hold_every_document_once_and_keep_their_bounds(texts: list[str], characters: int, most: int) -> None:
    batches = list(as_corpus(texts).batches(characters, most))
    assert [document.text for batch in batches for document in batch] == texts
    for batch in batches:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or sum(len(document.text) for document in batch) <= characters


def test_a_document_longer_than_a_batch_comes_whole() -> None:
    long = "word " * 1000
    assert [[document.text for document in batch] for batch in as_corpus(["a", long, "b"]).batches(100)] == [
        ["a"],
        [long],
        ["b"],
    ]


def test_the_share_read_grows_to_one() -> None:
    corpus = as_corpus(TEXTS)
    assert isinstance(corpus, Corpus)
    shares = [corpus.share_read for _ in corpus]
    assert shares == [1 / 3, 2 / 3, 1.0]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (Document(3, "text"), "document 0 has a int as its id"),  # type: ignore[arg-type]
        (Document("a", None), "document 0 has a NoneType as its text"),  # type: ignore[arg-type]
        (Document("\ud800", "text"), "document 0 has half of a surrogate pair in its id"),
        ("\ud800", "document 0 has half of a surrogate pair in its text"),
    ],
)
def test_what_is_wrong_in_a_document_is_told(document: Document | str, words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        list(as_corpus([document]))

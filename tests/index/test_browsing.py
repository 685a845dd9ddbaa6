"""Looking around in an index: what is like a document, near-duplicates, and passages."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabit import Document, Index, ParabitError, ParagraphVectors
from parabit.errors import CodesError
from parabit.index import marked
from parabit.index.retrieval import passage
from parabit.text import Tokenizer, find_duplicates
from topics import make_topics


@pytest.fixture
def index(news: Path) -> Index:
    return Index.open(news, write=True)


@pytest.mark.parametrize("rank", ["hamming", "asymmetric", "words", "hybrid"])
def test_like_a_document_is_what_its_text_would_find(
    index: Index, topic_documents: list[Document], rank: str
) -> None:
    for document in (topic_documents[place] for place in (0, 5, 9)):
        like, inside = (
            index.like(document.id, k=8, rank=rank),
            index.like(document.id, radius=4, rank=rank),
        )
        some = index.like(document.id, k=3, rank=rank, where={"labels": "topic1"})
        assert document.id not in [*like.ids[0], *inside.ids[0], *some.ids[0]]
        if (
            rank == "hybrid"
        ):  # BM25 is divided by that of the best document, which is the document itself
            assert like.ids == index.like(document.id, k=8).ids
            continue
        index.delete([document.id])
        assert like.ids == index.search(document.text, k=8, rank=rank).ids
        assert inside.ids == index.search(document.text, radius=4, rank=rank).ids
        assert (
            some.ids == index.search(document.text, k=3, rank=rank, where={"labels": "topic1"}).ids
        )


def test_a_document_whose_code_others_share_is_left_out_alone() -> None:
    index = Index.of_codes(np.zeros((5, 2), dtype=np.uint8), 16)
    assert index.like([3]).ids == [[0, 1, 2, 4]]
    assert index.like([3], radius=0).ids == [[0, 1, 2, 4]]
    assert index.like([0], k=2).ids == [[1, 2]]
    with pytest.raises(CodesError, match="needs the text"):
        index.like([3], rank="asymmetric")


def test_without_texts_codes_are_compared(
    topic_model: Path, topic_documents: list[Document]
) -> None:
    index = Index.build(topic_documents, model=ParagraphVectors.load(topic_model), text=False)
    codes = index.stored(["post3"])[0].code[None]
    assert (
        index.like(["post3"], k=5).ids[0]
        == [one for one in index.search(codes, k=6).ids[0] if one != "post3"][:5]
    )
    assert index.like(["post3"]).word_queries[0].words == {}


def test_an_index_has_the_groups_of_its_documents_and_says_how_far_their_codes_are_apart(
    topic_model: Path,
) -> None:
    texts = [text.rsplit(" ", cut)[0] for text in make_topics(80).texts for cut in (1, 5, 15)]
    with Index.build(texts, model=ParagraphVectors.load(topic_model)) as index:
        index.delete(["7", "30"])
        index.add([Document("new", texts[0])])
        left = [Document(str(n), text) for n, text in enumerate(texts) if n not in (7, 30)]
        groups = index.duplicates("longest")
        expected = find_duplicates([*left, Document("new", texts[0])], "longest")
        assert len(groups) > 20
        for group, same in zip(groups, expected, strict=True):
            ids = [group.kept, *(copy.id for copy in group.copies)]
            assert (ids, group.title) == (
                [same.kept, *(copy.id for copy in same.copies)],
                same.title,
            )
            kept, *codes = (stored.code for stored in index.stored(ids))
            assert [copy.bits for copy in group.copies] == [
                int(np.bitwise_count(kept ^ code).sum()) for code in codes
            ]
    with pytest.raises(
        ParabitError,
        match="found by their texts, which this index does not keep; build it with them",
    ):
        Index.of_codes(np.zeros((2, 2), dtype=np.uint8), bits=16).duplicates()


WORDS = st.lists(
    st.sampled_from(
        ["hubble", "Telescope", "été", "naïve", "x", "İstanbul", "straße", "2hubble3", "İ", "中文"]
    )
)


@given(
    words=WORDS,
    between=st.sampled_from([" ", ", ", "\n\n", " 7 ", "-"]),
    wanted=st.sets(st.sampled_from(["hubble", "été", "x"])),
    pattern=st.sampled_from([None, "[a-z]+", r"\w+", r"\p{Han}"]),
)
def test_marks_are_the_tokenizers_words(
    words: list[str], between: str, wanted: set[str], pattern: str | None
) -> None:
    stop_words: frozenset[str] = frozenset()
    plain = Tokenizer(stop_words=stop_words)
    tokenizer = (
        plain
        if pattern is None
        else Tokenizer(pattern=pattern, min_length=1, stop_words=stop_words)
    )
    text = between.join(words)
    pieces = marked(tokenizer, text, wanted)
    assert "".join(piece.text for piece in pieces) == text
    marks = [piece.text.lower() for piece in pieces if piece.mark]
    assert marks == [word for word in tokenizer.words(text) if word in wanted]


def test_a_passage_is_the_one_with_most_different_words() -> None:
    parts = [
        "hubble hubble hubble",
        "lorem " * 99,
        "a telescope, hubble",
        "lorem " * 99,
        "telescope",
    ]
    pieces = passage(Tokenizer(), " ".join(parts), ["hubble", "telescope"], 100)
    assert [piece.text for piece in pieces if piece.mark] == ["telescope", "hubble"]


@given(
    before=st.integers(0, 3000),
    after=st.integers(0, 3000),
    length=st.integers(40, 400),
    found=st.booleans(),
)
def test_a_passage_has_the_words_and_is_no_longer_than_asked(
    before: int, after: int, length: int, found: bool
) -> None:
    text = "lorem " * before + ("hubble telescope " if found else "") + "ipsum " * after
    pieces = passage(Tokenizer(), text, ["hubble", "telescope"], length)
    shown = "".join(piece.text for piece in pieces)
    assert len(shown) <= length + 3
    assert shown.strip("… ") in text
    if found and 6 * before + 17 < 20_000:
        assert [piece.text for piece in pieces if piece.mark] == ["hubble", "telescope"]

"""Looking around in an index: documents, labels, what is like a document, passages and the map."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabit import Document, Index, ParagraphVectors
from parabit.errors import CodesError, IndexFolderError
from parabit.explore import (
    Map,
    draw_map,
    embed_codes,
    field_types,
    keep_map,
    kept_map,
    newest,
    overview,
    typical_phrases,
)
from parabit.index import marked, passage
from parabit.text import Tokenizer


@pytest.fixture
def index(news: Path) -> Index:
    return Index.open(news, write=True)


def test_fields_are_counted_without_deleted_documents(
    index: Index, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Counter(document.labels[0] for document in topic_documents)
    year, labels = field_types(index.snapshot())
    assert (year.kind, year.least, year.most) == ("number", 1990, 1993)
    assert (labels.name, labels.kind, labels.values) == ("labels", "choice", dict(counts))
    assert list(labels.values.values()) == sorted(counts.values(), reverse=True)
    index.delete([document.id for document in topic_documents if document.labels == ("topic0",)])
    everything = field_types(index.snapshot())
    with monkeypatch.context() as patch:
        patch.setattr(overview, "_LISTED", 1)
        year, labels = field_types(index.snapshot())
        assert (year.least, len(labels.values), labels.complete) == (1991, 1, False)
    monkeypatch.setattr(overview, "_LOOKED_AT", 100)
    _, labels = field_types(index.snapshot())  # values come from a sample of a large index, and counts from all
    assert (labels.values, labels.complete) == (everything[1].values, False)


def test_every_kind_of_field_is_recognised() -> None:
    fields: list[dict[str, Any]] = [
        {"n": 1.5, "day": "2001-05-03", "on": True, "kind": "a", "name": f"name {row}", "mixed": row or "x", "deep": {}}
        for row in range(6)
    ]
    index = Index.of_codes(np.zeros((6, 1), np.uint8), 8, fields=[*fields[:5], {}], ids=list("abcdef")[:6])
    found = {field.name: (field.kind, field.values, field.least) for field in field_types(index.snapshot())}
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
        "Ada Moore",
    ]
    index = Index.of_codes(np.zeros((4, 1), np.uint8), 8, fields=[{"text": text} for text in texts])
    assert typical_phrases(index.snapshot()) == ["space telescope"]


@pytest.mark.parametrize("rank", ["hamming", "asymmetric", "words", "hybrid"])
def test_what_is_like_a_document_is_what_its_text_would_find_without_it(
    index: Index, topic_documents: list[Document], rank: str
) -> None:
    for document in (topic_documents[place] for place in (0, 5, 9)):
        like, inside = index.like(document.id, k=8, rank=rank), index.like(document.id, radius=4, rank=rank)
        some = index.like(document.id, k=3, rank=rank, where={"labels": "topic1"})
        assert document.id not in [*like.ids[0], *inside.ids[0], *some.ids[0]]
        if rank == "hybrid":  # BM25 is divided by that of the best document, which is the document itself
            assert like.ids == index.like(document.id, k=8).ids
            continue
        index.delete([document.id])
        assert like.ids == index.search(document.text, k=8, rank=rank).ids
        assert inside.ids == index.search(document.text, radius=4, rank=rank).ids
        assert some.ids == index.search(document.text, k=3, rank=rank, where={"labels": "topic1"}).ids


def test_a_document_whose_code_others_share_is_left_out_alone() -> None:
    index = Index.of_codes(np.zeros((5, 2), dtype=np.uint8), 16)
    assert index.like([3]).ids == [[0, 1, 2, 4]]
    assert index.like([3], radius=0).ids == [[0, 1, 2, 4]]
    assert index.like([0], k=2).ids == [[1, 2]]
    with pytest.raises(CodesError, match="needs the text"):
        index.like([3], rank="asymmetric")


def test_without_texts_codes_are_compared(topic_model: Path, topic_documents: list[Document]) -> None:
    index = Index.build(topic_documents, model=ParagraphVectors.load(topic_model), text=False)
    codes = index.stored(["post3"])[0].code[None]
    assert index.like(["post3"], k=5).ids[0] == [one for one in index.search(codes, k=6).ids[0] if one != "post3"][:5]
    assert index.like(["post3"]).word_queries[0].words == {}


WORDS = st.lists(
    st.sampled_from(["hubble", "Telescope", "été", "naïve", "x", "İstanbul", "straße", "2hubble3", "İ", "中文"])
)


@given(
    words=WORDS,
    between=st.sampled_from([" ", ", ", "\n\n", " 7 ", "-"]),
    wanted=st.sets(st.sampled_from(["hubble", "été", "x"])),
    pattern=st.sampled_from([None, "[a-z]+", r"\w+", r"\p{Han}"]),
)
def test_marks_are_the_tokenizers_words(words: list[str], between: str, wanted: set[str], pattern: str | None) -> None:
    stop_words: frozenset[str] = frozenset()
    plain = Tokenizer(stop_words=stop_words)
    tokenizer = plain if pattern is None else Tokenizer(pattern=pattern, min_length=1, stop_words=stop_words)
    text = between.join(words)
    pieces = marked(tokenizer, text, wanted)
    assert "".join(piece.text for piece in pieces) == text
    marks = [piece.text.lower() for piece in pieces if piece.mark]
    assert marks == [word for word in tokenizer.words(text) if word in wanted]


def test_a_passage_is_the_one_with_most_different_words() -> None:
    parts = ["hubble hubble hubble", "lorem " * 99, "a telescope, hubble", "lorem " * 99, "telescope"]
    pieces = passage(Tokenizer(), " ".join(parts), ["hubble", "telescope"], 100)
    assert [piece.text for piece in pieces if piece.mark] == ["telescope", "hubble"]


@given(before=st.integers(0, 3000), after=st.integers(0, 3000), length=st.integers(40, 400), found=st.booleans())
def test_a_passage_has_the_words_and_is_no_longer_than_asked(before: int, after: int, length: int, found: bool) -> None:
    text = "lorem " * before + ("hubble telescope " if found else "") + "ipsum " * after
    pieces = passage(Tokenizer(), text, ["hubble", "telescope"], length)
    shown = "".join(piece.text for piece in pieces)
    assert len(shown) <= length + 3
    assert shown.strip("… ") in text
    if found and 6 * before + 17 < 20_000:
        assert [piece.text for piece in pieces if piece.mark] == ["hubble", "telescope"]


def test_the_map_lays_codes_where_they_belong(index: Index) -> None:
    assert kept_map(index) is None
    drawn = draw_map(index)
    labels = np.array([index.stored([identity])[0].fields["labels"][0] for identity in drawn.ids])
    points = drawn.points.astype(float)
    inside, outside = [], []
    for place in range(0, 300, 10):
        away = np.hypot(*(points - points[place]).T)
        inside.append(np.median(away[labels == labels[place]]))
        outside.append(np.median(away[labels != labels[place]]))
    assert np.mean(inside) < 0.6 * np.mean(outside)  # documents on one topic lie together
    assert np.array_equal(drawn.place(drawn.codes[:1]), drawn.points[:1])
    keep_map(index, drawn)
    kept = kept_map(index)
    assert kept is not None
    assert kept.ids == drawn.ids
    assert np.array_equal(kept.points, drawn.points)
    assert np.array_equal(draw_map(index).points, drawn.points)


def test_a_map_that_does_not_show_the_index_is_not_given(
    index: Index, topic_documents: list[Document], news: Path
) -> None:
    ids = [document.id for document in topic_documents]
    keep_map(index, draw_map(index))
    index.delete(ids[:50])
    assert kept_map(index) is not None
    index.delete(ids[50:80])
    assert kept_map(index) is None
    index.close()
    codes = np.random.default_rng(0).integers(0, 256, (300, 3), dtype=np.uint8) & np.uint8(0xF0)
    with Index.of_codes(codes, 20, news, ids=ids, overwrite=True) as other:  # the map is no stranger there
        assert kept_map(other) is None
    path = news / "map.safetensors"
    for content in (b"", b"{}", path.read_bytes()[:-9]):
        path.write_bytes(content)
        assert Map.load(path) is None
    with pytest.raises(IndexFolderError, match="a map needs 4 documents"):
        draw_map(Index.of_codes(codes[:3], 20))


def test_few_codes_and_equal_ones_are_laid_out_and_what_cannot_be_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (31, 8), dtype=np.uint8)
    for some in (codes[:4], codes[:5], codes[:7], codes, np.zeros((12, 4), dtype=np.uint8)):
        points = embed_codes(some)
        assert points.shape == (len(some), 2)
        assert np.isfinite(points).all()
    assert not np.array_equal(embed_codes(codes, seed=3), embed_codes(codes, seed=4))
    wrong: Any
    for wrong, words in ((codes[:3], "4 documents or more"), (codes.astype(np.int64), "uint8")):
        with pytest.raises(CodesError, match=words):
            embed_codes(wrong)
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    with pytest.raises(CodesError, match=r"openTSNE is not installed.*parabit\[plot\]"):
        embed_codes(codes)

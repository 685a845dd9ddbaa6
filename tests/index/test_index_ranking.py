"""Every rank's scores are those of a plain computation in numpy, wherever a document lies."""

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from index_models import TEXTS, UNKNOWN, binary, documents, queries, real_binary
from numpy.typing import NDArray

from parabit import Document, ParabitError, ParagraphVectors
from parabit.choices import RANKS
from parabit.codes import hamming, unpack
from parabit.index import Hits, Index, ranking
from parabit.index.documents import halves
from parabit.index.ranking import CODE_WEIGHT

BUILT, ALL = 200, 260
QUERIES = queries(12)
BY_CODE = ["asymmetric", "cosine"]


@pytest.fixture(scope="module", params=["built", "with a tail", "updated"])
def index(request: pytest.FixtureRequest) -> Index:
    """260 documents: all built at once, or 60 of them added later, or updated after compacting."""
    options: dict[str, Any] = {"vectors": True, "language": None}
    if request.param == "built":
        return Index.build(documents(0, ALL), model=binary(), **options)
    index = Index.build(documents(0, BUILT), model=binary(), **options)
    index.add(documents(BUILT, ALL))
    if request.param == "updated":
        index.search(
            QUERIES[:1]
        )  # commits the words: BM25 counts deleted documents until all of a commit are deleted
        index.compact()
        index.put(documents(BUILT, ALL))
    return index


def unit(rows: NDArray[Any]) -> NDArray[np.float64]:
    rows = rows.astype(np.float64)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))


def asymmetric(model: ParagraphVectors, asked: list[str], texts: list[str]) -> NDArray[np.float64]:
    activations = model.infer(asked).activations
    assert activations is not None
    assert model.bits is not None
    signs = 2.0 * unpack(model.transform(texts), model.bits) - 1
    return unit(activations) @ unit(signs).T


def cosine(model: ParagraphVectors, asked: list[str], texts: list[str]) -> NDArray[np.float64]:
    stored = unit(model.infer(texts).vectors).astype(np.float32).astype(np.float16)
    return unit(model.infer(asked).vectors) @ unit(stored).T


def bm25(
    _: ParagraphVectors, asked: list[str], texts: list[str], among: slice = slice(None)
) -> NDArray[np.float64]:
    """BM25 of words in some of the texts."""
    tokens = [text.split() for text in texts]
    lengths = np.array([len(words) for words in tokens])
    norms = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
    found = [Counter(words) for words in tokens]
    having = Counter(word for words in tokens for word in set(words))

    def score(word: str, times: int) -> NDArray[np.float64]:
        counts = np.array([count[word] for count in found])
        idf = np.log(1 + (len(texts) - having[word] + 0.5) / (having[word] + 0.5))
        return np.asarray((1 + np.log(times)) * idf * 2.2 * counts / (counts + norms))

    rows = []
    for query in asked:
        words = Counter(word for word in query.split() if having[word])
        rows.append(np.sum([score(word, times) for word, times in words.items()], axis=0)[among])
    return np.array(rows)


def hybrid(
    model: ParagraphVectors, asked: list[str], texts: list[str], **options: Any
) -> NDArray[np.float64]:
    by_words, by_code = bm25(model, asked, texts, **options), asymmetric(model, asked, texts)
    among = options.get("among", slice(None))
    return np.asarray(
        by_words / by_words.max(axis=1, keepdims=True) + CODE_WEIGHT * by_code[:, among]
    )


def equal_bits(model: ParagraphVectors, asked: list[str], texts: list[str]) -> NDArray[np.float64]:
    return 1 - hamming(model.transform(asked), model.transform(texts)) / 20


Plain = Callable[..., NDArray[np.float64]]
PLAIN: dict[str, Plain] = {
    "hamming": equal_bits,
    "asymmetric": asymmetric,
    "cosine": cosine,
    "words": bm25,
}
PLAIN["hybrid"] = hybrid


def placed(ids: list[Any]) -> list[int]:
    """The places of documents among the texts."""
    return [int(str(identity).removeprefix("d")) for identity in ids]


def check_order(hits: Hits) -> None:
    for scores, distances, ids in zip(hits.scores, hits.distances, hits.ids, strict=True):
        rows = hits._snapshot.rows_of(ids).tolist()
        keys = list(zip((-scores).tolist(), distances.tolist(), rows, strict=True))
        assert keys == sorted(keys)


def check_scores(found: NDArray[np.float32], expected: NDArray[np.float64]) -> None:
    """A number in the middle between two of 16 bits may be rounded to either; that is rare, and small."""
    away = np.abs(found - expected) / np.maximum(1, np.abs(expected))
    assert away.max() < 2e-4
    assert (away < 2e-6).mean() > 0.8


def check(hits: Hits, expected: NDArray[np.float64]) -> None:
    """Check the order of hits, and their scores against those of all documents for each query."""
    check_order(hits)
    for ids, scores, plain in zip(hits.ids, hits.scores, expected, strict=True):
        check_scores(scores, plain[placed(ids)])


@pytest.mark.parametrize("rank", PLAIN)
def test_scores_are_those_of_a_plain_computation(index: Index, rank: str) -> None:
    assert index.ranks == RANKS
    hits = index.search(QUERIES, k=ALL, rank=rank)
    expected = PLAIN[rank](binary(), QUERIES, TEXTS[:ALL])
    check(hits, expected)
    for ids, plain in zip(hits.ids, expected, strict=True):
        found = np.flatnonzero(plain > 0) if rank == "words" else np.arange(ALL)
        assert sorted(placed(ids)) == found.tolist()


@pytest.mark.parametrize("rank", RANKS)
def test_a_query_scores_the_same_alone_and_in_a_batch(index: Index, rank: str) -> None:
    batch = index.search(QUERIES, k=30, rank=rank)
    for place, query in enumerate(QUERIES):
        alone = index.search([query], k=30, rank=rank)
        assert alone.ids[0] == batch.ids[place]
        assert alone.scores[0].tobytes() == batch.scores[place].tobytes()


def test_hybrid_ranks_the_best_by_words_and_the_nearest_by_code(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "CANDIDATES", 8)
    by_words = index.search(QUERIES, k=8, rank="words").ids
    near = index.search(QUERIES, k=8, rank="hamming").ids
    hits = index.search(QUERIES, k=8, rank="hybrid").ids
    plain_scores = hybrid(binary(), QUERIES, TEXTS[:ALL])
    for plain, *found in zip(plain_scores, by_words, near, hits, strict=True):
        some = sorted({*placed(found[0]), *placed(found[1])}, key=lambda place: -plain[place])
        assert placed(found[2]) == some[:8]
        assert len(some) > 8


@pytest.mark.parametrize(
    ("rank", "limits"),
    [*product([*BY_CODE, "hybrid", "words"], [{"radius": 6}]), *product(BY_CODE, [{"k": 25}])],
)
def test_only_the_nearest_by_code_are_ranked(
    index: Index, rank: str, limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def same_documents(nearest: Hits, hits: Hits) -> bool:
        both = zip(nearest.ids, matching, strict=True)
        return [set(ids) for ids in hits.ids] == [set(ids) & all for ids, all in both]

    matching = [
        set(ids) for ids in index.search(QUERIES, k=ALL, rank=rank).ids
    ]  # of rank words: those with a word
    nearest = index.search(QUERIES, rank="hamming", **limits)
    monkeypatch.setattr(ranking, "_RANKED", 4)  # as many are ranked as are asked for at least
    hits = index.search(QUERIES, rank=rank, **limits)
    assert 0 < sum(map(len, nearest.ids)) < ALL * len(QUERIES)
    assert same_documents(nearest, hits)
    assert hits.ids != nearest.ids
    check_order(hits)
    monkeypatch.setattr(ranking, "_RANKED", 25)
    best = index.search(QUERIES, rank=rank, **{**limits, "k": 3})
    assert best.ids == [ids[:3] for ids in hits.ids]


@pytest.mark.parametrize("rank", ["hamming", *BY_CODE, "words"])
def test_a_filter_comes_before_the_ranking(index: Index, rank: str) -> None:
    everything = index.search(QUERIES, k=ALL, rank=rank)
    odd = [[identity for identity in ids if placed([identity])[0] % 2] for ids in everything.ids]
    hits = index.search(QUERIES, k=10, rank=rank, where={"odd": True})
    assert hits.ids == [ids[:10] for ids in odd]


def test_the_best_by_words_is_that_of_the_documents_that_a_filter_lets_through(
    index: Index,
) -> None:
    plain = hybrid(binary(), QUERIES, TEXTS[:ALL], among=slice(1, None, 2))
    hits = index.search(QUERIES, k=ALL, where={"odd": True})
    for ids, scores, expected in zip(hits.ids, hits.scores, plain, strict=True):
        check_scores(scores, expected[np.array(placed(ids)) // 2])


def test_a_score_says_what_it_is_made_of(index: Index) -> None:
    words = QUERIES[0].split()[:4]
    hits = index.search(" ".join(words), k=20)
    for hit in hits[0]:
        assert set(hit.why.words) == set(words) & set(hit.text.split())
        assert sum(hit.why.words.values()) + hit.why.code == pytest.approx(hit.score, abs=1e-3)
        assert (hit.why.distance, hit.why.bits) == (hit.distance, 20)
        marked = [piece.text for piece in hit.snippet if piece.mark]
        assert set(marked) == set(hit.why.words)
    by_code = index.search(" ".join(words), rank="asymmetric")[0][0]
    assert by_code.why.words == {}
    assert by_code.why.code == pytest.approx(by_code.score, abs=1e-4)


@pytest.mark.parametrize("rank", RANKS)
def test_equal_documents_come_in_the_order_of_their_rows(rank: str) -> None:
    copies = [Document(f"{name}", TEXTS[0]) for name in "hgfedcba"]
    index = Index.build([*copies[:5], Document("other", TEXTS[1])], model=binary(), vectors=True)
    index.add(copies[5:])
    [ids] = index.search([TEXTS[0]], k=20, rank=rank).ids
    assert ids == [*"hgfedcba", "other"]


@pytest.mark.parametrize("rank", RANKS)
def test_queries_without_a_known_word_have_no_hits_and_disturb_no_others(
    index: Index, rank: str
) -> None:
    hits = index.search([UNKNOWN, QUERIES[0], "", QUERIES[1], "123 !?"], k=5, rank=rank)
    assert hits.known.tolist() == [False, True, False, True, False]
    expected = index.search(QUERIES[:2], k=5, rank=rank)
    assert hits.ids == [[], expected.ids[0], [], expected.ids[1], []]
    assert hits.scores[3].tobytes() == expected.scores[1].tobytes()
    for k in (None, 3):
        nothing = index.search([UNKNOWN, "   ", "the"], k=k, radius=20, rank=rank)
        assert (nothing.ids, list(nothing)) == ([[]] * 3, [[]] * 3)


def test_the_real_binary_model_ranks_by_its_own_real_vectors() -> None:
    model = real_binary()
    index = Index.build(documents(0, BUILT), model=model, vectors=True, language=None)
    index.add(documents(BUILT, ALL))
    near = index.search(QUERIES, radius=2, rank="cosine")
    assert [set(ids) for ids in near.ids] == [
        set(ids) for ids in index.search(QUERIES, radius=2, rank="hamming").ids
    ]
    for rank in ("cosine", "asymmetric", "hybrid"):
        check(index.search(QUERIES, k=ALL, rank=rank), PLAIN[rank](model, QUERIES, TEXTS[:ALL]))


@pytest.mark.parametrize("length", [1.0, 1e6, 1e-9])  # the last two do not fit in 16 bits
def test_vectors_are_kept_at_length_1_and_zeros_score_zero(length: float) -> None:
    vectors = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32) * length
    vectors[2] = 0
    assert halves(vectors) == pytest.approx(unit(vectors), abs=1e-3)
    assert not halves(vectors)[2].any()


def test_what_a_rank_lacks_is_explained() -> None:
    codes = binary().transform(TEXTS[:3])
    vectors = Index.build(TEXTS[:9], model=binary(), text=False, vectors=True)
    words, no_words = (Index.build(TEXTS[:9], model=binary(), words=kept) for kept in (True, False))
    refused: list[tuple[Callable[..., object], Any, dict[str, Any], str]] = [
        (vectors.search, codes, {"rank": "cosine"}, "rank cosine needs the text"),
        (vectors.like, ["0"], {"rank": "cosine"}, "rank cosine needs the text"),
        (vectors.put_codes, codes, {"ids": [7, 8, 9]}, "found no vectors"),
        *(
            (words.search, codes, {"rank": rank}, f"rank {rank} needs the text")
            for rank in ("words", "hybrid")
        ),
        (
            words.search,
            codes,
            {"rank": "asymmetric"},
            "needs the text of the query, and codes were given",
        ),
        *(
            (no_words.search, QUERIES, {"rank": rank}, f"rank {rank} needs words")
            for rank in ("words", "hybrid")
        ),
        (
            no_words.search,
            QUERIES,
            {"rank": "cosine"},
            "needs vectors, which this index does not keep",
        ),
        (no_words.search, QUERIES, {"rank": "best"}, "no rank 'best'"),
    ]
    for ask, given, options, problem in refused:
        with pytest.raises(ParabitError, match=problem):
            ask(given, **options)
    assert (len(vectors), no_words.best_rank) == (9, "asymmetric")

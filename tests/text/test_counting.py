import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save
from scipy.sparse import csr_array

from parabit.corpus import open_corpus
from parabit.errors import VocabularyError
from parabit.progress import Progress
from parabit.text import (
    Bags,
    Tokenizer,
    Vocabulary,
    VocabularyRule,
    build_vocabulary,
    count_bags,
    counting,
    make_bags,
)
from parabit.text.bags import inverse_frequencies, tf_idf_rows

TOKENIZER = Tokenizer(pattern="[a-z]+", min_length=1, stop_words=frozenset({"stop"}))
TEXTS = ["a b a b c", "", "b stop c!", "stop", "a", "x y z a b"]

texts_of_few_words = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "dd", "stop"]), max_size=12).map(" ".join),
    min_size=1,
    max_size=12,
).filter(lambda texts: any(set(text.split()) - {"stop"} for text in texts))


def features_of(text: str) -> list[str]:
    """The words of a text and its bigrams, in plain Python."""
    words = [word for word in text.split() if word != "stop"]
    return [*words, *(f"{first} {second}" for first, second in pairwise(words))]


def named_counts(vocabulary: Vocabulary) -> dict[str, tuple[int, int]]:
    rows = zip(
        vocabulary.names,
        vocabulary.counts.tolist(),
        vocabulary.document_frequencies.tolist(),
        strict=True,
    )
    return {name: (count, documents) for name, count, documents in rows}


@given(texts_of_few_words, st.integers(1, 3), st.integers(1, 3))
def test_counts_are_those_of_plain_counting(
    texts: list[str], least: int, least_bigrams: int
) -> None:
    rule = VocabularyRule(TOKENIZER, bigrams=True, min_count=least, min_bigram_count=least_bigrams)
    counts = Counter(feature for text in texts for feature in features_of(text))
    documents = Counter(feature for text in texts for feature in set(features_of(text)))
    words = {word: count for word, count in counts.items() if " " not in word}
    kept = {word for word, count in words.items() if count >= least}
    kept |= {
        pair
        for pair, count in counts.items()
        if " " in pair and count >= least_bigrams and kept.issuperset(pair.split())
    }
    if not kept:
        with pytest.raises(VocabularyError, match=f"no word occurs {least} times"):
            build_vocabulary(texts, rule)
        return
    vocabulary = build_vocabulary(texts, rule)
    assert named_counts(vocabulary) == {name: (counts[name], documents[name]) for name in kept}
    assert vocabulary.documents == len(texts)
    assert vocabulary.tokens == sum(words.values())
    assert vocabulary.coverage == pytest.approx(
        sum(words[word] for word in kept & words.keys()) / vocabulary.tokens
    )


@given(texts_of_few_words, st.integers(1, 12))
def test_a_maximum_size_keeps_the_most_frequent(texts: list[str], size: int) -> None:
    everything = build_vocabulary(texts, VocabularyRule(TOKENIZER, bigrams=True))
    kept, bags = count_bags(texts, VocabularyRule(TOKENIZER, bigrams=True, max_size=size))
    assert len(kept) == min(size, len(everything))
    counts = sorted(everything.counts.tolist(), reverse=True)
    assert sorted(kept.counts.tolist(), reverse=True) == counts[:size]
    assert named_counts(kept).items() <= named_counts(everything).items()
    assert bags.matrix(len(kept)).sum(axis=0).tolist() == kept.counts.tolist()


def bags_by_name(bags: Bags, vocabulary: Vocabulary) -> list[tuple[list[str], dict[str, int]]]:
    """Each document's words in order, and its counts."""
    documents = []
    for place in range(len(bags)):
        tokens = bags.tokens[bags.token_offsets[place] : bags.token_offsets[place + 1]]
        entries = slice(bags.feature_offsets[place], bags.feature_offsets[place + 1])
        assert (np.diff(bags.features[entries]) > 0).all()
        features = map(vocabulary.name, bags.features[entries].tolist())
        counts = dict(zip(features, bags.counts[entries].tolist(), strict=True))
        documents.append(([vocabulary.words[token] for token in tokens], counts))
    return documents


@given(texts_of_few_words, st.integers(1, 2), st.booleans())
def test_bags_hold_the_text_and_its_counts(texts: list[str], least: int, bigrams: bool) -> None:
    rule = VocabularyRule(TOKENIZER, bigrams=bigrams, min_bigram_count=least)
    vocabulary, bags = count_bags(texts, rule)
    assert vocabulary.fingerprint == build_vocabulary(texts, rule).fingerprint
    known = set(vocabulary.names)
    expected = []
    for text in texts:
        features = [feature for feature in features_of(text) if feature in known]
        expected.append(
            ([feature for feature in features if " " not in feature], dict(Counter(features)))
        )
    assert bags_by_name(bags, vocabulary) == expected
    # With the vocabulary given, the same arrays; of few texts in one way and of many in another.
    for number in (1, 20):
        again, many = make_bags(texts * number, vocabulary), Bags.joined([bags] * number)
        assert again.fingerprint == many.fingerprint
        assert [array.dtype for array in vars(again).values()] == [
            array.dtype for array in vars(many).values()
        ]


def test_batches_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = [
        " ".join(f"w{a}x{b}" for a, b in rng.integers((10, 5), size=(30, 2))) for _ in range(300)
    ]
    rule = VocabularyRule(bigrams=True, min_bigram_count=3)
    vocabulary, bags = count_bags(texts, rule)
    monkeypatch.setattr(counting, "_MERGED", 500)
    monkeypatch.setattr(counting, "_CHARACTERS", 700)
    reported: list[Progress] = []
    parted, parted_bags = count_bags(texts, rule, report=reported.append)
    prints = [parted.fingerprint, build_vocabulary(texts, rule).fingerprint]
    assert prints == [vocabulary.fingerprint] * 2
    assert parted_bags.fingerprint == bags.fingerprint
    stages = [progress.stage for progress in reported]
    assert sorted(set(stages), key=stages.index) == ["reading", "making bags"]
    assert reported[-1].share == 1.0


@given(st.lists(st.integers(0, 300), min_size=40, max_size=200), st.integers(5, 60))
def test_of_too_many_words_the_frequent_ones_are_counted_nearly(
    numbers: list[int], most: int
) -> None:
    """The bound of Misra and Gries: no count is too high, nor too low by more than tokens / words that are counted."""
    texts = [f"w{number % 7 if number % 3 else number}" for number in numbers]
    texts += ["w0"] * len(texts)  # if no word is frequent, none may be left
    counts = Counter(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_MERGED", 1)
        patch.setattr(counting, "MOST_WORDS", most)
        patch.setattr(counting, "_CHARACTERS", 9)
        found = named_counts(build_vocabulary(texts, VocabularyRule(bigrams=True)))
    missed = len(texts) / most
    for word, count in counts.items():
        assert count - missed <= found.get(word, (0, 0))[0] <= count
    assert len(found) <= most
    if len(counts) <= most:
        assert found == {word: (count, count) for word, count in counts.items()}


def test_unknown_words_break_bigrams_and_stop_words_do_not() -> None:
    vocabulary = build_vocabulary(["a b", "b a"], VocabularyRule(TOKENIZER, bigrams=True))
    bags = make_bags(["a stop b", "a unknown b"], vocabulary)
    assert bags_by_name(bags, vocabulary) == [
        (["a", "b"], {"a": 1, "b": 1, "a b": 1}),
        (["a", "b"], {"a": 1, "b": 1}),
    ]


def test_a_long_document_is_not_cut() -> None:
    words = 3_000_000
    vocabulary, bags = count_bags(["short text", "long " * words])
    assert vocabulary.tokens == words + 2
    assert bags.token_offsets.tolist() == [0, 2, words + 2]
    assert bags.counts.max() == words


def test_the_papers_vocabulary_is_met(real: Callable[[str], str]) -> None:
    rule = VocabularyRule(Tokenizer.paper(), bigrams=True)
    vocabulary = build_vocabulary(open_corpus(real("20newsgroups-raw/train")), rule)
    assert (vocabulary.documents, len(vocabulary.words), len(vocabulary.bigrams)) == (
        11_314,
        88_164,
        948_781,
    )


@pytest.mark.parametrize(
    "bigrams", [False, True]
)  # without, a column of nothing must keep its type
def test_a_vocabulary_survives_its_file(bigrams: bool, tmp_path: Path) -> None:
    vocabulary = build_vocabulary(TEXTS, VocabularyRule(TOKENIZER, bigrams=bigrams))
    vocabulary.save(tmp_path / "v")
    loaded = Vocabulary.load(tmp_path / "v")
    assert loaded.fingerprint == vocabulary.fingerprint
    assert loaded.names == vocabulary.names
    assert (loaded.bigrams == vocabulary.bigrams).all()
    assert loaded.tokenizer == vocabulary.tokenizer


def test_fingerprints_tell_vocabularies_apart() -> None:
    rules = [
        VocabularyRule(TOKENIZER),
        VocabularyRule(TOKENIZER, bigrams=True),
        VocabularyRule(TOKENIZER, min_count=2),
        VocabularyRule(Tokenizer(pattern="[a-z]+", min_length=1, stop_words=frozenset())),
    ]
    prints = {build_vocabulary(TEXTS, rule).fingerprint for rule in rules}
    prints.add(build_vocabulary([*TEXTS, "a"], rules[0]).fingerprint)
    assert len(prints) == 5
    assert build_vocabulary(TEXTS, rules[0]).fingerprint in prints


def test_what_is_not_a_whole_vocabulary_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v"
    for content in (
        b"",
        b"text",
        save({"words": np.zeros(1)}),
        save({"words": np.zeros(1)}, {"vocabulary": "{}"}),
    ):
        path.write_bytes(content)
        with pytest.raises(VocabularyError, match="is not a whole vocabulary file"):
            Vocabulary.load(path)
    monkeypatch.setattr("parabit.text.bags.FORMAT", 99)
    build_vocabulary(TEXTS).save(path)
    monkeypatch.undo()
    with pytest.raises(VocabularyError, match="was made by a newer version of parabit; upgrade"):
        Vocabulary.load(path)


def test_unknown_words_of_many_texts_have_no_id() -> None:
    vocabulary = build_vocabulary(["a b", "c"], VocabularyRule(TOKENIZER))
    texts = [f"a {first}{second} b" for first in "abcdefgh" for second in "abcdefgh"]
    assert vocabulary.ids_of(texts)[0].tolist() == [0, -1, 1] * 64


def test_the_idf_is_the_logarithm_of_documents_and_one_over_those_with_the_word() -> None:
    idf = inverse_frequencies(np.array([1, 4, 9, 0]), documents=9)
    np.testing.assert_allclose(
        idf, [math.log(10), math.log(10 / 4), math.log(10 / 9), 0], rtol=1e-6
    )
    assert idf.dtype == np.float32


@given(
    st.lists(st.dictionaries(st.integers(0, 9), st.integers(1, 10_000), max_size=8), max_size=12)
)
def test_rows_are_the_weights_of_each_word_at_length_one(bags: list[dict[int, int]]) -> None:
    features = np.array([word for bag in bags for word in sorted(bag)], dtype=np.int32)
    counts = np.array([bag[word] for bag in bags for word in sorted(bag)], dtype=np.int32)
    offsets = np.cumsum([0, *(len(bag) for bag in bags)])
    idf = np.linspace(0, 5, 10).astype(np.float32)  # the first word weighs nothing
    rows = tf_idf_rows(csr_array((counts, features, offsets), shape=(len(bags), 10)), idf)
    assert rows.dtype == np.float32
    assert rows.shape == (len(bags), 10)
    for bag, row in zip(bags, rows.toarray(), strict=True):
        weights = [
            (1 + math.log(bag[word])) * float(idf[word]) if word in bag else 0.0
            for word in range(10)
        ]
        length = math.hypot(*weights)
        np.testing.assert_allclose(
            row, [weight / length if length else 0.0 for weight in weights], atol=1e-6
        )

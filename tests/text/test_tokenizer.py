from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import words_of

from parabit.errors import CorpusError, VocabularyError
from parabit.text import LETTERS, Tokenizer, english_stop_words, read_stop_words

ASCII = Tokenizer(pattern="[a-z]+")


@given(st.lists(st.text(st.sampled_from("aAbBzé .'\n19THEthe"), max_size=60), max_size=8))
def test_words_are_those_of_a_plain_regular_expression(texts: list[str]) -> None:
    tokens = ASCII.tokenize(texts)
    written = [tokens.words[int(code)] for code in tokens.codes]
    expected = [words_of(text, ASCII) for text in texts]
    assert written == [word for words in expected for word in words]
    assert tokens.lengths.tolist() == [len(words) for words in expected]
    assert tokens.words.n_unique() == len(tokens.words)
    assert np.unique(tokens.codes).tolist() == list(range(len(tokens.words)))


@given(st.lists(st.text(max_size=40), max_size=5))
def test_any_text_at_all_is_split_the_same_alone_and_in_a_batch(texts: list[str]) -> None:
    tokens = Tokenizer().tokenize(texts)
    ends = np.cumsum(tokens.lengths)
    for text, start, end in zip(texts, ends - tokens.lengths, ends, strict=True):
        words = [tokens.words[int(code)] for code in tokens.codes[start:end]]
        assert words == Tokenizer().words(text)
        assert all(2 <= len(word) <= 15 for word in words)


PATTERNS = ["[a-z]+", r"\p{L}+", LETTERS, r"\w+", r"[\p{L}\d]+", "[A-Z]+", "[a-z0-9_-]+", r"\p{Lu}+"]
WRITTEN = st.text(st.sampled_from("abYZ019_-.,' \n\t\x7f\0"), max_size=25)
ABROAD = st.text(st.sampled_from("abYZ01 \né\u0301ßΣςİ\u212aा"), max_size=25)


@given(
    st.lists(st.one_of(WRITTEN, WRITTEN, ABROAD), max_size=8),
    st.sampled_from(PATTERNS),
    st.booleans(),
    st.integers(1, 3),
)
def test_the_fast_way_finds_what_the_regular_expression_finds(
    texts: list[str], pattern: str, lowercase: bool, least: int
) -> None:
    fast = Tokenizer(pattern, lowercase, min_length=least, stop_words=frozenset())
    plain = Tokenizer(f"(?:{pattern})", lowercase, min_length=least, stop_words=frozenset())
    assert fast._cutter._by_spaces
    assert not plain._cutter._by_spaces
    found, expected = fast.tokenize(texts), plain.tokenize(texts)
    assert found.words.gather(found.codes).to_list() == expected.words.gather(expected.codes).to_list()
    assert found.lengths.tolist() == expected.lengths.tolist()


@pytest.mark.parametrize("pattern", ["[a-z ]+", r"[a-z\n]+", "[^a]+", "[a-z]{3}", "a+", r"\bx+", "[[a-z]--[e]]+"])
def test_patterns_that_spaces_cannot_cut_are_left_to_the_regular_expression(pattern: str) -> None:
    assert not Tokenizer(pattern)._cutter._by_spaces
    assert Tokenizer("[a-z ]+", stop_words=frozenset()).words("ab cd, ef") == ["ab cd", " ef"]


def test_a_line_break_is_a_word_where_the_pattern_says_so() -> None:
    assert Tokenizer(r"[a-z]+|\n", min_length=1, stop_words=frozenset()).words("ab\ncd") == ["ab", "\n", "cd"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Hubble was repaired in 1993.", ["hubble", "repaired"]),
        ("abc123def x_y foo-bar don't", ["abc", "def", "foo", "bar", "don"]),
        ("Straße ÉCOLE Привет κόσμε שלום", ["straße", "école", "привет", "κόσμε", "שלום"]),
        ("हिन्दी", ["हिन्दी"]),  # vowel signs are marks, not letters
        ("cafe\u0301", ["cafe\u0301"]),  # an accent typed apart from its letter
        ("a" * 15 + " " + "b" * 16 + " c", ["a" * 15]),
        ("é" * 15, ["é" * 15]),  # lengths are in characters, not bytes
        ("", []),
        (" \n\0\t 123 --", []),
    ],
)
def test_words_are_letters_in_lower_case(text: str, words: list[str]) -> None:
    assert Tokenizer().words(text) == words


def test_everything_can_be_set() -> None:
    tokenizer = Tokenizer(r"[A-Z]\w*", lowercase=False, min_length=1, max_length=3, stop_words=frozenset({"Abc"}))
    assert tokenizer.words("Abc A Abd Abcd low") == ["A", "Abd"]


def test_stop_words_are_in_lower_case_where_words_are() -> None:
    assert Tokenizer(stop_words=frozenset({"The"})).words("the The hubble") == ["hubble"]
    assert Tokenizer(r"\w+", lowercase=False, stop_words=frozenset({"The"})).words("the The") == ["the"]


def test_a_pattern_that_can_be_empty_gives_no_empty_words() -> None:
    assert Tokenizer(pattern="[a-z]*").words("hubble 2 space!") == ["hubble", "space"]


def test_stop_words_come_by_name_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "stop.txt"
    file.write_text("\ufeffDer\n die \n\nDAS\n")
    assert read_stop_words(str(file)) == {"der", "die", "das"}
    assert read_stop_words("none") == frozenset()
    assert read_stop_words("english") == english_stop_words()
    assert len(english_stop_words()) == 318


def test_the_english_stop_words_are_those_of_scikit_learn() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    assert english_stop_words() == text.ENGLISH_STOP_WORDS


def test_stop_words_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="No such file.*english, none, or a file"):
        read_stop_words(str(tmp_path / "none.txt"))
    binary = tmp_path / "stop.bin"
    binary.write_bytes(b"\xff\xfe\0")
    with pytest.raises(VocabularyError, match="not UTF-8 text"):
        read_stop_words(str(binary))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pattern": "[a"}, r"the pattern '\[a' is not valid: .*unclosed character class"),
        ({"pattern": None}, "the pattern is a NoneType"),
        ({"min_length": 0}, "words of 0 to 15 characters cannot be"),
        ({"min_length": 5, "max_length": 4}, "words of 5 to 4 characters cannot be"),
        ({"stop_words": "the"}, "must be a set of strings"),
        ({"stop_words": (word for word in ["the"])}, "must be a set of strings"),
        ({"stop_words": frozenset({1})}, "must be a set of strings"),
    ],
)
def test_a_tokenizer_that_cannot_be_is_told(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(VocabularyError, match=words):
        Tokenizer(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("texts", "words"),
    [(["ok", None], "text 1 is a NoneType"), ([7], "text 0 is a int"), (["ok", "\ud800"], "text 1 holds half of a")],
)
def test_texts_that_are_none_are_told_by_their_place(texts: list[str], words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        Tokenizer().tokenize(texts)


def test_a_tokenizer_survives_its_config() -> None:
    tokenizer = Tokenizer(pattern=r"\w+", min_length=3, stop_words=frozenset({"abc"}))
    assert Tokenizer.from_config(tokenizer.config) == tokenizer


def test_no_word_is_kept_from_one_call_to_the_next() -> None:
    tokenizer = Tokenizer()
    tokenizer.tokenize(["hubble space"])
    assert tokenizer.tokenize(["space probe"]).words.to_list() == ["space", "probe"]

import re
from collections import defaultdict
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabit.errors import CorpusError, VocabularyError
from parabit.text import Tokenizer, english_stop_words, read_stop_words
from parabit.text.tokenizer import STOP, WORDS, Dictionary

# What goes wrong: letters whose case changes their length, marks, digits of other scripts, scripts without spaces.
STRANGE = "abYZ019_-+#.,'’ \n\t\x7f\0cCfFnNeEtTéÉ\u0301ßΣςİı\u212aाกไทย北京大学テスト한국어Привет١٢ǅﬁ𝒳"
TEXTS = st.one_of(
    st.text(st.sampled_from(STRANGE), max_size=25),
    st.lists(st.sampled_from(["C++", "c#", ".NET", "foo.net", "F#m", "mp3", "北京大学", "don't", "x²"])).map(" ".join),
    st.text(max_size=25),
)
PATTERNS = [WORDS, "[a-z]+", r"\p{L}+", r"\w+", "[A-Z]+", "[a-z0-9_-]+", r"\S+", "[a-z ]+", r"[a-z]+|\n", "[a-z]*"]
TOKENIZERS = st.builds(Tokenizer, st.sampled_from(PATTERNS), st.booleans(), st.booleans())


def content(tokenizer: Tokenizer, texts: list[str]) -> list[list[str]]:
    """The words that models count, split and looked up for all texts at once."""
    names: defaultdict[str, int] = defaultdict(count().__next__, dict.fromkeys(tokenizer.normal_stop_words, STOP))
    dictionary = Dictionary(names)
    numbers, lengths = dictionary.look_up(tokenizer.content_tokens(texts))
    again, _ = dictionary.look_up(tokenizer.content_tokens(texts))
    frozen, _ = Dictionary(dict(names)).look_up(tokenizer.content_tokens(texts))
    assert numbers.tolist() == again.tolist() == frozen.tolist()
    named = {number: word for word, number in names.items()}
    words = [named[number] for number in numbers.tolist()]
    return [words[end - length : end] for end, length in zip(np.cumsum(lengths), lengths, strict=True)]


@given(st.lists(TEXTS, max_size=8), TOKENIZERS, st.sampled_from([1, 2, 64, 1 << 16]))
def test_one_text_and_many_have_the_same_tokens(texts: list[str], tokenizer: Tokenizer, slots: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("parabit.text.tokenizer._SLOTS", slots)  # in a small table most words have no place
        assert content(tokenizer, texts) == [tokenizer.content_words(text) for text in texts]


def test_words_that_are_alike_have_numbers_of_their_own() -> None:
    words = ["a", "a\0", "\0a", "ab", *("x" * length for length in range(7, 20)), "é" * 7 + "ab", "é" * 8, "é" * 9]
    tokenizer = Tokenizer(r"[^ ]+", min_length=1, max_length=100, stop_words=frozenset({"x" * 15, "é" * 8}))
    assert content(tokenizer, words * 2) == [tokenizer.content_words(word) for word in words * 2]


def test_a_dictionary_forgets_words_but_not_their_numbers() -> None:
    dictionary = Dictionary(defaultdict(count().__next__))
    tokens = Tokenizer().content_tokens(["hubble space probe"])
    before = dictionary.look_up(tokens)[0].tolist()
    dictionary.forget(["space"])
    assert dictionary.look_up(tokens)[0].tolist() == [before[0], 3, before[2]]


@given(TEXTS, st.sampled_from(PATTERNS), st.booleans())
def test_the_fast_way_finds_what_the_regular_expression_finds(text: str, pattern: str, lowercase: bool) -> None:
    fast, plain = Tokenizer(pattern, lowercase), Tokenizer(f"(?:{pattern})", lowercase)
    if pattern != WORDS or not re.search(r"[^\W\d_a-zA-Z]", text):  # pairs of characters are of the default alone
        assert fast.words(text) == plain.words(text)


@given(TEXTS, TOKENIZERS)
def test_places_are_where_the_words_are(text: str, tokenizer: Tokenizer) -> None:
    for word in set(tokenizer.words(text)):
        [places] = tokenizer.places([text], [word])
        assert places
        for (start, end), (following, _) in zip(places, [*places[1:], (len(text), 0)], strict=True):
            assert 0 <= start < end <= following
            if "\u0301" not in text and "ς" not in text.lower() + word:  # they depend on what is around them
                assert word in tokenizer.words(text[start:end])
    assert tokenizer.places([text], []) == [[]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Hubble was repaired in 1993.", "the hubble was repaired in 1993"),
        ("a 486, an MP3 and COVID19 or covid-19", "a 486 an mp3 and covid19 or covid 19"),
        ("C++11, C#, F#, objective-C++ c+ d++ disc#", "c++ 11 c# f# objective c++ c d disc"),
        (".NET on example.net and ASP.NET; .nets", ".net on example net and asp net nets"),
        ("don't, rock'n'roll, l’homme; well-known x_y", "don t rock n roll l homme well known x y"),
        ("Straße ÉCOLE Привет κόσμε שלום", "straße école привет κόσμε שלום"),
        ("İstanbul", "istanbul"),
        ("हिन्दी", "हिन्दी"),  # vowel signs are marks, not letters
        ("cafe\u0301", "cafe\u0301"),  # an accent typed apart from its letter
        ("한국어 텍스트", "한국어 텍스트"),  # Korean has spaces
        ("北京大学。iPhone手机 東", "北京 京大 大学 iphone 手机 東"),
        ("カタカナ2024年", "カタ タカ カナ 2024 年"),
        ("ไทย", "ไท ทย"),
        ("m² word¹", "m word"),
        ("", ""),
        (" \n\0\t -- ++ # .", ""),
    ],
)
def test_tokens_are_what_people_search_for(text: str, words: str) -> None:
    assert Tokenizer().words(text) == words.split()
    every = Tokenizer(min_length=1, max_length=100, stop_words=frozenset())
    assert content(every, ["other", text])[1] == words.split()


@pytest.mark.parametrize(
    ("options", "text", "words"),
    [
        ({"pattern": r"[A-Z]\w*", "lowercase": False}, "Abc A low", ["Abc", "A"]),
        ({"lowercase": False}, "C++ Hubble", ["C++", "Hubble"]),
        ({"fold_accents": True}, "ÉCOLE cafe\u0301 İs Ø हिन्दी 한국", ["ecole", "cafe", "is", "ø", "हिन्दी", "한국"]),
        ({"pattern": "[a-z ]+"}, "ab cd, ef", ["ab", "cd", "ef"]),
        ({"pattern": r"\p{Han}"}, "北京", ["北", "京"]),
        ({"pattern": r"\S+"}, "北京大学 C++", ["北京大学", "c++"]),
        ({"pattern": "[a-z]*"}, "hubble 2 space!", ["hubble", "space"]),
    ],
)  # fmt: skip
def test_everything_can_be_set(options: dict[str, object], text: str, words: list[str]) -> None:
    assert Tokenizer(**options).words(text) == words  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tokenizer", "text", "words"),
    [
        (Tokenizer(), f"The c {'é' * 15} {'b' * 16} of 42", ["é" * 15, "42"]),
        (Tokenizer(min_length=1, max_length=3, stop_words=frozenset()), "the c four", ["the", "c"]),
        (Tokenizer(stop_words=frozenset({"The"})), "the The hubble", ["hubble"]),
        (Tokenizer(lowercase=False, stop_words=frozenset({"The"})), "the The", ["the"]),
        (Tokenizer(fold_accents=True, stop_words=frozenset({"été"})), "Été ete hiver", ["hiver"]),
        (Tokenizer.paper(), f"The MP3's C++ {'a' * 15} {'a' * 16} É", ["mp", "a" * 15]),
    ],
)
def test_models_leave_out_stop_words_and_words_of_other_lengths(
    tokenizer: Tokenizer, text: str, words: list[str]
) -> None:
    assert tokenizer.content_words(text) == words


def test_places_of_pairs_of_characters_become_one() -> None:
    assert Tokenizer().places(["在北京大学 c++"], ["北京", "京大", "c++"]) == [[(1, 4), (6, 9)]]


def test_stop_words_come_by_name_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "stop.txt"
    file.write_text("\ufeffDer\n die \n\nDAS\n")
    assert read_stop_words(str(file)) == {"der", "die", "das"}
    assert read_stop_words("none") == frozenset()
    assert read_stop_words("english") == english_stop_words()
    file.write_bytes(b"\xff\xfe\0")
    for name, words in ((str(file), "not UTF-8 text"), (str(tmp_path / "none.txt"), "No such file.*or a file")):
        with pytest.raises(VocabularyError, match=words):
            read_stop_words(name)


def test_the_english_stop_words_are_those_of_scikit_learn() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    assert english_stop_words() == text.ENGLISH_STOP_WORDS


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pattern": "[a"}, r"the pattern '\[a' is not valid: .*unclosed character class"),
        ({"min_length": 0}, "words of 0 to 15 characters are not possible"),
        ({"min_length": 5, "max_length": 4}, "words of 5 to 4 characters"),
        ({"stop_words": "the"}, "must be a set of strings"),
        ({"stop_words": frozenset({1})}, "must be a set of strings"),
    ],
)
def test_an_impossible_tokenizer_is_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(VocabularyError, match=words):
        Tokenizer(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("texts", "words"),
    [(["ok", None], "a text is a NoneType"), (["é", "\ud800"], "a text has half of a surrogate pair")],
)
def test_texts_that_are_not_text_are_refused(texts: list[str], words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        Tokenizer().content_tokens(texts)


def test_a_tokenizer_survives_its_config() -> None:
    for tokenizer in (Tokenizer(), Tokenizer(r"\w+", False, True, 3, 9, frozenset({"abc"}))):
        assert Tokenizer.from_config(tokenizer.config) == tokenizer

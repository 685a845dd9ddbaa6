import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from parabit.errors import CorpusError, VocabularyError
from parabit.text import (
    Tokenizer,
    Vocabulary,
    VocabularyRule,
    build_vocabulary,
    count_bags,
    english_stop_words,
    read_stop_words,
)
from parabit.text.tokenizer import WORDS, Numbering

# What goes wrong: letters whose case changes their length, marks, digits of other scripts, scripts without spaces.
STRANGE = (
    "abYZ019_-+#.,'’ \n\t\x7f\0cCfFnNeEtTéÉ\u0301ßΣςİı\u212aाกไทย北京大学テスト한국어Привет١٢ǅﬁ𝒳"
)
TEXTS = st.one_of(
    st.text(st.sampled_from(STRANGE), max_size=25),
    st.lists(
        st.sampled_from(["C++", "c#", ".NET", "foo.net", "F#m", "mp3", "北京大学", "don't", "x²"])
    ).map(" ".join),
    st.text(max_size=25),
)
PATTERNS = [
    WORDS,
    "[a-z]+",
    r"\p{L}+",
    r"\w+",
    "[A-Z]+",
    "[a-z0-9_-]+",
    r"\S+",
    "[a-z ]+",
    r"[a-z]+|\n",
    "[a-z]*",
]
TOKENIZERS = st.builds(Tokenizer, st.sampled_from(PATTERNS), st.booleans(), st.booleans())


def content(tokenizer: Tokenizer, texts: list[str]) -> list[list[str]]:
    """The words that models count, of all texts at once."""
    words, lengths = tokenizer.content_tokens(texts)
    ends = np.cumsum(lengths)
    return [
        words[end - length : end].to_list()
        for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
    ]


@given(st.lists(TEXTS, max_size=8), TOKENIZERS)
def test_one_text_and_many_have_the_same_tokens(texts: list[str], tokenizer: Tokenizer) -> None:
    assert content(tokenizer, texts) == [tokenizer.content_words(text) for text in texts]


def test_words_keep_their_numbers_while_new_ones_come() -> None:
    words = pl.Series(["a", "a\0", "\0a", "é" * 9, "a"])
    numbering = Numbering(words[:2])
    assert numbering.of(words).tolist() == [0, 1, 2, 3, 0]
    assert numbering.of(words[3:]).tolist() == [3, 0]
    assert numbering.words().to_list() == words[:4].to_list()


@given(TEXTS, st.sampled_from(PATTERNS), st.booleans())
def test_the_fast_way_finds_what_the_regular_expression_finds(
    text: str, pattern: str, lowercase: bool
) -> None:
    fast, plain = Tokenizer(pattern, lowercase), Tokenizer(f"(?:{pattern})", lowercase)
    if pattern != WORDS or not re.search(
        r"[^\W\d_a-zA-Z]", text
    ):  # pairs of characters are of the default alone
        assert fast.words(text) == plain.words(text)


@given(TEXTS, TOKENIZERS)
def test_places_are_where_the_words_are(text: str, tokenizer: Tokenizer) -> None:
    for word in set(tokenizer.words(text)):
        places = tokenizer.places(text, [word])
        assert places
        for (start, end), (following, _) in zip(places, [*places[1:], (len(text), 0)], strict=True):
            assert 0 <= start < end <= following
            if not {*"\u0301Σς"} & {*text}:  # they depend on what is around them
                assert word in tokenizer.words(text[start:end])
    assert tokenizer.places(text, []) == []


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
        (" \n\0\t -- ++ # .", ""),
    ],
)
def test_tokens_are_what_people_search_for(text: str, words: str) -> None:
    assert Tokenizer().words(text) == words.split()
    every = Tokenizer(min_length=1, max_length=100, stop_words=frozenset())
    assert content(every, ["other", text])[1] == words.split()


@pytest.mark.parametrize(
    ("tokenizer", "text", "words", "counted"),
    [
        (Tokenizer(r"[A-Z]\w*", lowercase=False), "Abc A low", "Abc A", "Abc"),
        (Tokenizer(lowercase=False, stop_words=frozenset({"The"})), "the The C++", "the The C++", "the C++"),
        (Tokenizer(fold_accents=True), "ÉCOLE cafe\u0301 İs Ø हिन्दी", "ecole cafe is ø हिन्दी", "ecole cafe हिन्दी"),
        (Tokenizer(fold_accents=True, stop_words=frozenset({"été"})), "Été ete hiver", "ete ete hiver", "hiver"),
        (Tokenizer("[a-z ]+"), "ab cd, ef", "ab cd ef", "ab cd ef"),
        (Tokenizer(r"\p{Han}", min_length=1), "北京", "北 京", "北 京"),
        (Tokenizer(r"\S+"), "北京大学 C++", "北京大学 c++", "北京大学 c++"),
        (Tokenizer("[a-z]*"), "hubble 2 space!", "hubble space", "hubble space"),
        (Tokenizer(), f"The c {'é' * 15} {'b' * 16} of 42", f"the c {'é' * 15} {'b' * 16} of 42", f"{'é' * 15} 42"),
        (Tokenizer(min_length=1, max_length=3, stop_words=frozenset()), "the c four", "the c four", "the c"),
        (Tokenizer.paper(), f"The MP3's C++ {'a' * 16} É", f"the mp s c {'a' * 16}", "mp"),
    ],
)  # fmt: skip
def test_everything_can_be_set(tokenizer: Tokenizer, text: str, words: str, counted: str) -> None:
    assert tokenizer.words(text) == words.split()
    assert tokenizer.content_words(text) == counted.split()


def test_places_of_pairs_of_characters_become_one() -> None:
    assert Tokenizer().places("在北京大学 c++", ["北京", "京大", "c++"]) == [(1, 4), (6, 9)]


def test_stop_words_come_by_name_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "stop.txt"
    file.write_text("\ufeffDer\n die \n\nDAS\n")
    assert read_stop_words(str(file)) == {"der", "die", "das"}
    assert read_stop_words("none") == frozenset()
    assert read_stop_words("english") == english_stop_words()
    file.write_bytes(b"\xff\xfe\0")
    with pytest.raises(VocabularyError, match="not UTF-8 text"):
        read_stop_words(str(file))
    assert english_stop_words() == ENGLISH_STOP_WORDS


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Tokenizer("[a"), r"the pattern '\[a' is not valid: .*unclosed character class"),
        (lambda: Tokenizer(min_length=0), "words of 0 to 15 characters are not possible"),
        (lambda: Tokenizer(min_length=5, max_length=4), "words of 5 to 4 characters"),
        (lambda: Tokenizer(stop_words="the"), "must be a set of strings"),  # type: ignore[arg-type]
        (lambda: Tokenizer().content_tokens(["ok", None]), "a text is a NoneType"),  # type: ignore[list-item]
        (
            lambda: Tokenizer().content_tokens(["é", "\ud800"]),
            "a text has half of a surrogate pair",
        ),
        (lambda: build_vocabulary([]), "the corpus has no documents"),
        (
            lambda: count_bags(["! the", "of"]),
            "not one word in 2 documents; words match the pattern, have 2 to 15",
        ),
        (lambda: VocabularyRule(min_count=0), "min_count is 0"),
        (lambda: VocabularyRule(max_size=-1), "max_size is -1"),
        (lambda: Vocabulary.load("no.parquet"), "no vocabulary at"),
        (lambda: read_stop_words("no.txt"), "No such file.*or a file"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises((VocabularyError, CorpusError), match=words):
        call()

"""Cutting words out of texts: every match of a pattern, found by the fastest way that finds the same."""

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from parabit.corpus.document import can_be_written
from parabit.errors import CorpusError, VocabularyError

# A letter, then letters and the marks that stand on them: the vowel signs of Hindi are marks, and so are accents
# that were typed apart from their letter.
LETTERS = r"\p{L}[\p{L}\p{M}]*"

# Patterns that mean "as many characters of one class as there are": [a-z]+, \w+, \p{L}+, [\p{L}\d-]+.
_ONE_CLASS = re.compile(r"(?:\\w|\\p\{\w+\}|\[(?:[\w-]|\\w|\\d|\\p\{\w+\})+\])\+")
_ASCII = [chr(code) for code in range(128)]
_END = "\n"  # stands as a word of its own after each text


class Pieces(NamedTuple):
    """What texts were cut into."""

    words: pl.Series  # all texts one after the other; where `is_word` is false, what was between two words
    is_word: NDArray[np.bool_]
    lengths: NDArray[np.int64]  # (texts,) pieces a text


class Cutter:
    r"""Finds the matches of a pattern of Rust's regex crate in texts, in lower case if asked for.

    Most text is ASCII, and most patterns are runs of one class of characters. There the words are what stays when every
    other character becomes a space, which takes two thirds of the time of the regular expression.

    Example:
        >>> pieces = Cutter(r"\p{L}+", lowercase=True).cut(["Hubble, 1993", "à la carte"], min_length=2)
        >>> pieces.words.filter(pl.Series(pieces.is_word)).to_list()
        ['hubble', 'à', 'la', 'carte']
    """

    def __init__(self, pattern: str, lowercase: bool) -> None:
        self._pattern = pattern
        self._lowercase = lowercase
        try:
            members = pl.Series(_ASCII).str.contains(rf"\A(?:{pattern})\z").to_list()
        except pl.exceptions.ComputeError as problem:
            reason = " ".join(str(problem).split())
            raise VocabularyError(f"the pattern {pattern!r} is not valid: {reason}", hint=r"try \p{L}+") from problem
        is_member = dict(zip(_ASCII, members, strict=True))
        # What each ASCII character becomes: itself, perhaps in lower case, or a space.
        lowered = (character.lower() if lowercase else character for character in _ASCII)
        self._spaced = "".join(character if is_member[character] else " " for character in lowered)
        one_class = pattern == LETTERS or _ONE_CLASS.fullmatch(pattern) is not None
        self._by_spaces = one_class and not is_member[" "] and not is_member[_END]

    def cut(self, texts: Iterable[str], min_length: int) -> Pieces:
        """The words of the texts; one that is shorter in bytes than the minimum need not be told as a word."""
        texts = list(texts)
        series = _series(texts)  # checks them, too
        others = [place for place, text in enumerate(texts) if not text.isascii()]
        if not texts or not self._by_spaces or len(others) > len(texts) // 2:
            matches = self._matches(series)
            words = matches.explode(empty_as_null=False)
            is_word = (words.str.len_bytes() >= min_length).to_numpy()
            return Pieces(words, is_word, matches.list.len().to_numpy().astype(np.int64))
        words, ends = self._split(texts, series, others)
        is_word = (words.str.len_bytes() >= min_length).to_numpy(writable=True)
        is_word[ends] = False
        return Pieces(words, is_word, np.diff(ends, prepend=-1))

    def words(self, text: str) -> list[str]:
        """The words of one text, as `cut` gives them; the shortest ones too."""
        if self._by_spaces and isinstance(text, str) and text.isascii():
            return text.translate(self._spaced).split()
        words: list[str] = self._matches(_series([text]))[0].to_list()
        return words

    def matches(self, texts: Iterable[str]) -> list[list[str]]:
        """The words of each text as they are written there, capitals and all."""
        pattern = f"(?i){self._pattern}" if self._lowercase else self._pattern
        return _series(list(texts)).str.extract_all(pattern).to_list()

    def _split(self, texts: list[str], series: pl.Series, others: list[int]) -> tuple[pl.Series, NDArray[np.int64]]:
        """The texts cut at spaces, and where the mark after each stands."""
        spaced = [text.translate(self._spaced) if text.isascii() else "" for text in texts]
        if others:
            for place, words in zip(others, self._matches(series.gather(others)).list.join(" "), strict=True):
                spaced[place] = words
        # All texts as one, so that nothing but the words is made of them.
        spaced.append("")
        pieces = pl.Series([f" {_END} ".join(spaced)]).str.split(" ").explode()
        ends = (pieces == _END).arg_true().to_numpy().astype(np.int64)
        return pieces.head(int(ends[-1]) + 1), ends

    def _matches(self, series: pl.Series) -> pl.Series:
        return (series.str.to_lowercase() if self._lowercase else series).str.extract_all(self._pattern)


def _series(texts: list[str]) -> pl.Series:
    try:
        series = pl.Series("text", texts, dtype=pl.String, strict=True)
        if not series.has_nulls():
            return series
    except (TypeError, UnicodeEncodeError):
        pass
    raise next(problem for place, text in enumerate(texts) if (problem := _wrong(text, place)))


def _wrong(text: object, place: int) -> CorpusError | None:
    if not isinstance(text, str):
        return CorpusError(f"text {place} is a {type(text).__name__}, not a string", hint="give texts as str")
    if not can_be_written(text):
        return CorpusError(
            f"text {place} holds half of a surrogate pair, which is no character",
            hint='clean it with text.encode("utf-8", "replace").decode()',
        )
    return None

"""From text to words: lower case, letters only, stop words left out, as the paper does it."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from parabit.errors import VocabularyError
from parabit.text.cutting import LETTERS, Cutter

_LETTERS = re.compile("[a-z]+")


class Tokens(NamedTuple):
    """The words of some documents, each distinct word written once."""

    words: pl.Series  # (distinct,) strings, in the order in which they first occur
    codes: NDArray[np.uint32]  # (tokens,) places in `words`, all documents one after the other
    lengths: NDArray[np.int64]  # (documents,) tokens a document


@lru_cache(maxsize=1)
def english_stop_words() -> frozenset[str]:
    """The 318 words of the Glasgow information retrieval group, scikit-learn's list too: the paper's sizes follow.

    Example:
        >>> "the" in english_stop_words(), "hubble" in english_stop_words()
        (True, False)
    """
    return frozenset(files("parabit.text").joinpath("english.txt").read_text().split())


def read_stop_words(name: str) -> frozenset[str]:
    """The stop words that a user names: `english`, `none`, or a UTF-8 file with a word a line.

    Example:
        >>> len(read_stop_words("english")), len(read_stop_words("none"))
        (318, 0)
    """
    if name == "english":
        return english_stop_words()
    if name == "none":
        return frozenset()
    try:
        lines = Path(name).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not UTF-8 text"
        raise VocabularyError(
            f"the stop words cannot be read from {name}: {reason}",
            hint="give english, none, or a file with a word a line",
        ) from problem
    return frozenset(word for line in lines if (word := line.strip().lower()))


@dataclass(frozen=True)
class Tokenizer:
    """Splits texts into words: whatever matches `pattern`, of a length in bounds, and is no stop word.

    Words that are too short, too long or stop words are left out as if they had not been written, so that the words
    around them become neighbours. Patterns are those of Rust's regex crate; lengths are in characters.

    Example:
        >>> Tokenizer().words("The Hubble telescope was repaired in 1993, à propos.")
        ['hubble', 'telescope', 'repaired', 'propos']
        >>> Tokenizer(stop_words=frozenset()).words("Ça va?")
        ['ça', 'va']
    """

    pattern: str = LETTERS
    lowercase: bool = True
    min_length: int = 2
    max_length: int = 15
    stop_words: frozenset[str] = field(default_factory=english_stop_words)

    def __post_init__(self) -> None:
        if not 1 <= self.min_length <= self.max_length:
            raise VocabularyError(
                f"words of {self.min_length} to {self.max_length} characters cannot be",
                hint="the shortest length is at least 1 and at most the longest",
            )
        if not isinstance(self.stop_words, frozenset | set) or not all(
            isinstance(word, str) for word in self.stop_words
        ):
            raise VocabularyError(
                "stop words must be a set of strings",
                hint='for example frozenset({"the", "of"}), or read_stop_words(FILE)',
            )
        if not isinstance(self.pattern, str):
            raise VocabularyError(f"the pattern is a {type(self.pattern).__name__}, not a string", hint=r"try \p{L}+")
        _ = self._cutter  # a pattern that is not valid is told here

    def words(self, text: str) -> list[str]:
        """The words of one text, in order: what `tokenize` finds, without its data frames."""
        stop, shortest, longest = self._stop_set, self.min_length, self.max_length
        return [word for word in self._cutter.words(text) if shortest <= len(word) <= longest and word not in stop]

    def tokenize(self, texts: Iterable[str]) -> Tokens:
        """Split many texts at once; no Python object is made for a word."""
        pieces = self._cutter.cut(texts, self.min_length)
        # A dictionary of its own, not polars' global one, which would keep every word ever seen. It lives as long as
        # the series that uses it.
        dictionary = pl.Categories.random()
        encoded = pieces.words.filter(pl.Series(pieces.is_word)).cast(pl.Categorical(dictionary))
        words = dictionary.to_series().rename("word")
        lengths = _kept_lengths(pieces.is_word, pieces.lengths)
        return self._filtered(Tokens(words, encoded.to_physical().to_numpy(), lengths))

    def places(self, texts: Sequence[str], words: Collection[str]) -> list[list[tuple[int, int]]]:
        """Where some words stand in each text, from and to.

        Example:
            >>> Tokenizer().places(["The Hubble", "Hubbles"], ["hubble"])
            [[(4, 10)], []]
        """
        wanted = set(words)
        if not wanted:
            return [[] for _ in texts]
        plain = self.pattern == LETTERS and self.lowercase
        places = [_among_letters(text, wanted) if plain and text.isascii() else None for text in texts]
        others = [place for place, found in enumerate(places) if found is None]
        matches = self._cutter.matches([texts[place] for place in others]) if others else []
        for place, found in zip(others, matches, strict=True):
            places[place] = self._among(texts[place], found, wanted)
        return [found or [] for found in places]

    def _among(self, text: str, matches: list[str], wanted: set[str]) -> list[tuple[int, int]]:
        """The places of those matches of the pattern that are wanted words."""
        end, spans = 0, []
        for match in matches:
            # Matches come in order and do not overlap, so each is the next of its kind, unless the pattern asks for
            # what stands around it.
            start = text.index(match, end)
            end = start + len(match)
            if (match.lower() if self.lowercase else match) in wanted:
                spans.append((start, end))
        return spans

    @property
    def config(self) -> dict[str, Any]:
        """All that makes this tokenizer, for JSON."""
        return asdict(self) | {"stop_words": sorted(self.stop_words)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Tokenizer":
        """The tokenizer of a `config`.

        Example:
            >>> Tokenizer.from_config(Tokenizer().config) == Tokenizer()
            True
        """
        return cls(**{**config, "stop_words": frozenset(config["stop_words"])})

    @cached_property
    def _cutter(self) -> Cutter:
        return Cutter(self.pattern, self.lowercase)

    @cached_property
    def _stop_set(self) -> frozenset[str]:
        return frozenset(word.lower() for word in self.stop_words) if self.lowercase else frozenset(self.stop_words)

    @cached_property
    def _stop_list(self) -> pl.Series:
        return pl.Series("stop", [sorted(self._stop_set)], dtype=pl.List(pl.String))

    def _filtered(self, tokens: Tokens) -> Tokens:
        """Leave out words by their length and the stop words: decided once a distinct word, not once a token."""
        words = tokens.words
        fits = words.str.len_chars().is_between(self.min_length, self.max_length)
        keep = (fits & ~words.is_in(self._stop_list)).to_numpy()
        if keep.all():
            return tokens
        kept = keep[tokens.codes]  # (tokens,)
        renumbered = np.cumsum(keep, dtype=np.uint32) - np.uint32(1)
        lengths = _kept_lengths(kept, tokens.lengths)
        return Tokens(words.filter(pl.Series(keep)), renumbered[tokens.codes[kept]], lengths)


def _kept_lengths(kept: NDArray[np.bool_], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many pieces each document has when only some are kept."""
    filled = lengths > 0  # reduceat knows no empty stretch
    starts = np.cumsum(lengths) - lengths
    remaining = np.zeros(len(lengths), dtype=np.int64)
    remaining[filled] = np.add.reduceat(kept, starts[filled], dtype=np.int64)
    return remaining


def _among_letters(text: str, wanted: set[str]) -> list[tuple[int, int]]:
    """The places of words in a text that is ASCII, where words are runs of letters."""
    return [match.span() for match in _LETTERS.finditer(text.lower()) if match[0] in wanted]

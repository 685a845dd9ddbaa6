"""From text to tokens: words, numbers and what people search for beside them; and the number of each word."""

import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from importlib.resources import files
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parabit.errors import CorpusError, VocabularyError

if TYPE_CHECKING:
    import polars as pl  # imported where it is used: most queries need none, and it takes a third of a search's start

STOP = -2  # the number of stop words, which are left out
UNKNOWN = -1

# A word of up to 15 bytes is two integers of 8 bytes, the last of them its length: comparing these compares words.
_LONGEST = 15
_LOW = np.array([*((1 << 8 * min(n, 8)) - 1 for n in range(_LONGEST + 1)), 0], dtype=np.uint64)
_HIGH = np.array([*((1 << 8 * max(n - 8, 0)) - 1 for n in range(_LONGEST + 1)), 0], dtype=np.uint64)
_LENGTH = np.arange(_LONGEST + 2, dtype=np.uint64) << np.uint64(56)

_SLOTS = 1 << 19  # of a dictionary that grows or is large: 10 MB; with more, the processor's cache misses more


class Tokens(NamedTuple):
    """The tokens of some texts, in UTF-8."""

    text: bytes  # the tokens with separators between them
    starts: NDArray[np.int64]  # (tokens,)
    ends: NDArray[np.int64]  # (tokens,)
    low: NDArray[np.uint64]  # (tokens,) the first 8 bytes
    high: NDArray[np.uint64]  # (tokens,) the next 7 bytes and the length; 16 stands for any longer token
    lengths: NDArray[np.int64]  # (texts,) tokens per text


def split(spaced: Iterable[str], shortest: int, longest: int) -> Tokens:
    """The tokens of texts in which spaces stand between tokens, and newlines nowhere.

    Tokens of fewer or more characters are left out.
    """
    # Separators after the last token, so that 16 bytes can be read from any start.
    text = "\n".join(["", *spaced, " " * 16]).encode()
    data = np.frombuffer(text, dtype=np.uint8)
    inside = (data != ord(" ")) & (data != ord("\n"))
    borders = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    starts, ends = borders[::2], borders[1::2]
    sizes = ends - starts
    characters = sizes
    if not text.isascii():
        following = np.cumsum((data & 0xC0) == 0x80)  # bytes of a character after its first
        characters = sizes - following[ends - 1] + following[starts - 1]
    fits = (characters >= shortest) & (characters <= longest)
    if not fits.all():
        starts, ends, sizes = starts[fits], ends[fits], sizes[fits]
    sizes = np.minimum(sizes, _LONGEST + 1)
    at = np.ndarray(len(text) - 7, "<u8", text, strides=(1,))  # the 8 bytes from each place
    return Tokens(
        text,
        starts,
        ends,
        at[starts] & _LOW[sizes],
        at[starts + 8] & _HIGH[sizes] | _LENGTH[sizes],
        np.diff(np.searchsorted(starts, np.flatnonzero(data == ord("\n")))),
    )


# Scripts without spaces between words: Chinese and Japanese, Thai, Lao, Khmer and Burmese.
_UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U000323af\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1780-\u17d3\u1000-\u103f"
)
_SPECIAL = ("c++", "c#", "f#", ".net")
_SPECIAL_IN_ASCII = re.compile(r"(?<![a-z0-9])(?:c\+\+|[cf]#)|(?<!\w)\.net(?!\w)")  # but not in disc# or example.net
# A word is a letter or digit, then letters, digits and the marks that stand on letters: the vowel signs of Hindi, and
# accents that were typed apart from their letter. The word boundaries of ASCII are three times as fast as Unicode's.
WORDS = (
    rf"(?i:c\+\+|[cf]#|(?-u:\B)\.net(?-u:\b))|[{_UNSPACED}]+"
    rf"|[[\p{{L}}\p{{Nd}}]--[{_UNSPACED}]][[\p{{L}}\p{{M}}\p{{Nd}}]--[{_UNSPACED}]]*"
)
PAPER_WORDS = "[a-z]+"

_ASCII = [chr(code) for code in range(128)]
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]{{2,}}")
_TOKEN = re.compile("[^ ]+")
_END = "\n"  # stands as a word of its own after each text


@lru_cache(maxsize=1)
def english_stop_words() -> frozenset[str]:
    """The 318 stop words of the Glasgow information retrieval group, which scikit-learn and the paper use too."""
    return frozenset(files("parabit.text").joinpath("english.txt").read_text().split())


def read_stop_words(name: str) -> frozenset[str]:
    """The stop words that a user names: `english`, `none`, or a UTF-8 file with one word per line."""
    if name in ("english", "none"):
        return english_stop_words() if name == "english" else frozenset()
    try:
        lines = Path(name).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not UTF-8 text"
        hint = "give english, none, or a file with one word per line"
        raise VocabularyError(f"the stop words cannot be read from {name}: {reason}", hint) from problem
    return frozenset(word for line in lines if (word := line.strip().lower()))


def _occurrences(spaced: str, word: str) -> Iterator[tuple[int, int]]:
    """Where a word stands in a text that has a space before and after each word, counted without the first space."""
    at = spaced.find(f" {word} ")
    while at >= 0:
        yield at, at + len(word)
        at = spaced.find(f" {word} ", at + len(word) + 1)


@dataclass(frozen=True)
class Tokenizer:
    r"""Splits texts into tokens, and says which of them models count.

    By default tokens are words of any script, numbers and mixtures of both (`486`, `mp3`), in lower case, and `c++`,
    `c#`, `f#` and `.net`. Everything else separates tokens: `don't` becomes `don` and `t`, `covid-19` becomes `covid`
    and `19`. Where a script has no spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese), tokens are pairs of
    neighbouring characters. `pattern` changes all of this: tokens are its matches, split at spaces. Patterns are those
    of Rust's regex crate. `fold_accents` removes accents: `é` becomes `e`.

    `stop_words`, `min_length` and `max_length` (in characters) do not change tokens. Models leave such tokens out as if
    they had not been written, so that the words around them become neighbours.

    Example:
        >>> tokenizer = Tokenizer()
        >>> tokenizer.words("The C++ code of the Hubble's 486, 1993")
        ['the', 'c++', 'code', 'of', 'the', 'hubble', 's', '486', '1993']
        >>> tokenizer.content_words("The C++ code of the Hubble's 486, 1993")
        ['c++', 'code', 'hubble', '486', '1993']
        >>> tokenizer.words("東京都"), Tokenizer(fold_accents=True).words("Ça va?")
        (['東京', '京都'], ['ca', 'va'])
    """

    pattern: str = WORDS
    lowercase: bool = True
    fold_accents: bool = False
    min_length: int = 2
    max_length: int = 15
    stop_words: frozenset[str] = field(default_factory=english_stop_words)

    def __post_init__(self) -> None:
        if not 1 <= self.min_length <= self.max_length:
            lengths = f"{self.min_length} to {self.max_length}"
            raise VocabularyError(f"words of {lengths} characters are not possible", hint="give at least 1 to more")
        if not (
            isinstance(self.stop_words, frozenset | set) and all(isinstance(word, str) for word in self.stop_words)
        ):
            raise VocabularyError("stop words must be a set of strings", hint='for example frozenset({"the", "of"})')
        _ = self._ascii_table  # raises if the pattern is not valid

    @classmethod
    def paper(cls) -> "Tokenizer":
        """The paper's: runs of the letters a to z, and words of 2 to 15 of them count."""
        return cls(PAPER_WORDS, max_length=15)

    def words(self, text: str) -> list[str]:
        """The tokens of one text, in order."""
        return _TOKEN.findall(self.spaced([text])[0])

    def content_words(self, text: str) -> list[str]:
        """The tokens of one text that models count."""
        stop, shortest, longest = self.normal_stop_words, self.min_length, self.max_length
        return [word for word in self.words(text) if shortest <= len(word) <= longest and word not in stop]

    def content_tokens(self, texts: Iterable[str]) -> Tokens:
        """The tokens of many texts that have a length that models count; their stop words are still there."""
        return split(self.spaced(list(texts)), self.min_length, self.max_length)

    def places(self, texts: Sequence[str], words: Collection[str]) -> list[list[tuple[int, int]]]:
        """Where some tokens stand in each text, from and to; overlapping places become one."""
        wanted = set(words)
        found: list[list[tuple[int, int]]] = [[] for _ in texts]
        for text, merged in zip(texts if wanted else (), found, strict=False):
            for start, end in self._spans_of(text, wanted):
                overlaps = merged and start < merged[-1][1]
                merged.append((merged.pop()[0] if overlaps else start, end))
        return found

    @property
    def config(self) -> dict[str, Any]:
        """Everything that makes this tokenizer, for JSON."""
        return asdict(self) | {"stop_words": sorted(self.stop_words)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Tokenizer":
        """The tokenizer of a `config`."""
        return cls(**{**config, "stop_words": frozenset(config["stop_words"])})

    def spaced(self, texts: list[str]) -> list[str]:
        """The tokens of each text with spaces between them.

        Most text is ASCII. There the usual tokens are what stays when every other character becomes a space, which
        takes two thirds of the time of the regular expression.
        """
        if wrong := [text for text in texts if not isinstance(text, str)]:
            raise CorpusError(f"a text is a {type(wrong[0]).__name__}, not a string", hint="give texts as str")
        table, plain = self._ascii_table, [self._splits_at_spaces(text) for text in texts]
        spaced = [text.translate(table) if split else "" for text, split in zip(texts, plain, strict=True)]
        others = [place for place, split in enumerate(plain) if not split]
        if not others:
            return spaced
        matches = self._matches([self._normalized(texts[place]) for place in others])
        for place, joined in zip(others, matches.list.join(" "), strict=True):
            tokens = joined.replace(_END, " ")
            if self.pattern == WORDS and not tokens.isascii():
                tokens = _UNSPACED_RUN.sub(lambda run: " ".join(map(add, run[0], run[0][1:])), tokens)
            spaced[place] = tokens
        return spaced

    def _spans_of(self, text: str, words: set[str]) -> list[tuple[int, int]]:
        """Start and end of some tokens, in order."""
        if self._splits_at_spaces(text):  # looking for a few words takes a tenth of the time of looking at all tokens
            spaced = f" {text.translate(self._ascii_table)} "
            return sorted(span for word in words for span in _occurrences(spaced, word))
        return [(start, end) for start, end, word in self._spans(text) if word in words]

    def _spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and token of each token of a text."""
        normal, end = self._normalized(text), 0
        folded = map(_FOLDED.__getitem__, map(ord, text)) if self.fold_accents else text
        origin = [place for place, characters in enumerate(folded) for _ in characters]  # of each character of `normal`
        for match in self._matches([normal])[0].to_list():
            # Matches come in order and do not overlap, so each is the next of its kind, unless the pattern asks for
            # what stands around it.
            start = normal.index(match, end)
            end = start + len(match)
            if self.pattern == WORDS and _UNSPACED_RUN.fullmatch(match):
                tokens = [(place, match[place : place + 2]) for place in range(len(match) - 1)]
            else:
                tokens = [(token.start(), token[0]) for token in _TOKEN.finditer(match.replace(_END, " "))]
            for offset, token in tokens:
                first = start + offset
                yield origin[first], origin[first + len(token) - 1] + 1, token

    def _splits_at_spaces(self, text: str) -> bool:
        if self.pattern == WORDS and text.isascii():
            lowered = text.lower()
            perhaps = "+" in lowered or "#" in lowered or ".net" in lowered  # a fifth of the time of the four in full
            return not (perhaps and any(map(lowered.__contains__, _SPECIAL)) and _SPECIAL_IN_ASCII.search(lowered))
        return self.pattern == PAPER_WORDS and text.isascii()

    def _normalized(self, text: str) -> str:
        """The text as tokens are written. Of all capitals only \u0130 would become two characters in lower case."""
        if self.fold_accents:
            text = text.translate(_FOLDED)
        return text.replace("\u0130", "i").lower() if self.lowercase else text

    def _matches(self, texts: list[str]) -> "pl.Series":
        import polars as pl

        try:
            return pl.Series(texts, dtype=pl.String).str.extract_all(self.pattern)
        except UnicodeEncodeError as problem:
            hint = 'clean it with text.encode("utf-8", "replace").decode()'
            raise CorpusError("a text has half of a surrogate pair, which is not a character", hint) from problem

    @cached_property
    def _ascii_table(self) -> str:
        """What each ASCII character becomes: itself, perhaps in lower case, or a space if no token has it."""
        lowered = "".join(_ASCII).lower() if self.lowercase else "".join(_ASCII)
        if self.pattern == WORDS:
            return "".join(character if character.isalnum() else " " for character in lowered)
        import polars as pl

        try:
            members = pl.Series(list(lowered)).str.contains(rf"\A(?:{self.pattern})\z")
        except pl.exceptions.ComputeError as problem:
            reason = " ".join(str(problem).split())
            raise VocabularyError(f"the pattern {self.pattern!r} is not valid: {reason}", r"try \p{L}+") from problem
        return "".join(character if member else " " for character, member in zip(lowered, members, strict=True))

    @cached_property
    def normal_stop_words(self) -> frozenset[str]:
        """The stop words as tokens are written."""
        return frozenset(map(self._normalized, self.stop_words))


class _Folding(dict[int, str]):
    """What each character is without accents, found on first use."""

    def __missing__(self, code: int) -> str:
        parts = unicodedata.normalize("NFD", chr(code))
        plain = "".join(part for part in parts if not "\u0300" <= part <= "\u036f")
        self[code] = chr(code) if plain == parts else unicodedata.normalize("NFC", plain)
        return self[code]


_FOLDED = _Folding()


class Dictionary:
    """Words and their numbers; a defaultdict gives new words new numbers, in any other dict they are unknown.

    In front of it there is a table in which a word's hash says where its number is. The first word of a hash has the
    place; the others, few or rare because the table is large, are looked up one by one.
    """

    def __init__(self, numbers: dict[str, int]) -> None:
        self.numbers = numbers
        self._grows = isinstance(numbers, defaultdict)

    def look_up(self, tokens: Tokens) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The numbers of tokens without stop words, -1 for unknown ones, and how many each text has."""
        table = self._table
        slots = table.slots(tokens)
        numbers = table.numbers[slots]
        missed = np.flatnonzero((table.low[slots] != tokens.low) | (table.high[slots] != tokens.high))
        if self._grows:
            own = slots[missed]
            new = table.firsts(own, tokens, missed)
            table.put(slots[new], tokens, new, self._one_by_one(tokens, new))
            numbers[missed] = table.numbers[own]
            missed = missed[(table.low[own] != tokens.low[missed]) | (table.high[own] != tokens.high[missed])]
        numbers[missed] = self._one_by_one(tokens, missed)
        kept = numbers != STOP
        before = np.concatenate([[0], np.cumsum(kept)])
        return numbers[kept], np.diff(before[np.cumsum(tokens.lengths)], prepend=0)

    def forget(self, words: Collection[str]) -> None:
        """Remove words. Their numbers are not given again."""
        for word in words:
            del self.numbers[word]
        del self._table

    @cached_property  # so that a few words can be looked up in `numbers` without it
    def _table(self) -> "_Table":
        size = _SLOTS if self._grows else min(_SLOTS, 1 << (8 * len(self.numbers) + 1).bit_length())
        table = _Table(np.zeros(size, np.uint64), np.zeros(size, np.uint64), np.zeros(size, np.int32))
        words = split([" ".join(self.numbers)], 1, sys.maxsize)
        slots = table.slots(words)
        first = table.firsts(slots, words, np.arange(len(slots)))
        numbers = np.fromiter(self.numbers.values(), np.int32, len(self.numbers))
        table.put(slots[first], words, first, numbers[first])
        return table

    def _one_by_one(self, tokens: Tokens, places: NDArray[np.intp]) -> list[int]:
        text, numbers = tokens.text, self.numbers
        spans = zip(tokens.starts[places].tolist(), tokens.ends[places].tolist(), strict=True)
        words = (text[start:end].decode() for start, end in spans)
        return [numbers[word] for word in words] if self._grows else [numbers.get(word, UNKNOWN) for word in words]


class _Table(NamedTuple):
    low: NDArray[np.uint64]  # (slots,) a word as in Tokens
    high: NDArray[np.uint64]  # (slots,) 0 in a free slot
    numbers: NDArray[np.int32]  # (slots,)

    def slots(self, tokens: Tokens) -> NDArray[np.intp]:
        """Where the number of each token is, if anywhere."""
        # Multiplied by large odd numbers, so that every byte changes the first bits.
        mixed = (tokens.high * np.uint64(0xC2B2AE3D27D4EB4F) + tokens.low) * np.uint64(0x9E3779B97F4A7C15)
        slots: NDArray[np.intp] = (mixed >> np.uint64(65 - len(self.low).bit_length())).astype(np.intp)
        return slots

    def firsts(self, slots: NDArray[np.intp], tokens: Tokens, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """The first of some places for each free slot, if its token is short enough."""
        free = (self.high[slots] == 0) & (tokens.high[places] < _LENGTH[-1])
        slots, places = slots[free], places[free]
        self.numbers[slots[::-1]] = places[::-1]  # of places with the same slot, the last that is written stays
        first: NDArray[np.intp] = places[self.numbers[slots] == places]
        return first

    def put(self, slots: NDArray[np.intp], tokens: Tokens, places: NDArray[np.intp], numbers: ArrayLike) -> None:
        """Write the tokens at some places, and their numbers, to slots."""
        self.numbers[slots] = numbers
        self.low[slots], self.high[slots] = tokens.low[places], tokens.high[places]

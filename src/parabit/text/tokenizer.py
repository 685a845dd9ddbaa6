"""From text to tokens: words, numbers and what people search for beside them."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from importlib.resources import files
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import CorpusError, VocabularyError
from parabit.parallel import note_polars
from parabit.untrusted import FLAG, Rule, UnexpectedError, check_object, list_of, whole

if TYPE_CHECKING:
    import polars as pl  # imported where it is used: most queries need none, and it takes a third of a search's start

# Scripts without spaces between words: Chinese and Japanese, Thai, Lao, Khmer and Burmese.
_UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U000323af\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1780-\u17d3\u1000-\u103f"
)
_SPECIAL = ("c++", "c#", "f#", ".net")
_SPECIAL_IN_ASCII = re.compile(
    r"(?<![a-z0-9])(?:c\+\+|[cf]#)|(?<!\w)\.net(?!\w)"
)  # but not in disc# or example.net
# A word is a letter or digit, then letters, digits and the marks that stand on letters: the vowel signs of Hindi, and
# accents that were typed apart from their letter. The word boundaries of ASCII are three times as fast as Unicode's.
WORDS = (
    rf"(?i:c\+\+|[cf]#|(?-u:\B)\.net(?-u:\b))|[{_UNSPACED}]+"
    rf"|[[\p{{L}}\p{{Nd}}]--[{_UNSPACED}]][[\p{{L}}\p{{M}}\p{{Nd}}]--[{_UNSPACED}]]*"
)
PAPER_WORDS = "[a-z]+"
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]{{2,}}")
_TOKEN = re.compile("[^ ]+")
# Characters of a token: what polars compares them with.
_LENGTH = whole(1, (1 << 31) - 1)
_STRING = Rule(lambda value: isinstance(value, str), "a string")
_RULES = {
    "pattern": _STRING,
    "lowercase": FLAG,
    "fold_accents": FLAG,
    "min_length": _LENGTH,
    "max_length": _LENGTH,
    "stop_words": list_of(_STRING),
}


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
        raise VocabularyError(
            f"the stop words cannot be read from {name}: {reason}", hint
        ) from problem
    return frozenset(word for line in lines if (word := line.strip().lower()))


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
            raise VocabularyError(
                f"words of {lengths} characters are not possible", hint="give at least 1 to more"
            )
        is_set = isinstance(self.stop_words, frozenset | set)
        if not (is_set and all(isinstance(word, str) for word in self.stop_words)):
            raise VocabularyError(
                "stop words must be a set of strings", hint='for example frozenset({"the", "of"})'
            )
        if self.pattern not in (WORDS, PAPER_WORDS):
            import polars as pl

            note_polars()

            try:
                pl.Series([""]).str.contains(self.pattern)
            except (pl.exceptions.ComputeError, pl.exceptions.PanicException) as problem:
                # Then polars shows its own expression.
                reason, _, _ = str(problem).partition("This error occurred")
                message = f"the pattern {self.pattern!r} is not valid: {' '.join(reason.split())}"
                raise VocabularyError(message, hint=r"try \p{L}+") from problem

    @classmethod
    def paper(cls) -> "Tokenizer":
        """The paper's: runs of the letters a to z, and words of 2 to 15 of them count."""
        return cls(PAPER_WORDS)

    def words(self, text: str) -> list[str]:
        """The tokens of one text, in order."""
        if isinstance(text, str) and self._splits_at_spaces(
            text
        ):  # half the time: all hits are split for a page
            return text.translate(self._ascii_table).split()
        return _TOKEN.findall(self.spaced([text])[0])

    def content_words(self, text: str) -> list[str]:
        """The tokens of one text that models count."""
        stop, shortest, longest = self._stop_words, self.min_length, self.max_length
        return [
            word
            for word in self.words(text)
            if shortest <= len(word) <= longest and word not in stop
        ]

    def content_tokens(self, texts: Iterable[str]) -> "tuple[pl.Series, NDArray[np.int64]]":
        """The tokens of many texts that models count, one text after the other, and how many each text has."""
        import polars as pl

        note_polars()

        parts = pl.Series(self.spaced(list(texts)), dtype=pl.String).str.split(" ")
        words = parts.explode()  # empty ones too, where several spaces stand side by side
        counted = words.str.len_chars().is_between(self.min_length, self.max_length) & ~words.is_in(
            self._stop_words
        )
        before = np.concatenate([[0], np.cumsum(counted.to_numpy())])
        return words.filter(counted), np.diff(
            before[np.cumsum(parts.list.len().to_numpy())], prepend=0
        )

    def places(self, text: str, words: Collection[str]) -> list[tuple[int, int]]:
        """Where some tokens stand in a text, from and to; overlapping places become one."""
        wanted, spans, merged = set(words), list[tuple[int, int]](), list[tuple[int, int]]()
        if wanted and self._splits_at_spaces(text):  # a third of the time of looking at all tokens
            pattern = rf"(?<![^ ])(?:{'|'.join(map(re.escape, wanted))})(?![^ ])"
            spans = [
                match.span() for match in re.finditer(pattern, text.translate(self._ascii_table))
            ]
        elif wanted:
            spans = [(start, end) for start, end, word in self._spans(text) if word in wanted]
        for start, end in spans:
            overlaps = merged and start < merged[-1][1]
            merged.append((merged.pop()[0] if overlaps else start, end))
        return merged

    @property
    def config(self) -> dict[str, Any]:
        """Everything that makes this tokenizer, for JSON."""
        return asdict(self) | {"stop_words": sorted(self.stop_words)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Tokenizer":
        """The tokenizer of a `config`; anything wrong with it is a VocabularyError."""
        try:
            check_object(config, _RULES, "tokenizer")
        except UnexpectedError as problem:
            raise VocabularyError(
                f"this is no tokenizer: {problem}", hint="use what `Tokenizer.config` gives"
            ) from problem
        return cls(**{**config, "stop_words": frozenset(config["stop_words"])})

    def spaced(self, texts: list[str]) -> list[str]:
        """The tokens of each text with spaces between them."""
        if wrong := [text for text in texts if not isinstance(text, str)]:
            raise CorpusError(
                f"a text is a {type(wrong[0]).__name__}, not a string", hint="give texts as str"
            )
        # In ASCII, which most text is, tokens stay when all else becomes a space: faster than the regular expression.
        table, plain = self._ascii_table, [self._splits_at_spaces(text) for text in texts]
        spaced = [
            text.translate(table) if split else "" for text, split in zip(texts, plain, strict=True)
        ]
        others = [place for place, split in enumerate(plain) if not split]
        if not others:
            return spaced
        matches = self._matches([self._normalized(texts[place]) for place in others]).list.join(" ")
        for place, joined in zip(others, matches, strict=True):
            tokens = joined.replace("\n", " ")  # files of vocabularies have a word per line
            if self.pattern == WORDS and not tokens.isascii():
                tokens = _UNSPACED_RUN.sub(
                    lambda run: " ".join(map(add, run[0], run[0][1:])), tokens
                )
            spaced[place] = tokens
        return spaced

    def _spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and token of each token of a text."""
        normal, end = self._normalized(text), 0
        folded = map(_FOLDED.__getitem__, map(ord, text)) if self.fold_accents else text
        origin = [
            place for place, characters in enumerate(folded) for _ in characters
        ]  # of each character of `normal`
        for match in self._matches([normal])[0].to_list():
            # Matches come in order and do not overlap, so each is the next of its kind, unless the pattern asks for
            # what stands around it.
            start = normal.index(match, end)
            end = start + len(match)
            if self.pattern == WORDS and _UNSPACED_RUN.fullmatch(match):
                tokens = [(place, match[place : place + 2]) for place in range(len(match) - 1)]
            else:
                tokens = [
                    (token.start(), token[0]) for token in _TOKEN.finditer(match.replace("\n", " "))
                ]
            for offset, token in tokens:
                first = start + offset
                yield origin[first], origin[first + len(token) - 1] + 1, token

    def _splits_at_spaces(self, text: str) -> bool:
        if self.pattern == WORDS and text.isascii():
            lowered = text.lower()
            perhaps = (
                "+" in lowered or "#" in lowered or ".net" in lowered
            )  # a fifth of the time of the four in full
            return not (
                perhaps
                and any(map(lowered.__contains__, _SPECIAL))
                and _SPECIAL_IN_ASCII.search(lowered)
            )
        return self.pattern == PAPER_WORDS and text.isascii()

    def _normalized(self, text: str) -> str:
        """The text as tokens are written. Of all capitals only \u0130 would become two characters in lower case."""
        if self.fold_accents:
            text = text.translate(_FOLDED)
        return text.replace("\u0130", "i").lower() if self.lowercase else text

    def _matches(self, texts: list[str]) -> "pl.Series":
        import polars as pl

        note_polars()

        try:
            return pl.Series(texts, dtype=pl.String).str.extract_all(self.pattern)
        except UnicodeEncodeError as problem:
            hint = 'clean it with text.encode("utf-8", "replace").decode()'
            raise CorpusError(
                "a text has half of a surrogate pair, which is not a character", hint
            ) from problem

    @cached_property
    def _ascii_table(self) -> str:
        """What each ASCII character becomes, where words are split at spaces: itself, perhaps in lower case, or one."""
        characters = bytes(range(128)).decode()
        lowered = characters.lower() if self.lowercase else characters
        return re.sub("[^a-z]" if self.pattern == PAPER_WORDS else "[^A-Za-z0-9]", " ", lowered)

    @cached_property
    def _stop_words(self) -> frozenset[str]:
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


class Numbering:
    """Gives words numbers from 0, in the order in which they come: polars does so for the categories of a column."""

    def __init__(self, words: "list[str] | pl.Series | None" = None) -> None:
        import polars as pl

        note_polars()

        self._categories = pl.Categories.random()
        first = pl.Series(words, dtype=pl.String)
        self._held = first.cast(
            pl.Categorical(self._categories)
        )  # polars forgets categories that no series has

    def of(self, words: "pl.Series") -> NDArray[np.uint32]:
        """The numbers of words; new words get new numbers."""
        return words.cast(self._held.dtype).to_physical().to_numpy()

    def words(self) -> "pl.Series":
        """The words, in the order of their numbers."""
        return self._categories.to_series()

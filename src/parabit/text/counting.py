"""Counting words and bigrams of a corpus of any size: partial counts, merged one part of the keys at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from parabit.errors import VocabularyError
from parabit.parallel import ordered_map
from parabit.text.spool import TokenSpool
from parabit.text.tokenizer import Tokenizer, Tokens

# So many partial counts are merged at a time: some 1 GB for words, half of it for bigrams.
MERGED_AT_ONCE = 16_000_000


@dataclass(frozen=True)
class VocabularyRule:
    """What makes a vocabulary of a corpus: its tokenizer, and which words and bigrams are kept.

    `min_count` holds for words and, unless `min_bigram_count` is given, for bigrams too. `max_size` keeps the most
    frequent words and bigrams together. Of equally frequent features words come first, in the order of the alphabet,
    then bigrams, in the order of their words in the vocabulary.
    A bigram is kept only if both its words are.

    Example:
        >>> VocabularyRule(bigrams=True, min_count=10).least_bigrams
        10
    """

    tokenizer: Tokenizer = field(default_factory=Tokenizer)
    bigrams: bool = False
    min_count: int = 1
    min_bigram_count: int | None = None
    max_size: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_count", "min_bigram_count", "max_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise VocabularyError(f"{name} is {value}", hint="it must be at least 1")

    @property
    def least_bigrams(self) -> int:
        """How often a bigram must occur."""
        return self.min_count if self.min_bigram_count is None else self.min_bigram_count


def count_words(spool: TokenSpool, rule: VocabularyRule) -> pl.DataFrame:
    """The kept words with their counts, most frequent first."""
    parts = 1 + spool.rows // MERGED_AT_ONCE
    frames = []
    for part in range(parts):
        counts = spool.scan_words()
        if parts > 1:
            counts = counts.filter(pl.col("word").hash() % parts == part)
        frames.append(merge_words(counts, rule.min_count))
    return most_frequent_words(frames, rule)


def merge_words(counts: pl.LazyFrame, least: int) -> pl.DataFrame:
    """Partial counts of words, `word` and `count`, added up; words that occur less often are left out."""
    return counts.group_by("word").agg(pl.col("count").sum()).filter(pl.col("count") >= least).collect()


def most_frequent_words(parts: Sequence[pl.DataFrame], rule: VocabularyRule) -> pl.DataFrame:
    """The kept words of all parts of the keys, most frequent first."""
    words = pl.concat(parts).sort(["count", "word"], descending=[True, False])
    return words if rule.max_size is None else words.head(rule.max_size)


def pair_keys(
    ids: NDArray[np.int32], lengths: NDArray[np.int64], words: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The bigrams in a stream of word ids, as numbers `first * words + second`, and which places they start at.

    Two words are a bigram if they stand side by side in one document and are both known (not -1).

    Example:
        >>> keys, starts = pair_keys(np.array([0, 2, -1, 1, 1], dtype=np.int32), np.array([4, 1]), words=3)
        >>> keys.tolist(), starts.tolist()
        ([2], [True, False, False, False])
    """
    starts = (ids[:-1] >= 0) & (ids[1:] >= 0)
    ends = np.cumsum(lengths)[:-1]  # the last token of a document has no neighbour
    inside = ends[(ends > 0) & (ends < len(ids))]
    starts[inside - 1] = False
    return ids[:-1][starts].astype(np.int64) * words + ids[1:][starts], starts


def count_bigrams(
    spool: TokenSpool,
    word_ids: Callable[[pl.Series], NDArray[np.int32]],
    word_counts: NDArray[np.int64],
    least: int,
    batch_done: Callable[[], None],
) -> pl.DataFrame:
    """The bigrams of known words that occur often enough: `first`, `second` (word ids) and `count`, in no order."""
    words = len(word_counts)
    bounds = key_bounds(word_counts)
    paths = [spool.folder / f"bigrams-{part:04d}" for part in range(len(bounds) + 1)]
    for rows in ordered_map(lambda tokens: partial_bigrams(tokens, word_ids, words), spool):
        for path, part in zip(paths, split_keys(rows, bounds), strict=True):
            with path.open("ab") as file:
                file.write(part.data)
        batch_done()

    frames = []
    for path in paths:
        rows = np.fromfile(path, dtype=np.int64).reshape(-1, 2)
        path.unlink()
        frames.append(merge_bigrams(rows, words, least))
    return pl.concat(frames)


def partial_bigrams(
    tokens: Tokens, word_ids: Callable[[pl.Series], NDArray[np.int32]], words: int
) -> NDArray[np.int64]:
    """The bigrams of some tokens, as (bigrams, 2) rows of key and count, in the order of the keys."""
    ids = word_ids(tokens.words)[tokens.codes] if len(tokens.codes) else np.empty(0, np.int32)
    return np.stack(run_lengths(np.sort(pair_keys(ids, tokens.lengths, words)[0])), axis=1)


def split_keys(rows: NDArray[np.int64], bounds: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows in the order of their keys, cut where the next range of keys begins.

    Example:
        >>> [part.tolist() for part in split_keys(np.array([[1, 5], [4, 1], [9, 2]]), np.array([4, 9]))]
        [[[1, 5]], [[4, 1]], [[9, 2]]]
    """
    return np.split(rows, np.searchsorted(rows[:, 0], bounds))


def add_up(rows: NDArray[np.int64]) -> pl.LazyFrame:
    """Rows of key and count, in no order, with the counts of each key added up."""
    return pl.DataFrame({"key": rows[:, 0], "count": rows[:, 1]}).lazy().group_by("key").agg(pl.col("count").sum())


def merge_bigrams(rows: NDArray[np.int64], words: int, least: int) -> pl.DataFrame:
    """Partial counts of the bigrams in a range of keys added up: `first`, `second` and `count` of the frequent ones."""
    merged = add_up(rows).filter(pl.col("count") >= least)
    return merged.select(first=pl.col("key") // words, second=pl.col("key") % words, count="count").collect()


def run_lengths(ordered: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct numbers of an ordered array and how often each stands there.

    Example:
        >>> values, counts = run_lengths(np.array([2, 2, 5]))
        >>> values.tolist(), counts.tolist()
        ([2, 5], [2, 1])
    """
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    return ordered[starts], np.diff(np.append(starts, len(ordered)))


def key_bounds(word_counts: NDArray[np.int64], at_once: int | None = None) -> NDArray[np.int64]:
    """Keys at which to cut the bigrams into ranges, so that none has many more rows than are merged at once.

    As many bigrams start with a word as it has occurrences, at most, so the ranges are known before counting.

    Example:
        >>> key_bounds(np.array([6, 3, 2, 1]), at_once=5)
        array([0, 8])
    """
    before, at_once = np.cumsum(word_counts), at_once or MERGED_AT_ONCE
    parts = 1 + int(before[-1]) // at_once
    return np.searchsorted(before, np.arange(1, parts) * at_once).astype(np.int64) * len(word_counts)

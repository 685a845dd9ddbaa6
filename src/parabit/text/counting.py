"""Counting the words and bigrams of documents, and choosing those that make the vocabulary."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from parabit.corpus import Texts, as_corpus
from parabit.errors import VocabularyError
from parabit.parallel import ordered_map
from parabit.progress import Progress, Report, silent
from parabit.text.bags import Bags, Vocabulary, bags_of_ids, pair_keys
from parabit.text.tokenizer import Numbering, Tokenizer

MOST_WORDS = 2_000_000  # different ones that `build_vocabulary` counts exactly
MOST_BIGRAMS = 5_000_000
_CHARACTERS = (
    1_000_000  # of a batch: small ones keep all cores busy, and their dictionaries in the cache
)
_MERGED = 1_000_000  # rows of counts that wait until they are added up
_SECOND = (
    1 << 32
) - 1  # the bits of a bigram's key that are its second word; those above are its first


@dataclass(frozen=True)
class VocabularyRule:
    """What makes a vocabulary of a corpus: its tokenizer, and which words and bigrams are kept.

    `min_count` holds for words and, unless `min_bigram_count` is given, for bigrams too. `max_size` keeps the most
    frequent words and bigrams together. Of equally frequent features words come first, in the order of the alphabet,
    then bigrams, in the order of their words. A bigram is kept only if both its words are.
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


def build_vocabulary(
    documents: Texts, rule: VocabularyRule | None = None, report: Report = silent
) -> Vocabulary:
    """Count the words, and by the rule the bigrams, of a corpus of any size in bounded memory.

    Counts are exact up to 2 million different words and 5 million different bigrams. Of more, the rarest are dropped
    while counting (J. Misra and D. Gries, "Finding repeated elements", 1982): in a corpus of n tokens, no count is too
    low by more than n / 2 million for words and n / 5 million for bigrams, and none is too high.

    Example:
        >>> vocabulary = build_vocabulary(["hubble space telescope", "space telescope"], VocabularyRule(bigrams=True))
        >>> vocabulary.names
        ['space', 'telescope', 'hubble', 'space telescope', 'hubble space']
    """
    counting = _Counting(rule or VocabularyRule(), MOST_WORDS, MOST_BIGRAMS)
    for _ in counting.read(documents, report):
        pass
    return counting.vocabulary()[0]


def count_bags(
    documents: Texts, rule: VocabularyRule | None = None, report: Report = silent
) -> tuple[Vocabulary, Bags]:
    """Count a vocabulary exactly and make the documents' bags, all in memory; the texts are read once.

    Example:
        >>> vocabulary, bags = count_bags(["hubble space telescope", "space telescope"])
        >>> len(vocabulary), bags.feature_lengths.tolist()
        (3, [3, 2])
    """
    counting = _Counting(rule or VocabularyRule())
    read = list(counting.read(documents, report))
    vocabulary, ids = counting.vocabulary()
    parts = []
    for part in ordered_map(lambda batch: bags_of_ids(ids[batch[0]], batch[1], vocabulary), read):
        parts.append(part)
        report(Progress("making bags", len(parts), "batches", len(parts) / len(read)))
    return vocabulary, Bags.joined(parts)


def _tally(
    keys: NDArray[np.int64], documents: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], ...]:
    """The distinct keys, how often each occurs, and in how many of the `size` documents."""
    # One number for key and document, so that one sort of plain integers counts both.
    entries, counts = np.unique(keys * size + documents, return_counts=True)
    distinct, starts, document_counts = np.unique(
        entries // size, return_index=True, return_counts=True
    )
    return distinct, np.add.reduceat(counts, starts) if len(starts) else counts, document_counts


class _Table:
    """Counts of integer keys: exact up to `most` keys, of more by Misra and Gries's method."""

    def __init__(self, most: int | None) -> None:
        schema = {"key": pl.Int64, "count": pl.Int64, "documents": pl.Int64, "missed": pl.Int32}
        self._most, self._parts = (
            most,
            [pl.DataFrame(schema=schema)],
        )  # the first part has been added up
        self.missed = 0  # occurrences at most, of any key

    def add(
        self, keys: NDArray[np.int64], counts: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> None:
        """Add counts, and if that makes too many keys, drop some."""
        frame = pl.DataFrame({"key": keys, "count": counts, "documents": documents})
        self._parts.append(frame.with_columns(missed=pl.lit(self.missed, pl.Int32)))
        if sum(map(len, self._parts[1:])) > max(_MERGED, len(self._parts[0])):
            self.merged()

    def merged(self) -> pl.DataFrame:
        """The counts of each key: `key`, `count`, `documents`, and how many occurrences may be `missed`."""
        table = pl.concat(self._parts)
        self._parts.clear()
        table = table.group_by("key").agg(
            pl.col("count", "documents").sum(), pl.col("missed").min()
        )
        while self._most is not None and len(table) > self._most:
            self.missed += 1
            table = table.filter(pl.col("count") + pl.col("missed") > self.missed)
        self._parts = [table]
        return table

    def renumber(self, numbers: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> None:
        """Give keys other numbers; those whose number is -1 are dropped."""
        table = self.merged()
        self._parts = [
            table.with_columns(key=numbers(table["key"].to_numpy())).filter(pl.col("key") >= 0)
        ]


def _pair(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """The key of each pair of words; -1 if one of them is -1."""
    return np.where((first < 0) | (second < 0), -1, first << 32 | second)


class _Counting:
    """The words and bigrams seen so far; words are counted by their numbers."""

    def __init__(
        self, rule: VocabularyRule, most_words: int | None = None, most_bigrams: int | None = None
    ) -> None:
        self._rule = rule
        self._numbering = Numbering()
        self._words, self._bigrams = _Table(most_words), _Table(most_bigrams)
        self._documents = self._tokens = 0

    def read(
        self, documents: Texts, report: Report
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
        """Count documents, split on all cores; of each batch the words' numbers, and how many each document has."""
        corpus = as_corpus(documents)
        texts = ([document.text for document in batch] for batch in corpus.batches(_CHARACTERS))
        for words, lengths in ordered_map(self._rule.tokenizer.content_tokens, texts):
            yield self._add(words, lengths), lengths
            report(Progress("reading", self._documents, "documents", corpus.share_read))

    def _add(self, words: pl.Series, lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
        numbers = self._numbering.of(words)
        self._documents += len(lengths)
        self._tokens += len(numbers)
        document = np.repeat(np.arange(len(lengths)), lengths)
        distinct, *counts = _tally(numbers.astype(np.int64), document, len(lengths))
        before = self._words.missed
        self._words.add(distinct, *counts)
        if self._rule.bigrams:
            # The batch's own numbers are small enough for a pair and a document to fit 64 bits.
            own = np.empty(numbers.max(initial=0) + 1, dtype=np.int32)
            own[distinct] = np.arange(len(distinct))
            size = max(len(distinct), 1)
            pairs, starts = pair_keys(own[numbers], lengths, size)
            pairs, *counts = _tally(pairs, document[:-1][starts], len(lengths))
            self._bigrams.add(_pair(distinct[pairs // size], distinct[pairs % size]), *counts)
        if self._words.missed > before:
            self._forget()
        return numbers

    def _forget(self) -> None:
        """Number the words that are still counted again, so that the others take no memory."""
        kept = self._words.merged()["key"].to_numpy()
        words = self._numbering.words()
        self._numbering = Numbering(words.gather(kept))
        numbers = np.full(len(words), -1)
        numbers[kept] = np.arange(len(kept))
        self._words.renumber(lambda keys: numbers[keys])
        self._bigrams.renumber(lambda keys: _pair(numbers[keys >> 32], numbers[keys & _SECOND]))

    def vocabulary(self) -> tuple[Vocabulary, NDArray[np.int32]]:
        """The vocabulary, and the id in it of each number that a word has had; -1 for words that it does not have."""
        rule, tokenizer = self._rule, self._rule.tokenizer
        if not self._documents:
            raise VocabularyError("the corpus has no documents", hint="give it at least one")
        if not self._tokens:
            lengths = f"{tokenizer.min_length} to {tokenizer.max_length}"
            hint = f"words match the pattern, have {lengths} characters and are not stop words; all this can be set"
            raise VocabularyError(f"not one word in {self._documents} documents", hint)
        named = pl.DataFrame({"word": self._numbering.words()}).with_row_index("key")
        frequent = self._words.merged().filter(pl.col("count") >= rule.min_count)
        words = named.join(frequent, on="key").sort(["count", "word"], descending=[True, False])
        if not len(words):
            raise VocabularyError(
                f"no word occurs {rule.min_count} times", hint="lower the minimum count"
            )
        ids = np.full(len(named), -1, dtype=np.int32)
        ids[words["key"].to_numpy()] = np.arange(len(words), dtype=np.int32)
        bigrams = self._frequent_bigrams(ids)
        features = pl.concat(
            [words.select("count", "documents"), bigrams.select("count", "documents")]
        )
        if rule.max_size is not None:
            # Words come first at equal counts. No bigram occurs more often than its words, so they stay if it does.
            chosen = np.sort(
                np.argsort(-features["count"].to_numpy(), kind="stable")[: rule.max_size]
            )
            kept = int(np.count_nonzero(chosen < len(words)))
            words, bigrams, features = (
                words.head(kept),
                bigrams.head(len(chosen) - kept),
                features[chosen],
            )
            ids[ids >= kept] = -1
        pairs = bigrams.select("first", "second").to_numpy().astype(np.int32)
        counts = features["count"].to_numpy(), features["documents"].to_numpy()
        return Vocabulary(
            tokenizer, words["word"].to_list(), pairs, *counts, self._documents, self._tokens
        ), ids

    def _frequent_bigrams(self, ids: NDArray[np.int32]) -> pl.DataFrame:
        """The bigrams of kept words, most frequent first: `first`, `second` (word ids), `count` and `documents`."""
        least = self._rule.min_bigram_count or self._rule.min_count
        table = self._bigrams.merged().filter(pl.col("count") >= least)
        keys = table["key"].to_numpy()
        table = table.with_columns(first=ids[keys >> 32], second=ids[keys & _SECOND])
        known = table.filter(pl.col("first") >= 0, pl.col("second") >= 0)
        return known.sort(["count", "first", "second"], descending=[True, False, False])

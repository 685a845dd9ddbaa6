"""From counts to a vocabulary: which words and bigrams are kept, and in what order."""

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from parabit.errors import VocabularyError
from parabit.text.counting import VocabularyRule
from parabit.text.vocabulary import Vocabulary


def need_tokens(documents: int, tokens: int, rule: VocabularyRule) -> None:
    """Raise where there is nothing to count."""
    if not documents:
        raise VocabularyError("the corpus has no documents", hint="give it at least one")
    if not tokens:
        raise VocabularyError(
            f"not one word in {documents} documents",
            hint=f"words match {rule.tokenizer.pattern}, have {rule.tokenizer.min_length} to "
            f"{rule.tokenizer.max_length} characters and are no stop words; each of these can be set",
        )


def of_words(words: pl.DataFrame, rule: VocabularyRule, documents: int, tokens: int) -> Vocabulary:
    """The vocabulary of the kept words, `word` and `count`; in how many documents each is must still be counted."""
    if not len(words):
        raise VocabularyError(f"no word occurs {rule.min_count} times", hint="lower the minimum count")
    return Vocabulary(
        tokenizer=rule.tokenizer,
        words=words["word"],
        bigrams=np.empty((0, 2), dtype=np.int32),
        counts=words["count"].to_numpy(),
        document_frequencies=np.zeros(len(words), dtype=np.int64),
        documents=documents,
        tokens=tokens,
    )


def with_bigrams(vocabulary: Vocabulary, bigrams: pl.DataFrame, rule: VocabularyRule) -> Vocabulary:
    """The vocabulary with the frequent bigrams too: `first`, `second` and `count`, in any order."""
    bigrams = most_frequent_bigrams(bigrams, rule)
    words, counts = _largest(vocabulary.counts, bigrams["count"].to_numpy(), rule.max_size)
    return replace(
        vocabulary,
        words=vocabulary.words.head(words),
        bigrams=bigrams.head(len(counts) - words).select("first", "second").to_numpy().astype(np.int32),
        counts=counts,
        document_frequencies=np.zeros(len(counts), dtype=np.int64),
    )


def most_frequent_bigrams(bigrams: pl.DataFrame, rule: VocabularyRule) -> pl.DataFrame:
    """As many bigrams as a vocabulary can have, most frequent first."""
    ordered = bigrams.sort(["count", "first", "second"], descending=[True, False, False])
    return ordered if rule.max_size is None else ordered.head(rule.max_size)


def _largest(words: NDArray[np.int64], bigrams: NDArray[np.int64], size: int | None) -> tuple[int, NDArray[np.int64]]:
    """How many words stay, and the counts of all that stay, if only so many of the most frequent features may.

    Both counts come in descending order. A bigram never occurs more often than its words, so they stay if it does.
    """
    # Stable, and words first: at equal counts words go before bigrams.
    order = np.argsort(-np.concatenate([words, bigrams]), kind="stable")[:size]
    kept = int(np.count_nonzero(order < len(words)))
    return kept, np.concatenate([words[:kept], bigrams[: len(order) - kept]])

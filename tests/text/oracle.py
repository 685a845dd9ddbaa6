"""Counting in plain Python, to check the fast way by."""

import re
from collections import Counter
from itertools import pairwise

from parabit.text import Tokenizer


def words_of(text: str, tokenizer: Tokenizer) -> list[str]:
    """For patterns that mean the same in Python and Rust."""
    lowered = text.lower() if tokenizer.lowercase else text
    return [
        word
        for word in re.findall(tokenizer.pattern, lowered)
        if tokenizer.min_length <= len(word) <= tokenizer.max_length and word not in tokenizer.stop_words
    ]


def counted(texts: list[list[str]]) -> tuple[Counter[str], Counter[str]]:
    """Occurrences, and documents, of words and of bigrams written as `first second`."""
    counts: Counter[str] = Counter()
    documents: Counter[str] = Counter()
    for words in texts:
        features = [*words, *pairs(words)]
        counts.update(features)
        documents.update(set(features))
    return counts, documents


def pairs(words: list[str]) -> list[str]:
    return [f"{first} {second}" for first, second in pairwise(words)]

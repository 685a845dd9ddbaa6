"""Texts as training reads them, counted plainly."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from parabit.text import Bags


def count(texts: Sequence[str]) -> tuple[Bags, np.ndarray]:
    """Documents and how often each word occurs; words get their ids in the order of the alphabet."""
    ids = {
        word: number
        for number, word in enumerate(sorted({word for text in texts for word in text.split()}))
    }
    return count_ids([[ids[word] for word in text.split()] for text in texts], len(ids))


def count_ids(documents: Sequence[Sequence[int]], vocabulary: int) -> tuple[Bags, np.ndarray]:
    """The same of word ids."""
    bags = [sorted(Counter(document).items()) for document in documents]
    entries = [entry for bag in bags for entry in bag]
    features, counts = (
        np.array([entry[place] for entry in entries], dtype=np.int32) for place in (0, 1)
    )
    tokens = np.array([word for document in documents for word in document], dtype=np.int32)
    starts = [offsets([len(one) for one in some]) for some in (bags, documents)]
    return Bags(features, counts, starts[0], tokens, starts[1]), np.bincount(
        tokens, minlength=vocabulary
    )


def offsets(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

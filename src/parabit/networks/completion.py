"""Document completion: how well a code inferred from half of a document predicts the other half.

It judges a model on documents it has not seen, without labels.
"""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from parabit.networks.documents import Documents

# One batch of inference; where every position has a softmax of its own, as many as cost about the same.
MOST_HELD_OUT = {"dbow": 256, "dm": 64}
FEWEST_HELD_OUT = 10
SCORED_WORDS = 4096  # the softmax's denominator is taken over so many words, the same in every epoch


def hold_out(sizes: Tensor, share: float, seed: int, most: int = 256) -> tuple[Tensor, Tensor]:
    """Which documents are trained on and which are held out, at most so many, both in the order of the corpus.

    Only documents with at least two words to predict can be halved. Where fewer than 10 would be held out, none are:
    so few say nothing, and a small collection needs all it has.

    Example:
        >>> trained, held = hold_out(torch.full((1000,), 30), share=0.05, seed=0)
        >>> len(trained), len(held)
        (950, 50)
    """
    everything = torch.arange(len(sizes))
    count = min(int(len(sizes) * share), most)
    if count < FEWEST_HELD_OUT:
        return everything, everything[:0]
    rng = np.random.default_rng([seed, 1])
    able = np.flatnonzero((sizes > 1).cpu().numpy())
    if len(able) <= count:
        return everything, everything[:0]
    held = torch.from_numpy(np.sort(rng.choice(able, count, replace=False)))
    is_held = torch.zeros(len(sizes), dtype=torch.bool)
    is_held[held] = True
    return everything[~is_held], held


def halves(documents: Documents, chosen: NDArray[np.int64], seed: int) -> tuple[Documents, Documents]:
    """Some documents twice: one half of what each says, and the other.

    Of counts each occurrence goes to either half; of positions each is predicted in either half, with its true
    context in both.
    """
    rng = np.random.default_rng([seed, 2])
    whole = documents.take(chosen)
    first = rng.binomial(whole.counts, 0.5).astype(whole.counts.dtype)
    predicted = rng.random(len(whole.tokens)) < 0.5

    def half(counts: NDArray[np.int32], positions: NDArray[np.bool_]) -> Documents:
        there = counts > 0
        before = np.concatenate([[0], np.cumsum(there)])  # entries that stay, before each
        return replace(
            whole,
            features=whole.features[there],
            counts=counts[there],
            feature_offsets=before[whole.feature_offsets],
            predicted=positions,
        )

    return half(first, predicted), half(whole.counts - first, ~predicted)

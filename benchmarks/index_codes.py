"""Codes to search: synthetic ones that lie as those of documents do, and those of a real model.

    python benchmarks/index_codes.py MODEL arxiv/train arxiv/test --count 5000000 -o CODES.npy

Synthetic ones lie in topics, sub-topics and small groups, of very different sizes. The command makes real ones, of
documents that are multiplied by leaving out words.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parabit import TextEncoder, open_corpus
from parabit.model import load_model
from parabit.text import Bags

Codes = NDArray[np.uint8]

_TOPICS, _SUBTOPICS, _GROUPS = 100, 2_000, 100_000
_AT_A_TIME = 100_000


def clustered(count: int, bits: int, seed: int = 0) -> tuple[Codes, Callable[[int], Codes]]:
    """Codes, and a function that draws more of the same kind.

    Each bit has its own share of ones in a topic, as bits of learned codes are not balanced. A sub-topic differs from
    its topic in 16% of the bits, a group from its sub-topic in 8%, a document from its group in 1 to 10%, by group.
    """
    rng = np.random.default_rng(seed)
    topics = rng.random((_TOPICS, bits)) < rng.uniform(0.3, 0.7, bits)
    subtopics = topics[rng.integers(0, _TOPICS, _SUBTOPICS)] ^ (rng.random((_SUBTOPICS, bits)) < 0.16)
    groups = subtopics[rng.integers(0, _SUBTOPICS, _GROUPS)]
    groups ^= rng.random(groups.shape, dtype=np.float32) < 0.08
    rates = rng.uniform(0.01, 0.1, _GROUPS).astype(np.float32)
    sizes = np.minimum(rng.zipf(1.5, _GROUPS), 200).astype(float)
    sizes /= sizes.sum()

    def draw(more: int) -> Codes:
        codes = np.empty((more, -(-bits // 8)), dtype=np.uint8)
        for start in range(0, more, _AT_A_TIME):
            stop = min(start + _AT_A_TIME, more)
            which = rng.choice(_GROUPS, stop - start, p=sizes)
            flips = rng.random((stop - start, bits), dtype=np.float32) < rates[which, None]
            codes[start:stop] = np.packbits(groups[which] ^ flips, axis=1)
        return codes

    return draw(count), draw


def changed(codes: Codes, bits: int, count: int, most: float, seed: int = 0) -> Codes:
    """Some of the codes with up to a share of their bits flipped: queries whose hits are near, and others far."""
    rng = np.random.default_rng(seed)
    some = np.unpackbits(codes[np.sort(rng.choice(len(codes), count, replace=False))], axis=1, count=bits)
    flips = rng.random((count, bits)) < rng.uniform(0, most, (count, 1))
    return np.packbits(some ^ flips, axis=1)


def multiplied(model: TextEncoder, corpus: str, count: int, seed: int = 0) -> Codes:
    """Codes of a real model: the documents of a corpus over and over, without a tenth to half of their words."""
    rng = np.random.default_rng(seed)
    whole = Bags.joined([batch.bags for batch in model.infer_each(open_corpus(corpus))])
    features, counts, lengths = whole.features, whole.counts, whole.feature_lengths
    bits = model.bits or 0
    codes = np.empty((count, -(-bits // 8)), dtype=np.uint8)
    done = 0
    while done < count:
        dropped = np.repeat(rng.uniform(0.1, 0.5, len(lengths)).astype(np.float32), lengths)
        kept = rng.random(len(features), dtype=np.float32) >= dropped
        before = np.concatenate([[0], np.cumsum(kept)])
        offsets = before[whole.feature_offsets]
        some = np.flatnonzero(np.diff(offsets) > 0)[: count - done]  # one that has lost all its words has no code
        for start in range(0, len(lengths), _AT_A_TIME):
            stop = min(start + _AT_A_TIME, len(lengths))
            here = slice(offsets[start], offsets[stop])
            own = offsets[start : stop + 1] - offsets[start]
            bags = Bags.of_counts(features[kept][here], counts[kept][here], own)
            mine = some[(some >= start) & (some < stop)]
            found = model.infer_bags(bags).codes
            assert found is not None
            codes[done : done + len(mine)] = found[mine - start]
            done += len(mine)
        print(f"{done:,} of {count:,} codes", flush=True)
    return codes


def main() -> None:
    """Write the codes of a collection that was multiplied, and of queries that it does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", help="whose documents are multiplied")
    parser.add_argument("unseen", help="whose documents are every second query; the others are of the corpus, changed")
    parser.add_argument("--count", type=int, default=5_000_000)
    parser.add_argument("-o", "--output", type=Path, required=True, help="CODES.npy; queries go to CODES.queries.npy")
    options = parser.parse_args()
    model = load_model(options.model)
    np.save(options.output, multiplied(model, options.corpus, options.count))
    known, unseen = (multiplied(model, name, 1000, seed=1) for name in (options.corpus, options.unseen))
    np.save(options.output.with_suffix(".queries.npy"), np.stack([known, unseen], axis=1).reshape(2000, -1))


if __name__ == "__main__":
    main()

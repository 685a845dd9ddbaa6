"""A corpus to learn from, in a made-up language."""

from typing import NamedTuple

import numpy as np


class Topics(NamedTuple):
    """Texts, each about one of four topics."""

    texts: list[str]
    labels: list[int]  # the topic of each


def make_topics(count: int, seed: int = 7) -> Topics:
    """Texts of 20 to 60 words; most words of a text belong to its topic, the others to all topics."""
    rng = np.random.default_rng(seed)
    syllables = ["ba", "do", "ki", "lu", "me", "no", "pa", "ri", "su", "ta", "ve", "zo"]
    words = rng.permutation(sorted({"".join(rng.choice(syllables, 3)) for _ in range(400)}))
    common, special = words[:40], words[40:200].reshape(4, 40)
    labels = rng.integers(4, size=count)
    texts = []
    for label in labels:
        of_topic = rng.random(rng.integers(20, 61)) < 0.6
        own, shared = (rng.choice(pool, len(of_topic)) for pool in (special[label], common))
        texts.append(" ".join(np.where(of_topic, own, shared)))
    return Topics(texts, labels.tolist())

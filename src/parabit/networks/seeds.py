"""Random numbers for every place and moment of training, each from its own seed.

A step's random numbers follow from the seed and the step's name, not from what was drawn before it, so that training
can go on from any checkpoint as if it had never stopped.
"""

from hashlib import blake2b

import torch
from torch import Generator


def generator(seed: int, *name: str | int, device: torch.device | str = "cpu") -> Generator:
    """The random numbers of what has this name.

    Example:
        >>> a, b = generator(0, "epoch", 3), generator(0, "epoch", 3)
        >>> torch.equal(torch.rand(5, generator=a), torch.rand(5, generator=b))
        True
    """
    digest = blake2b(repr((seed, *name)).encode(), digest_size=8).digest()
    return Generator(device).manual_seed(int.from_bytes(digest) >> 1)

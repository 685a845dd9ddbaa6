"""What a plan is asked for."""

import math
import re
from dataclasses import dataclass, fields, replace

from parabit.errors import ParabitError

_LARGEST = 1e15
_SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}


@dataclass(frozen=True, kw_only=True)
class Question:
    """A corpus, the codes that are wanted of it, and what there is to work with.

    What is None is taken from what was measured, or follows from the rest.

    Example:
        >>> Question(documents=10_000_000).code_bytes
        16
        >>> Question(documents=0)
        Traceback (most recent call last):
        parabit.errors.ParabitError: documents is 0; it must be a whole number, at least 1
    """

    documents: int
    bits: int = 128
    dim: int | None = None  # of real vectors beside the codes
    workers: int = 1
    cores: int = 1  # of a worker
    memory: float = 16.0  # of a worker, in GB
    words: float | None = None  # of the vocabulary, in a document
    characters: float | None = None  # of a document
    vocabulary: int | None = None  # words and bigrams
    train: int | None = None  # documents that are trained on; None for all
    train_workers: int | None = None  # that train; None for all
    epochs: int = 30
    batch_size: int = 256
    checkpoint_every: float = 60.0  # seconds
    bigrams: bool = False
    network: float = 10.0  # of a worker, in Gbit/s
    disk: float = 500.0  # of a worker, in MB/s
    shards: int = 1  # that the index is cut into
    queries: float | None = None  # a second
    id_bytes: float = 12.0  # of an id

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if value is None or name == "bigrams":
                continue
            whole = "int" in str(field.type)
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
                raise ParabitError(f"{_option(name)} is {value!r}", hint=f"it must be a {'whole ' * whole}number")
            if whole and value < 1:
                raise ParabitError(f"{_option(name)} is {value}", hint="it must be a whole number, at least 1")
            if not 0 < value <= _LARGEST:
                raise ParabitError(f"{_option(name)} is {value:g}", hint="it must be a number above 0, up to 1e15")
        if self.dim is not None and self.dim < self.bits:
            raise ParabitError(
                f"dim {self.dim} is less than bits {self.bits}",
                hint="the real vector is the larger one, from which the bits are projected",
            )
        if self.train is not None and self.train > self.documents:
            raise ParabitError(
                f"train on {self.train:,} of {self.documents:,} documents", hint="there are not so many; leave it out"
            )
        if self.shards > self.documents:
            raise ParabitError(
                f"{self.shards:,} shards of {self.documents:,} documents", hint="a shard has at least one document"
            )

    @property
    def code_bytes(self) -> int:
        """Bytes of a code."""
        return -(-self.bits // 8)

    @property
    def training(self) -> "Question":
        """The same question for those workers that train."""
        return replace(self, workers=self.train_workers or self.workers)

    @property
    def trained(self) -> int:
        """Documents that are trained on."""
        return self.train or self.documents

    @property
    def units(self) -> int:
        """Numbers of an embedding."""
        return self.dim or self.bits

    @property
    def hidden(self) -> int:
        """Numbers of a row of the word matrix: one a bit, and the word's bias."""
        return self.bits + 1


def read_count(given: str, name: str = "documents") -> int:
    """A number as people write it.

    Example:
        >>> read_count("1e9"), read_count("7M"), read_count("1_000_000"), read_count("2.5k")
        (1000000000, 7000000, 1000000, 2500)
        >>> read_count("many")
        Traceback (most recent call last):
        parabit.errors.ParabitError: documents is 'many'; it must be a number such as 1e9, 7M, 250k or 1_000_000
    """
    form = re.fullmatch(r"([\d_,]*\.?\d*(?:e\+?\d{1,3})?)\s*([kmgbt]?)", given.strip().lower())
    try:
        if form is None:
            raise ValueError
        value = float(form[1].replace("_", "").replace(",", "")) * _SUFFIXES[form[2]]
    except ValueError:
        raise ParabitError(
            f"{_option(name)} is {given!r}", hint="it must be a number such as 1e9, 7M, 250k or 1_000_000"
        ) from None
    if not math.isfinite(value) or not 1 <= value <= _LARGEST:
        raise ParabitError(f"{_option(name)} is {given!r}", hint="it must be at least 1, up to 1e15")
    return round(value)


def _option(name: str) -> str:
    return name.replace("_", " ")

"""Which of the networks, and how large."""

from dataclasses import dataclass

from parabit.errors import ModelError, TrainingError

ARCHITECTURES = ("dbow", "dm")

MODES = ("fast", "exact")  # of inference for new documents


@dataclass(frozen=True)
class Shape:
    """Which of the networks, and how large.

    | bits | projected | architecture | network |
    | --- | --- | --- | --- |
    | None | no | dbow, dm | PV-DBOW, PV-DM |
    | n | no | dbow, dm | Binary PV-DBOW, Binary PV-DM |
    | n | yes | dbow | Real-Binary PV-DBOW |

    Example:
        >>> Shape("dm", bits=32, dim=32, window=1, word_dim=32).hidden
        65
    """

    architecture: str  # dbow or dm
    bits: int | None
    dim: int  # of the document embedding
    projected: bool = False
    window: int = 0  # context words before the predicted one
    two_sided: bool = False  # and as many after it
    word_dim: int = 0  # of the context words' embedding

    @property
    def name(self) -> str:
        """What the paper calls this network."""
        kind = "PV-DM" if self.architecture == "dm" else "PV-DBOW"
        if self.bits is None:
            return kind
        return f"{'Real-Binary' if self.projected else 'Binary'} {kind}"

    @property
    def size(self) -> str:
        """How much it keeps of a document."""
        return f"{self.dim} numbers" if self.bits is None else f"{self.bits} bits"

    @property
    def code(self) -> int:
        """Units of the hidden layer that belong to the document."""
        return self.dim if self.bits is None else self.bits

    @property
    def slots(self) -> tuple[int, ...]:
        """Where the context words stand, from the predicted word."""
        before = tuple(range(-self.window, 0))
        return before + (tuple(range(1, self.window + 1)) if self.two_sided else ())

    @property
    def parts(self) -> list[int]:
        """Units of each part of the layer that the softmax sees: the document's, then those of the context words.

        The last unit of the document's part is always 1; its softmax weight is the word's bias.
        """
        return [self.code + 1, *[self.word_dim] * len(self.slots)]

    @property
    def hidden(self) -> int:
        """Units of the layer that the softmax sees."""
        return sum(self.parts)

    def tensors(self, vocabulary: int) -> dict[str, tuple[int, ...]]:
        """The network's tensors and their shapes, for so many words and bigrams."""
        shapes: dict[str, tuple[int, ...]] = {"words": (vocabulary, self.hidden)}
        if self.projected:
            shapes["projection"] = (self.dim, self.code)
        if self.slots:
            # One row more than words: what stands where a document has ended.
            shapes["context"] = (vocabulary + 1, self.word_dim)
        return shapes


def choose_shape(
    bits: int | None,
    dim: int | None = None,
    architecture: str = "dbow",
    window: int | None = None,
    two_sided: bool = False,
    word_dim: int | None = None,
) -> Shape:
    """The network that a user asks for; one that makes no sense is told.

    Example:
        >>> choose_shape(bits=28, dim=300).projected
        True
        >>> choose_shape(bits=32, architecture="dm").slots
        (-1,)
    """
    if architecture not in ARCHITECTURES:
        raise TrainingError(f"no architecture {architecture!r}", hint=f"there are {' and '.join(ARCHITECTURES)}")
    for name, value, remedy in (
        ("bits", bits, "such as 32 or 128; None, with dim, is the real-valued model"),
        ("dim", dim, "such as 300"),
        ("window", window, "such as 1"),
        ("word_dim", word_dim, "such as 128"),
    ):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise TrainingError(f"{name} is {value!r}", hint=f"it must be a whole number, at least 1, {remedy}")
    if bits is None and dim is None:
        raise TrainingError("neither bits nor dim is given", hint="bits=128 learns codes, dim=128 real-valued vectors")
    if architecture == "dbow":
        for name, set_to in (("window", window), ("two_sided", two_sided), ("word_dim", word_dim)):
            if set_to:
                raise TrainingError(f"{name} with architecture dbow", hint="it is an option of dm")
        if bits is not None and dim is not None and dim < bits:
            raise TrainingError(
                f"dim {dim} is less than bits {bits}",
                hint="the real vector, of dim numbers, is the larger one, from which the bits are projected",
            )
        size = dim if bits is None else bits
        return Shape("dbow", bits, dim or size or 0, projected=bits is not None and dim is not None)
    if bits is not None and dim is not None:
        raise TrainingError(
            "dim and bits with architecture dm",
            hint="only dbow has a real vector beside the code; leave dim out, or bits for a real-valued model",
        )
    size = dim if bits is None else bits
    assert size is not None
    return Shape("dm", bits, size, window=window or 1, two_sided=two_sided, word_dim=word_dim or size)


def check_mode(mode: object) -> None:
    """Raise for what is not a way of inference; None is the model's own.

    Example:
        >>> check_mode("quick")
        Traceback (most recent call last):
        parabit.errors.ModelError: no mode 'quick'; there are fast, exact
    """
    if mode is not None and mode not in MODES:
        raise ModelError(f"no mode {mode!r}", hint=f"there are {', '.join(MODES)}")

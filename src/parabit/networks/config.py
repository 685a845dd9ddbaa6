"""Which of the paper's networks, how large, and how it is trained. Needs no torch."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from parabit.errors import TrainingError, did_you_mean

METHODS = ("rounding", "noise", "straight-through", "straight-through-sigmoid")  # of binarization
STOCHASTIC = METHODS[2:]

# bits, dim and word_dim: far above any that was ever useful; a batch of such vectors takes 64 MB
LARGEST = 1 << 16
_WIDEST = 1000  # window: documents are rarely longer
_MOST = 1_000_000_000  # of what is counted
_LARGEST_NUMBER = 1e38  # of rates and penalties: float32 ends soon after
# Inference compares 256 documents with all samples of a step at once: 128 MB. It keeps the samples
# of all steps.
_MOST_SAMPLES = 1 << 17
_MOST_ROUNDS = 10_000


@dataclass(frozen=True)
class Shape:
    """Which of the networks, and how large."""

    architecture: str  # dbow or dm
    bits: int | None  # None: real-valued
    dim: int  # of the document embedding
    projected: bool = (
        False  # to the bits, as in Real-Binary PV-DBOW; otherwise the embedding has as many units
    )
    window: int = 0  # context words before the predicted one
    two_sided: bool = False  # and as many after it
    word_dim: int = 0  # of the context words' embedding

    def __post_init__(self) -> None:
        if self.architecture not in ("dbow", "dm"):
            raise TrainingError(f"no architecture {self.architecture!r}", hint="choose dbow or dm")
        if self.bits is not None:
            _check("bits", self.bits, "size")
        _check("dim", self.dim, "size")
        _check("projected", self.projected, "flag")
        _check("two_sided", self.two_sided, "flag")
        if self.architecture == "dm":
            _check("window", self.window, "window")
            _check("word_dim", self.word_dim, "size")
        elif self.window or self.two_sided or self.word_dim:
            raise TrainingError(
                "a window with architecture dbow", hint="window, two_sided and word_dim are of dm"
            )
        if self.projected:
            fits = self.architecture == "dbow" and self.bits is not None and self.bits <= self.dim
        else:
            fits = self.bits is None or self.bits == self.dim
        if not fits:
            raise TrainingError(
                f"{self.bits} bits and dim {self.dim} with architecture {self.architecture}",
                hint="only dbow projects a vector to bits, and to no more than it has numbers",
            )

    @property
    def name(self) -> str:
        """What the paper calls this network."""
        kind = "PV-DM" if self.architecture == "dm" else "PV-DBOW"
        if self.bits is None:
            return kind
        return f"{'Real-Binary' if self.projected else 'Binary'} {kind}"

    @property
    def code(self) -> int:
        """Units of the hidden layer that belong to the document."""
        return self.dim if self.bits is None else self.bits

    @property
    def slots(self) -> tuple[int, ...]:
        """Where the context words stand, relative to the predicted word."""
        before = tuple(range(-self.window, 0))
        return before + (tuple(range(1, self.window + 1)) if self.two_sided else ())

    @property
    def parts(self) -> list[int]:
        """Units of each part of the hidden layer: the document's, then one part per context word.

        The last unit of the document's part is always 1; its softmax weight is the word's bias.
        """
        return [self.code + 1, *[self.word_dim] * len(self.slots)]

    def tensors(self, vocabulary: int) -> dict[str, tuple[int, ...]]:
        """The names and shapes of the network's tensors, for a vocabulary of this size."""
        shapes: dict[str, tuple[int, ...]] = {"words": (vocabulary, sum(self.parts))}
        if self.projected:
            shapes["projection"] = (self.dim, self.code)
        if self.slots:
            # One row more than words: what stands beyond the ends of a document.
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
    """The network with these parameters; combinations that make no sense are refused."""
    if architecture not in ("dbow", "dm"):
        raise TrainingError(f"no architecture {architecture!r}", hint="choose dbow or dm")
    for name, value, example in (
        ("bits", bits, ", such as 128; None, with dim, is the real-valued model"),
        ("dim", dim, ", such as 300"),
        ("window", window, ", such as 1"),
        ("word_dim", word_dim, ", such as 128"),
    ):
        if value is not None:
            _check(name, value, "count", example)
    _check("two_sided", two_sided, "flag")
    size, both = bits or dim, bits is not None and dim is not None
    if size is None:
        raise TrainingError(
            "neither bits nor dim is given",
            hint="bits=128 learns codes, dim=128 real-valued vectors",
        )
    if architecture == "dm":
        if both:
            hint = "only dbow has a real vector beside the code; omit dim, or omit bits for a real-valued model"
            raise TrainingError("dim and bits with architecture dm", hint)
        return Shape(
            "dm", bits, size, window=window or 1, two_sided=two_sided, word_dim=word_dim or size
        )
    for name, option in (("window", window), ("two_sided", two_sided), ("word_dim", word_dim)):
        if option:
            raise TrainingError(f"{name} with architecture dbow", hint="it is an option of dm")
    if both and (dim or 0) < size:
        hint = (
            "bits are projected from the real vector, which has dim numbers and must not be shorter"
        )
        raise TrainingError(f"dim {dim} is less than bits {bits}", hint)
    return Shape("dbow", bits, dim or size, projected=both)


def _parameter(default: Any, bound: str, about: str) -> Any:
    return field(default=default, metadata={"bound": bound, "about": about})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained, and how new documents are inferred with it. The paper's networks change some defaults.

    Example:
        >>> Recipe(epochs=20).dropout
        0.1
    """

    epochs: int = _parameter(100, "count", "times that every document is trained on")
    batch_size: int = _parameter(256, "count", "documents (dbow) or positions (dm) per step")
    document_rate: float = _parameter(
        0.05, "positive", "AdaGrad's learning rate for document embeddings"
    )
    word_rate: float = _parameter(
        0.02, "positive", "AdaGrad's learning rate for everything that documents share"
    )
    projection_rate: float = _parameter(
        0.005, "positive", "AdaGrad's learning rate for Real-Binary's projection"
    )
    row_rates: bool = _parameter(
        False, "flag", "AdaGrad sums squares per row instead of per number"
    )
    document_prior: float = _parameter(
        0.0, "not negative", "L2 penalty on embeddings of documents, new ones too"
    )
    min_occurrences: int = _parameter(
        1, "count", "words that occur less often in training are ignored; dbow only"
    )
    samples: int = _parameter(
        1024, "samples", "words sampled for the softmax's denominator; 0 uses all words"
    )
    sampling_power: float = _parameter(
        0.75, "not negative", "words are sampled with their frequency to this power"
    )
    accumulator_start: float = _parameter(
        1e-4, "positive", "start of AdaGrad's sums of squares, for documents"
    )
    word_accumulator_start: float = _parameter(
        1.0, "positive", "for words; more makes rare words learn slower"
    )
    embedding_start: float = _parameter(
        1e-3, "positive", "standard deviation of the initial embeddings"
    )
    dropout: float = _parameter(
        0.1, "share", "share of the embedding layer that is dropped in each step"
    )
    binarization: str = _parameter(
        "rounding", "method", f"how bits are made in training: {', '.join(METHODS)}"
    )
    noise: float = _parameter(
        1.0, "not negative", "standard deviation of the noise, with binarization noise"
    )
    slope_growth: float = _parameter(
        0.0, "not negative", "how much the sigmoid's slope grows per epoch"
    )
    inference_rounds: int = _parameter(20, "rounds", "AdaGrad steps for a new document")
    inference_rate: float = _parameter(
        0.0, "not negative", "learning rate for a new document; 0: document_rate"
    )

    def __post_init__(self) -> None:
        for parameter in fields(self):
            _check(parameter.name, getattr(self, parameter.name), parameter.metadata["bound"])
        if self.slope_growth and self.binarization not in STOCHASTIC:
            problem = f"slope_growth with binarization {self.binarization!r}"
            raise TrainingError(problem, hint=f"use {' or '.join(STOCHASTIC)}")


def _fits_float32(value: float) -> bool:
    """Whether torch can calculate with a number; whole numbers it takes as 64 bits."""
    return value <= (_MOST if isinstance(value, int) else _LARGEST_NUMBER)


# The type of a value, what must hold for it, and how the error says so.
_BOUNDS: dict[str, tuple[Any, Callable[[Any], bool], str]] = {
    "count": (int, lambda value: 1 <= value <= _MOST, "a whole number, at least 1"),
    "size": (int, lambda value: 1 <= value <= LARGEST, f"a whole number from 1 to {LARGEST:,}"),
    "window": (int, lambda value: 1 <= value <= _WIDEST, f"a whole number from 1 to {_WIDEST:,}"),
    "samples": (
        int,
        lambda value: 0 <= value <= _MOST_SAMPLES,
        f"a whole number from 0 to {_MOST_SAMPLES:,}",
    ),
    "rounds": (
        int,
        lambda value: 1 <= value <= _MOST_ROUNDS,
        f"a whole number from 1 to {_MOST_ROUNDS:,}",
    ),
    "positive": (
        int | float,
        lambda value: value > 0 and _fits_float32(value),
        "a number above 0",
    ),
    "not negative": (
        int | float,
        lambda value: value >= 0 and _fits_float32(value),
        "a number, at least 0",
    ),
    "share": (int | float, lambda value: 0 <= value < 1, "a number, at least 0 and below 1"),
    "flag": (bool, lambda value: True, "true or false"),
    "method": (str, lambda value: value in METHODS, f"one of {', '.join(METHODS)}"),
}


def _check(name: str, value: object, bound: str, example: str = "") -> None:
    kind, holds, must = _BOUNDS[bound]
    if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool) or not holds(value):
        raise TrainingError(f"{name} is {value!r}", hint=f"it must be {must}{example}")


def paper_recipe(shape: Shape, bigrams: bool = False, **changes: Any) -> Recipe:
    """The paper's recipe for a network, with some parameters changed; None leaves a parameter as it is.

    The paper gives AdaGrad, sampled softmax, dropout and rounding. What it leaves open, such as rates and epochs, was
    chosen on validation parts of training documents (`benchmarks/paper_recipes.py`; docs/reproducing.md lists it).
    """
    if bigrams and shape.architecture == "dm":
        raise TrainingError(
            "bigrams with architecture dm", hint="dm predicts single words in order; use dbow"
        )
    names = [parameter.name for parameter in fields(Recipe)]
    for name in changes:
        if name not in names:
            hint = did_you_mean(name, names) or f"there are {', '.join(names)}"
            raise TrainingError(f"no network parameter {name!r}", hint=hint)
    chosen = _dm_values(shape) if shape.architecture == "dm" else _dbow_values(shape, bigrams)
    return replace(chosen, **{name: value for name, value in changes.items() if value is not None})


def _dbow_values(shape: Shape, bigrams: bool) -> Recipe:
    scale = 128 / shape.code  # with fewer units, each must learn more
    # A thousand samples say too little about a million features.
    shared = Recipe(samples=4096 if bigrams else 1024)
    if shape.bits is None:
        # With bigrams a document has twice the features, so the penalty that balances them is twice as large.
        rate, prior = (0.016, 6.0) if bigrams else (0.02, 3.0)
        return replace(shared, row_rates=True, word_rate=rate * scale**0.66, document_prior=prior)
    # A feature that occurs once learns its document's code by heart and then holds it where it is, and new documents
    # never have it. So it is ignored, and a high start makes AdaGrad learn the other rare ones slowly.
    binary = replace(shared, word_accumulator_start=300.0, min_occurrences=2)
    if shape.projected:
        return replace(binary, epochs=150, document_rate=0.2, word_rate=0.03, document_prior=0.3)
    prior = 3.0 if bigrams else scale**-0.87
    rates = {
        "document_rate": 0.2 * scale,
        "word_rate": 0.0067 * scale**0.75,
        "inference_rate": 0.06 * scale,
    }
    return replace(binary, epochs=120, document_prior=prior, inference_rounds=60, **rates)


def _dm_values(shape: Shape) -> Recipe:
    scale = 128 / shape.code
    shared = Recipe(epochs=24, batch_size=4096, samples=512)
    if shape.bits is None:
        rates = {"document_rate": 0.06 * scale**0.44, "word_rate": 0.013 * scale}
        return replace(
            shared, row_rates=True, document_prior=1.0, word_accumulator_start=0.1, **rates
        )
    return replace(shared, document_rate=0.25, word_rate=0.0065 * scale**0.8, document_prior=0.3)

"""The parameters of training, by name, and the sets of them that have a name."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from parabit.errors import TrainingError
from parabit.models import METHODS, STOCHASTIC, Binarization, Shape


@dataclass(frozen=True)
class Recipe:
    """How a network is trained and how documents are inferred with it.

    Example:
        >>> recipe = preset("paper", Shape("dbow", bits=128, dim=128))
        >>> recipe.idf_power, recipe.neighbours
        (0.0, 0)
    """

    epochs: int  # times that every document is trained on
    batch_size: int  # documents (dbow) or positions (dm) in a step
    document_rate: float  # AdaGrad's rate for document embeddings
    word_rate: float  # and for all that documents share
    samples: int | None  # words drawn for the softmax's denominator; None takes the whole vocabulary
    sampling_power: float = 0.75  # words are drawn with their frequency to this power
    accumulator_start: float = 1e-4  # of AdaGrad's sums of squares
    embedding_start: float = 1e-3  # standard deviation of new embeddings
    dropout: float = 0.0  # share of the embedding layer that is left out in a step
    binarization: str = "rounding"
    noise: float = 1.0  # standard deviation, with binarization "noise"
    slope_growth: float = 0.0  # an epoch, with stochastic binarization
    idf_power: float = 0.0  # dbow: a word's count is multiplied with log((documents + 1) / document frequency)^power
    length_exponent: float = 0.0  # dbow: a document's gradient is divided by (the sum of its weights)^exponent
    neighbours: int = 0  # dbow: also predict the words of one of so many nearest documents
    neighbour_weight: float = 0.5  # and how much these count beside a document's own
    inference_rounds: int = 20  # AdaGrad steps for a new document
    inference_rate: float | None = None  # None takes the document rate
    validation: float = 0.05  # share of documents held out for document completion, at most 500
    patience: int | None = None  # stop after so many epochs without a better completion; None never stops early

    def __post_init__(self) -> None:
        for name, (holds, must) in _BOUNDS.items():
            value = getattr(self, name)
            if value is None and name in _MAY_BE_NONE:
                continue
            kind = int if name in _WHOLE else int | float
            if isinstance(value, bool) or not isinstance(value, kind) or not math.isfinite(value) or not holds(value):
                raise TrainingError(f"{name} is {value!r}", hint=f"it must be {must}")
        if self.binarization not in METHODS:
            raise TrainingError(f"no binarization {self.binarization!r}", hint=f"there are {', '.join(METHODS)}")
        if self.slope_growth and self.binarization not in STOCHASTIC:
            raise TrainingError(
                f"slope annealing with binarization {self.binarization!r}",
                hint=f"it belongs to {' and '.join(STOCHASTIC)}",
            )

    @property
    def binarize(self) -> Binarization:
        """The binarization with its parameters."""
        return Binarization(self.binarization, self.noise, self.slope_growth)


_Bound = tuple[Callable[[float], bool], str]
_AT_LEAST_1: _Bound = (lambda value: value >= 1, "a whole number, at least 1")
_AT_LEAST_0: _Bound = (lambda value: value >= 0, "a whole number, at least 0")
_POSITIVE: _Bound = (lambda value: value > 0, "a number above 0")
_NOT_NEGATIVE: _Bound = (lambda value: value >= 0, "a number, at least 0")
_SHARE: _Bound = (lambda value: 0 <= value < 1, "a share, at least 0 and below 1")
_BOUNDS: dict[str, _Bound] = {
    "epochs": _AT_LEAST_1,
    "batch_size": _AT_LEAST_1,
    "samples": _AT_LEAST_1,
    "neighbours": _AT_LEAST_0,
    "inference_rounds": _AT_LEAST_1,
    "patience": _AT_LEAST_1,
    "document_rate": _POSITIVE,
    "word_rate": _POSITIVE,
    "inference_rate": _POSITIVE,
    "accumulator_start": _POSITIVE,
    "embedding_start": _POSITIVE,
    "sampling_power": _NOT_NEGATIVE,
    "noise": _NOT_NEGATIVE,
    "slope_growth": _NOT_NEGATIVE,
    "idf_power": _NOT_NEGATIVE,
    "length_exponent": _NOT_NEGATIVE,
    "dropout": _SHARE,
    "neighbour_weight": _SHARE,
    "validation": _SHARE,
}
_WHOLE = {"epochs", "batch_size", "samples", "neighbours", "inference_rounds", "patience"}
_MAY_BE_NONE = {"samples", "inference_rate", "patience"}
# What only a bag of words has: in a sequence every word is predicted once, where it stands.
_OF_BAGS = ("idf_power", "length_exponent", "neighbours")


def preset(name: str, shape: Shape, **changes: Any) -> Recipe:
    """A named recipe for a network, with some parameters set otherwise."""
    if name not in PRESETS:
        raise TrainingError(f"no preset {name!r}", hint=f"there are {', '.join(PRESETS)}")
    recipe = replace(PRESETS[name](shape), **changes)
    if shape.architecture == "dm":
        for option in _OF_BAGS:
            if getattr(recipe, option):
                raise TrainingError(f"{option} with architecture dm", hint="it is an option of dbow")
    return recipe


def _paper(shape: Shape) -> Recipe:
    """The paper's recipe: raw counts, AdaGrad, dropout in the embedding layer, importance sampling."""
    return Recipe(epochs=30, batch_size=256, document_rate=0.3, word_rate=0.02, samples=1024)


def _default(shape: Shape) -> Recipe:
    """The best that is known."""
    if shape.architecture == "dm":
        return _paper(shape)
    scale = 128 / shape.code
    return Recipe(
        epochs=30,
        batch_size=256,
        document_rate=0.3 * scale**0.87,
        word_rate=0.01 * scale**0.5,
        samples=1024,
        idf_power=1.0,
        length_exponent=0.4,
        neighbours=10,
        patience=3,
    )


PRESETS: dict[str, Callable[[Shape], Recipe]] = {"default": _default, "paper": _paper}

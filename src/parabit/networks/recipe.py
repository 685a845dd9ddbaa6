"""The parameters of training, by name, and the sets of them that have a name. Needs no torch."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from parabit.errors import TrainingError
from parabit.networks.shape import Shape

METHODS = ("rounding", "noise", "straight-through", "straight-through-sigmoid")  # of binarization
STOCHASTIC = ("straight-through", "straight-through-sigmoid")
STARTS = ("random", "words", "lsa")


def _parameter(bound: str, about: str) -> Any:
    """A parameter, the values it may have, and what it does; the command line shows the same words."""
    return field(metadata={"bound": bound, "about": about})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained and how documents are inferred with it.

    Example:
        >>> recipe = preset("paper", Shape("dbow", bits=128, dim=128))
        >>> recipe.idf_power, recipe.neighbours
        (0.0, 0)
        >>> [field.metadata["about"] for field in fields(Recipe)][0]
        'times that every document is trained on'
    """

    epochs: int = _parameter("count", "times that every document is trained on")
    batch_size: int = _parameter("count", "documents (dbow) or positions (dm) in a step")
    fewest_steps: int = _parameter("count or 0", "dbow: batches are smaller where an epoch had fewer steps than this")
    warm_up: int = _parameter(
        "count or 0", "first epochs, at most half, in which words learn and documents stay as they began"
    )
    document_rate: float = _parameter("positive", "AdaGrad's rate for document embeddings")
    word_rate: float = _parameter("positive", "AdaGrad's rate for all that documents share")
    samples: int = _parameter("count or 0", "words drawn for the softmax's denominator; 0 takes the whole vocabulary")
    sampling_power: float = _parameter("not negative", "words are drawn with their frequency to this power")
    accumulator_start: float = _parameter("positive", "where AdaGrad's sums of squares start, for documents")
    word_accumulator_start: float = _parameter("positive", "the same for words; more makes rare words learn slower")
    start: str = _parameter(
        "start", "embeddings start at random, or (dbow) at a random projection of their words, or at their LSA"
    )
    embedding_start: float = _parameter("positive", "how far from zero embeddings start, as a standard deviation")
    dropout: float = _parameter("share", "share of the embedding layer that is left out in a step")
    binarization: str = _parameter("method", f"how bits are made: {', '.join(METHODS)}")
    noise: float = _parameter("not negative", "standard deviation, with binarization noise")
    slope_growth: float = _parameter("not negative", "by which the sigmoid gets steeper an epoch, with stochastic bits")
    idf_power: float = _parameter("not negative", "dbow: counts are multiplied with the idf of the word to this power")
    length_exponent: float = _parameter("not negative", "dbow: gradients are divided by the length to this power")
    neighbours: int = _parameter(
        "count or 0", "dbow: also predict the words of one of so many nearest documents (at most)"
    )
    neighbour_weight: float = _parameter("share", "dbow: how much these count beside a document's own")
    inference_rounds: int = _parameter("count", "AdaGrad steps for a new document")
    inference_rate: float = _parameter("not negative", "AdaGrad's rate for a new document; 0 takes the document rate")
    validation: float = _parameter("share", "share of documents held out for document completion, at most 256 (dm: 64)")
    patience: int = _parameter(
        "count or 0", "stop after so many epochs of clearly worse completion than the best; 0 never does"
    )

    def __post_init__(self) -> None:
        for parameter in fields(self):
            value, bound = getattr(self, parameter.name), parameter.metadata["bound"]
            holds, must = _BOUNDS[bound]
            if not holds(value):
                raise TrainingError(f"{parameter.name} is {value!r}", hint=f"it must be {must}")
        if self.slope_growth and self.binarization not in STOCHASTIC:
            raise TrainingError(
                f"slope annealing with binarization {self.binarization!r}",
                hint=f"it belongs to {' and '.join(STOCHASTIC)}",
            )


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, and not True or False."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_BOUNDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "count": (lambda value: is_whole(value) and value >= 1, "a whole number, at least 1"),
    "count or 0": (lambda value: is_whole(value) and value >= 0, "a whole number, at least 0"),
    "positive": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "not negative": (lambda value: _is_number(value) and value >= 0, "a number, at least 0"),
    "share": (lambda value: _is_number(value) and 0 <= value < 1, "a share, at least 0 and below 1"),
    "method": (lambda value: value in METHODS, f"one of {', '.join(METHODS)}"),
    "start": (lambda value: value in STARTS, f"one of {', '.join(STARTS)}"),
}

# What only a bag of words has: in a sequence every word is predicted once, where it stands.
_OF_BAGS = {
    "fewest_steps": 0,
    "idf_power": 0.0,
    "length_exponent": 0.0,
    "neighbours": 0,
    "neighbour_weight": None,
    "start": "random",
}


def preset(name: str, shape: Shape, *, bigrams: bool = False, **changes: Any) -> Recipe:
    """A named recipe for a network, with some parameters set otherwise; None leaves one as it is.

    A network that predicts bigrams too has many more words, most of them rare, and other rates.

    Example:
        >>> preset("default", Shape("dbow", bits=32, dim=32), epochs=5).epochs
        5
    """
    if name not in PRESETS:
        raise TrainingError(f"no preset {name!r}", hint=f"there are {', '.join(PRESETS)}")
    given = {option: value for option, value in changes.items() if value is not None}
    recipe = replace(PRESETS[name](shape, bigrams), **given)
    if shape.architecture == "dm":
        for option, nothing in _OF_BAGS.items():
            if given.get(option, nothing) != nothing:
                raise TrainingError(f"{option} with architecture dm", hint="it is an option of dbow")
    return recipe


def _paper(shape: Shape, bigrams: bool) -> Recipe:
    """The paper's recipe: raw counts, AdaGrad, importance sampling, and dropout in the embedding layer.

    What the paper leaves open, such as rates and epochs, was chosen on a validation part of 20 Newsgroups' training
    posts. So was the share that dropout leaves out: none.
    """
    scale = 128 / shape.code  # fewer units must each learn more
    plain = Recipe(
        epochs=40,
        batch_size=256,
        fewest_steps=0,
        warm_up=0,
        document_rate=0.3 * scale**0.87,
        word_rate=0.012 * scale**0.8,
        samples=1024,
        sampling_power=1.0,
        accumulator_start=1e-4,
        # Words that occur once or twice soon know their document's code by heart, and hold it where it is. AdaGrad that
        # starts high makes them learn slowly and leaves frequent words as they are.
        word_accumulator_start=100.0,
        start="random",
        embedding_start=1e-3,
        dropout=0.0,
        binarization="rounding",
        noise=1.0,
        slope_growth=0.0,
        idf_power=0.0,
        length_exponent=0.0,
        neighbours=0,
        neighbour_weight=0.5,
        inference_rounds=20,
        inference_rate=0.0,
        validation=0.05,
        patience=0,
    )
    if shape.architecture == "dm":
        # A step has fewer predictions of a word here, so there is less for AdaGrad to start high for.
        document_rate = 0.1 if shape.bits is None else 0.3
        return replace(
            plain,
            epochs=12,
            batch_size=4096,
            document_rate=document_rate,
            word_rate=0.01 * scale**0.8,
            word_accumulator_start=1e-4,
            samples=512,
        )
    if bigrams:  # of a million features a thousand samples say too little
        plain = replace(plain, samples=4096, word_rate=plain.word_rate / 2)
    if shape.bits is None:
        return replace(plain, document_rate=0.1 * scale**0.5, word_rate=0.012 * scale**0.3)
    return plain


def _default(shape: Shape, bigrams: bool) -> Recipe:
    """The best that is known."""
    recipe = _paper(shape, bigrams)
    if shape.architecture == "dm":
        return recipe
    return replace(
        recipe,
        epochs=30,
        fewest_steps=32,
        warm_up=5,
        word_rate=0.01 * 128 / shape.code,
        start="lsa",
        embedding_start=0.5,
        idf_power=1.0,
        length_exponent=0.3,
        neighbours=10,
        patience=3,
    )


PRESETS: dict[str, Callable[[Shape, bool], Recipe]] = {"default": _default, "paper": _paper}

"""What config.json of a model must be: checked once, where it is read and where it is written."""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from parabit.choices import PRESETS, SOLVERS
from parabit.errors import ParabitError
from parabit.networks.config import LARGEST, Recipe, Shape
from parabit.text import Tokenizer
from parabit.untrusted import (
    FLAG,
    NUMBER,
    OBJECT,
    Rule,
    UnexpectedError,
    check_object,
    list_of,
    one_of,
    optional,
    shown,
    text,
    whole,
)

T = TypeVar("T")

FORMAT = 1
# A model with 100,000 stop words has 2 MB; as objects JSON takes 10 times as much.
MOST_BYTES = 8 << 20

_SIZE = whole(1, LARGEST)
_COUNT = whole(0)
_IDENTIFIER = Rule(
    lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None,
    "64 hexadecimal digits",
)
_FORMAT = whole(1, None)
_RULES = {
    "format": _FORMAT,
    "parabit": text(100),
    "solver": one_of(SOLVERS),
    "name": text(1000),
    "bits": optional(_SIZE),
    "dim": _SIZE,
    "levels": list_of(_SIZE),
    "training": OBJECT,
    "parameters": OBJECT,
    "network": OBJECT,
    "vocabulary": _IDENTIFIER,
}
_TRAINING = dict.fromkeys(("documents", "sampled", "tokens", "words", "bigrams"), _COUNT) | {
    "history": list_of(OBJECT)
}
_SCALAR = Rule(
    lambda value: value is None or isinstance(value, str | bool) or NUMBER.holds(value),
    "a number, a word, true, false or null",
)
_SCALARS = Rule(
    lambda value: isinstance(value, dict) and all(map(_SCALAR.holds, value.values())),
    f"an object, and each value {_SCALAR.must}",
)
_FLAG_OR_COUNT = Rule(lambda value: FLAG.holds(value) or _COUNT.holds(value), FLAG.must)
# Those of ParagraphVectors but the device, as they were given; what they must be to learn is
# checked before learning.
_PARAMETERS = {
    "bits": optional(_SIZE),
    "dim": optional(_SIZE),
    "levels": optional(list_of(_SIZE)),
    "solver": one_of(SOLVERS),
    "preset": one_of(PRESETS),
    "architecture": one_of(("dbow", "dm")),
    "network_params": optional(_SCALARS),
    "sample": optional(_COUNT),
    "tokenizer": optional(OBJECT),
    "bigrams": _FLAG_OR_COUNT,
    "min_count": _COUNT,
    "min_bigram_count": optional(_COUNT),
    "max_size": optional(_COUNT),
    "output": one_of(("packed", "bits")),
    "missing": one_of(("error", "skip")),
    "random_state": whole(0, None),
}
_NETWORK = {"shape": OBJECT, "recipe": OBJECT, "seed": whole(0, None)}
# Each step of inference draws its own sample of words, before the first document: numbers in all,
# of 12 bytes each.
_MOST_DRAWN = 1 << 25


def is_newer(config: Mapping[str, Any]) -> bool:
    """Whether a model was written by a version of parabit that this one does not know.

    Parameters:
        config: Its config.json, not checked yet.
    """
    number = config.get("format")
    return _FORMAT.holds(number) and isinstance(number, int) and number > FORMAT


def check_config(config: Mapping[str, Any]) -> None:
    """Raise `UnexpectedError` unless a config.json has what a model needs, and no more.

    Parameters:
        config: The object in config.json.
    """
    content = dict(config)
    solver = content.get("solver")
    rules = dict(_RULES)
    if solver != "network":
        del rules["network"]
    check_object(content, rules, optional_names=("parameters",))
    bits, dim, levels = content["bits"], content["dim"], content["levels"]
    size = dim if bits is None else bits
    if sum(levels) != size:
        raise UnexpectedError(f"levels add up to {sum(levels):,}, not to {size:,}")
    check_object(content["training"], _TRAINING, "training", optional_names=("history",))
    for epoch in content["training"].get("history", ()):
        check_object(epoch, {"loss": NUMBER}, "training.history")
    if "parameters" in content:
        check_object(content["parameters"], _PARAMETERS, "parameters")
        if content["parameters"]["tokenizer"] is not None:
            tokenizer = content["parameters"]["tokenizer"]
            _make_checked("parameters.tokenizer", Tokenizer.from_config, tokenizer)
    if solver == "network":
        _check_network(content["network"], bits, dim)


def _check_network(network: Any, bits: int | None, dim: int) -> None:
    check_object(network, _NETWORK, "network")
    for name, kind in (("shape", Shape), ("recipe", Recipe)):
        # What each value must be is checked by the classes themselves.
        names = {field.name: Rule(lambda _: True, "") for field in fields(kind)}
        check_object(network[name], names, f"network.{name}")
    shape = _make_checked("network.shape", lambda values: Shape(**values), network["shape"])
    recipe = _make_checked("network.recipe", lambda values: Recipe(**values), network["recipe"])
    if (shape.bits, shape.dim) != (bits, dim):
        raise UnexpectedError("network.shape is not that of these bits and dim")
    if recipe.samples * recipe.inference_rounds > _MOST_DRAWN:
        drawn = f"{recipe.samples:,} samples in {recipe.inference_rounds:,} inference_rounds"
        problem = f"network.recipe has {drawn}, together at most {_MOST_DRAWN:,} are drawn"
        raise UnexpectedError(problem)


def _make_checked(name: str, make: Callable[[Any], T], values: Any) -> T:
    """What is made of a part of the config, whose name an error says."""
    try:
        return make(values)
    except ParabitError as problem:
        raise UnexpectedError(f"{name}: {shown(problem, 200)}") from problem

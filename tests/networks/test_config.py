import math
from dataclasses import asdict, fields, replace
from typing import Any

import pytest

from parabit.errors import TrainingError
from parabit.networks.config import METHODS, Recipe, choose_shape, paper_recipe


@pytest.mark.parametrize(
    ("asked", "name", "parts", "slots"),
    [
        ({"bits": 128}, "Binary PV-DBOW", [129], ()),
        ({"bits": None, "dim": 300}, "PV-DBOW", [301], ()),
        ({"bits": 28, "dim": 300}, "Real-Binary PV-DBOW", [29], ()),
        ({"bits": 28, "dim": 28}, "Real-Binary PV-DBOW", [29], ()),
        ({"bits": 32, "architecture": "dm"}, "Binary PV-DM", [33, 32], (-1,)),
        ({"bits": None, "dim": 64, "architecture": "dm"}, "PV-DM", [65, 64], (-1,)),
        (
            {"bits": 32, "architecture": "dm", "window": 2, "word_dim": 5},
            "Binary PV-DM",
            [33, 5, 5],
            (-2, -1),
        ),
        ({"bits": 1, "architecture": "dm", "two_sided": True}, "Binary PV-DM", [2, 1, 1], (-1, 1)),
    ],
)
def test_each_choice_is_one_of_the_papers_networks(
    asked: dict[str, Any], name: str, parts: list[int], slots: tuple[int, ...]
) -> None:
    shape = choose_shape(**asked)
    assert (shape.name, shape.parts) == (name, parts)
    assert shape.slots == slots
    assert shape.projected == name.startswith("Real-Binary")
    recipe = paper_recipe(shape)
    assert Recipe(**asdict(recipe)) == recipe  # nothing is left open
    assert (recipe.binarization, recipe.slope_growth) == ("rounding", 0)
    assert recipe.dropout > 0


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "12"])
@pytest.mark.parametrize("name", ["bits", "dim", "window", "word_dim"])
def test_sizes_are_whole_numbers_from_1(name: str, value: object) -> None:
    asked: dict[str, Any] = {
        "bits": 16,
        "architecture": "dbow" if name == "dim" else "dm",
        name: value,
    }
    with pytest.raises(TrainingError) as refused:
        choose_shape(**asked)
    assert str(refused.value).startswith(
        f"{name} is {value!r}; it must be a whole number, at least 1, such as "
    )


DBOW = choose_shape(128)

# For each bound: what it refuses, what it takes.
BOUNDS: dict[str, tuple[list[Any], list[Any]]] = {
    "count": ([0, -1, 1.5, 2.0, True, "3", 10**10], [1, 1000]),
    "samples": ([-1, 0.0, 1.5, False, "3", 10**6], [0, 7]),
    "rounds": ([0, -1, 1.5, 2.0, True, "3", 10**5], [1, 1000]),
    "positive": ([0, 0.0, -1e-9, math.nan, math.inf, True, "1", 1e39], [1e-9, 5]),
    "not negative": ([-1e-9, math.nan, math.inf, -math.inf, False, "1", 1e39], [0, 0.0, 3.5]),
    "share": ([-0.1, 1, 1.0, math.nan, True, "0.5"], [0, 0.0, 0.999]),
    "flag": ([0, 1, "yes"], [True, False]),
    "method": (["round", "", 1, ["rounding"]], list(METHODS)),
}
CASES = [(parameter.name, parameter.metadata["bound"]) for parameter in fields(Recipe)]


@pytest.mark.parametrize(("name", "bound"), CASES)
def test_a_parameter_is_accepted_inside_its_bound_and_refused_by_name_outside(
    name: str, bound: str
) -> None:
    refused_values, taken = BOUNDS[bound]
    for value in refused_values:
        with pytest.raises(TrainingError) as refused:
            paper_recipe(DBOW, **{name: value})
        assert str(refused.value).startswith(f"{name} is {value!r}; it must be ")
    annealed: dict[str, Any] = (
        {"binarization": "straight-through"} if name == "slope_growth" else {}
    )
    for value in taken:
        recipe = paper_recipe(DBOW, **{**annealed, name: value})
        assert getattr(recipe, name) == value
        assert replace(recipe, **{name: getattr(paper_recipe(DBOW), name)}) == paper_recipe(
            DBOW, **annealed
        )


def test_none_leaves_a_parameter_as_it_is() -> None:
    everything: dict[str, Any] = dict.fromkeys(asdict(paper_recipe(DBOW)))
    assert paper_recipe(DBOW, **everything) == paper_recipe(DBOW)
    assert paper_recipe(DBOW, **{**everything, "epochs": 3}) == replace(
        paper_recipe(DBOW), epochs=3
    )


def recipe(**changes: Any) -> Recipe:
    return paper_recipe(
        choose_shape(128, architecture=changes.pop("architecture", "dbow")), **changes
    )


@pytest.mark.parametrize(
    ("choose", "asked", "message"),
    [
        (
            choose_shape,
            {"bits": None},
            "neither bits nor dim is given; bits=128 learns codes, dim=128 real-valued vec",
        ),
        (choose_shape, {"bits": None, "architecture": "dm"}, "neither bits nor dim is given"),
        (
            choose_shape,
            {"bits": 16, "architecture": "skipgram"},
            "no architecture 'skipgram'; choose dbow or dm",
        ),
        (
            choose_shape,
            {"bits": 16, "window": 2},
            "window with architecture dbow; it is an option of dm",
        ),
        (
            choose_shape,
            {"bits": 16, "two_sided": True},
            "two_sided with architecture dbow; it is an option of dm",
        ),
        (
            choose_shape,
            {"bits": 16, "two_sided": "no", "architecture": "dm"},
            "two_sided is 'no'; it must be true or",
        ),
        (
            choose_shape,
            {"bits": 16, "word_dim": 8},
            "word_dim with architecture dbow; it is an option of dm",
        ),
        (
            choose_shape,
            {"bits": 32, "dim": 31},
            "dim 31 is less than bits 32; bits are projected from the real vector",
        ),
        (
            choose_shape,
            {"bits": 16, "dim": 32, "architecture": "dm"},
            "dim and bits with architecture dm; only dbow",
        ),
        (recipe, {"epoch": 3}, "no network parameter 'epoch'; did you mean epochs?"),
        (
            recipe,
            {"neighbours": None},
            "no network parameter 'neighbours'; there are epochs, batch_size, ",
        ),
        (
            recipe,
            {"architecture": "dm", "bigrams": True},
            "bigrams with architecture dm; dm predicts single words in ",
        ),
        (
            recipe,
            {"slope_growth": 0.1},
            "slope_growth with binarization 'rounding'; use straight-through or straight-",
        ),
        (
            recipe,
            {"slope_growth": 0.1, "binarization": "noise"},
            "slope_growth with binarization 'noise'; use straig",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_remedy(
    choose: Any, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(TrainingError) as refused:
        choose(**asked)
    assert str(refused.value).startswith(message)

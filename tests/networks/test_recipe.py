import math
from dataclasses import asdict, fields, replace
from typing import Any

import pytest

from parabit.errors import TrainingError
from parabit.networks.recipe import METHODS, PRESETS, Recipe, preset
from parabit.networks.shape import Shape, choose_shape

DBOW, DM = choose_shape(128), choose_shape(128, architecture="dm")
SHAPES = [
    DBOW,
    DM,
    choose_shape(None, dim=300),
    choose_shape(28, dim=300),
    choose_shape(None, dim=64, architecture="dm"),
]

# For each bound: what it refuses, what it takes.
BOUNDS: dict[str, tuple[list[Any], list[Any]]] = {
    "count": ([0, -1, 1.5, 2.0, True, "3"], [1, 1000]),
    "count or 0": ([-1, 0.0, 1.5, False, "3"], [0, 7]),
    "positive": ([0, 0.0, -1e-9, math.nan, math.inf, True, "1"], [1e-9, 5]),
    "not negative": ([-1e-9, math.nan, math.inf, -math.inf, False, "1"], [0, 0.0, 3.5]),
    "share": ([-0.1, 1, 1.0, math.nan, True, "0.5"], [0, 0.0, 0.999]),
    "method": (["round", "", 1, ["rounding"]], list(METHODS)),
    "start": (["zeros", "", 0], ["random", "words", "lsa"]),
}
CASES = [(parameter.name, parameter.metadata["bound"]) for parameter in fields(Recipe)]


@pytest.mark.parametrize(("name", "bound"), CASES)
def test_a_parameter_outside_its_bound_is_refused_by_name(name: str, bound: str) -> None:
    for value in BOUNDS[bound][0]:
        with pytest.raises(TrainingError) as refused:
            preset("default", DBOW, **{name: value})
        assert str(refused.value).startswith(f"{name} is {value!r}; it must be ")


@pytest.mark.parametrize(("name", "bound"), CASES)
def test_a_parameter_inside_its_bound_is_taken(name: str, bound: str) -> None:
    annealed = {"binarization": "straight-through"} if name == "slope_growth" else {}
    for value in BOUNDS[bound][1]:
        recipe = preset("default", DBOW, **{**annealed, name: value})
        assert getattr(recipe, name) == value
        assert replace(recipe, **{name: getattr(preset("default", DBOW), name)}) == preset("default", DBOW, **annealed)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_whole_recipe_for_every_network(name: str, shape: Shape) -> None:
    recipe = preset(name, shape)
    assert Recipe(**asdict(recipe)) == recipe


@pytest.mark.parametrize("shape", SHAPES)
def test_the_papers_preset_adds_nothing_to_the_paper(shape: Shape) -> None:
    recipe = preset("paper", shape)
    assert (recipe.idf_power, recipe.length_exponent) == (0, 0)  # raw counts
    assert (recipe.neighbours, recipe.start, recipe.binarization) == (0, "random", "rounding")
    assert (recipe.fewest_steps, recipe.warm_up) == (0, 0)  # documents learn from the first step on
    assert (recipe.patience, recipe.slope_growth) == (0, 0)  # trained to the end, bits without chance


def test_the_default_preset_weighs_words_and_knows_neighbours() -> None:
    paper, default = preset("paper", DBOW), preset("default", DBOW)
    assert default.idf_power > paper.idf_power
    assert default.length_exponent > paper.length_exponent
    assert default.neighbours > paper.neighbours
    assert (default.start, default.patience > 0) == ("lsa", True)
    assert default.fewest_steps > paper.fewest_steps
    assert 0 < default.warm_up < default.epochs  # documents are trained too


def test_fewer_units_learn_faster() -> None:
    few, many = preset("default", choose_shape(16)), preset("default", choose_shape(256))
    assert few.document_rate > many.document_rate
    assert few.word_rate > many.word_rate


def test_an_unknown_preset_is_told_with_those_there_are() -> None:
    with pytest.raises(TrainingError, match="^no preset 'best'; there are default, paper$"):
        preset("best", DBOW)


def test_none_leaves_the_presets_value() -> None:
    everything = dict.fromkeys(asdict(preset("paper", DBOW)))
    assert preset("paper", DBOW, **everything) == preset("paper", DBOW)
    assert preset("paper", DBOW, **{**everything, "epochs": 3}) == replace(preset("paper", DBOW), epochs=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fewest_steps", 8),
        ("idf_power", 1.0),
        ("length_exponent", 0.4),
        ("neighbours", 20),
        ("neighbour_weight", 0.3),
        ("start", "words"),
        ("start", "lsa"),
    ],
)
@pytest.mark.parametrize("base", PRESETS)
def test_what_only_a_bag_of_words_has_is_refused_with_dm(base: str, name: str, value: object) -> None:
    assert getattr(preset(base, DBOW, **{name: value}), name) == value
    with pytest.raises(TrainingError, match=f"^{name} with architecture dm; it is an option of dbow$"):
        preset(base, DM, **{name: value})


@pytest.mark.parametrize("method", METHODS)
def test_slope_annealing_belongs_to_stochastic_bits(method: str) -> None:
    if method.startswith("straight-through"):
        assert preset("paper", DBOW, binarization=method, slope_growth=0.1).slope_growth == 0.1
        return
    with pytest.raises(
        TrainingError, match=f"^slope annealing with binarization '{method}'; it belongs to straight-th"
    ):
        preset("paper", DBOW, binarization=method, slope_growth=0.1)

from typing import Any

import pytest

from parabit.errors import TrainingError
from parabit.networks.config import Shape, choose_shape


@pytest.mark.parametrize(
    ("asked", "name", "size", "parts"),
    [
        ({"bits": 128}, "Binary PV-DBOW", "128 bits", [129]),
        ({"bits": None, "dim": 300}, "PV-DBOW", "300 numbers", [301]),
        ({"bits": 28, "dim": 300}, "Real-Binary PV-DBOW", "28 bits", [29]),
        ({"bits": 28, "dim": 28}, "Real-Binary PV-DBOW", "28 bits", [29]),
        ({"bits": 32, "architecture": "dm"}, "Binary PV-DM", "32 bits", [33, 32]),
        ({"bits": None, "dim": 64, "architecture": "dm"}, "PV-DM", "64 numbers", [65, 64]),
        ({"bits": 32, "architecture": "dm", "window": 2, "word_dim": 5}, "Binary PV-DM", "32 bits", [33, 5, 5]),
        ({"bits": 1, "architecture": "dm", "two_sided": True}, "Binary PV-DM", "1 bits", [2, 1, 1]),
    ],
)
def test_what_is_asked_for_is_one_of_the_papers_networks(
    asked: dict[str, Any], name: str, size: str, parts: list[int]
) -> None:
    shape = choose_shape(**asked)
    assert (shape.name, shape.size, shape.parts, shape.hidden) == (name, size, parts, sum(parts))


def test_context_words_stand_before_the_predicted_one_or_on_both_sides() -> None:
    assert choose_shape(8, architecture="dm").slots == (-1,)
    assert choose_shape(8, architecture="dm", window=3).slots == (-3, -2, -1)
    assert choose_shape(8, architecture="dm", window=2, two_sided=True).slots == (-2, -1, 1, 2)
    assert choose_shape(8).slots == ()


def test_only_a_code_with_a_dimension_is_projected() -> None:
    assert choose_shape(8, dim=20) == Shape("dbow", bits=8, dim=20, projected=True)
    assert choose_shape(8) == Shape("dbow", bits=8, dim=8)
    assert choose_shape(None, dim=20) == Shape("dbow", bits=None, dim=20)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "12"])
@pytest.mark.parametrize("name", ["bits", "dim", "window", "word_dim"])
def test_sizes_are_whole_numbers_from_1(name: str, value: object) -> None:
    asked: dict[str, Any] = {"bits": 16, "architecture": "dbow" if name == "dim" else "dm", name: value}
    with pytest.raises(TrainingError) as refused:
        choose_shape(**asked)
    assert str(refused.value).startswith(f"{name} is {value!r}; it must be a whole number, at least 1, such as ")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"bits": None}, "neither bits nor dim is given; bits=128 learns codes, dim=128 real-valued vectors"),
        ({"bits": None, "architecture": "dm"}, "neither bits nor dim is given"),
        ({"bits": 16, "architecture": "skipgram"}, "no architecture 'skipgram'; choose dbow or dm"),
        ({"bits": 16, "architecture": None}, "no architecture None; choose dbow or dm"),
        ({"bits": 16, "window": 2}, "window with architecture dbow; it is an option of dm"),
        ({"bits": 16, "two_sided": True}, "two_sided with architecture dbow; it is an option of dm"),
        ({"bits": 16, "word_dim": 8}, "word_dim with architecture dbow; it is an option of dm"),
        ({"bits": None, "dim": 16, "window": 2}, "window with architecture dbow"),
        ({"bits": 32, "dim": 31}, "dim 31 is less than bits 32; bits are projected from the real vector"),
        ({"bits": 16, "dim": 32, "architecture": "dm"}, "dim and bits with architecture dm; only dbow has a real"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(TrainingError) as refused:
        choose_shape(**asked)
    assert str(refused.value).startswith(words)

import pytest

from parabit import choices
from parabit.index import ranking
from parabit.index.backends import BACKENDS, choose, choose_built


@pytest.mark.parametrize("bits", [1, 28, 64, 128, 256])
@pytest.mark.parametrize("codes", [0, 1000, 200_000, 10_000_000])
def test_auto_takes_an_exact_back_end_that_was_built(codes: int, bits: int) -> None:
    for among in (["flat"], ["flat", "tables"], ["flat", "multi"], list(BACKENDS)):
        for batch in (1, 1000):
            name = choose(codes, bits, k=10, batch=batch, among=among)
            assert name in among
            assert BACKENDS[name].exact
    assert BACKENDS[choose_built(codes, bits)].exact


def test_what_is_built_is_what_is_chosen() -> None:
    for bits in (28, 64, 128):
        for codes in (1000, 1_000_000):
            assert choose(codes, bits, radius=2, batch=100, among=("flat", choose_built(codes, bits))) == choose_built(
                codes, bits
            )


def test_the_names_to_choose_from_are_those_there_are() -> None:
    assert ("auto", *BACKENDS) == choices.BACKENDS
    assert {"hamming", *ranking._SCORES} == {*choices.RANKS}

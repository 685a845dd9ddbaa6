import pytest

from parabit.corpus.split import held_out


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_held_out_part_is_the_share(share: float) -> None:
    held = sum(held_out(f"name {place}", share) for place in range(20_000))
    assert held / 20_000 == pytest.approx(share, abs=0.015)


def test_the_split_is_fixed_for_all_time() -> None:
    names = ["Alan Turing", "Hubble Space Telescope", "Žižek", "\ud800", ""]
    assert [held_out(name, 0.5) for name in names] == EXPECTED


EXPECTED = [False, False, True, True, True]

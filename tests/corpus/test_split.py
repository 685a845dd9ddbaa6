import pytest

from parabit.corpus.split import in_split

NAMES = ["Alan Turing", "Hubble Space Telescope", "Žižek", "\ud800", ""]


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_held_out_part_is_the_share(share: float) -> None:
    held = sum(in_split(f"name {place}", "test", share) for place in range(20_000))
    assert held / 20_000 == pytest.approx(share, abs=0.015)


@pytest.mark.parametrize("name", NAMES)
def test_every_document_is_in_one_part_and_in_the_whole(name: str) -> None:
    assert in_split(name, "train", 0.5) != in_split(name, "test", 0.5)
    assert in_split(name, None, 0.5)


def test_the_split_is_fixed_for_all_time() -> None:
    assert [in_split(name, "test", 0.5) for name in NAMES] == [False, False, True, True, True]

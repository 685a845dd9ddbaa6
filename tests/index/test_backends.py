"""What every back end must do, with a scan in numpy as the oracle."""

from pathlib import Path

import index_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from parabit import ParabitError
from parabit.codes import pack
from parabit.index.backends import BACKENDS, Backend, hashing
from parabit.index.results import Found
from parabit.progress import Progress

BITS = [1, 3, 8, 16, 28, 32, 64, 100, 128, 256]


@pytest.fixture(params=["as it is", "never scanning"])
def scans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Hashing leaves few codes to a scan, which is faster then; it must be right without that too."""
    if request.param == "never scanning":
        monkeypatch.setattr(hashing, "scan_cost", lambda *_: np.inf)
    return str(request.param)


def as_pairs(found: Found) -> list[list[tuple[int, int]]]:
    pairs = list(zip(found.rows.tolist(), found.distances.tolist(), strict=True))
    return [pairs[start:stop] for start, stop in zip(found.offsets[:-1], found.offsets[1:], strict=True)]


def asked_of(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Queries that are among the codes, near them, and far from all."""
    far = pack(np.random.default_rng(5).random((2, bits)) < 0.8)
    return np.concatenate([codes[:3], oracle.made_up(4, bits, seed=7), far])


def check(backend: Backend, queries: NDArray[np.uint8], radii: list[int], ks: list[int]) -> None:
    for k in ks:
        found = backend.nearest(queries, k)
        rows, distances = oracle.nearest(backend.codes, queries, k)
        assert found.rows.tolist() == rows
        assert found.distances.tolist() == distances
        assert (found.rows.dtype, found.distances.dtype) == (np.int64, np.int32)
    for radius in radii:
        all_inside = oracle.within(backend.codes, queries, radius)
        inside = backend.within(queries, radius)
        assert as_pairs(inside) == all_inside
        assert (inside.offsets.dtype, inside.rows.dtype, inside.distances.dtype) == (np.int64, np.int64, np.int32)
        for most in ks:
            assert as_pairs(backend.within(queries, radius, most)) == [some[:most] for some in all_inside]


@pytest.mark.usefixtures("scans")
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("name", BACKENDS)
def test_finds_what_a_scan_finds(name: str, bits: int) -> None:
    codes = oracle.made_up(400, bits)
    backend = BACKENDS[name].build(codes, bits)
    check(backend, asked_of(codes, bits), radii=[0, 1, 2, 4, bits, bits + 7], ks=[1, 10, 400, 1000])


@pytest.mark.usefixtures("scans")
@pytest.mark.parametrize("name", BACKENDS)
def test_finds_what_a_scan_finds_among_many(name: str) -> None:
    for bits, flips in ((28, 0.03), (128, 0.02), (128, 0.08)):
        codes = oracle.made_up(20_000, bits, flips=flips, clusters=300)
        queries = oracle.made_up(40, bits, seed=3, flips=flips, clusters=300)
        backend = BACKENDS[name].build(codes, bits)
        check(backend, queries, radii=[2], ks=[10])
        check(backend, queries[:1], radii=[2], ks=[10])


@given(
    bits=st.integers(1, 40),
    seed=st.integers(0, 1000),
    count=st.integers(1, 60),
    k=st.integers(1, 70),
    radius=st.integers(0, 45),
    flips=st.sampled_from([0.0, 0.02, 0.2, 0.5]),
    cost=st.sampled_from([0.0, 300.0, 1e5, np.inf]),
)
@settings(max_examples=120)
def test_any_codes(bits: int, seed: int, count: int, k: int, radius: int, flips: float, cost: float) -> None:
    codes = oracle.made_up(count, bits, seed, flips, clusters=3)
    queries = oracle.made_up(3, bits, seed + 1, flips, clusters=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "scan_cost", lambda *_: cost)  # queries are left to a scan at any moment
        for name in BACKENDS:
            check(BACKENDS[name].build(codes, bits), queries, [radius], [k])


@pytest.mark.usefixtures("scans")
@pytest.mark.parametrize("name", BACKENDS)
def test_equal_codes_come_in_the_order_of_their_rows(name: str) -> None:
    codes = np.tile(np.array([[7, 7, 7, 7]], dtype=np.uint8), (3000, 1))
    backend = BACKENDS[name].build(codes, 32)
    assert backend.nearest(codes[:2], 5).rows.tolist() == [[0, 1, 2, 3, 4]] * 2
    assert backend.within(codes[:1], 0).rows.tolist() == list(range(3000))
    assert backend.within(codes[:1], 3, most=4).rows.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", BACKENDS)
def test_an_empty_index_finds_nothing(name: str) -> None:
    codes, queries = np.empty((0, 4), dtype=np.uint8), oracle.made_up(3, 28)
    built = BACKENDS[name].build(codes, 28)
    for backend in (built, BACKENDS[name].of_arrays(codes, 28, built.arrays)):
        assert backend.nearest(queries, 2).rows.tolist() == [[-1, -1]] * 3
        assert as_pairs(backend.within(queries, 28)) == [[], [], []]
        assert as_pairs(backend.within(queries, 28, most=4)) == [[], [], []]


@pytest.mark.parametrize("name", BACKENDS)
def test_no_queries_find_nothing(name: str) -> None:
    codes = oracle.made_up(50, 28)
    backend = BACKENDS[name].build(codes, 28)
    assert backend.nearest(codes[:0], 2).rows.shape == (0, 2)
    assert as_pairs(backend.within(codes[:0], 3)) == []


@pytest.mark.parametrize("name", BACKENDS)
def test_a_query_finds_the_same_alone_and_in_a_batch(name: str) -> None:
    codes = oracle.made_up(5000, 128, flips=0.05)
    backend, queries = BACKENDS[name].build(codes, 128), oracle.made_up(150, 128, seed=4)
    together, inside = backend.nearest(queries, 7), backend.within(queries, 20)
    for query in range(0, 150, 10):
        alone = backend.nearest(queries[query : query + 1], 7)
        assert alone.rows.tolist() == together.rows[query : query + 1].tolist()
        assert as_pairs(backend.within(queries[query : query + 1], 20))[0] == as_pairs(inside)[query]


@pytest.mark.usefixtures("scans")
@pytest.mark.parametrize("name", BACKENDS)
def test_serves_from_memory_maps(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "codes.npy", oracle.made_up(700, 100))
    codes = np.load(tmp_path / "codes.npy", mmap_mode="r")
    built = BACKENDS[name].build(codes, 100)
    for array, values in built.arrays.items():
        np.save(tmp_path / f"{array}.npy", values)
    arrays = {array: np.load(tmp_path / f"{array}.npy", mmap_mode="r") for array in built.arrays}
    opened = BACKENDS[name].of_arrays(codes, 100, arrays)
    queries = asked_of(codes, 100)
    check(opened, queries, radii=[12], ks=[9])
    assert np.shares_memory(opened.codes, codes)


@pytest.mark.parametrize("name", BACKENDS)
def test_codes_and_queries_are_left_as_they_were(name: str) -> None:
    codes = oracle.made_up(300, 28)
    before, queries = codes.copy(), codes[::30]
    codes.flags.writeable = False
    backend = BACKENDS[name].build(codes, 28)
    backend.nearest(queries, 3)
    backend.within(queries, 3)
    assert np.array_equal(codes, before)


@pytest.mark.parametrize("name", BACKENDS)
def test_the_same_codes_give_the_same_arrays(name: str) -> None:
    codes = oracle.made_up(3000, 64)
    first, second = (BACKENDS[name].build(codes, 64).arrays for _ in range(2))
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[array], second[array]) for array in first)


@pytest.mark.parametrize("name", BACKENDS)
def test_bad_input_is_told(name: str) -> None:
    codes = oracle.made_up(50, 28)
    backend = BACKENDS[name].build(codes, 28)
    for wrong, message in (
        (lambda: backend.nearest(codes[:1], 0), "k must be 1 or more, found 0"),
        (lambda: backend.within(codes[:1], -1), "a radius is 0 or more, found -1"),
        (lambda: backend.within(codes[:1], 3, most=0), "k must be 1 or more"),
        (lambda: backend.nearest(codes[0], 1), "queries must be rows of a 2-d array"),
        (lambda: backend.nearest(oracle.made_up(1, 64), 1), "28 bits take 4 bytes, but the codes have 8"),
        (lambda: backend.nearest(codes[:1] | 1, 1), "bits after the first 28"),
        (lambda: BACKENDS[name].build(codes, 64), "64 bits take 8 bytes"),
        (lambda: BACKENDS[name].build(codes[:, ::2], 16), "contiguous"),
    ):
        with pytest.raises(ParabitError, match=message):
            wrong()


@pytest.mark.parametrize("name", BACKENDS)
def test_arrays_of_other_codes_are_refused(name: str) -> None:
    arrays = BACKENDS[name].build(oracle.made_up(50, 28), 28).arrays
    if not arrays:
        return
    with pytest.raises(ParabitError, match=r"should have the shape .*; build it again"):
        BACKENDS[name].of_arrays(oracle.made_up(60, 28), 28, arrays)
    for missing in arrays:
        rest = {array: values for array, values in arrays.items() if array != missing}
        with pytest.raises(ParabitError, match="build it again"):
            BACKENDS[name].of_arrays(oracle.made_up(50, 28), 28, rest)


@pytest.mark.parametrize("name", BACKENDS)
def test_building_tells_how_far_it_is(name: str) -> None:
    told: list[Progress] = []
    BACKENDS[name].build(oracle.made_up(500, 64), 64, told.append)
    assert not told or told[-1].share == 1.0
    assert told or name == "flat"

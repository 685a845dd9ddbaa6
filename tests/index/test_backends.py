"""Every back end finds what a scan in numpy finds, among all rows and among those that are allowed."""

from itertools import product

import index_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from parabit import choices
from parabit.codes import hamming, pack
from parabit.index import code_search
from parabit.index.backends import flat, hashing
from parabit.index.code_search import BACKENDS, choose, choose_built, find
from parabit.index.results import Keys
from parabit.progress import Progress


def check(backend: flat.Flat, queries: NDArray[np.uint8], radii: list[int], ks: list[int]) -> None:
    for radius in (None, *radii):
        for most in (None, *ks):
            found = backend.search(queries, most, radius)
            assert oracle.pairs(found) == oracle.search(backend.codes, queries, most, radius)
            assert [str(array.dtype) for array in found] == ["int64", "int64", "int32"]


@pytest.mark.parametrize("name", BACKENDS)
def test_finds_what_a_scan_finds_among_many(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scan_cost = hashing.scan_cost
    for bits, flips in ((28, 0.03), (128, 0.02), (128, 0.08)):
        codes = oracle.made_up(20_000, bits, flips=flips, clusters=300)
        queries = oracle.made_up(40, bits, seed=3, flips=flips, clusters=300)
        backend = BACKENDS[name](codes, bits)
        for some, (most, radius) in product(
            (queries, queries[:1]), ((10, None), (None, 2), (10, 2))
        ):
            expected = oracle.search(codes, some, most, radius)
            for cost in (
                scan_cost,
                lambda *_: np.inf,
            ):  # what is left to a scan is right without it, too
                monkeypatch.setattr(hashing, "scan_cost", cost)
                assert oracle.pairs(backend.search(some, most, radius)) == expected


@given(
    bits=st.one_of(st.integers(1, 40), st.sampled_from([64, 100, 128, 256])),
    seed=st.integers(0, 1000),
    count=st.one_of(st.integers(0, 60), st.sampled_from([400, 3000])),
    asked=st.sampled_from([0, 1, 9]),
    k=st.one_of(st.integers(1, 70), st.sampled_from([400, 1000])),
    radius=st.one_of(st.integers(0, 45), st.just(263)),
    flips=st.sampled_from([0.0, 0.02, 0.2, 0.5]),
    clusters=st.sampled_from([1, 3]),
    cost=st.sampled_from([0.0, 300.0, 1e5, np.inf]),
)
@settings(max_examples=150)
def test_finds_what_a_scan_finds(
    bits: int,
    seed: int,
    count: int,
    asked: int,
    k: int,
    radius: int,
    flips: float,
    clusters: int,
    cost: float,
) -> None:
    codes = oracle.made_up(count, bits, seed, flips, clusters)
    near, far = (
        oracle.made_up(4, bits, seed + 1, flips, clusters),
        np.random.default_rng(5).random((2, bits)) < 0.8,
    )
    queries = np.concatenate([near, codes[:3], pack(far)])[:asked]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            hashing, "scan_cost", lambda *_: cost
        )  # queries are left to a scan at any moment
        for name in BACKENDS:
            backend = BACKENDS[name](codes, bits)
            assert np.shares_memory(backend.codes, codes) or not count  # a map of a file stays one
            check(backend, queries, [radius], [k])


@pytest.mark.parametrize("piece", [1, 7, 1 << 17])
def test_finds_the_same_in_several_steps(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, limit in (
        (flat, "_COUNTING_BYTES"),
        (flat, "_QUERIES_AT_A_TIME"),
        (hashing, "_CANDIDATES_AT_A_TIME"),
        (hashing, "_KEYS_AT_A_TIME"),
    ):
        monkeypatch.setattr(module, limit, piece)
    monkeypatch.setattr(hashing, "scan_cost", lambda *_: np.inf)
    codes = oracle.made_up(800, 28, flips=0.02)
    for name in BACKENDS:
        check(BACKENDS[name](codes, 28), oracle.made_up(9, 28, seed=2), radii=[2], ks=[15])


@pytest.mark.parametrize("name", BACKENDS)
def test_building_reports_progress_and_gives_the_same_each_time(name: str) -> None:
    reported: list[Progress] = []
    codes = oracle.made_up(3000, 64)
    first, second = (BACKENDS[name].build(codes, 64, reported.append) for _ in range(2))
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[array], second[array]) for array in first)
    assert reported[-1].share == 1.0 if name != "flat" else not reported


def test_auto_takes_a_back_end_that_was_built_and_scans_for_many_hits() -> None:
    assert ("auto", *BACKENDS) == choices.BACKENDS
    for codes, bits in product((0, 1000, 200_000, 10_000_000), (1, 28, 64, 128, 256)):
        built = choose_built(codes, bits)
        for among, batch in product((["flat"], list(BACKENDS)), (1, 1000)):
            assert choose(codes, bits, k=10, batch=batch, among=among) in among
        if bits in (28, 64, 128):
            assert choose(codes, bits, radius=2, batch=100, among=("flat", built)) == built
    for bits, expected in (
        (128, ["hashing", "flat", "flat"]),
        (28, ["hashing", "hashing", "flat"]),
    ):
        assert [choose(2_000_000, bits, k=k) for k in (10, 200, 1000)] == expected


@pytest.mark.parametrize("name", BACKENDS)
@given(
    share=st.sampled_from([0.0, 0.01, 0.3, 0.97, 1.0]),
    clustered=st.booleans(),
    k=st.integers(1, 40),
    radius=st.integers(0, 20),
    scanned=st.sampled_from([0, 4096]),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_only_allowed_rows_are_found(
    name: str, share: float, clustered: bool, k: int, radius: int, scanned: int, seed: int
) -> None:
    codes, queries = oracle.made_up(300, 32, seed), oracle.made_up(4, 32, seed + 1)
    allowed = np.random.default_rng(seed).random(300) < share
    if clustered:  # what is near the query is not allowed
        allowed &= hamming(queries[:1], codes)[0] > 9
    backend, rows = BACKENDS[name](codes, 32), np.flatnonzero(allowed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_search, "_SCANNED", scanned)
        for most, within in ((k, None), (None, radius), (k, radius)):
            among = oracle.search(codes[rows], queries, most, within)
            expected = [[(int(rows[row]), distance) for row, distance in hits] for hits in among]
            assert oracle.pairs(find(backend, queries, most, within, allowed)) == expected


def test_keys_hold_large_rows_and_long_codes() -> None:
    keys = Keys(rows=1 << 33, bits=1024)
    rows = np.array([(1 << 33) - 1, 0, 5])
    packed = keys.pack(np.array([3, 0, 3]), np.array([1024, 7, 0]), rows)
    found = keys.found(np.sort(packed), queries=5)
    assert oracle.pairs(found) == [[(0, 7)], [], [], [(5, 0), ((1 << 33) - 1, 1024)], []]

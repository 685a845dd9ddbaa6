from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from parabit import codes
from parabit.codes import hamming, pack, unpack
from parabit.errors import CodesError

BITS = st.integers(1, 140)


@st.composite
def two_sets(draw: st.DrawFn) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    bits = draw(BITS)
    one, other = (
        draw(arrays(np.uint8, (draw(st.integers(0, 9)), bits), elements=st.integers(0, 1)))
        for _ in "ab"
    )
    return one, other


@given(arrays(np.uint8, array_shapes(max_dims=3, max_side=20), elements=st.integers(0, 1)))
def test_bits_come_back_as_they_were(bits: NDArray[np.uint8]) -> None:
    packed = pack(bits)
    assert packed.shape == (*bits.shape[:-1], -(-bits.shape[-1] // 8))
    assert (unpack(packed, bits.shape[-1]) == bits).all()
    assert (pack(bits.astype(np.bool_)) == packed).all()
    assert (packed == np.packbits(bits, axis=-1)).all()


@given(two_sets(), st.sampled_from([1, 20, 50, codes._BLOCK]))
def test_distances_are_bits_counted_one_by_one(
    sets: tuple[NDArray[np.uint8], NDArray[np.uint8]], block: int
) -> None:
    one, other = sets
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "_BLOCK", block)
        distances = hamming(pack(one), pack(other))
    assert distances.dtype == np.int32
    assert distances.tolist() == [
        [int((first != second).sum()) for second in other] for first in one
    ]


def test_a_distance_may_be_more_than_a_byte_holds() -> None:
    assert hamming(np.zeros((1, 130), np.uint8), np.full((1, 130), 255, np.uint8)).tolist() == [
        [1040]
    ]


def test_codes_may_lie_in_memory_in_any_order() -> None:
    packed = np.random.default_rng(2).integers(0, 256, (12, 16), dtype=np.uint8)
    expected = hamming(packed, packed)
    packed.flags.writeable = False
    assert (hamming(np.asfortranarray(packed), packed[::-1])[:, ::-1] == expected).all()
    assert (
        hamming(packed[:, :12], packed[:, 4:])
        == hamming(packed[:, :12].copy(), packed[:, 4:].copy())
    ).all()


PACKED = np.array([[0, 0], [0, 1]], dtype=np.uint8)
WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: pack(np.zeros((2, 8))), "bool or uint8, found float64"),  # type: ignore[arg-type]
    (lambda: pack(np.full((2, 8), 2, dtype=np.uint8)), "0 or 1, found 2"),
    (
        lambda: pack(np.zeros((2, 0), dtype=np.uint8)),
        r"no bits to pack in an array of shape \(2, 0\)",
    ),
    (lambda: pack(np.uint8(1)), r"shape \(\)"),  # type: ignore[arg-type]
    (lambda: unpack(PACKED, 17), "17 bits take 3 bytes, but the codes have 2"),
    (lambda: unpack(PACKED, 0), "1 bit or more, found bits=0"),
    (lambda: unpack(PACKED, 15), "bits after the first 15"),
    (lambda: hamming(PACKED, PACKED[:, :1]), "codes of 2 bytes cannot be compared with codes of 1"),
    (
        lambda: hamming(PACKED, PACKED[0]),
        r"rows of a 2-d array, found 1 dimensions; give a single code as `code",
    ),
    (lambda: hamming(PACKED, PACKED.astype(np.int8)), "uint8, found int8"),
    (lambda: hamming(PACKED, PACKED[:, :0]), r"no codes in an array of shape \(2, 0\)"),
]


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_what_are_no_codes_or_do_not_go_together_is_refused(
    call: Callable[[], object], words: str
) -> None:
    with pytest.raises(CodesError, match=words):
        call()

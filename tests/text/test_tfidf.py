import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parabit.text.bags import inverse_frequencies, tf_idf_rows


def test_the_idf_is_the_logarithm_of_documents_and_one_over_those_with_the_word() -> None:
    idf = inverse_frequencies(np.array([1, 4, 9, 0]), documents=9)
    np.testing.assert_allclose(idf, [math.log(10), math.log(10 / 4), math.log(10 / 9), 0], rtol=1e-6)
    assert idf.dtype == np.float32


BAGS = st.lists(st.dictionaries(st.integers(0, 9), st.integers(1, 10_000), max_size=8), max_size=12)


@given(bags=BAGS)
def test_rows_are_the_weights_of_each_word_at_length_one(bags: list[dict[int, int]]) -> None:
    features = np.array([word for bag in bags for word in sorted(bag)], dtype=np.int32)
    counts = np.array([bag[word] for bag in bags for word in sorted(bag)], dtype=np.int32)
    offsets = np.cumsum([0, *(len(bag) for bag in bags)])
    idf = np.linspace(0, 5, 10).astype(np.float32)  # the first word weighs nothing
    rows = tf_idf_rows(features, counts, offsets, idf)
    assert rows.dtype == np.float32
    assert rows.shape == (len(bags), 10)
    for bag, row in zip(bags, rows.toarray(), strict=True):
        weights = [(1 + math.log(bag[word])) * float(idf[word]) if word in bag else 0.0 for word in range(10)]
        length = math.hypot(*weights)
        np.testing.assert_allclose(row, [weight / length if length else 0.0 for weight in weights], atol=1e-6)

"""Rows of different lengths, against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from parabit.model.neighbours import paired_products

LENGTHS = st.lists(st.integers(0, 5), min_size=1, max_size=12)


@given(seed=st.integers(0, 10_000), counts=st.lists(st.integers(0, 4), max_size=5), empty=st.booleans())
def test_products_are_those_of_dense_rows(seed: int, counts: list[int], empty: bool) -> None:
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((len(counts), 9)) < 0.4, rng.standard_normal((len(counts), 9)), 0).astype(np.float32)
    pairs = np.cumsum([0, *counts])
    documents = np.where(rng.random((sum(counts), 9)) < 0.3, rng.standard_normal((sum(counts), 9)), 0)
    if empty and len(documents):
        documents[rng.integers(len(documents))] = 0
        documents[-1] = 0  # the last has no words, nor a place to begin
    sparse = csr_array(documents.astype(np.float32))
    products = paired_products(csr_array(dense), pairs, sparse.indices, sparse.data, sparse.indptr.astype(np.int64))
    query_of = np.repeat(np.arange(len(counts)), counts)
    assert products.dtype == np.float32
    assert products.tolist() == pytest.approx((dense[query_of] * documents).sum(axis=1).tolist(), abs=1e-5)


def test_no_query_and_no_document_have_no_products() -> None:
    nothing, start = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    none = csr_array(np.zeros((0, 3), dtype=np.float32))
    assert paired_products(none, start, nothing, np.zeros(0, dtype=np.float32), start).tolist() == []
    two = csr_array(np.ones((2, 3), dtype=np.float32))
    assert paired_products(two, np.zeros(3, dtype=np.int64), nothing, np.zeros(0), start).tolist() == []


def test_a_document_has_the_same_product_alone_and_among_others() -> None:
    rng = np.random.default_rng(0)
    queries = csr_array(rng.random((6, 400)).astype(np.float32))
    documents = csr_array((rng.random((60, 400)) * (rng.random((60, 400)) < 0.5)).astype(np.float32))
    offsets = documents.indptr.astype(np.int64)
    together = paired_products(queries, np.arange(0, 61, 10), documents.indices, documents.data, offsets)
    for place in range(60):
        mine = documents[place : place + 1]
        query = queries[place // 10 : place // 10 + 1]
        alone = paired_products(query, np.array([0, 1]), mine.indices, mine.data, mine.indptr.astype(np.int64))
        assert alone[0] == together[place]

"""Checks of what baselines are given."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from parabit.errors import BaselineError


def check_counts(counts: Any, words: int | None = None) -> csr_array:
    """The counts with each word once per row; BaselineError if they are not counts, or not of `words` words.

    Without `words` they are for fitting, and must not be empty.

    Example:
        >>> check_counts(csr_array((2, 5)), words=7)
        Traceback (most recent call last):
        parabit.errors.BaselineError: the documents count 5 words, and the baseline was fitted on 7; count both with the
        same vocabulary
    """
    sparse = bool(issparse(counts))
    if not sparse or counts.ndim != 2 or counts.dtype.kind not in "fiub":
        raise BaselineError(
            f"counts must be a sparse matrix of numbers, documents x words, found {_describe(counts)}",
            hint="make one with scipy.sparse.csr_array",
        )
    rows: csr_array = csr_array(counts)  # shares their arrays, which must not be changed
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if rows.nnz and not (np.isfinite(rows.data).all() and rows.data.min() >= 0):
        raise BaselineError("there are counts below 0 or not finite", hint="give the raw counts of words")
    if not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    if words is None and not rows.nnz:
        raise BaselineError(
            f"there is nothing to fit on: {rows.shape[0]} documents with {rows.shape[1]} words, and no count above 0",
            hint="give the training documents",
        )
    if words is not None and rows.shape[1] != words:
        raise BaselineError(
            f"the documents count {rows.shape[1]} words, and the baseline was fitted on {words}",
            hint="count both with the same vocabulary",
        )
    return rows


def check_vectors(vectors: Any, dim: int | None = None) -> NDArray[np.float64]:
    """The vectors in double precision; BaselineError if they are not rows of numbers, or not of `dim` numbers.

    Example:
        >>> check_vectors([[1, 2]]).dtype
        dtype('float64')
    """
    rows = np.asarray(vectors)
    if issparse(vectors) or rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise BaselineError(
            f"vectors must be rows of a 2-d array of numbers, found {_describe(vectors)}",
            hint="LSA turns counts into vectors",
        )
    if not np.isfinite(rows).all():
        broken = int((~np.isfinite(rows).all(axis=1)).argmax())
        raise BaselineError(f"vector {broken} has values that are not finite", hint="check how it was made")
    if dim is None and not rows.size:
        raise BaselineError(
            f"there is nothing to fit on in an array of shape {rows.shape}", hint="give one vector per row"
        )
    if dim is not None and rows.shape[1] != dim:
        raise BaselineError(
            f"the vectors have {rows.shape[1]} dimensions, and the baseline was fitted on {dim}",
            hint="compute both in the same way",
        )
    return rows.astype(np.float64, copy=False)


def check_size(name: str, value: int, most: int | None = None, of: str = "") -> None:
    """Raise BaselineError unless a number of bits or dimensions is at least 1 and at most `most`, the number `of` what.

    Example:
        >>> check_size("bits", 128, most=100, of="dimensions of the vectors")
        Traceback (most recent call last):
        parabit.errors.BaselineError: bits=128 is more than the 100 dimensions of the vectors; use fewer
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise BaselineError(
            f"{name} must be a whole number, at least 1, found {value!r}", hint="a usual value is bits=128"
        )
    if most is not None and value > most:
        raise BaselineError(f"{name}={value} is more than the {most} {of}", hint="use fewer")


def check_fitted(baseline: object, attribute: str) -> None:
    """Raise BaselineError unless `fit` has set this attribute."""
    if not hasattr(baseline, attribute):
        raise BaselineError(f"this {type(baseline).__name__} is not fitted yet", hint="call `fit` first")


def _describe(given: Any) -> str:
    kind = "a sparse" if issparse(given) else "an"
    return f"{kind} array of {given.dtype} and shape {given.shape}" if hasattr(given, "dtype") else repr(type(given))

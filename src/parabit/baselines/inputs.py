"""What baselines are given, checked before any work."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from parabit.errors import BaselineError


def check_counts(counts: Any, words: int | None = None) -> csr_array:
    """The counts as rows whose every word stands once; BaselineError unless they are such, of `words` where given.

    Without `words` they are to be fitted on, and nothing can be learned from no documents and no words.

    Example:
        >>> check_counts(csr_array((2, 5)), words=7)
        Traceback (most recent call last):
        parabit.errors.BaselineError: the documents count 5 words, and the baseline was fitted on 7; count both with the
        same vocabulary
    """
    sparse = bool(issparse(counts))
    if not sparse or counts.ndim != 2 or counts.dtype.kind not in "fiub":
        raise BaselineError(
            f"counts must be a sparse matrix of numbers, documents x words, found {_told(counts)}",
            hint="make one with scipy.sparse.csr_array",
        )
    rows: csr_array = csr_array(counts)  # of the same arrays: they are changed in copies alone
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
    """The vectors in double precision; BaselineError unless they are rows of numbers, of `dim` where it is given.

    Example:
        >>> check_vectors([[1, 2]]).dtype
        dtype('float64')
    """
    rows = np.asarray(vectors)
    if issparse(vectors) or rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise BaselineError(
            f"vectors must be rows of a 2-d array of numbers, found {_told(vectors)}",
            hint="counts become vectors with LSA",
        )
    if not np.isfinite(rows).all():
        broken = int((~np.isfinite(rows).all(axis=1)).argmax())
        raise BaselineError(f"vector {broken} has values that are not finite", hint="check how it was made")
    if dim is None and not rows.size:
        raise BaselineError(
            f"there is nothing to fit on in an array of shape {rows.shape}", hint="give one vector a row"
        )
    if dim is not None and rows.shape[1] != dim:
        raise BaselineError(
            f"the vectors have {rows.shape[1]} dimensions, and the baseline was fitted on {dim}",
            hint="make both in the same way",
        )
    return rows.astype(np.float64, copy=False)


def check_size(name: str, value: int, most: int | None = None, of: str = "") -> None:
    """Raise BaselineError unless a number of bits, dimensions or the like is 1 or more, and at most `most` `of` these.

    Example:
        >>> check_size("bits", 128, most=100, of="dimensions of the vectors")
        Traceback (most recent call last):
        parabit.errors.BaselineError: bits=128 is more than the 100 dimensions of the vectors; take fewer
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise BaselineError(f"{name} must be a whole number from 1 up, found {value!r}", hint="bits=128 is usual")
    if most is not None and value > most:
        raise BaselineError(f"{name}={value} is more than the {most} {of}", hint="take fewer")


def check_fitted(baseline: object, attribute: str) -> None:
    """Raise BaselineError unless `fit` has set this attribute."""
    if not hasattr(baseline, attribute):
        raise BaselineError(f"this {type(baseline).__name__} is not fitted yet", hint="call `fit` first")


def _told(given: Any) -> str:
    kind = "a sparse" if issparse(given) else "an"
    return f"{kind} array of {given.dtype} and shape {given.shape}" if hasattr(given, "dtype") else repr(type(given))

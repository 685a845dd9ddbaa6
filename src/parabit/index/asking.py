"""Queries on their way into a search: codes as they are, texts encoded as the documents were."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes
from parabit.corpus import Corpus
from parabit.errors import CodesError
from parabit.index.documents import words_of
from parabit.index.ranking import Queries
from parabit.model import TextEncoder
from parabit.model.encoder import joined


def checked_k(k: object) -> int:
    """How many hits are asked for; a CodesError where that makes no sense.

    Example:
        >>> checked_k(0)
        Traceback (most recent call last):
        parabit.errors.CodesError: k must be 1 or more, found 0; ask for at least one hit
    """
    whole = _whole("k", k)
    if whole < 1:
        raise CodesError(f"k must be 1 or more, found {whole}", hint="ask for at least one hit")
    return whole


def checked_radius(radius: object) -> int:
    """The radius that is asked for; a CodesError where it makes no sense.

    Example:
        >>> checked_radius(np.int64(2))
        2
    """
    whole = _whole("radius", radius)
    if whole < 0:
        raise CodesError(f"a radius is 0 or more, found {whole}", hint="0 finds equal codes")
    return whole


def asked_codes(codes: NDArray[np.uint8], bits: int) -> Queries:
    """Codes as queries.

    Example:
        >>> asked_codes(np.zeros((2, 4), dtype=np.uint8), bits=28).known
        array([ True,  True])
    """
    if codes.ndim != 2:
        raise CodesError(
            f"codes to search with must be rows of a 2-d array, found shape {codes.shape}",
            hint="give a single code as `code[None]`",
        )
    check_codes(codes, bits)
    return Queries(codes, np.ones(len(codes), dtype=np.bool_))


def asked_texts(corpus: Corpus, model: TextEncoder) -> Queries:
    """Texts as queries, with their words."""
    parts = list(model.infer_each(corpus))
    codes, activations, vectors = joined([part.inferred for part in parts], model.bits, model.dim)
    assert codes is not None
    known = np.concatenate([np.zeros(0, dtype=np.bool_), *(part.known for part in parts)])
    return Queries(codes, known, activations, vectors, words_of(model, parts))


def with_vectors(queries: Queries, vectors: NDArray[Any], width: int | None) -> Queries:
    """Queries with vectors of another model, to be compared with stored ones; `width` is None where none are stored.

    Example:
        >>> queries = asked_codes(np.zeros((2, 4), dtype=np.uint8), bits=28)
        >>> with_vectors(queries, np.zeros((2, 7)), width=9)
        Traceback (most recent call last):
        parabit.errors.CodesError: query_vectors must be of shape (2, 9), found (2, 7); give a vector for each query, \
of the model that made the stored ones
    """
    given = np.asarray(vectors, dtype=np.float32)
    if width is not None and given.shape != (len(queries.codes), width):
        raise CodesError(
            f"query_vectors must be of shape {(len(queries.codes), width)}, found {given.shape}",
            hint="give a vector for each query, of the model that made the stored ones",
        )
    if not np.isfinite(given).all():
        raise CodesError("query_vectors have numbers that are not finite", hint="leave out what has no vector")
    return queries._replace(vectors=given)


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise CodesError(f"{name} must be a whole number, found {value!r}", hint="give it as an int")
    return int(value)  # as faiss takes no others

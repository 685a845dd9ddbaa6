"""Ids as bytes that say whether they were strings or integers, so that they come back as they came."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.store.schema import Id, Ragged


def id_bytes(identity: Id) -> bytes:
    """An id as bytes; 7 and "7" are two ids.

    Example:
        >>> id_bytes("7"), id_bytes(7)
        (b's7', b'i7')
    """
    if isinstance(identity, str):
        return b"s" + identity.encode("utf-8", "surrogatepass")
    if isinstance(identity, int | np.integer) and not isinstance(identity, bool):
        return b"i%d" % identity
    raise IndexFolderError(
        f"an id must be a string or an integer, found {identity!r}", hint="convert it, for example with str()"
    )


def id_of(written: bytes) -> Id:
    """The id that `id_bytes` wrote.

    Example:
        >>> id_of(b"s7"), id_of(b"i7")
        ('7', 7)
    """
    return written[1:].decode("utf-8", "surrogatepass") if written[:1] == b"s" else int(written[1:])


def rows_in(written: Ragged) -> list[bytes]:
    """The rows of a ragged array of bytes."""
    everything, bounds = written.values.tobytes(), written.offsets.tolist()
    return [everything[start:stop] for start, stop in pairwise(bounds)]


def hashes(rows: Iterable[bytes]) -> NDArray[np.uint64]:
    """64 bits of BLAKE2b of each: the same in every process and version, and spread evenly whatever goes in.

    Example:
        >>> len(set(hashes([b"s7", b"i7"]).tolist()))
        2
    """
    return np.frombuffer(b"".join([blake2b(row, digest_size=8).digest() for row in rows]), dtype="<u8")


def need_distinct(ids: Sequence[bytes]) -> None:
    """Raise if an id is there twice."""
    if len(set(ids)) == len(ids):
        return
    seen: set[bytes] = set()
    for identity in ids:
        if identity in seen:
            raise IndexFolderError(f"the id {id_of(identity)!r} is given twice", hint="ids must be unique")
        seen.add(identity)

"""Splits that never change: a document's part follows from a hash of its name alone."""

from hashlib import sha256


def in_split(name: str, split: str | None, held_out: float) -> bool:
    """Whether the document of this name belongs to a split: `test`, a given share of all, or `train`, the others.

    The same on every machine and in every version, whatever other documents there are. Where no split is asked for,
    every document belongs.

    Example:
        >>> sum(in_split(f"article {i}", "test", held_out=0.1) for i in range(10_000))
        1010
    """
    if split is None:
        return True
    digest = sha256(name.encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:8], "big") >= (1 - held_out) * 2**64) == (split == "test")

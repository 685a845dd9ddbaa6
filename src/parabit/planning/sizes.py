"""How large things are, on disk and in memory: formulas of the files and tables that parabit makes, in bytes.

Each is compared with real files by `benchmarks/stage_costs.py` and in the tests.
"""

from math import ceil, log2

_FLOAT, _HALF, _INT, _LONG = 4, 2, 4, 8
_TABLES = 3  # of what is trained: values, AdaGrad's sums of squares, and those of the best epoch
_SHORT, _LONGEST_SUBSTRING = 40, 28  # bits: of codes that one table serves, and of a key


def bags(documents: float, words: float, entries: float, ids: float) -> float:
    """A folder of bags: word ids in order, distinct ones with their counts, where each document begins, and ids.

    Example:
        >>> bags(documents=1000, words=70, entries=50, ids=4)
        700000
    """
    return documents * (_INT * words + 2 * _INT * entries + 2 * _LONG + ids)


def word_tables(features: float, hidden: int) -> float:
    """The word matrix with what training keeps beside it.

    Example:
        >>> word_tables(features=1000, hidden=129)
        1548000
    """
    return features * hidden * _FLOAT * _TABLES


def document_tables(documents: float, units: int) -> float:
    """Embeddings with what training keeps beside them.

    Example:
        >>> document_tables(documents=1000, units=128)
        1536000
    """
    return documents * units * _FLOAT * _TABLES


def embeddings(documents: float, units: int) -> float:
    """Embeddings alone."""
    return documents * units * _FLOAT


def surroundings(documents: float, units: int, neighbours: int) -> float:
    """What training knows of documents before it begins: half floats of what they are about, and neighbours."""
    return documents * (max(units, 128) * _HALF + neighbours * _INT)


def semantic_space(features: float, units: int) -> float:
    """What finding the semantic space needs: three matrices with a row for each word."""
    return features * (max(units, 128) + 16) * _FLOAT * 3


def distilling(features: float, units: int) -> float:
    """What learning the fast encoder needs: four matrices with a row for each word."""
    return features * units * _FLOAT * 4


def model(features: float, hidden: int, units: int, name: float, documents: float = 0) -> float:
    """A model's folder: the word matrix, the fast encoder in half floats, the vocabulary, and perhaps embeddings.

    Example:
        >>> model(features=1000, hidden=129, units=128, name=9)
        781000
    """
    return features * (hidden * _FLOAT + units * _HALF + name) + embeddings(documents, units)


def loaded_model(features: float, hidden: int, units: int, name: float) -> float:
    """The same in memory, where the fast encoder is there in half floats and in whole ones."""
    return features * (hidden * _FLOAT + units * (_HALF + _FLOAT) + name)


def row_sent(hidden: int) -> int:
    """A row of the word matrix's gradient as it is sent: its numbers, and which it is.

    Example:
        >>> row_sent(hidden=129)
        524
    """
    return hidden * _FLOAT + _LONG


def index(documents: float, code: int, ids: float) -> float:
    """An index without texts, words and fields: codes, ids, a table that finds ids, and empty records.

    Example:
        >>> index(documents=1000, code=16, ids=5)
        55000
    """
    return documents * (code + ids + _LONG + 2 * _LONG + len("{}") + _LONG)


def hashing(codes: int, bits: int) -> float:
    """What finds near codes faster than a scan, beside the codes: a table of short ones, several of long ones.

    The places of all codes in each table, where each key's begin, and the codes once more, near ones side by side.

    Example:
        >>> round(hashing(5_000_000, bits=128) / 5e6, 1), round(hashing(5_000_000, bits=28) / 5e6, 1)
        (57.4, 21.4)
    """
    several = bits > _SHORT
    if several:
        best = min(max(4.0, log2(max(codes, 2)) - 0.5), _LONGEST_SUBSTRING - 3)
        count = max(ceil(bits / (best + 2)), round(bits / best))
        lengths = [bits * (place + 1) // count - bits * place // count for place in range(count)]
    else:
        lengths = [max(1, min(bits, _LONGEST_SUBSTRING, max(codes, 2).bit_length() + 1))]
    number = _INT if codes * len(lengths) < 1 << 32 else _LONG
    row = (_INT if codes < 1 << 32 else _LONG) if several else 0
    starts = sum(1 << length for length in lengths)
    return float(number * (codes * len(lengths) + starts) + codes * (-(-bits // 8) + row))

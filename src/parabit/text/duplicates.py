"""Near-duplicates: documents that share at least half of their words.

Two documents are near-duplicates if, of the different words that either has, both have at least half (Jaccard), and at
least .45 by weight, where rare words weigh more: two dividend notices that differ in the names and figures of
the companies are no copies.

Comparing all with all would take too long, so words propose candidates. Put the words of each document in order, the
rarest first: two documents that share half of their words share one of the first halves (prefix filtering: S.
Chaudhuri, V. Ganti and R. Kaushik, "A primitive operator for similarity joins in data cleaning", 2006), and an edited
copy shares many, so 16 words of each are enough, or an eighth of a long one. They are rare, so a sparse product finds
all candidates. Documents are compared in order, and only with those that are kept.

A group is a document that is kept and its near-duplicates. If A is like B and B is like C, but A is not like C, then C
is not in A's group: a document may be deleted only if one like it is kept.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from parabit.choices import Keep
from parabit.corpus import Corpus, Document, as_corpus, number_of, title_of
from parabit.errors import ParabitError
from parabit.parallel import ordered_map
from parabit.progress import Progress, Report, silent
from parabit.text.bags import blocks, row_offsets
from parabit.text.tokenizer import Numbering, Tokenizer

if TYPE_CHECKING:
    import polars as pl
    from scipy.sparse import csr_array

SHARED = 0.5  # the share of common words from which two documents are near-duplicates
_TOKENIZER = Tokenizer()
_BY_WEIGHT = 0.9  # times that: the share of their weight
_OTHERS = 1000  # documents that a collection is taken to have besides, as frequencies in a small one say little
_LEAST = 2  # a rarer word weighs no more: it may be a typing error
_RARE = (
    16,
    127,
)  # words of a document that propose candidates: an eighth of them, but so many at least and at most
_PROPOSED = 0.15  # the share of these words that a candidate has in common
_WORK = 2e9  # steps of the product, about two minutes: the most frequent words propose nothing if it took more
_PARTS = 16  # in so many parts, as copies that are found in one need not be compared with those in the next
_AT_ONCE = 1 << 22  # numbers that are looked at together

Id: TypeAlias = str | int  # a number only in an index
Numbers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


class Copy(NamedTuple):
    """A near-duplicate of a document that is kept."""

    id: Id
    title: str
    shared: float  # the share of their words that both have
    bits: int | None = None  # in how many bits their codes differ; None if there are no codes


class Group(NamedTuple):
    """A document that is kept, and its near-duplicates."""

    kept: Id
    title: str
    copies: tuple[Copy, ...]


def copies_among(texts: Sequence[str]) -> list[int]:
    """For each of a few texts, such as hits, the position of the first that it is a near-copy of, or else its own.

    Example:
        >>> copies_among(["The telescope was repaired", "Goalies like ice", "The telescope was repaired again"])
        [0, 1, 0]
    """
    words = [frozenset(_TOKENIZER.words(text)) for text in texts]
    firsts: list[int] = []
    for place, own in enumerate(words):
        kept = ((first, words[first]) for first in range(place) if firsts[first] == first)
        alike = (
            first for first, other in kept if own and len(own & other) >= SHARED * len(own | other)
        )
        firsts.append(next(alike, place))
    return firsts


def find_duplicates(
    documents: Corpus | Iterable[str | Document],
    keep: Keep = "first",
    *,
    shared: float = SHARED,
    date: str = "date",
    report: Report = silent,
) -> list[Group]:
    """The near-duplicates of a corpus in groups, without an index; the parameters are those of `Index.duplicates`.

    Example:
        >>> texts = ["The telescope was repaired", "Goalies like ice", "The telescope was repaired again"]
        >>> for group in find_duplicates(texts, keep="longest"):
        ...     print(group.kept, [(copy.id, copy.shared) for copy in group.copies])
        2 [('0', 0.8)]
    """
    if keep not in get_args(Keep):
        raise ParabitError(
            f"no way {keep!r} to choose what to keep", hint=f"there are {', '.join(get_args(Keep))}"
        )
    if not 0 < shared <= 1:
        raise ParabitError(
            f"a share of {shared} of the words", hint="give more than 0 and at most 1"
        )
    whole = Tokenizer(min_length=1, max_length=1 << 30, stop_words=frozenset())  # all words
    corpus, ids, titles, ages = as_corpus(documents), list[Id](), list[str](), list[float]()

    def tokenized(batch: list[Document]) -> tuple[list[Document], "pl.Series", Numbers]:
        return batch, *whole.content_tokens([document.text for document in batch])

    numbering, sets, lengths, hashes = (
        Numbering(),
        list[NDArray[np.int32]](),
        list[Numbers](),
        list[int](),
    )
    for batch, words, counts in ordered_map(tokenized, corpus.batches(1 << 20)):
        ids += [document.id for document in batch]
        titles += map(title_of, batch)
        if keep == "longest":
            ages += [-len(document.text) for document in batch]
        elif keep == "newest":
            dates = (number_of(document.fields.get(date)) for document in batch)
            ages += [np.inf if day is None else -day for day in dates]
        own, counts = _different(numbering.of(words).astype(np.int64), counts)
        ends = row_offsets(counts).tolist()
        hashes += [
            hash(own[start:end].tobytes()) for start, end in pairwise(ends)
        ]  # equal if the sets are
        sets.append(own)
        lengths.append(counts)
        report(Progress("reading", len(ids), "documents", corpus.share_read))
    if not ids:
        return []
    if keep == "newest" and min(ages) == np.inf:
        raise ParabitError(
            f"no document has a date in its field {date!r}", hint="name a field that has dates"
        )
    order = (
        np.argsort(np.array(ages), kind="stable") if ages else np.arange(len(ids))
    )  # the first is kept
    matrix = _ones(np.concatenate(sets), np.concatenate(lengths))
    sets.clear()  # for a million documents hundreds of megabytes
    kept, share = _choose_among_all(matrix, np.array(hashes, np.int64), order, shared, report)
    members: defaultdict[int, list[Copy]] = defaultdict(list)
    for copy in np.flatnonzero(kept != np.arange(len(ids))).tolist():
        members[int(kept[copy])].append(Copy(ids[copy], titles[copy], round(float(share[copy]), 4)))
    return [Group(ids[place], titles[place], tuple(members[place])) for place in sorted(members)]


def _different(numbers: Numbers, lengths: Numbers) -> tuple[NDArray[np.int32], Numbers]:
    """The different words of each document as ascending numbers, one document after the other, and their numbers."""
    own = np.sort(np.repeat(np.arange(len(lengths)), lengths) << 32 | numbers)
    own = own[np.diff(own, prepend=-1) > 0]
    return (own & 0xFFFFFFFF).astype(np.int32), np.bincount(own >> 32, minlength=len(lengths))


def _choose_among_all(
    matrix: "csr_array", hashes: Numbers, order: Numbers, shared: float, report: Report
) -> tuple[Numbers, Floats]:
    """What is kept for each document, and the share of their common words: itself unless one like it is kept."""
    kept, share = np.arange(len(order)), np.ones(len(order))
    order = order[np.diff(matrix.indptr)[order] > 0]  # a document without words is no copy
    # Documents with the same words first, so that a thousand of them are one and not half a million pairs.
    _, firsts, same = np.unique(hashes[order], return_index=True, return_inverse=True)
    rank = np.argsort(firsts)
    distinct = order[firsts[rank]]  # in order
    row = np.argsort(rank)[same]  # (documents with words,) which of the distinct ones each is
    matrix = matrix[distinct]
    chosen, shares = _choose(matrix, _rarest_first(matrix), shared, report)  # (distinct,)
    kept[order], share[order] = distinct[chosen[row]], shares[row]
    return kept, share


def _rarest_first(matrix: "csr_array") -> Floats:
    """Put the words of each document in order, the rarest first, and give the weight of each word."""
    frequencies = np.bincount(matrix.indices)
    rarest = np.argsort(frequencies, kind="stable")
    matrix.indices = np.argsort(rarest).astype(matrix.indices.dtype)[matrix.indices]
    matrix.has_sorted_indices = False
    matrix.sort_indices()
    return np.log((matrix.shape[0] + _OTHERS) / np.maximum(frequencies[rarest], _LEAST))


def _ones(words: NDArray[np.int32], lengths: Numbers) -> "csr_array":
    """Words as ones, (documents, columns)."""
    from scipy.sparse import (
        csr_array,
    )  # here: it takes half a second to import, and a search needs none

    shape = len(lengths), int(words.max(initial=-1)) + 1
    return csr_array((np.ones(len(words), np.int8), words, row_offsets(lengths)), shape=shape)


def _choose(
    matrix: "csr_array", weights: Floats, shared: float, report: Report
) -> tuple[Numbers, Floats]:
    """What is kept for each row, and the share of their common words: the row itself unless one like it is kept."""
    rare, totals = _rare_words(matrix, weights, shared)
    counts, rows = np.diff(rare.indptr), matrix.shape[0]
    kept, share = np.arange(rows), np.ones(rows)
    for part in blocks(counts, max(_AT_ONCE, rare.nnz // _PARTS)):
        earlier = np.flatnonzero(kept[: part.stop] == np.arange(part.stop))
        proposing = rare[earlier].T.tocsr()
        frequencies = np.diff(proposing.indptr).astype(np.int64)
        own = _limited(rare[part], frequencies, _WORK * (part.stop - part.start) / rows)
        counts[part] = np.diff(own.indptr)
        for here in blocks(own @ frequencies, _AT_ONCE):
            pairs = (own[here] @ proposing).tocoo()
            first, second = earlier[pairs.col], pairs.row + part.start + here.start
            likely = (first < second) & (
                pairs.data >= _PROPOSED * np.minimum(counts[first], counts[second])
            )
            likely &= kept[first] == first
            best: dict[
                int, tuple[float, int]
            ] = {}  # for each copy; pairs come in the order of the second row
            for place, copy, value in _alike(
                matrix, weights, totals, first[likely], second[likely], shared
            ):
                if place not in best and (value, -place) > best.get(copy, (0.0, 0)):
                    best[copy] = value, -place
            for copy, (value, place) in best.items():
                kept[copy], share[copy] = -place, value
            done = part.start + here.stop
            report(Progress("comparing", done, "documents", done / rows))
    return kept, share


def _alike(
    matrix: "csr_array",
    weights: Floats,
    totals: Floats,
    first: Numbers,
    second: Numbers,
    shared: float,
) -> Iterator[tuple[int, int, float]]:
    """Those of some pairs of rows that are near-duplicates, and the share of their common words."""
    lengths = np.diff(matrix.indptr).astype(np.int64)
    sizes = lengths[first] + lengths[second]
    possible = np.minimum(lengths[first], lengths[second]) >= shared * np.maximum(
        lengths[first], lengths[second]
    )
    first, second, sizes = first[possible], second[possible], sizes[possible]
    for some in blocks(sizes, _AT_ONCE):
        one, other = first[some], second[some]
        common = matrix[one].multiply(matrix[other])
        count, weight = np.diff(common.indptr), common @ weights
        shares = count / (sizes[some] - count)
        alike = weight >= (_BY_WEIGHT * shared - 1e-9) * (totals[one] + totals[other] - weight)
        alike &= shares >= shared - 1e-9
        yield from zip(
            one[alike].tolist(), other[alike].tolist(), shares[alike].tolist(), strict=True
        )


def _limited(rare: "csr_array", frequencies: Numbers, most: float) -> "csr_array":
    """Rows without their most frequent words, so that the product takes so many steps at most."""
    by_frequency = np.argsort(frequencies, kind="stable")
    work = np.cumsum(
        (np.bincount(rare.indices, minlength=len(frequencies)) * frequencies)[by_frequency]
    )
    dropped = np.zeros(len(frequencies), np.bool_)
    dropped[by_frequency[work > most]] = True
    rare.data[dropped[rare.indices]] = 0
    rare.eliminate_zeros()
    return rare


def _rare_words(matrix: "csr_array", weights: Floats, shared: float) -> tuple["csr_array", Floats]:
    """The words that propose candidates, as ones; and the weight of all words of each row.

    To have one in common with each near-duplicate, the rarest are enough, until what is left of the document, or of its
    weight, is less than the share. Of these long documents need only some, as an edited copy shares many.
    """
    lengths = np.diff(matrix.indptr)
    most = lengths - np.ceil(shared * lengths - 1e-9).astype(np.int64) + 1
    frequencies = np.bincount(matrix.indices)
    alone = np.searchsorted(
        frequencies, 2
    )  # words that only one document has; they propose nothing
    rare, sizes, totals = (
        [np.zeros(0, np.int32)],
        np.zeros(len(lengths), np.int64),
        np.zeros(len(lengths)),
    )
    for here in blocks(lengths, _AT_ONCE):
        words = matrix.indices[matrix.indptr[here.start] : matrix.indptr[here.stop]]
        row, starts = (
            np.repeat(np.arange(len(lengths[here])), lengths[here]),
            row_offsets(lengths[here])[:-1],
        )
        position = np.arange(len(words)) - starts[row]
        before = np.cumsum(weights[words]) - weights[words]
        totals[here] = np.bincount(row, weights[words], len(starts))
        left = totals[here][row] - (before - before[starts[row]])
        lone = np.bincount(row, words < alone, len(starts))
        taken = (words >= alone) & (
            position < np.minimum(most[here], lone + np.clip(lengths[here] // 8, *_RARE))[row]
        )
        taken &= left >= (_BY_WEIGHT * shared - 1e-4) * totals[here][row]
        rare.append(words[taken])
        sizes[here] = np.bincount(row[taken], minlength=len(starts))
    return _ones(np.concatenate(rare), sizes), totals

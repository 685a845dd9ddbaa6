"""How relevant documents are to each other, by their labels, and which documents of a corpus have labels."""

from collections.abc import Collection, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from parabit.choices import RELEVANCE
from parabit.errors import EvaluationError
from parabit.text.bags import row_offsets

if TYPE_CHECKING:
    from parabit.corpus import Corpus

Labels = ArrayLike | Sequence[Collection[Any]]  # one label per document, or several, or none


class Relevance:
    """The relevance of documents to queries, one block of queries at a time; only values above 0 are stored.

    `shared` is the paper's relevance for 20 Newsgroups and Wikipedia: 1 if two documents have a label in common.
    `overlap` is its relevance for RCV1, the fraction of overlapping labels. The paper does not say of which labels;
    here it is of those that either document has: 1 for the same labels, 0 for none in common, and symmetric.

    Without `searched` documents query each other, but not themselves.

    Example:
        >>> relevance = Relevance([{"math", "physics"}, {"math"}, {"history"}], "overlap")
        >>> relevance.of(slice(0, 3)).toarray().tolist()
        [[0.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(
        self, labels: Labels, kind: str = "shared", searched: Labels | None = None
    ) -> None:
        if kind not in RELEVANCE:
            raise EvaluationError(
                f"no relevance {kind!r}", hint=f"there are {' and '.join(RELEVANCE)}"
            )
        self.kind = kind
        self.itself = searched is None  # whether the queries are the documents
        sets = label_sets(labels)
        self.queries = len(sets)
        sets += [] if searched is None else label_sets(searched)
        numbers = {label: number for number, label in enumerate(dict.fromkeys(chain(*sets)))}
        columns = [numbers[label] for label in chain(*sets)]
        offsets = row_offsets(np.array([len(mine) for mine in sets], dtype=np.int64))
        # 1 where a document has the label: (queries, then documents that are searched; labels).
        matrix = csr_array(
            (np.ones(len(columns)), columns, offsets), shape=(len(sets), max(len(numbers), 1))
        )
        self._queries = matrix[: self.queries]
        self._documents = matrix if searched is None else matrix[self.queries :]
        self.documents = int(self._documents.shape[0])
        self._transposed = self._documents.T.tocsr()

    def of(self, queries: slice) -> csr_array:
        """The relevance of all documents to some queries: (queries, documents), 0 where nothing is stored."""
        mine = self._queries[queries]
        common: csr_array = (
            mine @ self._transposed
        ).tocsr()  # (queries, documents) labels in common
        rows = np.repeat(np.arange(common.shape[0]), np.diff(common.indptr))
        if self.kind == "overlap":
            sizes = np.diff(mine.indptr)[rows] + np.diff(self._documents.indptr)[common.indices]
            common.data = common.data / (sizes - common.data)
        else:
            common.data = np.ones_like(common.data)
        if self.itself:
            common.data[common.indices == rows + queries.indices(self.queries)[0]] = 0
            common.eliminate_zeros()
        return common


def label_sets(labels: Labels) -> list[frozenset[Any]]:
    """The labels of each document, one or several: integers or strings."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        labels = labels.tolist()
    if isinstance(labels, str | bytes) or not isinstance(labels, Sequence):
        raise _wrong(f"{type(labels).__name__} of shape {np.shape(labels)}")
    sets = []
    for label in labels:
        several = isinstance(label, Collection) and not isinstance(label, str | bytes)
        mine = list(cast(Collection[Any], label)) if several else [label]
        if odd := [one for one in mine if not isinstance(one, str | bytes | int | np.integer)]:
            raise _wrong(repr(odd[0]))
        sets.append(frozenset(mine))
    return sets


def _wrong(found: str) -> EvaluationError:
    return EvaluationError(
        f"labels must be integers or strings, one or several per document; found {found}",
        hint="give one label or a list of labels for each document",
    )


def relevance_of(corpus: str) -> str:
    """The paper's relevance for its collections, and the same for similar ones; for all others, a shared label."""
    return "overlap" if corpus.partition("/")[0] in ("reuters21578", "rcv1", "arxiv") else "shared"


class Labelled(NamedTuple):
    """A corpus as it is evaluated: its documents with labels, and how many have none."""

    documents: "Corpus"
    labels: list[tuple[str, ...]]
    unlabelled: int


def labelled(corpus: "Corpus", name: str, least: int = 1) -> Labelled:
    """Read which documents of a corpus have labels; those without are skipped and counted.

    Labels of fewer than `least` documents are dropped first; the paper does so for Wikipedia with 20.
    """
    from parabit.corpus.document import CommonLabels  # scoring alone needs no readers of files

    documents = sum(1 for _ in corpus)
    if not documents:
        raise EvaluationError(f"{name} has no documents", hint="give two or more, with labels")
    kept = CommonLabels(corpus, least)
    if not kept.counts:
        raise EvaluationError(
            f"no document of {name} has a label, and labels say which documents belong together",
            hint="give a field `label` or `labels`, name another with --label-field, or sort texts into sub-folders",
        )
    labels = [document.labels for document in kept]
    if not labels:
        raise EvaluationError(
            f"no label of {name} has {least} documents; the most frequent has {max(kept.counts.values())}",
            hint="lower --least",
        )
    return Labelled(kept, labels, documents - len(labels))

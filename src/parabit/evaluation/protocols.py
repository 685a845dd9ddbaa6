"""Who queries what: the protocols of the paper and of the hashing literature, over labelled corpora."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from parabit.corpus import Corpus, Document
from parabit.errors import EvaluationError

# What the paper takes for relevant in its collections, and what is taken for those that are like them.
_RELEVANCE = {"reuters21578": "overlap", "rcv1": "overlap", "arxiv": "overlap"}


def relevance_of(corpus: str) -> str:
    """The relevance that belongs to a data set; for all others, a shared label.

    Example:
        >>> relevance_of("20newsgroups/test"), relevance_of("rcv1/test")
        ('shared', 'overlap')
    """
    return _RELEVANCE.get(corpus.partition("/")[0], "shared")


class Labelled(NamedTuple):
    """A corpus as it is evaluated: its documents with labels, and how many have none."""

    documents: Corpus
    labels: list[tuple[str, ...]]
    unlabelled: int


def labelled(corpus: Corpus, name: str, least: int = 1) -> Labelled:
    """Read which documents of a corpus have labels; those that have none are left out and counted.

    With `least`, labels of fewer documents are dropped before, as the paper does for Wikipedia with 20.
    """
    counts: dict[str, int] = {}
    documents = 0
    for document in corpus:
        documents += 1
        for label in set(document.labels):
            counts[label] = counts.get(label, 0) + 1
    if not documents:
        raise EvaluationError(f"{name} has no documents", hint="give two or more, with labels")
    if not counts:
        raise EvaluationError(
            f"no document of {name} has a label, and labels say which documents belong together",
            hint="give a field `label` or `labels`, name another with --label-field, or sort texts into sub-folders",
        )
    common = frozenset(label for label, count in counts.items() if count >= least)
    if not common:
        raise EvaluationError(
            f"no label of {name} is that of {least} documents; the most frequent has {max(counts.values())}",
            hint="lower --least",
        )
    kept = _WithLabels(corpus, common)
    labels = [document.labels for document in kept]
    return Labelled(kept, labels, documents - len(labels))


class _WithLabels(Corpus):
    """The documents of a corpus that have certain labels, with these alone."""

    def __init__(self, corpus: Corpus, wanted: frozenset[str]) -> None:
        self._corpus, self._wanted = corpus, wanted

    def __iter__(self) -> Iterator[Document]:
        for document in self._corpus:
            labels = tuple(label for label in document.labels if label in self._wanted)
            if labels:
                yield replace(document, labels=labels)

    @property
    def share_read(self) -> float | None:
        return self._corpus.share_read

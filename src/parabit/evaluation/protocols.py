"""Who queries what: the protocols of the paper and of the hashing literature, over labelled corpora."""

from typing import NamedTuple

from parabit.corpus import CommonLabels, Corpus
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
            f"no label of {name} is that of {least} documents; the most frequent has {max(kept.counts.values())}",
            hint="lower --least",
        )
    return Labelled(kept, labels, documents - len(labels))

"""Who queries what: the protocols of the paper and of the hashing literature, over labelled corpora."""

from typing import NamedTuple

from parabit.corpus import CommonLabels, Corpus
from parabit.errors import EvaluationError

# The paper's relevance for its collections, and the same for similar ones.
_RELEVANCE = {"reuters21578": "overlap", "rcv1": "overlap", "arxiv": "overlap"}


def relevance_of(corpus: str) -> str:
    """The relevance of a data set; for all others, a shared label.

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
    """Read which documents of a corpus have labels; those without are skipped and counted.

    Labels of fewer than `least` documents are dropped first; the paper does so for Wikipedia with 20.
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
            f"no label of {name} has {least} documents; the most frequent has {max(kept.counts.values())}",
            hint="lower --least",
        )
    return Labelled(kept, labels, documents - len(labels))

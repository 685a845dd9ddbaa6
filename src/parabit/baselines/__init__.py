"""The peers that parabit's codes are compared with: all learned without labels, from the same counts of words.

A baseline's libraries are loaded on first use: semantic hashing needs only torch, numpy and scipy, and the others do
not need torch.
"""

from typing import TYPE_CHECKING, Any

from parabit.errors import BaselineError, lazy, need

if TYPE_CHECKING:
    from parabit.baselines.doc2vec import Doc2Vec
    from parabit.baselines.hashing import IterativeQuantization, RandomHyperplanes
    from parabit.baselines.lsa import LSA
    from parabit.baselines.rankers import BM25, TfIdf
    from parabit.baselines.semantic_hashing import SemanticHashing
    from parabit.baselines.sentences import SentenceEncoder

__all__ = [
    "BM25",
    "LSA",
    "Doc2Vec",
    "IterativeQuantization",
    "RandomHyperplanes",
    "SemanticHashing",
    "SentenceEncoder",
    "TfIdf",
]

_find = lazy(
    __name__,
    {
        "parabit.baselines.doc2vec": ("Doc2Vec",),
        "parabit.baselines.hashing": ("IterativeQuantization", "RandomHyperplanes"),
        "parabit.baselines.lsa": ("LSA",),
        "parabit.baselines.rankers": ("BM25", "TfIdf"),
        "parabit.baselines.semantic_hashing": ("SemanticHashing",),
        "parabit.baselines.sentences": ("SentenceEncoder",),
    },
)


def __getattr__(name: str) -> Any:
    if name == "SemanticHashing":
        need("torch", "networks", BaselineError)
    return _find(name)

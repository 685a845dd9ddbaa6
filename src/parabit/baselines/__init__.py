"""The peers that parabit's codes are compared with: all learned without labels, from the same counts of words.

A baseline's libraries are loaded on first use: semantic hashing needs only torch, numpy and scipy, and the others do
not need torch.
"""

from typing import TYPE_CHECKING, Any

from parabit.errors import BaselineError, lazy, need

if TYPE_CHECKING:
    from parabit.baselines.peers import (
        BM25,
        LSA,
        Doc2Vec,
        IterativeQuantization,
        RandomHyperplanes,
        SentenceEncoder,
        TfIdf,
    )
    from parabit.baselines.semantic_hashing import SemanticHashing

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
        "parabit.baselines.semantic_hashing": ("SemanticHashing",),
        "parabit.baselines.peers": tuple(name for name in __all__ if name != "SemanticHashing"),
    },
)


def __getattr__(name: str) -> Any:
    if name == "SemanticHashing":
        need("torch", "networks", BaselineError)
    return _find(name)

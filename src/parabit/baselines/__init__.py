"""The peers that parabit's codes are compared with: all learned without labels, from the same counts of words.

A baseline's libraries are loaded when it is first asked for: semantic hashing needs torch, numpy and scipy alone, and
the others need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from parabit.errors import BaselineError
from parabit.extras import need

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

_MODULES = {
    "BM25": "rankers",
    "LSA": "lsa",
    "Doc2Vec": "doc2vec",
    "IterativeQuantization": "hashing",
    "RandomHyperplanes": "hashing",
    "SemanticHashing": "semantic_hashing",
    "SentenceEncoder": "sentences",
    "TfIdf": "rankers",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'parabit.baselines' has no attribute {name!r}")
    if _MODULES[name] == "semantic_hashing":
        need("torch", "networks", BaselineError)
    return getattr(import_module(f"parabit.baselines.{_MODULES[name]}"), name)

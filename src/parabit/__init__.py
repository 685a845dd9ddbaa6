"""parabit learns short binary codes for text documents and searches them."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parabit.corpus import Corpus, Document, ReadOptions, open_corpus
    from parabit.encoding import ParagraphVectors
    from parabit.errors import ParabitError
    from parabit.index import Index
    from parabit.networks.config import Recipe
    from parabit.text import Bags, Tokenizer, Vocabulary, VocabularyRule, build_bags, build_vocabulary, write_bags

__version__ = "0.1.0"

# Torch's threads wait for each other by spinning, for milliseconds, which on a machine that is busy with something else
# takes the very cores that they wait for: training was five times slower. It must be said before torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

__all__ = [
    "Bags",
    "Corpus",
    "Document",
    "Index",
    "ParabitError",
    "ParagraphVectors",
    "ReadOptions",
    "Recipe",
    "Tokenizer",
    "Vocabulary",
    "VocabularyRule",
    "__version__",
    "build_bags",
    "build_vocabulary",
    "open_corpus",
    "write_bags",
]

# Each stage is imported when something of it is first asked for: a part should not cost the libraries of all parts.
_STAGES = {
    "parabit.corpus": ("Corpus", "Document", "ReadOptions", "open_corpus"),
    "parabit.encoding": ("ParagraphVectors",),
    "parabit.errors": ("ParabitError",),
    "parabit.index": ("Index",),
    "parabit.text": (
        "Bags",
        "Tokenizer",
        "Vocabulary",
        "VocabularyRule",
        "build_bags",
        "build_vocabulary",
        "write_bags",
    ),
    "parabit.networks.config": ("Recipe",),
}


def __getattr__(name: str) -> Any:
    for stage, offered in _STAGES.items():
        if name in offered:
            return getattr(import_module(stage), name)
    raise AttributeError(f"module 'parabit' has no attribute {name!r}")

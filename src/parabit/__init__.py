"""parabit learns short binary codes for text documents and searches them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parabit.corpus import Corpus, Document, ReadOptions, open_corpus
    from parabit.errors import ParabitError
    from parabit.index import Index
    from parabit.model import ParagraphVectors
    from parabit.text import Bags, Tokenizer, Vocabulary, VocabularyRule, build_bags, build_vocabulary, write_bags

__version__ = "0.1.0"

__all__ = [
    "Bags",
    "Corpus",
    "Document",
    "Index",
    "ParabitError",
    "ParagraphVectors",
    "ReadOptions",
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
    "parabit.model": ("ParagraphVectors",),
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
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    for stage, offered in _STAGES.items():
        if name in offered:
            return getattr(import_module(stage), name)
    raise AttributeError(f"module 'parabit' has no attribute {name!r}")

"""parabit learns short binary codes for text documents and searches them."""

from typing import TYPE_CHECKING

from parabit.lazy import lazy

if TYPE_CHECKING:
    from parabit.corpus import Corpus, Document, ReadOptions, open_corpus
    from parabit.errors import ParabitError
    from parabit.index import Index
    from parabit.model import ParagraphVectors, TextEncoder
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
    "TextEncoder",
    "Tokenizer",
    "Vocabulary",
    "VocabularyRule",
    "__version__",
    "build_bags",
    "build_vocabulary",
    "open_corpus",
    "write_bags",
]

__getattr__ = lazy(
    __name__,
    {
        "parabit.corpus": ("Corpus", "Document", "ReadOptions", "open_corpus"),
        "parabit.errors": ("ParabitError",),
        "parabit.index": ("Index",),
        "parabit.model": ("ParagraphVectors", "TextEncoder"),
        "parabit.text": (
            "Bags",
            "Tokenizer",
            "Vocabulary",
            "VocabularyRule",
            "build_bags",
            "build_vocabulary",
            "write_bags",
        ),
    },
)


def __dir__() -> list[str]:
    return __all__

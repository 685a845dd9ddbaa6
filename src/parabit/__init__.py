"""parabit learns short binary codes for text documents and searches them."""

from typing import TYPE_CHECKING

from parabit.errors import ParabitError, lazy

if TYPE_CHECKING:
    from parabit.corpus import Corpus, Document, ReadOptions, documents_from, open_corpus, title_of
    from parabit.index import Index
    from parabit.model import ParagraphVectors, TextEncoder
    from parabit.text import (
        Bags,
        Tokenizer,
        Vocabulary,
        VocabularyRule,
        build_vocabulary,
        count_bags,
    )

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
    "build_vocabulary",
    "count_bags",
    "documents_from",
    "open_corpus",
    "title_of",
]

__getattr__ = lazy(
    __name__,
    corpus="Corpus Document ReadOptions documents_from open_corpus title_of",
    index="Index",
    model="ParagraphVectors TextEncoder",
    text="Bags Tokenizer Vocabulary VocabularyRule build_vocabulary count_bags",
)


def __dir__() -> list[str]:
    return __all__

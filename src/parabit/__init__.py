"""parabit learns short binary codes for text documents and searches them."""

from parabit.corpus import Corpus, Document, ReadOptions, open_corpus
from parabit.errors import ParabitError
from parabit.text import Bags, Tokenizer, Vocabulary, VocabularyRule, build_bags, build_vocabulary, write_bags

__version__ = "0.1.0"

__all__ = [
    "Bags",
    "Corpus",
    "Document",
    "ParabitError",
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

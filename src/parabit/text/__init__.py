"""Text to words, words to a vocabulary, a corpus to bags of word and bigram ids."""

from typing import TYPE_CHECKING

from parabit.lazy import lazy

if TYPE_CHECKING:
    from parabit.text.bags import Bags, BatchBags, bags_of_few, batch_bags
    from parabit.text.build import build_bags, build_vocabulary, count_bags, write_bags
    from parabit.text.counting import VocabularyRule
    from parabit.text.cutting import LETTERS
    from parabit.text.tokenizer import Tokenizer, Tokens, english_stop_words, read_stop_words
    from parabit.text.vocabulary import Vocabulary, is_vocabulary

__all__ = [
    "LETTERS",
    "Bags",
    "BatchBags",
    "Tokenizer",
    "Tokens",
    "Vocabulary",
    "VocabularyRule",
    "bags_of_few",
    "batch_bags",
    "build_bags",
    "build_vocabulary",
    "count_bags",
    "english_stop_words",
    "is_vocabulary",
    "read_stop_words",
    "write_bags",
]

# TF-IDF alone needs no polars, and `parabit reproduce` uses it where there is none.
__getattr__ = lazy(
    __name__,
    {
        "parabit.text.bags": ("Bags", "BatchBags", "bags_of_few", "batch_bags"),
        "parabit.text.build": ("build_bags", "build_vocabulary", "count_bags", "write_bags"),
        "parabit.text.counting": ("VocabularyRule",),
        "parabit.text.cutting": ("LETTERS",),
        "parabit.text.tokenizer": ("Tokenizer", "Tokens", "english_stop_words", "read_stop_words"),
        "parabit.text.vocabulary": ("Vocabulary", "is_vocabulary"),
    },
)

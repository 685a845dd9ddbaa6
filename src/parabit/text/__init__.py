"""Text to tokens, tokens to a vocabulary, documents to bags of words and bigrams; near-duplicates by their words."""

from typing import TYPE_CHECKING

from parabit.errors import lazy
from parabit.text.bags import Bags, Vocabulary, make_bags
from parabit.text.tokenizer import Tokenizer, english_stop_words, read_stop_words

if TYPE_CHECKING:
    from parabit.text.counting import VocabularyRule, build_vocabulary, count_bags
    from parabit.text.duplicates import Copy, Group, copies_among, find_duplicates

__all__ = [
    "Bags",
    "Copy",
    "Group",
    "Tokenizer",
    "Vocabulary",
    "VocabularyRule",
    "build_vocabulary",
    "copies_among",
    "count_bags",
    "english_stop_words",
    "find_duplicates",
    "make_bags",
    "read_stop_words",
]

# Counting needs polars, which takes long to import; searching and baselines use text without it.
__getattr__ = lazy(
    __name__,
    counting="VocabularyRule build_vocabulary count_bags",
    duplicates="Copy Group copies_among find_duplicates",
)

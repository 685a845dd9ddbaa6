"""Text to tokens, tokens to a vocabulary, documents to bags of words and bigrams."""

from typing import TYPE_CHECKING

from parabit.errors import lazy
from parabit.text.bags import Bags, inverse_frequencies, make_bags, tf_idf_rows, tf_idf_weights
from parabit.text.tokenizer import Tokenizer, english_stop_words, read_stop_words
from parabit.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from parabit.text.counting import VocabularyRule, build_vocabulary, count_bags

__all__ = [
    "Bags",
    "Tokenizer",
    "Vocabulary",
    "VocabularyRule",
    "build_vocabulary",
    "count_bags",
    "english_stop_words",
    "inverse_frequencies",
    "make_bags",
    "read_stop_words",
    "tf_idf_rows",
    "tf_idf_weights",
]

# Counting needs polars; bags and TF-IDF do not, and `parabit reproduce` uses them without it.
__getattr__ = lazy(__name__, counting="VocabularyRule build_vocabulary count_bags")

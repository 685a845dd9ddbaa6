"""Text to tokens, tokens to a vocabulary, documents to bags of words and bigrams."""

from typing import TYPE_CHECKING

from parabit.errors import lazy
from parabit.text.bags import Bags, inverse_frequencies, make_bags, tf_idf_rows
from parabit.text.tokenizer import Tokenizer, english_stop_words, read_stop_words

if TYPE_CHECKING:
    from parabit.text.counting import VocabularyRule, build_vocabulary, count_bags
    from parabit.text.vocabulary import Vocabulary

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
]

# Bags and TF-IDF need no polars and no safetensors, and baselines and `parabit reproduce` use them without.
__getattr__ = lazy(__name__, counting="VocabularyRule build_vocabulary count_bags", vocabulary="Vocabulary")

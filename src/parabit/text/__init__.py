"""Text to words, words to a vocabulary, a corpus to bags of word and bigram ids."""

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

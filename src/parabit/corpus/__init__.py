"""Reading documents: files, folders, standard input, Python objects, and the public data sets."""

from parabit.corpus.datasets import DATASETS, cache_folder, data_folder
from parabit.corpus.document import (
    CommonLabels,
    Corpus,
    Document,
    Skipped,
    Tally,
    Texts,
    as_corpus,
    documents_from,
    title_of,
)
from parabit.corpus.files import FORMATS, open_corpus
from parabit.corpus.readers import ReadOptions

__all__ = [
    "DATASETS",
    "FORMATS",
    "CommonLabels",
    "Corpus",
    "Document",
    "ReadOptions",
    "Skipped",
    "Tally",
    "Texts",
    "as_corpus",
    "cache_folder",
    "data_folder",
    "documents_from",
    "open_corpus",
    "title_of",
]

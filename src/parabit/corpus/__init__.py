"""Reading documents: files, folders, standard input, Python objects, and the public data sets."""

from parabit.corpus.document import (
    Corpus,
    Document,
    Texts,
    as_corpus,
    documents_from,
    number_of,
    title_of,
)
from parabit.corpus.files import open_corpus
from parabit.corpus.limits import ReadLimits
from parabit.corpus.readers import FORMATS, ReadOptions

__all__ = [
    "FORMATS",
    "Corpus",
    "Document",
    "ReadLimits",
    "ReadOptions",
    "Texts",
    "as_corpus",
    "documents_from",
    "number_of",
    "open_corpus",
    "title_of",
]

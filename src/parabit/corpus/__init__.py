"""Reading documents: files, folders, standard input, Python objects, and the public data sets."""

from typing import TYPE_CHECKING

from parabit.errors import lazy

if TYPE_CHECKING:
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

# Parser processes need few of them, and start faster so.
__getattr__ = lazy(
    __name__,
    document="Corpus Document Texts as_corpus documents_from number_of title_of",
    files="open_corpus",
    limits="ReadLimits",
    readers="FORMATS ReadOptions",
)

"""Reading documents: files, folders, standard input, Python's own, and the public data sets."""

from difflib import get_close_matches
from pathlib import Path

from parabit.corpus.datasets import (
    DATASETS,
    CommonLabels,
    Dataset,
    cache_folder,
    data_folder,
    names_dataset,
    open_dataset,
)
from parabit.corpus.document import Corpus, Document, as_corpus
from parabit.corpus.files import FORMATS, open_files
from parabit.corpus.readers import ReadOptions
from parabit.corpus.remote import is_address
from parabit.errors import CorpusError
from parabit.progress import Report, silent

__all__ = [
    "DATASETS",
    "FORMATS",
    "CommonLabels",
    "Corpus",
    "Dataset",
    "Document",
    "ReadOptions",
    "as_corpus",
    "cache_folder",
    "data_folder",
    "names_dataset",
    "open_corpus",
]


def open_corpus(
    name: str | Path, options: ReadOptions | None = None, format: str | None = None, report: Report = silent
) -> Corpus:
    """Open a corpus by its name: a data set and split, a path, an address such as s3://…, or `-` for standard input.

    A data set's name comes before a path; write `./20newsgroups` for a folder that is called like one.

    Example:
        >>> corpus = open_corpus("docstrings")
        >>> next(iter(corpus)) == next(iter(corpus))
        True
    """
    if isinstance(name, str) and names_dataset(name):
        if format is not None or (options is not None and options.names_fields):
            raise CorpusError(
                f"{name} is a data set and read in its own way",
                hint=f"--format and --…-field are for files; write ./{name} for a path",
            )
        return open_dataset(name, report)
    if is_address(name):
        return open_files(name, options or ReadOptions(), format)
    base, slash, split = str(name).partition("/")
    close = get_close_matches(base, DATASETS, n=1, cutoff=0.8)
    if close and not Path(name).exists():
        raise CorpusError(f"no such file, folder or data set: {name}", hint=f"did you mean {close[0]}{slash}{split}?")
    return open_files(name, options or ReadOptions(), format)

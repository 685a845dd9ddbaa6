"""Reading documents: files, folders, standard input, Python objects, and the public data sets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from parabit.corpus.datasets import DATASETS, cache_folder, data_folder, names_dataset, open_dataset
from parabit.corpus.document import Corpus, Document, Skipped, Tally, as_corpus, documents_from, title_of
from parabit.corpus.files import FORMATS, open_files
from parabit.corpus.readers import ReadOptions
from parabit.corpus.sources import is_address
from parabit.errors import CorpusError
from parabit.progress import Report, silent

__all__ = [
    "DATASETS",
    "FORMATS",
    "Corpus",
    "Document",
    "ReadOptions",
    "Skipped",
    "Tally",
    "as_corpus",
    "cache_folder",
    "data_folder",
    "documents_from",
    "names_dataset",
    "open_corpus",
    "title_of",
]


def open_corpus(
    name: str | Path | Sequence[str | Path] | Iterable[Document | Mapping[str, Any]],
    options: ReadOptions | None = None,
    format: str | None = None,
    report: Report = silent,
) -> Corpus:
    """Open a corpus: a data set and split, a path or several, an address such as s3://…, or `-` for standard input.

    A data set's name comes before a path; write `./20newsgroups` for a folder that has such a name. Ids of documents
    are paths below the folder that was given. If two of several folders have the same path in them, the names of the
    folders come before all ids. Documents and dictionaries that are already in Python are taken as they are.

    Example:
        >>> corpus = open_corpus("docstrings")
        >>> next(iter(corpus)) == next(iter(corpus))
        True
    """
    names = [name] if isinstance(name, str | Path) else name
    if not (isinstance(names, Sequence) and all(isinstance(one, str | Path) for one in names)):
        return as_corpus(cast(Iterable[Document], name))
    options = options or ReadOptions()
    if not names:
        raise CorpusError("no path was given", hint="give a file or a folder")
    for one in names:
        base, slash, split = str(one).partition("/")
        if isinstance(one, str) and base in DATASETS:
            if len(names) > 1:
                raise CorpusError(f"{one} is a data set", hint=f"read it alone, or write ./{one} for a path")
            if format is not None or replace(options, strict=False) != ReadOptions():
                hint = f"options such as --format and --text-field are for files; write ./{one} for a path"
                raise CorpusError(f"{one} is a data set and read in its own way", hint)
            return open_dataset(one, report)
        close = get_close_matches(base, DATASETS, n=1, cutoff=0.8)
        if close and not is_address(str(one)) and not Path(str(one)).exists():
            hint = f"did you mean {close[0]}{slash}{split}?"
            raise CorpusError(f"no such file, folder or data set: {one}", hint)
    return open_files(cast(Sequence[str | Path], names), options, format)

"""20 Newsgroups in its "bydate" version, with the official split."""

import tarfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from parabit.corpus.datasets.dataset import Dataset, DatasetCorpus
from parabit.corpus.document import Corpus, Document
from parabit.corpus.download import Download
from parabit.corpus.sources import Source

_DOWNLOAD = Download(
    # The collection's own page, then the copy that scikit-learn keeps of the same file.
    urls=(
        "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
        "https://ndownloader.figshare.com/files/5975967",
    ),
    sha256="8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
    path="20newsgroups/20news-bydate.tar.gz",
)


def body(post: str) -> str:
    r"""What follows the first blank line of a post: its text without the headers, which name the newsgroup.

    Example:
        >>> body("Newsgroups: sci.space\nSubject: Hubble\n\nIt was repaired.\n\nIn orbit.")
        'It was repaired.\n\nIn orbit.'
    """
    return post.partition("\n\n")[2]


def _read(source: Source, split: str | None, headers: bool) -> Iterator[Document]:
    with source.open() as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            part, *rest = PurePosixPath(member.name).parts
            if not member.isfile() or len(rest) != 2 or (split and not part.endswith(f"-{split}")):
                continue
            file = archive.extractfile(member)
            assert file is not None  # a regular file always opens
            post = file.read().decode("latin-1")
            group, number = rest
            yield Document(id=f"{group}/{number}", text=post if headers else body(post), labels=(group,))


def _corpus(paths: Sequence[Path], split: str | None, headers: bool) -> Corpus:
    return DatasetCorpus(paths, partial(_read, split=split, headers=headers))


NEWSGROUPS = Dataset(
    name="20newsgroups",
    about="Usenet posts of 20 newsgroups without their headers; the label is the newsgroup",
    licence="freely distributed for research",
    splits=("train", "test"),
    files="20newsgroups/20news-bydate.tar.gz",
    corpus=partial(_corpus, headers=False),
    download=_DOWNLOAD,
)

NEWSGROUPS_RAW = Dataset(
    name="20newsgroups-raw",
    about="the same posts with their headers, as the paper's vocabulary size suggests",
    licence=NEWSGROUPS.licence,
    splits=NEWSGROUPS.splits,
    files=NEWSGROUPS.files,
    corpus=partial(_corpus, headers=True),
    download=_DOWNLOAD,
)

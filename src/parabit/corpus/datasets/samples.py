"""The JSON-lines samples of English Wikipedia and of arXiv, half of each held out by a hash of the title."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from parabit.corpus.datasets import Dataset, DatasetCorpus, in_split
from parabit.corpus.document import CommonLabels, Corpus, Document
from parabit.corpus.files import FileCorpus
from parabit.corpus.readers import ReadOptions
from parabit.corpus.sources import Source
from parabit.errors import CorpusError


def _read(source: Source, split: str | None) -> Iterator[Document]:
    options = ReadOptions(id_field="", label_field="categories", strict=True)
    for article in FileCorpus([source], options, "jsonl", source.name):
        if article.title is None:
            raise CorpusError(f"{article.id}: no title", hint="`parabit datasets` says what the file must hold")
        if in_split(article.title, split, held_out=0.5):
            # Titles occur twice, so the id is the position in the sample.
            yield replace(article, id=str(int(article.id.rpartition(":")[2]) - 1))


def _enwiki(paths: Sequence[Path], split: str | None) -> Corpus:
    corpus = DatasetCorpus(paths, split, _read)
    return CommonLabels(corpus) if split == "test" else corpus


_OBTAIN = (
    "put a JSON-lines file at {file} below the data folder: one article per line, with the fields title (a string), "
    "text (a string) and categories (a list of strings)"
)

DATASETS = {
    "enwiki": Dataset(
        about="a sample of English Wikipedia, half held out; the labels are categories, in test those of 20 or more",
        licence="CC BY-SA 3.0",
        files="enwiki/enwiki-sample.jsonl.gz",
        corpus=_enwiki,
        obtain=_OBTAIN.format(file="enwiki/enwiki-sample.jsonl.gz"),
    ),
    "arxiv": Dataset(
        about="a sample of arXiv abstracts, half held out; the labels are the paper's categories",
        licence="CC0",
        files="arxiv/arxiv-sample.jsonl.gz",
        corpus=partial(DatasetCorpus, read=_read),
        obtain=_OBTAIN.format(file="arxiv/arxiv-sample.jsonl.gz"),
    ),
}

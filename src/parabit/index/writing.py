"""Documents that go into an index that is there: all looked at first, then written batch by batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np

from parabit.corpus import Corpus
from parabit.errors import IndexFolderError
from parabit.index.documents import Kept, batches_of
from parabit.index.reading import VECTORS, WORDS
from parabit.index.unique import UniqueIds
from parabit.index.view import Home
from parabit.model import TextEncoder
from parabit.progress import Progress, Report

Ids = Literal["new", "there", "any"]  # which ids documents may have: new ones, those of others, or both


@dataclass
class Written:
    """What became of documents."""

    added: int = 0
    replaced: int = 0
    removed: int = 0  # whose new text has no word that the model knows, so that nothing could be found of it
    left_out: int = 0  # that have no such word; those removed among them


def write(home: Home, model: TextEncoder, corpus: Corpus, ids: Ids, report: Report) -> Written:
    """Encode documents and put them in the index. Those of a batch are all on the disk, or, in an embedded index, none.

    An id that must not be there, or must be and is not, and any record that cannot be read, is told before the first
    document goes in: half a corpus is a nuisance to go on from.
    """
    _check(home, corpus, ids, report)
    kept = Kept(bool(home.meta["text"]), WORDS in home.extra, VECTORS in home.extra)
    written = Written()
    with _told_of_what_stays(written):
        for batch in batches_of(model, corpus, kept, report):
            there = home.rows_of(kept.unknown) >= 0
            gone = [identity for identity, old in zip(kept.unknown, there.tolist(), strict=True) if old]
            replaced = home.put(batch, gone)
            written.replaced += replaced
            written.added += len(batch.ids) - replaced
            written.removed += len(gone)
            written.left_out = kept.left_out
    return written


def _check(home: Home, corpus: Corpus, allowed: Ids, report: Report) -> None:
    unique, done = UniqueIds(corpus), 0
    for batch in corpus.batches():
        ids = [document.id for document in batch]
        unique.add(ids)
        there = home.rows_of(ids) >= 0
        if allowed == "new" and there.any():
            raise IndexFolderError(
                f"the id {ids[int(np.argmax(there))]!r} is in the index already",
                hint="nothing was changed; replace it with --update, or give a new id",
            )
        if allowed == "there" and not there.all():
            raise IndexFolderError(
                f"there is no document with the id {ids[int(np.argmin(there))]!r}", hint="nothing was changed"
            )
        done += len(ids)
        report(Progress("checking", done, "documents", corpus.share_read))


@contextmanager
def _told_of_what_stays(written: Written) -> Iterator[None]:
    try:
        yield
    except BaseException as stop:
        if done := written.added + written.replaced:
            stop.add_note(f"{done:,} documents are in the index and stay; go on with --update")
        raise

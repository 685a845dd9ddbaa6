"""Documents on their way into an index: read, encoded, and written batch by batch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import shake_128
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from parabit.codes import pack, unpack
from parabit.corpus import Corpus, Document
from parabit.errors import CodesError
from parabit.index.ranking import unit
from parabit.index.store import VECTORS, Batch, Id, Kind
from parabit.index.unique import UniqueIds
from parabit.model import TextEncoder
from parabit.progress import Progress, Report

_AT_ONCE = 1 << 16  # codes

Ids = Literal["new", "there", "any"]  # which ids documents may have: new ones, those of others, or both


@dataclass
class Written:
    """What became of documents."""

    added: int = 0
    replaced: int = 0
    removed: int = 0  # whose new text has nothing to be found by
    left_out: int = 0  # that have nothing to be found by; those removed among them


@dataclass
class Kept:
    """What an index keeps of a document beside its code, its id and its fields."""

    text: bool
    words: bool
    vectors: bool
    left_out: int = 0  # documents with nothing to be found by, counted on the way
    without: list[str] = field(default_factory=list)  # the ids of those in the latest batch

    def kinds(self, model: TextEncoder) -> dict[str, Kind]:
        """The extra arrays of the store."""
        return {VECTORS: Kind("<f2", model.dim)} if self.vectors else {}


def batches_of(model: TextEncoder, corpus: Corpus, kept: Kept, report: Report) -> Iterator[Batch]:
    """Encode a corpus, batch by batch.

    A document of which the model knows no word is found by its words alone: its code is drawn from its text, far from
    all others. If the index keeps no words, it is left out, and so is a document without any word.
    """
    unique = UniqueIds(corpus)
    for part in model.infer_each(corpus, report):
        unique.add([document.id for document in part.documents])
        codes, _, vectors = part.inferred
        assert codes is not None
        assert model.bits is not None
        there = part.known.copy()
        for place in np.flatnonzero(~part.known).tolist() if kept.words else ():
            text = part.documents[place].text
            if model.vocabulary.tokenizer.words(text):
                codes[place] = _drawn_code(text, model.bits)
                there[place] = True
        kept.without = [part.documents[place].id for place in np.flatnonzero(~there).tolist()]
        kept.left_out += len(kept.without)
        documents = [part.documents[place] for place in np.flatnonzero(there).tolist()]
        extra = {VECTORS: _halves(vectors[there])} if kept.vectors else {}
        fields = [stored_fields(document, kept.text) for document in documents]
        yield Batch([document.id for document in documents], codes[there], fields, extra)


def _drawn_code(text: str, bits: int) -> NDArray[np.uint8]:
    """A code that depends on the text alone and is like no other."""
    drawn = np.frombuffer(shake_128(text.encode("utf-8", "replace")).digest(-(-bits // 8)), dtype=np.uint8)
    return pack(unpack(drawn, 8 * len(drawn))[:bits])


def stored_fields(document: Document, text: bool) -> dict[str, Any]:
    """What an index keeps of a document as its fields."""
    fields = dict(document.fields)
    if document.labels:
        fields["labels"] = list(document.labels)
    if text:
        fields["text"] = document.text
    return fields


def batch_of_codes(
    codes: NDArray[np.uint8],
    ids: Sequence[Id] | None,
    fields: Sequence[Mapping[str, Any]] | None,
    vectors: NDArray[np.floating] | None,
    at_once: int = _AT_ONCE,
) -> Iterator[Batch]:
    """Codes from anywhere, some at a time."""
    for name, given in (("ids", ids), ("fields", fields), ("vectors", vectors)):
        if given is not None and len(given) != len(codes):
            raise CodesError(f"{len(codes)} codes and {len(given)} {name}", hint=f"give {name} for each code")
    for start in range(0, len(codes), at_once):
        here = slice(start, min(start + at_once, len(codes)))
        mine = list(range(here.start, here.stop)) if ids is None else list(ids[here])
        extra = {} if vectors is None else {VECTORS: _halves(vectors[here])}
        yield Batch(mine, codes[here], None if fields is None else fields[here], extra)


def check_ids(corpus: Corpus, need: Callable[[Sequence[Id]], None], report: Report) -> None:
    """Read a corpus and raise if an id is there twice or not what is needed: before the first document goes in."""
    unique, done = UniqueIds(corpus), 0
    for batch in corpus.batches():
        ids = [document.id for document in batch]
        unique.add(ids)
        need(ids)
        done += len(ids)
        report(Progress("checking", done, "documents", corpus.share_read))


@contextmanager
def says_what_stays(written: Written) -> Iterator[None]:
    """If writing stops, the error says how many documents are in the index already."""
    try:
        yield
    except BaseException as stop:
        if done := written.added + written.replaced:
            stop.add_note(f"{done:,} documents are in the index and stay; go on with --update")
        raise


def _halves(vectors: NDArray[np.floating]) -> NDArray[np.float16]:
    """Vectors as they are kept. Of length 1, as ranking looks at directions alone: so none is too long for 16 bits."""
    if vectors.ndim != 2:
        raise CodesError(
            f"vectors must be rows of a 2-d array, found shape {vectors.shape}", hint="give one for each document"
        )
    if not np.isfinite(vectors).all():
        raise CodesError("vectors have numbers that are not finite", hint="leave out documents that have no vector")
    return unit(vectors.astype(np.float64)).astype(np.float16)

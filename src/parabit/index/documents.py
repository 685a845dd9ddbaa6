"""Documents on their way into an index, encoded batch by batch, and as an index keeps them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import shake_128
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.codes import pack, unpack
from parabit.corpus import Corpus, Document, title_of
from parabit.errors import CodesError, CorpusError, IndexFolderError
from parabit.index.ranking import unit
from parabit.index.store import VECTORS, Batch, Id, Kind, Snapshot
from parabit.model import TextEncoder
from parabit.progress import Progress, Report

_AT_ONCE = 1 << 16  # codes


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
    for part in model.infer_each(corpus, report):
        codes, _, vectors = part.inferred
        assert codes is not None
        assert model.bits is not None
        there = part.known.copy()
        for place in np.flatnonzero(~part.known).tolist() if kept.words else ():
            text = part.documents[place].text
            if model.vocabulary.tokenizer.words(text):
                codes[place] = drawn_code(text, model.bits)
                there[place] = True
        kept.without = [part.documents[place].id for place in np.flatnonzero(~there).tolist()]
        kept.left_out += len(kept.without)
        documents = [part.documents[place] for place in np.flatnonzero(there).tolist()]
        extra = {VECTORS: halves(vectors[there])} if kept.vectors else {}
        fields = [stored_fields(document, kept.text) for document in documents]
        yield Batch([document.id for document in documents], codes[there], fields, extra)


def drawn_code(text: str, bits: int) -> NDArray[np.uint8]:
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
        extra = {} if vectors is None else {VECTORS: halves(vectors[here])}
        yield Batch(mine, codes[here], None if fields is None else fields[here], extra)


def check_ids(corpus: Corpus, check: Callable[[Sequence[Id]], None] | None, report: Report) -> None:
    """Read a corpus and raise if an id is there twice, or as `check` does: before the first document goes in."""
    seen, done, collisions = set[int](), 0, 0  # hashes, which take less memory than ids
    for batch in corpus.batches():
        ids = [document.id for document in batch]
        seen.update(map(hash, ids))
        done += len(ids)
        if len(seen) < done - collisions:
            _need_unique(corpus)
            collisions = done - len(seen)
        if check is not None:
            check(ids)
        report(Progress("checking", done, "documents", corpus.share_read))


def _need_unique(corpus: Corpus) -> None:
    first: dict[str, int] = {}
    for number, document in enumerate(corpus):
        if first.setdefault(document.id, number) != number:
            raise CorpusError(
                f"two documents have the id {document.id!r}: numbers {first[document.id]} and {number}, from 0",
                hint="choose another field with --id-field; --id-field '' names records by path and line",
            )


@contextmanager
def says_what_stays(written: Written) -> Iterator[None]:
    """If writing stops, the error says how many documents are in the index already."""
    try:
        yield
    except BaseException as stop:
        if done := written.added + written.replaced:
            stop.add_note(f"{done:,} documents are in the index and stay; go on with --update")
        raise


def halves(vectors: NDArray[np.floating]) -> NDArray[np.float16]:
    """Vectors as they are kept. Of length 1, as ranking looks at directions alone: so none is too long for 16 bits."""
    if vectors.ndim != 2:
        raise CodesError(
            f"vectors must be rows of a 2-d array, found shape {vectors.shape}", hint="give one for each document"
        )
    if not np.isfinite(vectors).all():
        raise CodesError("vectors have numbers that are not finite", hint="leave out documents that have no vector")
    return unit(vectors.astype(np.float64)).astype(np.float16)


class Stored(NamedTuple):
    """A document of an index."""

    id: Id
    code: NDArray[np.uint8]  # (bytes,)
    text: str
    fields: Mapping[str, Any]  # the others that were stored, labels among them

    @property
    def title(self) -> str:
        """Its title, or the first line of its text, or else its id."""
        return title_of(Document(str(self.id), self.text, fields=self.fields)) or str(self.id)


def stored_with(view: Snapshot, ids: Sequence[Id]) -> list[Stored]:
    """The documents with these ids; an IndexFolderError names one that is not there."""
    rows = rows_with(view, ids)
    if not len(rows):
        return []
    codes, fields = view.codes(rows), view.fields_of(rows)
    return [
        Stored(identity, code, its.pop("text", ""), its)
        for identity, code, its in zip(view.ids_of(rows), codes, fields, strict=True)
    ]


def rows_with(view: Snapshot, ids: Sequence[Id]) -> NDArray[np.int64]:
    """The rows of documents; an IndexFolderError names one that is not there."""
    rows = view.rows_of(ids)
    if (rows < 0).any():
        missing = ids[int(np.argmax(rows < 0))]
        raise IndexFolderError(f"there is no document {missing!r}", hint="give the id of one that is in the index")
    return rows


def ids_of_written(view: Snapshot, written: Sequence[str]) -> list[Id]:
    """Ids as people write them: 7 is the number 7 where no document has the string as its id and one has the number."""
    ids: list[Id] = list(written)
    for place in np.flatnonzero(view.rows_of(ids) < 0).tolist():
        number = int(written[place]) if re.fullmatch(r"-?[0-9]{1,4000}", written[place]) else None
        if number is not None and view.rows_of([number])[0] >= 0:
            ids[place] = number
    return ids

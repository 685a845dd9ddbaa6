"""Documents as an index keeps them, and on their way there: encoded batch by batch."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import shake_128
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from parabit.codes import pack, unpack
from parabit.corpus import Corpus, Document, title_of
from parabit.errors import CodesError, IndexFolderError
from parabit.index.ranking import unit
from parabit.index.results import Rows
from parabit.index.store import Batch, Id, Snapshot
from parabit.model import TextEncoder
from parabit.progress import Report


def batches_of(
    model: TextEncoder, corpus: Corpus, keeps: Collection[str], left_out: list[str], report: Report
) -> Iterator[Batch]:
    """Encode a corpus, batch by batch; the ids of documents with nothing to be found by go to
    `left_out`.

    An index keeps some of text, words and vectors. If the model knows no word of a document, it is
    found by its words alone: its code is drawn from its text, far from all others. If the index
    keeps no words, it is left out, and so is a document without any word.
    """
    for read, (codes, _, vectors, there) in model.infer_each(corpus, report):
        assert codes is not None
        assert model.bits is not None
        for place in np.flatnonzero(~there).tolist() if "words" in keeps else ():
            text = read[place].text
            if model.vocabulary.tokenizer.words(text):
                codes[place], there[place] = drawn_code(text, model.bits), True
        left_out += [read[place].id for place in np.flatnonzero(~there).tolist()]
        documents = [read[place] for place in np.flatnonzero(there).tolist()]
        fields = [stored_fields(document, "text" in keeps) for document in documents]
        kept = halves(vectors[there]) if "vectors" in keeps else None
        yield Batch([document.id for document in documents], codes[there], fields, kept)


def drawn_code(text: str, bits: int) -> NDArray[np.uint8]:
    """A code that depends on the text alone and is like no other."""
    drawn = np.frombuffer(
        shake_128(text.encode("utf-8", "replace")).digest(-(-bits // 8)), dtype=np.uint8
    )
    return pack(unpack(drawn, 8 * len(drawn))[:bits])


def stored_fields(document: Document, text: bool) -> dict[str, Any]:
    """What an index keeps of a document as its fields."""
    fields = dict(document.fields)
    if document.labels:
        fields["labels"] = list(document.labels)
    if text:
        fields["text"] = document.text
    return fields


def batches_of_codes(
    codes: NDArray[np.uint8],
    ids: Sequence[Id] | None,
    fields: Sequence[Mapping[str, Any]] | None,
    at_once: int,
) -> Iterator[Batch]:
    """Codes from anywhere, some at a time."""
    for name, given in (("ids", ids), ("fields", fields)):
        if given is not None and len(given) != len(codes):
            raise CodesError(
                f"{len(codes)} codes and {len(given)} {name}", hint=f"give {name} for each code"
            )
    ids = range(len(codes)) if ids is None else ids
    for start in range(0, len(codes), at_once):
        here = slice(start, start + at_once)
        yield Batch(list(ids[here]), codes[here], None if fields is None else fields[here])


def halves(vectors: NDArray[np.floating]) -> NDArray[np.float16]:
    """Vectors as they are kept. Of length 1, as ranking looks at directions alone: so none is too
    long for 16 bits.
    """
    return unit(vectors.astype(np.float64)).astype(np.float16)


class StoredCorpus(Corpus):
    """The documents of an index as a corpus; an id is as it was stored, which may be a number."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._read = snapshot, 0

    def __iter__(self) -> Iterator[Document]:
        self._read = 0
        for rows in self._snapshot.blocks(1024):
            for identity, fields in zip(
                self._snapshot.ids_of(rows), self._snapshot.fields_of(rows), strict=True
            ):
                yield Document(cast(str, identity), fields.pop("text", ""), fields=fields)
            self._read += len(rows)

    @property
    def share_read(self) -> float | None:
        return self._read / self._snapshot.documents if self._snapshot.documents else None


@dataclass(frozen=True)
class Stored:
    """A document of an index."""

    id: Id
    code: NDArray[np.uint8] = field(repr=False, compare=False)  # (bytes,)
    text: str
    fields: Mapping[str, Any]  # the others that were stored, labels among them

    @property
    def title(self) -> str:
        """Its title, or the first line of its text, or else its id."""
        return title_of(Document(str(self.id), self.text, fields=self.fields)) or str(self.id)


def stored_in(snapshot: Snapshot, rows: Rows) -> list[Stored]:
    """The documents in some rows."""
    ids, codes, fields = snapshot.ids_of(rows), snapshot.codes(rows), snapshot.fields_of(rows)
    return [
        Stored(identity, code, its.pop("text", ""), its)
        for identity, code, its in zip(ids, codes, fields, strict=True)
    ]


def rows_with(
    snapshot: Snapshot, ids: Sequence[Id], hint: str = "give the id of one that is there"
) -> Rows:
    """The rows of documents; an IndexFolderError names one that is not there."""
    rows = snapshot.rows_of(ids)
    if (rows < 0).any():
        raise IndexFolderError(f"there is no document {ids[int(np.argmax(rows < 0))]!r}", hint=hint)
    return rows

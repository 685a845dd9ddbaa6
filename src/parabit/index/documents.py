"""Documents on their way into an index: encoded, with what is to be kept of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.corpus import Corpus, Document
from parabit.errors import CodesError
from parabit.index.ranking import unit
from parabit.index.reading import VECTORS, WORD, WORDS
from parabit.index.store import Batch, Id, Kind, Ragged
from parabit.index.unique import UniqueIds
from parabit.model import InferredBatch, TextEncoder
from parabit.progress import Report
from parabit.text.bags import Bags, inverse_frequencies, tf_idf_rows

_AT_ONCE = 1 << 16  # codes


@dataclass
class Kept:
    """What an index keeps of a document beside its code, its id and its fields."""

    text: bool
    words: bool
    vectors: bool
    left_out: int = 0  # documents without a known word, counted on the way
    unknown: Sequence[str] = ()  # the ids of those in the latest batch

    def kinds(self, model: TextEncoder) -> dict[str, Kind]:
        """The extra arrays of the store."""
        kinds = {WORDS: Kind(WORD, ragged=True)} if self.words else {}
        return kinds | ({VECTORS: Kind("<f2", model.dim)} if self.vectors else {})


def batches_of(model: TextEncoder, corpus: Corpus, kept: Kept, report: Report) -> Iterator[Batch]:
    """Encode a corpus, batch by batch. What has no word that the model knows has no code to be found by."""
    unique = UniqueIds(corpus)
    for part in model.infer_each(corpus, report):
        unique.add([document.id for document in part.documents])
        codes, _, vectors = part.inferred
        assert codes is not None
        known = np.flatnonzero(part.known)
        kept.unknown = [part.documents[place].id for place in np.flatnonzero(~part.known).tolist()]
        kept.left_out += len(kept.unknown)
        documents = [part.documents[place] for place in known.tolist()]
        extra: dict[str, NDArray[Any] | Ragged] = {}
        if kept.words:
            rows = words_of(model, [part])[known]
            entries = np.empty(rows.nnz, dtype=WORD)
            entries["feature"], entries["weight"] = rows.indices, rows.data
            extra[WORDS] = Ragged(entries, rows.indptr.astype(np.int64))
        if kept.vectors:
            extra[VECTORS] = _halves(vectors[known])
        fields = [_fields(document, kept.text) for document in documents]
        yield Batch([document.id for document in documents], codes[known], fields, extra)


def words_of(model: TextEncoder, parts: Sequence[InferredBatch]) -> csr_array:
    """The TF-IDF rows of documents, by the model's words and their frequencies: (documents, vocabulary)."""
    vocabulary = model.vocabulary
    if not parts:
        return csr_array(np.zeros((0, len(vocabulary)), dtype=np.float32))
    bags = Bags.joined([part.bags for part in parts])
    present = np.unique(bags.features)  # a query has few of the vocabulary's words
    idf = np.zeros(len(vocabulary), dtype=np.float32)
    idf[present] = inverse_frequencies(vocabulary.document_frequencies[present], vocabulary.documents)
    return tf_idf_rows(bags.features, bags.counts, bags.feature_offsets, idf)


def _fields(document: Document, text: bool) -> dict[str, Any]:
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
        extra: dict[str, NDArray[Any] | Ragged] = {}
        if vectors is not None:
            extra[VECTORS] = _halves(vectors[here])
        yield Batch(mine, codes[here], None if fields is None else fields[here], extra)


def _halves(vectors: NDArray[np.floating]) -> NDArray[np.float16]:
    """Vectors as they are kept. Of length 1, as ranking looks at directions alone: so none is too long for 16 bits."""
    if vectors.ndim != 2:
        raise CodesError(
            f"vectors must be rows of a 2-d array, found shape {vectors.shape}", hint="give one for each document"
        )
    if not np.isfinite(vectors).all():
        raise CodesError("vectors have numbers that are not finite", hint="leave out documents that have no vector")
    return unit(vectors.astype(np.float64)).astype(np.float16)

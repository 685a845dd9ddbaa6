"""Learning the model of an index again, from the documents that it holds."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from parabit.corpus import Corpus, Document, as_corpus
from parabit.errors import IndexFolderError
from parabit.index.documents import Kept, drawn_code, halves
from parabit.index.store import VECTORS, Snapshot, Store
from parabit.index.store.schema import CODES, EXTRA, TEXT, Arrays
from parabit.model import TextEncoder, save_model
from parabit.model.encoder import AT_ONCE, joined
from parabit.progress import Progress, Report

if TYPE_CHECKING:
    from parabit.index.index import Index


def retrain(index: "Index", bits: int | None, sample: int | None, seed: int | None, report: Report) -> None:
    """Learn a new model for an index and encode its documents; see `Index.retrain`."""
    store = index._store
    if not isinstance(store, Store):
        raise IndexFolderError("only an index whose documents are in its folder is retrained", hint="build it again")
    if not index.knows_texts or not index.keeps_text:
        raise IndexFolderError(f"{index.folder} keeps no texts to learn from", hint="build it again from its documents")
    if not len(index):
        raise IndexFolderError(f"{index.folder} has no documents to learn from", hint="add some first")
    from parabit.model import ParagraphVectors  # here: it imports scikit-learn

    view = store.snapshot()
    estimator = ParagraphVectors.load(store.model_folder)
    if bits is not None and bits != index.bits:
        estimator.set_params(bits=bits, levels=None)
    if sample is not None:
        estimator.set_params(sample=sample or None)
    if seed is not None:
        estimator.set_params(random_state=seed)
    model: TextEncoder = estimator.fit(_Texts(view), report=report).encoder_
    assert model.bits is not None
    kinds = Kept(text=True, words=index.has_words, vectors=VECTORS in store.extra).kinds(model)
    done = 0

    def recode(rows: NDArray[np.int64]) -> Arrays:
        nonlocal done
        codes, vectors = _encoded(model, [fields[TEXT] for fields in view.fields_of(rows)])
        done += len(rows)
        report(Progress("encoding", done, "documents", done / view.documents))
        return {CODES: codes, **({EXTRA + VECTORS: halves(vectors)} if kinds else {})}

    store.recode(model.bits, model.fingerprint, kinds, recode, lambda place: save_model(model, place), report)
    index._model = model


def _encoded(model: TextEncoder, texts: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Codes and vectors; a document of which the model knows no word gets a code far from all others."""
    assert model.bits is not None
    parts = list(model.infer_each(as_corpus(texts)))
    codes, _, vectors = joined([part.inferred for part in parts], model.bits, model.dim)
    assert codes is not None
    known = np.concatenate([part.known for part in parts])
    for place in np.flatnonzero(~known).tolist():
        codes[place] = drawn_code(texts[place], model.bits)
    return codes, vectors


class _Texts(Corpus):
    """The texts of an index."""

    def __init__(self, view: Snapshot) -> None:
        self._view, self._read = view, 0

    def __iter__(self) -> Iterator[Document]:
        self._read = 0
        for rows in self._view.blocks(AT_ONCE):
            for identity, fields in zip(self._view.ids_of(rows), self._view.fields_of(rows), strict=True):
                self._read += 1
                yield Document(str(identity), fields[TEXT])

    @property
    def share_read(self) -> float | None:
        return self._read / self._view.documents

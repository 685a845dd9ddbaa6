"""Learning the model of an index again, from the documents that it holds."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.documents import StoredCorpus, drawn_code, halves
from parabit.index.store import Store
from parabit.index.store.schema import CODES, TEXT, VECTORS, Arrays
from parabit.model import TextEncoder, save_model
from parabit.progress import Progress, Report

if TYPE_CHECKING:
    from parabit.index.index import Index

_GROWTH, _UNKNOWN, _LOOKED_AT = 1.5, 0.15, 1000  # when to advise it: see `retrain_reason`


def retrain(
    index: "Index", bits: int | None, sample: int | None, seed: int | None, report: Report
) -> TextEncoder:
    """Learn a new model for an index and encode its documents; see `Index.retrain`."""
    store = index._store
    if not isinstance(store, Store):
        raise IndexFolderError(
            "only an index whose documents are in its folder is retrained", hint="build it again"
        )
    if not index.knows_texts or not index.keeps_text:
        raise IndexFolderError(
            f"{index.folder} keeps no texts to learn from", hint="build it again from its documents"
        )
    if not len(index):
        raise IndexFolderError(
            f"{index.folder} has no documents to learn from", hint="add some first"
        )
    from parabit.model import ParagraphVectors  # here: it imports scikit-learn

    snapshot = store.snapshot()
    estimator = ParagraphVectors.load(store.model_folder)
    if bits is not None and bits != index.bits:
        estimator.set_params(bits=bits, levels=None)
    if sample is not None:
        estimator.set_params(sample=sample or None)
    if seed is not None:
        estimator.set_params(random_state=seed)
    model: TextEncoder = estimator.fit(StoredCorpus(snapshot), report=report).encoder_
    assert model.bits is not None
    dim, bits, done = model.dim if store.manifest.dim else 0, model.bits, 0

    def recode(rows: NDArray[np.int64]) -> Arrays:
        nonlocal done
        texts = [fields[TEXT] for fields in snapshot.fields_of(rows)]
        codes, _, vectors, known = model.infer(texts)
        assert codes is not None
        for place in np.flatnonzero(~known).tolist():
            codes[place] = drawn_code(texts[place], bits)
        done += len(rows)
        report(Progress("encoding", done, "documents", done / snapshot.documents))
        return {CODES: codes, **({VECTORS: halves(vectors)} if dim else {})}

    save = partial(save_model, model, locked=False)
    store.compact(report, recode, save, bits=bits, dim=dim, fingerprint=model.fingerprint)
    return model


def retrain_reason(index: "Index") -> str:
    """Why the model of an index should be learned again; empty if there is no reason.

    Either it was learned from fewer documents than a model profits from, and the index has half as
    many again; or it does not know more than 15% of the words in a sample of the documents. On four
    collections (posts, news, docstrings, abstracts) it was 4 to 7% of the documents that a model
    was learned from, 8 to 12% of others of the same collection, and 19 to 67% of those of another
    one.
    """
    from parabit.model.closed_form import SAMPLE  # here: it imports scipy

    documents, training = len(index), index.model.config["training"]
    if training["documents"] < SAMPLE and documents > _GROWTH * training["documents"]:
        return f"the model was learned from {training['documents']:,} documents, and there are {documents:,} now"
    if not index.keeps_text or not documents or not isinstance(index._store, Store):
        return ""
    snapshot = index.snapshot()
    texts = [fields[TEXT] for fields in snapshot.fields_of(snapshot.sample(_LOOKED_AT))]
    unknown = 1 - float(np.mean(index.model.coverage(texts)))
    return (
        f"the model does not know {unknown:.0%} of the words in the documents"
        if unknown > _UNKNOWN
        else ""
    )

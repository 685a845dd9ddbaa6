"""How well a demo's codes find documents of the same label, beside LSA with iterative quantization."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from parabit.baselines.peers import LSA, IterativeQuantization
from parabit.corpus import Document
from parabit.evaluation import evaluate_codes
from parabit.evaluation.relevance import relevance_of
from parabit.progress import Progress, Report
from parabit.text import Vocabulary, make_bags

if TYPE_CHECKING:
    from parabit.model import TextEncoder

_MOST_LEARNED = 20_000  # documents that LSA + ITQ is learned from, in seconds
_QUERIES = 2_000  # enough for three decimals, and seconds where all would take minutes


def measure(model: "TextEncoder", documents: list[Document], name: str, report: Report) -> dict[str, Any] | None:
    """MAP and NDCG@10 of the model's codes and of the peer's, both learned from the same documents without labels.

    All documents with labels query each other; of many, some, evenly spread, query all the others. None where labels
    say nothing of which documents belong together.
    """
    kept = [document for document in documents if document.labels]
    counts = Counter(label for document in kept for label in document.labels)
    if len(counts) < 2 or max(counts.values()) < 2:
        return None
    places = np.arange(len(kept))
    queries = places[:: -(-len(kept) // _QUERIES)] if len(kept) > 2 * _QUERIES else None
    labels = [document.labels for document in kept]
    kind = relevance_of(name)

    def score(codes: NDArray[np.uint8]) -> dict[str, float]:
        if queries is None:
            scores = evaluate_codes(codes, labels, relevance=kind)
        else:
            others = np.setdiff1d(places, queries)
            scores = evaluate_codes(
                codes[queries],
                [labels[place] for place in queries],
                relevance=kind,
                searched=(codes[others], [labels[place] for place in others]),
            )
        return {"map": scores.map, "ndcg@10": scores.ndcg}

    report(Progress("measuring", 0, "documents", 0.0))
    codes = model.infer(kept).codes
    assert codes is not None
    ours = score(codes)
    report(Progress("measuring", len(kept), "documents", 0.3, "LSA + ITQ"))
    peer = _peer(model, documents, kept)
    report(Progress("measuring", len(kept), "documents", 0.9, "LSA + ITQ"))
    return {
        "ours": ours,
        "lsa_itq": None if peer is None else score(peer),
        "queries": len(kept) if queries is None else len(queries),
        "searched": len(kept) - (1 if queries is None else len(queries)),
        "labels": len(counts),
        "relevance": kind,
    }


def _peer(model: "TextEncoder", documents: list[Document], kept: list[Document]) -> NDArray[np.uint8] | None:
    """The codes of LSA + ITQ with as many bits and the same words; None where it cannot have so many."""
    bits, vocabulary = model.bits or 0, model.vocabulary
    counts = counts_of(documents[:: -(-len(documents) // _MOST_LEARNED)], vocabulary)
    if bits >= min(counts.shape):
        return None
    # Threads of a matrix product wait by spinning: on a machine that is busy with something else, one is faster.
    with threadpool_limits(1, user_api="blas"):
        analysis = LSA(bits).fit(counts)
        quantization = IterativeQuantization(bits).fit(analysis.transform(counts))
        return quantization.transform(analysis.transform(counts_of(kept, vocabulary)))


def counts_of(documents: list[Document], vocabulary: Vocabulary) -> csr_array:
    """How often each document has each word: (documents, words)."""
    texts = [document.text for document in documents]
    return make_bags(texts, vocabulary).matrix(len(vocabulary))

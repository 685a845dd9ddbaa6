"""Paragraph vectors as gensim trains them."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from parabit.baselines.inputs import check_fitted, check_size
from parabit.errors import BaselineError, need
from parabit.parallel import cores
from parabit.progress import Progress, Report, silent

if TYPE_CHECKING:
    from parabit.text import Bags

_NEGATIVES = 5
_REPORTED_AFTER = 256  # documents inferred


class Doc2Vec:
    """Real-valued PV-DBOW with 5 negative samples by gensim, on the words that parabit trains on.

    (Q. Le and T. Mikolov, "Distributed representations of sentences and documents", ICML 2014.) gensim reads
    at most 10,000 words of a document. With one worker the same seed trains the same vectors; several workers
    overwrite each other's updates. Inference starts from the seed for each document, so that every call gives the same
    vector; but gensim's starting point is a hash that differs between Python processes unless PYTHONHASHSEED is set.

    Example:
        >>> Doc2Vec(dim=128).epochs  # .fit(documents), .transform(documents) with parabit.text.Bags
        20
    """

    model_: Any

    def __init__(self, dim: int, epochs: int = 20, seed: int = 0, workers: int | None = None) -> None:
        self.dim = dim
        self.epochs = epochs
        self.seed = seed
        self.workers = workers

    def fit(self, documents: "Bags") -> Self:
        """Train on documents; their words must be in order, though DBOW ignores it."""
        workers = cores() if self.workers is None else self.workers
        for name, value in (("dim", self.dim), ("epochs", self.epochs), ("workers", workers)):
            check_size(name, value)
        gensim = need("gensim.models.doc2vec", "baselines", BaselineError)
        texts = _texts(documents)
        if not any(texts):
            raise BaselineError(f"there is nothing to fit on: {len(texts)} documents without words", hint="give some")
        self.model_ = gensim.Doc2Vec(
            [gensim.TaggedDocument(text, [number]) for number, text in enumerate(texts)],
            dm=0,
            vector_size=self.dim,
            epochs=self.epochs,
            negative=_NEGATIVES,
            min_count=1,
            sample=0,
            seed=self.seed,
            workers=workers,
        )
        return self

    def transform(self, documents: "Bags", report: Report = silent) -> NDArray[np.float32]:
        """Infer the vectors of documents, (documents, dim); one without known words is zero."""
        check_fitted(self, "model_")
        known, texts = self.model_.wv.key_to_index, _texts(documents)
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for number, text in enumerate(texts):
            words = [word for word in text if word in known]
            if words:
                self.model_.random.seed(self.seed)  # otherwise it would continue from the previous document
                vectors[number] = self.model_.infer_vector(words)
            if (number + 1) % _REPORTED_AFTER == 0 or number + 1 == len(texts):
                report(Progress("inferring", number + 1, "documents", (number + 1) / len(texts)))
        return vectors


def _texts(documents: "Bags") -> list[list[str]]:
    """The words of each document; gensim knows words as strings."""
    if len(documents.features) and not len(documents.tokens):
        raise BaselineError(
            "the documents have counts, but not the order of their words",
            hint="Bags.of_counts omits it; give Bags with tokens",
        )
    words = documents.tokens.astype(str).tolist()
    return [words[start:end] for start, end in pairwise(documents.token_offsets.tolist())]

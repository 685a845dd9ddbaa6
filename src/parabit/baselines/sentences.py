"""Vectors of a pretrained sentence encoder: what you get without training on your own corpus."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import BaselineError, need


class SentenceEncoder:
    """A model of sentence-transformers (N. Reimers and I. Gurevych, "Sentence-BERT", EMNLP 2019).

    It reads texts, not counts, and only the beginning of long ones: all-MiniLM-L6-v2 its first 256 word pieces. The
    model is loaded at the first call, and downloaded if necessary. There is nothing to fit.

    Example:
        >>> SentenceEncoder().model  # .transform(texts) needs sentence-transformers
        'all-MiniLM-L6-v2'
    """

    def __init__(self, model: str = "all-MiniLM-L6-v2") -> None:
        self.model = model
        self._loaded: Any = None

    def transform(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts at length 1, (texts, dim)."""
        if isinstance(texts, str):
            raise BaselineError("texts must be a list of strings, found one string", hint="give it as [text]")
        if self._loaded is None:
            self._loaded = self._load()
        vectors = self._loaded.encode(
            list(texts), convert_to_numpy=True, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32)

    def _load(self) -> Any:
        library = need("sentence_transformers", "sentences", BaselineError)
        try:
            return library.SentenceTransformer(self.model)
        # It raises various errors for a missing model: OSError, ValueError, errors of the hub and of requests.
        except Exception as problem:
            reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
            raise BaselineError(
                f"the model {self.model!r} cannot be loaded: {reason}",
                hint="download it once where the Hugging Face hub can be reached, or give the path of a folder that "
                "has it",
            ) from problem

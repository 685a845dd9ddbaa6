"""From texts to codes: the estimator, model folders, and inference for new documents."""

from parabit.encoding.model_folder import is_model
from parabit.encoding.paragraph_vectors import Inferred, ParagraphVectors

__all__ = ["Inferred", "ParagraphVectors", "is_model"]

"""From texts to codes: the estimator, model folders, and inference for new documents."""

from parabit.encoding.model_folder import is_model
from parabit.encoding.paragraph_vectors import Inferred, ParagraphVectors
from parabit.encoding.work import is_work_folder

__all__ = ["Inferred", "ParagraphVectors", "is_model", "is_work_folder"]

"""From texts to codes: the estimator, model folders, and inference for new documents."""

from parabit.encoding.batches import Inferred, InferredBatch
from parabit.encoding.files import Encoded, encode_to_file, need_room_for_codes, work_folder_of
from parabit.encoding.model_folder import is_model
from parabit.encoding.paragraph_vectors import ParagraphVectors
from parabit.encoding.work import is_work_folder

__all__ = [
    "Encoded",
    "Inferred",
    "InferredBatch",
    "ParagraphVectors",
    "encode_to_file",
    "is_model",
    "is_work_folder",
    "need_room_for_codes",
    "work_folder_of",
]

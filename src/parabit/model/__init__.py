"""From texts to codes: the estimator, model folders, and inference for new documents."""

from parabit.model.code_files import Encoded, encode_to_file, need_room_for_codes, work_folder_of
from parabit.model.encoder import Inferred, InferredBatch
from parabit.model.estimator import ParagraphVectors
from parabit.model.persistence import is_model
from parabit.model.work import is_work_folder

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

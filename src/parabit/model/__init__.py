"""Learning models and encoding with them: the closed form, the estimator, model folders and files of codes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from parabit.model.code_files import EncodedFile, check_output, encode_to_file
from parabit.model.encoder import Inferred, InferredBatch, TextEncoder
from parabit.model.learning import learn_closed_form
from parabit.model.persistence import fingerprint, is_model, load_model, save_model

if TYPE_CHECKING:
    from parabit.model.estimator import ParagraphVectors

__all__ = [
    "EncodedFile",
    "Inferred",
    "InferredBatch",
    "ParagraphVectors",
    "TextEncoder",
    "check_output",
    "encode_to_file",
    "fingerprint",
    "is_model",
    "learn_closed_form",
    "load_model",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name == "ParagraphVectors":  # on first use: scikit-learn takes a second to import, and searching needs none of it
        return import_module("parabit.model.estimator").ParagraphVectors
    raise AttributeError(f"module 'parabit.model' has no attribute {name!r}")

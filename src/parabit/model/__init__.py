"""Learning models and encoding with them: the closed form, the estimator, model folders and files of codes."""

from typing import TYPE_CHECKING

from parabit.errors import lazy

if TYPE_CHECKING:
    from parabit.model.code_files import EncodedFile, check_output, encode_to_file
    from parabit.model.encoder import Inferred, InferredBatch, TextEncoder
    from parabit.model.estimator import ParagraphVectors
    from parabit.model.learning import learn_closed_form
    from parabit.model.persistence import is_model, load_model, save_model

__all__ = [
    "EncodedFile",
    "Inferred",
    "InferredBatch",
    "ParagraphVectors",
    "TextEncoder",
    "check_output",
    "encode_to_file",
    "is_model",
    "learn_closed_form",
    "load_model",
    "save_model",
]

# The estimator needs scikit-learn, which takes a second to import; searching has no use for it.
__getattr__ = lazy(
    __name__,
    {
        "parabit.model.code_files": ("EncodedFile", "check_output", "encode_to_file"),
        "parabit.model.encoder": ("Inferred", "InferredBatch", "TextEncoder"),
        "parabit.model.estimator": ("ParagraphVectors",),
        "parabit.model.learning": ("learn_closed_form",),
        "parabit.model.persistence": ("is_model", "load_model", "save_model"),
    },
)

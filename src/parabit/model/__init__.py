"""Learning models and encoding with them: the closed form, the estimator, model folders and files of codes."""

from typing import TYPE_CHECKING

from parabit.errors import lazy
from parabit.model.encoder import Inferred, TextEncoder, is_model, load_model, save_model

if TYPE_CHECKING:
    from parabit.model.closed_form import learn_closed_form
    from parabit.model.code_files import EncodedFile, encode_to_file
    from parabit.model.estimator import ParagraphVectors

__all__ = [
    "EncodedFile",
    "Inferred",
    "ParagraphVectors",
    "TextEncoder",
    "encode_to_file",
    "is_model",
    "learn_closed_form",
    "load_model",
    "save_model",
]

# These need polars and scikit-learn, which take a second to import; searching has no use for them.
__getattr__ = lazy(
    __name__,
    closed_form="learn_closed_form",
    code_files="EncodedFile encode_to_file",
    estimator="ParagraphVectors",
)

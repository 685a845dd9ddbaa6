import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from parabit.baselines import SentenceEncoder
from parabit.errors import BaselineError


class FakeTransformer:
    """Stands for the library's model: a vector that tells which text it was, and how it was asked for."""

    loaded = 0

    def __init__(self, name: str) -> None:
        if name != "all-MiniLM-L6-v2":
            raise OSError(f"{name} is not a local folder\nand much more")
        type(self).loaded += 1

    def encode(self, texts: list[str], **options: Any) -> NDArray[np.float64]:
        assert options == {"convert_to_numpy": True, "normalize_embeddings": True, "show_progress_bar": False}
        return np.array([[len(text), 1.0] for text in texts]).reshape(-1, 2)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = FakeTransformer  # type: ignore[attr-defined]
    monkeypatch.setattr(FakeTransformer, "loaded", 0)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


def test_texts_become_vectors_in_their_order_and_the_model_is_loaded_once(library: None) -> None:
    encoder = SentenceEncoder()
    assert FakeTransformer.loaded == 0
    vectors = encoder.transform(("four", "fives"))
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[4, 1], [5, 1]]
    assert encoder.transform(["one"]).tolist() == [[3, 1]]
    assert FakeTransformer.loaded == 1


def test_a_model_that_cannot_be_had_is_told_with_what_to_do(library: None) -> None:
    with pytest.raises(
        BaselineError, match="the model 'nobody/nothing' cannot be loaded: nobody/nothing is not a"
    ) as told:
        SentenceEncoder("nobody/nothing").transform(["text"])
    assert "download it where" in told.value.hint
    assert "and much more" not in str(told.value)


def test_a_single_text_is_not_taken_for_a_list(library: None) -> None:
    with pytest.raises(BaselineError, match="found one string; give it as"):
        SentenceEncoder().transform("text")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(
        BaselineError, match=r"sentence_transformers is not installed; pip install 'parabit\[sentences\]'"
    ):
        SentenceEncoder().transform(["text"])

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture
def sentences(monkeypatch: pytest.MonkeyPatch) -> type:
    """Stands for sentence-transformers' model: a vector that says which text it was; it counts how often it loads."""

    class FakeTransformer:
        loaded = 0

        def __init__(self, name: str) -> None:
            if name != "all-MiniLM-L6-v2":
                raise OSError(f"{name} is not a local folder\nand much more")
            type(self).loaded += 1

        def encode(self, texts: list[str], **options: Any) -> NDArray[np.float64]:
            assert options == {"convert_to_numpy": True, "normalize_embeddings": True, "show_progress_bar": False}
            return np.array([[len(text), 1.0] for text in texts]).reshape(-1, 2)

    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = FakeTransformer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return FakeTransformer

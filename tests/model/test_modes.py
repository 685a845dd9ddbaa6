"""The two ways to infer: fast, one sparse product, and exact, gradient inference."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from sklearn.base import clone

from parabit import ParagraphVectors
from parabit.codes import hamming
from parabit.errors import ModelError
from parabit.model import Inferred
from topics import Topics
from without_torch import WITHOUT_TORCH

QUICK: dict[str, Any] = {"epochs": 2, "warm_up": 1, "samples": 64, "inference_rounds": 4, "device": "cpu"}
MODELS: dict[str, dict[str, Any]] = {
    "dbow": {"bits": 16},
    "real-binary": {"bits": 12, "dim": 40},
    "real-valued": {"bits": None, "dim": 21},
    "paper": {"bits": 16, "preset": "paper"},
    "dm": {"bits": 16, "architecture": "dm"},
}
PREFERRED = {"dbow": "fast", "real-binary": "fast", "real-valued": "fast", "paper": "exact", "dm": "exact"}
OLD = Path(__file__).parent / "models" / "format-1"


@pytest.fixture(scope="module", params=MODELS)
def named(request: pytest.FixtureRequest, topics: Topics) -> tuple[str, ParagraphVectors]:
    return request.param, ParagraphVectors(**QUICK, **MODELS[request.param]).fit(topics.texts)


@pytest.fixture(scope="module")
def model(named: tuple[str, ParagraphVectors]) -> ParagraphVectors:
    return named[1]


@pytest.fixture(scope="module")
def dbow(topics: Topics) -> ParagraphVectors:
    return ParagraphVectors(16, **QUICK).fit(topics.texts)


def same(one: Inferred, other: Inferred) -> bool:
    """To the bit."""
    codes: list[NDArray[np.uint8] | None] = [one.codes, other.codes]
    coded = [None if code is None else code.tobytes() for code in codes]
    return coded[0] == coded[1] and one.vectors.tobytes() == other.vectors.tobytes()


def test_none_is_fast_and_exact_with_the_papers_recipe_and_with_distributed_memory(
    named: tuple[str, ParagraphVectors], topics: Topics
) -> None:
    name, model = named
    assert model.mode is None
    assert model.mode_ == PREFERRED[name]
    texts = [*topics.texts[:40], "", "qqqq"]
    other = {"fast": "exact", "exact": "fast"}[model.mode_]
    assert same(model.infer(texts), model.infer(texts, mode=model.mode_))
    assert not same(model.infer(texts), model.infer(texts, mode=other))
    assert model.transform(texts).tobytes() == clone_fitted(model, PREFERRED[name]).transform(texts).tobytes()


def clone_fitted(model: ParagraphVectors, mode: str | None) -> ParagraphVectors:
    """The same fitted model, with another mode."""
    twin: ParagraphVectors = clone(model)
    twin.__dict__.update(model.__dict__)
    return twin.set_params(mode=mode)


@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_the_mode_that_is_set_is_the_one_that_transform_takes(
    mode: str, model: ParagraphVectors, topics: Topics
) -> None:
    chosen = clone_fitted(model, mode)
    assert chosen.mode_ == mode
    assert same(chosen.infer(topics.texts[:40]), model.infer(topics.texts[:40], mode=mode))


def test_the_mode_changes_nothing_about_training(dbow: ParagraphVectors, topics: Topics) -> None:
    for mode in ("fast", "exact"):
        other = clone(dbow).set_params(mode=mode).fit(topics.texts)
        assert other.embeddings_.tobytes() == dbow.embeddings_.tobytes()
        assert same(other.infer(topics.texts), dbow.infer(topics.texts, mode=mode))


@pytest.mark.parametrize("mode", ["quick", "Fast", 1, True])
def test_a_mode_that_there_is_not_is_told(mode: Any, dbow: ParagraphVectors, topics: Topics) -> None:
    words = f"^no mode {mode!r}; there are fast, exact$"
    with pytest.raises(ModelError, match=words):
        ParagraphVectors(8, **QUICK, mode=mode).fit(topics.texts)
    with pytest.raises(ModelError, match=words):
        dbow.infer(topics.texts[:2], mode=mode)
    with pytest.raises(ModelError, match=words):
        clone_fitted(dbow, mode).transform(topics.texts[:2])


def test_both_ways_find_documents_of_the_same_topic(topics: Topics) -> None:
    learning = QUICK | {"epochs": 8, "word_accumulator_start": 1e-4}
    model = ParagraphVectors(32, **learning).fit(topics.texts[:200])
    together = np.equal.outer(topics.labels[200:], topics.labels[:200])
    for mode in ("fast", "exact"):
        codes = model.infer(topics.texts[200:], mode=mode).codes
        assert codes is not None
        distances = hamming(codes, model.codes_)
        assert distances[together].mean() < 0.6 * distances[~together].mean()


@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_a_code_is_the_same_alone_and_in_any_order_in_both_ways(
    mode: str, model: ParagraphVectors, topics: Topics
) -> None:
    texts = [*topics.texts[:60], "", "qqqq", " ".join(topics.texts[:50])]
    together = model.infer(texts, mode=mode)
    for chosen in ([0], [61], [62], [5, 5, 62], list(range(len(texts)))[::-1]):
        part = model.infer([texts[place] for place in chosen], mode=mode)
        codes = None if together.codes is None else together.codes[chosen]
        assert same(part, Inferred(codes, together.vectors[chosen]))


def test_what_was_saved_and_loaded_gives_the_same_codes_in_both_ways(
    model: ParagraphVectors, topics: Topics, tmp_path: Path
) -> None:
    model.save(tmp_path / "model", slim=True)
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    assert (tensors["encoder"].dtype, tensors["encoder_offset"].dtype) == (np.float16, np.float32)
    loaded = ParagraphVectors.load(tmp_path / "model", device="cpu")
    assert loaded.mode_ == model.mode_
    for mode in ("fast", "exact"):
        assert same(loaded.infer(topics.texts, mode=mode), model.infer(topics.texts, mode=mode))


@pytest.mark.parametrize("mode", ["fast", "exact", None])
def test_the_mode_is_saved_with_the_model(mode: str | None, model: ParagraphVectors, tmp_path: Path) -> None:
    chosen = clone_fitted(model, mode)
    chosen.save(tmp_path / "model")
    loaded = ParagraphVectors.load(tmp_path / "model", device="cpu")
    assert loaded.mode == mode
    assert loaded.mode_ == chosen.mode_


def test_a_model_of_before_the_fast_encoder_uses_exact_and_says_that_it_has_no_other(tmp_path: Path) -> None:
    assert "encoder" not in load_file(OLD / "model.safetensors")
    model = ParagraphVectors.load(OLD, device="cpu")
    assert model.mode_ == "exact"
    texts = ["a lantern in the dark street", "boats on the river"]
    assert same(model.infer(texts), model.infer(texts, mode="exact"))
    words = "^this model has no fast encoder; use mode exact, or train the model anew$"
    with pytest.raises(ModelError, match=words):
        model.infer(texts, mode="fast")
    model.save(tmp_path / "again")
    again = ParagraphVectors.load(tmp_path / "again", device="cpu")
    assert again.mode_ == "exact"
    assert same(again.infer(texts), model.infer(texts))


def test_a_model_whose_encoder_was_taken_out_is_one_without(
    dbow: ParagraphVectors, topics: Topics, tmp_path: Path
) -> None:
    dbow.save(tmp_path / "model")
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    shutil.copytree(tmp_path / "model", tmp_path / "without")
    left = {name: tensor for name, tensor in tensors.items() if not name.startswith("encoder")}
    save_file(left, tmp_path / "without" / "model.safetensors")
    loaded = ParagraphVectors.load(tmp_path / "without", device="cpu")
    assert loaded.mode_ == "exact"
    assert same(loaded.infer(topics.texts[:9]), dbow.infer(topics.texts[:9], mode="exact"))


def test_a_model_fitted_again_has_the_fast_encoder_of_its_new_texts(topics: Topics) -> None:
    model = ParagraphVectors(8, **QUICK).fit(topics.texts[:100])
    model.infer(topics.texts[:2], mode="exact")
    model.fit(topics.texts)
    fresh = ParagraphVectors(8, **QUICK).fit(topics.texts)
    for mode in ("fast", "exact"):
        assert same(model.infer(topics.texts, mode=mode), fresh.infer(topics.texts, mode=mode))


def test_without_torch_a_saved_model_gives_the_same_fast_codes(
    topics: Topics, tmp_path: Path, dbow: ParagraphVectors
) -> None:
    dbow.save(tmp_path / "dbow", slim=True)
    projected = ParagraphVectors(12, dim=40, **QUICK).fit(topics.texts)
    projected.save(tmp_path / "projected")
    (tmp_path / "texts").write_text("\n".join(topics.texts[:50]))
    code = (
        WITHOUT_TORCH
        + """from parabit import ParabitError, ParagraphVectors
texts = open("texts").read().split("\\n")
for name in ("dbow", "projected"):
    model = ParagraphVectors.load(name)
    print(model.mode_, model.transform(texts).tobytes().hex())
try:
    model.infer(texts, mode="exact")
except ParabitError as problem:
    print(problem)
"""
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    expected = [f"fast {fitted.transform(topics.texts[:50]).tobytes().hex()}" for fitted in (dbow, projected)]
    told = "torch is not installed; pip install 'parabit[train]'"
    assert result.stderr == ""
    assert result.stdout.splitlines() == [*expected, told]

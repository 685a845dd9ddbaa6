"""A model as a folder: complete or not there, the same after loading, and anything wrong with it said in words."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from parabit import ParagraphVectors, Tokenizer, __version__
from parabit.errors import ModelError, ParabitError
from parabit.model import is_model, load_model
from topics import Topics

QUICK = {"epochs": 2, "samples": 64, "inference_rounds": 3}
MODELS: dict[str, dict[str, Any]] = {
    "codes": {"bits": 16, "bigrams": True, "min_count": 2, "random_state": 5},
    "both": {"bits": 12, "dim": 40, "levels": (9, 3), "tokenizer": Tokenizer(stop_words=frozenset({"und", "oder"}))},
    "vectors": {"bits": None, "dim": 20},
    "network": {"bits": 16, "solver": "network", "network_params": QUICK},
    "dm": {"bits": None, "dim": 8, "preset": "paper", "architecture": "dm", "network_params": QUICK},
}
FILES = ["README.md", "config.json", "model.safetensors", "vocabulary.safetensors"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def model(topics: Topics) -> ParagraphVectors:
    return ParagraphVectors(16).fit(topics.texts)


@pytest.fixture
def saved(model: ParagraphVectors, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("parameters", MODELS.values(), ids=MODELS)
def test_a_model_saved_and_loaded_is_the_same(parameters: dict[str, Any], topics: Topics, tmp_path: Path) -> None:
    model = ParagraphVectors(**parameters, device="cpu").fit(topics.texts)
    model.save(tmp_path / "model")
    loaded = ParagraphVectors.load(tmp_path / "model", device="cpu")
    assert loaded.transform(topics.texts).tobytes() == model.transform(topics.texts).tobytes()
    assert loaded.encoder_.fingerprint == model.encoder_.fingerprint
    asked = model.get_params() | {"levels": None if model.levels is None else list(model.levels)}
    assert loaded.get_params() == asked
    assert loaded.levels_ == model.levels_
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "model")


def test_a_folder_has_these_files_and_says_what_it_is(saved: Path) -> None:
    assert [path.name for path in sorted(saved.iterdir())] == FILES
    config = json.loads((saved / "config.json").read_text())
    assert (config["format"], config["parabit"], config["solver"]) == (1, __version__, "closed-form")
    assert (config["bits"], config["levels"]) == (16, [16])
    assert "device" not in config["parameters"]
    card = (saved / "README.md").read_text()
    assert card.startswith("# Binary paragraph vectors in closed form, 16 bits per document\n")
    assert "| documents | 300, learned from 300 |" in card
    assert is_model(saved)


Harm = Callable[[bytes], bytes]


def config_with(**changes: Any) -> Harm:
    return lambda content: json.dumps({**json.loads(content), **changes}).encode()


def tensors_with(name: str, change: Callable[[Any], Any]) -> Harm:
    def harm(content: bytes) -> bytes:
        tensors = load(content)
        return save({**tensors, name: np.ascontiguousarray(change(tensors.get(name)))})

    return harm


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


DAMAGED, NOT_ONE = "{folder}/config.json is damaged", "the files in {folder} are not those of one model"


@pytest.mark.parametrize(
    ("name", "harm", "words"),
    [
        ("config.json", None, "no model in {folder}; make one with `parabit train CORPUS -o FOLDER`"),
        *(("config.json", content, DAMAGED) for content in (b"", b"{", b"[]", b"7", b'{"format": 1}')),
        ("config.json", half, DAMAGED),
        ("config.json", config_with(solver="network"), DAMAGED),
        ("config.json", config_with(bits=24), NOT_ONE),
        ("config.json", config_with(format=2), "{folder} was made by a newer version of parabit; upgrade parabit"),
        *(
            (f"{name}.safetensors", harm, f"{{folder}}/{name}.safetensors is damaged or missing")
            for name in ("model", "vocabulary")
            for harm in (None, b"no tensors", half)
        ),
        ("model.safetensors", tensors_with("weights", lambda weights: weights[:-1]), NOT_ONE),
        ("model.safetensors", tensors_with("offset", lambda offset: offset[None]), NOT_ONE),
        ("model.safetensors", tensors_with("more", lambda _: np.zeros(3)), NOT_ONE),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(saved: Path, name: str, harm: bytes | Harm | None, words: str) -> None:
    path = saved / name
    content = path.read_bytes()
    path.unlink()
    if harm is not None:
        path.write_bytes(harm if isinstance(harm, bytes) else harm(content))
    with pytest.raises(ModelError) as refused:
        load_model(saved)
    assert str(refused.value).startswith(words.format(folder=saved))


def test_files_of_two_models_do_not_make_a_third(saved: Path, topics: Topics, tmp_path: Path) -> None:
    ParagraphVectors(16).fit(topics.texts[:100]).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "vocabulary.safetensors", saved)
    with pytest.raises(ModelError, match="are not those of one model"):
        load_model(saved)


@pytest.mark.parametrize("kind", ["file", "empty folder", "folder of mine", "model with notes", "link"])
def test_what_is_no_model_is_never_replaced(kind: str, saved: Path, model: ParagraphVectors) -> None:
    place = saved.with_name("place")
    if kind == "link":
        place.symlink_to("nowhere")
    elif kind == "model with notes":
        shutil.copytree(saved, place)
    elif kind != "file":
        place.mkdir()
    mine = {"file": place, "folder of mine": place / "config.json", "model with notes": place / "notes.txt"}.get(kind)
    if mine is not None:
        mine.write_text('{"mine": true}')
    for overwrite in (False, True):
        with pytest.raises(ParabitError, match="place exists"):
            model.save(place, overwrite=overwrite)
    assert place.is_symlink() == (kind == "link")
    assert mine is None or mine.read_text() == '{"mine": true}'
    assert {path.name for path in saved.parent.iterdir()} == {"model", "place"}

"""A model as a folder: config.json, model.safetensors, vocabulary.parquet and a card."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from parabit.errors import ModelError, ParabitError
from parabit.shape import Shape
from parabit.storage import whole_folder
from parabit.text import Vocabulary

FORMAT = 1
CONFIG = "config.json"
TENSORS = "model.safetensors"
VOCABULARY = "vocabulary.parquet"
CARD = "README.md"
ENCODER, ENCODER_OFFSET = "encoder", "encoder_offset"  # the tensors of the fast encoder


def write_model(
    folder: Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, NDArray[Any]],
    vocabulary: Vocabulary,
    card: str,
    overwrite: bool,
) -> None:
    """Write a model folder whole; an old model is replaced only if `overwrite` says so, anything else never."""
    with whole_folder(folder, is_model if overwrite else None, durable=True) as partial:
        (partial / CONFIG).write_text(json.dumps({"format": FORMAT, **config}, indent=2) + "\n")
        save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, partial / TENSORS)
        vocabulary.save(partial / VOCABULARY)
        (partial / CARD).write_text(card)


def read_model(folder: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]], Vocabulary]:
    """Read a model folder; anything wrong with it is told."""
    config = _read_config(folder)
    try:
        with safe_open(folder / TENSORS, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as problem:
        raise ModelError(f"{folder / TENSORS} is damaged or missing", hint="train the model anew") from problem
    try:
        vocabulary = Vocabulary.load(folder / VOCABULARY)
    except ParabitError as problem:
        raise ModelError(f"{folder / VOCABULARY} is damaged or missing", hint="train the model anew") from problem
    if vocabulary.fingerprint != config["vocabulary"]:
        raise ModelError(f"{folder} has the vocabulary of another model", hint="train the model anew")
    return config, tensors, vocabulary


def need_tensors(
    folder: Path, tensors: Mapping[str, NDArray[np.float32]], shape: Shape, vocabulary: Vocabulary
) -> None:
    """Make sure that the tensors are those of the network; embeddings and the fast encoder may be left out."""
    optional = {
        "documents": (vocabulary.documents, shape.dim),
        ENCODER: (len(vocabulary), shape.dim),
        ENCODER_OFFSET: (shape.dim,),
    }
    found = {name: tensor.shape for name, tensor in tensors.items()}
    if optional | found != optional | shape.tensors(len(vocabulary)):
        raise ModelError(f"{folder / TENSORS} does not belong to its {CONFIG}", hint="train the model anew")


def is_model(folder: Path) -> bool:
    """Whether a folder holds a model and nothing else, so that no file of anybody's is lost with it."""
    try:
        names = {path.name for path in folder.iterdir()}
        config = json.loads((folder / CONFIG).read_text())
    except (OSError, ValueError):
        return False
    return names <= {CONFIG, TENSORS, VOCABULARY, CARD} and isinstance(config, dict) and "recipe" in config


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text())
        newer = config["format"] > FORMAT
        whole = newer or {"parameters", "recipe", "shape", "training", "vocabulary"} <= config.keys()
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise ModelError(f"no model in {folder}", hint="make one with `parabit train CORPUS -o FOLDER`") from problem
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ModelError(f"{folder / CONFIG} is damaged", hint="train the model anew") from problem
    if newer:
        raise ModelError(
            f"{folder} has format {config['format']}, this version of parabit reads up to {FORMAT}",
            hint="upgrade parabit",
        )
    if not whole:
        raise ModelError(f"{folder / CONFIG} is not that of a model", hint="train the model anew")
    return config

"""A model as a folder: config.json, model.safetensors, vocabulary.parquet and a card."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from parabit import __version__
from parabit.errors import ModelError, ParabitError
from parabit.networks.config import Shape
from parabit.storage import plain_disk_errors, whole_folder
from parabit.text import Vocabulary

if TYPE_CHECKING:
    from parabit.model.estimator import ParagraphVectors

FORMAT = 2  # 2: with the fast encoder
CONFIG = "config.json"
TENSORS = "model.safetensors"
VOCABULARY = "vocabulary.parquet"
CARD = "README.md"
ENCODER, ENCODER_OFFSET = "encoder", "encoder_offset"  # the tensors of the fast encoder
EMBEDDINGS = "documents"  # the tensor of the training documents' embeddings


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
        with plain_disk_errors(SafetensorError):
            save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, partial / TENSORS)
        vocabulary.save(partial / VOCABULARY)
        (partial / CARD).write_text(card)


def read_model(folder: Path, without: Sequence[str] = ()) -> tuple[dict[str, Any], dict[str, NDArray[Any]], Vocabulary]:
    """Read a model folder but for some tensors; anything wrong with it is told."""
    config = _read_config(folder)
    try:
        with safe_open(folder / TENSORS, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys() if name not in without}  # noqa: SIM118
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
        EMBEDDINGS: (vocabulary.documents, shape.dim),
        ENCODER: (len(vocabulary), shape.dim),
        ENCODER_OFFSET: (shape.dim,),
    }
    found = {name: tensor.shape for name, tensor in tensors.items()}
    if optional | found != optional | shape.tensors(len(vocabulary)):
        raise ModelError(f"{folder / TENSORS} does not belong to its {CONFIG}", hint="train the model anew")


def fingerprint_of(config: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> str:
    """A digest of what decides the codes that a model gives; where and when it was trained is no part of it."""
    parts = {name: config[name] for name in ("shape", "recipe", "vocabulary")} | {"seed": config["parameters"]["seed"]}
    digest = sha256(json.dumps(parts, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensor).data)
    return digest.hexdigest()


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
        if inside := sorted(folder.glob(f"model-*/{CONFIG}")):
            raise ModelError(f"{folder} is an index, not a model", hint=f"its model is {inside[0].parent}") from problem
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


def config_of(model: "ParagraphVectors") -> dict[str, Any]:
    """What a model is and how it was made, for JSON."""
    vocabulary = model.vocabulary_
    return {
        "parabit": __version__,
        "parameters": parameters_of(model),
        "shape": asdict(model.shape_),
        "recipe": asdict(model.recipe_),
        "vocabulary": vocabulary.fingerprint,
        "training": {
            "documents": vocabulary.documents,
            "tokens": vocabulary.tokens,
            "words": len(vocabulary.words),
            "bigrams": len(vocabulary.bigrams),
            "history": model.history_,
            "kept": model.kept_,
        },
    }


def parameters_of(model: "ParagraphVectors") -> dict[str, Any]:
    """The parameters that decide what the model is, for JSON; where it runs is not one of them."""
    # A number from a grid of numpy's is a number like any other.
    parameters = {
        name: value.item() if isinstance(value, np.generic) else value for name, value in model.get_params().items()
    }
    del parameters["device"]
    if not isinstance(model.stop_words, str):
        parameters["stop_words"] = sorted(model.stop_words)
    return parameters


def thawed(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as they were before JSON, which knows no sets."""
    stop = parameters["stop_words"]
    return {**parameters, "stop_words": frozenset(stop) if isinstance(stop, list) else stop}

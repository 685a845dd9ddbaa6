"""A model as a folder: config.json, model.safetensors, vocabulary.safetensors and a card."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from parabit.errors import ModelError, VocabularyError
from parabit.model.encoder import TextEncoder
from parabit.networks.config import Shape
from parabit.storage import recover, whole_folder
from parabit.text import Vocabulary

FORMAT = 1
CONFIG, TENSORS, VOCABULARY, CARD = "config.json", "model.safetensors", "vocabulary.safetensors", "README.md"
_AGAIN = "train the model again, or restore it from a copy"


def save_model(encoder: TextEncoder, folder: Path, overwrite: bool = False) -> None:
    """Write a model folder, complete or not at all; only an old model is replaced, and only with `overwrite`."""
    with whole_folder(folder, is_model if overwrite else None) as partial:
        config = {"format": FORMAT, **encoder.config, "vocabulary": encoder.vocabulary.fingerprint}
        (partial / CONFIG).write_text(json.dumps(config, indent=2) + "\n")
        # Not save_file, which ignores the umask: nobody else could read its file.
        (partial / TENSORS).write_bytes(save({name: np.ascontiguousarray(t) for name, t in encoder.tensors.items()}))
        encoder.vocabulary.save(partial / VOCABULARY)
        (partial / CARD).write_text(_card(encoder.config))


def load_model(folder: Path, device: str = "auto") -> TextEncoder:
    """Read a model folder; anything wrong with it is a ModelError."""
    recover(folder)
    with _explained(folder / CONFIG):
        if not (folder / CONFIG).is_file():
            if inside := sorted(folder.glob(f"model-*/{CONFIG}")):
                raise ModelError(f"{folder} is an index, not a model", hint=f"its model is {inside[0].parent}")
            raise ModelError(f"no model in {folder}", hint="make one with `parabit train CORPUS -o FOLDER`")
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text())
        if config.pop("format") > FORMAT:
            raise ModelError(f"{folder} was made by a newer version of parabit", hint="upgrade parabit")
        if missing := {"solver", "name", "bits", "dim", "levels", "training", "vocabulary"} - config.keys():
            raise KeyError(missing)
    with _explained(folder / TENSORS), safe_open(folder / TENSORS, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    with _explained(folder / VOCABULARY):
        vocabulary = Vocabulary.load(folder / VOCABULARY)
    with _explained(folder / CONFIG):
        shapes = _shapes(config, len(vocabulary))
    same = vocabulary.fingerprint == config.pop("vocabulary")
    if not same or {name: tensor.shape for name, tensor in tensors.items()} != shapes:
        raise ModelError(f"the files in {folder} are not those of one model", hint=_AGAIN)
    return TextEncoder(vocabulary, config, tensors, device)


def _shapes(config: Mapping[str, Any], words: int) -> dict[str, tuple[int, ...]]:
    """The tensors that a model must have."""
    if config["solver"] == "network":
        return Shape(**config["network"]["shape"]).tensors(words)
    bits, dim = config["bits"], config["dim"]
    columns = dim if bits is None or config["dim"] == bits else dim + bits
    return {"weights": (words, columns), "scales": (words,), "offset": (columns,)}


def is_model(folder: Path) -> bool:
    """Whether a folder holds a model and nothing else, so that nobody's files are lost with it."""
    try:
        names = {path.name for path in folder.iterdir()}
        config = json.loads((folder / CONFIG).read_text())
    except (OSError, ValueError):
        return False
    return names <= {CONFIG, TENSORS, VOCABULARY, CARD} and isinstance(config, dict) and "solver" in config


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a file of a model is a ModelError."""
    try:
        yield
    except ModelError:
        raise
    except PermissionError as problem:
        raise ModelError(f"{path} may not be read", hint="ask its owner for permission") from problem
    except (OSError, SafetensorError, VocabularyError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ModelError(f"{path} is damaged or missing", hint=_AGAIN) from problem


def _card(config: Mapping[str, Any]) -> str:
    """What a model is and what it was learned from, in Markdown; without a date, so that training can be reproduced."""
    training = config["training"]
    size = f"{config['bits']} bits" if config["bits"] else f"{config['dim']} numbers"
    lines = [
        f"# {config['name'][0].upper()}{config['name'][1:]}, {size} per document",
        "",
        f"Learned by parabit {config['parabit']}. Load it with `parabit.ParagraphVectors.load(folder)`.",
        "",
        "| | |",
        "| --- | --- |",
        f"| solver | {config['solver']} |",
        f"| documents | {training['documents']:,}, learned from {training['sampled']:,} |",
        f"| words of text | {training['tokens']:,} |",
        f"| vocabulary | {training['words']:,} words, {training['bigrams']:,} bigrams |",
        f"| levels of the code | {' + '.join(map(str, config['levels']))} |",
        "",
        "`config.json` has every parameter, `vocabulary.safetensors` the words, `model.safetensors` the weights.",
    ]
    if history := training.get("history"):
        lines += ["", "## Loss per word", "", "| epoch | loss |", "| --- | --- |"]
        lines += [f"| {number} | {epoch['loss']:.4f} |" for number, epoch in enumerate(history, start=1)]
    return "\n".join(lines) + "\n"

"""Where training takes place: the device, and room for what it needs."""

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from parabit.errors import TrainingError
from parabit.networks.memory import free_memory, gigabytes
from parabit.networks.shape import Shape

_FLOAT = 4
# Document embeddings that would take more than this share of the free memory are kept in files.
_MAPPED_ABOVE = 0.25


def choose_device(name: str) -> torch.device:
    """The device of a name: cpu, cuda, or auto for cuda where there is one.

    Example:
        >>> choose_device("cpu")
        device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise TrainingError(f"no device {name!r}", hint="there are cpu, cuda and auto")
    if name == "cuda" and not torch.cuda.is_available():
        raise TrainingError("cuda was asked for, and torch finds no GPU here", hint="take cpu, or auto")
    return torch.device(name)


def need_room(shape: Shape, vocabulary: int, device: torch.device, keeps_best: bool) -> None:
    """Refuse, before any work, a network that memory cannot hold."""
    row = shape.hidden + (shape.word_dim if shape.slots else 0)
    copies = 3 if keeps_best else 2  # parameters, AdaGrad's squares, the best epoch's parameters
    size = vocabulary * row * copies * _FLOAT
    free = _free(device)
    if free is not None and size > free:
        raise TrainingError(
            f"a vocabulary of {vocabulary:,} words and bigrams with {shape.hidden} units each needs "
            f"{gigabytes(size)} of memory to train, and {gigabytes(free)} are free",
            hint="a higher minimum count or a maximum size makes a smaller vocabulary",
        )


def room_for_documents(names: list[str], shape: tuple[int, int], device: torch.device, scratch: Path) -> list[Tensor]:
    """Room for tables with a row for each document: on the device, or in files of these names."""
    size = len(names) * shape[0] * shape[1] * _FLOAT
    free = _free(device)
    if free is None or size <= _MAPPED_ABOVE * free:
        return [torch.empty(shape, device=device) for _ in names]
    return [_mapped(scratch / f"{name}.f32", *shape) for name in names]


def _mapped(path: Path, rows: int, columns: int) -> Tensor:
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):  # not on Windows
            # All of it now: a disk that fills up later would end the process without a word.
            os.posix_fallocate(file.fileno(), 0, rows * columns * _FLOAT)
        else:
            file.truncate(rows * columns * _FLOAT)
    return torch.from_numpy(np.memmap(path, dtype=np.float32, mode="r+", shape=(rows, columns)))


def _free(device: torch.device) -> int | None:
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else free_memory()

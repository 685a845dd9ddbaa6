"""The paper's five networks, trained by gradient descent. Needs torch, except for `parabit.networks.config`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parabit.networks.checkpoint import Checkpoints
    from parabit.networks.documents import Documents, WordStatistics
    from parabit.networks.inference import NetworkEncoder
    from parabit.networks.training import Epoch, Trained, choose_device, train

__all__ = [
    "Checkpoints",
    "Documents",
    "Epoch",
    "NetworkEncoder",
    "Trained",
    "WordStatistics",
    "choose_device",
    "train",
]

# Imported on first use: shapes and recipes must be available without torch.
_MODULES = dict.fromkeys(__all__, "training") | {
    "Checkpoints": "checkpoint",
    "Documents": "documents",
    "WordStatistics": "documents",
    "NetworkEncoder": "inference",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'parabit.networks' has no attribute {name!r}")
    return getattr(import_module(f"parabit.networks.{_MODULES[name]}"), name)

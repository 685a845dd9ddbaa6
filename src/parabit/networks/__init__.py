"""The paper's five networks, trained by gradient descent. Needs torch, except for `parabit.networks.config`."""

from typing import TYPE_CHECKING

from parabit.errors import lazy

if TYPE_CHECKING:
    from parabit.networks.checkpoint import Checkpoints
    from parabit.networks.inference import NetworkEncoder
    from parabit.networks.training import Epoch, Trained, choose_device, train

__all__ = [
    "Checkpoints",
    "Epoch",
    "NetworkEncoder",
    "Trained",
    "choose_device",
    "train",
]

# Imported on first use: shapes and recipes must be available without torch.
__getattr__ = lazy(
    __name__, checkpoint="Checkpoints", inference="NetworkEncoder", training="Epoch Trained choose_device train"
)

"""The networks of the paper, and their training: from bags to a network and the documents' embeddings. Needs torch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parabit.networks.binarization import Activation, Binarization
    from parabit.networks.checkpoint import Checkpoints
    from parabit.networks.dbow import BagBatch, WantedWords, dbow_embedding_gradient, dbow_gradients, wanted_words
    from parabit.networks.distillation import distill
    from parabit.networks.dm import (
        PositionBatch,
        WantedPositions,
        dm_embedding_gradient,
        dm_gradients,
        wanted_positions,
    )
    from parabit.networks.documents import Documents, WordStatistics
    from parabit.networks.group import Group, join_group
    from parabit.networks.grouping import group_each, ragged, steady_matmul, sum_rows
    from parabit.networks.inference import Inference, Table
    from parabit.networks.network import Gradients, Network
    from parabit.networks.room import choose_device
    from parabit.networks.softmax import Candidates, WordSampler
    from parabit.networks.tables import make_sampler, make_table
    from parabit.networks.training import Epoch, Trained, train

# Imported when first asked for: shapes and recipes need no torch.
_MODULES = {
    "binarization": ("Activation", "Binarization"),
    "checkpoint": ("Checkpoints",),
    "dbow": ("BagBatch", "WantedWords", "dbow_embedding_gradient", "dbow_gradients", "wanted_words"),
    "distillation": ("distill",),
    "dm": ("PositionBatch", "WantedPositions", "dm_embedding_gradient", "dm_gradients", "wanted_positions"),
    "documents": ("Documents", "WordStatistics"),
    "group": ("Group", "join_group"),
    "grouping": ("group_each", "ragged", "steady_matmul", "sum_rows"),
    "inference": ("Inference", "Table"),
    "network": ("Gradients", "Network"),
    "room": ("choose_device",),
    "softmax": ("Candidates", "WordSampler"),
    "tables": ("make_sampler", "make_table"),
    "training": ("Epoch", "Trained", "train"),
}

__all__ = [
    "Activation",
    "BagBatch",
    "Binarization",
    "Candidates",
    "Checkpoints",
    "Documents",
    "Epoch",
    "Gradients",
    "Group",
    "Inference",
    "Network",
    "PositionBatch",
    "Table",
    "Trained",
    "WantedPositions",
    "WantedWords",
    "WordSampler",
    "WordStatistics",
    "choose_device",
    "dbow_embedding_gradient",
    "dbow_gradients",
    "distill",
    "dm_embedding_gradient",
    "dm_gradients",
    "group_each",
    "join_group",
    "make_sampler",
    "make_table",
    "ragged",
    "steady_matmul",
    "sum_rows",
    "train",
    "wanted_positions",
    "wanted_words",
]


def __getattr__(name: str) -> Any:
    for module, offered in _MODULES.items():
        if name in offered:
            return getattr(import_module(f"parabit.networks.{module}"), name)
    raise AttributeError(f"module 'parabit.networks' has no attribute {name!r}")

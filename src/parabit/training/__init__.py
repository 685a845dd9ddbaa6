"""Training: from bags to a network and the documents' embeddings. Needs torch, numpy and scipy alone."""

from parabit.training.checkpoint import Checkpoints
from parabit.training.distillation import distill
from parabit.training.documents import Documents, WordStatistics
from parabit.training.group import Group, join_group
from parabit.training.inference import Inference, Table
from parabit.training.room import choose_device
from parabit.training.tables import make_sampler, make_table
from parabit.training.trainer import Epoch, Trained, train

__all__ = [
    "Checkpoints",
    "Documents",
    "Epoch",
    "Group",
    "Inference",
    "Table",
    "Trained",
    "WordStatistics",
    "choose_device",
    "distill",
    "join_group",
    "make_sampler",
    "make_table",
    "train",
]

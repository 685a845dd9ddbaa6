"""Training: from bags to a network and the documents' embeddings. Needs torch, numpy and scipy alone."""

from parabit.training.bags import BagTable
from parabit.training.checkpoint import Checkpoints
from parabit.training.documents import Documents, WordStatistics
from parabit.training.inference import BATCH, Inference, Table
from parabit.training.positions import PositionTable
from parabit.training.room import choose_device
from parabit.training.trainer import Epoch, Trained, train

__all__ = [
    "BATCH",
    "BagTable",
    "Checkpoints",
    "Documents",
    "Epoch",
    "Inference",
    "PositionTable",
    "Table",
    "Trained",
    "WordStatistics",
    "choose_device",
    "train",
]

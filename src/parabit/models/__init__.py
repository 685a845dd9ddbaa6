"""The networks of the paper: what they compute, and its gradients. Needs torch, numpy and scipy alone."""

from parabit.models.binarization import Activation, Binarization
from parabit.models.dbow import BagBatch, WantedWords, dbow_embedding_gradient, dbow_gradients, wanted_words
from parabit.models.dm import PositionBatch, WantedPositions, dm_embedding_gradient, dm_gradients, wanted_positions
from parabit.models.grouping import group, group_each, ragged, steady_matmul, sum_rows
from parabit.models.network import Gradients, Network
from parabit.models.softmax import Candidates, WordSampler

__all__ = [
    "Activation",
    "BagBatch",
    "Binarization",
    "Candidates",
    "Gradients",
    "Network",
    "PositionBatch",
    "WantedPositions",
    "WantedWords",
    "WordSampler",
    "dbow_embedding_gradient",
    "dbow_gradients",
    "dm_embedding_gradient",
    "dm_gradients",
    "group",
    "group_each",
    "ragged",
    "steady_matmul",
    "sum_rows",
    "wanted_positions",
    "wanted_words",
]

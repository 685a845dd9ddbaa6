"""The networks of the paper: what they compute, and its gradients. Needs torch, numpy and scipy alone."""

from parabit.models.binarization import METHODS, STOCHASTIC, Activation, Binarization
from parabit.models.dbow import BagBatch, dbow_embedding_gradient, dbow_gradients, wanted_words
from parabit.models.dm import PositionBatch, dm_embedding_gradient, dm_gradients, wanted_positions
from parabit.models.grouping import group, group_each, ragged, sum_rows
from parabit.models.network import Gradients, Network, Shape
from parabit.models.softmax import Candidates, WordSampler

__all__ = [
    "METHODS",
    "STOCHASTIC",
    "Activation",
    "BagBatch",
    "Binarization",
    "Candidates",
    "Gradients",
    "Network",
    "PositionBatch",
    "Shape",
    "WordSampler",
    "dbow_embedding_gradient",
    "dbow_gradients",
    "dm_embedding_gradient",
    "dm_gradients",
    "group",
    "group_each",
    "ragged",
    "sum_rows",
    "wanted_positions",
    "wanted_words",
]

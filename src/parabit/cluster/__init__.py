"""Corpora and training on a Ray cluster: the same results as on one machine, from many."""

from parabit.cluster.connection import connected
from parabit.cluster.counting import build_bags_on_ray, build_vocabulary_on_ray
from parabit.cluster.encoding import EncodedShards, encode_shards
from parabit.cluster.shards import open_shards
from parabit.cluster.training import train_on_ray

__all__ = [
    "EncodedShards",
    "build_bags_on_ray",
    "build_vocabulary_on_ray",
    "connected",
    "encode_shards",
    "open_shards",
    "train_on_ray",
]

"""Encoding on a Ray cluster: the same codes as on one machine."""

from parabit.cluster.connection import connected
from parabit.cluster.encoding import EncodedShards, encode_shards
from parabit.cluster.shards import open_shards

__all__ = ["EncodedShards", "connected", "encode_shards", "open_shards"]

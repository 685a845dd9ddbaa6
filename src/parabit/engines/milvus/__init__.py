"""Indexes that Milvus keeps and searches."""

from parabit.engines.milvus.store import Milvus, MilvusStore

__all__ = ["Milvus", "MilvusStore"]

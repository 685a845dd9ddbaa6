"""Indexes that Milvus keeps and searches."""

from parabit.engines.milvus.store import Milvus, MilvusStore

__all__ = ["Milvus", "MilvusStore", "open_store"]

open_store = MilvusStore

"""An index on a Milvus server, with the contract of the embedded one; see `home.MilvusHome`."""

from parabit.index.milvus.home import MilvusHome
from parabit.index.milvus.making import create_on_milvus, dropping_old
from parabit.index.milvus.manifest import is_on_milvus
from parabit.index.milvus.place import Milvus

open_on_milvus = MilvusHome.open

__all__ = ["Milvus", "create_on_milvus", "dropping_old", "is_on_milvus", "open_on_milvus"]

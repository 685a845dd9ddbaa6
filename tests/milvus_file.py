"""A file of Milvus Lite, one for all tests of a process: to start it takes a second."""

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest


@cache
def place() -> Any:
    """Where tests keep their indexes; it stays open until the end."""
    pytest.importorskip("milvus_lite")
    from parabit.engines.milvus import Milvus
    from parabit.engines.milvus.client import Server

    folder = Path(mkdtemp(prefix="parabit-milvus-"))
    server = Server(str(folder / "tests.db"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.close)
    return Milvus(server.uri)

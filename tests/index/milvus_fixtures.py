"""What the tests of an index on a Milvus server have in common: the server, and a look at it past the index.

A plugin of pytest, so that the tests in several files share it. It is found with the doc strings first, as any other
file, and so says PYTEST_DONT_REWRITE.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from milvus_server import Running, running
from parabit.index.milvus.server import Server

CODES = np.arange(6, dtype=np.uint8)[:, None]
LONG = [{"text": "long " * 20_000}]  # more than goes into one entity


@pytest.fixture(scope="session")
def server() -> Running:
    return running()


@pytest.fixture(scope="session")
def asked(server: Running) -> Iterator[Server]:
    """A connection of its own, to see what is on the server."""
    connection = Server(server.uri)
    yield connection
    connection.close()

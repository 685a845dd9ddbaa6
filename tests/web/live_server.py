"""A real server in a thread of the test."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvicorn

from parabit.web import Settings, create_app
from parabit.web.connections import uvicorn_config

PATIENT = Settings(seconds=600)  # no answer is late, however busy the machine is
NO_MAP = Settings(seconds=600, map=False)


@contextmanager
def serving(folder: Path, settings: Settings = NO_MAP) -> Iterator[str]:
    """The address of a server that answers until the block ends; what is asked before it is ready waits."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn_config(create_app(folder, settings)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(600)
        listener.close()


@contextmanager
def connected(folder: Path, settings: Settings = NO_MAP) -> Iterator[httpx.Client]:
    """A client of such a server."""
    with (
        serving(folder, settings) as address,
        httpx.Client(base_url=address, timeout=600) as client,
    ):
        yield client

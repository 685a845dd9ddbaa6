"""Ports for servers that the tests start in processes of their own."""

import socket
from collections.abc import Iterator
from random import sample

# Below those that the system gives to whoever asks for any: it may do so before a server listens on one that was free
# when it was chosen. Ray gives its workers what is below these.
_PORTS = range(20_000, 32_000)


def bound(port: int) -> socket.socket | None:
    """A socket that holds a port, unless somebody else does; one that was just in use is free."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return None


def free_ports() -> Iterator[int]:
    """Ports that nobody has, each of them once."""
    for port in sample(_PORTS, len(_PORTS)):
        if held := bound(port):
            held.close()
            yield port

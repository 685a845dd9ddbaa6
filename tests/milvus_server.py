"""A real Milvus server for the tests, from the package `milvus`, in a process that ends with the one that asked."""

import atexit
import shutil
import socket
import subprocess
import sys
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from urllib.request import urlopen

import pytest


class Running:
    """A server on this machine. It can be killed and started again with what it had written."""

    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="parabit-milvus-"))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._folder), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self.uri = f"http://127.0.0.1:{self._tell('start')}"
        except BaseException:
            self.close()
            raise

    def kill(self) -> None:
        """End it as a power cut would, in the middle of whatever it does."""
        self._tell("kill")

    def start(self) -> None:
        """Start it again, where it was."""
        assert self.uri == f"http://127.0.0.1:{self._tell('start')}"

    def close(self) -> None:
        """Stop it and leave nothing."""
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _tell(self, what: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        # Two cannot be on one machine: the etcd inside has a port that is always the same.
        assert answer[:1] == ["done"], f"the Milvus server did not {what}; is there another one?"
        return answer[1]


@cache
def _one() -> Running:
    server = Running()
    atexit.register(server.close)
    return server


def running() -> Running:
    """The one server of all tests; they are skipped where it cannot be."""
    for library in ("pymilvus", "milvus"):
        if find_spec(library) is None:
            pytest.skip(f"{library} is not installed; pip install {library}")
    return _one()


def wait(process: "subprocess.Popen[bytes]", health: str) -> None:
    """Wait until a server is well; one that has ended will never be."""
    while process.poll() is None:
        try:
            with urlopen(health, timeout=10) as answer:
                if b"OK" in answer.read():
                    return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit("it ended")


def serve(folder: str, port: int) -> None:
    """Do what comes in line by line, until nobody is there any more."""
    from milvus import MilvusServer, MilvusServerConfig

    class Config(MilvusServerConfig):  # type: ignore[misc]
        def try_bind_port(self, port: int) -> socket.socket | None:
            """As it does it, but a port that was just in use is free."""
            try:
                return socket.create_server(("127.0.0.1", port))
            except OSError:
                return None

    server = MilvusServer(Config(), wait_for_started=False)
    server.set_base_dir(folder)
    server.listen_port = port
    try:
        for line in sys.stdin:
            if line == "start\n":
                server.start()
                wait(server.server_proc, f"http://127.0.0.1:{server.webservice_port}/healthz")
            else:
                server.server_proc.kill()
                server.server_proc.wait()
                server.stop()
            print("done", server.listen_port, flush=True)  # noqa: T201
    finally:
        server.stop()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))

"""A real Milvus server for the tests, from the package `milvus`, in a process that ends with the one that asked."""

import atexit
import json
import os
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

from ports import bound, free_ports

# How often the server looks for work, in milliseconds, and in seconds the last three. It is made for a cluster, and as
# it comes, all would take twice as long for nothing but waiting: a strong search 200 ms, and to be ready after a kill
# 30 s, until it believes that the one before is gone.
_HASTE = {
    "PROXY_TIMETICKINTERVAL": 20,
    "DATANODE_TIMETICK_INTERVAL": 50,
    "DATACOORD_SEGMENT_ASSIGNMENTEXPIRATION": 200,
    "INDEXCOORD_SCHEDULER_INTERVAL": 100,
    "QUERYCOORD_CHECKINTERVAL": 100,
    "QUERYCOORD_CHECKSEGMENTINTERVAL": 100,
    "QUERYCOORD_CHECKCHANNELINTERVAL": 100,
    "QUERYCOORD_CHECKINDEXINTERVAL": 200,
    "QUERYCOORD_DISTPULLINTERVAL": 50,
    "QUERYCOORD_UPDATENEXTTARGETINTERVAL": 1,
    "DATACOORD_COMPACTION_CHECK_INTERVAL": 1,
    "COMMON_SESSION_TTL": 10,
}
_SECONDS = 180  # that it may take to start, on a machine that has much else to do
_TRIES = 3


class Running:
    """A server on this machine. It can be killed and started again with what it had written.

    Tests are skipped where there can be none.
    """

    def __init__(self) -> None:
        for library in ("pymilvus", "milvus"):
            if find_spec(library) is None:
                pytest.skip(f"{library} is not installed; pip install {library}")
        self._process = subprocess.Popen(
            [sys.executable, __file__, mkdtemp(prefix="parabit-milvus-")],
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

    def _tell(self, what: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        assert answer[:1] == ["done"], f"the Milvus server did not {what}; what it said is above"
        return answer[1]


@cache
def running() -> Running:
    """The server of all tests that do not kill it."""
    server = Running()
    atexit.register(server.close)
    return server


def is_well(process: "subprocess.Popen[bytes]", health: str, uri: str) -> bool:
    """Wait until a server is well; one that has ended will never be.

    One that finds its port taken listens on another and is well there, so it is asked where it was told to listen.
    """
    import pymilvus

    end = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            with urlopen(health, timeout=10) as answer:
                if b"OK" in answer.read():
                    pymilvus.MilvusClient(uri, timeout=10).close()
                    return True
        except (OSError, pymilvus.MilvusException):
            pass
        time.sleep(0.1)
    return False


def etcd_on(folder: Path, client_port: int, peer_port: int) -> Path:
    """What the etcd inside is told: without, it takes the same ports on every machine, and there can be one alone."""
    client, peer = (f"http://127.0.0.1:{port}" for port in (client_port, peer_port))
    told = {
        "name": "default",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
    }
    path = folder / "etcd.json"
    path.write_text(json.dumps(told))
    return path


def serve(folder: Path) -> None:
    """Do what comes in line by line, until nobody is there any more."""
    from milvus import MilvusServer, MilvusServerConfig

    ports = free_ports()

    class Config(MilvusServerConfig):  # type: ignore[misc]
        def try_bind_port(self, port: int) -> socket.socket | None:
            return bound(port)

    def start() -> bool:
        """Start it; a new one that somebody has taken a port from meanwhile, with others."""
        data = folder / "data"
        is_new = not any(data.iterdir())
        for _ in range(_TRIES):
            if is_new:
                chosen = {name: next(ports) for name in server.config_keys if name.endswith("_port")}
                server.config.update(**chosen)
                server.webservice_port = next(ports)
                os.environ["ETCD_CONFIG_PATH"] = str(etcd_on(folder, chosen["etcd_port"], peer_port=next(ports)))
            server.start()
            health, uri = (f"http://127.0.0.1:{port}" for port in (server.webservice_port, server.listen_port))
            if is_well(server.server_proc, f"{health}/healthz", uri):
                return True
            sys.stderr.write((folder / "logs" / "milvus-stderr.log").read_text()[-3000:])
            server.stop()
            if is_new:  # what ended while it was being made can be of no use
                shutil.rmtree(data, ignore_errors=True)
        return False

    os.environ |= {name: str(value) for name, value in _HASTE.items()}
    server = MilvusServer(Config(), wait_for_started=False)
    server.set_base_dir(str(folder))
    try:
        for line in sys.stdin:
            if line == "start\n":
                if not start():
                    break
            else:
                server.server_proc.kill()
                server.server_proc.wait()
                server.stop()
            print("done", server.listen_port, flush=True)  # noqa: T201
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

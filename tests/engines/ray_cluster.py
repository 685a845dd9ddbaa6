"""A Ray cluster of several nodes on this machine, and what its tests ask of it."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

_STORE = 100_000_000  # bytes of a node's object store


class Nodes:
    """The cluster: a head that works on nothing, and nodes of one core each."""

    def __init__(self, count: int) -> None:
        from ray.cluster_utils import Cluster

        head = {
            "num_cpus": 0,
            "object_store_memory": _STORE,
            "include_dashboard": False,
            "_system_config": {"health_check_period_ms": 500, "health_check_failure_threshold": 3},  # not half a minute
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # Ray leaves the files of its logs open
            self._cluster = Cluster(initialize_head=True, head_node_args=head)
            self.address: str = self._cluster.address
            for _ in range(count):
                self.add()
            gc.collect()

    def add(self, **options: Any) -> Any:
        """One more node."""
        return self._cluster.add_node(num_cpus=1, object_store_memory=_STORE, **options)

    def remove(self, node: Any) -> None:
        """Take a node away."""
        self._cluster.remove_node(node)

    def refill(self, count: int) -> None:
        """As many nodes as there were."""
        while len(self._cluster.worker_nodes) < count:
            self.add()

    def kill_one_that_runs(self, name: str, within: float = 60.0) -> None:
        """Kill a node, with all that runs there, that has a worker of this name."""
        limit = time.monotonic() + within
        while time.monotonic() < limit:
            for node in list(self._cluster.worker_nodes):
                raylet = node.all_processes["raylet"][0].process.pid
                workers = [pid for pid in _children(raylet) if name in _command(pid)]
                if workers:
                    for pid in [*workers, raylet]:
                        os.kill(pid, signal.SIGKILL)
                    self._cluster.remove_node(node, allow_graceful=False)
                    return
            time.sleep(0.05)
        raise AssertionError(f"no node runs {name}")

    def stop(self) -> None:
        """The end."""
        self._cluster.shutdown()  # type: ignore[no-untyped-call]


def odd_command(go: str, *arguments: str) -> list[str]:
    """The command with a model that waits at one shard until there is a file; for `never`, that worker dies."""
    return [sys.executable, str(Path(__file__).with_name("odd_shard.py")), go, *arguments]


@contextmanager
def started(here: Path, command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A command, while it runs."""
    process = subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def run(here: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The real command, to its end."""
    command = [sys.executable, "-m", "parabit", *map(str, arguments)]
    return subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=300, check=False)


def _children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "status").read_text()
            except OSError:
                continue
            if f"PPid:\t{parent}\n" in status:
                found.append(int(entry.name))
    return found


def _command(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def write_shards(folder: Path, texts: list[str], count: int, kind: str = "jsonl") -> Path:
    """Texts in JSON lines with ids, or in Parquet files without; some of them in a folder below."""
    size = -(-len(texts) // count)
    (folder / "more").mkdir(parents=True)
    for shard in range(count):
        path = (folder / "more" if shard % 3 == 2 else folder) / f"part-{shard:02d}.{kind}"
        numbered = list(enumerate(texts))[shard * size : (shard + 1) * size]
        if kind == "parquet":
            pl.DataFrame({"text": [text for _, text in numbered]}).write_parquet(path)
        else:
            path.write_text("\n".join(json.dumps({"text": text, "id": f"n{number}"}) for number, text in numbered))
    return folder

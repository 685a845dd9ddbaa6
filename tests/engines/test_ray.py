"""Encoding on a real Ray cluster of several nodes, of which some are killed."""

import gc
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import polars as pl
import pytest

from parabit import ParagraphVectors
from topics import Topics

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.scale,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]


_STORE = 100_000_000  # bytes of a node's object store


class Nodes:
    """The cluster: a head that works on nothing, and nodes of one core each."""

    def __init__(self, count: int) -> None:
        from ray.cluster_utils import Cluster

        head = {
            "num_cpus": 0,
            "object_store_memory": _STORE,
            "include_dashboard": False,
            "_system_config": {
                "health_check_period_ms": 500,
                "health_check_failure_threshold": 3,
            },  # not half a minute
        }
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ResourceWarning
            )  # Ray leaves the files of its logs open
            self.cluster = Cluster(initialize_head=True, head_node_args=head)
            self.address: str = self.cluster.address
            for _ in range(count):
                self.add()
            gc.collect()

    def add(self, **options: Any) -> Any:
        """One more node."""
        return self.cluster.add_node(num_cpus=1, object_store_memory=_STORE, **options)

    def kill_one_that_runs(self, name: str) -> None:
        """Kill a node, with all that runs there, that has a worker of this name."""
        raylets = {
            node.all_processes["raylet"][0].process.pid: node for node in self.cluster.worker_nodes
        }
        raylet = next(pid for pid in raylets if _children(pid, name))
        for pid in [*_children(raylet, name), raylet]:
            os.kill(pid, signal.SIGKILL)
        self.cluster.remove_node(raylets[raylet], allow_graceful=False)


ODD = str(Path(__file__).with_name("odd_shard.py"))


@contextmanager
def held(here: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command while a worker of it waits at the shard part-01, which is not the first; it goes on after the block.

    A task that is run again does not wait.
    """
    os.mkfifo(here / "pipe")
    command = [sys.executable, ODD, "pipe", *arguments]
    process = subprocess.Popen(
        command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    Thread(
        target=lambda: process.wait() and (here / "pipe").exists() and (here / "pipe").read_bytes()
    ).start()
    try:
        with (here / "pipe").open(
            "wb"
        ):  # waits for a reader: the worker, or the thread if the command has failed
            (here / "pipe").unlink()
            assert process.poll() is None
            yield process
    except BaseException:
        process.kill()
        raise


def run(
    here: Path, *arguments: str | Path, program: Sequence[str] = ("-m", "parabit")
) -> subprocess.CompletedProcess[str]:
    """The real command, to its end."""
    command = [sys.executable, *program, *map(str, arguments)]
    return subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)


def _children(parent: int, name: str) -> list[int]:
    """The processes that a process started with a command that has a name in it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may have ended
            child = f"PPid:\t{parent}\n" in (entry / "status").read_text()
            if child and name.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


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
            path.write_text(
                "\n".join(
                    json.dumps({"text": text, "id": f"n{number}"}) for number, text in numbered
                )
            )
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    nodes = Nodes(2)
    yield nodes
    nodes.cluster.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture
def nodes(cluster: Nodes) -> Nodes:
    while len(cluster.cluster.worker_nodes) < 2:  # as many as there were
        cluster.add()
    return cluster


@pytest.fixture
def ray(nodes: Nodes) -> list[str]:
    return ["--engine", "ray", "--address", nodes.address]


@pytest.fixture
def here(tmp_path: Path, topics: Topics) -> Path:
    """A folder with a corpus in shards, one of them empty, and a model."""
    write_shards(tmp_path / "corpus", topics.texts, 7)
    (tmp_path / "corpus" / "empty.jsonl").touch()
    ParagraphVectors(16).fit(topics.texts).save(tmp_path / "model")
    return tmp_path


def rows(folder: Path) -> pl.DataFrame:
    """All codes of a folder, in the order of the shards."""
    return pl.concat([pl.read_parquet(path) for path in sorted(folder.rglob("*.parquet"))])


def test_codes_are_the_local_ones_and_a_second_run_does_nothing(
    here: Path, ray: list[str], topics: Topics
) -> None:
    write_shards(
        here / "without-ids", topics.texts, 4, "parquet"
    )  # then a document's row is its id
    few = {"epochs": 1, "inference_rounds": 2}
    ParagraphVectors(8, solver="network", network_params=few, device="cpu").fit(topics.texts).save(
        here / "network"
    )
    for model, corpus in (("network", "without-ids"), ("model", "corpus")):
        local = run(here, "encode", model, corpus, "-o", f"{corpus}.parquet", "--vectors")
        assert local.returncode == 0, local.stderr
        done = run(here, "encode", model, corpus, "-o", f"{corpus}-codes", "--vectors", *ray)
        assert (done.returncode, done.stderr) == (0, "")
        assert rows(here / f"{corpus}-codes").equals(pl.read_parquet(here / f"{corpus}.parquet"))
    codes = here / "corpus-codes"
    assert {path.name for path in codes.iterdir()} > {"empty.jsonl.parquet", "more"}
    written = {path: path.stat().st_mtime_ns for path in codes.rglob("*.parquet")}
    command = ["encode", "model", "corpus", "-o", f"file://{codes}", "--vectors", *ray]
    with (here / "corpus" / "part-00.jsonl").open("a") as file:
        file.write('\n{"id": "new", "text": "a telescope in orbit"}')
    (here / "corpus" / "empty.jsonl").unlink()
    result = json.loads(run(here, *command, "--json").stdout)
    assert (result["documents"], result["shards"], result["resumed"]) == (301, 7, 6)
    assert not (codes / "empty.jsonl.parquet").exists()
    written.pop(codes / "empty.jsonl.parquet")
    again = {path.name for path, time in written.items() if path.stat().st_mtime_ns != time}
    assert again == {"part-00.jsonl.parquet"}
    other = run(here, *command[:5], *ray)
    assert other.returncode == 1
    assert (
        "were made with another model or other options; use another folder, or replace them"
        in other.stderr
    )
    within = run(here, "encode", "model", "corpus", "-o", "corpus/codes", *ray)
    many = run(here, *command, "--worker-cores", "2")
    assert "no node of the cluster has 2 cores; ask for less with --worker-cores" in many.stderr
    assert (within.returncode, "corpus/codes is within the corpus; write" in within.stderr) == (
        1,
        True,
    )


def test_a_node_that_is_killed_while_encoding_is_missed_by_nobody(
    here: Path, nodes: Nodes, ray: list[str]
) -> None:
    assert run(here, "encode", "model", "corpus", "-o", "local.parquet").returncode == 0
    with held(here, "encode", "model", "corpus", "-o", "codes", *ray) as process:
        nodes.kill_one_that_runs("encode")
    _, error = process.communicate()
    assert process.returncode == 0, error
    assert rows(here / "codes").equals(pl.read_parquet(here / "local.parquet"))


def test_encoding_that_is_interrupted_goes_on_with_the_same_command(
    here: Path, ray: list[str]
) -> None:
    command = ["encode", "model", "corpus", "-o", "codes", *ray]
    with held(here, *command) as process:
        process.send_signal(signal.SIGINT)
        _, error = process.communicate()
    assert process.returncode == 128 + signal.SIGINT
    assert "interrupted; the finished shards are in " in error
    assert "codes; run the same command again to continue" in error
    done = run(here, *command, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert 0 < result["resumed"] < result["shards"] == 8
    assert len(rows(here / "codes")) == 300


def test_a_shard_that_cannot_be_read_is_named_and_the_others_are_done(
    here: Path, ray: list[str]
) -> None:
    assert run(here, "encode", "model", "corpus", "-o", "codes", *ray).returncode == 0
    assert len(rows(here / "codes")) == 300
    (here / "corpus" / "part-01.jsonl").write_bytes(b"\x1f\x8b\x08 no more of it")
    skipped = run(here, "encode", "model", "corpus", "-o", "others", "--json", *ray)
    assert json.loads(skipped.stdout)["skipped"] == 2  # with the empty one
    (here / "corpus" / "empty.jsonl").unlink()
    done = run(here, "encode", "model", "corpus", "-o", "codes", "--strict", "--overwrite", *ray)
    assert done.returncode == 1
    assert "1 of 7 shards failed" in done.stderr
    assert "part-01.jsonl: damaged or cut off" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(rows(here / "codes")) == 300 - 43  # without the codes of what the shard was before


def test_a_shard_that_kills_its_worker_is_given_up_and_the_others_are_done(
    here: Path, ray: list[str]
) -> None:
    done = run(here, "encode", "model", "corpus", "-o", "codes", *ray, program=(ODD, "none"))
    assert done.returncode == 1
    assert "1 of 8 shards failed: " in done.stderr
    assert "part-01.jsonl: its worker died each time" in done.stderr
    assert len(rows(here / "codes")) == 300 - 43


def test_a_node_with_another_version_is_named(here: Path, nodes: Nodes, ray: list[str]) -> None:
    (here / "old" / "parabit").mkdir(parents=True)
    (here / "old" / "parabit" / "__init__.py").write_text('__version__ = "0.0.9"\n')
    node = nodes.add(env_vars={"PYTHONPATH": str(here / "old")})
    try:
        done = run(here, "encode", "model", "corpus", "-o", "codes", *ray)
    finally:
        nodes.cluster.remove_node(node)
    assert done.returncode == 1
    assert "has parabit 0.0.9 and polars" in done.stderr
    assert "install the same versions on every node" in done.stderr

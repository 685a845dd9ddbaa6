"""Training on a real Ray cluster of several nodes, of which one is killed."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_cluster import Nodes, contents, run, started, write_shards

from parabit.storage import CHECKPOINT
from topics import Topics

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.scale,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]
TRAIN = ["--bits", "16", "--epochs", "40", "--seed", "1", "--checkpoint-every", "0.01", "--quiet", "--device", "cpu"]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """One node more than there are workers."""
    nodes = Nodes(3)
    yield nodes
    nodes.stop()


@pytest.fixture
def ray(nodes: Nodes) -> list[str]:
    return ["--engine", "ray", "--address", nodes.address]


@pytest.fixture
def here(tmp_path: Path, topics: Topics) -> Path:
    write_shards(tmp_path / "corpus", topics.texts, 4)
    return tmp_path


def test_more_workers_than_the_cluster_has_are_refused(here: Path, ray: list[str]) -> None:
    done = run(here, "train", "corpus", *TRAIN, "-o", "model-2", *ray, "--workers", "9")
    assert done.returncode == 1
    assert "9 workers with 1 cores each, and the cluster has room for 3" in done.stderr
    done = run(here, "train", "corpus", *TRAIN, "-o", "model-2", *ray, "--workers", "1", "--worker-cores", "2")
    assert "1 workers with 2 cores each, and the cluster has room for 0" in done.stderr
    assert not (here / "model-2.training").exists()


def wait_for_checkpoints(work: Path, process: subprocess.Popen[str], newer_than: str = "") -> str:
    """The name of the last step that both workers have kept, when there is one after another."""
    limit = time.monotonic() + 120
    while True:
        steps = [{path.name[-12:] for path in work.glob(f"{CHECKPOINT}{rank}-of-2-*")} for rank in (0, 1)]
        if common := [step for step in sorted(set.intersection(*steps)) if step > newer_than]:
            return common[-1]
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_training_is_interrupted_goes_on_loses_a_node_and_ends_the_same(
    here: Path, nodes: Nodes, ray: list[str]
) -> None:
    command = ["train", "corpus", *TRAIN, *ray, "--workers", "2"]
    unbroken = run(here, *command, "-o", "unbroken")
    assert (unbroken.returncode, unbroken.stderr) == (0, "")
    work = here / "broken.training"
    with started(here, *command, "-o", "broken") as process:
        step = wait_for_checkpoints(work, process)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "interrupted; go on with the same command and --resume" in told
    assert {path.name.partition("-")[0] for path in work.iterdir()} == {"checkpoint"}
    with started(here, *command, "-o", "broken", "--resume") as process:
        wait_for_checkpoints(work, process, step)
        nodes.kill_one_that_runs("RayTrainWorker")
        _, told = process.communicate(timeout=240)
    assert process.returncode == 0, told
    assert contents(here / "broken") == contents(here / "unbroken")
    assert not work.exists()

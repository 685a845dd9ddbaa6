"""What becomes of a training that is stopped or killed, and resumed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner, Result

from parabit.cli.app import app


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# 200 steps, with chance in all its places and a checkpoint after each.
LONG = ("--bits", "16", "--epochs", "40", "--batch-size", "64", "--samples", "64", "--inference-rounds", "3")
LONG += ("--dropout", "0.1", "--binarization", "straight-through-sigmoid", "--slope-growth", "0.02")
LONG += ("--patience", "40", "--device", "cpu", "--checkpoint-every", "0")
TRAIN = ("train", "news.jsonl", "-o", "model", *LONG)
# Threads that wait for each other on a busy machine take longer than one.
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}

# All that is heavy is imported once, and nothing of it is run: then each command is a process of its own at no cost.
SERVER = """
import json, os, sys
import parabit.cli.app, parabit.networks.inference, parabit.encoding.fitting
from parabit.cli import main
for line in sys.stdin:
    child = os.fork()
    if not child:
        sys.argv, folder = json.loads(line)
        os.chdir(folder)
        os.dup2(os.open("told", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(2, 1)
        main()
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Server:
    """Starts commands in processes of their own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, folder: Path, *arguments: str) -> int:
        """The id of the new process."""
        assert self._process.stdin is not None
        print(json.dumps([["parabit", *arguments], str(folder)]), file=self._process.stdin, flush=True)
        return int(self._answer())

    def wait(self) -> int:
        """How the process ended."""
        return int(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], env=ALONE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Server(process)
        assert process.stdin is not None
        process.stdin.close()


def steps(here: Path) -> int:
    """How many steps the last checkpoint has."""
    return max((int(path.name[-12:]) for path in here.glob("model.training/checkpoint-*")), default=0)


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.003)


class Unbroken(NamedTuple):
    """A training that nobody stopped."""

    files: dict[str, bytes]  # of the model
    start: float  # seconds until its first checkpoint


@pytest.fixture(scope="module")
def unbroken(server: Server, lines: str, tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    here = tmp_path_factory.mktemp("unbroken")
    (here / "news.jsonl").write_text(lines)
    start = time.monotonic()
    server.start(here, *TRAIN)
    until(lambda: steps(here) > 0)
    first = time.monotonic() - start
    assert server.wait() == 0, (here / "told").read_text()
    return Unbroken(contents(here / "model"), first)


def test_ctrl_c_saves_all_says_how_to_go_on_and_the_resumed_model_is_the_same(
    here: Path, server: Server, unbroken: Unbroken
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "parabit", *TRAIN], env=ALONE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: steps(here) >= 12 or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        out, told = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert told.startswith("parabit: interrupted in epoch ")
    assert told.endswith(" of 40; all is saved in model.training; go on with the same command and --resume\n")
    assert told.count("\n") == 1
    assert not (here / "model").exists()

    again = run(*TRAIN)
    assert (again.exit_code, "an unfinished training is in model.training" in again.stderr) == (1, True)
    other = run(*TRAIN, "--bits", "24", "--resume")
    assert other.exit_code == 1
    assert "is of another training: bits 16 there, 24 here; give the same corpus and parameters" in other.stderr
    assert len(list((here / "model.training").iterdir())) == 1

    server.start(here, *TRAIN, "--resume")
    assert server.wait() == 0, (here / "told").read_text()
    assert contents(here / "model") == unbroken.files
    assert {path.name for path in here.iterdir()} == {"news.jsonl", "model", "told"}


def test_a_request_to_terminate_saves_all_too(here: Path, server: Server, unbroken: Unbroken) -> None:
    process = server.start(here, *TRAIN)
    until(lambda: steps(here) >= 12)
    os.kill(process, signal.SIGTERM)
    ended = server.wait()
    assert "all is saved in model.training; go on with the same command and --resume" in (here / "told").read_text()
    server.start(here, *TRAIN, "--resume")
    assert server.wait() == 0
    assert contents(here / "model") == unbroken.files
    assert ended == 128 + signal.SIGTERM  # as every other command tells it


def test_killed_at_ten_random_moments_and_resumed_the_model_is_the_same_to_the_byte(
    here: Path, server: Server, unbroken: Unbroken
) -> None:
    rng = random.Random()
    reached = [0]
    for _ in range(10):
        resume = ("--resume",) if (here / "model.training").exists() else ()
        process = server.start(here, *TRAIN, *resume)
        # In training, while it saves a checkpoint or removes the one before; else while it reads and counts.
        goal = reached[-1] + rng.randint(1, 10)
        end = time.monotonic() + (rng.uniform(0, unbroken.start) if rng.random() < 0.3 else 60)
        while steps(here) < goal and time.monotonic() < end:
            time.sleep(rng.uniform(0, 0.01))
        os.kill(process, signal.SIGKILL)
        assert server.wait() == -signal.SIGKILL, (here / "told").read_text()
        reached.append(steps(here))
        assert not (here / "model").exists()
    assert reached == sorted(reached)  # each went on from where the one before was
    assert len(set(reached)) > 3, reached
    server.start(here, *TRAIN, "--resume")
    assert server.wait() == 0, (here / "told").read_text()
    assert contents(here / "model") == unbroken.files, reached
    assert {path.name for path in here.iterdir()} == {"news.jsonl", "model", "told"}


def test_a_kill_while_the_model_is_saved_leaves_no_half_of_it(here: Path, server: Server, unbroken: Unbroken) -> None:
    process = server.start(here, *TRAIN)
    until(lambda: any(here.glob("model.training/checkpoint-*")))  # before, a partial folder is but a try
    until(lambda: any(here.glob(".model.*.partial")) or (here / "model").exists())
    os.kill(process, signal.SIGKILL)
    server.wait()
    if not (here / "model").exists():
        server.start(here, *TRAIN, "--resume")
        assert server.wait() == 0
    assert contents(here / "model") == unbroken.files


# Ctrl-C is pressed when a module is first looked for.
PRESSED = """
import os, signal, sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

MODULE = sys.argv.pop(1)
sys.meta_path.insert(0, Press())
from parabit.cli import main
main()
"""


@pytest.mark.parametrize("module", ["polars", "scipy", "safetensors", "torch.nn"])
def test_ctrl_c_while_it_starts_ends_it_at_once_and_is_no_traceback(module: str, here: Path) -> None:
    command = [sys.executable, "-c", PRESSED, module, "train", "news.jsonl", "-o", "model", "--epochs", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode in (130, -signal.SIGINT)
    assert (result.stdout, result.stderr) in (("", ""), ("", "parabit: interrupted; nothing half-written was left\n"))
    assert [path.name for path in here.iterdir()] == ["news.jsonl"]

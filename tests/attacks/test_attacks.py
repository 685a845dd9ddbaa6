"""A few cases of each harness, always the same ones; the harnesses themselves try thousands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the harnesses fork, and watch what they forked"
)
HERE = Path(__file__).parent


def run(script: str, *arguments: str) -> None:
    """Run a harness in a process of its own, which it forks: this one has threads."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "FUZZ_SECONDS": "600"}
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_inputs_that_nobody_would_give_are_answered_or_refused() -> None:
    run("fuzz.py", "--no-known", "--cases", "6", "--seed", "1")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace stops a verb at a system call")
def test_a_verb_that_is_killed_at_a_system_call_leaves_old_or_new() -> None:
    verbs = ("--verb", "index", "--verb", "delete")
    run("kills.py", *verbs, "--kills", "0", "--calls", "1", "--seed", "3")


def test_indexes_of_strangers_do_no_harm() -> None:
    run("hostile.py", "--every", "23", "--cases", "8")


def test_threads_share_an_index_with_the_one_that_writes() -> None:
    run("sharing.py", "--no-process", "--additions", "10", "--seconds", "600")

"""A command that is stopped while it works."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

COMMAND = [sys.executable, "-m", "parabit"]
INTERRUPTED = b"parabit: interrupted; nothing half-written was left\n"


def stopped(number: signal.Signals, delay: float, folder: Path, sign: str, *arguments: str | Path) -> tuple[int, bytes]:
    """The exit code of a command that got a signal, and what it told.

    The signal comes some time after files with that sign are in the folder, which is that of temporary files, too.
    """
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    while not list(folder.glob(sign)) and process.poll() is None:  # it is at work
        time.sleep(0.01)
    time.sleep(delay)
    process.send_signal(number)
    _, told = process.communicate()
    return process.returncode, told


def expected(number: signal.Signals) -> tuple[int, bytes]:
    """How a command ends that was stopped, with nothing left."""
    return 128 + number, INTERRUPTED if number == signal.SIGINT else b""

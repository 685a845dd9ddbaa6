"""Commands that are stopped at a known point of their work."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from parabit.progress import Progress, Report

COMMAND = [sys.executable, "-m", "parabit"]
INTERRUPTED = "parabit: interrupted; nothing half-written was left\n"
PIPED = 2_000  # lines, more than a pipe holds
LINE = '{"text": "' + "alpha beta gamma delta space orbit moon " * 4 + '"}\n'

# Sends this process a signal when a function is called for the n-th time, and then runs the command.
_SIGNALLED = """
import os, sys
from pkgutil import resolve_name
number, place, calls = sys.argv[1:4]
del sys.argv[1:4]
owner, _, name = place.rpartition(".")
owner, left = resolve_name(owner), int(calls)
function = getattr(owner, name)

def called(*arguments, **options):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), int(number))
    return function(*arguments, **options)

setattr(owner, name, called)
from parabit.cli import main
main()
"""


@contextmanager
def waiting(folder: Path, *command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has read all lines of standard input and waits for more; its temporary files are in the folder."""
    if sys.platform != "linux":
        pytest.skip("only Linux says what a process waits for")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen([*command], text=True, cwd=folder, env=environment, **pipes) as process:
        assert process.stdin is not None
        process.stdin.write(LINE * PIPED)
        process.stdin.flush()
        while not _waits(process):
            time.sleep(0.01)
        yield process


def _waits(process: subprocess.Popen[str]) -> bool:
    """Whether a process has read everything and is inside a read of standard input, or has ended.

    Only there is a signal sure to wake it: Python looks for signals before and after a read, not when it begins.
    """
    assert process.stdin is not None
    if process.poll() is not None:
        return True
    unread = int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)), sys.byteorder)
    system_call = Path(f"/proc/{process.pid}/syscall").read_text().split()  # its number and arguments, or `running`
    return unread == 0 and system_call[1:2] == ["0x0"]


def signalled(
    number: signal.Signals, function: str, calls: int, folder: Path, *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    """A command that gets a signal when a function of parabit, named with its module, is called for the n-th time."""
    command = [sys.executable, "-c", _SIGNALLED, str(int(number)), function, str(calls), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def interrupting(stage: str) -> Callable[[bool], object]:
    """In place of a verb's `progress`: Ctrl-C as soon as a stage reports."""

    @contextmanager
    def progress(quiet: bool) -> Iterator[Report]:
        def report(state: Progress) -> None:
            if state.stage == stage:
                raise KeyboardInterrupt

        yield report

    return progress

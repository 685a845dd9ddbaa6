"""Commands that are stopped at a known point of their work."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from parabit.progress import Progress, Report

COMMAND = [sys.executable, "-m", "parabit"]
INTERRUPTED = "parabit: interrupted; nothing half-written was left\n"
PIPED = 1_000  # documents, more than a pipe holds

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


def some_lines(count: int) -> str:
    """A corpus of JSON lines without ids, of about 300 bytes each."""
    words = ["alpha", "beta", "gamma", "delta", "space", "orbit", "moon", "hubble"]
    texts = (
        " ".join(f"{words[(row + step) % 8]}{chr(97 + (row * step) % 26)}" for step in range(40))
        for row in range(count)
    )
    return "".join(json.dumps({"text": text}) + "\n" for text in texts)


@contextmanager
def reading(folder: Path, *arguments: str | Path, command: list[str] = COMMAND) -> Iterator[subprocess.Popen[str]]:
    """A command that has read documents of standard input and waits for more; its temporary files are there, too."""
    process = subprocess.Popen(
        [*command, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    with process:
        assert process.stdin is not None
        process.stdin.write(some_lines(PIPED))
        process.stdin.flush()
        while not _waits(process):
            time.sleep(0.01)
        yield process


def _waits(process: subprocess.Popen[str]) -> bool:
    """Whether a process has read everything and sleeps until more comes.

    Only then is a signal sure to wake it: Python looks for signals before and after a read, not when it begins.
    """
    assert process.stdin is not None
    unread = int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)), sys.byteorder)
    state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return (unread == 0 and state == "S") or process.poll() is not None


def stopped(number: signal.Signals, folder: Path, *arguments: str | Path) -> tuple[int, str]:
    """The exit code of a command that got a signal while it read standard input, and what it said."""
    with reading(folder, *arguments) as process:
        process.send_signal(number)
        code = process.wait()
        assert process.stderr is not None
        return code, process.stderr.read()


def expected(number: signal.Signals) -> tuple[int, str]:
    """How a command ends that was stopped, with nothing left."""
    return 128 + number, INTERRUPTED if number == signal.SIGINT else ""


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

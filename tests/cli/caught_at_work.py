"""Commands that are stopped at a known point of their work."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from parabit.progress import Progress, Report

INTERRUPTED = "parabit: interrupted; nothing half-written was left\n"

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


def signalled(
    number: signal.Signals,
    function: str,
    calls: int,
    folder: Path,
    *arguments: str | Path,
    stdin: str | None = None,
    under: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """A command that gets a signal when a function of parabit, named with its module, is called for the n-th time.

    Its temporary files are in the folder; `under` is a command that starts it.
    """
    command = [
        *under,
        sys.executable,
        "-c",
        _SIGNALLED,
        str(int(number)),
        function,
        str(calls),
        *map(str, arguments),
    ]
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def interrupting(stage: str) -> Callable[[bool], object]:
    """In place of a verb's `progress`: Ctrl-C as soon as a stage reports."""

    @contextmanager
    def progress(quiet: bool) -> Iterator[Report]:
        def report(state: Progress) -> None:
            if state.stage == stage:
                raise KeyboardInterrupt

        yield report

    return progress

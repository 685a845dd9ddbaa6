"""Packages read by helpers, a process on each core: to parse is nearly all of the work, and Python parses on one."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from parabit.corpus.sources import Source
from parabit.parallel import cores

Package = Sequence[Source]  # its modules
Read = Callable[[Package], list[Any]]

_ALONE = 2_000_000  # bytes that are read before a helper is called: who wants a few documents has them by then
_WORTH = 16_000_000  # bytes that are left: with less the helpers would take as long to come
_MOST = 8
# Without the current folder, in which a file may be called like a module of the standard library.
_COMMAND = ["-P", "-c", "from parabit.corpus.datasets.apart import help_out; help_out()"]


def read_packages(
    packages: Sequence[Package], read: Read, alone: int = _ALONE, worth: int = _WORTH
) -> Iterator[list[Any]]:
    """What `read` gives of each package, in their order; helpers do what `public_definitions` does.

    What a helper does not do, whatever the reason, is done here.
    """
    sizes = [sum(source.size for source in package) for package in packages]
    first, passed = 0, 0
    while first < len(packages) and (passed < alone or sum(sizes[first:]) < worth):
        yield read(packages[first])
        passed += sizes[first]
        first += 1
    shares = _shares(sizes[first:], min(cores(), _MOST))
    helpers = [_Helper([packages[first + place] for place in share]) for share in shares]
    whose = {first + place: helper for share, helper in zip(shares, helpers, strict=True) for place in share}
    try:
        for place in range(first, len(packages)):
            done = whose[place].next()
            yield read(packages[place]) if done is None else done
    finally:
        for helper in helpers:
            helper.stop()


def _shares(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Places shared out so that all have about as much to do.

    Example:
        >>> _shares([5, 1, 9, 4], 2)
        [[1, 2], [0, 3]]
    """
    shares: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        least = loads.index(min(loads))
        shares[least].append(place)
        loads[least] += sizes[place]
    return [sorted(share) for share in shares if share]


class _Helper:
    """A process that reads some packages, and a thread that hears it out."""

    def __init__(self, packages: Sequence[Package]) -> None:
        self._done: SimpleQueue[list[Any] | None] = SimpleQueue()
        self._gone = False
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                [sys.executable, *_COMMAND],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, ValueError, TypeError):  # where Python is part of another program, there is no executable
            self._gone = True
            return
        asked = [[(source.name, str(source.path)) for source in package] for package in packages]
        self._thread = threading.Thread(target=self._hear, args=(self._process, json.dumps(asked)), daemon=True)
        self._thread.start()

    def next(self) -> list[Any] | None:
        """What it found in the next of its packages; None where it is gone."""
        if not self._gone:
            found = self._done.get()
            if found is not None:
                return found
            self._gone = True
        return None

    def stop(self) -> None:
        """End it, at work or not."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._thread.join()

    def _hear(self, process: subprocess.Popen[bytes], asked: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with process.stdout:
                with process.stdin:
                    process.stdin.write(asked.encode())
                for line in process.stdout:
                    self._done.put([tuple(found) for found in json.loads(line)])
        except (OSError, ValueError):  # it was ended, or ended by itself
            pass
        finally:
            self._done.put(None)


def help_out() -> None:
    """The work of a helper: packages from standard input, what is found in them to standard output."""
    from parabit.corpus.datasets.docstrings import public_definitions

    for package in json.loads(sys.stdin.buffer.read()):
        found = public_definitions([Source(Path(path), name) for name, path in package])
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()

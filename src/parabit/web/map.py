"""Draws the map of an index in a process of its own, while the server answers."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread

from parabit.errors import ParabitError
from parabit.index import Index, Map, keep_map
from parabit.index import draw_map as draw
from parabit.progress import Progress

_NICE = 10  # people who wait for an answer come first


class Drawing:
    """A map in progress; `then` is called with it, in a thread of the drawing, when it is ready."""

    def __init__(self, folder: Path, then: Callable[[Map], None]) -> None:
        self.share, self.failure, self._then = 0.0, "", then
        self._scratch = tempfile.TemporaryDirectory(prefix="parabit-map-")
        self._drawn = Path(self._scratch.name) / "map.safetensors"
        program = "from parabit.web.map import main; main()"
        command = [sys.executable, "-P", "-c", program, str(folder.resolve()), str(self._drawn)]
        # A session of its own: Ctrl-C is for the server, which ends this one, too. Its errors join the server's.
        self._process = subprocess.Popen(
            command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        self._thread = Thread(target=self._follow, name="parabit-map", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it, drawn or not."""
        self._process.kill()
        self._thread.join(timeout=10)
        self._scratch.cleanup()

    def _follow(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as shares:
            for line in shares:
                with suppress(ValueError):
                    self.share = float(line)
        if self._process.wait() != 0:
            self.failure = "it could not be drawn; the server's log says why"
        elif (drawn := Map.load(self._drawn)) is None:
            self.failure = "it could not be read"
        else:
            self._then(drawn)


def draw_map(folder: Path, to: Path) -> None:
    """Draw the map of an index to a file, print the share that is done line by line, and keep the map if possible."""
    if hasattr(os, "nice"):  # Windows has none
        os.nice(_NICE)
    parent = os.getppid()

    def report(progress: Progress) -> None:
        if os.getppid() != parent:  # the server was killed, and nobody waits any more
            sys.exit(1)
        sys.stdout.write(f"{progress.share}\n")
        sys.stdout.flush()

    with Index.open(folder) as index:
        drawn = draw(index, report)
        drawn.save(to)
        try:
            keep_map(index, drawn)
        except (OSError, ParabitError) as problem:  # a folder for reading only; it is drawn again next time
            sys.stderr.write(f"the map is not kept: {problem}\n")


def main() -> None:
    """Draw the map of the index named first to the file named second."""
    try:
        draw_map(Path(sys.argv[1]), Path(sys.argv[2]))
    except ParabitError as error:
        sys.exit(str(error))

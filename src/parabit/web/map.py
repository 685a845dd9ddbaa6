"""Draws the map of an index in a process of its own, while the server answers."""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Thread

from parabit.errors import ParabitError
from parabit.explore import Map, keep_map
from parabit.explore import draw_map as draw
from parabit.index import Index
from parabit.progress import Progress

_NICE = 10  # people who wait for an answer come first


class Drawing:
    """A map in progress: the share that is done, and then the map or why there is none."""

    def __init__(self, folder: Path) -> None:
        self.share, self.failure = 0.0, ""
        self.map: Map | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="parabit-map-")
        self._drawn = Path(self._scratch.name) / "map.safetensors"
        program = "import sys; from parabit.web.map import draw_map; draw_map(*sys.argv[1:])"
        command = [sys.executable, "-P", "-c", program, str(folder), str(self._drawn)]
        # A session of its own: Ctrl-C is for the server, which ends this one, too. Its errors join the server's.
        self._process = subprocess.Popen(
            command,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
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
        self._process.wait()
        self.map = Map.load(self._drawn)
        if self.map is None:
            self.failure = "it could not be drawn; the server's log says why"


def draw_map(folder: str, to: str) -> None:
    """Draw the map of an index to a file, print the share that is done line by line, and keep the map if possible."""
    if hasattr(os, "nice"):  # Windows has none
        os.nice(_NICE)
    parent = os.getppid()

    def report(progress: Progress) -> None:
        if os.getppid() != parent:  # the server was killed, and nobody waits any more
            sys.exit(1)
        sys.stdout.write(f"{progress.share}\n")
        sys.stdout.flush()

    try:
        with Index.open(folder) as index:
            drawn = draw(index, report)
            drawn.save(Path(to))
            try:
                keep_map(index, drawn)
            except (
                OSError,
                ParabitError,
            ) as problem:  # a folder for reading only; it is drawn again next time
                sys.stderr.write(f"the map is not kept: {problem}\n")
    except ParabitError as problem:
        sys.exit(str(problem))

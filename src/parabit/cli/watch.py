"""Work that is done again whenever a file changes."""

import time
from collections.abc import Callable
from pathlib import Path

from parabit.cli.output import complain, escape, say
from parabit.errors import ParabitError

_ROUND = 500  # milliseconds without a change, after which it is looked whether to stop
_PAUSE = 1.0  # seconds until it is tried again, if a folder is missing or another process writes the index


def follow(roots: list[str], index: Path, once: Callable[[], object], quiet: bool) -> None:
    """Sync whenever a file changes, until Ctrl-C."""
    from watchfiles import watch

    inside, last = index.resolve(), ""
    if not quiet:
        say(f"watching {escape(', '.join(roots))}; Ctrl-C stops it")

    def is_outside(_: object, path: str) -> bool:
        return not Path(path).is_relative_to(inside)

    while True:
        try:
            changes = watch(
                *roots, watch_filter=is_outside, rust_timeout=_ROUND, yield_on_timeout=True
            )
            for number, found in enumerate(changes):
                # Also once at the beginning: something may have changed just before the files were watched.
                if number == 0 or found:
                    once()
                    last = ""
        except (ParabitError, FileNotFoundError) as problem:  # watchfiles says "No path was found."
            said = (
                str(problem)
                if isinstance(problem, ParabitError)
                else f"waiting for {', '.join(roots)}"
            )
            if said != last:
                complain(said)
            last = said
            time.sleep(_PAUSE)

"""How long work tells what it has done: one small call, free of any display."""

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """Where a stage of long work stands.

    Example:
        >>> Progress("reading", done=5000, unit="documents", share=0.25)
        Progress(stage='reading', done=5000, unit='documents', share=0.25, note='')
    """

    stage: str
    done: int
    unit: str
    share: float | None  # of the stage's work, 0 to 1; None where nobody can know
    note: str = ""  # how well it goes, in a few words


Report = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """The report of those who want none."""

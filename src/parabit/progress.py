"""Progress of long work, reported to a callback and independent of any display."""

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """How far a stage of long work has come."""

    stage: str
    done: int
    unit: str
    share: float | None  # of the stage's work, 0 to 1; None if unknown
    note: str = ""  # such as the loss, in a few words


Report = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Report nothing."""

"""The command line: each verb is a function, and `app.py` says in which file."""

import os
import signal
from types import FrameType
from typing import NoReturn

__all__ = ["main"]


def leave(number: int, frame: FrameType | None) -> NoReturn:
    """End the process at Ctrl-C, at once."""
    os._exit(128 + number)


def main() -> None:
    # The imports take a while, and so does putting the verbs together. Ctrl-C then simply ends the process: there is
    # nothing to clear away yet, and an exception in the middle would come out as a traceback. Not by SIG_DFL, which
    # polars replaces with a handler that forgets the signal. A verb listens again when it begins.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    from parabit.cli.app import app

    app(prog_name="parabit")

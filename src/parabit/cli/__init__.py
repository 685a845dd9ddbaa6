"""The command line: one file a verb."""

import os
import signal

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    # The imports take a while. Ctrl-C then simply ends the process: there is nothing to clear away yet, and
    # an exception in the middle of an import would come out as a traceback. Not by SIG_DFL, which polars replaces with
    # a handler that forgets the signal.
    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listening:
        signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    from parabit.cli.app import app

    if listening:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    app()

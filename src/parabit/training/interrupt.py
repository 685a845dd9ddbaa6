"""Ctrl-C heard at a moment when nothing is half done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Whether somebody asked to stop."""

    asked = False


@contextmanager
def listening(active: bool = True) -> Iterator[Stop]:
    """Hear Ctrl-C and a request to terminate as a wish; the second one ends at once.

    Only the main thread can listen; elsewhere nothing changes.
    """
    stop = Stop()
    if not active or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    heard = [signal.SIGINT, signal.SIGTERM]
    before = {number: signal.getsignal(number) for number in heard}

    def hear(number: int, frame: FrameType | None) -> None:
        stop.asked = True
        signal.signal(number, before[signal.Signals(number)])

    for number in heard:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, hear)
    try:
        yield stop
    finally:
        for number in heard:
            signal.signal(number, before[number])

"""Ctrl-C heard at a moment when nothing is half done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_HEARD = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


class Stop:
    """Whether somebody asked to stop."""

    asked: int | None = None  # the number of the signal


@contextmanager
def listening(active: bool = True) -> Iterator[Stop]:
    """Hear Ctrl-C, a request to terminate and a closed terminal as a wish; the second one ends at once.

    Only the main thread can listen; elsewhere nothing changes.
    """
    stop = Stop()
    if not active or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    # Not where a signal is ignored, as nohup has it.
    before = {number: signal.getsignal(number) for number in _HEARD if signal.getsignal(number) is not signal.SIG_IGN}

    def hear(number: int, frame: FrameType | None) -> None:
        stop.asked = number
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, hear)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

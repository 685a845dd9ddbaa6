"""Work on all cores, in order and in bounded memory."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import local
from typing import TypeVar

from parabit.errors import ParabitError

T = TypeVar("T")
R = TypeVar("R")

_limits = local()
_polars_processes: set[int] = set()  # that have used polars; a forked child inherits its parent's


def note_polars() -> None:
    """Raise if polars would wait for ever; to call before it is used.

    polars has threads, and a process that is forked from one that has used it has none of them:
    each of its calls would wait for their answer.
    """
    process = os.getpid()
    if _polars_processes - {process}:
        raise ParabitError(
            "this process was forked from one that has worked with texts, "
            "whose threads it does not have",
            hint="start it with spawn: multiprocessing.set_start_method('spawn')",
        )
    _polars_processes.add(process)


def limit_cores(most: int) -> None:
    """Use at most this many cores for what this thread does from now on."""
    _limits.cores = most


def cores() -> int:
    """How many cores this thread may use."""
    if hasattr(_limits, "cores"):
        return int(_limits.cores)
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ordered_map(
    function: Callable[[T], R], items: Iterable[T], threads: int | None = None
) -> Iterator[R]:
    """Apply a function to items on several threads; results come in the items' order.

    Threads help if the work is done in numpy or polars, which run in parallel. At most two items per thread are in
    progress, so memory does not grow with the number of items. One core needs no other thread.
    """
    if threads is None and cores() == 1:
        yield from map(function, items)
        return
    threads = threads or cores()
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="parabit") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # after an error, Ctrl-C or a caller that stops early, nothing new should start
            pool.shutdown(cancel_futures=True)

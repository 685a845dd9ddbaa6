"""Processes that work side by side, each on one core: several keep one GPU busy."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from math import inf
from multiprocessing import get_context
from typing import Any


def _one_core() -> None:
    import torch

    from parabit.parallel import limit_cores

    torch.set_num_threads(1)
    limit_cores(1)


def each(
    function: Callable[[Any], Any], tasks: Iterable[Any], workers: int, deadline: float = inf
) -> Iterator[tuple[Any, Any]]:
    """Each task with what the function makes of it or the problem it has; none is begun after the deadline."""
    waiting, running = iter(tasks), dict[Future[Any], Any]()
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_one_core) as pool:
        while True:
            while (
                len(running) < workers
                and time.time() < deadline
                and (task := next(waiting, None)) is not None
            ):
                running[pool.submit(function, task)] = task
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(done), done.exception() or done.result()

"""Threads that answer requests, those of the same kind together.

An index is searched faster by a batch than by single queries, so a thread that is free takes everything that waits.
There is one per core, and each does all of its work alone: threads that share a search wait for each other.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from parabit.parallel import cores, limit_cores

_AT_ONCE = 64  # requests that are answered together

Work = Callable[
    [Sequence[Any]], Sequence[Any]
]  # an answer for each request; an exception is an answer, too


class _Job(NamedTuple):
    kind: Hashable  # requests of one kind go together
    work: Work
    request: Any
    answer: asyncio.Future[Any]


class Worker:
    """Answers requests of the running event loop in threads of its own."""

    def __init__(
        self,
        most_waiting: int,
        is_due: Callable[[], bool],
        refresh: Callable[[], None],
        threads: int | None = None,
    ) -> None:
        """Before each batch `is_due` is asked; then `refresh` is called while no thread is at work."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()  # None wakes a thread
        self._most, self._is_due, self._refresh, self._closing = (
            most_waiting,
            is_due,
            refresh,
            False,
        )
        self._loop = asyncio.get_running_loop()
        self._entrance, self._left, self._at_work = threading.Lock(), threading.Condition(), 0
        self._threads = [
            threading.Thread(target=self._run, daemon=True) for _ in range(threads or cores())
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        return self._jobs.qsize()

    async def ask(self, kind: Hashable, work: Work, request: Any) -> Any:
        """The answer to a request, found together with others of its kind."""
        if self.waiting >= self._most:
            raise asyncio.QueueFull
        job = _Job(kind, work, request, self._loop.create_future())
        self._jobs.put(job)
        return await job.answer

    def wake(self) -> None:
        """Have `refresh` called soon if it is due, without waiting for it."""
        if not self.waiting:
            self._jobs.put(None)

    def close(self) -> None:
        self._closing = True
        self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout=10)

    def _run(self) -> None:
        limit_cores(1)
        while not (self._closing and self._jobs.empty()):
            jobs = [self._jobs.get()]
            with suppress(queue.Empty):
                while len(jobs) < _AT_ONCE:
                    jobs.append(self._jobs.get_nowait())
            groups: dict[Hashable, list[_Job]] = {}
            for job in jobs:
                if job is not None and not job.answer.done():  # the client may be gone
                    groups.setdefault(job.kind, []).append(job)
            self._enter()
            for group in groups.values():
                try:
                    answers = group[0].work([job.request for job in group])
                except BaseException as problem:  # a client waits for any answer
                    answers = [problem] * len(group)
                with suppress(RuntimeError):  # the loop has ended meanwhile
                    self._loop.call_soon_threadsafe(_deliver, group, answers)
            with self._left:
                self._at_work -= 1
                self._left.notify_all()
        self._jobs.put(None)  # for the next thread

    def _enter(self) -> None:
        """Begin to work, perhaps after a refresh: meanwhile others wait at the entrance."""
        with self._entrance:
            if self._is_due():
                with self._left:
                    self._left.wait_for(lambda: not self._at_work)
                self._refresh()
            with self._left:
                self._at_work += 1


def _deliver(jobs: Sequence[_Job], answers: Sequence[Any]) -> None:
    for job, answer in zip(jobs, answers, strict=True):
        if not job.answer.done():
            give = (
                job.answer.set_exception
                if isinstance(answer, BaseException)
                else job.answer.set_result
            )
            give(answer)

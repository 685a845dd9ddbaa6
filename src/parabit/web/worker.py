"""One thread that does all searching, and answers requests of the same kind together.

An index is searched faster by a batch than by single queries, so everything that waits when the thread is free is taken
at once. One thread, because searching uses all cores by itself.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

_AT_ONCE = 64  # requests that are answered together

Work = Callable[[Sequence[Any]], Sequence[Any]]  # an answer for each request; an exception is an answer, too


class _Job(NamedTuple):
    kind: Hashable  # requests of one kind go together
    work: Work
    request: Any
    answer: asyncio.Future[Any]


class Worker:
    """Answers requests of the running event loop in a thread of its own."""

    def __init__(self, most_waiting: int, before: Callable[[], None] = lambda: None) -> None:
        """`before` is called before each batch, in the same thread."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()  # None wakes the thread
        self._most, self._before, self._closing = most_waiting, before, False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="parabit-index", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._jobs.qsize()

    async def ask(self, kind: Hashable, work: Work, request: Any) -> Any:
        """The answer to a request, found together with others of its kind."""
        if self.waiting >= self._most:
            raise asyncio.QueueFull
        job = _Job(kind, work, request, self._loop.create_future())
        self._jobs.put(job)
        return await job.answer

    def wake(self) -> None:
        """Have `before` called soon, without waiting for it."""
        if not self.waiting:
            self._jobs.put(None)

    def close(self) -> None:
        """Answer what waits, and end."""
        self._closing = True
        self._jobs.put(None)
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while not (self._closing and self._jobs.empty()):
            jobs = [self._jobs.get()]
            while len(jobs) < _AT_ONCE and not self._jobs.empty():
                jobs.append(self._jobs.get())
            self._before()
            groups: dict[Hashable, list[_Job]] = {}
            for job in jobs:
                if job is not None and not job.answer.done():  # the client may be gone
                    groups.setdefault(job.kind, []).append(job)
            for group in groups.values():
                self._answer(group)

    def _answer(self, jobs: Sequence[_Job]) -> None:
        try:
            answers = jobs[0].work([job.request for job in jobs])
        except BaseException as problem:  # a client waits for any answer
            answers = [problem] * len(jobs)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(_deliver, jobs, answers)


def _deliver(jobs: Sequence[_Job], answers: Sequence[Any]) -> None:
    for job, answer in zip(jobs, answers, strict=True):
        if job.answer.done():
            continue
        if isinstance(answer, BaseException):
            job.answer.set_exception(answer)
        else:
            job.answer.set_result(answer)

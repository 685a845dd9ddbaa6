"""One thread that searches, for requests of the same kind together, and one that writes the answers meanwhile.

An index is searched faster by a batch than by single queries, so everything that waits when the thread is free is taken
at once. One thread searches, because a search uses all cores by itself; answers are written in Python, which uses one.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

_AT_ONCE = 64  # requests that are answered together

# An answer for each request, which may be written when it is asked for; an exception is an answer, too.
Work = Callable[[Sequence[Any]], Iterable[Any]]


class _Job(NamedTuple):
    kind: Hashable  # requests of one kind go together
    work: Work
    request: Any
    answer: asyncio.Future[Any]


class Worker:
    """Answers requests of the running event loop in threads of its own."""

    def __init__(self, most_waiting: int, before: Callable[[], None] = lambda: None) -> None:
        """`before` is called before each batch, in the thread that searches."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()  # None wakes the thread
        self._most, self._before, self._closing = most_waiting, before, False
        self._loop = asyncio.get_running_loop()
        self._found: queue.Queue[tuple[list[_Job], Iterable[Any]] | None] = queue.Queue(maxsize=1)
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._search, self._write)]
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
        """Have `before` called soon, without waiting for it."""
        if not self.waiting:
            self._jobs.put(None)

    def close(self) -> None:
        self._closing = True
        self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout=10)

    def _search(self) -> None:
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
                try:
                    self._found.put((group, group[0].work([job.request for job in group])))
                except BaseException as problem:  # a client waits for any answer
                    self._found.put((group, [problem] * len(group)))
        self._found.put(None)

    def _write(self) -> None:
        while (found := self._found.get()) is not None:
            jobs, answers = found
            try:
                answers = list(answers)
            except BaseException as problem:
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

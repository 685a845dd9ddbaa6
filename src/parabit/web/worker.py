"""Threads that answer requests, those of the same kind together.

An index is searched faster by a batch than by single queries, so a thread that is free takes everything that waits.
There is one per core, and each does all of its work alone: threads that share a search wait for each other.

Whatever happens, a client gets an answer: an error is the answer of those whose request it met, and
a thread that ends all the same is replaced when the next request comes. Work ends when nobody waits
for it any more: after the time that a request may take, a deadline ends it.
"""

import asyncio
import math
import queue
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from logging import getLogger
from typing import Any, NamedTuple

from parabit.budget import deadline
from parabit.errors import ParabitError
from parabit.parallel import cores, limit_cores

_AT_ONCE = 64  # requests that are answered together
# The size of requests that are answered together, in characters of their queries: 64 sentences are
# far below, and two of the longest queries are enough, as requests that come later wait for the
# whole batch.
_SIZE_AT_ONCE = 100_000
_log = getLogger(__name__)

# Gives an answer for each request; an exception is an answer, too.
Work = Callable[[Sequence[Any]], Sequence[Any]]


class _Job(NamedTuple):
    kind: Hashable  # requests of one kind go together
    work: Work
    request: Any
    size: int
    end: float  # when its time is over, on the clock of time.monotonic
    answer: asyncio.Future[Any]


class Worker:
    """Answers requests of the running event loop in threads of its own."""

    def __init__(
        self,
        most_waiting: int,
        is_due: Callable[[], bool],
        refresh: Callable[[], None],
        threads: int | None = None,
        seconds: float = math.inf,
    ) -> None:
        """Start the threads.

        Parameters:
            most_waiting: Requests that may wait; `ask` refuses more.
            is_due: Asked before each batch, whether `refresh` is to be called.
            refresh: Called while no thread is at work.
            threads: One per core by default.
            seconds: After which the work for a request ends.
        """
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()  # None wakes a thread
        self._most_waiting = most_waiting
        self._is_due = is_due
        self._refresh = refresh
        self._seconds = seconds
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self._entrance = threading.Lock()
        self._left = threading.Condition()
        self._at_work = 0
        self._threads = [self._new_thread() for _ in range(threads or cores())]

    @property
    def waiting(self) -> int:
        return self._jobs.qsize()

    @property
    def is_alive(self) -> bool:
        """Whether there is a thread that can answer."""
        return any(thread.is_alive() for thread in self._threads)

    async def ask(self, kind: Hashable, work: Work, request: Any, size: int = 0) -> Any:
        """The answer to a request, found together with others of its kind.

        Parameters:
            kind: Of the request; `work` gets requests of one kind.
            work: Makes the answers, in a thread.
            request: Given to `work`.
            size: The length of its text, as few long ones are answered together.
        """
        if self.waiting >= self._most_waiting:
            raise asyncio.QueueFull
        self._replace_dead_threads()
        end = time.monotonic() + self._seconds
        job = _Job(kind, work, request, size, end, self._loop.create_future())
        self._jobs.put(job)
        return await job.answer

    def wake(self) -> None:
        """Have `refresh` called soon if it is due, without waiting for it."""
        self._replace_dead_threads()
        if not self.waiting:
            self._jobs.put(None)

    def close(self) -> None:
        self._closing = True
        self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout=10)

    def _new_thread(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name="parabit-answers", daemon=True)
        thread.start()
        return thread

    def _replace_dead_threads(self) -> None:
        """Start threads for those that ended although the server is not closing, and log it."""
        for number, thread in enumerate(self._threads):
            if thread.is_alive() or self._closing:
                continue
            _log.error("a thread that answers requests has ended and is replaced")
            with suppress(RuntimeError):  # no more threads can be started; there may be others
                self._threads[number] = self._new_thread()

    def _run(self) -> None:
        limit_cores(1)
        while not (self._closing and self._jobs.empty()):
            try:
                self._answer(self._take())
            except BaseException:
                _log.exception("a thread that answers requests goes on after an error")
        self._jobs.put(None)  # for the next thread

    def _take(self) -> list[_Job]:
        """Waiting requests, as many as are answered together; none if the thread was only woken."""
        jobs = [self._jobs.get()]
        size = 0 if jobs[0] is None else jobs[0].size
        with suppress(queue.Empty):
            while len(jobs) < _AT_ONCE and size < _SIZE_AT_ONCE:
                job = self._jobs.get_nowait()
                jobs.append(job)
                size += 0 if job is None else job.size
        return [job for job in jobs if job is not None]

    def _answer(self, jobs: Sequence[_Job]) -> None:
        groups: dict[Hashable, list[_Job]] = {}
        for job in jobs:
            groups.setdefault(job.kind, []).append(job)
        try:
            self._enter()
        except BaseException as problem:  # a client waits for any answer
            self._deliver(jobs, [problem] * len(jobs))
            raise
        try:
            for group in groups.values():
                waiting = [job for job in group if not job.answer.done()]  # clients may be gone
                if waiting:
                    self._deliver(waiting, _answers(waiting))
        finally:
            with self._left:
                self._at_work -= 1
                self._left.notify_all()

    def _enter(self) -> None:
        """Begin to work, perhaps after a refresh: meanwhile others wait at the entrance."""
        with self._entrance:
            if self._is_due():
                with self._left:
                    self._left.wait_for(lambda: not self._at_work)
                self._refresh()
            with self._left:
                self._at_work += 1

    def _deliver(self, jobs: Sequence[_Job], answers: Sequence[Any]) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(_set_answers, jobs, answers)


def _answers(jobs: Sequence[_Job]) -> Sequence[Any]:
    """The answers to requests of one kind; the time of the last of them ends the work for all."""
    end = max(job.end for job in jobs)
    try:
        with deadline(end - time.monotonic()):
            return jobs[0].work([job.request for job in jobs])
    except (ParabitError, MemoryError) as problem:
        return [problem] * len(jobs)
    except BaseException as problem:  # a client waits for any answer
        if len(jobs) == 1:
            return [problem]
        # Only the request that cannot be answered is to fail.
        return [answer for job in jobs for answer in _answers([job])]


def _set_answers(jobs: Sequence[_Job], answers: Sequence[Any]) -> None:
    for job, answer in zip(jobs, answers, strict=True):
        if job.answer.done():
            continue
        if isinstance(answer, Exception):
            job.answer.set_exception(answer)
        elif isinstance(answer, BaseException):  # which would end the loop, such as SystemExit
            job.answer.set_exception(RuntimeError(f"{type(answer).__name__}: {answer}"))
        else:
            job.answer.set_result(answer)

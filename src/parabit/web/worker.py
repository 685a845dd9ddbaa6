"""One thread that does all the work on the index, and does what is alike together.

An index is searched faster by a batch than by single queries, so whatever waits when the thread is free is taken at
once. One thread, because searching uses all cores by itself.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from logging import getLogger
from typing import Any

_AT_ONCE = 64  # questions that are answered together
_log = getLogger(__name__)

Work = Callable[[Sequence[Any]], Sequence[Any]]  # an answer for each question; an exception is an answer, too


class BusyError(Exception):
    """Too much is waiting."""


@dataclass(frozen=True)
class _Job:
    kind: Hashable  # questions of one kind go together
    work: Work
    question: Any
    answer: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class Worker:
    """Answers questions from an event loop in a thread of its own.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> async def ask() -> int:
        ...     worker = Worker(most_waiting=10)
        ...     try:
        ...         return await worker.ask("double", lambda numbers: [2 * number for number in numbers], 21)
        ...     finally:
        ...         worker.close()
        >>> with ThreadPoolExecutor() as pool:  # in a thread, which surely has no event loop yet
        ...     pool.submit(asyncio.run, ask()).result()
        42
    """

    def __init__(self, most_waiting: int, before: Callable[[], None] | None = None) -> None:
        """`before` is called before each batch, in the same thread."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._told: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._most, self._before = most_waiting, before
        self._thread = threading.Thread(target=self._run, name="parabit-index", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many questions wait."""
        return self._jobs.qsize()

    async def ask(self, kind: Hashable, work: Work, question: Any) -> Any:
        """The answer to a question, found together with others of its kind."""
        if self.waiting >= self._most:
            raise BusyError
        loop = asyncio.get_running_loop()
        job = _Job(kind, work, question, loop.create_future(), loop)
        self._jobs.put(job)
        return await job.answer

    def tell(self, work: Callable[[], None]) -> None:
        """Have something done in the thread, before the next batch."""
        self._told.put(work)

    def close(self) -> None:
        """Answer what waits, and end."""
        self._jobs.put(None)
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while (first := self._jobs.get()) is not None:
            jobs: list[_Job | None] = [first]
            while len(jobs) < _AT_ONCE and jobs[-1] is not None:
                try:
                    jobs.append(self._jobs.get_nowait())
                except queue.Empty:
                    break
            if self._before is not None:
                self._before()
            while not self._told.empty():
                self._told.get()()
            alike: dict[Hashable, list[_Job]] = {}
            for job in jobs:
                if job is not None and not job.answer.done():  # whoever asked may have gone
                    alike.setdefault(job.kind, []).append(job)
            for group in alike.values():
                self._answer(group)
            if jobs[-1] is None:
                return

    def _answer(self, jobs: Sequence[_Job]) -> None:
        try:
            answers = jobs[0].work([job.question for job in jobs])
        except BaseException as problem:  # whatever it is, somebody waits for it
            answers = [problem] * len(jobs)
        for loop in {job.loop for job in jobs}:
            mine = [(job, answer) for job, answer in zip(jobs, answers, strict=True) if job.loop is loop]
            try:
                loop.call_soon_threadsafe(_give, mine)
            except RuntimeError:  # the loop has ended meanwhile
                _log.debug("nobody waits for %d answers", len(mine))


def _give(answers: Sequence[tuple[_Job, Any]]) -> None:
    for job, answer in answers:
        if job.answer.done():
            continue
        if isinstance(answer, BaseException):
            job.answer.set_exception(answer)
        else:
            job.answer.set_result(answer)

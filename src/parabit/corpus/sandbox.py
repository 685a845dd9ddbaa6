"""Parsers in processes of their own, which end without harm if a file makes them hang, crash or take all memory.

A parser process reads requests from its standard input and writes answers to its standard output. It is started when
the first file needs it, used for many files, and started again after a file has ended it. It limits its own processor
time and memory, ignores Ctrl-C, and ends when its input does: with this process, however that ends. Each thread that
reads files has a process of its own; so has a process that was forked.

Answers to small files come several at a time, as waking this process for each of them took longer than the parsing of
some. What a process had not sent when it ended is lost, so it also writes the number of the file that it works on into
memory that both processes have: that file is the one that ended it, and those before it are parsed again.
"""

import atexit
import io
import os
import select
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any, cast

from parabit.corpus.limits import MB, ReadLimits, over_limit
from parabit.corpus.messages import NUMBER_LENGTH, Message, receive, send
from parabit.errors import UnreadableError

_WORKER = "from parabit.corpus.sandbox_worker import main; main()"
_STOPPED_BY_TIME = frozenset(
    -getattr(signal, name) for name in ("SIGPROF", "SIGALRM") if hasattr(signal, name)
)
# A process does not give back all the memory that a large file took.
_LARGE = 20 * MB
_BUFFER = 1 << 16  # what a pipe holds
# Linux lets a pipe hold this much: about 100 pages, which are parsed while this process works on those before them.
_LARGE_BUFFER = 1 << 20
_TOGETHER = 64  # files that go to a parser together: more make it no faster


@dataclass(slots=True, eq=False)
class Request:
    """A file to parse.

    Args:
        name: How messages name the file.
        parser: html, markdown, pdf or parquet.
        limits: What the file may cost.
        size: Bytes of the file.
        content: The file, or nothing if `options` has its path.
        options: What the parser has to know, as JSON can hold it.
        number: What the parser writes down while it works on the file, once it was sent.
    """

    name: str
    parser: str
    limits: ReadLimits
    size: int
    content: bytes = b""
    options: dict[str, Any] = field(default_factory=dict)
    number: int = 0

    @property
    def header(self) -> dict[str, Any]:
        return {
            "parser": self.parser,
            "seconds": self.limits.parsing_seconds(self.size),
            "options": self.options,
            "length": len(self.content),
            "number": self.number,
        }


class _Interruptible(io.RawIOBase):
    """A pipe whose reading is left at Ctrl-C, whatever handler of signals a library has put there."""

    def __init__(self, pipe: io.RawIOBase) -> None:
        self._pipe = pipe
        self._poll = select.poll()
        self._poll.register(pipe.fileno(), select.POLLIN)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._poll.poll()
        return self._pipe.readinto(buffer)


def _enlarge(pipe: io.RawIOBase) -> None:
    """Let a pipe hold more, if the system can do that."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # a user may have many large pipes already
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _LARGE_BUFFER)


class _ParserEndedError(Exception):
    """A parser process ended while it worked on a file."""

    def __init__(self, request: Request, error: UnreadableError, may_be_its_past: bool) -> None:
        super().__init__(error)
        self.request = request
        self.error = error
        # Earlier files may have left the process in a bad state; a new one may read this file.
        self.may_be_its_past = may_be_its_past


class _ParserProcess:
    """A running parser process."""

    def __init__(self, memory_mb: int) -> None:
        self.memory_mb = memory_mb
        self.parent = os.getpid()
        self.is_new = True
        # It finds what this process finds, and nothing in the current folder, which may be full of a stranger's files.
        package_parent = str(Path(__file__).resolve().parents[2])
        paths = [path for path in sys.path if path] + [package_parent]
        arguments = [str(memory_mb)]
        # What the process works on. Systems other than Linux have no such memory; there each answer is sent at once.
        self._progress = os.memfd_create("parabit-parser") if sys.platform == "linux" else None
        if self._progress is not None:
            arguments.append(str(self._progress))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _WORKER, *arguments],
            pass_fds=() if self._progress is None else (self._progress,),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # Ctrl-C is for this process, which ends the other one
        )
        requests = cast(io.RawIOBase, self._process.stdin)
        answers = cast(io.RawIOBase, self._process.stdout)
        _enlarge(answers)
        if hasattr(select, "poll"):
            answers = _Interruptible(answers)
        self._requests = io.BufferedWriter(requests, _BUFFER)
        self._answers = io.BufferedReader(answers, _BUFFER)

    def send(self, requests: Sequence[Request]) -> None:
        """Give it files to parse. It takes them while it parses others, so that neither waits for the other."""
        self.is_new = False
        for request in requests:
            request.number = next(_numbers)
        header = {
            "limits": asdict(requests[0].limits),  # a corpus has the same for all
            "files": [request.header for request in requests],
        }
        content = b"".join([request.content for request in requests])
        with suppress(BrokenPipeError):  # then there is no answer either
            send(self._requests, Message(header, content))
            self._requests.flush()

    def receive(self, requests: Sequence[Request]) -> Message:
        """The next answer to the first of the files that it was given and has not answered."""
        request = requests[0]
        timer = self._clock(request)
        answer = receive(self._answers)
        if timer is not None:
            timer.cancel()
        if answer is None:
            raise self._ended(requests)
        if "error" in answer.header:
            error = UnreadableError(request.name, answer.header["error"], answer.header["hint"])
            if answer.header["is_memory"]:
                raise _ParserEndedError(request, error, may_be_its_past=True)
            raise error
        return answer

    def _clock(self, request: Request) -> threading.Timer | None:
        """What ends the process after a while, where it cannot do that itself."""
        if hasattr(signal, "setitimer"):
            return None
        seconds = request.limits.parsing_seconds(request.size)
        timer = threading.Timer(seconds, self._process.kill)
        timer.daemon = True
        timer.start()
        return timer

    def _ended(self, requests: Sequence[Request]) -> _ParserEndedError:
        """Why the process is not there any more."""
        status = self._process.wait()
        request = self._in_progress(requests)
        if status in _STOPPED_BY_TIME or self._clock_stopped(status):
            seconds = request.limits.parsing_seconds(request.size)
            what = f"took more than {seconds:g} s"
            limit = "seconds" if seconds < request.limits.most_seconds else "most_seconds"
            error = over_limit(request.name, what, request.limits, limit)
            return _ParserEndedError(request, error, may_be_its_past=False)
        if status == -getattr(signal, "SIGKILL", 9):
            reason = "cannot be read: its parser was killed"
            hint = "the system does that if memory is short"
        else:
            ending = f"exit status {status}"
            if status < 0:
                ending = signal.Signals(-status).name
            reason = f"not readable: its parser crashed ({ending})"
            hint = f"it is damaged, or needs more memory ({request.limits.said('memory_mb')})"
        error = UnreadableError(request.name, reason, hint)
        return _ParserEndedError(request, error, may_be_its_past=True)

    def _in_progress(self, requests: Sequence[Request]) -> Request:
        """The file that the process worked on when it ended."""
        if self._progress is not None:
            number = int.from_bytes(os.pread(self._progress, NUMBER_LENGTH, 0), "little")
            for request in requests:
                if request.number == number:
                    return request
        return requests[0]

    @staticmethod
    def _clock_stopped(status: int) -> bool:
        return not hasattr(signal, "setitimer") and status == 1  # as Windows ends a process

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        if self.parent == os.getpid():
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        if self._progress is not None:
            os.close(self._progress)
            self._progress = None


_numbers = count(1)
_idle: list[_ParserProcess] = []
_lock = threading.Lock()


def parse_each(requests: Iterator[Request]) -> Iterator[Message | UnreadableError]:
    """For each of some files that are one page, what its parser answers, or why it cannot be read.

    Many of them go to the parser together, and the next ones before it has answered: its process works on them while
    this one works with the answers.

    Args:
        requests: The files, whose contents are in memory if they are not read by their paths: they are taken from
            here up to 128 files ahead.
    """
    pages = _PagesInTurn(requests)
    try:
        yield from pages
    finally:
        pages.close()


class _PagesInTurn:
    """The answers to some files that are one page, in their order, whatever processes that takes."""

    def __init__(self, requests: Iterator[Request]) -> None:
        self._requests = requests
        self._pending: deque[Request] = deque()  # without an answer; the process knows them
        self._process: _ParserProcess | None = None
        self._process_was_new = False
        self._errors: dict[Request, UnreadableError] = {}  # of files that ended a process
        # Files that ended a process, which may have been in a bad state, and those that a new one reads first.
        self._suspects: set[Request] = set()
        self._has_large = False

    def __iter__(self) -> Iterator[Message | UnreadableError]:
        while True:
            self._look_ahead()
            if not self._pending:
                return
            answer = self._answer()
            if answer is None:
                continue  # another process reads the rest
            request = self._pending.popleft()
            self._suspects.discard(request)
            self._has_large = self._has_large or request.size >= _LARGE
            if not self._pending and self._process is not None:
                # Now, as nobody may ask whether there is another answer after the last one.
                _release(self._process, is_usable=not self._has_large)
                self._process = None
            yield answer

    def _look_ahead(self) -> None:
        """Give the process more files before it has answered those that it has."""
        if len(self._pending) > _TOGETHER:
            return
        following = list(islice(self._requests, _TOGETHER))
        self._pending.extend(following)
        if self._process is not None and following:
            self._process.send(following)

    def _answer(self) -> Message | UnreadableError | None:
        """What is known about the first file, or None if the process ended."""
        request = self._pending[0]
        if request in self._errors:
            return self._errors.pop(request)
        try:
            process = self._process or self._start()
            return process.receive(self._pending)
        except UnreadableError as problem:
            return problem
        except _ParserEndedError as end:
            self.close()
            is_certain = self._process_was_new and end.request in self._suspects
            if is_certain or not end.may_be_its_past:
                self._errors[end.request] = end.error
            self._suspects.add(end.request)
            return None

    def _start(self) -> _ParserProcess:
        """Give the files to a process that does not know them."""
        process = _take(self._pending[0])
        self._process = process
        self._process_was_new = process.is_new
        if process.is_new:
            self._suspects.add(self._pending[0])
        process.send([request for request in self._pending if request not in self._errors])
        return process

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.stop()
            self._process = None


def parse(request: Request) -> Iterator[Message]:
    """What a parser answers to a file, answer by answer.

    Raises:
        UnreadableError: if the file cannot be read, or its parser hangs, crashes or needs too much memory.
    """
    process = _take(request)
    may_be_its_past = not process.is_new
    is_usable = False
    try:
        process.send([request])
        while True:
            answer = process.receive([request])
            may_be_its_past = False
            if answer.header["is_last"]:
                break
            yield answer
        is_usable = True
        return
    except UnreadableError:
        is_usable = True
        raise
    except _ParserEndedError as end:
        if not may_be_its_past or not end.may_be_its_past:
            raise end.error from None
    finally:
        _release(process, is_usable)
    yield from parse(request)


def _take(request: Request) -> _ParserProcess:
    """An idle parser process, or a new one."""
    memory_mb = request.limits.memory_mb
    with _lock:
        # Those of the process that this one was forked from still belong to that one.
        others = [process for process in _idle if process.parent != os.getpid()]
        usable = [
            process
            for process in _idle
            if process.parent == os.getpid() and process.memory_mb == memory_mb
        ]
        for process in others:
            _idle.remove(process)
            process.stop()
        if usable:
            _idle.remove(usable[-1])
            return usable[-1]
    try:
        return _ParserProcess(memory_mb)
    except OSError as problem:
        reason = f"cannot be read: no process for its parser: {problem}"
        raise UnreadableError(request.name, reason, "are there too many processes?") from problem


def _release(process: _ParserProcess, is_usable: bool) -> None:
    """Keep a process for other files, or end it."""
    if not is_usable:
        process.stop()
        return
    with _lock:
        _idle.append(process)


@atexit.register
def _stop_idle() -> None:
    with _lock:
        while _idle:
            _idle.pop().stop()


def _forget_lock() -> None:
    """In a process that was forked while another thread held the lock."""
    global _lock  # noqa: PLW0603 - there is no other way to give a forked process a lock of its own
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)

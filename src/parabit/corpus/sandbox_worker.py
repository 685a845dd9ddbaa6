"""The process in which the files of strangers are parsed.

`sandbox` starts it. Its arguments are its memory in MB and, if it may keep answers back for a moment, the descriptor of
memory into which it writes the number of the file that it works on.

It reads requests from its standard input until that ends, and writes answers to what was its standard output. When its
input ends, it ends at once, whatever it is doing: the process that started it is not there any more.
"""

import gc
import io
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from parabit.corpus.limits import MB, ReadLimits, over_limit
from parabit.corpus.messages import NUMBER_LENGTH, Message, receive, send
from parabit.corpus.pages import check_page, decoded_page, page_content
from parabit.errors import UnreadableError

# By the clock, a parser may take this many times its processor time: it may wait for a disk, or for its turn.
CLOCK = 10
# New objects after which Python looks for circles of them, which parsers hardly make; by default it is 700.
_NEW_OBJECTS = 50_000
# Answers wait for each other for this long: 10 ms are about 20 pages of 10 KB.
_SECONDS_TOGETHER = 0.01
_BYTES_TOGETHER = 1 << 18

Parser = Callable[[bytes, dict[str, Any], ReadLimits, float], Iterator[Message]]


def main() -> None:
    """Answer requests until there are no more."""
    answers = io.BufferedWriter(io.FileIO(os.dup(sys.stdout.fileno()), "wb"), _BYTES_TOGETHER)
    # What a library prints is no answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    memory_mb = float(sys.argv[1])
    progress = int(sys.argv[2]) if len(sys.argv) > 2 else None
    _keep_limits(memory_mb)
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    batches: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_take_requests, args=(batches,), daemon=True).start()
    sent_at = time.monotonic()
    while True:
        batch = batches.get()
        limits = ReadLimits(**batch.header["limits"])
        start = 0
        for file in batch.header["files"]:
            content = batch.content[start : start + file["length"]]
            start += file["length"]
            if progress is not None:
                os.pwrite(progress, file["number"].to_bytes(NUMBER_LENGTH, "little"), 0)
            is_out_of_memory = _answer(Message(file, content), answers, limits)
            now = time.monotonic()
            if progress is None or is_out_of_memory or now - sent_at > _SECONDS_TOGETHER:
                answers.flush()
                sent_at = now
            if is_out_of_memory:
                os._exit(1)  # the thread would wait on
        answers.flush()


def _take_requests(batches: "queue.SimpleQueue[Message]") -> None:
    """Read requests while others are worked on, so that who sends them need not wait; end with the input."""
    requests = io.BufferedReader(io.FileIO(os.dup(sys.stdin.fileno())))
    while True:
        batch = receive(requests)
        if batch is None:
            os._exit(0)
        batches.put(batch)


def _answer(request: Message, answers: BinaryIO, limits: ReadLimits) -> bool:
    """Parse a file and send what it holds. Returns whether the memory did not suffice."""
    header = request.header
    parser = PARSERS[header["parser"]]
    try:
        for answer in parser(request.content, header["options"], limits, header["seconds"]):
            send(answers, answer)
            if not answer.header["is_last"]:
                answers.flush()  # rows can be worked with while more are read
        return False
    except UnreadableError as problem:
        error = problem
    except MemoryError:
        return _send_out_of_memory(answers, limits)
    except RecursionError:
        error = UnreadableError("", f"not readable as {header['parser']}: nested too deeply")
    except Exception as problem:  # libraries raise whatever comes up inside a damaged file
        if _has_used_much_memory(limits):
            return _send_out_of_memory(answers, limits)
        message = str(problem).partition("\n")[0][:200]
        error = UnreadableError("", f"cannot be read: {type(problem).__name__}: {message}")
    send(answers, _error(error, is_memory=False))
    return False


def _send_out_of_memory(answers: BinaryIO, limits: ReadLimits) -> bool:
    what = f"needs more than {limits.memory_mb} MB of memory"
    send(answers, _error(over_limit("", what, limits, "memory_mb"), is_memory=True))
    return True


def _has_used_much_memory(limits: ReadLimits) -> bool:
    """Whether an error of a library, which may say anything, is likely to come from the limit of memory."""
    if sys.platform != "linux":
        return False
    import resource

    # The next step of a buffer that doubles did not fit.
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes * 1024 > limits.memory_mb * MB / 3


def _error(error: UnreadableError, is_memory: bool) -> Message:
    return Message({"error": error.reason, "hint": error.hint, "is_memory": is_memory})


def _keep_limits(memory_mb: float) -> None:
    """Have the system end this process when it has used up its time or memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("SIGPROF", "SIGALRM"):
        if hasattr(signal, name):  # ignored signals are inherited
            signal.signal(getattr(signal, name), signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [getattr(signal, name)])
    if sys.platform == "linux":
        import resource

        # Unlike RLIMIT_AS, this one counts no files that are mapped and no address space that is only set aside.
        most = int(memory_mb * MB)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """End this process if what is inside takes more than this processor time."""
    if not hasattr(signal, "setitimer"):  # the process that started this one ends it
        yield
        return
    _set_clock(seconds)
    try:
        yield
    finally:
        _set_clock(0)


def _set_clock(seconds: float) -> None:
    """End this process after so much more processor time; 0 means never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * CLOCK)


def _page(title: str | None, text: str, note: str, limits: ReadLimits) -> Message:
    if len(text) > limits.document_bytes:
        what = f"more than {limits.document_mb} MB of text"
        raise over_limit("", what, limits, "document_mb")
    header = {"title": title, "note": note, "is_last": True}
    return Message(header, text.encode("utf-8", "surrogatepass"))


def _html(
    content: bytes, options: dict[str, Any], limits: ReadLimits, seconds: float
) -> Iterator[Message]:
    from parabit.corpus.extract import from_html

    with _limited(seconds):
        content = _content(content, options, limits, seconds)
        check_page(content, options["encoding"])
        page = from_html(content, options["encoding"])
        answer = _page(page.title, page.text, page.note, limits)
    yield answer


def _markdown(
    content: bytes, options: dict[str, Any], limits: ReadLimits, seconds: float
) -> Iterator[Message]:
    from parabit.corpus.extract import from_markdown

    with _limited(seconds):
        content = _content(content, options, limits, seconds)
        check_page(content, options["encoding"])
        text, note = decoded_page(content, options["encoding"])
        page = from_markdown(text)
        answer = _page(page.title, page.text, note, limits)
    yield answer


def _content(content: bytes, options: dict[str, Any], limits: ReadLimits, seconds: float) -> bytes:
    """The bytes of a page, which came with the request if they are not in a file."""
    if "path" not in options:
        return content
    content = page_content(options["path"], limits)
    decompressed_seconds = limits.parsing_seconds(len(content))
    if decompressed_seconds > seconds:
        _set_clock(decompressed_seconds)
    return content


def _pdf(
    content: bytes, options: dict[str, Any], limits: ReadLimits, seconds: float
) -> Iterator[Message]:
    from parabit.corpus.extract import from_pdf

    with _limited(seconds), open(options["path"], "rb") as stream:  # noqa: PTH123
        page = from_pdf(stream, "", limits)
        answer = _page(page.title, page.text, "", limits)
    yield answer


def _parquet(
    content: bytes, options: dict[str, Any], limits: ReadLimits, seconds: float
) -> Iterator[Message]:
    from parabit.corpus.parquet import tables_of

    tables = tables_of(options["path"], set(options["fields"]), limits)
    while True:
        # Each batch has its time: a table may be as long as it likes.
        with _limited(seconds):
            table = next(tables, None)
        if table is None:
            yield Message({"is_last": True})
            return
        yield Message({"columns": table.columns, "is_last": False}, table.rows)


PARSERS: dict[str, Parser] = {
    "html": _html,
    "markdown": _markdown,
    "pdf": _pdf,
    "parquet": _parquet,
}

"""What all verbs share: options, output, progress, errors and signals."""

import errno
import functools
import io
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn, ParamSpec

import typer
from rich.console import Console
from rich.text import Text

from parabit.cli import leave
from parabit.errors import Interrupted, ParabitError, did_you_mean
from parabit.progress import Progress, Report, silent

P = ParamSpec("P")

FAILED = 1
_MOST_BESIDE = 1000  # names that are compared with one that is not there
# What makes a verb that ran out of memory need less.
_SMALLER = {
    "train": "a higher --min-count makes a smaller vocabulary, and a smaller --sample needs less",
    "vocabulary": "a higher --min-count makes a smaller vocabulary",
    "search": "ask for less with -k, --radius or --candidates",
    "evaluate": "evaluate fewer documents",
}
_ENDINGS = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]

out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


def verb(function: Callable[P, None]) -> Callable[P, None]:
    """Make a command of a function: an error is one line, and the exit code says how it ended."""

    @functools.wraps(function)
    @_signals_as_exceptions()
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # what a terminal's encoding lacks is written out, not an error
                stream.reconfigure(errors="backslashreplace")
        try:
            with _plain_warnings():
                function(*args, **kwargs)
            out.file.flush()
        except KeyboardInterrupt as stop:
            _fail(str(stop) or "interrupted; nothing half-written was left", 128 + signal_of(stop))
        except BrokenPipeError:
            # The reader of our output has left, as `head` does. Python would complain once more at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except ParabitError as problem:
            _fail(_with_neighbour(problem, kwargs))
        except MemoryError:
            _fail(f"out of memory; {_SMALLER.get(function.__name__, 'close other programs, or take a larger machine')}")
        except OSError as problem:
            _fail(_in_words(problem))
        except Exception as problem:
            _fail(
                f"parabit did not foresee this: {type(problem).__name__}: {' '.join(str(problem).split())[:500]}; "
                "set PARABIT_DEBUG=1 to see where, and please report it"
            )

    return run


def completing(names: Sequence[str]) -> Callable[[str], list[str]]:
    """What completes an option in the shell."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def check_spelling(what: str, given: str | None, known: Collection[str]) -> None:
    """Raise for a name that is nearly one of those known. What is like none of them is the library's to refuse.

    Example:
        >>> check_spelling("rank", "hybird", ("hamming", "hybrid"))
        Traceback (most recent call last):
        parabit.errors.ParabitError: no rank 'hybird'; did you mean hybrid? There are hamming, hybrid
    """
    if given is not None and given not in known and (hint := did_you_mean(given, known)):
        raise ParabitError(f"no {what} {given!r}", hint=f"{hint} There are {', '.join(known)}")


def signal_of(stop: KeyboardInterrupt | SystemExit) -> int:
    """The number of the signal that interrupted."""
    if isinstance(stop, SystemExit):
        return int(stop.code or 0) - 128
    return stop.number if isinstance(stop, Interrupted) else signal.SIGINT


def say(line: str) -> None:
    """A line for people, with markup; on a terminal it is folded between words, and the rest is indented."""
    _print(Text.from_markup(line, emoji=False), out)


def _print(line: Text, console: Console) -> None:
    console.print(_folded(line, console.width) if console.is_terminal else line, soft_wrap=True)


def _folded(line: Text, width: int) -> Text:
    """A word that is wider than the terminal, such as a path, is left in one piece, for the terminal to fold."""
    if "\n" in line:
        return line
    words = line.split(" ")
    indent = next((place for place, word in enumerate(words) if word), 0) + 2
    folded, room = words[0], width - words[0].cell_len
    for word in words[1:]:
        room -= 1 + word.cell_len
        if room < 0 and word:
            folded.append("\n" + " " * indent)
            room = width - indent - word.cell_len
        else:
            folded.append(" ")
        folded.append_text(word)
    return folded


def width_of_output() -> int | None:
    """How wide lines may be; None if the output is not a terminal and nothing is cut."""
    return out.width if out.is_terminal or os.environ.get("COLUMNS") else None


def print_json(result: Mapping[str, Any]) -> None:
    """The whole answer of a verb for scripts."""
    if sys.stdout is None:
        raise ParabitError("standard output is closed", hint="give it somewhere to go")
    sys.stdout.write(json.dumps(result) + "\n")


@contextmanager
def progress(quiet: bool) -> Iterator[Report]:
    """A report that draws on standard error, where that is a terminal."""
    if hasattr(signal, "siginterrupt"):
        # polars, imported by now, lets a read go on after Ctrl-C: a pipe that brings nothing would never be left.
        signal.siginterrupt(signal.SIGINT, True)
    if quiet or not err.is_terminal:
        yield silent
        return
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]} {task.fields[unit]}"),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=err, transient=True) as bars:
        stages: dict[str, tuple[TaskID, float]] = {}
        last = time.perf_counter()

        def show(state: Progress) -> None:
            nonlocal last
            if state.stage not in stages:
                # A stage began when the one before it ended, not at its first report.
                stages[state.stage] = (
                    bars.add_task(state.stage, total=None, done="", unit=state.unit, rate="", note=""),
                    last,
                )
            task, began = stages[state.stage]
            last = time.perf_counter()
            bars.update(
                task,
                total=None if state.share is None else 1.0,
                completed=state.share or 0.0,
                done=f"{state.done:,}",
                rate=f"{state.done / (last - began):,.0f}/s",
                note=state.note,
            )

        yield show


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show the library's warnings as one line each, without the place in the source that Python adds."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_plainly(message: Warning | str, category: type[Warning], *place: Any, **other: Any) -> None:
            if category is UserWarning:
                _print(Text(f"parabit: warning: {message}"), err)
            else:
                show(message, category, *place, **other)

        warnings.showwarning = show_plainly
        yield


def _fail(message: str, code: int = FAILED) -> NoReturn:
    if os.environ.get("PARABIT_DEBUG"):
        traceback.print_exc()
    message = "; ".join([message, *getattr(sys.exception(), "__notes__", [])])
    _print(Text(f"parabit: {message}"), err)
    raise typer.Exit(code) from None


def _with_neighbour(problem: ParabitError, arguments: Mapping[str, Any]) -> str:
    """An error in words; of a folder that is not there, with the one that may have been meant."""
    for name in ("index", "model"):
        given = arguments.get(name)
        if isinstance(given, Path) and str(given) in problem.problem and not given.exists():
            return "; ".join([problem.problem, _folder_beside(given) or problem.hint])
    return str(problem)


def _folder_beside(path: Path) -> str:
    """The hint for a folder that is not there, if one has a similar name."""
    try:
        folders = [entry.name for entry in islice(os.scandir(path.parent), _MOST_BESIDE) if entry.is_dir()]
    except OSError:
        return ""
    return did_you_mean(str(path), [str(path.parent / name) for name in folders])


def _in_words(problem: OSError) -> str:
    where = f" ({problem.filename})" if problem.filename else ""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"no room left on the disk{where}; nothing half-written was left; make room or set TMPDIR, and run it again"
        )
    return f"{problem.strerror or problem}{where}"


@contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """While a verb runs, signals that end it are exceptions: what is half done is cleared away."""
    waited = signal.getsignal(signal.SIGINT) is leave
    if waited:
        signal.signal(signal.SIGINT, _interrupted)
    for number in _ENDINGS:
        if signal.getsignal(number) is signal.SIG_DFL:  # not where it is ignored, as nohup has it
            signal.signal(number, _terminated)
    try:
        yield
    finally:
        if waited:  # everything is written; what is left of the process can end at once
            signal.signal(signal.SIGINT, leave)


class _CtrlC(KeyboardInterrupt):
    """Python ends by the signal, and not with an exit code, where a plain KeyboardInterrupt was raised within `exec`,
    even if it was dealt with. Data classes are made by `exec`, so any import may be such a place."""


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    raise _CtrlC


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)  # an exception, so that temporary files are cleared as at any other end

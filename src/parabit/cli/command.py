"""What all verbs share: errors, progress and signals."""

import errno
import functools
import io
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn, ParamSpec

import typer
from rich.text import Text

from parabit.cli import leave
from parabit.cli.output import err, out, print_json, say, show
from parabit.errors import Interrupted, ParabitError, did_you_mean
from parabit.progress import Progress, Report, silent

__all__ = ["Json", "Quiet", "err", "out", "print_json", "progress", "say", "signal_of", "verb"]

P = ParamSpec("P")

_MOST_BESIDE = 1000  # names that are compared with one that does not exist
# What makes a verb need less memory.
_SMALLER = {
    "train": "a smaller --sample, or a higher --min-count, needs less",
    "vocabulary": "a higher --min-count makes a smaller vocabulary",
    "index": "a smaller --sample needs less",
    "search": "ask for less with -k, --radius or --candidates",
    "evaluate": "evaluate fewer documents",
}
_ENDINGS = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


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
            raise
        except ParabitError as problem:
            _fail(_with_neighbour(problem, kwargs))
        except MemoryError:
            _fail(f"out of memory; {_SMALLER.get(function.__name__, 'close other programs, or use a larger machine')}")
        except OSError as problem:
            _fail(_explained(problem))
        except Exception as problem:
            if hasattr(problem, "exit_code"):  # typer's own: wrong usage, which it explains
                raise
            _fail(
                f"unexpected {type(problem).__name__}: {' '.join(str(problem).split())[:500]}; "
                "please report it, with what PARABIT_DEBUG=1 shows"
            )

    return run


def signal_of(stop: KeyboardInterrupt | SystemExit) -> int:
    """The number of the signal that interrupted."""
    if isinstance(stop, SystemExit):
        return int(stop.code or 0) - 128
    return stop.number if isinstance(stop, Interrupted) else signal.SIGINT


@contextmanager
def progress(quiet: bool) -> Iterator[Report]:
    """A report that draws on standard error, if that is a terminal."""
    if hasattr(signal, "siginterrupt"):
        # polars, imported by now, continues a read after Ctrl-C: a pipe that brings nothing would never be left.
        signal.siginterrupt(signal.SIGINT, True)
    if quiet or not err.is_terminal:
        yield silent
        return
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    texts = ("{task.fields[done]} {task.fields[unit]}", "{task.fields[rate]}", "{task.fields[note]}")
    columns = (TextColumn("{task.description}"), BarColumn(), *map(TextColumn, texts))
    with Bars(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=err, transient=True) as bars:
        stages: dict[str, tuple[TaskID, float]] = {}
        last = time.perf_counter()

        def draw(state: Progress) -> None:
            nonlocal last
            if state.stage not in stages:
                # A stage began when the one before it ended, not at its first report.
                task = bars.add_task(state.stage, total=None, done="", unit=state.unit, rate="", note="")
                stages[state.stage] = task, last
            task, began = stages[state.stage]
            last = time.perf_counter()
            bars.update(
                task, total=None if state.share is None else 1.0, completed=state.share or 0.0, note=state.note,
                done=f"{state.done:,}", rate=f"{state.done / (last - began):,.0f}/s",
            )  # fmt: skip

        yield draw


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show the library's warnings as one line each, without the place in the source that Python adds."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show_plainly(message: Warning | str, category: type[Warning], *place: Any, **other: Any) -> None:
            if category is UserWarning:
                show(Text(f"parabit: warning: {message}"), err)
            else:
                usual(message, category, *place, **other)

        warnings.showwarning = show_plainly
        yield


def _fail(message: str, code: int = 1) -> NoReturn:
    if os.environ.get("PARABIT_DEBUG"):
        traceback.print_exc()
    message = "; ".join([message, *getattr(sys.exception(), "__notes__", [])])
    show(Text(f"parabit: {message}"), err)
    raise typer.Exit(code) from None


def _with_neighbour(problem: ParabitError, arguments: Mapping[str, Any]) -> str:
    """An error in words; if a folder does not exist, with the one that may have been meant."""
    for name in ("index", "model"):
        given = arguments.get(name)
        if isinstance(given, Path) and str(given) in problem.problem and not given.exists():
            return "; ".join([problem.problem, _similar_folder(given) or problem.hint])
    return str(problem)


def _similar_folder(path: Path) -> str:
    try:
        folders = [entry.name for entry in islice(os.scandir(path.parent), _MOST_BESIDE) if entry.is_dir()]
    except OSError:
        return ""
    return did_you_mean(str(path), [str(path.parent / name) for name in folders])


def _explained(problem: OSError) -> str:
    where = f" ({problem.filename})" if problem.filename else ""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"no space left on the disk{where}; nothing half-written was left; free some space or set TMPDIR, and run "
            "it again"
        )
    return f"{problem.strerror or problem}{where}"


@contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """While a verb runs, signals that end it are exceptions: what is half done is cleared away."""
    waited = signal.getsignal(signal.SIGINT) is leave
    if waited:
        signal.signal(signal.SIGINT, _interrupted)
    for number in _ENDINGS:
        if signal.getsignal(number) is signal.SIG_DFL:  # not if it is ignored, as under nohup
            signal.signal(number, _terminated)
    try:
        yield
    finally:
        if waited:  # everything is written; what is left of the process can end at once
            signal.signal(signal.SIGINT, leave)


class _CtrlC(KeyboardInterrupt):
    """Python ends by the signal, and not with an exit code, if a plain KeyboardInterrupt was raised within `exec`,
    even if it was caught. Data classes are made by `exec`, so any import may be such a place."""


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    raise _CtrlC


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)  # an exception, so that temporary files are cleared as at any other end

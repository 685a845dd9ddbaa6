"""What all verbs share: options, errors, progress and signals."""

import errno
import functools
import inspect
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
from typing import Annotated, Any, NoReturn

import typer

from parabit.cli import leave
from parabit.cli.options import SHARED, Reading, option
from parabit.cli.output import complain, console, headline, reading_of, say_json
from parabit.errors import Interrupted, ParabitError, did_you_mean
from parabit.progress import Progress, Report, silent

Result = dict[str, Any]


def _common(
    json: Annotated[bool, option("Print one JSON object, for scripts.", "--json")] = False,
    quiet: Annotated[bool, option("Show no progress.", "--quiet", "-q")] = False,
) -> Result:
    return {"json": json, "quiet": quiet}


def verb(show: Callable[[Result], None] | str | None = None, common: bool = True) -> Callable[[Any], Any]:
    """Make a command of a function that returns what `--json` prints; `show` prints it for people, or is a headline.

    An error is one line, and the exit code says how the command ended. Parameters that stand for options which several
    verbs have, `SHARED`, are filled in. So are `report`, for progress, and `json` and `quiet`; a function that takes
    `json` may print its result itself and return None. The result also says which index, model and corpus it is about,
    what was skipped while reading, and how long it took.
    """

    def decorate(function: Callable[..., Result | None]) -> Callable[..., None]:
        wanted = inspect.signature(function).parameters
        makers = {name: SHARED[name] for name in wanted if name in SHARED} | ({"common": _common} if common else {})
        options = {name: inspect.signature(make).parameters for name, make in makers.items()}
        own = [parameter for name, parameter in wanted.items() if name not in {*SHARED, "report", "json", "quiet"}]
        parameters = [*own, *(option for some in options.values() for option in some.values())]

        @functools.wraps(function)
        @_signals_as_exceptions()
        def run(**given: Any) -> None:
            with _errors_as_lines(given):
                values = {name: make(**{key: given.pop(key) for key in options[name]}) for name, make in makers.items()}
                flags = values.pop("common", {})
                values |= {name: value for name, value in flags.items() if name in wanted}
                start = time.perf_counter()
                with progress("report" not in wanted or any(flags.values())) as report:
                    values |= {"report": report} if "report" in wanted else {}
                    result = function(**given, **values)
                if result is not None:
                    result = {**_subject(given), **result, **reading_of(values.get("reading", Reading()).corpora)}
                    result["seconds"] = round(time.perf_counter() - start, 3)
                    if flags["json"]:
                        say_json(result)
                    elif isinstance(show, str):
                        headline(result, "index", show)
                    elif show is not None:
                        show(result)
                if sys.stdout is not None:
                    sys.stdout.flush()

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _subject(given: Mapping[str, Any]) -> dict[str, str]:
    """What a command is about."""
    names = [name for name in ("index", "model", "corpus") if given.get(name)]
    return {name: " ".join(given[name]) if isinstance(given[name], list) else str(given[name]) for name in names}


@contextmanager
def _errors_as_lines(arguments: Mapping[str, Any]) -> Iterator[None]:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal's encoding lacks is written out, not an error
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            # One line each, without the place in the source that Python adds.
            warnings.showwarning = lambda message, *place, **more: complain(f"warning: {message}")
            yield
    except KeyboardInterrupt as stop:
        _fail(str(stop) or "interrupted; nothing half-written was left", 128 + _number_of(stop))
    except BrokenPipeError:
        raise
    except ParabitError as problem:
        _fail(_with_neighbour(problem, arguments))
    except MemoryError:
        _fail("out of memory; use a smaller --sample or -k, close other programs, or use a larger machine")
    except OSError as problem:
        _fail(_explained(problem))
    except Exception as problem:
        if hasattr(problem, "exit_code"):  # typer's own: wrong usage, which it explains
            raise
        _fail(
            f"unexpected {type(problem).__name__}: {' '.join(str(problem).split())[:500]}; "
            "please report it, with what PARABIT_DEBUG=1 shows"
        )


def _number_of(stop: KeyboardInterrupt | SystemExit) -> int:
    """The number of the signal that interrupted."""
    if isinstance(stop, SystemExit):
        return int(stop.code or 0) - 128
    return stop.number if isinstance(stop, Interrupted) else signal.SIGINT


@contextmanager
def resumable(how: str, state: Path | None = None) -> Iterator[None]:
    """An interrupt says how the work goes on, if its state was saved."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stop:
        if state is not None and not state.exists():
            raise
        reason = str(stop) if isinstance(stop, Interrupted) else "interrupted"
        raise Interrupted(f"{reason}; {how}", _number_of(stop)) from stop


@contextmanager
def progress(quiet: bool) -> Iterator[Report]:
    """A report that draws on standard error, if that is a terminal."""
    if quiet or not console(stderr=True).is_terminal:
        yield silent
        return
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[about]}"))
    with Bars(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console(True), transient=True) as bars:
        stages: dict[str, TaskID] = {}

        def draw(state: Progress) -> None:
            if state.stage not in stages:
                stages[state.stage] = bars.add_task(state.stage, total=None, about="")
            total, about = None if state.share is None else 1.0, f"{state.done:,} {state.unit} {state.note}"
            bars.update(stages[state.stage], total=total, completed=state.share or 0.0, about=about)

        yield draw


def _fail(message: str, code: int = 1) -> NoReturn:
    if os.environ.get("PARABIT_DEBUG"):
        traceback.print_exc()
    complain("; ".join([message, *getattr(sys.exception(), "__notes__", [])]))
    raise typer.Exit(code) from None


def _with_neighbour(problem: ParabitError, arguments: Mapping[str, Any]) -> str:
    """An error in words; if a folder does not exist, with the one that may have been meant."""
    for path in (arguments.get("index"), arguments.get("model")):
        if isinstance(path, Path) and str(path) in problem.problem and not path.exists():
            beside = [str(other) for other in islice(path.parent.glob("*"), 1000) if other.is_dir()]
            return "; ".join([problem.problem, did_you_mean(str(path), beside) or problem.hint])
    return str(problem)


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
        signal.signal(signal.SIGINT, _stop)
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):  # which Windows lacks
        if signal.getsignal(number) is signal.SIG_DFL:  # not if it is ignored, as under nohup
            signal.signal(number, _stop)
    try:
        yield
    finally:
        if waited:  # everything is written; what is left of the process can end at once
            signal.signal(signal.SIGINT, leave)


class _CtrlC(KeyboardInterrupt):
    """Python ends by the signal, and not with an exit code, if a plain KeyboardInterrupt was raised within `exec`,
    even if it was caught. Data classes are made by `exec`, so any import may be such a place."""


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise _CtrlC if number == signal.SIGINT else SystemExit(128 + number)

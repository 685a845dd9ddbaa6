"""What all verbs share: options, errors, progress and signals; the help only names options of reading and of words."""

import errno
import functools
import inspect
import io
import logging
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from parabit.cli import leave
from parabit.cli.app import COLLAPSED
from parabit.cli.output import complain, console, escape, reading_of, say_json
from parabit.corpus import FORMATS, Corpus, ReadOptions, open_corpus
from parabit.errors import Interrupted, ParabitError
from parabit.progress import Progress, Report, silent

Result = dict[str, Any]


def option(help: str, *words: str, panel: str | None = None, **how: Any) -> Any:
    """An option with its help, its names if they do not follow from the parameter, and what stands for its value."""
    names = [word for word in words if word.startswith("-")]
    metavar = next((word for word in words if word not in names), "N")
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, **how)


def argument(help: str, metavar: str) -> Any:
    return typer.Argument(help=help, metavar=metavar)


CORPUS = "A file, a folder, a data set (20newsgroups/train), an address (s3://…), or - for standard input"
_FORMAT = (
    f"One of {', '.join(FORMATS)}. Default: by the file's name. lines reads one document per line. In a folder, files "
    "with names of another format are skipped."
)
Corpora = Annotated[list[str], argument(f"{CORPUS}; repeatable.", "CORPUS")]
IndexFolder = Annotated[Path, argument("The folder of an index.", "INDEX")]
Overwrite = Annotated[bool, option("Replace what has this name.", "--overwrite")]
Table = Annotated[
    Path | None, option("A table as .csv, .tsv, .jsonl or .parquet.", "--output", "-o", "FILE")
]
Counting = Callable[
    ..., dict[str, Any]
]  # the parameters of a vocabulary, by default or as in the paper

_read = functools.partial(option, show_default=False, panel=f"{COLLAPSED}: reading")
_word = functools.partial(option, show_default=False, panel=f"{COLLAPSED}: words")


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.meta["--help-all"] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


class Reading:
    """How corpora are read, and those that were."""

    def __init__(
        self,
        text_field: Annotated[
            list[str] | None, _read("Field with text; repeatable. Default: text.", "FIELD")
        ] = None,
        id_field: Annotated[
            str | None, _read("Field with the id. Default: id, or path and line.", "FIELD")
        ] = None,
        label_field: Annotated[
            str | None, _read("Field with labels. Default: labels or label.", "FIELD")
        ] = None,
        format: Annotated[
            str | None, _read(_FORMAT, "FORMAT", autocompletion=lambda: list(FORMATS))
        ] = None,
        encoding: Annotated[
            str | None, _read("Default: by the first bytes, UTF-8, Windows-1252.", "ENCODING")
        ] = None,
        no_quotes: Annotated[
            bool, _read("Quotes in CSV and TSV are ordinary characters.", "--no-quotes")
        ] = False,
        include: Annotated[
            list[str] | None, _read("Read only what matches, such as *.md; repeatable.", "GLOB")
        ] = None,
        exclude: Annotated[
            list[str] | None, _read("Skip files and folders that match; repeatable.", "GLOB")
        ] = None,
        strict: Annotated[
            bool, _read("Stop at what cannot be read, instead of skipping it.", "--strict")
        ] = False,
        help_all: Annotated[
            bool, option("Show all options.", "--help-all", is_eager=True, callback=_show_all)
        ] = False,
    ) -> None:
        self.options = ReadOptions(
            text_fields=tuple(text_field or ("text",)), id_field=id_field, label_field=label_field, format=format,
            encoding=encoding, quotes=not no_quotes, include=tuple(include or ()), exclude=tuple(exclude or ()),
            strict=strict,
        )  # fmt: skip
        self.corpora: list[Corpus] = []

    def open(self, corpus: str | list[str], report: Report) -> Corpus:
        import_module(
            "polars"
        )  # all that read need it, and it has reads go on after Ctrl-C, which is undone here:
        if hasattr(signal, "siginterrupt"):  # a pipe that brings nothing would never be left
            signal.siginterrupt(signal.SIGINT, True)
        self.corpora.append(open_corpus(corpus, self.options, report))
        return self.corpora[-1]


def counting(
    bigrams: Annotated[bool, _word("Count pairs of neighbouring words too.", "--bigrams")] = False,
    min_count: Annotated[
        int, _word("Drop words and bigrams that occur less often. Default: 1.", min=1)
    ] = 1,
    min_bigram_count: Annotated[
        int | None, _word("The same for bigrams alone. Default: --min-count.", min=1)
    ] = None,
    max_size: Annotated[
        int | None, _word("Keep only this many of the most frequent. Default: all.", min=1)
    ] = None,
    pattern: Annotated[
        str | None, _word("A word, in lower case. Default: words, 42, c++, .net, …", "REGEX")
    ] = None,
    fold_accents: Annotated[bool, _word("Remove accents: é becomes e.", "--fold-accents")] = False,
    min_length: Annotated[
        int | None, _word("Drop shorter words. Default: 2 characters.", min=1)
    ] = None,
    max_length: Annotated[
        int | None, _word("Drop longer words. Default: 15 characters.", min=1)
    ] = None,
    stop_words: Annotated[
        str, _word("Words to drop: english, none, or a file of them.", "NAME|FILE")
    ] = "english",
) -> Counting:
    """The options of a vocabulary."""

    def parameters(paper: bool = False) -> dict[str, Any]:
        from parabit.text import Tokenizer, read_stop_words

        given: dict[str, Any] = {
            "pattern": pattern,
            "min_length": min_length,
            "max_length": max_length,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        changes |= {"fold_accents": fold_accents, "stop_words": read_stop_words(stop_words)}
        tokenizer = replace(Tokenizer.paper() if paper else Tokenizer(), **changes)
        counts = {
            "min_count": min_count,
            "min_bigram_count": min_bigram_count,
            "max_size": max_size,
        }
        return {"tokenizer": tokenizer, "bigrams": bigrams, **counts}

    return parameters


def _common(
    json: Annotated[bool, option("Print one JSON object, for scripts.", "--json")] = False,
    quiet: Annotated[bool, option("Show no progress.", "--quiet", "-q")] = False,
) -> Result:
    return {"json": json, "quiet": quiet}


# Parameters of verbs, and the functions whose parameters are the options that they stand for.
SHARED: dict[str, Callable[..., Any]] = {"reading": Reading, "counting": counting}


def verb(show: Callable[[Result], None] | None = None, common: bool = True) -> Callable[[Any], Any]:
    """Make a command of a function that returns what `--json` prints; `show` prints it for people.

    Parameters that stand for options which several verbs have, `SHARED`, are filled in. So are `report`, for progress,
    and `json` and `quiet`; a function that takes `json` may print its result itself and return None. The result also
    says which index, model and corpus it is about, what was skipped while reading, and how long it took.
    """

    def decorate(function: Callable[..., Result | None]) -> Callable[..., None]:
        wanted = inspect.signature(function).parameters
        makers = {name: SHARED[name] for name in wanted if name in SHARED} | (
            {"common": _common} if common else {}
        )
        options = {name: inspect.signature(make).parameters for name, make in makers.items()}
        own = [
            parameter
            for name, parameter in wanted.items()
            if name not in {*SHARED, "report", "json", "quiet"}
        ]
        parameters = [*own, *(option for some in options.values() for option in some.values())]

        @functools.wraps(function)
        @_signals_as_exceptions()
        def run(**given: Any) -> None:
            with _errors_as_lines():
                values = {
                    name: make(**{key: given.pop(key) for key in options[name]})
                    for name, make in makers.items()
                }
                flags = values.pop("common", {})
                values |= {name: value for name, value in flags.items() if name in wanted}
                start = time.perf_counter()
                with progress("report" not in wanted or any(flags.values())) as report:
                    values |= {"report": report} if "report" in wanted else {}
                    result = function(**given, **values)
                if result is not None:
                    result = {
                        **_subject(given),
                        **result,
                        **reading_of(values.get("reading", Reading()).corpora),
                    }
                    result["seconds"] = round(time.perf_counter() - start, 3)
                    if flags["json"]:
                        say_json(result)
                    elif show is not None:
                        show(result)
                if sys.stdout is not None:
                    sys.stdout.flush()

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _subject(given: Mapping[str, Any]) -> dict[str, str]:
    names = [name for name in ("index", "model", "corpus") if given.get(name)]
    return {
        name: " ".join(given[name]) if isinstance(given[name], list) else str(given[name])
        for name in names
    }


@contextmanager
def _errors_as_lines() -> Iterator[None]:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # what a terminal's encoding lacks is written out, not an error
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings(), _log_as_lines():
            # One line each, without the place in the source that Python adds.
            warnings.showwarning = lambda message, *place, **more: complain(f"warning: {message}")
            yield
    except KeyboardInterrupt as stop:
        left = "" if hasattr(stop, "__notes__") else "; nothing half-written was left"
        _fail(str(stop) or f"interrupted{left}", 128 + getattr(stop, "number", signal.SIGINT))
    except BrokenPipeError:
        raise
    except ParabitError as problem:
        _fail(str(problem))
    except MemoryError:
        _fail(
            "out of memory; use a smaller --sample or -k, close other programs, or use a larger machine"
        )
    except OSError as problem:
        where, reason = (
            f" ({problem.filename})" if problem.filename else "",
            problem.strerror or str(problem),
        )
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            done = "nothing half-written was left; free some space or set TMPDIR, and run it again"
            _fail(f"no space left on the disk{where}; {done}")
        _fail(f"{reason}{where}")
    except Exception as problem:
        if hasattr(problem, "exit_code"):  # typer's own: wrong usage, which it explains
            raise
        _fail(
            f"unexpected {type(problem).__name__}: {' '.join(str(problem).split())[:500]}; "
            "please report it, with what PARABIT_DEBUG=1 shows"
        )


class _Complaints(logging.Handler):
    """What the library logs, as lines of the command."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(f"{record.levelname.lower()}: {record.getMessage()}")


@contextmanager
def _log_as_lines() -> Iterator[None]:
    """Print what the library logs like warnings, so that nothing in it acts on a terminal."""
    logger = logging.getLogger("parabit")
    complaints = _Complaints(logging.WARNING)
    logger.addHandler(complaints)
    try:
        yield
    finally:
        logger.removeHandler(complaints)


@contextmanager
def resumable(how: str, state: Path | None = None) -> Iterator[None]:
    """An interrupt says how the work goes on, if its state was saved."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if state is None or state.exists():
            stop.add_note(how)
        raise


@contextmanager
def progress(quiet: bool) -> Iterator[Report]:
    """A report that draws on standard error, if that is a terminal."""
    if quiet or not console(stderr=True).is_terminal:
        yield silent
        return
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[about]}"))
    with Bars(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console(True), transient=True
    ) as bars:
        stages: dict[str, TaskID] = {}

        def draw(state: Progress) -> None:
            if state.stage not in stages:
                stages[state.stage] = bars.add_task(state.stage, total=None, about="")
            total = None if state.share is None else 1.0
            about = escape(f"{state.done:,} {state.unit} {state.note}")
            bars.update(stages[state.stage], total=total, completed=state.share or 0.0, about=about)

        yield draw


def _fail(message: str, code: int = 1) -> NoReturn:
    if os.environ.get("PARABIT_DEBUG"):
        traceback.print_exc()
    complain("; ".join([message, *getattr(sys.exception(), "__notes__", [])]))
    raise typer.Exit(code) from None


@contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """While a verb runs, signals that end it are exceptions: what is half done is cleared away."""
    waited = signal.getsignal(signal.SIGINT) is leave
    if waited:
        signal.signal(signal.SIGINT, _stop)
    for number in (
        signal.SIGTERM,
        getattr(signal, "SIGHUP", signal.SIGTERM),
    ):  # which Windows lacks
        if signal.getsignal(number) is signal.SIG_DFL:  # not if it is ignored, as under nohup
            signal.signal(number, _stop)
    try:
        yield
    finally:
        if waited:  # everything is written; what is left of the process can end at once
            signal.signal(signal.SIGINT, leave)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    # Not a plain KeyboardInterrupt: if one was raised within `exec`, Python ends by the signal, not with an exit code,
    # even if it was caught. Data classes are made by `exec`, so any import may be such a place.
    raise Interrupted("", number) if number == signal.SIGINT else SystemExit(128 + number)

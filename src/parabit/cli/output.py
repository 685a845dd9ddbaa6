"""What verbs write: lines for people, JSON for scripts, tables as files."""

import functools
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parabit.characters import CONTROLS, HALVES
from parabit.errors import ParabitError

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from parabit.corpus import Corpus
    from parabit.index.sync import Synced

_LISTED = 10  # skipped files and records that are named
# Of the words: a model does not know 8 to 12% of those of other documents like its own.
_UNKNOWN = 0.15
_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
# What must not reach a terminal: control characters, which move its cursor or set its colours, line
# breaks that only some programs know, marks that turn the direction of what follows, and halves of
# surrogate pairs.
_TURNING = "[\u202a-\u202e\u2066-\u2069]"
_ESCAPED = re.compile(f"{CONTROLS.pattern}|{_TURNING}|{HALVES.pattern}")
_ESCAPED_IN_LINES = re.compile(f"(?!\n)(?:{_ESCAPED.pattern})")
# What ends a line in some program or other, or acts on a terminal; and readers drop the mark that
# UTF-8 may begin with.
_NO_LINE = re.compile(f"{CONTROLS.pattern}|^\ufeff")


@functools.cache
def console(stderr: bool = False) -> "Console":
    """Standard output or standard error. `--json` needs neither, and is not to wait for the import of rich."""
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 - rich calls it where it caught the error, to exit with 1; for us it is none

    return PipeConsole(stderr=stderr, highlight=False, emoji=False)


def say(line: object, fold: bool = False) -> None:
    """Print a line for people, a string with markup; unless `fold`, a terminal folds it: a long path can be copied."""
    if isinstance(line, str):  # what is put into it should be escaped already, each piece by itself
        line = visible(line, lines=True)
    console().print(line, soft_wrap=not fold, width=line_width() if fold else None)


def headline(about: str, line: str) -> None:
    """What a command says first: about which index, model, corpus or file, and what."""
    say(f"[bold]{escape(about)}[/bold]: {line}")


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the singular if it is one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def complain(message: str) -> None:
    """Print an error or a warning, on one line of standard error."""
    console(stderr=True).print(f"parabit: {visible(message)}", markup=False, soft_wrap=True)


def visible(text: str, lines: bool = False) -> str:
    r"""A text in which nothing acts on a terminal: what would is escaped, as \x1b, \n or \u202e.

    Parameters:
        text: Anything that comes from documents, files, their names, or from the command line.
        lines: Whether line breaks stay as they are.

    Example:
        >>> visible("notes\n\x1b[2J.txt")
        'notes\\n\\x1b[2J.txt'
    """
    if text.isprintable():
        return text
    pattern = _ESCAPED_IN_LINES if lines else _ESCAPED
    return pattern.sub(lambda character: ascii(character[0])[1:-1], text)


def escape(value: object) -> str:
    """A value as text for a line with markup: it has no markup, and nothing acts on a terminal."""
    from rich.markup import escape

    return escape(visible(str(value)))


def line_width() -> int:
    """How wide folded lines are: as the terminal, 100 characters without one."""
    columns = os.environ.get("COLUMNS", "")
    return (
        int(columns) if columns.isdecimal() else console().width if console().is_terminal else 100
    )


def nearness(score: float, distance: int | None, bits: int) -> str:
    """How well a document fits a query; nothing if it was only listed, and has neither score nor distance."""
    if distance is None:
        return f"score {score:.2f}" if score else ""
    return f"score {score:.2f}, {distance} of {bits} bits differ"


def read_input() -> str:
    if sys.stdin is None:
        raise ParabitError("standard input is closed", hint="give it something to read")
    return sys.stdin.buffer.read().decode("utf-8-sig", "replace")


def read_ids(ended_by_nul: bool) -> list[str]:
    """The ids on standard input, as `write_ids` writes them; empty ones do not count.

    Parameters:
        ended_by_nul: Whether each id ends with NUL; otherwise each is a line.
    """
    if ended_by_nul:
        ids = read_input().split("\0")
    else:
        lines = read_input().split("\n")
        ids = [line.removesuffix("\r") for line in lines]  # Windows ends lines with both
    return [identity for identity in ids if identity]


def write_ids(ids: Sequence[str], ended_by_nul: bool) -> None:
    """Write ids for another command to standard output, always in UTF-8.

    Parameters:
        ids: Ids of documents. On a terminal what would act on it is escaped.
        ended_by_nul: Whether each id ends with NUL; otherwise each is a line.

    Raises:
        ParabitError: An id would be read as something else. Then nothing is written.
    """
    if sys.stdout is None:
        raise ParabitError("standard output is closed", hint="redirect it to a file or a pipe")
    for identity in ids:
        if "\0" in identity or HALVES.search(identity):
            hint = "delete it with --where, or in Python"
            raise ParabitError(f"the id {identity!r} cannot be written to a pipe", hint)
        if not ended_by_nul and _NO_LINE.search(identity):
            hint = "use --print0, and `parabit delete INDEX - -0`, which reads that"
            raise ParabitError(f"the id {identity!r} is not one line", hint)
    end = "\0" if ended_by_nul else "\n"
    if sys.stdout.isatty():
        ids = [visible(identity) for identity in ids]
    sys.stdout.flush()
    sys.stdout.buffer.write("".join(identity + end for identity in ids).encode())


def say_json(result: Mapping[str, Any]) -> None:
    if sys.stdout is None:
        raise ParabitError("standard output is closed", hint="redirect it to a file or a pipe")
    try:
        text = json.dumps(result, allow_nan=False)
    except ValueError:  # JSON has no such numbers
        text = json.dumps(json.loads(json.dumps(result), parse_constant=lambda _: None))
    sys.stdout.write(text + "\n")


def reading_of(corpora: "Sequence[Corpus | Synced]") -> dict[str, Any]:
    """What was skipped while reading, by reason and by name, and what else to know about it, for --json."""
    if not corpora:
        return {}
    counts: Counter[str] = sum((corpus.skipped.counts for corpus in corpora), Counter())
    places = [place._asdict() for corpus in corpora for place in corpus.skipped]
    notes = [place._asdict() for corpus in corpora for place in corpus.notes]
    return {
        "skipped": counts.total(),
        "reading": {"skipped": dict(counts), "places": places, "notes": notes},
    }


def say_skipped(result: Mapping[str, Any]) -> None:
    """The same for people, with only the first few by name, and which documents or words the model does not know."""
    if result.get("left_out"):
        say(f"  {counted(result['left_out'], 'document')} skipped: no words to be found by")
    reading = result.get("reading", {"skipped": {}, "places": [], "notes": []})
    if total := sum(reading["skipped"].values()):
        reasons = Counter(reading["skipped"]).most_common()
        say(
            f"  {total:,} skipped: {escape(', '.join(f'{count:,} {reason}' for reason, count in reasons))}"
        )
        for one in reading["places"][:_LISTED]:
            say(f"    {escape(one['place'])}: {escape(one['reason'])}")
        if total > _LISTED:
            say(f"    and {total - _LISTED:,} more; --json lists them")
    for kind in dict.fromkeys(note["reason"] for note in reading["notes"]):
        first, *more = [note["place"] for note in reading["notes"] if note["reason"] == kind]
        say(f"  {escape(kind)}: {escape(first)}" + (f" and {len(more):,} more" if more else ""))
    if result.get("unknown_words", 0) > _UNKNOWN and not result.get("retrain"):
        say(
            f"  the model does not know {result['unknown_words']:.0%} of their words; `parabit retrain` learns them"
        )


def check_file(path: Path | None, overwrite: bool, endings: tuple[str, ...] = _TABLES) -> None:
    """Find out before the work, not after, that a file could not be written."""
    from parabit.storage import need_new, need_room

    if path is None:
        return
    if path.suffix not in endings:
        raise ParabitError(
            f"{path} ends in none of {', '.join(endings)}", hint="give one of these endings"
        )
    need_new(path, overwrite)
    need_room(path)


def write_table(table: "pl.DataFrame", path: Path) -> None:
    from parabit.storage import plain_disk_errors, whole_file

    with whole_file(path) as partial, plain_disk_errors():
        if path.suffix == ".parquet":
            table.write_parquet(partial)
        elif path.suffix == ".jsonl":
            table.write_ndjson(partial)
        else:
            table.write_csv(partial, separator="," if path.suffix == ".csv" else "\t")

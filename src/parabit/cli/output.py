"""What verbs write: lines and tables for people, JSON for scripts."""

import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from parabit import __version__
from parabit.errors import ParabitError
from parabit.storage import need_room_for_file, plain_disk_errors, whole_file

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from parabit.corpus import Corpus
    from parabit.index import Piece


_WIDTH = 100  # of lines that are folded, if there is no terminal
_LISTED = 10  # skipped files and records that are named
_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
_NEEDED = ("numpy", "polars", "faiss-cpu", "tantivy", "scipy", "scikit-learn", "safetensors")
_EXTRAS = {"torch": "networks", "fastapi": "web"}  # and the extra that brings each


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - rich calls it where it caught the error, to exit with 1; for us it is none


out = _Console(highlight=False, emoji=False)
err = _Console(stderr=True, highlight=False, emoji=False)


def say(line: str) -> None:
    """A line for people, with markup; on a terminal it is folded between words, and the rest is indented."""
    show(Text.from_markup(line, emoji=False), out)


def show(line: Text, console: Console) -> None:
    """The same for a line without markup."""
    console.print(_folded(line, console.width) if console.is_terminal else line, soft_wrap=True)


def say_table(table: "Table") -> None:
    """A table, indented and only as wide as it needs to be."""
    from rich.padding import Padding

    out.print(Padding(table, (0, 0, 0, 2), expand=False), width=line_width())


def line_width() -> int:
    """How wide folded lines are: as the terminal, 100 characters without one."""
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() else out.width if out.is_terminal else _WIDTH


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


def print_json(result: Mapping[str, Any]) -> None:
    """The whole answer of a verb for scripts."""
    if sys.stdout is None:
        raise ParabitError("standard output is closed", hint="redirect it to a file or a pipe")
    sys.stdout.write(json.dumps(result) + "\n")


def readable_size(size: float) -> str:
    """A size for people.

    Example:
        >>> readable_size(16), readable_size(999.4), readable_size(12_345), readable_size(12_345_678)
        ('16 bytes', '999 bytes', '12.3 KB', '12.3 MB')
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size:.0f} bytes"


def on_one_line(value: object) -> str:
    """Without what would move the cursor of a terminal or change its colours."""
    return " ".join("".join(char if char.isprintable() else " " for char in str(value)).split())


def show_block(pieces: "Sequence[Piece]", indent: str) -> None:
    """A passage, folded and indented, with its marked words in bold."""
    text = Text()
    for piece in pieces:
        text.append(
            "".join(char if char.isprintable() or char == "\n" else " " for char in piece.text),
            "bold" if piece.mark else "",
        )
    for line in text.wrap(out, max(line_width() - len(indent), 20)):
        line.rstrip()
        out.print(Text(indent) + line, no_wrap=True, overflow="ignore", crop=False)


def reading_of(*corpora: "Corpus") -> dict[str, Any]:
    """What was skipped while reading, by reason and by name, and what else to know about it, for --json."""
    return {
        "skipped": {
            reason: sum(corpus.skipped.counts[reason] for corpus in corpora)
            for reason in dict.fromkeys(reason for corpus in corpora for reason in corpus.skipped.counts)
        },
        "places": _listed(place for corpus in corpora for place in corpus.skipped),
        "notes": _listed(place for corpus in corpora for place in corpus.notes),
    }


def _listed(places: Iterable[Any]) -> list[dict[str, str]]:
    return [place._asdict() for place in places]


def say_skipped(reading: Mapping[str, Any]) -> None:
    """The same for people, with only the first few by name."""
    counts, places = reading["skipped"], reading["places"]
    if total := sum(counts.values()):
        reasons = sorted(counts.items(), key=lambda one: -one[1])
        say(f"  {total:,} skipped: {escape(', '.join(f'{count:,} {reason}' for reason, count in reasons))}")
        for one in places[:_LISTED]:
            say(f"    {escape(one['place'])}: {escape(one['reason'])}")
        if total > _LISTED:
            say(f"    and {total - _LISTED:,} more; --json lists them")
    kinds = [one["reason"] for one in reading["notes"]]
    for kind in dict.fromkeys(kinds):
        first = next(one["place"] for one in reading["notes"] if one["reason"] == kind)
        others = f" and {kinds.count(kind) - 1:,} more" if kinds.count(kind) > 1 else ""
        say(f"  {escape(kind)}: {escape(first)}{others}")


def check_table(path: Path, overwrite: bool) -> None:
    """Find out before the work, not after, that a table could not be written."""
    if path.suffix not in _TABLES:
        raise ParabitError(f"{path} ends in none of {', '.join(_TABLES)}", hint="give one of these endings")
    if (path.exists() or path.is_symlink()) and not overwrite:
        raise ParabitError(f"{path} exists already", hint="choose another name, or replace it with --overwrite")
    need_room_for_file(path)


def write_table(table: "pl.DataFrame", path: Path) -> None:
    """A table as a file that appears when it is complete."""
    with whole_file(path) as partial, plain_disk_errors():
        if path.suffix == ".parquet":
            table.write_parquet(partial)
        elif path.suffix == ".jsonl":
            table.write_ndjson(partial)
        else:
            table.write_csv(partial, separator="," if path.suffix == ".csv" else "\t")


def versions() -> Iterator[str]:
    """The versions of parabit, of Python and of the libraries that matter, without importing these."""
    yield f"parabit {__version__}"
    yield f"Python {platform.python_version()}"
    for name in _NEEDED:
        yield f"{name} {_version(name) or 'not installed'}"
    for name, extra in _EXTRAS.items():
        found = _version(name)
        if found is None:
            yield f"{name} not installed; pip install 'parabit[{extra}]'"
        else:
            yield f"{name} {found}{_cuda(found) if name == 'torch' else ''}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cuda(torch: str) -> str:
    """The CUDA that torch was built with: its version says so, or one of the packages that came with it."""
    if built := re.search(r"\+cu(\d+)(\d)$", torch):
        return f", CUDA {built[1]}.{built[2]}"
    for needed in requires("torch") or ():
        if (runtime := re.match(r"nvidia-cuda-runtime[\w-]*|cuda-toolkit", needed)) and (found := _version(runtime[0])):
            return f", CUDA {found}"
    return ", without CUDA"

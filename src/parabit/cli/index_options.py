"""What the verbs share that make an index or use one."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from parabit.errors import ParabitError

IndexFolder = Annotated[Path, typer.Argument(metavar="INDEX", help="The folder of an index.", show_default=False)]


def readable_size(size: int) -> str:
    """A size for people.

    Example:
        >>> readable_size(999), readable_size(12_345), readable_size(12_345_678)
        ('999 bytes', '12.3 KB', '12.3 MB')
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} bytes"


def size_on_disk(about: Mapping[str, Any]) -> str:
    """What an index takes, and how much of it is the model, which does not grow."""
    model = f", {readable_size(about['model_bytes'])} of it the model" if about["model_bytes"] else ""
    return f"{readable_size(about['bytes'])} on the disk{model}"


def engine_line(engine: Mapping[str, Any]) -> str:
    """Where the documents of an index are, if not in its folder."""
    return escape(f"the documents are in {engine['uri']}: {engine['name']} {engine['version']}, {engine['collection']}")


def read_text(source: str) -> str:
    """The text of a file, or of standard input where its name is `-`."""
    if source != "-":
        try:
            content = Path(source).read_bytes()
        except OSError as problem:
            raise ParabitError(f"{source} cannot be read: {problem.strerror}", hint="give the name of a file") from None
        return content.decode("utf-8-sig", "replace")
    if sys.stdin is None:
        raise ParabitError("standard input is closed", hint="give it something to read")
    return sys.stdin.buffer.read().decode("utf-8-sig", "replace")

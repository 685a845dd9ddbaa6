"""The help of verbs, made of their doc strings."""

import inspect
import itertools
import shlex
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup


def help_of(function: Callable[..., Any] | None, width: int = 80) -> str:
    r"""A doc string as help: paragraphs that a terminal of any width can fold, and the examples, a line each.

    Example:
        >>> def cut():
        ...     '''Cut a thing.
        ...
        ...     It gets shorter
        ...     by [n]. Examples:
        ...
        ...         parabit cut
        ...
        ...         parabit cut -n 5 --with 'a knife'
        ...     '''
        >>> print(help_of(cut, width=30))
        Cut a thing.
        <BLANKLINE>
        It gets shorter by \[n]. Examples:
        <BLANKLINE>
        [not dim]    parabit cut
            parabit cut -n 5 \
                --with 'a knife'[/not dim]
    """
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    parts = []
    for is_example, group in itertools.groupby(paragraphs, key=lambda paragraph: paragraph.startswith(" ")):
        if is_example:
            parts.append(f"[not dim]{escape(chr(10).join(_folded(example, width) for example in group))}[/not dim]")
        else:
            parts += [escape(" ".join(paragraph.split())) for paragraph in group]
    return "\n\n".join(parts)


def _folded(command: str, width: int) -> str:
    """A command on as many lines as it takes, an option beside its value, so that it can still be copied."""
    indent = len(command) - len(command.lstrip())
    pieces: list[str] = []
    for word in shlex.split(command, posix=False):  # with its quotes
        if pieces and pieces[-1].startswith("-") and " " not in pieces[-1] and not word.startswith("-"):
            pieces[-1] += f" {word}"
        else:
            pieces.append(word)
    lines = [" " * indent + pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + len(piece) + len("  \\") > width:
            lines[-1] += " \\"
            lines.append(" " * 2 * indent + piece)
        else:
            lines[-1] += f" {piece}"
    return "\n".join(lines)


class _Help:
    """Help that fits the terminal. A flag is shown without a value, where typer writes `--json <bool>`."""

    callback: Callable[..., Any] | None
    help: str | None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.help = help_of(self.callback, Console().width - 2)  # with a blank on either side
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class Verb(_Help, TyperCommand):
    """A verb."""


class Verbs(_Help, TyperGroup):
    """All verbs."""

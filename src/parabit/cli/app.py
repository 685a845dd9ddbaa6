"""The verbs put together; a verb's module is imported when the verb is used."""

import inspect
import itertools
import shlex
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

# What the help lists, without importing the verbs: the first line of each one's doc string.
VERBS = {
    "Learn": {
        "train": "Learn a model from a corpus, without labels, and save it as a folder.",
        "encode": "Encode a corpus of any size with a model, in the corpus' order and in constant memory.",
    },
    "Search": {
        "index": "Encode a corpus with a trained model, and keep its codes, texts and fields to be searched.",
        "search": "Find the documents of an index that fit a text best.",
        "serve": "Search an index from a page in the browser, or from programs.",
        "mcp": "Let an assistant search an index, over standard input and output.",
        "dedupe": "Find near-duplicates: groups of documents that share at least half of their words.",
    },
    "Keep": {
        "info": "Tell what an index holds: documents, bits, room on the disk, back ends, what it keeps, what is to be "
        "merged.",
        "sync": "Bring an index up to date with its files: add what is new, replace what changed, delete what is gone.",
        "add": "Add the documents of a corpus to an index.",
        "delete": "Delete documents from an index by their ids: all of them, or, where one is not there, none.",
        "compact": "Merge what was added to an index and deleted since it was built, so that it opens and searches as "
        "fast as new.",
        "retrain": "Learn a new model from the documents of an index, and encode them again.",
    },
    "Measure": {
        "evaluate": "Measure a model on a labelled corpus: MAP, NDCG@10, precision@100 and the precision-recall curve.",
        "reproduce": "Run the paper's experiments again, and report them beside the paper's figures.",
    },
    "Look around": {
        "demo": "Learn codes for a collection, index it, measure the codes, and answer questions: all in less than two "
        "minutes.",
        "datasets": "List the data sets that parabit reads by name, whether they are here, and what each needs.",
        "vocabulary": "Count the words of a corpus, and its bigrams, and show how much of the text they cover.",
    },
}


def help_of(function: Callable[..., Any] | None, width: int = 80) -> str:
    r"""A doc string as help: paragraphs that a terminal of any width can fold, and the examples, one per line.

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
    """All verbs, listed without importing them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        for panel, verbs in VERBS.items():
            for name, summary in verbs.items():
                self.add_command(TyperCommand(name=name, help=summary, rich_help_panel=panel))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_verb(command.name or ""), rest


def load_verb(name: str) -> TyperCommand:
    """Import a verb's module and make a command of its function."""
    function = getattr(import_module(f"parabit.cli.{name}"), name)
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(name, cls=Verb, help=help_of(function))(function)
    return cast(TyperCommand, typer.main.get_command(single))


def _show_versions(wanted: bool) -> None:
    if wanted:
        from parabit.cli.command import out
        from parabit.cli.versions import version_lines

        for line in version_lines():
            out.print(line, markup=False, soft_wrap=True)
        raise typer.Exit


def _parabit(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_versions, help="Show versions."),
    ] = False,
) -> None:
    """Learn short binary codes for text documents, without labels, and search them.

    A model learns from a corpus, an index keeps the codes of documents, and a search finds those that fit a text. A
    corpus is a file or a folder of documents, - for standard input, or a data set by its name. Examples:

        parabit demo --serve  # no data needed

        parabit train papers/ -o papers-128

        parabit index papers-128 papers/ -o papers.index

        parabit search papers.index "codes of documents"

        parabit search --help
    """


app = typer.Typer(
    name="parabit",
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.callback(help=help_of(_parabit))(_parabit)

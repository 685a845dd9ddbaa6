"""The verbs put together."""

from typing import Annotated

import typer

from parabit.cli.add import add
from parabit.cli.compact import compact
from parabit.cli.datasets import datasets
from parabit.cli.delete import delete
from parabit.cli.demo import demo
from parabit.cli.encode import encode
from parabit.cli.evaluate import evaluate
from parabit.cli.frame import out
from parabit.cli.help import Verb, Verbs, help_of
from parabit.cli.index import index
from parabit.cli.info import info
from parabit.cli.pairs import pairs
from parabit.cli.reproduce import reproduce
from parabit.cli.search import search
from parabit.cli.serve import serve
from parabit.cli.train import train
from parabit.cli.vocabulary import vocabulary

_VERBS = {
    "Learn": (train, encode),
    "Search": (index, search, serve, pairs),
    "Keep": (info, add, delete, compact),
    "Measure": (evaluate, reproduce),
    "Look around": (demo, datasets, vocabulary),
}


def _tell_versions(wanted: bool) -> None:
    if wanted:
        from parabit.cli.versions import version_lines

        for line in version_lines():
            out.print(line, markup=False, soft_wrap=True)
        raise typer.Exit


def _parabit(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_tell_versions, help="Tell the versions of what matters."),
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
for _panel, _functions in _VERBS.items():
    for _function in _functions:
        app.command(cls=Verb, help=help_of(_function), rich_help_panel=_panel)(_function)

"""The verbs put together."""

from typing import Annotated

import typer

from parabit import __version__
from parabit.cli.add import add
from parabit.cli.compact import compact
from parabit.cli.datasets import datasets
from parabit.cli.delete import delete
from parabit.cli.demo import demo
from parabit.cli.encode import encode
from parabit.cli.evaluate import evaluate
from parabit.cli.frame import out
from parabit.cli.index import index
from parabit.cli.info import info
from parabit.cli.pairs import pairs
from parabit.cli.reproduce import reproduce
from parabit.cli.search import search
from parabit.cli.train import train
from parabit.cli.vocabulary import vocabulary

app = typer.Typer(
    name="parabit",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
_VERBS = (
    *(train, encode, index, search, add, delete, compact, pairs, info),
    *(evaluate, reproduce, vocabulary, datasets, demo),
)
for _function in _VERBS:
    app.command()(_function)


def _tell_version(wanted: bool) -> None:
    if wanted:
        out.print(f"parabit {__version__}")
        raise typer.Exit


@app.callback()
def _parabit(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_tell_version, help="Tell the version."),
    ] = False,
) -> None:
    """Short binary codes for text documents, learned without labels."""

"""The options of every verb that counts a vocabulary."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from parabit.cli.choices import completing

if TYPE_CHECKING:
    from parabit.text import Tokenizer

_PANEL = "The vocabulary"

Bigrams = Annotated[
    bool, typer.Option("--bigrams", help="Take pairs of neighbouring words too.", rich_help_panel=_PANEL)
]
MinCount = Annotated[
    int, typer.Option(min=1, help="Words and bigrams that occur less often are left out.", rich_help_panel=_PANEL)
]
MinBigramCount = Annotated[
    int | None,
    typer.Option(min=1, help="The same for bigrams alone.", show_default="--min-count", rich_help_panel=_PANEL),
]
MaxSize = Annotated[
    int | None,
    typer.Option(min=1, help="Keep only so many of the most frequent.", show_default="all", rich_help_panel=_PANEL),
]
Pattern = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="What a word looks like, in lower case.",
        show_default="words, numbers, c++, c#, f#, .net",
        rich_help_panel=_PANEL,
    ),
]
FoldAccents = Annotated[
    bool, typer.Option("--fold-accents", help="Remove accents: é becomes e.", rich_help_panel=_PANEL)
]
# The defaults are written out here because importing the tokenizer takes half a second; a test compares them.
MinLength = Annotated[
    int | None,
    typer.Option(min=1, help="Shorter words are left out, in characters.", show_default="2", rich_help_panel=_PANEL),
]
MaxLength = Annotated[
    int | None, typer.Option(min=1, help="Longer words are left out.", show_default="15", rich_help_panel=_PANEL)
]
StopWords = Annotated[
    str,
    typer.Option(
        metavar="english|none|FILE",
        help="Words to leave out; a file has one per line.",
        rich_help_panel=_PANEL,
        autocompletion=completing(["english", "none"]),
    ),
]


def make_tokenizer(
    pattern: str | None,
    fold_accents: bool,
    min_length: int | None,
    max_length: int | None,
    stop_words: str,
    paper: bool = False,
) -> "Tokenizer":
    """The tokenizer of these options; without any, the default one or the paper's."""
    from parabit.text import Tokenizer, read_stop_words

    given = {"pattern": pattern, "min_length": min_length, "max_length": max_length}
    base = Tokenizer.paper() if paper else Tokenizer()
    changes = {name: value for name, value in given.items() if value is not None}
    return replace(base, fold_accents=fold_accents, stop_words=read_stop_words(stop_words), **changes)  # type: ignore[arg-type]

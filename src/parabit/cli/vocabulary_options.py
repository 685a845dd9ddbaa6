"""The options of every verb that counts a vocabulary."""

from typing import Annotated

import typer

from parabit.cli.choices import completing

_PANEL = "The vocabulary"

# Written out here, as to import the tokenizer for --help takes half a second; a test compares it with the tokenizer's.
LETTERS = r"\p{L}[\p{L}\p{M}]*"

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
    str, typer.Option(metavar="REGEX", help="What a word looks like, in lower case.", rich_help_panel=_PANEL)
]
MinLength = Annotated[
    int, typer.Option(min=1, help="Shorter words are left out, in characters.", rich_help_panel=_PANEL)
]
MaxLength = Annotated[int, typer.Option(min=1, help="Longer words are left out.", rich_help_panel=_PANEL)]
StopWords = Annotated[
    str,
    typer.Option(
        metavar="english|none|FILE",
        help="Words to leave out; a file has one a line.",
        rich_help_panel=_PANEL,
        autocompletion=completing(["english", "none"]),
    ),
]

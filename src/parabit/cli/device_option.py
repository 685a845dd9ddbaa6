"""Where to train, as an option of the verbs that do."""

from typing import Annotated

import typer

from parabit.cli.command import completing

_DEVICES = ("cpu", "cuda", "auto")

Device = Annotated[
    str, typer.Option(metavar="|".join(_DEVICES), help="Where to train a network.", autocompletion=completing(_DEVICES))
]

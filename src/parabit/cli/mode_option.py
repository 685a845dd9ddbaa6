"""How documents are encoded, as an option of the verbs that encode."""

from typing import Annotated

import typer

from parabit.cli.choices import completing
from parabit.encoding.estimator import MODES

Mode = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(MODES),
        help="One sparse product a document, or gradient inference as in the paper, which needs torch. Default: the "
        "model's own, fast unless its preset is paper or its architecture dm.",
        show_default=False,
        autocompletion=completing(MODES),
    ),
]

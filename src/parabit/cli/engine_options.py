"""The options of a verb that can work on a cluster."""

from typing import Annotated

import typer

from parabit.cli.command import completing
from parabit.errors import ParabitError

ENGINES = ("local", "ray")
_PANEL = "A cluster"

Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="|".join(ENGINES),
        help="Work on this machine, or on a Ray cluster whose nodes all see the corpus, with the same result.",
        rich_help_panel=_PANEL,
        autocompletion=completing(ENGINES),
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="HOST:PORT of the cluster's head, or auto, on one of its nodes. Default: RAY_ADDRESS, or a cluster of "
        "this machine alone, until the end.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="Processes that load the model. Default: one per core of the cluster.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
WorkerCores = Annotated[
    int | None,
    typer.Option(
        "--worker-cores", min=1, help="Cores of each worker. Default: 1.", rich_help_panel=_PANEL, show_default=False
    ),
]


def on_ray(engine: str, **options: object) -> bool:
    """Whether a verb works on a cluster; options of a cluster are no use elsewhere, and that is told."""
    if engine not in ENGINES:
        raise ParabitError(f"no engine {engine!r}", hint=f"there are {' and '.join(ENGINES)}")
    if engine == "ray":
        return True
    for name, value in options.items():
        if value is not None:
            raise ParabitError(f"--{name.replace('_', '-')} is for a cluster", hint="give --engine ray, too")
    return False

"""`parabit reproduce`: the paper's tables and figures, run again."""

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, check_spelling, completing, print_json, progress, say, verb
from parabit.cli.device_option import Device
from parabit.errors import Interrupted, need

# Written out here, as to import the experiments for --help takes long; a test compares them with what there is.
WHAT = {
    "table1": "",
    "headers": "table 1 with headers kept",
    "table2": "",
    "table3": "",
    "table4": "",
    "figures": "",
    "peers": "what one would try instead",
    "everywhere": "collections that the paper does not have",
    "all": "",
}
_LISTED = ", ".join(f"{name} ({about})" if about else name for name, about in WHAT.items())


@verb
def reproduce(
    what: Annotated[
        str,
        typer.Argument(metavar="WHAT", help=f"{_LISTED}.", show_default=False, autocompletion=completing([*WHAT])),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="REPORT", help="The folder of the report.")] = Path(
        "report"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer documents, epochs and seeds: all of it in some ten minutes.")
    ] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each cell, whose mean and spread are told.")] = 3,
    corpus: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this collection; may be given again.")
    ] = None,
    job: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this job; may be given again.")] = None,
    device: Device = "auto",
    only_report: Annotated[
        bool, typer.Option("--only-report", help="Run nothing; report on the runs that are finished.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiments again, and report them beside the paper's figures.

    REPORT gets report.html, report.json and figures/. Finished runs are kept in REPORT/work: the same command goes on
    after Ctrl-C or a power cut. RCV1 and English Wikipedia are used where their data is (`parabit datasets`), and else
    stand-ins, which are named as such. Examples:

        parabit reproduce table2 --quick

        parabit reproduce all -o results
    """
    check_spelling("experiment", what, WHAT)
    need("torch", "networks")
    from parabit.paper.reproduce import Plan
    from parabit.paper.reproduce import reproduce as run

    words = ["parabit", "reproduce", what, "-o", str(output), *(["--quick"] if quick else [])]
    words += [word for name in corpus or () for word in ("--corpus", name)]
    words += [word for name in job or () for word in ("--job", name)]
    words += [*(["--seeds", str(seeds)] if seeds != 3 else []), *(["--device", device] if device != "auto" else [])]
    command = shlex.join(words)
    plan = Plan(what, quick, seeds, tuple(corpus or ()), tuple(job or ()), device, only_report)
    start = time.perf_counter()
    try:
        with progress(quiet or json) as report:
            told = run(plan, output, command, report)
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; finished runs are kept, and this goes on: {command}") from None
    counts = told.counts()
    result = {
        "report": str(output / "report.html"),
        "json": str(output / "report.json"),
        "runs": len(told.runs),
        **counts._asdict(),
        "seconds": round(time.perf_counter() - start, 3),
    }
    if json:
        print_json(result)
        return
    say(f"[bold]{escape(result['report'])}[/bold]: {len(told.tables)} tables, {len(told.figures)} figures")
    say(
        f"  beside the paper's figures: {counts.above} above, {counts.equal} equal, {counts.below} below, "
        f"{counts.missing} not run; {counts.stand_in} on stand-ins, which cannot be compared"
    )

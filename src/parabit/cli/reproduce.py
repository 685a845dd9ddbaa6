"""`parabit reproduce`: the paper's tables and figures, run again."""

import shlex
import time
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, progress, say, verb
from parabit.cli.options import Device
from parabit.errors import Interrupted, need

# Written out, as importing the experiments takes long; a test compares it with what there is.
What = Literal["table1", "headers", "table2", "table3", "table4", "figures", "peers", "everywhere", "all"]


@verb
def reproduce(
    what: Annotated[
        What,
        typer.Argument(
            metavar="WHAT",
            help="table1, headers (table 1 with headers kept), table2, table3, table4, figures, peers (what one would "
            "try instead), everywhere (other collections) or all.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="REPORT", help="The folder of the report.")] = Path(
        "report"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer documents, epochs and seeds: ten minutes.")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each cell; the report has mean and spread.")] = 3,
    corpus: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this collection; repeatable.")] = None,
    job: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this job; repeatable.")] = None,
    device: Annotated[Device, typer.Option(help="Where to train.")] = "auto",
    only_report: Annotated[bool, typer.Option("--only-report", help="Run nothing; report what is finished.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiments again.

    REPORT gets report.html, report.json and figures/, with the paper's figures beside ours. Finished runs are kept in
    REPORT/work, so the same command continues after an interrupt. RCV1 and English Wikipedia are used if they are here
    (`parabit datasets`); otherwise stand-ins are, and named as such.

    Examples:
        parabit reproduce table2 --quick
        parabit reproduce all -o results
    """
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
            made = run(plan, output, command, report)
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; finished runs are kept; continue with: {command}") from None
    counts = made.counts()
    result = {
        "report": str(output / "report.html"),
        "json": str(output / "report.json"),
        "runs": len(made.runs),
        **counts._asdict(),
        "seconds": round(time.perf_counter() - start, 3),
    }
    if json:
        print_json(result)
        return
    say(f"[bold]{escape(result['report'])}[/bold]: {len(made.tables)} tables, {len(made.figures)} figures")
    say(
        f"  beside the paper's figures: {counts.above} above, {counts.equal} equal, {counts.below} below, "
        f"{counts.missing} not run; {counts.stand_in} on stand-ins, which cannot be compared"
    )

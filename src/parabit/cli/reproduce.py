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
What = Literal["table1", "table2", "table3", "table4", "figures", "claims", "peers", "all"]


@verb
def reproduce(
    what: Annotated[
        What,
        typer.Argument(
            metavar="WHAT",
            help="table1, table2, table3, table4, figures, claims (what the paper says that it tried), peers (what one "
            "would try instead) or all.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="REPORT", help="The folder of the report.")] = Path(
        "report"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed, fewer documents and epochs of two collections.")
    ] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each cell; the report has mean and spread.")] = 3,
    corpus: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this collection; repeatable.")] = None,
    job: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this job; repeatable.")] = None,
    device: Annotated[Device, typer.Option(help="Where to train.")] = "auto",
    only_report: Annotated[bool, typer.Option("--only-report", help="Run nothing; report what is finished.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiments again.

    REPORT gets report.html with figures/, results.jsonl with every figure, and runs.jsonl with what made it. Finished
    runs are kept, so the same command continues after an interrupt; runs of older code are repeated. RCV1 and English
    Wikipedia are used if they are here (`parabit datasets`); otherwise stand-ins are, and named as such.

    Examples:
        parabit reproduce table2 --quick
        parabit reproduce all -o results
    """
    need("torch", "networks")
    from parabit.paper.report import Plan
    from parabit.paper.report import reproduce as run

    words = ["parabit", "reproduce", what, "-o", str(output), *(["--quick"] if quick else [])]
    words += [word for name in corpus or () for word in ("--corpus", name)]
    words += [word for name in job or () for word in ("--job", name)]
    words += [*(["--seeds", str(seeds)] if seeds != 3 else []), *(["--device", device] if device != "auto" else [])]
    command = shlex.join(words)
    plan = Plan(what, quick, seeds, tuple(corpus or ()), tuple(job or ()), device, only_report)
    start = time.perf_counter()
    try:
        with progress(quiet or json) as report:
            outcome = run(plan, output, command, report)
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; finished runs are kept; continue with: {command}") from None
    result = {
        "report": str(outcome.page),
        "runs": outcome.runs,
        "stale": outcome.stale,
        **outcome.compared,
        "seconds": round(time.perf_counter() - start, 3),
    }
    if json:
        print_json(result)
        return
    above, equal, below = (outcome.compared[name] for name in ("above", "equal", "below"))
    stale = f", {outcome.stale} of them stale" if outcome.stale else ""
    say(f"[bold]{escape(str(outcome.page))}[/bold]: {outcome.runs} runs{stale}")
    say(f"  20 Newsgroups beside the paper's figures: {above} above, {equal} equal, {below} below")

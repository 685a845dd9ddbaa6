"""Fills in the figures of docs/scaling.md and of its benchmark: `python docs/scaling.py`, after stage_costs.py --ship.

What `parabit plan` tells below each of its commands, and the tables between comments that name them.
"""

import json
import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from parabit.cli.app import app
from parabit.planning import Costs, Question, sizes
from parabit.planning.stages import Stage
from parabit.planning.training import Training

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
PAGES = (Path(__file__).with_name("scaling.md"), BENCHMARKS / "README.md")
RESULT = BENCHMARKS / "results" / "stage_costs.json"
_WIDTH = 100
_COMMAND = re.compile(r"(```bash\n(parabit plan [^\n]*)\n```\n\n```text\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)
_TABLE = re.compile(r"(<!-- (costs|carries) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with the figures that the code gives now."""
    tables = {"costs": costs_table(Costs.shipped()), "carries": checks_table(json.loads(RESULT.read_text())["checks"])}
    page = _TABLE.sub(lambda found: found[1] + "\n" + tables[found[2]] + "\n\n" + found[4], page)
    return _COMMAND.sub(lambda found: found[1] + told(found[2], found[3]) + found[4], page)


def told(command: str, shown: str) -> str:
    """What a command says, folded, up to where the page had `...`."""
    result = CliRunner().invoke(app, shlex.split(command)[1:], env={"COLUMNS": str(_WIDTH)})
    lines = result.stdout.splitlines()
    if cut := re.search(r"^(\w+)\n  \.\.\.$", shown, re.MULTILINE):
        lines = [*lines[: lines.index(cut[1])], cut[1], "  ..."]
    folded = [textwrap.fill(line, _WIDTH, subsequent_indent="      ") if len(line) > _WIDTH else line for line in lines]
    return "\n".join(folded) + "\n"


def costs_table(costs: Costs) -> str:
    """What each stage costs a document like those that were measured, of a corpus of a million."""
    count = 1_000_000
    question = Question(documents=count)
    one, both = Training(question, costs), Training(Question(documents=count, bigrams=True), costs)
    text = count * one.figures.characters

    def each(seconds: float) -> str:
        return f"{seconds / count * 1e6:.1f} µs"

    def bytes_of(stage: Stage) -> str:
        return f"{stage.disk / count:,.0f} bytes"

    reading, cutting = costs.seconds(read_character=text), costs.seconds(cut_character=text)
    pairs = costs.seconds(bigram_token=count * both.figures.tokens)
    start = one.starting - costs.seconds(hash_byte=one.bags_bytes)
    epoch, units = one.arithmetic / question.epochs, question.units
    tables = f"{sizes.document_tables(1, units):,} bytes"
    around = f"{sizes.surroundings(1, units, 10):,} bytes"
    codes = bytes_of(one.encoding())
    hashing = f"{(sizes.index(1, 16, 12) + sizes.hashing(count, 128) / count):,.0f} bytes"
    scanned = costs.seconds(scan_code=1, scan_byte=16) * 1e9
    rows = [
        ("stage", "a document, one core", "on disk", "in memory", "over the network"),
        ("---",) * 5,
        ("reading JSON lines", each(reading), "", "", "its text"),
        ("cutting and counting words", each(cutting), bytes_of(one.counting()), "", "counts of words"),
        ("counting bigrams", each(pairs), bytes_of(both.counting()), "", "counts of pairs"),
        ("bags", each(one.bags().seconds["cores"]), bytes_of(one.bags()), "", "to who writes them"),
        ("training: before the first step", each(start), "", around, "its bags"),
        ("training: an epoch", each(epoch), f"{tables} a checkpoint", tables, "rows of words"),
        ("encoding, with reading", each(one.encoding().seconds["cores"]), codes, "", "its text"),
        ("index", each(one.index().seconds["cores"]), hashing, "", ""),
        ("searching: a scan, a query", f"{scanned:.2f} ns", "", "16 bytes", ""),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def checks_table(checks: dict[str, Any]) -> str:
    """What was predicted beside what was measured."""
    lines = ["| what | predicted | measured | ratio |", "| --- | --- | --- | --- |"]
    named = [
        *((f"20 Newsgroups: {name}", row, _seconds) for name, row in checks["20newsgroups_seconds"].items()),
        *((f"arxiv: bytes of the {name}", row, _megabytes) for name, row in checks["bytes"].items()),
        *((f"memory of training {name}", row, _megabytes) for name, row in checks["memory"].items()),
        *(
            (f"two workers, {name}: {what}", row[what], form)
            for name, row in checks["two_workers"].items()
            for what, form in (("bytes sent", _megabytes), ("seconds", _seconds))
        ),
        *(
            (f"another machine, {name}: {what}", row[what], _megabytes if what == "bytes sent" else _seconds)
            for name, row in checks["workers"].items()
            for what in row
        ),
    ]
    for name, row, form in named:
        form = _number if name.endswith(("vocabulary", "of a document")) else form
        lines.append(f"| {name} | {form(row['predicted'])} | {form(row['measured'])} | {row['ratio']:.2f} |")
    return "\n".join(lines)


def _seconds(value: float) -> str:
    return f"{value:.3g} s"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:,.1f} MB"


def _number(value: float) -> str:
    return f"{value:,.0f}"


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text()))

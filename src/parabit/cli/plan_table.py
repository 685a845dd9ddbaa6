"""A plan as lines for people."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.markup import escape

from parabit.planning.words import count, duration, size

if TYPE_CHECKING:
    from parabit.planning import Plan, Search

# What a line tells of a stage; traffic is left out where there is none, and what is a worker's where there is no room.
_HEADS = ("stage", "time", "memory each", "disk", "traffic", "traffic each", "limited by")
_TO_THE_LEFT = ("stage", "limited by")
_GAP = "  "


def plan_lines(plan: "Plan", width: int | None = None) -> Iterator[str]:
    """A head, a line a stage, searching, where it does not work, and what it rests on; with markup."""
    question = plan.question
    workers = f"{question.workers:,} worker{'s' * (question.workers > 1)}"
    yield f"[bold]{count(question.documents)} documents[/bold], {question.bits} bits, {workers}"
    yield from _table(plan, width)
    yield f"  {_searching(plan.search, plan)}"
    if plan.warnings:
        yield "[bold]Mind[/bold]"
        for warning in plan.warnings:
            yield f"  {escape(warning)}"
    yield "[bold]Assumptions[/bold]"
    for assumption in plan.assumptions:
        yield f"  {assumption.kind}: {escape(assumption.text)}"


def _table(plan: "Plan", width: int | None) -> Iterator[str]:
    rows = [
        (
            stage.name,
            duration(stage.hours),
            size(stage.memory),
            size(stage.disk),
            size(stage.traffic),
            size(stage.traffic / stage.workers),
            stage.limited_by,
        )
        for stage in plan.stages
    ]
    rows.append(("total", duration(plan.hours), size(plan.memory), size(plan.disk), size(plan.traffic), "", ""))
    rows.append(("search", _milliseconds(plan.search.milliseconds), size(plan.search.memory), "", "", "", "memory"))
    columns = dict(zip(_HEADS, zip(*rows, strict=True), strict=True))
    left_out = ["traffic", "traffic each"] if not plan.traffic else []
    for name in (*left_out, "traffic each", "traffic", "limited by"):
        if name in columns and (name in left_out or (width is not None and len(_lines(columns)[0]) > width)):
            del columns[name]
    yield from _lines(columns)


def _lines(columns: dict[str, tuple[str, ...]]) -> list[str]:
    padded = []
    for head, cells in columns.items():
        widest = max(map(len, (head, *cells)))
        pad = str.ljust if head in _TO_THE_LEFT else str.rjust
        padded.append([pad(cell, widest) for cell in (head, *cells)])
    return [f"  {_GAP.join(row)}".rstrip() for row in zip(*padded, strict=True)]


def _searching(search: "Search", plan: "Plan") -> str:
    shards, batch = plan.question.shards, _milliseconds(search.milliseconds_in_a_batch)
    told = f"search: a query scans {size(search.bytes_read)}{f' in each of {shards} shards' if shards > 1 else ''}"
    told += f" on one core, {batch} where many are asked together"
    if search.hashing_milliseconds is not None:
        told += f"; {_milliseconds(search.hashing_milliseconds)} for near codes with hash tables"
    if search.cores_needed is not None:
        told += f"; {plan.question.queries:g} queries a second keep {search.cores_needed:,.1f} cores busy"
    return told


def _milliseconds(taken: float) -> str:
    return f"{taken:.3g} ms" if taken < 1000 else f"{taken / 1000:.3g} s"

"""What was measured of an index on Milvus, as a table: a part of milvus_search.py."""

from pathlib import Path
from typing import Any

from parabit import ParabitError

README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- milvus -->\n", "<!-- end of milvus -->\n"


def table(result: dict[str, Any]) -> str:
    """What was measured, in Markdown: the embedded index beside each kind of index on the server."""
    floor, embedded, servers = result["floor"], result["embedded"], result["servers"]

    def row(what: str, *cells: str) -> str:
        return f"| {' | '.join([what, *cells])} |"

    lines = [
        row("", "floor", "embedded", *(f"Milvus, `{server['index']}`" for server in servers)),
        row("---", "---", "---", *("---" for _ in servers)),
    ]
    for what, name, unit in (
        ("build", "build_seconds", "s"),
        ("memory", "memory_mb", "MB"),
        ("on the disk", "disk_mb", "MB"),
    ):
        lines.append(row(what, *(f"{part[name]:,} {unit}" for part in (floor, embedded, *servers))))
    for place, asked in enumerate(servers[0]["rows"]):
        rows = [server["rows"][place] for server in servers]
        for how, name, least in (
            ("alone", "alone_ms", f"{floor['alone_ms']} ms"),
            (f"of {asked['queries']} at once", "batch_ms", ""),
        ):
            theirs = (f"{one['strong'][name]} ms, bounded {one['bounded'][name]} ms" for one in rows)
            lines.append(row(f"{asked['ask']}, a query {how}", least, f"{asked['embedded'][name]} ms", *theirs))
        same = (f"{one['same_answers']} of {one['queries']}" for one in rows)
        lines.append(row(f"{asked['ask']}, the same answers", "", "", *same))
        if any(one["same_answers"] < one["queries"] for one in rows):
            lines.append(row(f"{asked['ask']}, hits found", "", "", *(f"{one['recall']:.1%}" for one in rows)))
    return "\n".join(lines) + "\n"


def fill(result: dict[str, Any], page: Path = README) -> None:
    """Put the table in its place on the page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ParabitError(f"{page} has no place for the table", hint=f"it goes between {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n{table(result)}\n{END}{after}", encoding="utf-8")


def filled(page: Path = README) -> str:
    """What stands in that place."""
    return page.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]

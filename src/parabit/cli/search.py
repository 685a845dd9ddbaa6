"""`parabit search`: the documents of an index that fit a query."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.choices import BACKENDS, RANKS
from parabit.cli.command import Json, Quiet, check_spelling, completing, out, print_json, say, verb, width_of_output
from parabit.cli.index_options import IndexFolder, read_text
from parabit.errors import ParabitError

if TYPE_CHECKING:
    from parabit.index import Hit


@verb
def search(
    index: IndexFolder,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="What to look for, or - for standard input.", show_default=False)
    ],
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, help="How many documents. Default: 10, or all within --radius.", show_default=False),
    ] = None,
    radius: Annotated[
        int | None, typer.Option(min=0, help="Only documents within so many bits.", show_default=False)
    ] = None,
    rank: Annotated[
        str | None,
        typer.Option(
            metavar="RANK",
            help="Order by words and codes together (hybrid), by words alone (words, BM25), by the distance of codes "
            "(hamming), by codes beside the query's real activations (asymmetric) or by real vectors (cosine). "
            "Default: hybrid if the index keeps words, else asymmetric.",
            show_default=False,
            autocompletion=completing(RANKS),
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Only documents with this value in a field: labels=sci.space, labels!=sci.space, year=2000..2010, "
            "year>=2000; id is a field too. A field given again with = means any of its values.",
            show_default=False,
        ),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many of the nearest codes are ranked by more than their distance. Default: 200 beside as many "
            "found by words, 1,000 without words, or all within --radius.",
            show_default=False,
        ),
    ] = None,
    backend: Annotated[
        str,
        typer.Option(
            metavar="BACKEND",
            help=f"How to search the codes, of what the index was built with: {', '.join(BACKENDS)}.",
            autocompletion=completing(BACKENDS),
        ),
    ] = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the documents of an index that fit a text best.

    Each comes with its rank, how many bits its code differs in, its score, where these bits are (a character for 8
    bits, a dot for each that differs), its id, its labels and the start of its text. Examples:

        parabit search news.index "hubble telescope repair"

        parabit search news.index "who won" -k 5 --where labels=rec.sport.hockey

        parabit search news.index - --radius 20 --json < post.txt
    """
    check_spelling("rank", rank, RANKS)
    check_spelling("back end", backend, BACKENDS)
    from parabit.cli.hits_table import hits_table
    from parabit.index import Index, conditions

    # Bytes that are no UTF-8 come from the shell as halves of surrogate pairs.
    text = read_text("-") if query == "-" else query.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not text.strip():
        raise ParabitError("the query is empty", hint="give a text, or - to read it from standard input")
    required = conditions(where)
    start = time.perf_counter()
    with Index.open(index) as opened:
        for condition in required:
            check_spelling("field", condition.field, ["id", *opened.fields])
        by = rank or opened.best_rank
        found = opened.search(
            [text], k, radius, by, where=where, candidates=candidates, backend=backend
        )  # fmt: skip
        if not found.known[0]:
            raise ParabitError(
                f"no document has a word of the query {_start(text)!r}",
                hint="use words that the documents have",
            )
        hits, differing = found[0], found.differing(0)
        as_json = [_as_json(hit) for hit in hits] if json else []  # which may read what a closed index cannot
        result: dict[str, Any] = {"index": str(index), "query": text, "rank": by, "documents": len(opened)}
    result |= {"bits": differing.shape[1], "k": k, "radius": radius, "where": where or []}
    result["seconds"] = round(time.perf_counter() - start, 3)
    if found.notes[0]:
        result["notes"] = list(found.notes[0])
    if json:
        print_json({**result, "hits": as_json})
        return
    _show(result, len(hits))
    for line in hits_table(hits, differing, width_of_output(), plain=not _writes_braille()):
        out.print(line, markup=False, no_wrap=True, overflow="ignore", crop=False)


def _writes_braille() -> bool:
    return "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()


def _as_json(hit: "Hit") -> dict[str, Any]:
    return {
        "id": hit.id,
        "title": hit.title,
        "distance": hit.distance,
        "score": round(hit.score, 6),
        "snippet": "".join(f"**{piece.text}**" if piece.mark else piece.text for piece in hit.snippet),
        "why": hit.why._asdict(),
        "text": hit.text,
        "fields": dict(hit.fields),
    }


def _start(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:60]}..."


def _show(result: dict[str, Any], count: int) -> None:
    within = "" if result["radius"] is None else f" within {result['radius']} of {result['bits']} bits"
    such = f" where {escape(', '.join(result['where']))}" if result["where"] else ""
    say(
        f"[bold]{escape(result['index'])}[/bold]: {count:,} of {result['documents']:,} documents{within}{such}, "
        f"ranked by {result['rank']}"
    )
    for note in result.get("notes", ()):
        say(f"  {note}")

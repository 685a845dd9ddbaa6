"""`parabit search`: the documents of an index that fit a query."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from parabit.choices import Backend, Rank
from parabit.cli.command import Json, Quiet, out, print_json, say, verb
from parabit.cli.options import IndexFolder
from parabit.cli.output import line_width, on_one_line, show_block
from parabit.errors import ParabitError, did_you_mean

if TYPE_CHECKING:
    from parabit.index import Hit, Hits, Index, Piece

_TUNING = "Tuning"
_INDENT = "    "
_MOST_WORDS = 8  # that are named as what moved a code


@verb
def search(
    index: IndexFolder,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="What to look for, or - for standard input.")
    ] = None,
    like: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Find documents like this one, instead of a query; repeatable."),
    ] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="How many. Default: 10, or all within --radius.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Only documents with labels=space, labels!=space, year=2000..2010 or year>=2000; repeatable. A field "
            "given twice with = may have either value.",
        ),
    ] = None,
    radius: Annotated[
        int | None, typer.Option(min=0, help="Only documents whose code differs in at most N bits.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Print whole documents, not passages.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Explain each hit: its words, its code.")] = False,
    rank: Annotated[
        Rank | None,
        typer.Option(
            metavar="NAME",
            help="hybrid (words and codes), words (BM25), hamming (codes), asymmetric (codes beside the query's real "
            "activations) or cosine (real vectors). Default: hybrid, or asymmetric without words.",
            rich_help_panel=_TUNING,
        ),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many of the nearest codes to rank. Default: 200, or 1,000 without words.",
            rich_help_panel=_TUNING,
        ),
    ] = None,
    backend: Annotated[
        Backend,
        typer.Option(metavar="NAME", help="Search codes by auto, flat, tables or multi.", rich_help_panel=_TUNING),
    ] = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the documents that fit a query best.

    A query may have operators: "a phrase", +must, -not, word*, field:value.

    Examples:
        parabit search news.index "hubble telescope repair"
        parabit search news.index "who won" -k 5 --where labels=rec.sport.hockey
        parabit search news.index --like sci.space/60840 --explain
        parabit search news.index - --json < post.txt
    """
    from parabit.index import Index, conditions

    if (query is None) == (not like):
        raise typer.BadParameter("give either a query or --like", param_hint="QUERY")
    text = None if query is None else _text(query)
    required = conditions(where)
    start = time.perf_counter()
    with Index.open(index) as opened:
        for condition in required:
            _need_field(condition.field, ["id", *opened.fields])
        how: dict[str, Any] = {"where": where, "candidates": candidates, "backend": backend}
        if text is None:
            ids = opened.ids_of(like or [])
            found = opened.like(ids, k, radius, rank, **how)
        else:
            ids, found = [], opened.search([text], k, radius, rank, **how)
            if not found.known[0]:
                raise ParabitError(
                    f"no document has a word of the query {_start(text)!r}", hint="use words that the documents have"
                )
        by = rank or (opened.best_rank if text is not None or opened.keeps_text else "hamming")
        result: dict[str, Any] = {"index": str(index), "query": text, "like": ids, "rank": by}
        result |= {"documents": len(opened), "bits": opened.bits, "k": k, "radius": radius, "where": where or []}
        result["seconds"] = round(time.perf_counter() - start, 3)
        result["notes"] = [note for notes in found.notes for note in notes]
        if explain and text is not None:
            result["moved"] = opened.model.word_shares(text)
        if json:  # while the index is open, from which the texts are read
            hits = [_as_json(hit, ids[number] if ids else None) for number, some in enumerate(found) for hit in some]
            print_json({**result, "hits": hits})
        else:
            _show(opened, found, result, full, explain)


def read_input() -> str:
    """The whole of standard input."""
    if sys.stdin is None:
        raise ParabitError("standard input is closed", hint="give it something to read")
    return sys.stdin.buffer.read().decode("utf-8-sig", "replace")


def _text(query: str) -> str:
    # Bytes that are no UTF-8 come from the shell as halves of surrogate pairs.
    text = read_input() if query == "-" else query.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not text.strip():
        raise ParabitError("the query is empty", hint="give a text, or - to read it from standard input")
    return text


def _need_field(field: str, known: list[str]) -> None:
    if field not in known and (hint := did_you_mean(field, known)):
        raise ParabitError(f"no field {field!r}", hint=f"{hint} There are {', '.join(known)}")


def _start(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:60]}..."


def _as_json(hit: "Hit", like: str | int | None) -> dict[str, Any]:
    return {
        **({} if like is None else {"like": like}),
        "id": hit.id,
        "title": hit.title,
        "distance": hit.distance,
        "score": round(hit.score, 6),
        "snippet": "".join(f"**{piece.text}**" if piece.mark else piece.text for piece in hit.snippet),
        "why": hit.why._asdict(),
        "text": hit.text,
        "fields": dict(hit.fields),
    }


def _show(opened: "Index", found: "Hits", result: Mapping[str, Any], full: bool, explain: bool) -> None:
    from parabit.index import Piece, marked

    conditions = [f"within {result['radius']} bits"] if result["radius"] is not None else []
    conditions += [f"where {' and '.join(result['where'])}"] if result["where"] else []
    for number, hits in enumerate(found):
        like = [f"like {on_one_line(result['like'][number])}"] if result["like"] else []
        which = "".join(f" {part}" for part in (*like, *conditions))
        say(f"[dim]{len(hits):,} of {result['documents']:,} documents{escape(which)}, by {result['rank']}[/dim]")
        for note in found.notes[number]:
            say(f"{escape(note)}")
        if result.get("moved"):
            shares = list(result["moved"].items())[:_MOST_WORDS]
            say(f"the query's code comes from {escape(', '.join(f'{word} {share:.0%}' for word, share in shares))}")
        for place, hit in enumerate(hits, 1):
            words = found.matching(number, hit.text) if full or explain else set()
            if full:
                show_hit(hit, place, marked(opened.model.vocabulary.tokenizer, hit.text, words))
            else:
                show_hit(hit, place, _after_title(hit.snippet, hit.title))
            if explain:
                own = [*(result["query"] or "").lower().split(), *sorted(words)]
                show_block([Piece(_why(hit, own), False)], _INDENT)


def _after_title(passage: "Sequence[Piece]", title: str) -> "list[Piece]":
    """A passage on one line, without the title if it begins with that."""
    pieces = [piece._replace(text=" ".join(f"|{piece.text}|".split())[1:-1]) for piece in passage]
    title = title.removesuffix("…")
    left = len(title) if "".join(piece.text for piece in pieces).startswith(title) else 0
    kept = []
    for piece in pieces:
        if left < len(piece.text):
            kept.append(piece._replace(text=piece.text[left:]))
        left = max(0, left - len(piece.text))
    kept[:1] = [piece._replace(text=piece.text.lstrip()) for piece in kept[:1]]
    return [piece for piece in kept if piece.text]


def show_hit(hit: "Hit", place: int, passage: "Sequence[Piece]" = ()) -> None:
    """A hit for people: its title, what it is and how near, and a passage with the words of the query in bold."""
    width = line_width()
    more = "…" if "utf" in out.encoding.lower() else "..."
    stored = hit.fields.get("labels") or []
    labels = [
        label for label in ([stored] if isinstance(stored, str) else stored) if label not in str(hit.id).split("/")
    ]
    name = " · ".join(map(on_one_line, [hit.id, *labels]))
    figures = f"  score {hit.score:.2f}, {hit.distance} of {hit.why.bits} bits"
    title = Text(f"{place:>2}. ").append(_cut(on_one_line(hit.title), width - len(_INDENT), more), "bold")
    origin = Text(_INDENT).append(_cut(name, width - len(_INDENT) - len(figures), more)).append(figures, "dim")
    for line in (*([Text()] if passage else []), title, origin):
        out.print(line, no_wrap=True, overflow="ignore", crop=False)
    if passage:
        show_block(passage, _INDENT)


def _cut(text: str, width: int, more: str) -> str:
    line = Text(text)
    if line.cell_len > max(width, 12):
        line.truncate(max(width, 12) - len(more))
        return f"{line.plain.rstrip()}{more}"
    return text


def _written(stem: str, words: "Sequence[str]") -> str:
    """A stem as the query writes it, or else the text."""
    return next((word for word in words if word.startswith(stem[: max(3, len(stem) - 1)])), stem)


def _why(hit: "Hit", words: "Sequence[str]") -> str:
    """What a score is made of."""
    why = hit.why
    whole = sum(why.words.values()) + max(why.code, 0.0)
    near = f"{why.bits - why.distance} of {why.bits} bits of the code agree"
    if whole <= 0:
        return near
    shares = [f"{_written(stem, words)} {share / whole:.0%}" for stem, share in why.words.items()]
    return f"why: {', '.join([*shares, f'code {max(why.code, 0.0) / whole:.0%}'])}; {near}"

"""`parabit search`: the documents of an index that fit a query."""

import functools
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

import parabit
from parabit.choices import RANKS, Backend, Rank
from parabit.cli.command import IndexFolder, argument, option, verb
from parabit.cli.output import (
    console,
    counted,
    escape,
    line_width,
    nearness,
    read_input,
    say,
    say_json,
    visible,
)
from parabit.errors import ParabitError

if TYPE_CHECKING:
    from rich.text import Text

    from parabit.index import Hit, Hits, Piece

_CONDITIONS = (
    "labels!=a, year=2000..2010, year>=2000: all must hold, but one of labels=a, labels=b."
)
_tune = functools.partial(option, panel="Tuning")
_INDENT = "    "


@verb()
def search(
    index: IndexFolder,
    query: Annotated[
        str | None, argument("What to look for, or - for standard input.", "QUERY")
    ] = None,
    like: Annotated[
        list[str] | None, option("Find documents like this one; repeatable.", "ID")
    ] = None,
    k: Annotated[
        int | None, option("How many. Default: 10, or all within --radius.", "-k", min=1)
    ] = None,
    where: Annotated[list[str] | None, option(_CONDITIONS, "CONDITION")] = None,
    radius: Annotated[
        int | None, option("Only documents whose code differs in at most N bits.", min=0)
    ] = None,
    full: Annotated[bool, option("Print whole documents, not passages.", "--full")] = False,
    explain: Annotated[bool, option("Explain each hit: its words, its code.", "--explain")] = False,
    rank: Annotated[
        Rank | None, _tune(f"One of {', '.join(RANKS)}. Default: the best.", "NAME")
    ] = None,
    backend: Annotated[Backend, _tune("Search codes by auto, flat or hashing.", "NAME")] = "auto",
    *,
    json: bool,
) -> None:
    """Find the documents that fit a query best.

    A query may have operators: "a phrase", +must, -not, word*, field:value.

    Examples:
        parabit search news.index "hubble telescope repair"
        parabit search news.index "who won" -k 5 --where labels=rec.sport.hockey
        parabit search news.index --like sci.space/60840 --explain
        parabit search news.index - --json < post.txt
    """
    if (query is None) == (not like):
        raise typer.BadParameter("give either a query or --like", param_hint="QUERY")
    text = query
    if (
        query is not None
    ):  # bytes that are no UTF-8 come from the shell as halves of surrogate pairs
        text = (
            read_input()
            if query == "-"
            else query.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        )
        if not text.strip():
            raise ParabitError(
                "the query is empty", hint="give a text, or - to read it from standard input"
            )
    start = time.perf_counter()
    with parabit.Index.open(index) as opened:
        how: dict[str, Any] = {"where": where, "backend": backend}
        if text is None:
            ids = opened.ids_of(like or [])
            found = opened.like(ids, k, radius, rank, **how)
        else:
            ids, found = [], opened.search([text], k, radius, rank, **how)
        result: dict[str, Any] = {
            "index": str(index),
            "query": text,
            "like": ids,
            "rank": found.rank,
            "documents": len(opened),
            "bits": opened.bits,
            "k": k,
            "radius": radius,
            "where": where or [],
            "seconds": round(time.perf_counter() - start, 3),
            "notes": [note for notes in found.notes for note in notes],
        }
        if explain and text is not None:
            result["moved"] = opened.model.word_shares(found.texts[0])
        if json:  # while the index is open, from which the texts are read
            hits = [
                _as_json(hit, ids[number] if ids else None)
                for number, some in enumerate(found)
                for hit in some
            ]
            say_json({**result, "hits": hits})
        else:
            _show(opened, found, result, full, explain)


def _as_json(hit: "Hit", like: str | int | None) -> dict[str, Any]:
    return {
        **({} if like is None else {"like": like}),
        "id": hit.id,
        "title": hit.title,
        "distance": hit.distance,
        "score": round(hit.score, 6),
        "snippet": "".join(
            f"**{piece.text}**" if piece.mark else piece.text for piece in hit.snippet
        ),
        "why": hit.why._asdict(),
        "text": hit.text,
        "fields": dict(hit.fields),
    }


def _show(
    opened: "parabit.Index", found: "Hits", result: Mapping[str, Any], full: bool, explain: bool
) -> None:
    from rich.text import Text

    from parabit.index import marked

    limits = f" within {result['radius']} bits" if result["radius"] is not None else ""
    limits += f" where {' and '.join(result['where'])}" if result["where"] else ""
    for number, hits in enumerate(found):
        like = f" like {result['like'][number]}" if result["like"] else ""
        documents = counted(result["documents"], "document")
        say(f"[dim]{len(hits):,} of {documents}{escape(like + limits)}, by {result['rank']}[/dim]")
        for note in found.notes[number]:
            say(escape(note))
        if result.get("moved"):
            shares = list(result["moved"].items())[:8]
            say(
                f"the query's code comes from {escape(', '.join(f'{word} {share:.0%}' for word, share in shares))}"
            )
        for place, hit in enumerate(hits, 1):
            if full:
                words = found.matching(number, hit.text)
                passage = _joined(
                    marked(opened.model.vocabulary.tokenizer, hit.text, words), lines=True
                )
            else:
                passage = _joined(hit.snippet)  # without the title, if it begins with that
                rest = passage.plain.lstrip().removeprefix(hit.title.removesuffix("…")).lstrip()
                passage = passage[len(passage) - len(rest) :]
            _show_hit(hit, place, passage, opened.bits)
            if explain:
                _show_block(Text(visible(_why(hit))))


def _joined(passage: "Sequence[Piece]", lines: bool = False) -> "Text":
    """A passage with its marked words in bold."""
    from rich.text import Text

    return Text.assemble(
        *((_flat(piece.text, lines), "bold" if piece.mark else "") for piece in passage)
    )


def _show_hit(hit: "Hit", place: int, passage: "Text", bits: int) -> None:
    """A hit for people: its title, what it is and how near, and a passage."""
    from rich.text import Text

    room, stored = line_width() - len(_INDENT), hit.fields.get("labels") or []
    labels = [stored] if isinstance(stored, str) else stored
    other_labels = [str(label) for label in labels if label not in str(hit.id).split("/")]
    name = " · ".join(visible(word) for word in [str(hit.id), *other_labels])
    figures = nearness(hit.score, hit.distance, bits)
    figures = f"  {figures}" if figures else ""
    title = Text(f"{place:>2}. ").append(_cut(hit.title, room), "bold")
    origin = Text(_INDENT).append(_cut(name, room - len(figures))).append(figures, "dim")
    for line in (*([Text()] if passage else []), title, origin):
        say(line)
    _show_block(passage)


def _show_block(text: "Text") -> None:
    from rich.text import Text

    for line in text.wrap(console(), max(line_width() - len(_INDENT), 20)) if text else ():
        line.rstrip()
        say(Text(_INDENT).append_text(line))


def _flat(text: str, lines: bool = False) -> str:
    """A text without tabs and what acts on a terminal, on one line or with its own `lines`."""
    if lines:
        return visible(re.sub(r"[^\S\n]", " ", text), lines=True)
    return visible(re.sub(r"\s+", " ", text))


def _cut(text: str, width: int) -> str:
    from rich.text import Text

    line = Text(_flat(text).strip())
    line.truncate(max(width, 9), overflow="ellipsis")
    return line.plain


def _why(hit: "Hit") -> str:
    why = hit.why
    whole = sum(why.words.values()) + max(why.code, 0.0)
    if whole <= 0:
        return ""
    shares = [f"{word} {share / whole:.0%}" for word, share in why.words.items()]
    return f"why: {', '.join([*shares, f'code {max(why.code, 0.0) / whole:.0%}'])}"

"""`parabit mcp`: an index for assistants, by the Model Context Protocol."""

import functools
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

from parabit import __version__
from parabit.cli.command import verb
from parabit.cli.dedupe import as_json
from parabit.cli.options import IndexFolder
from parabit.errors import ParabitError, need

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from parabit.index import Hits, Index

_LONGEST = 20_000  # characters of a document that are sent at a time


@verb(common=False)
def mcp(index: IndexFolder) -> None:
    """Let an assistant search an index.

    It speaks the Model Context Protocol over standard input and output. The assistant starts the command itself: name
    it in the assistant's settings. What another process adds to the index is found at once.

    Examples:
        parabit mcp notes.index
    """
    need("mcp", "mcp")
    from parabit.index import Index

    # Ctrl-C is one way to end it; the other is to close standard input.
    with Index.open(index) as opened, suppress(KeyboardInterrupt):
        make_server(opened).run("stdio")


def make_server(index: "Index") -> "MCPServer[Any]":
    """The tools: search, like, document and duplicates."""
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from pydantic import Field

    fields = f" Fields: {', '.join(index.fields)}." if index.fields else ""
    server: MCPServer[Any] = MCPServer(
        "parabit",
        version=__version__,
        instructions=f"Search {len(index):,} documents by meaning and by words.{fields} Start with `search`; read "
        "whole texts with `document`.",
        log_level="ERROR",
    )
    one_at_a_time = Lock()

    def tool(function: Callable[..., Any]) -> Callable[..., Any]:
        @server.tool()
        @functools.wraps(function)
        def run(*given: Any, **named: Any) -> Any:
            with one_at_a_time:
                try:
                    index.refresh()
                    return function(*given, **named)
                except ParabitError as problem:
                    raise ToolError(str(problem)) from problem

        return run

    identity = Annotated[str, Field(description="The id of a document, as `search` gives it.")]
    count = Annotated[int, Field(description="How many documents to return at most.", ge=1, le=100)]
    conditions = Annotated[
        list[str] | None,
        Field(description=f"Conditions that must all hold: labels=space, year=2000..2010, year>=2000, a!=b.{fields}"),
    ]

    @tool
    def search(
        query: Annotated[str, Field(description='Words or a question. "a phrase", +must and -not are understood.')],
        k: count = 10,
        where: conditions = None,
    ) -> dict[str, Any]:
        """Find the documents that fit a query best, by meaning and by words: id, title and the passage that fits."""
        return _answer(index.search([query], k, where=where))

    @tool
    def like(id: identity, k: count = 10, where: conditions = None) -> dict[str, Any]:
        """Find the documents that are most like one of the index."""
        return _answer(index.like(index.ids_of([id]), k, where=where))

    @tool
    def document(
        id: identity,
        start: Annotated[int, Field(description="The first character to return, for long texts.", ge=0)] = 0,
    ) -> dict[str, Any]:
        """Read a document: its text and its fields. A long text comes in parts; `next_start` says where it goes on."""
        [stored] = index.stored(index.ids_of([id]))
        end = start + _LONGEST
        more = {"next_start": end} if end < len(stored.text) else {}
        return {"id": stored.id, "text": stored.text[start:end], "fields": dict(stored.fields), **more}

    @tool
    def duplicates(
        k: Annotated[int, Field(description="How many groups at most.", ge=1)] = 50,
    ) -> dict[str, Any]:
        """Find near-duplicates: groups of documents that share at least half of their words, the largest first."""
        groups = sorted(index.duplicates(), key=lambda group: -len(group.copies))
        return {"groups": [*map(as_json, groups[:k])], "found": len(groups)}

    return server


def _answer(hits: "Hits") -> dict[str, Any]:
    found = [
        {
            "id": hit.id,
            "title": hit.title,
            "passage": "".join(piece.text for piece in hit.snippet),
            "fields": {name: value for name, value in hit.fields.items() if name != "title"},
            "score": round(float(hit.score), 4),
        }
        for hit in hits[0]
    ]
    return {"hits": found, "notes": list(hits.notes[0])}

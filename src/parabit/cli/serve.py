"""`parabit serve` and `mcp`: an index for the browser, for programs and for assistants."""

import functools
import gc
import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

import parabit
from parabit.cli.command import IndexFolder, option, verb
from parabit.cli.dedupe import as_json
from parabit.cli.output import complain, counted, escape, say, say_json
from parabit.errors import ParabitError, need

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from parabit.index import Hits

TOKEN = "PARABIT_TOKEN"
_LONGEST = 20_000  # characters of a document that are sent at a time


@verb()
def serve(
    index: IndexFolder,
    host: Annotated[
        str, option("The address to listen on; 0.0.0.0: all of them.", "ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, option("0 for any that is free.", min=0, max=65535)] = 8000,
    title: Annotated[
        str | None, option("The title of the page. Default: the index's name.", "TEXT")
    ] = None,
    token: Annotated[
        str | None, option(f"Ask for this bearer token; safer in {TOKEN}.", "TOKEN", envvar=TOKEN)
    ] = None,
    most_hits: Annotated[
        int, option("How many hits a search may ask for.", min=1, max=10_000)
    ] = 100,
    seconds: Annotated[float, option("How long a request may take.", min=0.1)] = 10.0,
    map: Annotated[bool, option("Draw a map of the documents.", "--map/--no-map")] = True,
    browse: Annotated[bool, option("Open the page in a browser.", "--open")] = False,
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Search an index in the browser, or from programs.

    /docs describes the JSON API, /healthz is for monitoring. What is added to the index meanwhile is found within a
    second. It listens on this machine alone; on another address everybody who reaches it can read the documents, unless
    you set a token. Stop it with Ctrl-C.

    Examples:
        parabit serve news.index --open
        PARABIT_TOKEN=$(openssl rand -hex 16) parabit serve news.index --host 0.0.0.0
    """
    for library in ("fastapi", "uvicorn"):
        need(library, "web")
    if map and find_spec("openTSNE") is None:  # not imported: another process draws
        need("openTSNE", "web")
    import uvicorn

    from parabit.web import Settings, create_app

    if token is not None and (
        not token or not token.isascii() or not token.isprintable() or " " in token
    ):
        raise ParabitError(
            "the token is empty, or has characters that no header takes",
            hint="use letters and digits",
        )
    local = host in ("localhost", "::1") or host.startswith(
        "127."
    )  # reached from this machine alone
    settings = Settings(
        local=local, title=title, token=token, most_hits=most_hits, seconds=seconds, map=map
    )
    with _listening(host, port) as listener:
        app = create_app(index, settings)
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        if not local and token is None:
            complain(
                f"everybody who reaches {address} can read the documents; set {TOKEN} to protect them"
            )
        if json:
            say_json({"index": str(index), "address": address})
            sys.stdout.flush()
        elif not quiet:
            say(
                f"[bold]{escape(index)}[/bold] is at [bold]{escape(address)}[/bold], its API at /docs; Ctrl-C stops it"
            )
        if browse:
            webbrowser.open(address)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="on",
        )
        gc.freeze()  # what is loaded now stays; to look through it for garbage took a seventh of the time of an answer
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:  # the way to end it
            if not (quiet or json):
                say("stopped")


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as problem:
        reason = str(getattr(problem, "strerror", problem)).partition(" (while")[0]
        hint = "choose another --port, 0 for any that is free, or another --host"
        raise ParabitError(f"cannot listen on {host}:{port}: {reason}", hint=hint) from problem


@verb(common=False)
def mcp(index: IndexFolder) -> None:
    """Let an assistant search an index.

    It speaks the Model Context Protocol over standard input and output. The assistant starts the command itself: name
    it in the assistant's settings. What another process adds to the index is found at once.

    Examples:
        parabit mcp notes.index
    """
    need("mcp", "mcp")
    # Ctrl-C is one way to end it; the other is to close standard input.
    with parabit.Index.open(index) as opened, suppress(KeyboardInterrupt):
        make_server(opened).run("stdio")


def make_server(index: "parabit.Index") -> "MCPServer[Any]":
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from pydantic import Field

    fields = f" Fields: {', '.join(index.fields)}." if index.fields else ""
    about = f"Search {counted(len(index), 'document')} by meaning and by words.{fields}"
    how = f"{about} Start with `search`; read whole texts with `document`."
    server: MCPServer[Any] = MCPServer(
        "parabit", version=parabit.__version__, instructions=how, log_level="ERROR"
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
        Field(
            description=f"Conditions that must all hold: labels=space, year=2000..2010, year>=2000, a!=b.{fields}"
        ),
    ]

    @tool
    def search(
        query: Annotated[
            str,
            Field(description='Words or a question. "a phrase", +must and -not are understood.'),
        ],
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
        start: Annotated[
            int, Field(description="The first character to return, for long texts.", ge=0)
        ] = 0,
    ) -> dict[str, Any]:
        """Read a document: its text and its fields. A long text comes in parts; `next_start` says where it goes on."""
        [stored] = index.stored(index.ids_of([id]))
        end = start + _LONGEST
        more = {"next_start": end} if end < len(stored.text) else {}
        return {
            "id": stored.id,
            "text": stored.text[start:end],
            "fields": dict(stored.fields),
            **more,
        }

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

"""`parabit serve` and `mcp`: an index for the browser, for programs and for assistants."""

import functools
import gc
import json as json_format
import os
import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from logging import getLogger
from threading import Lock, Thread
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import parabit
from parabit.budget import (
    LONGEST_QUERY,
    LONGEST_REQUESTED_ID,
    LONGEST_VALUE,
    MOST_CONDITIONS,
    check_time,
    deadline,
)
from parabit.cli.command import IndexFolder, option, verb
from parabit.cli.dedupe import as_json
from parabit.cli.output import complain, counted, escape, say, say_json
from parabit.errors import ParabitError, need

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from parabit.index import Hits

TOKEN = "PARABIT_TOKEN"
_LONGEST = 20_000  # characters of a document that are sent at a time
# Seconds that a tool may take. Assistants wait for a minute; near-duplicates are looked for in all
# documents.
_TOOL_SECONDS = 20.0
_DUPLICATES_SECONDS = 55.0
# Bytes of a message of an assistant: a query of 100,000 characters takes 1.2 MB at most.
_LONGEST_MESSAGE = 1 << 22
_log = getLogger(__name__)


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
    no_token: Annotated[
        bool, option("Let everybody in who reaches another address.", "--no-token")
    ] = False,
    allowed_host: Annotated[
        list[str] | None,
        option("Another name by which the server is reached; repeatable.", "NAME"),
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
    second. It listens on this machine alone. On another address it needs a token, or --no-token,
    with which everybody who reaches it can read the documents. It answers to addresses and to the
    name of this machine; behind a proxy, give the name that people use with --allowed-host. Stop it
    with Ctrl-C.

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
    from parabit.web.connections import uvicorn_config

    _check_access(host, token, no_token)
    local = _is_local(host)
    settings = Settings(
        local=local,
        allowed_hosts=[_host_name(name) for name in [*(allowed_host or ()), host]],
        title=title,
        token=token,
        most_hits=most_hits,
        seconds=seconds,
        map=map,
    )
    with _listening(host, port) as listener:
        app = create_app(index, settings)
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        if not local and token is None:
            complain(f"everybody who reaches {address} can read the documents")
        if json:
            say_json({"index": str(index), "address": address})
            sys.stdout.flush()
        elif not quiet:
            say(
                f"[bold]{escape(index)}[/bold] is at [bold]{escape(address)}[/bold], its API at /docs; Ctrl-C stops it"
            )
        if browse:
            webbrowser.open(address)
        # A request of a megabyte can have 250,000 lists: with Python's default of 700 objects they
        # took three times as long to read.
        gc.set_threshold(50_000, 20, 20)
        # What is loaded now stays: looking through it for garbage took a seventh of the time of an
        # answer.
        gc.freeze()
        try:
            uvicorn.Server(uvicorn_config(app)).run(sockets=[listener])
        except KeyboardInterrupt:  # the way to end it
            if not (quiet or json):
                say("stopped")


def _is_local(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    return host in ("localhost", "::1") or host.startswith("127.")


def _check_access(host: str, token: str | None, no_token: bool) -> None:
    """Raise unless it is clear who is let in: this machine, who has a token, or everybody."""
    if token is not None and (
        not token or not token.isascii() or not token.isprintable() or " " in token
    ):
        raise ParabitError(
            "the token is empty, or has characters that no header takes",
            hint="use letters and digits",
        )
    if no_token and token is not None:
        raise ParabitError(
            "--no-token lets everybody in, and a token is set",
            hint=f"leave out one of them; the token may be in {TOKEN}",
        )
    if not _is_local(host) and token is None and not no_token:
        raise ParabitError(
            f"others can reach {host}, and no token is set",
            hint=f"set one, as in {TOKEN}=$(openssl rand -hex 16), "
            "or let everybody in with --no-token",
        )


def _host_name(name: str) -> str:
    """A name that the server is to answer to, checked, without its port."""
    if not name or not name.isascii() or any(letter in "/[]*@ " for letter in name):
        raise ParabitError(
            f"{name!r} is not the name of a host", hint="give it as in search.example.com"
        )
    if name.count(":") > 1:  # an address of IPv6
        return name
    return name.partition(":")[0]


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
        server = make_server(opened)
        _clean_standard_input()
        server.run("stdio")


def _clean_standard_input() -> None:
    """Have a thread clean what an assistant sends: some of it the SDK would not answer."""
    real_input = os.fdopen(os.dup(0), "rb")
    reading_end, writing_end = os.pipe()
    os.dup2(reading_end, 0)
    os.close(reading_end)
    Thread(target=_copy_messages, args=(real_input, writing_end), daemon=True).start()


def _copy_messages(source: BinaryIO, target: int) -> None:
    """Copy lines with a message each until there are no more; one that is too long is left out."""
    with source, os.fdopen(target, "wb") as cleaned, suppress(BrokenPipeError):
        while line := source.readline(_LONGEST_MESSAGE):
            if len(line) == _LONGEST_MESSAGE and not line.endswith(b"\n"):
                _log.error("a message of more than %s bytes is left out", f"{_LONGEST_MESSAGE:,}")
                while line and not line.endswith(b"\n"):
                    line = source.readline(_LONGEST_MESSAGE)
                continue
            cleaned.write(clean_message(line))
            cleaned.flush()


def clean_message(line: bytes) -> bytes:
    r"""A message that every reader of JSON takes: whole characters, and at most 100 levels deep.

    Parameters:
        line: The message; what cannot be read is returned as it is.

    Example:
        >>> clean_message(rb'{"query": "a\ud800"}').decode()
        '{"query":"a�"}\n'
    """
    from parabit.plain_json import as_json, plain

    try:
        return as_json(plain(json_format.loads(line))) + b"\n"
    except (ValueError, RecursionError):
        return line


def make_server(index: "parabit.Index") -> "MCPServer[Any]":
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from pydantic import Field

    from parabit.plain_json import plain

    fields = f" Fields: {', '.join(index.fields)}." if index.fields else ""
    about = f"Search {counted(len(index), 'document')} by meaning and by words.{fields}"
    how = f"{about} Start with `search`; read whole texts with `document`."
    server: MCPServer[Any] = MCPServer(
        "parabit", version=parabit.__version__, instructions=how, log_level="ERROR"
    )
    one_at_a_time = Lock()

    def tool(function: Callable[..., Any]) -> Callable[..., Any]:
        seconds = _DUPLICATES_SECONDS if function.__name__ == "duplicates" else _TOOL_SECONDS

        @server.tool()
        @functools.wraps(function)
        def run(*given: Any, **named: Any) -> Any:
            with one_at_a_time:
                try:
                    with deadline(seconds):
                        index.refresh()
                        return plain(function(*given, **named))
                except ParabitError as problem:
                    raise ToolError(plain(str(problem)[:_LONGEST])) from problem
                except Exception as problem:
                    # In words, too, so that the assistant goes on.
                    _log.exception("%s failed", function.__name__)
                    error = f"{function.__name__} failed: {type(problem).__name__}"
                    raise ToolError(f"{error}; ask in another way") from problem

        return run

    identity = Annotated[
        str,
        Field(
            description="The id of a document, as `search` gives it.",
            max_length=LONGEST_REQUESTED_ID,
        ),
    ]
    count = Annotated[int, Field(description="How many documents to return at most.", ge=1, le=100)]
    conditions = Annotated[
        list[Annotated[str, Field(max_length=LONGEST_VALUE)]] | None,
        Field(
            max_length=MOST_CONDITIONS,
            description="Conditions that must all hold: labels=space, year=2000..2010, year>=2000, "
            f"a!=b.{fields}",
        ),
    ]

    @tool
    def search(
        query: Annotated[
            str,
            Field(
                description='Words or a question. "a phrase", +must and -not are understood.',
                max_length=LONGEST_QUERY,
            ),
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
        groups = index.duplicates(report=lambda _: check_time())
        groups.sort(key=lambda group: -len(group.copies))
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

"""`parabit serve`: the search page of an index."""

import errno
import ipaddress
import os
import socket
import webbrowser
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from parabit.cli.command import Quiet, err, say, verb
from parabit.cli.index_options import IndexFolder
from parabit.errors import ParabitError, need

TOKEN = "PARABIT_TOKEN"


@verb
def serve(
    index: IndexFolder,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 for all of this machine's.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes one that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar=TOKEN,
            help="What every request must show, as `Authorization: Bearer TOKEN`. Better in the environment, where "
            "others on this machine cannot read it.",
            show_default=False,
            show_envvar=True,
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="The title of the page. Default: the name of the index.", show_default=False)
    ] = None,
    most_hits: Annotated[int, typer.Option(min=1, max=10_000, help="How many hits a search may ask for.")] = 100,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long a request may take.")] = 10.0,
    map: Annotated[bool, typer.Option("--map/--no-map", help="Draw a map of the documents.")] = True,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    quiet: Quiet = False,
) -> None:
    """Search an index from a page in the browser, or from programs.

    The page finds as you type, shows why each document was found, and has a map of the collection, which is drawn once
    and kept in the index's folder. /docs describes the JSON API, /healthz and /metrics are for those who look after it.
    What others add to the index while it is served is found within a second.

    It listens on this machine alone. On another address anybody who reaches it can read the documents, unless you set a
    token. Stop it with Ctrl-C. Examples:

        parabit serve news.index

        parabit serve news.index --port 9000 --open

        PARABIT_TOKEN=$(openssl rand -hex 16) parabit serve news.index --host 0.0.0.0

        curl -s localhost:8000/api/search -H 'content-type: application/json' -d '{"query": "hubble telescope", "k": 3}'
    """
    start_server(
        index,
        host=host,
        port=port,
        title=title,
        token=token,
        most_hits=most_hits,
        seconds=seconds,
        map=map,
        browse=browse,
        quiet=quiet,
    )


def start_server(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    title: str | None = None,
    token: str | None = None,
    most_hits: int = 100,
    seconds: float = 10.0,
    map: bool = True,
    browse: bool = False,
    quiet: bool = False,
    examples: Sequence[str] = (),
) -> None:
    """Serve an index until Ctrl-C."""
    for library in ("fastapi", "uvicorn", "prometheus_client"):
        need(library, "web")
    if map and find_spec("openTSNE") is None:  # not imported: another process draws
        need("openTSNE", "web")
    import uvicorn

    from parabit.web import Settings, create_app

    if token is not None and (not token or not token.isascii() or not token.isprintable() or " " in token):
        raise ParabitError("the token is empty, or has characters that no header takes", hint="use letters and digits")
    local = _is_local(host)
    with _listening(host, port) as listener:
        settings = Settings(
            title=title,
            token=token,
            local=local,
            most_hits=most_hits,
            seconds=seconds,
            map=map,
            examples=tuple(examples),
        )
        app = create_app(folder, settings)
        address = f"http://{_written(host)}:{listener.getsockname()[1]}"
        if not local and token is None:
            err.print(
                f"parabit: everybody who reaches {address} can read the documents; set {TOKEN} to ask for a token",
                markup=False,
                soft_wrap=True,
            )
        if not quiet:
            where = f"[bold]{escape(str(folder))}[/bold] is at [bold]{escape(address)}[/bold]"
            say(f"{where}, its API at /docs; Ctrl-C stops it")
        if browse:
            webbrowser.open(address)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, proxy_headers=False, lifespan="on"
        )
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:  # the way to end it
            if not quiet:
                say("stopped")


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens, or an error in words."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError) as problem:
        raise ParabitError(f"there is no address {host!r}", hint="give one of this machine, as 127.0.0.1") from problem
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # a server that was just stopped leaves its port waiting
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(2048)
    except OSError as problem:
        listener.close()
        if problem.errno == errno.EADDRINUSE:
            raise ParabitError(
                f"port {port} is in use", hint="choose another with --port, or --port 0 for any that is free"
            ) from problem
        if problem.errno == errno.EACCES:
            raise ParabitError(f"port {port} is not for everybody", hint="choose one above 1023") from problem
        raise ParabitError(
            f"{host}:{port} cannot be listened on: {problem.strerror}", hint="give an address of this machine"
        ) from problem
    return listener


def _is_local(host: str) -> bool:
    """Whether an address is reached from this machine alone.

    Example:
        >>> _is_local("127.0.0.1"), _is_local("localhost"), _is_local("::1"), _is_local("0.0.0.0")
        (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host

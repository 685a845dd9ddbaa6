"""`parabit serve`: the search page of an index."""

import errno
import ipaddress
import os
import socket
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from parabit.cli.command import Json, Quiet, err, print_json, say, verb
from parabit.cli.options import IndexFolder
from parabit.cli.output import show
from parabit.errors import ParabitError, need

TOKEN = "PARABIT_TOKEN"


@verb
def serve(
    index: IndexFolder,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 for all of this machine's.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    title: Annotated[
        str | None, typer.Option(help="The title of the page. Default: the index's name.", show_default=False)
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar=TOKEN,
            help="What every request must show, as `Authorization: Bearer TOKEN`; safer in the environment.",
            show_default=False,
            show_envvar=True,
        ),
    ] = None,
    most_hits: Annotated[int, typer.Option(min=1, max=10_000, help="How many hits a search may ask for.")] = 100,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long a request may take.")] = 10.0,
    map: Annotated[bool, typer.Option("--map/--no-map", help="Draw a map of the documents.")] = True,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search an index in the browser, or from programs.

    /docs describes the JSON API, /healthz and /metrics are for monitoring. What is added to the index meanwhile is
    found within a second. It listens on this machine alone; on another address everybody who reaches it can read the
    documents, unless you set a token. Stop it with Ctrl-C.

    Examples:
        parabit serve news.index --open
        PARABIT_TOKEN=$(openssl rand -hex 16) parabit serve news.index --host 0.0.0.0
    """
    how: dict[str, Any] = {"title": title, "token": token, "most_hits": most_hits, "seconds": seconds, "map": map}
    start_server(index, host, port, browse=browse, json=json, quiet=quiet, **how)


def start_server(
    folder: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    browse: bool = False,
    json: bool = False,
    quiet: bool = False,
    **settings: Any,
) -> None:
    """Serve an index until Ctrl-C."""
    for library in ("fastapi", "uvicorn", "prometheus_client"):
        need(library, "web")
    if settings.get("map", True) and find_spec("openTSNE") is None:  # not imported: another process draws
        need("openTSNE", "web")
    import uvicorn

    from parabit.web import Settings, create_app

    token = settings.get("token")
    if token is not None and (not token or not token.isascii() or not token.isprintable() or " " in token):
        raise ParabitError("the token is empty, or has characters that no header takes", hint="use letters and digits")
    local = _is_local(host)
    with _listening(host, port) as listener:
        app = create_app(folder, Settings(local=local, **settings))
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        if not local and token is None:
            show(
                Text(f"parabit: everybody who reaches {address} can read the documents; set {TOKEN} to protect them"),
                err,
            )
        if json:
            print_json({"index": str(folder), "address": address})
            sys.stdout.flush()
        elif not quiet:
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
            if not (quiet or json):
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
            raise ParabitError(f"port {port} needs more rights", hint="choose one above 1023") from problem
        raise ParabitError(
            f"{host}:{port} cannot be listened on: {problem.strerror}", hint="give an address of this machine"
        ) from problem
    return listener


def _is_local(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"

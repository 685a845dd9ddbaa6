"""`parabit serve`: the search page of an index."""

import socket
import sys
import webbrowser
from importlib.util import find_spec
from typing import Annotated

from parabit.cli.command import verb
from parabit.cli.options import IndexFolder, option
from parabit.cli.output import complain, escape, print_json, say
from parabit.errors import ParabitError, need

TOKEN = "PARABIT_TOKEN"


@verb()
def serve(
    index: IndexFolder,
    host: Annotated[str, option("The address to listen on; 0.0.0.0: all of them.", "ADDRESS")] = "127.0.0.1",
    port: Annotated[int, option("0 for any that is free.", min=0, max=65535)] = 8000,
    title: Annotated[str | None, option("The title of the page. Default: the index's name.", "TEXT")] = None,
    token: Annotated[str | None, option(f"Ask for this bearer token; safer in {TOKEN}.", "TOKEN", envvar=TOKEN)] = None,
    most_hits: Annotated[int, option("How many hits a search may ask for.", min=1, max=10_000)] = 100,
    seconds: Annotated[float, option("How long a request may take.", min=0.1)] = 10.0,
    map: Annotated[bool, option("Draw a map of the documents.", "--map/--no-map")] = True,
    browse: Annotated[bool, option("Open the page in a browser.", "--open")] = False,
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Search an index in the browser, or from programs.

    /docs describes the JSON API, /healthz and /metrics are for monitoring. What is added to the index meanwhile is
    found within a second. It listens on this machine alone; on another address everybody who reaches it can read the
    documents, unless you set a token. Stop it with Ctrl-C.

    Examples:
        parabit serve news.index --open
        PARABIT_TOKEN=$(openssl rand -hex 16) parabit serve news.index --host 0.0.0.0
    """
    for library in ("fastapi", "uvicorn", "prometheus_client"):
        need(library, "web")
    if map and find_spec("openTSNE") is None:  # not imported: another process draws
        need("openTSNE", "web")
    import uvicorn

    from parabit.web import Settings, create_app

    if token is not None and (not token or not token.isascii() or not token.isprintable() or " " in token):
        raise ParabitError("the token is empty, or has characters that no header takes", hint="use letters and digits")
    local = host in ("localhost", "::1") or host.startswith("127.")  # reached from this machine alone
    with _listening(host, port) as listener:
        app = create_app(
            index, Settings(local=local, title=title, token=token, most_hits=most_hits, seconds=seconds, map=map)
        )
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        if not local and token is None:
            complain(f"everybody who reaches {address} can read the documents; set {TOKEN} to protect them")
        if json:
            print_json({"index": str(index), "address": address})
            sys.stdout.flush()
        elif not quiet:
            say(f"[bold]{escape(index)}[/bold] is at [bold]{escape(address)}[/bold], its API at /docs; Ctrl-C stops it")
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
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as problem:
        reason = str(getattr(problem, "strerror", problem)).partition(" (while")[0]
        hint = "choose another --port, 0 for any that is free, or another --host"
        raise ParabitError(f"cannot listen on {host}:{port}: {reason}", hint=hint) from problem

"""What is checked of every request first: the name it was sent to, origin, token and size."""

import hmac
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parabit.web.answers import ASK_AGAIN, CLOSING_HEADERS, RefusalError, problem_response

# Bytes of a request's first line and headers. Queries in addresses have at most 5,000 characters,
# which take up to 12 bytes each. Where a head is read (`connections.py`), the same limit holds.
MOST_HEAD_BYTES = 1 << 16
HEAD_TOO_LARGE = f"the address and headers have more than {MOST_HEAD_BYTES:,} bytes"
SEND_LESS = "send less, or send a query with POST"
# A body of more bytes than this, which no query that somebody types has, is large. So many large
# ones may be on their way or be answered at the same time; ordinary requests wait for these few, as
# to read a megabyte of JSON takes 10 ms.
_LARGE_BODY = 1 << 16
_MOST_LARGE = 4
_TOO_MANY_LARGE = "too many large requests are being sent"
_KNOWN_HOSTS = 64  # names of this server that are remembered as good
_GUARDED = ("/api/", "/openapi.json")  # by the token
# The page needs its own files and the API, and nothing else in the world. A browser asks each time
# whether a file is still the same: after an upgrade the old page must not meet the new API.
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
]


class Guard:
    """The outermost part of the application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str | None,
        local: bool,
        allowed_hosts: Sequence[str],
        most_bytes: int,
    ) -> None:
        """What the rest of the application is protected from.

        Parameters:
            app: The rest of the application.
            token: What requests for data must carry; None lets everybody in.
            local: Whether the server listens on the loopback alone.
            allowed_hosts: Names of the server beside those that it knows.
            most_bytes: Of a request's body.
        """
        self._app = app
        self._token = None if token is None else b"Bearer " + token.encode()
        self._local = local
        self._most_bytes = most_bytes
        self._given_names = {name.lower() for name in allowed_hosts}
        self._names = self._given_names | {"localhost"}
        if not local:
            own_name = socket.gethostname().lower()
            self._names |= {own_name, f"{own_name.partition('.')[0]}.local"}  # .local by mDNS
        self._good_hosts = set[bytes]()
        self._large_bodies = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # answered as GET; uvicorn leaves out the body
            scope = {**scope, "method": "GET"}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        body_bytes = 0
        is_large = False

        async def receive_some() -> Message:
            nonlocal body_bytes, is_large
            message = await receive()
            body_bytes += len(message.get("body", b""))
            # An HTTPException, which alone goes through the reading of a body.
            if body_bytes > self._most_bytes:
                raise self._too_large()
            if body_bytes > _LARGE_BODY and not is_large:
                if self._large_bodies >= _MOST_LARGE:
                    too_many = RefusalError(503, _TOO_MANY_LARGE, ASK_AGAIN)
                    too_many.headers = CLOSING_HEADERS
                    raise too_many
                is_large = True
                self._large_bodies += 1
            return message

        try:
            await self._app(scope, receive_some, send_with_headers)
        finally:
            if is_large:
                self._large_bodies -= 1

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that is refused for its head; None if the head is in order."""
        head = _read_head(scope)
        if head.head_bytes > MOST_HEAD_BYTES:
            return problem_response(431, HEAD_TOO_LARGE, SEND_LESS)
        if head.host not in self._good_hosts:
            if not self._is_own_name(head.host):
                return _wrong_host(head.host)
            if len(self._good_hosts) < _KNOWN_HOSTS:
                self._good_hosts.add(head.host)
        if head.origin is not None and not self._is_own_origin(head.origin, head.host):
            error = f"another site, {_shown(head.origin)}, must not use this server"
            return problem_response(403, error, "open this server's own page")
        is_guarded = self._token is not None and scope["path"].startswith(_GUARDED)
        if is_guarded and not hmac.compare_digest(head.token, self._token or b""):
            return _NO_TOKEN
        return self._refusal_of_body(head)

    def _refusal_of_body(self, head: "_Head") -> Response | None:
        """The answer to a request whose body is too large, or is large while others are."""
        if head.body_bytes > self._most_bytes:
            refusal = self._too_large()
            return problem_response(refusal.status_code, refusal.detail, refusal.hint)
        if head.body_bytes > _LARGE_BODY and self._large_bodies >= _MOST_LARGE:
            return problem_response(503, _TOO_MANY_LARGE, ASK_AGAIN, CLOSING_HEADERS)
        return None

    def _is_own_name(self, host: bytes) -> bool:
        """Whether a request names this server, by one of its names or by an address.

        Anybody can have a name that leads to this server's address; such a name is not its own.
        Nobody else decides where an address leads, so addresses are good. Behind a port that is
        forwarded, as with containers, the server does not know by which address it is reached.
        """
        name = _host_name(host.decode("latin-1"))
        if name in self._names:
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self._local

    def _is_own_origin(self, origin: bytes, host: bytes) -> bool:
        """Whether a page is this server's: from the same name and port, or from an allowed host."""
        _, _, site = origin.decode("latin-1").lower().partition("://")
        return bool(site) and (
            site == host.decode("latin-1").lower() or _host_name(site) in self._given_names
        )

    def _too_large(self) -> RefusalError:
        return RefusalError(
            413, f"the request has more than {self._most_bytes:,} bytes", "send less"
        )


@dataclass
class _Head:
    """What is checked of a request's head."""

    head_bytes: int = 0  # of the address and the headers
    host: bytes = b""  # empty if there is none, or several
    origin: bytes | None = None
    token: bytes = b""
    body_bytes: int = 0  # as the request says it


def _read_head(scope: Scope) -> _Head:
    head = _Head(len(scope.get("raw_path", b"")) + len(scope["query_string"]))
    hosts = 0
    for name, value in scope["headers"]:
        head.head_bytes += len(name) + len(value)
        if name == b"host":
            hosts += 1
            head.host = value
        elif name == b"origin":
            head.origin = value
        elif name == b"authorization":
            head.token = value
        elif name == b"content-length" and value.isdigit():
            head.body_bytes = int(value[:20])
    if hosts != 1:
        head.host = b""
    return head


def _host_name(written: str) -> str:
    """The name or address in a Host header, without its port."""
    if written.startswith("["):
        return written[1:].partition("]")[0].lower()
    return written.partition(":")[0].lower().rstrip(".")


def _wrong_host(host: bytes) -> Response:
    name = _shown(host.partition(b":")[0])
    error = f"this server does not answer to the name {name}"
    return problem_response(
        400, error, "if the name is its own, start it with --allowed-host and the name"
    )


def _shown(written: bytes) -> str:
    """What was sent, for a message."""
    return repr(written[:100].decode("latin-1"))


_NO_TOKEN = problem_response(
    401,
    "a token is needed",
    "send it in the header `Authorization: Bearer TOKEN`",
    {"www-authenticate": "Bearer"},
)

"""What every request passes: its size, its host and its token are looked at before anything else, and it is counted."""

import hmac
import json
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from parabit.web.metrics import Metrics
from parabit.web.settings import Settings

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOCAL = {"localhost", "127.0.0.1", "[::1]", "::1"}
_GUARDED = ("/api/", "/metrics", "/openapi.json")
# The page needs its own files and the API, and nothing else in the world.
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Guard:
    """Stands before an ASGI application."""

    def __init__(self, app: App, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def send_on(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        try:
            headers = dict(scope["headers"])
            if refused := self._refused(scope, headers):
                await _answer(send_on, *refused)
                return
            await self._app(scope, self._limited(receive), send_on)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.answered(route, status, time.perf_counter() - start)

    def _refused(
        self, scope: Scope, headers: dict[bytes, bytes]
    ) -> tuple[int, str, str] | tuple[int, str, str, list[tuple[bytes, bytes]]] | None:
        settings = self._settings
        if settings.local and _host(headers.get(b"host", b"")) not in _LOCAL:
            return 400, "this server answers on this machine only", "ask for it as localhost or 127.0.0.1"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > settings.most_bytes:
            return 413, f"the request has more than {settings.most_bytes:,} bytes", "send less"
        if settings.token is not None and scope["path"].startswith(_GUARDED):
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, b"Bearer " + settings.token.encode()):
                challenge = [(b"www-authenticate", b"Bearer")]
                return 401, "a token is needed", "send it in the header `Authorization: Bearer TOKEN`", challenge
        return None

    def _limited(self, receive: Receive) -> Receive:
        """What counts the bytes of a body that does not say its length."""
        left = self._settings.most_bytes

        async def receive_some() -> MutableMapping[str, Any]:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413)  # the one exception that goes through the reading of a body
            return message

        return receive_some


def _host(header: bytes) -> str:
    """The name in a Host header, without the port.

    Example:
        >>> _host(b"localhost:8000"), _host(b"[::1]:8000"), _host(b"example.org")
        ('localhost', '[::1]', 'example.org')
    """
    name = header.decode("latin-1").lower()
    host, colon, port = name.rpartition(":")
    return host if colon and port.isdigit() else name


async def _answer(send: Send, status: int, error: str, hint: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    body = json.dumps({"error": error, "hint": hint}).encode()
    sent = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})

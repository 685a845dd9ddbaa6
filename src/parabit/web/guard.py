"""What every request passes: its token is checked before anything else, its size limited, and it is counted."""

import hmac
import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parabit.web.service import RefusalError, Settings

CONTENT = "text/plain; version=0.0.4; charset=utf-8"  # of metrics
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_GUARDED = ("/api/", "/metrics", "/openapi.json")
_NO_TOKEN = JSONResponse(
    {"error": "a token is needed", "hint": "send it in the header `Authorization: Bearer TOKEN`"},
    401,
    {"www-authenticate": "Bearer"},
)
# The page needs its own files and the API, and nothing else in the world. A browser asks each time whether a file is
# still the same: after an upgrade the old page must not meet the new API.
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
]


class Metrics:
    """Counts of one server, for Prometheus."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._requests = Counter("parabit_requests", "Requests answered", ["route", "status"], registry=registry)
        about = "parabit_request_seconds", "Time to answer", ["route"]
        self._seconds = Histogram(*about, buckets=_SECONDS, registry=registry)
        self._documents = Gauge("parabit_documents", "Documents in the index", registry=registry)
        self._waiting = Gauge("parabit_waiting", "Requests that wait for the index", registry=registry)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request; the route is one of the server's own, not the path of the request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, documents: int, waiting: int) -> bytes:
        """All of it, as Prometheus reads it."""
        self._documents.set(documents)
        self._waiting.set(waiting)
        return generate_latest(self._registry)


class Guard:
    """Stands before an ASGI application."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500
        if scope["method"] == "HEAD":  # answered as GET; uvicorn, which knows better, leaves out the body
            scope = {**scope, "method": "GET"}

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        left = self._settings.most_bytes

        async def receive_some() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:  # an HTTPException, which alone goes through the reading of a body
                raise RefusalError(413, f"the request has more than {self._settings.most_bytes:,} bytes", "send less")
            return message

        try:
            app = self._app if self._may_pass(scope) else _NO_TOKEN
            await app(scope, receive_some, send_on)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.answered(route, status, time.perf_counter() - start)

    def _may_pass(self, scope: Scope) -> bool:
        if self._settings.token is None or not scope["path"].startswith(_GUARDED):
            return True
        sent = dict(scope["headers"]).get(b"authorization", b"")
        return hmac.compare_digest(sent, b"Bearer " + self._settings.token.encode())

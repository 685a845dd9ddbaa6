"""The server: what every request passes, the routes to the service, and errors in words."""

import asyncio
import hmac
from collections.abc import Mapping
from logging import getLogger
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parabit import __version__
from parabit.explore.overview import Field
from parabit.web import schemas
from parabit.web.service import RefusalError, Service, Settings, as_json

_LOCAL = ["localhost", "127.0.0.1", "::1", "[::1]"]
_FILES = {
    "/": "index.html",
    "/docs": "api.html",
    "/favicon.svg": "favicon.svg",
    "/favicon.ico": "favicon.svg",
}
_GUARDED = ("/api/", "/openapi.json")  # by the token
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
_log = getLogger(__name__)

_DESCRIPTION = """Search an index of documents by a text, or by a document that is in it.

Requests and answers are JSON. A refused request is answered with `{"error": ..., "hint": ...}`. Ids are strings or
whole numbers, as they were stored; numbers beyond 2^53 are given as strings, and found by these."""
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Problem} for status in (400, 401, 413, 422, 503)
}
_NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": schemas.Problem}}


def create_app(folder: Path | str, settings: Settings) -> FastAPI:
    """The application that serves an index; opening one that cannot be read raises here."""
    service = Service(Path(folder), settings)
    app = FastAPI(
        title="parabit", summary="Search by meaning and by words", description=_DESCRIPTION, version=__version__,
        docs_url=None, redoc_url=None, lifespan=service.running, responses=_REFUSALS,
    )  # fmt: skip
    if settings.local:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=_LOCAL, www_redirect=False)
    app.add_middleware(_guarded, settings=settings)
    _add_errors(app)
    _add_api(app, service)
    _add_files(app)
    return app


def _guarded(app: ASGIApp, settings: Settings) -> ASGIApp:
    """What every request passes: its token is checked before anything else, and its size limited."""
    wanted = None if settings.token is None else b"Bearer " + settings.token.encode()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        if (
            scope["method"] == "HEAD"
        ):  # answered as GET; uvicorn, which knows better, leaves out the body
            scope = {**scope, "method": "GET"}

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        left = settings.most_bytes

        async def receive_some() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:  # an HTTPException, which alone goes through the reading of a body
                raise RefusalError(
                    413, f"the request has more than {settings.most_bytes:,} bytes", "send less"
                )
            return message

        sent = dict(scope["headers"]).get(b"authorization", b"")
        is_open = (
            wanted is None
            or not scope["path"].startswith(_GUARDED)
            or hmac.compare_digest(sent, wanted)
        )
        await (app if is_open else _NO_TOKEN)(scope, receive_some, send_on)

    return answer


def _add_api(app: FastAPI, service: Service) -> None:
    @app.get("/api/about", summary="The index")
    async def about() -> Response:
        """What the index is, the most that a request may ask for (`limits`), and what it can do: be searched with texts
        (`texts`), find documents by their words too (`words`), and give hits with their text (`text_kept`)."""
        service.worker.wake()
        return _json(service.about())

    @app.get("/api/fields", summary="Its fields", response_model=list[Field])
    async def fields() -> Response:
        """The fields of the documents with their types: the values of some, the range of others."""
        return _json(await asyncio.to_thread(service.once, service.fields))

    @app.get("/api/start", summary="Where to begin")
    async def start() -> Response:
        """Queries that have answers here, and the newest documents, for the page."""
        return _json(await asyncio.to_thread(service.once, service.start))

    @app.post("/api/search", summary="Search", response_model=schemas.Answer, responses=_NOT_FOUND)
    async def search(query: schemas.Query) -> Response:
        """Find the documents that fit a text best, or that are most like one that is in the index."""
        service.check(query)
        return _json(await service.answer(query))

    @app.get(
        "/api/document", summary="A document", response_model=schemas.Whole, responses=_NOT_FOUND
    )
    async def document(
        id: Annotated[
            str, Query(description="as it is shown; 7 is the string, or else the number")
        ],
        query: Annotated[
            str | None, Query(description="mark the words of this text", max_length=10_000)
        ] = None,
        like: Annotated[str | None, Query(description="mark the words of this document")] = None,
    ) -> Response:
        """A document with everything that is kept of it."""
        asked = id, query, like
        return _json(
            await service.ask(
                "document", lambda some: [service.document(*one) for one in some], asked
            )
        )

    @app.get("/api/map", summary="The map")
    async def chart() -> Response:
        """The map of the collection: a point for each document, or for a sample of 20,000; for the page."""
        if service.map is None:
            return _json(service.chart_state())
        content = await asyncio.to_thread(service.once, service.chart)
        return _json(content, headers={"content-encoding": "gzip"})

    @app.get("/healthz", summary="Health")
    async def healthz() -> Response:
        """Whether the server can answer; said at once, however many requests wait."""
        service.worker.wake()
        problem = service.failure
        state = {
            "status": "failing" if problem else "ok",
            "documents": service.documents,
            "version": __version__,
        }
        return _json({**state, "error": problem}, 503 if problem else 200)


def _add_files(app: FastAPI) -> None:
    files = StaticFiles(packages=[("parabit.web", "static")])
    app.mount("/static", files)
    for path, name in _FILES.items():

        async def page(request: Request, name: str = name) -> Response:
            return await files.get_response(name, request.scope)

        app.add_route(path, page, include_in_schema=False)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RefusalError)
    async def refused(_: Request, problem: RefusalError) -> Response:
        return _problem(problem.status_code, problem.detail, problem.hint, problem.headers)

    @app.exception_handler(RequestValidationError)
    async def misshapen(_: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _problem(422, f"{where}: {first['msg']}", "see /docs for what is expected")

    @app.exception_handler(HTTPException)
    async def http(_: Request, problem: HTTPException) -> Response:
        known = {404: "there is no such page", 405: "this page takes another method"}
        error = known.get(problem.status_code, "the request cannot be read")
        return _problem(problem.status_code, error, "see /docs for what is there", problem.headers)

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, problem: Exception) -> Response:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=problem)
        return _problem(500, "the server did not foresee this", "its log says more")


def _problem(
    status: int, error: str, hint: str, headers: Mapping[str, str] | None = None
) -> Response:
    return _json({"error": error, "hint": hint}, status, headers)


def _json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = content if isinstance(content, bytes) else as_json(content)
    return Response(body, status, headers, media_type="application/json")


_NO_TOKEN = _problem(
    401,
    "a token is needed",
    "send it in the header `Authorization: Bearer TOKEN`",
    {"www-authenticate": "Bearer"},
)

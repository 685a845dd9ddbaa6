"""The server: routes to the service, and errors in words."""

import asyncio
import time
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from logging import getLogger
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

from parabit import __version__
from parabit.errors import ParabitError
from parabit.web import schemas
from parabit.web.guard import CONTENT, Guard, Metrics
from parabit.web.map import Drawing
from parabit.web.service import RefusalError, Service, Settings, as_json, refusal_of
from parabit.web.worker import BusyError, Work, Worker

_EVERY = 1.0  # seconds between two looks at what others have written
_LEAST = 4  # documents on a map
_LOCAL = ["localhost", "127.0.0.1", "::1", "[::1]"]
_FILES = {"/": "index.html", "/docs": "api.html", "/favicon.svg": "favicon.svg", "/favicon.ico": "favicon.svg"}
_log = getLogger(__name__)

_DESCRIPTION = """Search an index of documents by a text, or by a document that is in it.

Requests and answers are JSON. A refused request is answered with `{"error": ..., "hint": ...}`. Ids are strings or
whole numbers, as they were stored; numbers beyond 2^53 are given as strings, and found by these."""
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Problem, "description": why}
    for status, why in {
        400: "a value that makes no sense here",
        401: "the token is missing or wrong",
        413: "the request is too large",
        422: "the request has another shape",
        503: "busy, too slow, or the index cannot be read",
    }.items()
}
_NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": schemas.Problem, "description": "no such document"}}
_FAILING: dict[int | str, dict[str, Any]] = {503: {"model": schemas.Health, "description": "it cannot answer"}}


class Server:
    """An index on the web: the service, the thread that searches, and the drawing of its map."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.service = Service(folder, settings)
        self.drawing: Drawing | None = None
        self._folder, self._looked = folder, time.monotonic()
        self.worker: Worker  # while it runs

    @asynccontextmanager
    async def running(self, _: FastAPI) -> AsyncIterator[None]:
        """Answer requests, and draw the map if there is none."""
        self.worker = Worker(self.settings.most_waiting, before=self._refresh)
        if self.settings.map and self.service.map is None and self.service.documents >= _LEAST:
            self.drawing = Drawing(self._folder, self.service.use_map)
        try:
            yield
        finally:
            if self.drawing is not None:
                self.drawing.stop()
            self.worker.close()
            self.service.index.close()

    async def ask(self, kind: Hashable, work: Work, request: Any) -> Response:
        """The answer of the worker, within the time that is allowed."""
        try:
            async with asyncio.timeout(self.settings.seconds):
                answer = await self.worker.ask(kind, work, request)
        except BusyError:
            raise RefusalError(503, "too many requests are waiting", "ask again in a moment", retry=1) from None
        except TimeoutError:
            late = f"no answer within {self.settings.seconds:g} seconds"
            raise RefusalError(503, late, "ask again in a moment", retry=2) from None
        except ParabitError as problem:
            raise refusal_of(problem) from problem
        except MemoryError:
            raise RefusalError(503, "the server is out of memory", "ask for less", retry=5) from None
        if isinstance(answer, RefusalError):
            raise answer
        return _json(answer)

    def wake(self) -> int:
        """Have the worker look at what others have written; how many requests wait."""
        self.worker.wake()
        return self.worker.waiting

    def chart_state(self) -> dict[str, Any]:
        """Why there is no map to show."""
        if self.drawing is not None and not self.drawing.failure:
            return {"state": "drawing", "share": self.drawing.share, "points": 0}
        why = f"a map needs {_LEAST} documents" if self.settings.map else "the server was started without a map"
        return {"state": "none", "why": why if self.drawing is None else self.drawing.failure}

    def _refresh(self) -> None:
        if time.monotonic() - self._looked >= _EVERY:
            self._looked = time.monotonic()
            self.service.refresh()


def create_app(folder: Path | str, settings: Settings | None = None) -> FastAPI:
    """The application that serves an index; opening one that cannot be read raises here."""
    server = Server(Path(folder), settings or Settings())
    app = FastAPI(
        title="parabit",
        summary="Search by meaning and by words",
        description=_DESCRIPTION,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=server.running,
        responses=_REFUSALS,
    )
    if server.settings.local:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=_LOCAL, www_redirect=False)
    app.add_middleware(Guard, settings=server.settings, metrics=server.metrics)
    _add_errors(app)
    _add_api(app, server)
    _add_files(app)
    return app


def _add_api(app: FastAPI, server: Server) -> None:
    service = server.service

    @app.get("/api/about", summary="The index", response_model=schemas.About)
    async def about() -> Response:
        """What the index is and what it can do."""
        server.wake()
        return _json(service.about())

    @app.get("/api/fields", summary="Its fields", response_model=list[schemas.DocumentField])
    async def fields() -> Response:
        """The fields of the documents with their types: the values of some, the range of others."""
        return _json(await asyncio.to_thread(service.once, service.fields))

    @app.get("/api/start", summary="Where to begin", response_model=schemas.Start)
    async def start() -> Response:
        """Queries that have answers here, and the newest documents."""
        return _json(await asyncio.to_thread(service.once, service.start))

    @app.post("/api/search", summary="Search", response_model=schemas.Answer, responses=_NOT_FOUND)
    async def search(query: schemas.Query) -> Response:
        """Find the documents that fit a text best, or that are most like one that is in the index."""
        service.check(query)
        return await server.ask(query.kind, service.search, query)

    @app.get("/api/document", summary="A document", response_model=schemas.Whole, responses=_NOT_FOUND)
    async def document(
        id: Annotated[str, Query(description="as it is shown; 7 is the string, or else the number")],
        query: Annotated[str | None, Query(description="mark the words of this text", max_length=10_000)] = None,
        like: Annotated[str | None, Query(description="mark the words of this document")] = None,
    ) -> Response:
        """A document with everything that is kept of it."""
        return await server.ask("document", service.documents_of, (id, query, like))

    @app.get("/api/map", summary="The map", response_model=schemas.Chart)
    async def chart() -> Response:
        """The map of the collection: a point for each document, or for a sample of 20,000."""
        if service.map is None:
            return _json(server.chart_state())
        content = await asyncio.to_thread(service.once, service.chart)
        return _json(content, headers={"content-encoding": "gzip"})

    @app.get("/healthz", summary="Health", response_model=schemas.Health, responses=_FAILING)
    async def healthz() -> Response:
        """Whether the server can answer; said at once, however many requests wait."""
        server.wake()
        problem = service.failure
        state = {"status": "failing" if problem else "ok", "documents": service.documents, "version": __version__}
        return _json({**state, "error": problem}, 503 if problem else 200)

    @app.get("/metrics", summary="Metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Counts and times, as Prometheus reads them."""
        return Response(server.metrics.text(service.documents, server.wake()), media_type=CONTENT)


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
        headers = {} if problem.retry is None else {"retry-after": str(problem.retry)}
        return _problem(problem.status, problem.error, problem.hint, headers)

    @app.exception_handler(RequestValidationError)
    async def misshapen(_: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _problem(422, f"{where}: {first['msg']}", "see /docs for what is expected")

    @app.exception_handler(HTTPException)
    async def http(_: Request, problem: HTTPException) -> Response:
        known = {404: "there is no such page", 405: "this page takes another method", 413: "the request is too large"}
        error = known.get(problem.status_code, "the request cannot be read")
        return _problem(problem.status_code, error, "see /docs for what is there", dict(problem.headers or {}))

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, problem: Exception) -> Response:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=problem)
        return _problem(500, "the server did not foresee this", "its log says more")


def _problem(status: int, error: str, hint: str, headers: dict[str, str] | None = None) -> Response:
    return _json({"error": error, "hint": hint}, status, headers)


def _json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = content if isinstance(content, bytes) else as_json(content)
    return Response(body, status, headers, media_type="application/json")

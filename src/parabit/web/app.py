"""The server: routes to the service, and errors in words."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
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
from parabit.web.service import RefusalError, Search, Service, Settings, Wanted, as_json, refusal_of
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


class Server:
    """An index on the web: the service, the thread that searches, and the drawing of its map."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.service = Service(folder, settings)
        self.drawing: Drawing | None = None
        self._folder, self._looked = folder, time.monotonic()
        self.worker: Worker | None = None

    def start(self) -> None:
        """Begin to answer, and to draw the map if there is none."""
        self.worker = Worker(self.settings.most_waiting, before=self._refresh)
        if self.settings.map and self.service.map is None and self.service.documents >= _LEAST:
            self.drawing = Drawing(self._folder, self.service.use_map)

    def stop(self) -> None:
        """End everything."""
        if self.drawing is not None:
            self.drawing.stop()
        if self.worker is not None:
            self.worker.close()
        self.service.close()

    async def ask(self, kind: object, work: Work, request: Any) -> Response:
        """The answer of the worker, within the time that is allowed."""
        assert self.worker is not None
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
        return Response(answer, media_type="application/json")

    def wake(self) -> int:
        """Have the worker look at what others have written; how many requests wait."""
        if self.worker is None:
            return 0
        self.worker.wake()
        return self.worker.waiting

    def chart_state(self) -> dict[str, Any]:
        """Why there is no map to show."""
        if self.drawing is not None and not self.drawing.failure:
            return {"state": "drawing", "share": self.drawing.share, "points": 0}
        if not self.settings.map:
            return {"state": "none", "why": "the server was started without a map"}
        if self.drawing is not None:
            return {"state": "none", "why": self.drawing.failure}
        return {"state": "none", "why": f"a map needs {_LEAST} documents"}

    def _refresh(self) -> None:
        if time.monotonic() - self._looked >= _EVERY:
            self._looked = time.monotonic()
            self.service.refresh()


def create_app(folder: Path | str, settings: Settings | None = None) -> FastAPI:
    """The application that serves an index; opening one that cannot be read raises here."""
    server = Server(Path(folder), settings or Settings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        server.start()
        try:
            yield
        finally:
            server.stop()

    app = FastAPI(
        title="parabit",
        summary="Search by meaning and by words",
        description=_DESCRIPTION,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    if server.settings.local:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=_LOCAL, www_redirect=False)
    app.add_middleware(Guard, settings=server.settings, metrics=server.metrics)
    _add_errors(app)
    _add_api(app, server)
    _add_files(app)
    return app


def _add_api(app: FastAPI, server: Server) -> None:
    service, settings = server.service, server.settings

    @app.get("/api/about", summary="The index", response_model=schemas.About, responses=_REFUSALS)
    async def about() -> Response:
        """What the index is and what it can do."""
        server.wake()
        return _json(service.about())

    @app.get("/api/fields", summary="Its fields", response_model=list[schemas.DocumentField], responses=_REFUSALS)
    async def fields() -> Response:
        """The fields of the documents with their types: the values of some, the range of others."""
        return _json(await asyncio.to_thread(service.fields))

    @app.get("/api/start", summary="Where to begin", response_model=schemas.Start, responses=_REFUSALS)
    async def start() -> Response:
        """Queries that have answers here, and the newest documents."""
        return _json(await asyncio.to_thread(service.start))

    @app.post("/api/search", summary="Search", response_model=schemas.Answer, responses={**_REFUSALS, **_NOT_FOUND})
    async def search(query: schemas.Query) -> Response:
        """Find the documents that fit a text best, or that are most like one that is in the index."""
        asked = checked(query, settings, service.index.bits)
        return await server.ask(asked.kind, service.search, asked)

    @app.get("/api/document", summary="A document", response_model=schemas.Whole, responses={**_REFUSALS, **_NOT_FOUND})
    async def document(
        id: Annotated[str, Query(description="as it is shown; 7 is the string, or else the number")],
        query: Annotated[str | None, Query(description="mark the words of this text", max_length=10_000)] = None,
        like: Annotated[str | None, Query(description="mark the words of this document")] = None,
    ) -> Response:
        """A document with everything that is kept of it."""
        return await server.ask("document", service.documents_of, Wanted(id, query, like))

    @app.get("/api/map", summary="The map", response_model=schemas.Chart, responses=_REFUSALS)
    async def chart() -> Response:
        """The map of the collection: a point for each document, or for a sample of 20,000."""
        content = await asyncio.to_thread(service.chart)
        if content is None:
            return _json(server.chart_state())
        return Response(content, media_type="application/json", headers={"content-encoding": "gzip"})

    failing: dict[int | str, Any] = {503: {"model": schemas.Health, "description": "it cannot answer"}}

    @app.get("/healthz", summary="Health", response_model=schemas.Health, responses=failing)
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


def checked(query: schemas.Query, settings: Settings, bits: int) -> Search:
    """A search within the limits, or a refusal."""
    k = 10 if query.k is None else query.k
    if (query.query is None) == (query.like is None):
        raise RefusalError(400, "a search has either `query` or `like`", "give one of the two")
    if query.query is not None and not query.query.strip():
        raise RefusalError(400, "the query is empty", "give a text")
    if query.query is not None and len(query.query) > settings.most_characters:
        limit = f"{settings.most_characters:,}"
        raise RefusalError(413, f"the query has more than {limit} characters", "give the part that matters")
    if k > settings.most_hits:
        raise RefusalError(400, f"k is {k}", f"at most {settings.most_hits} hits are given")
    if query.radius is not None and query.radius > bits:
        raise RefusalError(400, f"the radius is {query.radius}", f"codes have {bits} bits")
    where = json.dumps(query.where or {}, sort_keys=True)
    ways = query.collapse, query.why, query.positions
    return Search(query.query, query.like, k, query.radius, query.rank, where, *ways)


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
    return Response(as_json(content), status, headers, media_type="application/json")

"""The server: routes to the collection, errors in words."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from logging import getLogger
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from parabit import __version__
from parabit.errors import ParabitError
from parabit.index import Map
from parabit.web import schemas
from parabit.web.guard import Guard
from parabit.web.map import Drawing
from parabit.web.metrics import CONTENT, Metrics
from parabit.web.refusal import RefusalError
from parabit.web.service import Asked, Collection, Wanted, refusal_of
from parabit.web.settings import Settings
from parabit.web.worker import BusyError, Work, Worker

_EVERY = 1.0  # seconds between two looks at what others have written
_LEAST = 4  # documents on a map
_log = getLogger(__name__)

_DESCRIPTION = """Search an index of documents by a text, or by a document that is in it.

Requests and answers are JSON. What is refused is told as `{"error": ..., "hint": ...}`. Ids are strings or whole
numbers, as they were stored; those beyond 2^53 are given as strings, and found by them."""
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
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
    """An index on the web: the collection, the thread that works on it, and the drawing of its map."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.collection = Collection(folder, settings)
        self.drawing: Drawing | None = None
        self._folder, self._looked = folder, time.monotonic()
        self.worker: Worker | None = None

    def start(self) -> None:
        """Begin to answer, and to draw the map if there is none."""
        self.worker = Worker(self.settings.most_waiting, before=self._refresh)
        if self.settings.map and not self.collection.has_map and self.collection.documents >= _LEAST:
            self.drawing = Drawing(self._folder, self._drawn)

    def stop(self) -> None:
        """End everything."""
        if self.drawing is not None:
            self.drawing.stop()
        if self.worker is not None:
            self.worker.close()
        self.collection.close()

    async def ask(self, kind: object, work: Work, question: Any = None) -> Any:
        """What the collection says, in the time that is allowed."""
        assert self.worker is not None
        try:
            async with asyncio.timeout(self.settings.seconds):
                answer = await self.worker.ask(kind, work, question)
        except BusyError:
            raise RefusalError(503, "too many questions are waiting", "ask again in a moment", retry=1) from None
        except TimeoutError:
            raise RefusalError(
                503, f"no answer within {self.settings.seconds:g} seconds", "ask again in a moment", retry=2
            ) from None
        except ParabitError as problem:
            raise refusal_of(problem) from problem
        except MemoryError:
            raise RefusalError(503, "the server is out of memory", "ask for less", retry=5) from None
        if isinstance(answer, RefusalError):
            raise answer
        return answer

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
            self.collection.refresh()

    def _drawn(self, drawn: Map) -> None:
        if self.worker is not None:
            self.worker.tell(lambda: self.collection.use_map(drawn))


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
        summary="Related documents by short binary codes",
        description=_DESCRIPTION,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.add_middleware(Guard, settings=server.settings, metrics=server.metrics)
    _tell_problems(app)
    _add_api(app, server)
    _add_files(app)
    return app


def _add_api(app: FastAPI, server: Server) -> None:
    collection, settings = server.collection, server.settings

    @app.get("/api/about", summary="The index", response_model=schemas.About, responses=_REFUSALS)
    async def about() -> Response:
        """What the index is and what it can do."""
        return _json(await server.ask("about", _once(collection.about)))

    @app.get("/api/labels", summary="Its labels", response_model=schemas.LabelList, responses=_REFUSALS)
    async def labels() -> Response:
        """The most frequent labels, with the number of their documents."""
        return _json(await server.ask("labels", _once(collection.labels)))

    @app.post("/api/search", summary="Search", response_model=schemas.Answer, responses={**_REFUSALS, **_NOT_FOUND})
    async def search(question: schemas.Question) -> Response:
        """Find the documents that fit a text best, or that are most like one that is in the index."""
        asked = _asked(question, settings, collection.index.bits)
        return _json(await server.ask(asked.kind, collection.search, asked))

    @app.get("/api/document", summary="A document", response_model=schemas.Whole, responses={**_REFUSALS, **_NOT_FOUND})
    async def document(
        id: Annotated[str, Query(description="as it is shown; 7 is the string, or else the number")],
        query: Annotated[str | None, Query(description="mark the words of this text", max_length=10_000)] = None,
        like: Annotated[str | None, Query(description="mark the words of this document")] = None,
    ) -> Response:
        """A document with all that is kept of it."""
        return _json(await server.ask("document", collection.document, Wanted(id, query, like)))

    @app.get("/api/map", summary="The map", response_model=schemas.Chart, responses=_REFUSALS)
    async def chart() -> Response:
        """The map of the collection: a point for each document, or for a sample of 20,000."""
        content = await server.ask("chart", _once(collection.chart))
        if content is None:
            return _json(server.chart_state())
        return Response(content, media_type="application/json", headers={"content-encoding": "gzip"})

    @app.get(
        "/healthz",
        summary="Health",
        response_model=schemas.Health,
        responses={503: {"model": schemas.Health, "description": "it cannot answer"}},
    )
    async def healthz() -> Response:
        """Whether the server can answer."""
        try:
            await server.ask("health", _once(collection.count))
            problem = collection.failure
        except RefusalError as refusal:
            problem = refusal.error
        told = {"status": "failing" if problem else "ok", "documents": collection.documents, "version": __version__}
        return _json({**told, "error": problem}, 503 if problem else 200)

    @app.get("/metrics", summary="Metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Counts and times, as Prometheus reads them."""
        waiting = server.worker.waiting if server.worker is not None else 0
        return Response(server.metrics.text(collection.documents, waiting), media_type=CONTENT)


def _asked(question: schemas.Question, settings: Settings, bits: int) -> Asked:
    """A question within the limits, or a refusal."""
    k = 10 if question.k is None else question.k
    if (question.query is None) == (question.like is None):
        raise RefusalError(400, "a search has either `query` or `like`", "give one of the two")
    if question.query is not None and not question.query.strip():
        raise RefusalError(400, "the query is empty", "give a text")
    if question.query is not None and len(question.query) > settings.most_characters:
        raise RefusalError(
            413, f"the query has more than {settings.most_characters:,} characters", "give the part that matters"
        )
    if k > settings.most_hits:
        raise RefusalError(400, f"k is {k}", f"at most {settings.most_hits} hits are given")
    if question.radius is not None and question.radius > bits:
        raise RefusalError(400, f"the radius is {question.radius}", f"codes have {bits} bits")
    where: dict[str, Any] = dict(question.where or {})
    if question.labels:
        other = where.get("labels", [])
        comparisons = other if isinstance(other, dict) else {"=": other}
        equal = comparisons.get("=", [])
        where["labels"] = {**comparisons, "=": [*(equal if isinstance(equal, list) else [equal]), *question.labels]}
    written = json.dumps(where, sort_keys=True)
    return Asked(question.query, question.like, k, question.radius, question.rank, written)


def _once(work: Any) -> Work:
    """Work whose answer is the same for all who ask at the same time."""

    def answer(questions: Sequence[Any]) -> Sequence[Any]:
        return [work()] * len(questions)

    return answer


def _add_files(app: FastAPI) -> None:
    """The page's own files, read once: a name from a request is looked up among these, and never on the disk."""
    folder = files("parabit.web") / "static"
    contents = {entry.name: entry.read_bytes() for entry in folder.iterdir() if Path(entry.name).suffix in _TYPES}

    def give(name: str) -> Response:
        if name not in contents:
            raise RefusalError(404, "there is no such page", "the search page is at /")
        # The browser asks each time: after an upgrade the old page must not meet the new API.
        headers = {"cache-control": "no-cache"}
        return Response(contents[name], media_type=_TYPES[Path(name).suffix], headers=headers)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return give("index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return give("api.html")

    @app.get("/favicon.svg", include_in_schema=False)
    @app.get("/favicon.ico", include_in_schema=False)
    async def favicon() -> Response:
        return give("favicon.svg")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        return give(name)


def _tell_problems(app: FastAPI) -> None:
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
        told = {404: "there is no such page", 405: "this page takes another method", 413: "the request is too large"}
        error = told.get(problem.status_code, "the request cannot be read")
        return _problem(problem.status_code, error, "see /docs for what is there", dict(problem.headers or {}))

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, problem: Exception) -> Response:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=problem)
        return _problem(500, "the server did not foresee this", "its log says more")


def _problem(status: int, error: str, hint: str, headers: dict[str, str] | None = None) -> Response:
    return _json({"error": error, "hint": hint}, status, headers)


def _json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = json.dumps(content, separators=(",", ":")).encode()
    return Response(body, status, headers, media_type="application/json")

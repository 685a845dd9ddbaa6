"""The server: what every request passes, the routes to the service, and errors in words."""

from collections.abc import Sequence
from logging import getLogger
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from parabit import __version__
from parabit.budget import LONGEST_REQUESTED_ID
from parabit.explore.overview import Field
from parabit.web import schemas
from parabit.web.answers import RefusalError, json_response, problem_response
from parabit.web.guard import Guard
from parabit.web.service import DOCUMENT_SIZE, Service, Settings

_LONGEST_IN_ADDRESS = 5_000  # characters of a query in an address; longer ones are sent with POST
_LONGEST_SHOWN = 200  # characters of a request that an error quotes
_FILES = {
    "/": "index.html",
    "/docs": "api.html",
    "/favicon.svg": "favicon.svg",
    "/favicon.ico": "favicon.svg",
}
_log = getLogger(__name__)

_DESCRIPTION = """Search an index of documents by a text, or by a document that is in it.

Requests and answers are JSON. A refused request is answered with `{"error": ..., "hint": ...}`. Ids are strings or
whole numbers, as they were stored; numbers beyond 2^53 are given as strings, and found by these."""
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Problem} for status in (400, 401, 403, 413, 422, 431, 503)
}
_NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": schemas.Problem}}


def create_app(folder: Path | str, settings: Settings) -> FastAPI:
    """The application that serves an index; opening one that cannot be read raises here."""
    service = Service(Path(folder), settings)
    app = FastAPI(
        title="parabit", summary="Search by meaning and by words", description=_DESCRIPTION, version=__version__,
        docs_url=None, redoc_url=None, lifespan=service.running, responses=_REFUSALS,
    )  # fmt: skip
    app.add_middleware(
        Guard,
        token=settings.token,
        local=settings.local,
        allowed_hosts=settings.allowed_hosts,
        most_bytes=settings.most_bytes,
    )
    _add_errors(app)
    _add_api(app, service)
    _add_files(app)
    return app


def _add_api(app: FastAPI, service: Service) -> None:
    @app.get("/api/about", summary="The index")
    async def about() -> Response:
        """What the index is, the most that a request may ask for (`limits`), and what it can do: be searched with texts
        (`texts`), find documents by their words too (`words`), and give hits with their text (`text_kept`)."""
        service.worker.wake()
        return json_response(service.about())

    @app.get("/api/fields", summary="Its fields", response_model=list[Field])
    async def fields() -> Response:
        """The fields of the documents with their types: the values of some, the range of others."""
        return json_response(await service.overview(service.fields))

    @app.get("/api/start", summary="Where to begin")
    async def start() -> Response:
        """Queries that have answers here, and the newest documents, for the page."""
        return json_response(await service.overview(service.start))

    @app.post("/api/search", summary="Search", response_model=schemas.Answer, responses=_NOT_FOUND)
    async def search(query: schemas.Query) -> Response:
        """Find the documents that fit a text best, or that are most like one that is in the index."""
        service.check(query)
        return json_response(await service.answer(query))

    @app.get(
        "/api/document", summary="A document", response_model=schemas.Whole, responses=_NOT_FOUND
    )
    async def document(
        id: Annotated[
            str,
            Query(
                description="as it is shown; 7 is the string, or else the number",
                max_length=LONGEST_REQUESTED_ID,
            ),
        ],
        query: Annotated[
            str | None,
            Query(description="mark the words of this text", max_length=_LONGEST_IN_ADDRESS),
        ] = None,
        like: Annotated[
            str | None,
            Query(description="mark the words of this document", max_length=LONGEST_REQUESTED_ID),
        ] = None,
    ) -> Response:
        """A document with everything that is kept of it."""

        def documents(requests: Sequence[tuple[str, str | None, str | None]]) -> list[Any]:
            return [service.document(*request) for request in requests]

        answer = await service.ask("document", documents, (id, query, like), size=DOCUMENT_SIZE)
        return json_response(answer)

    @app.get("/api/map", summary="The map")
    async def chart() -> Response:
        """The map of the collection: a point for each document, or for a sample of 20,000; for the page."""
        if service.map is None:
            return json_response(service.chart_state())
        content = await service.overview(service.chart)
        return json_response(content, headers={"content-encoding": "gzip"})

    @app.get("/healthz", summary="Health")
    async def healthz() -> Response:
        """Whether the server can answer, and nothing else, as no token is needed; said at once,
        however many requests wait."""
        service.worker.wake()
        if service.is_well:
            return json_response({"status": "ok"})
        return json_response({"status": "failing"}, 503)


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
        return problem_response(problem.status_code, problem.detail, problem.hint, problem.headers)

    @app.exception_handler(RequestValidationError)
    async def misshapen(_: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        location = ".".join(map(str, first["loc"]))[:_LONGEST_SHOWN]
        message = first["msg"][:_LONGEST_SHOWN]
        return problem_response(422, f"{location}: {message}", "see /docs for what is expected")

    @app.exception_handler(HTTPException)
    async def http(_: Request, problem: HTTPException) -> Response:
        errors = {404: "there is no such page", 405: "this page takes another method"}
        error = errors.get(problem.status_code, "the request cannot be read")
        return problem_response(
            problem.status_code, error, "see /docs for what is there", problem.headers
        )

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, problem: Exception) -> Response:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=problem)
        return problem_response(500, "the server did not foresee this", "its log says more")

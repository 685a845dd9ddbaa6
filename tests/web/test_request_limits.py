"""What a request may cost, and what the server does with one that costs more."""

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import uvicorn
from live_server import NO_MAP, connected

from parabit import Document, Index, budget
from parabit.errors import IndexFolderError
from parabit.explore import draw_map, keep_map
from parabit.index.store import Snapshot
from parabit.index.store import schema as store_schema
from parabit.index.word_index import RowWords
from parabit.web import Settings, connections, create_app
from parabit.web.answers import AnswerCache
from parabit.web.connections import H11Connection, uvicorn_config
from parabit.web.service import Service
from parabit.web.worker import Worker

HALF_A_HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
HALF_A_BODY = b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"


@contextmanager
def port_of(folder: Path, settings: Settings = NO_MAP, most: int | None = None) -> Iterator[int]:
    """The port of a server with some connections at most."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn_config(create_app(folder, settings), most))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(600)
        listener.close()


def sent(port: int, request: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(request)
    return connection


def received(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    content = b""
    with connection:
        while True:
            try:
                piece = connection.recv(1 << 16)
            except ConnectionResetError:
                return content
            if not piece:
                return content
            content += piece


def in_a_loop(work: Callable[[], Any]) -> Any:
    """What a coroutine returns, run in a thread, which surely has no event loop yet."""
    with ThreadPoolExecutor() as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


# Time


def test_after_its_time_no_thread_works_for_a_request(
    news: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = 0.0
    steps = list[str]()

    def nearest_word(self: RowWords, token: str) -> None:
        nonlocal late
        steps.append(token)
        late = 1000.0

    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + late))
    monkeypatch.setattr(RowWords, "nearest_word", nearest_word)
    monkeypatch.setattr("parabit.web.worker.cores", lambda: 1)
    with connected(news) as client:
        late = 0.0  # the server has searched once before it began
        steps.clear()
        response = client.post("/api/search", json={"query": "qqa qqb qqc qqd"})
        assert (response.status_code, response.headers["retry-after"]) == (503, "2")
        assert "no answer within" in response.json()["error"]
        late = 0.0
        # The one thread is free: it answers the next request.
        assert client.post("/api/search", json={"query": "qqz"}).status_code == 503
    assert steps == ["qqa", "qqz"]


def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    done = list[str]()
    busy, free = threading.Event(), threading.Event()

    def work(requests: Sequence[str]) -> Sequence[str]:
        if requests == ["first"]:
            busy.set()
            free.wait()
        done.extend(requests)
        return requests

    async def ask() -> None:
        worker = Worker(10, is_due=lambda: False, refresh=lambda: None, threads=1)
        first = asyncio.ensure_future(worker.ask("first", work, "first"))
        await asyncio.to_thread(busy.wait)
        left = asyncio.ensure_future(worker.ask("left", work, "left"))
        last = asyncio.ensure_future(worker.ask("last", work, "last"))
        while worker.waiting < 2:
            await asyncio.sleep(0)
        left.cancel()
        await asyncio.sleep(0)
        free.set()
        await asyncio.gather(first, last)
        worker.close()

    in_a_loop(ask)
    assert done == ["first", "last"]


# Threads


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_has_ended_is_replaced_and_seen_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def end(_: int) -> None:
        raise SystemExit

    async def ask() -> list[Any]:
        with monkeypatch.context() as patch:
            patch.setattr("parabit.web.worker.limit_cores", end)
            worker = Worker(10, is_due=lambda: False, refresh=lambda: None, threads=2)
            while worker.is_alive:
                await asyncio.sleep(0.001)
        answer = await worker.ask("kind", lambda requests: requests, "request")
        state = worker.is_alive
        worker.close()
        return [answer, state]

    with caplog.at_level(logging.ERROR):
        assert in_a_loop(ask) == ["request", True]
    assert caplog.text.count("a thread that answers requests has ended and is replaced") == 2


def test_without_a_thread_the_server_is_not_well(
    news: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(news) as client:
        assert client.get("/healthz").status_code == 200
        monkeypatch.setattr(Worker, "is_alive", False)
        response = client.get("/healthz")
    assert (response.status_code, response.json()) == (503, {"status": "failing"})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_before_a_batch_is_answered_and_the_thread_goes_on() -> None:
    errors = [ValueError("of a refresh"), SystemExit("of a thread")]

    def refresh() -> None:
        if errors:
            raise errors.pop(0)

    async def ask() -> list[Any]:
        worker = Worker(10, is_due=lambda: True, refresh=refresh, threads=1)
        answers = [
            await asyncio.wait_for(
                asyncio.gather(
                    worker.ask("kind", lambda requests: requests, number), return_exceptions=True
                ),
                60,
            )
            for number in range(3)
        ]
        threads = list(worker._threads)
        worker.close()
        return [answers, len(threads)]

    [[first], [second], last], threads = in_a_loop(ask)
    assert (repr(first), last, threads) == ("ValueError('of a refresh')", [2], 1)
    assert repr(second) == "RuntimeError('SystemExit: of a thread')"  # which would end the loop


def test_an_index_that_cannot_be_read_again_in_any_way_is_searched_as_it_was(
    news: Path, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Index) -> bool:
        raise ValueError("a schema that does not fit")  # as tantivy raises it

    monkeypatch.setattr("parabit.web.service._EVERY", 0)
    with connected(news) as client:
        monkeypatch.setattr(Index, "refresh", broken)
        for _ in range(3):
            response = client.post("/api/search", json={"query": topic_documents[0].text})
            assert response.json()["hits"]
        assert client.get("/healthz").status_code == 503


def test_a_request_that_cannot_be_answered_does_not_fail_others() -> None:
    busy, free = threading.Event(), threading.Event()

    def work(requests: Sequence[str]) -> Sequence[str]:
        busy.set()
        free.wait()
        if "bad" in requests:
            raise RuntimeError("bad")
        return requests

    async def ask() -> list[Any]:
        worker = Worker(10, is_due=lambda: False, refresh=lambda: None, threads=1)
        answers_to_come = [asyncio.ensure_future(worker.ask("kind", work, "first"))]
        await asyncio.to_thread(busy.wait)
        answers_to_come += [
            asyncio.ensure_future(worker.ask("kind", work, n)) for n in ("a", "bad", "b")
        ]
        while worker.waiting < 3:
            await asyncio.sleep(0)
        free.set()
        answers = await asyncio.gather(*answers_to_come, return_exceptions=True)
        worker.close()
        return answers

    first, a, bad, b = in_a_loop(ask)
    assert (first, a, str(bad), b) == ("first", "a", "bad", "b")


# Names and origins


def test_only_names_of_the_server_are_answered(news: Path) -> None:
    open_to_others = Settings(local=False, map=False, allowed_hosts=("search.example.com",))
    own_name = socket.gethostname()
    for settings, allowed, refused in (
        (NO_MAP, ["localhost:80", "127.0.0.1", "[::1]:8000", "LOCALHOST"], ["10.0.0.7", own_name]),
        (
            open_to_others,
            ["localhost", "10.0.0.7:8000", "[fe80::1]", own_name, "search.example.com:443"],
            [],
        ),
    ):
        with connected(news, settings) as client:
            for host in allowed:
                response = client.get("/api/about", headers={"host": host})
                assert response.status_code == 200, host
            for host in (*refused, "evil.com", "localhost.evil.com", "127.0.0.1.evil.com", ""):
                for path in ("/", "/healthz", "/api/about"):
                    response = client.get(path, headers={"host": host})
                    assert response.status_code == 400, host
            problem = client.get("/api/about", headers={"host": "evil.com:8000"}).json()
            assert "'evil.com'" in problem["error"]
            assert "--allowed-host" in problem["hint"]


def test_another_site_is_refused(news: Path) -> None:
    settings = Settings(map=False, allowed_hosts=("search.example.com",), seconds=600)
    with connected(news, settings) as client:
        port = client.base_url.port
        for origin, status in (
            (f"http://127.0.0.1:{port}", 200),
            ("https://search.example.com", 200),  # of a proxy that gives another Host
            ("http://127.0.0.1:1", 403),
            ("https://evil.com", 403),
            ("null", 403),
        ):
            headers = {"origin": origin}
            answer = client.post("/api/search", json={"query": "a"}, headers=headers)
            assert answer.status_code == status, origin
            assert client.get("/api/about", headers=headers).status_code == status
    assert "must not use this server" in answer.json()["error"]


# Heads, bodies and connections


@pytest.mark.parametrize("begin", [HALF_A_HEAD + b"X: ", b"GET /?"], ids=["header", "address"])
def test_a_head_has_a_length(news: Path, begin: bytes) -> None:
    with port_of(news) as port:
        answer = received(sent(port, begin + b"x" * 400_000))
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert b"more than 65,536 bytes" in answer
    with connected(news) as client:
        response = client.get("/api/about", headers={"x": "x" * 66_000})
        assert response.status_code == 431
        assert client.get("/api/about", headers={"x": "x" * 60_000}).status_code == 200


def test_trailers_have_a_length(news: Path) -> None:
    head = b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with port_of(news) as port:
        request = head + b"2\r\n{}\r\n0\r\nX: " + b"x" * 400_000
        assert received(sent(port, request)).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("reader", ["httptools", "h11"])
@pytest.mark.parametrize("half", [HALF_A_HEAD, HALF_A_BODY], ids=["head", "body"])
def test_a_request_that_does_not_go_on_is_closed(
    news: Path, monkeypatch: pytest.MonkeyPatch, half: bytes, reader: str
) -> None:
    if reader == "h11":
        monkeypatch.setattr(connections, "HttpToolsConnection", H11Connection)
    monkeypatch.setattr(connections, "_ARRIVAL_SECONDS", 0.05)
    monkeypatch.setattr(connections, "_LOOKED_AT_SECONDS", 0.01)
    with port_of(news) as port:
        answer = received(sent(port, half))
        assert answer.startswith(b"HTTP/1.1 408 ")
        whole = HALF_A_HEAD + b"Connection: close\r\n\r\n"
        assert received(sent(port, whole)).startswith(b"HTTP/1.1 200 ")


def test_half_sent_requests_make_room_for_whole_ones(news: Path) -> None:
    whole = HALF_A_HEAD + b"Connection: close\r\n\r\n"
    with port_of(news, most=8) as port:
        half = [sent(port, HALF_A_HEAD) for _ in range(40)]
        assert received(sent(port, whole)).startswith(b"HTTP/1.1 200 ")
        assert received(half[0]).startswith(b"HTTP/1.1 503 ")  # what was begun first is closed
        for connection in half[1:]:
            connection.close()


def test_connections_that_are_all_at_work_are_said_to_be_too_many(
    news: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, busy = threading.Event(), threading.Event()

    def search(self: Service, searches: Sequence[Any]) -> list[bytes]:
        busy.set()
        free.wait()
        return [b"{}"] * len(searches)

    monkeypatch.setattr(Service, "search", search)
    body = b'{"query": "a"}'
    request = b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    request += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with port_of(news, most=1) as port:
        first = sent(port, request)
        busy.wait()
        second = received(sent(port, request))
        assert second.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in second
        free.set()
        assert received(first).startswith(b"HTTP/1.1 200 ")


def test_thousands_of_requests_at_once_are_refused(news: Path) -> None:
    with port_of(news) as port:
        answer = received(sent(port, (HALF_A_HEAD + b"\r\n") * 1000))
    assert b"HTTP/1.1 400 " in answer


def test_few_large_bodies_are_read_at_once(news: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parabit.web.guard._MOST_LARGE", 1)
    head = b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n"
    with connected(news) as client:
        assert client.base_url.port is not None
        half = sent(client.base_url.port, head + b" " * 150_000)
        while True:  # until the server has read it
            response = client.post("/api/search", content=b" " * 200_000)
            if response.status_code == 503:
                break
        assert "too many large requests" in response.json()["error"]
        assert client.post("/api/search", json={"query": "a"}).status_code == 200
        half.close()


# Queries, conditions and what is remembered


def test_a_request_asks_for_no_more_than_it_may(news: Path) -> None:
    many = {str(number): 1 for number in range(33)}
    with connected(news) as client:
        for request, status, words in (
            ({"query": "a", "where": many}, 422, "body.where"),
            ({"query": "a", "where": {"x" * 1001: 1}}, 422, "body.where"),
            ({"query": "a", "where": {"labels": "x" * 1001}}, 422, "body.where"),
            ({"query": "a", "where": {"labels": ["x"] * 1001}}, 422, "body.where"),
            ({"query": "a", "where": {"labels": ["x" * 900] * 900}}, 413, "characters"),
            ({"query": "a", "where": {"a": [1] * 900, "b": [1] * 900}}, 413, "1,800 values"),
            ({"like": "x" * 4097}, 422, "body.like"),
            ({"query": "a", "x" * 50_000: 1}, 422, "body."),
        ):
            response = client.post("/api/search", json=request)
            assert response.status_code == status, request
            problem = response.json()
            assert words in problem["error"]
            assert len(response.content) < 1000
        for parameters in ({"id": "x" * 5000}, {"id": "x", "query": "x" * 6000}):
            assert client.get("/api/document", params=parameters).status_code == 422


def test_answers_are_remembered_within_a_number_of_bytes() -> None:
    cache = AnswerCache(most_bytes=10_000)
    for number in range(1000):
        cache.put(number.to_bytes(16), bytes(number))
        assert cache.bytes <= 10_000
    assert cache.get((999).to_bytes(16)) == bytes(999)
    cache.put((999).to_bytes(16), b"again")
    assert cache.get((999).to_bytes(16)) == b"again"
    assert cache.get((1).to_bytes(16)) is None


def test_a_request_is_remembered_by_a_digest(news: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = list[bytes]()
    monkeypatch.setattr(AnswerCache, "put", lambda self, key, answer: keys.append(key))
    with connected(news) as client:
        for where in ({"labels": "x" * 900}, {"labels": ["x" * 900]}, {"year": 1}, {"year": True}):
            for query in ("a", "b", "a" * 50_000):
                request = {"query": query, "where": where}
                assert client.post("/api/search", json=request).status_code == 200
    assert len(set(keys)) == 12
    assert max(map(len, keys)) <= 32


def test_keys_of_long_values_are_not_kept() -> None:
    before = store_schema._remembered_field_key.cache_info().currsize
    keys = {store_schema.field_key("labels", "x" * (1000 + number)) for number in range(50)}
    assert len(keys) == 50
    assert store_schema._remembered_field_key.cache_info().currsize == before


# Whatever is stored


def test_what_is_stored_cannot_break_an_answer(
    news: Path, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    deep: Any = "bottom"
    for _ in range(260):
        deep = [deep]
    fields_of = Snapshot.fields_of

    def with_bad_fields(self: Snapshot, rows: Any) -> list[dict[str, Any]]:
        bad = {"deep": deep, "half": "a \ud800", "\udfff": [1, {"x": "\udc00"}], "title": "\ud83d"}
        return [{**fields, **bad} for fields in fields_of(self, rows)]

    monkeypatch.setattr(Snapshot, "fields_of", with_bad_fields)
    with Index.open(news) as index:
        keep_map(index, draw_map(index))
    with connected(news, Settings(seconds=600)) as client:
        answer = client.post("/api/search", json={"query": topic_documents[0].text, "why": True})
        assert answer.status_code == 200
        [first, *_] = answer.json()["hits"]
        assert first["fields"]["half"] == "a \ufffd"
        assert "…" in json.dumps(first["fields"]["deep"], ensure_ascii=False)
        for path in ("/api/document?id=post0", "/api/fields", "/api/start", "/api/map"):
            assert client.get(path).status_code == 200, path
        assert client.get("/api/document?id=%ED%A0%80").status_code == 404


def test_dates_at_the_ends_of_the_calendar_are_shown(tmp_path: Path) -> None:
    days = ["0001-01-01T00:00:00", "9999-12-31T23:59:59", "2001-05-03"] * 2
    codes = np.zeros((6, 1), dtype=np.uint8)
    Index.of_codes(codes, 8, tmp_path / "days.index", fields=[{"day": day} for day in days]).close()
    with connected(tmp_path / "days.index") as client:
        [field] = client.get("/api/fields").json()
        assert (field["kind"], field["least"], field["most"]) == (
            "date",
            "0001-01-01",
            "9999-12-31",
        )
        assert len(client.get("/api/start").json()["recent"]) == 6


def test_dates_that_no_calendar_has_in_utc_do_not_break_the_page(tmp_path: Path) -> None:
    days = ["0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00", "2001-05-03"] * 2
    codes = np.zeros((6, 1), dtype=np.uint8)
    Index.of_codes(codes, 8, tmp_path / "days.index", fields=[{"day": day} for day in days]).close()
    with connected(tmp_path / "days.index") as client:
        [field] = client.get("/api/fields").json()
        assert {value for value, _ in field["values"]} == {*days}
        assert len(client.get("/api/start").json()["recent"]) == 6


def test_errors_of_an_overview_are_those_of_a_search(
    news: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(self: Service) -> None:
        raise IndexFolderError("/a/secret/path is damaged", hint="build it again")

    for name in ("fields", "start"):
        with connected(news) as client, monkeypatch.context() as patch:
            damaged.__name__ = name
            patch.setattr(Service, name, damaged)
            response = client.get(f"/api/{name}")
        assert (response.status_code, response.json()["error"]) == (503, "the index cannot be read")
        assert "secret" not in response.text


def test_the_map_is_of_one_moment(
    news: Path, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index.open(news) as index:
        keep_map(index, draw_map(index))
    with connected(news, Settings(seconds=600)) as client:
        client.get("/api/about")
        snapshot = Index.snapshot
        to_delete = ["post3"]

        def deleted_meanwhile(self: Index) -> Snapshot:
            now = snapshot(self)
            if to_delete:
                ids = [to_delete.pop()]
                with Index.open(news, write=True) as writer:
                    writer.delete(ids)
                self._store.refresh()
            return now

        monkeypatch.setattr(Index, "snapshot", deleted_meanwhile)
        assert client.get("/api/map").json()["points"] == len(topic_documents)

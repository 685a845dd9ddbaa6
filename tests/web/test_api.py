import asyncio
import json
import math
import shutil
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from live_server import PATIENT, connected

import parabit
from parabit import Document, Index
from parabit.codes import hamming
from parabit.explore import draw_map, keep_map, kept_map
from parabit.web import Settings
from parabit.web.map import Drawing
from parabit.web.schemas import Query
from parabit.web.service import Service
from parabit.web.worker import Worker


@pytest.fixture(scope="module")
def folder(_made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of 300 documents that is only read, with a map."""
    copy = tmp_path_factory.mktemp("served") / "news.index"
    shutil.copytree(_made, copy)
    with Index.open(copy) as index:
        keep_map(index, draw_map(index))
    return copy


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx.Client]:
    with connected(folder, PATIENT) as client:
        yield client


def ask(client: httpx.Client, status: int = 200, **question: Any) -> dict[str, Any]:
    response = client.post("/api/search", json=question)
    assert response.status_code == status, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_about_says_what_the_index_is(client: httpx.Client) -> None:
    about = client.get("/api/about").json()
    assert (about["name"], about["title"], about["version"]) == (
        "news.index",
        "news",
        parabit.__version__,
    )
    assert (about["documents"], about["bits"]) == (300, 20)
    assert (about["texts"], about["text_kept"], about["words"]) == (True, True, True)
    assert (about["ranks"], about["best_rank"]) == (
        ["hybrid", "words", "hamming", "asymmetric"],
        "hybrid",
    )
    assert about["limits"] == {"k": 100, "radius": 20, "characters": 100_000, "seconds": 600.0}


def test_hits_are_those_of_the_index(
    client: httpx.Client, folder: Path, topic_documents: list[Document]
) -> None:
    text = topic_documents[7].text
    with Index.open(folder) as index:
        for rank in index.ranks:
            answer = ask(client, query=text, k=15, rank=rank, why=True)
            hits = index.search([text], k=15, rank=rank)
            assert answer["code"] == hits.codes[0].tobytes().hex()
            for hit, other in zip(answer["hits"], hits[0], strict=True):
                assert (hit["id"], hit["distance"], hit["title"]) == (
                    other.id,
                    other.distance,
                    other.title,
                )
                assert (hit["why"]["words"], hit["why"]["code"]) == (
                    other.why.words,
                    other.why.code,
                )
                assert hit["score"] == pytest.approx(other.score, abs=1e-6)
                marks = {piece["text"].lower() for piece in hit["snippet"] if piece.get("mark")}
                assert marks <= {*text.split()}
            like = ask(client, like="post7", k=15, rank=rank)
            assert [hit["id"] for hit in like["hits"]] == index.like("post7", k=15, rank=rank).ids[
                0
            ]
        best = ask(client, query=text)
        assert (best["rank"], best["notes"]) == (
            "hybrid",
            [],
        )  # an embedded index leaves nothing open
        assert len(best["hits"]) == 10
        stored = index.stored([hit["id"] for hit in best["hits"]])
    for hit, one in zip(best["hits"], stored, strict=True):
        assert (hit["id"], hit["fields"], hit["title"]) == (one.id, one.fields, one.title)
        assert (hit["why"], hit["copies"]) == (None, [])
        assert hit["code"] == one.code.tobytes().hex()
        code = np.frombuffer(bytes.fromhex(best["code"]), dtype=np.uint8)
        assert hamming(code[None], one.code[None])[0, 0] == hit["distance"]
        snippet = "".join(piece["text"] for piece in hit["snippet"]).strip("… ")
        assert snippet
        assert snippet in one.text


def test_an_answer_says_what_was_done_with_the_query(
    client: httpx.Client, topic_documents: list[Document]
) -> None:
    first = topic_documents[3].text.split()[0]
    answer = ask(client, query=f"{first}x qqqqqqqq", rank="words")
    assert answer["unknown"] == ["qqqqqqqq"]
    assert list(answer["corrected"]) == [f"{first}x"]
    assert answer["words"] == list(answer["corrected"].values())
    assert len(answer["notes"]) == 2
    assert answer["hits"]
    unknown = ask(client, query="xyzzy 12345")
    assert (unknown["known"], unknown["hits"], unknown["position"]) == (False, [], None)


def test_radius_and_fields_limit_what_is_found(
    client: httpx.Client, topic_documents: list[Document]
) -> None:
    text = topic_documents[0].text
    near = ask(client, query=text, k=100, radius=3)
    assert near["hits"]
    assert {hit["distance"] for hit in near["hits"]} <= {0, 1, 2, 3}
    where = {"year": {">=": 1991, "!=": [1992]}, "labels": ["topic3", "topic1"]}
    assert {
        hit["fields"]["year"] for hit in ask(client, query=text, k=100, where=where)["hits"]
    } == {1991, 1993}


ERRORS: list[tuple[dict[str, Any], int, str]] = [
    ({}, 400, "either `query` or `like`"),
    ({"query": "  "}, 400, "the query is empty"),
    ({"query": "a", "k": 101}, 400, "at most 100 hits"),
    ({"query": "a", "k": "7"}, 422, "body.k"),
    ({"query": "a", "radius": -1}, 422, "body.radius"),
    ({"query": "a", "radius": 21}, 400, "codes have 20 bits"),
    ({"query": "a", "rank": "cosine"}, 400, "it can by hybrid, words, hamming"),
    ({"query": "a", "where": {"colour": "red"}}, 400, "no document has a field 'colour'"),
    ({"query": "a", "where": {"year": {"$gt": 5}}}, 422, "body.where"),
    ({"query": "a", "extra": 1}, 422, "body.extra"),
    ({"query": "a" * 100_001}, 413, "more than 100,000 characters"),
    ({"query": "a" * 1_100_000}, 413, "more than 1,048,576 bytes"),
    ({"like": "nobody"}, 404, "there is no document 'nobody'"),
]


def test_what_makes_no_sense_is_refused_in_words(client: httpx.Client) -> None:
    for request, status, words in ERRORS:
        problem = ask(client, status, **request)
        assert words in problem["error"] + " " + problem["hint"]
        assert len(json.dumps(problem)) < 1000
    for content in (b"", b"{", b"\xff\xfe", b"[1]", b"null", b'{"query": "\\ud800"}'):
        response = client.post(
            "/api/search", content=content, headers={"content-type": "application/json"}
        )
        assert response.status_code in (200, 422)
        assert response.json()
    pieces = (b" " * 65536 for _ in range(40))  # of a body that does not say its length
    response = client.post(
        "/api/search", content=pieces, headers={"content-type": "application/json"}
    )
    assert (response.status_code, response.json()["error"]) == (
        413,
        "the request has more than 1,048,576 bytes",
    )


def test_a_document_is_shown_whole_with_words_marked_without_a_search(
    client: httpx.Client, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Index, "search", None)
    monkeypatch.setattr(Index, "like", None)
    one = topic_documents[4]
    other = next(document for document in topic_documents[5:] if document.labels == one.labels)
    plain = client.get("/api/document", params={"id": one.id}).json()
    assert plain["text"] == [{"text": one.text}]
    assert (plain["id"], plain["cut"]) == (one.id, False)
    assert plain["fields"] == {"year": one.fields["year"], "labels": list(one.labels)}
    for marks in ({"query": other.text}, {"like": other.id}):
        shown = client.get("/api/document", params={"id": one.id, **marks}).json()
        assert "".join(piece["text"] for piece in shown["text"]) == one.text
        assert any(piece.get("mark") for piece in shown["text"])
    assert client.get("/api/document", params={"id": "nobody"}).status_code == 404
    assert client.get("/api/document").status_code == 422


def test_a_start_has_queries_and_the_newest_documents(
    client: httpx.Client, topic_documents: list[Document]
) -> None:
    start = client.get("/api/start").json()
    assert [one["id"] for one in start["recent"]] == [one.id for one in topic_documents[:-7:-1]]
    assert start["recent_by"] == ""
    for example in start["examples"]:
        assert ask(client, query=f'"{example}"', rank="words")["hits"]


def test_near_copies_are_collapsed_under_one_hit(
    news: Path, topic_documents: list[Document]
) -> None:
    one = topic_documents[0]
    with Index.open(news, write=True) as writer:
        writer.add(
            [Document(f"copy{number}", f"{one.text} {number}", one.labels) for number in range(3)]
        )
    with connected(news) as client:
        flat = ask(client, query=one.text, k=8)["hits"]
        first, *others = ask(client, query=one.text, k=8, collapse=True)["hits"]
        family = [first["id"], *(copy["id"] for copy in first["copies"])]
        assert sorted(family) == ["copy0", "copy1", "copy2", one.id]
        assert [hit["id"] for hit in others] == [
            hit["id"] for hit in flat if hit["id"] not in family
        ]


def test_the_map_has_a_point_for_each_document_and_hit(
    client: httpx.Client, topic_documents: list[Document]
) -> None:
    response = client.get("/api/map")
    chart = response.json()
    assert response.headers["content-encoding"] == "gzip"
    assert chart["state"] == "ready"
    assert (
        chart["points"]
        == chart["documents"]
        == len(chart["x"])
        == len(chart["y"])
        == len(chart["label"])
        == 300
    )
    assert sorted(chart["ids"]) == sorted(document.id for document in topic_documents)
    assert min(chart["x"] + chart["y"]) >= 0
    assert max(chart["x"] + chart["y"]) == 65_535
    by_id = {document.id: document.labels[0] for document in topic_documents}
    assert [chart["labels"][place] for place in chart["label"]] == [
        by_id[identity] for identity in chart["ids"]
    ]
    places = dict(zip(chart["ids"], zip(chart["x"], chart["y"], strict=True), strict=True))
    assert chart["field"] == "labels"
    assert len(chart["titles"]) == 300
    codes = {
        hit["id"]: hit["code"] for hit in ask(client, query=topic_documents[0].text, k=100)["hits"]
    }
    answer = ask(client, query=topic_documents[0].text, positions=True)
    for hit in answer["hits"]:  # documents of the same code may share a place
        assert tuple(hit["position"]) in [
            places[one] for one, code in codes.items() if code == hit["code"]
        ]
    assert len(answer["position"]) == 2
    listed = ask(
        client, query="-xyzzy", positions=True
    )  # which describes nothing, so that there is no code
    assert (listed["known"], listed["code"], listed["position"], listed["hits"][0]["distance"]) == (
        True,
        *[None] * 3,
    )


def test_health_is_all_that_is_said_without_a_token(folder: Path) -> None:
    with connected(folder, Settings(token="secret", map=False)) as client:
        assert client.get("/healthz").json() == {"status": "ok"}


def test_files_of_the_page_have_etags_and_nothing_else_is_given(client: httpx.Client) -> None:
    for path in ("/", "/docs", "/favicon.ico", "/static/main.js"):
        first = client.get(path)
        assert first.headers["cache-control"] == "no-cache"
        again = client.get(path, headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    for name in (
        "../app.py",
        "%2e%2e/app.py",
        "..%2fapp.py",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "",
        "__init__.py",
    ):
        response = client.send(client.build_request("GET", f"/static/{name}"))
        assert response.status_code == 404, name
        assert response.json()["error"] == "there is no such page"
    assert client.post("/api/about").status_code == 405


def test_headers_can_be_asked_for_alone_and_forbid_what_the_page_does_not_need(
    client: httpx.Client,
) -> None:
    for path in (
        "/",
        "/docs",
        "/api/about",
        "/nothing",
        "/openapi.json",
        "/healthz",
        "/api/document?id=post0",
    ):
        head, whole = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (whole.status_code, b"")
        assert head.headers["content-length"] == whole.headers["content-length"]
        assert "default-src 'none'" in head.headers["content-security-policy"]
        assert "unsafe" not in head.headers["content-security-policy"]
        assert head.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in head.headers
    assert client.head("/api/search").status_code == 405
    for name, status in (
        ("evil.example", 400),
        ("localhost:1", 200),
    ):  # foreign names for this machine are refused
        assert client.get("/api/about", headers={"host": name}).status_code == status


def test_a_token_is_asked_for(folder: Path) -> None:
    with connected(folder, Settings(token="secret-1", map=False)) as client:
        for path in ("/api/about", "/api/map", "/openapi.json"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers={"authorization": "Bearer secret-2"}).status_code == 401
            assert client.get(path, headers={"authorization": "Bearer secret-1"}).status_code == 200
        assert client.post("/api/search", json={"query": "a"}).status_code == 401
        assert client.get("/").status_code == client.get("/healthz").status_code == 200


def test_changes_by_others_are_seen(
    news: Path, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parabit.web.service._EVERY", 3600)
    with Index.open(news, write=True) as writer, connected(news) as client:
        added = Document("new", topic_documents[0].text, ("fresh",), {"year": 2001})
        gone = topic_documents[1].id

        def answer() -> Any:
            return ask(client, query=added.text, where={"labels": "fresh"})

        def found() -> list[str]:
            return [hit["id"] for hit in answer()["hits"]]

        assert found() == []
        assert answer() == answer()  # from memory, as it says that it took equally long
        writer.add([added])
        monkeypatch.setattr("parabit.web.service._EVERY", 0)
        writer.delete([gone])
        assert found() == ["new"]
        assert client.get("/api/about").json()["documents"] == 300
        assert client.get("/api/fields").json()[0]["most"] == 2001
        assert client.get("/api/document", params={"id": gone}).status_code == 404
        writer.compact()
        writer.delete(["new"])
        assert found() == []


def test_an_index_that_was_damaged_meanwhile_answers_and_says_that_it_is_not_well(
    news: Path, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parabit.web.service._EVERY", 0)
    with connected(news) as client:
        manifest = (news / "manifest.json").read_bytes()
        for content, status in ((manifest[:100], 503), (manifest, 200)):
            (news / "manifest.json").write_bytes(content)
            assert ask(client, query=topic_documents[0].text)["hits"]
            health = client.get("/healthz")
            assert health.status_code == status
            assert str(news.resolve().parent) not in health.text


@contextmanager
def held_searches() -> Iterator[threading.Event]:
    """Searches wait until the block ends; the event says that one has begun."""
    free, busy = threading.Event(), threading.Event()

    def search(self: Service, searches: Sequence[Any]) -> list[bytes]:
        busy.set()
        free.wait()
        return [b"{}"] * len(searches)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Service, "search", search)
        try:
            yield busy
        finally:
            free.set()


def test_health_and_the_page_do_not_wait_for_searches(folder: Path) -> None:
    with connected(folder) as client, ThreadPoolExecutor() as pool:
        with held_searches() as busy:
            search = pool.submit(client.post, "/api/search", json={"query": "a"})
            busy.wait()
            for path in ("/healthz", "/api/about", "/api/fields", "/api/start", "/"):
                assert client.get(path).status_code == 200
        assert search.result().status_code == 200


def test_an_index_without_documents_is_served(news: Path, topic_documents: list[Document]) -> None:
    with Index.open(news, write=True) as writer:
        writer.delete([document.id for document in topic_documents])
    with connected(news, PATIENT) as client:
        assert client.get("/api/about").json()["documents"] == 0
        assert ask(client, query=topic_documents[0].text)["hits"] == []
        assert client.get("/api/fields").json() == []
        assert client.get("/api/start").json() == {"examples": [], "recent": [], "recent_by": ""}
        assert client.get("/api/map").json() == {"state": "none", "why": "a map needs 4 documents"}
        assert client.get("/healthz").status_code == 200


def test_codes_without_a_model_are_browsed_and_a_number_is_a_number_and_nan_is_null(
    tmp_path: Path,
) -> None:
    codes = np.array([[0], [1], [255], [254]], dtype=np.uint8)
    ids: list[int | str] = [7, "7", 8, 1 << 60]
    fields: list[dict[str, Any]] = [
        {"price": math.nan, "on": True},
        {"price": [1.5, math.inf], "on": 1},
        {},
        {},
    ]
    Index.of_codes(codes, 8, tmp_path / "codes.index", ids=ids, fields=fields).close()
    with connected(tmp_path / "codes.index") as client:
        about = client.get("/api/about").json()
        assert (about["texts"], about["text_kept"], about["ranks"]) == (False, False, ["hamming"])
        assert "knows no texts" in ask(client, 400, query="a text")["error"]
        large = str(1 << 60)  # beyond 2^53 a browser would round it
        near = {
            like: ask(client, like=like, k=1)["hits"][0]["id"] for like in (7, "7", 8, "8", large)
        }
        assert near == {7: "7", "7": 7, 8: large, "8": large, large: 8}
        hits = {hit["id"]: hit for hit in ask(client, like=8)["hits"]}
        assert {id: hit["fields"] for id, hit in hits.items()} == {
            7: {"price": None, "on": True}, "7": {"price": [1.5, None], "on": 1}, large: {},
        }  # fmt: skip
        assert all(hit["snippet"] == [] for hit in hits.values())
        for id in (7, "7", 8, large):
            shown = client.get("/api/document", params={"id": id}).json()
            assert (str(shown["id"]), shown["text"]) == (str(id), [])
        assert client.get("/api/document", params={"id": 8}).json()["fields"] == {}
        assert (
            client.get("/api/document", params={"id": "7"}).json()["fields"] == hits["7"]["fields"]
        )


def test_searches_that_wait_go_together_but_not_those_that_python_takes_for_equal() -> None:
    batches = list[Sequence[Any]]()

    async def together() -> list[Any]:
        worker = Worker(10, is_due=lambda: False, refresh=lambda: None, threads=1)
        busy, free = threading.Event(), threading.Event()

        def work(some: Sequence[Any]) -> Sequence[Any]:
            busy.set()
            free.wait()
            batches.append([one.where for one in some])
            return [one.like for one in some]

        queries = [
            Query.model_validate({"like": id, "where": {"on": on}})
            for id, on in zip("abcd", [1, 1, True, 1], strict=True)
        ]
        asked = [asyncio.ensure_future(worker.ask(queries[0].kind, work, queries[0]))]
        await asyncio.to_thread(busy.wait)
        asked += [asyncio.ensure_future(worker.ask(one.kind, work, one)) for one in queries[1:]]
        while worker.waiting < 3:  # all wait for the first
            await asyncio.sleep(0)
        free.set()
        try:
            return await asyncio.gather(*asked)
        finally:
            worker.close()

    with ThreadPoolExecutor() as pool:  # in a thread, which surely has no event loop yet
        assert pool.submit(asyncio.run, together()).result() == [*"abcd"]
    assert repr(batches) == repr([[{"on": 1}], [{"on": 1}, {"on": 1}], [{"on": True}]])


def test_an_index_is_read_again_while_nobody_searches() -> None:
    order, busy, free, is_asked = (
        list[str](),
        threading.Event(),
        threading.Event(),
        threading.Event(),
    )

    def is_due() -> bool:
        if busy.is_set():  # for the second request
            is_asked.set()
        return busy.is_set() and "refresh" not in order

    def work(some: Sequence[str]) -> Sequence[str]:
        if some == ["first"]:
            busy.set()
            free.wait()
        order.extend(some)
        return some

    async def both() -> None:
        worker = Worker(10, is_due, lambda: order.append("refresh"), threads=2)
        asked = [asyncio.ensure_future(worker.ask("first", work, "first"))]
        await asyncio.to_thread(busy.wait)
        asked.append(asyncio.ensure_future(worker.ask("second", work, "second")))
        await asyncio.to_thread(is_asked.wait)
        free.set()
        try:
            await asyncio.gather(*asked)
        finally:
            worker.close()
        assert not any(thread.is_alive() for thread in worker._threads)

    with ThreadPoolExecutor() as pool:
        pool.submit(asyncio.run, both()).result()
    assert order == ["first", "refresh", "second"]


def test_a_very_long_document_is_cut_and_says_so(news: Path) -> None:
    with Index.open(news, write=True) as writer:
        word = writer.model.vocabulary.words[0]
        writer.add([Document("long", f"{word} " * 100_000)])
    with connected(news) as client:
        whole = client.get("/api/document", params={"id": "long"}).json()
        assert whole["cut"]
        assert sum(len(piece["text"]) for piece in whole["text"]) == 200_000
        [hit] = ask(client, query=word, where={"id": "long"})["hits"]
        assert len("".join(piece["text"] for piece in hit["snippet"])) < 400


def test_the_map_is_drawn_once_and_kept(news: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawings = list[Drawing]()

    def drawing(folder: Path) -> Drawing:
        drawings.append(Drawing(folder))
        return drawings[-1]

    monkeypatch.setattr("parabit.web.service.Drawing", drawing)
    with connected(news, PATIENT) as client:
        client.get("/api/about")  # it has begun
        drawings[0]._thread.join()
        chart = client.get("/api/map").json()
        assert (chart["state"], chart["points"]) == ("ready", 300)
    kept = (news / "map.safetensors").read_bytes()
    with connected(news, PATIENT) as client:
        again = client.get("/api/map").json()
        assert (again["x"], again["y"]) == (chart["x"], chart["y"])
    assert ((news / "map.safetensors").read_bytes(), len(drawings)) == (kept, 1)
    with Index.open(news, write=True) as writer:  # and is no stranger in the folder
        writer.compact()
        assert kept_map(writer) is not None


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"seconds": 1e-9}, "no answer within"),
        ({"most_waiting": 0}, "too many requests are waiting"),
    ],
)
def test_what_cannot_be_answered_in_time_may_come_again(
    folder: Path, limits: dict[str, Any], words: str
) -> None:
    with connected(folder, Settings(map=False, **limits)) as client, held_searches():
        response = client.post("/api/search", json={"query": "a text"})
    assert (response.status_code, response.headers["retry-after"] > "0") == (503, True)
    assert words in response.json()["error"]


def test_an_unforeseen_error_shows_nothing_of_the_inside(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a secret of the inside")

    with connected(folder) as client:
        monkeypatch.setattr(Index, "search", broken)
        response = client.post("/api/search", json={"query": "a text"})
    assert response.status_code == 500
    assert response.json() == {
        "error": "the server did not foresee this",
        "hint": "its log says more",
    }

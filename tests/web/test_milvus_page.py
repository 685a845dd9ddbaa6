"""The search page of an index whose documents are on a real Milvus server."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from browser_pages import Opened, search
from live_server import serving
from playwright.sync_api import expect

from milvus_server import running
from parabit import Document, Index, ParagraphVectors
from parabit.index import Milvus
from parabit.index.milvus.manifest import read_manifest, write_manifest
from parabit.web import Settings

pytest_plugins = ("browser_pages",)
pytestmark = [pytest.mark.scale]


@pytest.fixture(scope="module")
def index(
    topic_model: Path, topic_documents: list[Document], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Index]:
    folder, place = tmp_path_factory.mktemp("milvus") / "news", Milvus(running().uri)
    with Index.build(ParagraphVectors.load(topic_model), topic_documents, folder, milvus=place) as index:
        yield index


def test_the_page_is_served_from_milvus(index: Index, topic_documents: list[Document]) -> None:
    text = topic_documents[5].text
    with (
        serving(index.folder, Settings(map=False)) as address,
        httpx.Client(base_url=address, timeout=30) as client,
    ):

        def ids(**question: object) -> list[str]:
            return [hit["id"] for hit in client.post("/api/search", json=question).json()["hits"]]

        about = client.get("/api/about").json()
        assert (about["documents"], about["best_rank"], about["fields"]) == (300, "hybrid", ["year", "labels"])
        assert ids(query=text, k=4) == index.search([text], k=4, rank="hybrid").ids[0]
        assert ids(like="post5", k=4) == index.like(["post5"], k=4).ids[0]
        assert ids(query=text, radius=3, rank="hamming", k=100) == index.search([text], k=100, radius=3).ids[0]
        where = {"labels": "topic1", "year": [1991]}
        assert ids(query=text, k=7, where=where) == index.search([text], 7, rank="hybrid", where=where).ids[0]
        answer = client.post("/api/search", json={"query": text}).json()
        assert any(piece.get("mark") for piece in answer["hits"][0]["passage"])
        assert answer["notes"] == []  # BIN_FLAT and strong: there is nothing to tell
        labels = {one["label"]: one["documents"] for one in client.get("/api/labels").json()["labels"]}
        assert labels == index.labels().counts
        shown = client.get("/api/document", params={"id": "post5"}).json()
        assert "".join(piece["text"] for piece in shown["text"]) == text
        assert client.post("/api/search", json={"like": "nobody"}).status_code == 404
        # What others write is found within a second or so, without a word to the server.
        index.add([Document("just now", text)])
        start = time.monotonic()
        while "just now" not in ids(query=text, k=50):
            assert time.monotonic() < start + 20
        index.delete(["just now"])
        assert "just now" not in ids(query=text, k=50)


def test_the_page_tells_what_milvus_does_not_promise(
    index: Index, topic_documents: list[Document], tmp_path: Path, opened: Opened
) -> None:
    folder = tmp_path / "quick"
    shutil.copytree(index.folder, folder)
    manifest = read_manifest(folder)
    write_manifest(folder, manifest._replace(place=replace(manifest.place, consistency="bounded")))
    note = "with the consistency bounded the latest changes may be missing"
    with serving(folder, Settings(map=False)) as address:
        for question in ({"query": topic_documents[5].text}, {"like": "post5"}):
            answer = httpx.post(f"{address}/api/search", json=question, timeout=30).json()
            assert (answer["notes"], len(answer["hits"])) == ([note], 10)
        with opened(address) as page:
            search(page, topic_documents[5].text.split()[0])
            expect(page.locator("#notes")).to_have_text(
                "With the consistency bounded the latest changes may be missing."
            )
            page.locator("#clear").click()
            expect(page.locator("#notes")).to_be_hidden()


def test_what_watches_the_page_is_told_when_milvus_cannot_answer(
    index: Index, topic_documents: list[Document], tmp_path: Path
) -> None:
    folder, place = tmp_path / "gone", Milvus(running().uri)
    with (
        Index.build(index.model, topic_documents[:3], folder, milvus=place) as gone,
        serving(folder, Settings(map=False)) as address,
    ):
        gone._home._collection.drop()  # type: ignore[attr-defined]
        answer = httpx.get(f"{address}/metrics", timeout=30)
        assert (answer.status_code, "parabit_documents 3.0" in answer.text) == (200, True)
        start = time.monotonic()
        while (health := httpx.get(f"{address}/healthz", timeout=30)).status_code == 200:  # as of a second ago
            assert time.monotonic() < start + 20
        told = health.json()
        assert (health.status_code, told["status"], told["documents"]) == (503, "failing", 3)
        assert told["error"] == "the index cannot be read anew"

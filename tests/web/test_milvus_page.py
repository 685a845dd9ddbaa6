"""The search page of an index whose documents are on a real Milvus server."""

import time
from pathlib import Path

import httpx
import pytest
from live_server import serving

from milvus_server import running
from parabit import Document, Index, ParagraphVectors
from parabit.index import Milvus
from parabit.web import Settings

pytestmark = [pytest.mark.scale, pytest.mark.xdist_group("milvus")]


def test_the_page_is_served_from_milvus(topic_model: Path, topic_documents: list[Document], tmp_path: Path) -> None:
    model, text = ParagraphVectors.load(topic_model), topic_documents[5].text
    with (
        Index.build(model, topic_documents, tmp_path / "news", milvus=Milvus(running().uri)) as index,
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
        labels = {one["label"]: one["documents"] for one in client.get("/api/labels").json()["labels"]}
        assert labels == index.labels().counts
        shown = client.get("/api/document", params={"id": "post5"}).json()
        assert "".join(piece["text"] for piece in shown["text"]) == text
        assert client.post("/api/search", json={"like": "nobody"}).status_code == 404
        # What others write is found within a second or so, without a word to the server.
        index.add([Document("just now", text)])
        start = time.monotonic()
        while "just now" not in ids(query=text, k=50):
            assert time.monotonic() < start + 2
        index.delete(["just now"])
        assert "just now" not in ids(query=text, k=50)

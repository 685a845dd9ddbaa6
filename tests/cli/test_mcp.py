"""`parabit mcp`, with the SDK's own client and a real process."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

from parabit import Document, Index


def test_an_assistant_searches_reads_and_finds_copies(
    news: Path, topic_documents: list[Document]
) -> None:
    first = topic_documents[0]

    async def ask() -> None:
        arguments = ["-m", "parabit", "mcp", str(news.absolute())]
        command = StdioServerParameters(
            command=sys.executable, args=arguments, env=dict(os.environ)
        )
        async with Client(command) as client:

            async def call(tool: str, **arguments: Any) -> Any:
                answer = await client.call_tool(tool, arguments)
                parts: list[Any] = answer.content
                said = "".join(part.text for part in parts)
                return said if answer.is_error else json.loads(said)

            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {*tools} == {"search", "like", "document", "duplicates"}
            assert all(tool.description for tool in tools.values())
            assert "year" in json.dumps(tools["search"].input_schema)

            found = (await call("search", query=first.text, k=3))["hits"]
            assert found[0]["id"] == "post0"
            fields = {"labels": list(first.labels), "year": first.fields["year"]}
            assert found[0]["fields"] == fields
            assert found[0]["passage"].strip("… ")[:20] in first.text
            years = await call("search", query=first.text, where=["year>=1992"])
            assert {hit["fields"]["year"] for hit in years["hits"]} <= {1992, 1993}
            alike = await call("like", id="post0", k=2)
            assert len(alike["hits"]) == 2
            assert "post0" not in [hit["id"] for hit in alike["hits"]]
            assert await call("document", id="post0") == {
                "id": "post0",
                "text": first.text,
                "fields": fields,
            }

            # Another process adds copies, one of them long.
            with Index.open(news, write=True) as index:
                index.add([Document("copy", first.text), Document("long", "word " * 5000)])
            groups = (await call("duplicates", k=1000))["groups"]
            [same] = [copy for group in groups for copy in group["copies"] if copy["id"] == "copy"]
            assert same["shared"] == 1
            assert len((await call("duplicates", k=1))["groups"]) == 1
            part = await call("document", id="long")
            rest = await call("document", id="long", start=part["next_start"])
            assert part["text"] + rest["text"] == "word " * 5000

            assert "there is no document 'nothing'" in await call("document", id="nothing")
            assert "not a condition" in await call("search", query="x", where=["year"])
            assert "k" in await call("search", query="x", k=0)

    with ThreadPoolExecutor() as pool:  # in a thread, which surely has no event loop yet
        pool.submit(anyio.run, ask).result()

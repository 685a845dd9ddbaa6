"""`parabit mcp`, with the SDK's own client and a real process."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from parabit import Document, Index, budget
from parabit.budget import check_time
from parabit.cli.serve import make_server


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


def test_whatever_an_assistant_sends_is_answered_in_words(
    news: Path,
) -> None:
    """Lines as a client may write them; the SDK's own writes no halves of characters."""
    start = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    deep = "x"
    for _ in range(300):
        deep = [deep]  # type: ignore[assignment]
    asked: list[tuple[str, dict[str, Any], str]] = [
        ("search", {"query": "a \ud800 b"}, "hits"),
        ("search", {"query": "\ud83d\ude00"}, "hits"),
        ("search", {"query": "x" * 100_001}, "at most 100000 characters"),
        ("search", {"query": "x", "where": ["a=1"] * 33}, "at most 32 items"),
        ("search", {"query": "x", "where": ["a=" + "x" * 1000]}, "at most 1000 characters"),
        ("search", {"query": deep}, "valid string"),
        ("like", {"id": "x" * 5000}, "at most 4096 characters"),
        ("like", {"id": "\udfff"}, "there is no document"),
        ("document", {"id": "post0"}, "year"),
    ]
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": start},
        {"method": "notifications/initialized"},
    ]
    for number, (tool, arguments, _) in enumerate(asked, 1):
        params = {"name": tool, "arguments": arguments}
        messages.append({"id": number, "method": "tools/call", "params": params})
    command = [sys.executable, "-m", "parabit", "mcp", str(news)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = dict[int, Any]()
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        while len(answers) < len(asked) + 1:
            answer = json.loads(process.stdout.readline())
            answers[answer["id"]] = answer
        process.stdin.close()
    assert process.returncode == 0
    for number, (_, _, words) in enumerate(asked, 1):
        assert words in json.dumps(answers[number]), number


def test_an_error_that_nobody_foresaw_is_said_in_words(
    news: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("the inside")

    async def ask() -> list[Any]:
        with Index.open(news) as index:
            async with Client(make_server(index)) as client:
                answers = []
                for name, replacement in (("like", broken), ("search", out_of_time)):
                    monkeypatch.setattr(Index, name, replacement)
                    arguments = {"like": {"id": "post0"}, "search": {"query": "a"}}[name]
                    answers.append(await client.call_tool(name, arguments))
                return answers

    def out_of_time(*_: object, **__: object) -> None:
        monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: inf))
        try:
            check_time()
        finally:
            monkeypatch.setattr(budget, "time", time)

    with ThreadPoolExecutor() as pool:
        failed, late = pool.submit(anyio.run, ask).result()
    assert failed.is_error
    assert "like failed: ValueError; ask in another way" in failed.content[0].text
    assert late.is_error
    assert "this takes longer than a request may" in late.content[0].text

"""The search page's server under load: 200 clients at once for a minute, on an index of one million documents.

    python benchmarks/serve_load.py [--documents 1000000] [--clients 200] [--seconds 60] [--folder FOLDER]

The documents are the abstracts of the arxiv sample, ten times over, each time with another two thirds of their
sentences, so that only short ones come twice; text, words and labels are kept. Each client sends a question as soon as
the last was answered: mostly a text that is not in the index (the first sentence of another abstract), every fifth time
more like a document, and every tenth time a whole document. Clients, server and index share the machine's cores.
`--folder` keeps the index for another time. The bare call is `Index.search` in a process of its own, for a single text
and for 64 at once.
"""

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from common import keep, machine, run
from parabit import Corpus, Document, Index, ParagraphVectors, open_corpus

BITS, K, WARM_UP = 128, 10, 5.0
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class Parts(Corpus):
    """A corpus many times over, each time with another part of every document."""

    def __init__(self, corpus: Corpus, documents: int) -> None:
        self._corpus, self._documents = corpus, documents

    def __iter__(self) -> Iterator[Document]:
        rng, made = random.Random(0), 0
        while True:
            for document in self._corpus:
                if made == self._documents:
                    return
                sentences = _SENTENCE.split(document.text)
                kept = sorted(rng.sample(range(len(sentences)), max(1, 2 * len(sentences) // 3)))
                text = " ".join(sentences[place] for place in kept)
                yield Document(f"{made}", text, document.labels)
                made += 1


def build(folder: Path, documents: int) -> float:
    """Make the index and its map; the seconds that the index took."""
    model = ParagraphVectors(BITS).fit(open_corpus("arxiv/train"))
    start = time.perf_counter()
    with Index.build(Parts(open_corpus("arxiv"), documents), folder, model=model) as index:
        took = time.perf_counter() - start
        index.keep_map(index.draw_map())
    return took


def questions() -> list[str]:
    """Texts to ask with."""
    texts = (document.text for document in open_corpus("arxiv/test"))
    return [_SENTENCE.split(text)[0] for _, text in zip(range(2000), texts, strict=False)]


def bare(folder: Path, texts: list[str]) -> dict[str, float]:
    """The index without a server: milliseconds a question."""
    with Index.open(folder) as index:
        index.search(texts[:64], k=K, rank=index.best_rank)
        single = []
        for text in texts[:300]:
            start = time.perf_counter()
            _ = index.search([text], k=K, rank=index.best_rank)[0]
            single.append(time.perf_counter() - start)
        start = time.perf_counter()
        for place in range(0, 1280, 64):
            for _ in index.search(texts[place : place + 64], k=K, rank=index.best_rank):
                pass
        batch = (time.perf_counter() - start) / 1280
    return {
        "single_ms": round(1e3 * float(np.median(single)), 3),
        "single_p99_ms": round(1e3 * float(np.percentile(single, 99)), 3),
        "in_batches_of_64_ms": round(1e3 * batch, 3),
    }


def memory_mb(process: int) -> float:
    """What a process holds now that it shares with no file."""
    fields = dict(re.findall(r"(\w+):\s+(\d+) kB", Path(f"/proc/{process}/status").read_text()))
    return round(int(fields["RssAnon"]) / 1024, 1)


class Client:
    """Connections that are kept open, each with one question at a time."""

    def __init__(self, port: int, texts: list[str], documents: int) -> None:
        self._port, self._texts, self._documents = port, texts, documents
        self.took: list[tuple[str, float]] = []
        self.errors: Counter[str] = Counter()

    async def ask(self, number: int, until: float, since: float) -> None:
        """Ask until the time is over; only what was asked after `since` counts."""
        rng = random.Random(number)
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while (start := time.perf_counter()) < until:
            kind, request = self._request(rng)
            writer.write(request)
            try:
                status = await _answer(reader)
            except (OSError, asyncio.IncompleteReadError, ValueError) as problem:
                self.errors[type(problem).__name__] += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                continue
            if status != 200:
                self.errors[str(status)] += 1
            if start >= since:
                self.took.append((kind, time.perf_counter() - start))
        writer.close()

    def _request(self, rng: random.Random) -> tuple[str, bytes]:
        dice, identity = rng.random(), str(rng.randrange(self._documents))
        if dice < 0.1:
            return "document", f"GET /api/document?id={identity} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        question: dict[str, Any] = (
            {"like": identity, "k": K} if dice < 0.3 else {"query": rng.choice(self._texts), "k": K}
        )
        body = json.dumps(question).encode()
        head = "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        return "like" if "like" in question else "search", head.encode() + body


async def _answer(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    if found is None:
        raise ValueError("an answer without a length")
    content = await reader.readexactly(int(found[1]))
    json.loads(content)
    return int(head[9:12])


def load(port: int, clients: int, seconds: float, documents: int) -> dict[str, Any]:
    """Ask from this process, and tell how long answers took."""
    client = Client(port, questions(), documents)

    async def all_of_them() -> None:
        since = time.perf_counter() + WARM_UP
        await asyncio.gather(*(client.ask(number, since + seconds, since) for number in range(clients)))

    asyncio.run(all_of_them())
    told: dict[str, Any] = {"requests": len(client.took), "requests_per_second": round(len(client.took) / seconds, 1)}
    for kind in ("search", "like", "document"):
        took = np.array([one for name, one in client.took if name == kind]) * 1e3
        told[kind] = {f"p{share}_ms": round(float(np.percentile(took, share)), 2) for share in (50, 90, 99, 99.9)}
    return {**told, "errors": dict(client.errors)}


def measure(folder: Path, clients: int, seconds: float, documents: int) -> dict[str, Any]:
    """A server and its clients, each in a process of its own."""
    command = [sys.executable, "-m", "parabit", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = re.search(r"http://\S+:(\d+)", server.stdout.readline())
            assert port is not None
            ask = [sys.executable, __file__, "--port", port[1], "--clients", str(clients), "--seconds", str(seconds)]
            with subprocess.Popen([*ask, "--documents", str(documents)], stdout=subprocess.PIPE, text=True) as asking:
                memory = []
                while asking.poll() is None:
                    time.sleep(1)
                    memory.append(memory_mb(server.pid))
                assert asking.stdout is not None
                told: dict[str, Any] = json.loads(asking.stdout.read())
        finally:
            server.terminate()
    quarter = max(1, len(memory) // 4)
    print(f"{clients} clients: {json.dumps(told)}; memory {memory[quarter]} to {memory[-1]} MB")
    return {
        "clients": clients,
        "seconds": seconds,
        **told,
        "memory_mb": {"after_a_quarter": memory[quarter], "at_the_end": memory[-1], "most": max(memory)},
    }


def main() -> None:
    """Build, measure and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--port", type=int, help="only ask a server that is there, and print JSON")
    given = parser.parse_args()
    if given.port:
        print(json.dumps(load(given.port, given.clients, given.seconds, given.documents)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch, "load.index")
        built = None if folder.exists() else build(folder, given.documents)
        texts = questions()
        alone = bare(folder, texts)
        print(f"the index alone: {alone}")
        few, many = (measure(folder, clients, given.seconds, given.documents) for clients in (1, given.clients))
        with Index.open(folder) as index:
            about = {"documents": len(index), "bits": index.bits, "megabytes": round(index.info()["bytes"] / 1e6)}
    keep(
        "serve_load",
        {
            "machine": machine("parabit", "fastapi", "uvicorn", "faiss-cpu"),
            "index": {**about, "seconds_to_build": None if built is None else round(built, 1)},
            "bare": alone,
            "one_client": few,
            "many_clients": many,
        },
    )


if __name__ == "__main__":
    run(main)

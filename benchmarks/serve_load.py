"""The search page's server under load: 200 clients at once for a minute, on an index of one million documents.

    python benchmarks/serve_load.py [--documents 1000000] [--clients 200] [--seconds 60] [--folder FOLDER]
                                    [--beside COMMIT]

The documents are the abstracts of the arxiv sample, ten times over, each time with another two thirds of their
sentences, so that only short ones come twice; text, words and labels are kept. Each client sends a question as soon as
the last was answered: mostly a text that is not in the index (the first sentence of another abstract), every fifth time
more like a document, and every tenth time a whole document. Clients, server and index share the machine's cores. The
server remembers answers, so two loads are measured: 2,000 texts that are asked again and again, and no text twice.
`--folder` keeps the indexes for another time. The bare call is `Index.search` in a process of its own, for one text
and for 64 at once.

`--beside` measures an older commit in the same run, `fc30e91` for example: it is checked out beside this one, makes an
index of the same documents with its own code (its model learns for one epoch, which does not change how fast it
searches), and gets the same load. Each is asked as its page asks: the older one for hits, whose answers always have
places on the map, the newer one for hits with near-copies collapsed and with places on the map.
"""

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from common import about, keep, options, run
from parabit import Corpus, Document, Index, ParagraphVectors, open_corpus
from parabit.explore import draw_map, keep_map
from parabit.parallel import cores

BITS, K, WARM_UP = 128, 10, 5.0
OLD_BUILD = """
import sys
from pathlib import Path
sys.path.insert(0, "benchmarks")
from serve_load import Parts
from parabit import Index, ParagraphVectors, open_corpus
model = ParagraphVectors(128, epochs=1).fit(open_corpus("arxiv/train"))
with Index.build(model, Parts(open_corpus("arxiv"), int(sys.argv[2])), Path(sys.argv[1])) as index:
    index.keep_map(index.draw_map())
"""
AS_THE_PAGE_ASKS = {"collapse": True, "positions": True}
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
    few = documents < 10_000  # a trial
    model = ParagraphVectors(BITS).fit(
        Parts(open_corpus("arxiv"), documents) if few else open_corpus("arxiv/train")
    )
    start = time.perf_counter()
    with Index.build(Parts(open_corpus("arxiv"), documents), folder, model=model) as index:
        took = time.perf_counter() - start
        keep_map(index, draw_map(index))
    return took


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Another commit of this repository, in a folder of its own."""
    here = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            ["git", "worktree", "add", "--detach", f"{scratch}/old", commit], cwd=here, check=True
        )
        try:
            yield Path(scratch, "old")
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", f"{scratch}/old"], cwd=here, check=True
            )


def environment(root: Path) -> dict[str, str]:
    """What makes a process use the parabit of a folder."""
    return {**os.environ, "PYTHONPATH": str(root / "src")}


def questions(most: int = 2000) -> list[str]:
    """Texts to ask with, all different."""
    texts = (_SENTENCE.split(document.text)[0] for document in open_corpus("arxiv/test"))
    return list(dict.fromkeys(islice(texts, most)))


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

    def __init__(
        self, port: int, texts: list[str], documents: int, options: dict[str, Any], once: bool
    ) -> None:
        self._port, self._documents, self._options = port, documents, options
        self._texts, self._next = texts, iter(texts) if once else None
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
            return (
                "document",
                f"GET /api/document?id={identity} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
            )
        question: dict[str, Any] = (
            {"like": identity, "k": K} if dice < 0.3 else {"query": self._text(rng), "k": K}
        )
        body = json.dumps(question | self._options).encode()
        head = "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        return "like" if "like" in question else "search", head.encode() + body

    def _text(self, rng: random.Random) -> str:
        return rng.choice(self._texts) if self._next is None else next(self._next)


async def _answer(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    if found is None:
        raise ValueError("an answer without a length")
    content = await reader.readexactly(int(found[1]))
    json.loads(content)
    return int(head[9:12])


def load(
    port: int, clients: int, seconds: float, documents: int, options: dict[str, Any], once: bool
) -> dict[str, Any]:
    """Ask from this process; how long answers took."""
    client = Client(port, questions(100_000 if once else 2000), documents, options, once)

    async def all_of_them() -> None:
        since = time.perf_counter() + WARM_UP
        await asyncio.gather(
            *(client.ask(number, since + seconds, since) for number in range(clients))
        )

    asyncio.run(all_of_them())
    summary: dict[str, Any] = {
        "requests": len(client.took),
        "requests_per_second": round(len(client.took) / seconds, 1),
    }
    for kind in ("search", "like", "document"):
        took = np.array([one for name, one in client.took if name == kind]) * 1e3
        summary[kind] = {
            f"p{share}_ms": round(float(np.percentile(took, share)), 2)
            for share in (50, 90, 99, 99.9)
        }
    return {**summary, "errors": dict(client.errors)}


def measure(
    folder: Path,
    clients: int,
    seconds: float,
    documents: int,
    once: bool = False,
    root: Path | None = None,
) -> dict[str, Any]:
    """A server, of an older commit if a root is given, and its clients, each in a process of its own."""
    command = [sys.executable, "-m", "parabit", "serve", str(folder), "--port", "0"]
    env = environment(root or Path(__file__).parent.parent)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as server:
        try:
            assert server.stdout is not None
            port = re.search(r"http://\S+:(\d+)", server.stdout.readline())
            assert port is not None
            ask = [
                sys.executable,
                __file__,
                "--port",
                port[1],
                "--clients",
                str(clients),
                "--seconds",
                str(seconds),
            ]
            ask += [
                "--documents",
                str(documents),
                "--options",
                json.dumps({} if root else AS_THE_PAGE_ASKS),
            ]
            ask += ["--once"] if once else []
            with subprocess.Popen(ask, stdout=subprocess.PIPE, text=True) as asking:
                memory = []
                while asking.poll() is None:
                    time.sleep(1)
                    memory.append(memory_mb(server.pid))
                assert asking.stdout is not None
                summary: dict[str, Any] = json.loads(asking.stdout.read())
        finally:
            server.terminate()
    quarter = max(1, len(memory) // 4)
    which = ", no text twice" if once else ""
    print(
        f"{clients} clients{which}: {json.dumps(summary)}; memory {memory[quarter]} to {memory[-1]} MB"
    )
    return {
        "clients": clients,
        "seconds": seconds,
        **summary,
        "memory_mb": {
            "after_a_quarter": memory[quarter],
            "at_the_end": memory[-1],
            "most": max(memory),
        },
    }


def beside(commit: str, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """An older commit under the same load."""
    old = folder.with_name(f"{folder.name}-{commit}")
    with checked_out(commit) as root:
        if not old.exists():
            arguments = [sys.executable, "-c", OLD_BUILD, str(old.absolute()), str(given.documents)]
            subprocess.run(arguments, cwd=root, env=environment(root), check=True)
        return {
            f"commit {commit}": measure(
                old, given.clients, given.seconds, given.documents, root=root
            )
        }


def main() -> None:
    """Build, measure and keep."""
    parser = options(__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument(
        "--beside", metavar="COMMIT", help="an older commit to measure in the same run"
    )
    parser.add_argument("--port", type=int, help="only ask a server that is there, and print JSON")
    parser.add_argument(
        "--options", type=json.loads, default=AS_THE_PAGE_ASKS, help="more of a search, as JSON"
    )
    parser.add_argument(
        "--once", action="store_true", help="with --port: no text is asked for twice"
    )
    given = parser.parse_args()
    if given.small:
        given.documents, given.clients, given.seconds = 500, 4, 2.0
    if given.port:
        print(
            json.dumps(
                load(
                    given.port,
                    given.clients,
                    given.seconds,
                    given.documents,
                    given.options,
                    given.once,
                )
            )
        )
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch, "load.index")
        built = None if folder.exists() else build(folder, given.documents)
        texts = questions()
        alone = bare(folder, texts)
        print(f"the index alone: {alone}")
        few, many, different = (
            measure(folder, clients, given.seconds, given.documents, once)
            for clients, once in ((1, False), (given.clients, False), (given.clients, True))
        )
        old = beside(given.beside, folder, given) if given.beside else {}
        with Index.open(folder) as index:
            size = {
                "documents": len(index),
                "bits": index.bits,
                "megabytes": round(index.info()["bytes"] / 1e6),
            }
    keep(
        "serve_load",
        {
            "index": {**size, "seconds_to_build": None if built is None else round(built, 1)},
            "bare": alone,
            "one_client": few,
            "many_clients": many,
            "no_text_twice": different,
            **old,
            "run": about(
                "fastapi",
                "uvicorn",
                "faiss-cpu",
                threads=cores(),
                repetitions=f"1, {given.seconds:.0f} seconds",
            ),
        },
        given.small,
    )


if __name__ == "__main__":
    run(main)

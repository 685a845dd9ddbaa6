"""The search page's server under attack: what it holds in memory, and how long somebody else waits meanwhile.

    python benchmarks/attack_server.py [--documents 7500] [--folder FOLDER] [--seconds 15] [--beside COMMIT]

The real server runs in a process with at most 1,024 open files, on an index of abstracts of the arxiv sample and one
document that is a single word of a million letters. One attack after the other is run on it, and meanwhile a client in
a process of its own searches ten times a second, every other time over a new connection, as a person would who knows
nothing of the attack. The memory is the resident set of the process, the most of every twentieth of a second.

`--beside` runs the same on an older commit. A server of more than 3 GB is ended, and the attack counts as won.
"""

import argparse
import asyncio
import json
import random
import re
import resource
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from common import about, abstracts, keep, options, run
from parabit import Document, Index
from parabit.parallel import cores
from serve_load import checked_out, environment

LONG_WORD = "longword"  # the id of a document of one word
MOST_MEMORY_MB = 3000
_HOST = b"Host: localhost\r\n"
_JSON = b"Content-Type: application/json\r\n"


def resident_mb(process: int) -> float:
    """What a process holds in memory, the pages of files that it has mapped among them."""
    fields = dict(re.findall(r"(\w+):\s+(\d+) kB", Path(f"/proc/{process}/status").read_text()))
    return round(int(fields["VmRSS"]) / 1024, 1)


def build(folder: Path, documents: int) -> None:
    """Make the index that is attacked."""
    one_word = Document(LONG_WORD, "x" * 1_000_000)
    with Index.build([*abstracts(documents), one_word], folder) as index:
        print(f"{len(index):,} documents")


def post(body: bytes) -> bytes:
    """A search as it is sent."""
    head = b"POST /api/search HTTP/1.1\r\n" + _HOST + _JSON
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def search_for(**question: Any) -> bytes:
    return post(json.dumps(question).encode())


class Connection:
    """A connection of an attacker, who minds nothing."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def status(self) -> int:
        """The status of the next answer."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if length is not None:
            await self.reader.readexactly(int(length[1]))
        return int(head[9:12])

    def close(self) -> None:
        self.writer.transport.abort()


@dataclass
class Attack:
    """An attack in progress: where, until when, and what was answered."""

    port: int
    until: float
    documents: int
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def goes_on(self) -> bool:
        return time.monotonic() < self.until

    async def ask(self, connection: Connection, request: bytes) -> None:
        connection.writer.write(request)
        self.answers[str(await connection.status())] += 1

    async def repeat(self, number: int, request: Callable[[random.Random], bytes]) -> None:
        """Ask over one connection, and over another one if it is closed."""
        rng = random.Random(number)
        while self.goes_on:
            connection = None
            try:
                connection = await Connection.open(self.port)
                while self.goes_on:
                    await self.ask(connection, request(rng))
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                self.answers["closed"] += 1
                await asyncio.sleep(0.01)
            finally:
                if connection is not None:
                    connection.close()


async def half_sent(attack: Attack, begin: bytes, more: bytes = b"") -> None:
    """Send the beginning of a request, and then at most a byte in a second; again if it is closed."""
    while attack.goes_on:
        connection = None
        try:
            connection = await Connection.open(attack.port)
            connection.writer.write(begin)
            while attack.goes_on:
                with suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        attack.answers[str(await connection.status())] += 1
                        break
                connection.writer.write(more)
        except (OSError, asyncio.IncompleteReadError):
            attack.answers["closed"] += 1
        finally:
            if connection is not None:
                connection.close()
        await asyncio.sleep(0.05)


async def endless(attack: Attack, begin: bytes, piece: bytes, pieces: int) -> None:
    """Send a head of hundreds of megabytes, as far as the server takes it."""
    while attack.goes_on:
        connection = await Connection.open(attack.port)
        sent = 0
        try:
            connection.writer.write(begin)
            for _ in range(pieces):
                connection.writer.write(piece)
                await connection.writer.drain()
                sent += len(piece)
            connection.writer.write(b"\r\n\r\n")
            attack.answers[str(await connection.status())] += 1
        except (OSError, asyncio.IncompleteReadError):
            attack.answers["closed"] += 1
        finally:
            connection.close()
        attack.answers["megabytes"] += sent >> 20


async def unread(attack: Attack, request: bytes) -> None:
    """Ask again and again, and read nothing."""
    while attack.goes_on:
        connection = None
        try:
            connection = await Connection.open(attack.port)
            while attack.goes_on and not connection.writer.transport.is_closing():
                if not connection.writer.transport.get_write_buffer_size():
                    connection.writer.write(request)
                connection.reader._transport.pause_reading()  # type: ignore[attr-defined]
                await asyncio.sleep(0.02)
            attack.answers["closed"] += 1
        except (OSError, RuntimeError):
            attack.answers["closed"] += 1
        finally:
            if connection is not None:
                connection.close()


def letters(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=count))


def megabytes_of_conditions() -> list[bytes]:
    """Some forms of a megabyte of conditions; a tag in them makes each request different from all others."""
    forms: list[Any] = [
        {"title": "THE-TAG" + "v" * 1_000_000},
        {"title": [f"THE-TAG{number}" for number in range(60_000)]},
        {f"THE-TAG{number}": 1 for number in range(55_000)},
        {"title": [[]] * 250_000, "tag": "THE-TAG"},
        {"title": {"!=": [f"THE-TAG{number}" for number in range(60_000)]}},
    ]
    return [json.dumps({"query": "neural THE-TAG", "where": where}).encode() for where in forms]


MEGABYTES = megabytes_of_conditions()


async def ten_thousand_conditions(attack: Attack, _: int) -> None:
    """Send requests with a megabyte of conditions each until 10,000 are answered."""
    connection = None
    while attack.answers.total() < 10_000:
        number = attack.answers.total()
        body = MEGABYTES[number % len(MEGABYTES)].replace(b"THE-TAG", b"%07d" % number)
        try:
            connection = connection or await Connection.open(attack.port)
            await attack.ask(connection, post(body))
        except (OSError, asyncio.IncompleteReadError):
            attack.answers["closed"] += 1
            connection = None


def largest_condition(rng: random.Random) -> bytes:
    """Conditions that are as large as they may be, each different from all others."""
    tag = letters(rng, 12)
    return search_for(query=f"neural {tag}", where={"title": [f"{tag}{n}" for n in range(1000)]})


Work = Callable[[Attack, int], Awaitable[None]]
HALF = b"POST /api/search HTTP/1.1\r\n" + _HOST
SLOW_BODY = HALF + _JSON + b"Content-Length: 1000000\r\n\r\n"
# Each with how many do it at the same time.
ATTACKS: dict[str, tuple[int, Work]] = {
    "nothing": (0, lambda attack, _: asyncio.sleep(0)),
    "1,200 half-sent heads": (1200, lambda attack, _: half_sent(attack, HALF)),
    "600 bodies, a byte in a second": (
        600,
        lambda attack, _: half_sent(attack, SLOW_BODY, b"x"),
    ),
    "300 bodies of 1 MB without an end": (
        300,
        lambda attack, _: half_sent(attack, SLOW_BODY + b"x" * 999_000),
    ),
    "headers of 300 MB": (
        8,
        lambda attack, _: endless(attack, HALF + b"X-Long: ", b"x" * (1 << 20), 300),
    ),
    "addresses of 300 MB": (
        8,
        lambda attack, _: endless(attack, b"GET /api/document?id=", b"x" * (1 << 20), 300),
    ),
    "words of 100,000 letters": (
        16,
        lambda attack, number: attack.repeat(
            number, lambda rng: search_for(query=letters(rng, 99_990))
        ),
    ),
    "30 misspelt words of 40 letters": (
        16,
        lambda attack, number: attack.repeat(
            number,
            lambda rng: search_for(query=" ".join(letters(rng, 40) for _ in range(30))),
        ),
    ),
    "like a document of one word": (
        16,
        lambda attack, number: attack.repeat(
            number, lambda rng: search_for(like=LONG_WORD, k=1 + rng.randrange(100))
        ),
    ),
    "10,000 different conditions of 1 MB": (16, ten_thousand_conditions),
    "different conditions of 1,000 values": (
        16,
        lambda attack, number: attack.repeat(number, largest_condition),
    ),
    "thousands of requests at once": (
        64,
        lambda attack, number: attack.repeat(
            number, lambda rng: b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5000
        ),
    ),
    "answers that are not read": (
        100,
        lambda attack, number: unread(
            attack,
            b"GET /api/document?id=" + LONG_WORD.encode() + b" HTTP/1.1\r\n" + _HOST + b"\r\n",
        ),
    ),
}


def bystander(port: int) -> None:
    """Search ten times a second until standard input ends; print the time and status of each search."""
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    asyncio.run(_search_on(port, ended))


async def _search_on(port: int, ended: threading.Event) -> None:
    connection = None
    number = 0
    while not ended.is_set():
        number += 1
        words = ("neural network", "dark matter halo", "graph theory", "quantum error", "prime gap")
        request = search_for(query=f"{words[number % 5]} {number}", k=10, collapse=True)
        start = time.perf_counter()
        status = "200"
        try:
            async with asyncio.timeout(30):
                if connection is None or number % 2:
                    if connection is not None:
                        connection.close()
                    connection = await Connection.open(port)
                connection.writer.write(request)
                status = str(await connection.status())
        except (OSError, asyncio.IncompleteReadError) as problem:
            status = type(problem).__name__
            connection = None
        took = time.perf_counter() - start
        print(json.dumps([status, took]), flush=True)
        await asyncio.sleep(max(0.0, 0.1 - took))


class Server:
    """The server as a process with 1,024 open files at most, whose memory is looked at."""

    def __init__(self, folder: Path, root: Path) -> None:
        command = [sys.executable, "-m", "parabit", "serve", str(folder), "--port", "0", "--no-map"]
        few_files = ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh"]
        self.process = subprocess.Popen(
            [*few_files, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(root),
        )
        assert self.process.stdout is not None
        port = re.search(r"http://\S+:(\d+)", self.process.stdout.readline())
        assert port is not None
        self.port = int(port[1])
        self.most_memory_mb = 0.0
        self.most_files = 0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        with suppress(OSError, KeyError):  # it has ended
            while self.process.poll() is None:
                memory = resident_mb(self.process.pid)
                files = len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))
                self.most_memory_mb = max(self.most_memory_mb, memory)
                self.most_files = max(self.most_files, files)
                if memory > MOST_MEMORY_MB:
                    self.process.kill()
                time.sleep(0.05)


def searches_during(server: Server, name: str, seconds: float) -> dict[str, Any]:
    """Run an attack; what it did to the server and to somebody who searches meanwhile."""
    others, work = ATTACKS[name]
    server.most_memory_mb = 0.0
    server.most_files = 0
    command = [sys.executable, __file__, "--bystander", str(server.port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as searching:
        assert searching.stdout is not None
        searching.stdout.readline()  # it has started and was answered once
        attack = Attack(server.port, time.monotonic() + seconds, 0)

        async def all_at_once() -> None:
            await asyncio.gather(
                *(work(attack, number) for number in range(others)), return_exceptions=True
            )
            await asyncio.sleep(max(0.0, attack.until - time.monotonic()))

        asyncio.run(all_at_once())
        output, _ = searching.communicate("")
    searches = [json.loads(line) for line in output.splitlines()]
    took = np.array([seconds for _, seconds in searches])
    failed = Counter(status for status, _ in searches if status != "200")
    result = {
        "attackers": others,
        "answers": dict(attack.answers),
        "searches": len(searches),
        "failed": dict(failed),
        "p50_ms": round(1e3 * float(np.percentile(took, 50)), 1),
        "p99_ms": round(1e3 * float(np.percentile(took, 99)), 1),
        "slowest_ms": round(1e3 * float(took.max()), 1),
        "memory_mb": server.most_memory_mb,
        "open_files": server.most_files,
        "alive": server.process.poll() is None,
    }
    print(f"{name}: {result}", flush=True)
    return result


def measure(folder: Path, root: Path, seconds: float, only: str | None) -> dict[str, Any]:
    """All attacks, one after the other on one server, which is started again if it has ended."""
    results = {}
    server = Server(folder, root)
    try:
        for name in ATTACKS:
            if only is not None and only not in name:
                continue
            if server.process.poll() is not None:
                server = Server(folder, root)
            results[name] = searches_during(server, name, seconds)
    finally:
        server.process.terminate()
        server.process.wait()
    return results


def table(results: dict[str, Any]) -> Iterator[str]:
    """The results as a table in Markdown."""
    yield "| attack | at once | memory in MB | files | p50, p99, slowest in ms | failed |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, result in results.items():
        times = f"{result['p50_ms']:g}, {result['p99_ms']:g}, {result['slowest_ms']:g}"
        failed = f"{sum(result['failed'].values())} of {result['searches']}"
        memory = f"{result['memory_mb']:.0f}" + ("" if result["alive"] else ", ended")
        yield (
            f"| {name} | {result['attackers']:,} | {memory} | {result['open_files']:,} "
            f"| {times} | {failed} |"
        )


def main() -> None:
    """Build, attack and keep."""
    parser = options(__doc__)
    parser.add_argument("--documents", type=int, default=7500)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seconds", type=float, default=15.0, help="that each attack takes")
    parser.add_argument("--only", help="attacks whose names have this")
    parser.add_argument("--beside", metavar="COMMIT", help="an older commit to attack, too")
    parser.add_argument("--bystander", type=int, metavar="PORT", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bystander:
        bystander(given.bystander)
        return
    if given.small:
        given.documents, given.seconds = 500, 3.0
    # Attackers need as many files as they like.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch, "attacked.index")
        if not folder.exists():
            build(folder, given.documents)
        here = Path(__file__).parent.parent
        results = measure(folder, here, given.seconds, given.only)
        print("\n".join(table(results)))
        old = {}
        if given.beside:
            with checked_out(given.beside) as root:
                old = {f"commit {given.beside}": measure(folder, root, given.seconds, given.only)}
            print("\n".join(table(old[f"commit {given.beside}"])))
    keep(
        "attack_server",
        {
            "documents": given.documents,
            "seconds_per_attack": given.seconds,
            "attacks": results,
            **old,
            "run": about("fastapi", "uvicorn", "httptools", threads=cores(), repetitions=1),
        },
        given.small or given.only is not None,
    )


if __name__ == "__main__":
    run(main)

"""What is fuzzed: for each target its known cases, how they are changed, and how one is tried."""

import base64
import bz2
import gzip
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from snapshots import differences, tree_of
from spoiling import (
    BAD_NUMBERS,
    MANIFEST,
    as_json,
    header_size,
    mutated_bytes,
    mutated_json,
    mutated_log,
    mutated_safetensors,
    read_manifest,
    replace_sealed,
    write_manifest,
)
from world import World, text_of, word_of

Attempt: TypeAlias = Callable[[bytes], str]  # what is wrong after a case; empty if nothing is


@dataclass(frozen=True)
class Target:
    """A face of parabit that takes what others give."""

    name: str
    seconds: float  # that a case may take, on a busy machine
    seeds: Callable[[Path], list[bytes]]  # the known cases; it may prepare a folder
    change: Callable[[bytes, random.Random], bytes]
    open: Callable[[Path], Attempt]  # in the child that tries cases
    most_mb: int = 1000  # of memory


# Files of every format: a line with the end of the name, then the content.

_GOOD = "a good file beside it, about telescopes"


def _reader_seeds(_: Path) -> list[bytes]:
    text = b"A text about telescopes in orbit.\n\nAnd more of it."
    page = (
        b"<html><head><title>t</title></head><body><p>one <b>two</b></p><script>x</script></body>"
    )
    lines = (
        b'{"id": "a", "text": "one two", "labels": ["x"], "n": 1}\n{"id": "b", "text": "three"}\n'
    )
    table = b'id,text,label\n1,"one, two",x\n2,three,y\n'
    plain = {
        ".txt": [text, "\ufeffä€".encode("utf-16"), b"\xff\xfe\x00\xd8"],
        ".md": [b"---\ntitle: a\ndate: 2020-01-01\n---\n# b\n\n* c [d](e)\n", b"[" * 200_000],
        ".html": [page, b'<meta charset="idna">\xff', b"<p>" * 50_000],
        ".json": [b'[{"text": "one", "labels": "x"}]', b'{"text": "\\ud800 x"}', b"[" * 100_000],
        ".jsonl": [lines, b'{"text": "one", "title": "\\ud800 x"}\n', _dates(), _nested_line()],
        ".csv": [table, _columns(20_000), b'text\n"' + b"x\n" * 50_000],
        ".tsv": [table.replace(b",", b"\t")],
        ".pdf": [_pdf(1), _pdf(100_000)],
        ".parquet": [_parquet()],
        ".csv.bz2": [bz2.compress(b"," * 45_000_000)],
        ".jsonl.gz": [gzip.compress(lines), _bomb(b'{"text": "' + b"a" * (1 << 24))],
        ".csv.gz": [_bomb(b"text\n" + b"a" * (1 << 24))],
        ".json.gz": [_bomb(b" " * (1 << 24))],
        ".pdf.gz": [_bomb(b"%PDF-1.4\n" + b" " * (1 << 24))],
        ".txt.gz": [_bomb(b"a" * (1 << 24))],
    }
    slow = {
        ".md": [b"---\ntitle: a" + b" " * 100_000 + b"b", b"*a " * 60_000, b"> " * 20_000],
        ".html": [
            b"a " * 20_000 + b"<script> b " * 20_000,
            b"".join(b"<font a=%d><p>" % number for number in range(4000)),
        ],
        ".txt": [b"a" * 2_000_000, b"a " * 500_000],
    }
    return [
        suffix.encode() + b"\n" + content
        for files in (plain, slow)
        for suffix, contents in files.items()
        for content in contents
    ]


def _dates() -> bytes:
    dates = ("0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00", "1e400", "-5")
    return b"".join(b'{"text": "one", "date": "%s"}\n' % date.encode() for date in dates)


def _nested_line() -> bytes:
    return b'{"text": "one", "deep": ' + b"[" * 260 + b"]" * 260 + b"}\n"


def _columns(count: int) -> bytes:
    return ",".join(f"c{number}" for number in range(count)).encode() + b"\ntext\n"


def _bomb(content: bytes) -> bytes:
    """The same content 48 times, which packs into next to nothing."""
    return gzip.compress(content, 1) * 48


def _pdf(pages: int) -> bytes:
    """A PDF file that lists one page so often."""
    kids = b"3 0 R " * pages
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, pages),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R /Resources "
        b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length 40 >>\nstream\nBT /F1 12 Tf 9 9 Td (a text of boats) Tj ET\nendstream",
    ]
    content = b"%PDF-1.4\n"
    for number, value in enumerate(objects, start=1):
        content += b"%d 0 obj\n%s\nendobj\n" % (number, value)
    return content + b"trailer << /Size 5 /Root 1 0 R >>\n%%EOF\n"


def _parquet() -> bytes:
    import polars as pl

    written = io.BytesIO()
    table = {"id": ["a", "b"], "text": ["one two", "three"], "n": [1, 2], "l": [["x"], []]}
    pl.DataFrame(table).write_parquet(written)
    return written.getvalue()


_Pack: TypeAlias = Callable[[bytes], bytes]
_PACKED: dict[str, tuple[_Pack, _Pack]] = {
    ".gz": (gzip.decompress, gzip.compress),
    ".bz2": (bz2.decompress, bz2.compress),
}
_TOKENS = (
    b"<", b">", b"&#x", b"<!--", b"<script", b"[", b"](", b"`", b"*", b"---\n", b"\n\n", b"\0", b"\r",
    b"\x0c", b"\xe2\x80\xa8", b"\xed\xa0\x80", b'"', b'\\"', b"\\ud800", b",", b"\t", b"{", b"}",
    b"1e999", b"NaN", b"null", b"true", b"obj", b"stream", b"/Kids", b"/Length", b"<<", b">>",
)  # fmt: skip


def _changed_file(case: bytes, rng: random.Random) -> bytes:
    suffix, _, content = case.partition(b"\n")
    packed = _PACKED.get(Path("x" + suffix.decode()).suffix)
    if len(content) > 1 << 19:  # a known monster, whose changes would be no others
        content = content[: rng.randrange(1 << 12)]
    if packed is not None and rng.random() < 0.5:
        unpack, pack = packed
        with suppress(OSError, EOFError, ValueError, zlib.error):
            return suffix + b"\n" + pack(_changed(unpack(content[:4096])[:100_000], rng))
    if rng.random() < 0.05:
        suffix = rng.choice((b".txt", b".md", b".html", b".json", b".csv", b".pdf", b".parquet"))
    return suffix + b"\n" + _changed(content, rng)


def _changed(content: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return mutated_bytes(content, rng)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(content) + 1)
        token = rng.choice(_TOKENS) * rng.choice((1, 1, 2, 50, 3000))
        content = content[:place] + token + content[place + rng.choice((0, 0, 1, 8)) :]
    return content


def _open_readers(folder: Path) -> Attempt:
    # Far less than by default, so that a file which is stopped is stopped soon.
    os.environ["PARABIT_LIMITS"] = "seconds=3 memory_mb=1000 document_mb=30"
    corpus = folder / "corpus"
    shutil.rmtree(corpus, ignore_errors=True)
    corpus.mkdir()
    (corpus / "good.txt").write_text(_GOOD)

    def attempt(case: bytes) -> str:
        from parabit import open_corpus

        suffix, _, content = case.partition(b"\n")
        path = corpus / f"case{suffix.decode()}"
        path.write_bytes(content)
        try:
            texts = []
            for document in open_corpus(corpus):
                texts.append(document.text)
                written = json.dumps(document.fields, ensure_ascii=False, default=str)
                (document.id + document.text + written).encode()
        finally:
            path.unlink()
        return "" if _GOOD in texts else "the file beside it was not read"

    return attempt


# Texts and conditions that an index is searched with.


def _make_index(folder: Path) -> Path:
    """An index to search in: of texts, with labels, numbers and dates."""
    from parabit import Document, Index, ParagraphVectors

    index = folder.parent / "index"  # which several targets search
    if index.exists():
        return index
    documents = [
        Document(
            f"d{number}",
            text_of(number),
            (f"label{number % 3}",),
            {
                "year": 1990 + number % 9,
                "date": f"2001-05-{1 + number % 28:02}",
                "good": number % 2 == 0,
            },
        )
        for number in range(60)
    ]
    model = ParagraphVectors(20).fit([document.text for document in documents])
    with Index.build(documents, index, model=model) as built:
        for number, fields in enumerate(_ODD_FIELDS):
            with suppress_own():  # it may refuse them
                built.add([Document(f"odd{number}", text_of(number), (), fields)])
    return index


def _nested(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = [value]
    return value


_ODD_FIELDS: tuple[dict[str, Any], ...] = (
    {"date": "0001-01-01T00:00:00+12:00"},
    {"date": "9999-12-31T23:59:59-12:00"},
    {"deep": _nested(260)},
    {"year": float("inf")},
    {"title": "a\x1b[31m\nb"},
)


_QUERIES = (
    "telescope in orbit", '"one phrase"', "+must -not word*", "labels:label1", "year:1990..1995",
    "a" * 24_000, "a" * 99_990, "\ud800", "\0", '"', '""', "-", "+", "*", "a*", "--jobs", "a:b:c",
    '"a' * 1000, "(" * 5000, "é" * 3000, "a OR b AND NOT c", "[a TO b]", "a^2", "a~2", "/re.*/",
    "word " * 5000, "+a " * 3000, "-a " * 3000, "a* " * 500, "1e999", "id:d1", "🚀🚀", "\u2028", "x" * 300,
)  # fmt: skip
_PARTS = (
    '"',
    "+",
    "-",
    "*",
    ":",
    "(",
    ")",
    "~",
    "^",
    " ",
    "\\",
    "é",
    "\ud800",
    "\0",
    "labels:",
    "..",
    "🚀",
)


def _changed_text(case: bytes, rng: random.Random) -> bytes:
    text = case.decode("utf-8", "surrogatepass")[:2000]
    for _ in range(rng.randint(1, 5)):
        place = rng.randrange(len(text) + 1)
        word = word_of(rng.randrange(60))
        new = rng.choice((*_PARTS, word, word[:4], text[place : place + 20])) * rng.choice(
            (1, 1, 3, 40)
        )
        text = text[:place] + new + text[place + rng.choice((0, 1, 9)) :]
    return text.encode("utf-8", "surrogatepass")


def _query_seeds(folder: Path) -> list[bytes]:
    _make_index(folder)
    return [query.encode("utf-8", "surrogatepass") for query in _QUERIES]


def _open_queries(folder: Path) -> Attempt:
    from parabit import Index

    index = Index.open(_make_index(folder))

    def attempt(case: bytes) -> str:
        text = case.decode("utf-8", "surrogatepass")
        for rank in ("hybrid", "words"):
            hits = index.search([text], k=5, rank=rank)[0]
            json.dumps([hit.title for hit in hits])
        return ""

    return attempt


_CONDITIONS: tuple[Any, ...] = (
    {"labels": "label1"}, {"labels": ["label1", "label2"]}, {"year": {">=": 1990, "<": 1995}},
    {"date": {">": "2001-05-03"}}, {"id": "d1"}, {"good": True}, {"none": None}, ["year=1990..1995"],
    ["labels!=label1", "year>=1991"], {"year": {">": "0001-01-01T00:00:00+12:00"}}, {"labels": []},
    {"year": {"=": 10**400}}, {"year": {">": 10**400}}, {"": ""}, ["="], ["a=" + "x" * 100_000],
    {"labels": [str(number) for number in range(20_000)]}, {"\ud800": "\ud800"}, "labels=label1", {"text": "x"},
    {"date": "9999-12-31T23:59:59-12:00"}, {"year": {"!=": [1, "a", None, True, 1e308]}},
)  # fmt: skip


def _condition_seeds(folder: Path) -> list[bytes]:
    _make_index(folder)
    return [json.dumps(condition).encode() for condition in _CONDITIONS]


def _changed_json(case: bytes, rng: random.Random) -> bytes:
    names = (
        "labels",
        "year",
        "date",
        "id",
        "text",
        "good",
        ">=",
        "=",
        "",
        "\ud800",
        "2001-05-03",
        "1..2",
    )
    changed = mutated_json(json.loads(case), rng, names)
    for _ in range(rng.randrange(3)):
        changed = mutated_json(changed, rng, names)
    return as_json(changed).encode()


def _open_conditions(folder: Path) -> Attempt:
    from parabit import Index

    index = Index.open(_make_index(folder))

    def attempt(case: bytes) -> str:
        try:
            where = json.loads(case)
        except RecursionError:
            return ""  # of the harness, not of parabit
        if not isinstance(where, dict):
            # Strings, as the command line and assistants give them.
            where = [str(one) for one in where] if isinstance(where, list) else [str(where)]
        index.search(["orbit"], k=3, where=where)
        index.ids_where(where)
        return ""

    return attempt


# Files of an index and of a model: a JSON object of all of them, by name.


def _stored_seeds(spoil: Callable[[Path, random.Random], None], folder: Path) -> list[bytes]:
    template = folder.parent / "world"  # which several targets spoil
    if template.exists():
        return [_spoiled(template, spoil, random.Random(number)) for number in range(8)]
    world = World(template).make(40)
    for number in range(4):
        new = {f"post{number}": world.new_number()}
        world.run("add", world.index, world.write_lines("more.jsonl", new), "--quiet")
    world.run("delete", world.index, "post0")
    (template / "victim").mkdir()
    (template / "victim" / "letter.txt").write_text("Dear aunt\n")
    (template / "bashrc").write_text("export EDITOR=ed\n")
    return _stored_seeds(spoil, folder)


def _spoiled(
    template: Path, spoil: Callable[[Path, random.Random], None], rng: random.Random
) -> bytes:
    """All files after a change, as a case."""
    copy = template.parent / "spoiled"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(template, copy)
    spoil(copy, rng)
    files = {
        str(path.relative_to(copy)): base64.b64encode(path.read_bytes()).decode()
        for path in sorted(copy.rglob("*"))
        if path.is_file()
    }
    return json.dumps({"template": str(template), "files": files}).encode()


def _changed_stored(
    spoil: Callable[[Path, random.Random], None], case: bytes, rng: random.Random
) -> bytes:
    return _spoiled(Path(json.loads(case)["template"]), spoil, rng)


def _open_stored(use: Callable[[Path], None], folder: Path) -> Attempt:
    def attempt(case: bytes) -> str:
        world = folder / "case"
        shutil.rmtree(world, ignore_errors=True)
        for name, content in json.loads(case)["files"].items():
            (world / name).parent.mkdir(parents=True, exist_ok=True)
            (world / name).write_bytes(base64.b64decode(content))
        before = tree_of(world, leave_out=("index",))
        try:
            use(world)
        finally:
            harm = differences(before, tree_of(world, leave_out=("index",)))
        return "; ".join(harm[:5])

    return attempt


def _use_index(world: Path) -> None:
    from parabit import Index

    with Index.open(world / "index") as index:
        index.info()
        with suppress_own():
            index.verify()
        index.search([word_of(3)], k=3)
        index.search(["orbit"], k=3, rank="hamming", where={"labels": "s1"})
        index.like(index.ids_where({})[:1], k=2)
    with Index.open(world / "index", write=True) as index:
        index.delete(index.ids_where({})[:1])


def _use_model(world: Path) -> None:
    from parabit import ParagraphVectors

    model = ParagraphVectors.load(world / "model")
    model.transform([text_of(1), "", "é"])


def suppress_own() -> suppress:
    """Errors that parabit raises on purpose."""
    from parabit import ParabitError

    return suppress(ParabitError)


def _spoil_manifest(world: Path, rng: random.Random) -> None:
    index = world / "index"
    if rng.random() < 0.1:
        path = index / MANIFEST
        path.write_bytes(mutated_bytes(path.read_bytes(), rng))
    else:
        write_manifest(index, mutated_json(read_manifest(index), rng))


def _spoil_array(world: Path, rng: random.Random) -> None:
    path = rng.choice(sorted((world / "index").glob("generation-*/*.npy")))
    content = path.read_bytes()
    start = header_size(content) if rng.random() < 0.8 else 0
    changed = content[:start] + mutated_bytes(content[start:], rng)
    if rng.random() < 0.8:
        replace_sealed(world / "index", path, changed)
    else:
        path.write_bytes(changed)


def _spoil_log(world: Path, rng: random.Random) -> None:
    path = sorted((world / "index").glob("log-*"))[0]
    change = mutated_log if rng.random() < 0.8 else mutated_bytes
    path.write_bytes(change(path.read_bytes(), rng))


def _spoil_model(world: Path, rng: random.Random) -> None:
    path = rng.choice(sorted((world / "model").iterdir()))
    content = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.9:
        path.write_text(as_json(mutated_json(json.loads(content), rng)))
    elif path.suffix == ".safetensors" and rng.random() < 0.9:
        path.write_bytes(mutated_safetensors(content, rng))
    else:
        path.write_bytes(mutated_bytes(content, rng))


# Requests to the server, and calls of an assistant.


def _request_seeds(folder: Path) -> list[bytes]:
    _make_index(folder)
    searches: list[Any] = [
        {"query": "orbit", "k": 5},
        {"like": "d1", "k": 3, "collapse": True, "why": True, "positions": True},
        {"query": "orbit", "where": {"labels": ["label1"], "year": {">=": 1990}}, "radius": 5},
        {"query": "orbit", "rank": "words"},
        *({"query": query} for query in _QUERIES if len(query) < 100_000),
        *({"query": "orbit", "where": where} for where in _CONDITIONS if isinstance(where, dict)),
    ]
    gets = [
        ("/api/about", {}), ("/api/fields", {}), ("/api/start", {}), ("/api/map", {}), ("/healthz", {}),
        ("/api/document", {"id": "d1", "query": "orbit"}), ("/api/document", {"id": "d1", "like": "d2"}),
        ("/api/document", {"id": "\0"}), ("/api/document", {"id": "9" * 5000}), ("/", {}), ("/docs", {}),
        ("/static/../../app.py", {}), ("/openapi.json", {}),
    ]  # fmt: skip
    posts = [{"path": "/api/search", "body": search} for search in searches]
    return [
        json.dumps(request).encode()
        for request in [*posts, *({"path": path, "query": query} for path, query in gets)]
    ]


def _changed_request(case: bytes, rng: random.Random) -> bytes:
    request = json.loads(case)
    if "body" in request and rng.random() < 0.9:
        names = (
            "query",
            "like",
            "where",
            "rank",
            "k",
            "labels",
            "words",
            "hybrid",
            "\ud800",
            "d1",
            ">=",
        )
        request["body"] = mutated_json(request["body"], rng, names)
    elif "body" in request:
        request["raw"] = base64.b64encode(
            mutated_bytes(json.dumps(request.pop("body")).encode(), rng)
        ).decode()
    else:
        request = mutated_json(
            request, rng, ("id", "d1", "query", "like", "/api/document", "\0", "%00")
        )
    if rng.random() < 0.1 and isinstance(request, dict):
        request["headers"] = {
            rng.choice(("host", "origin", "authorization", "content-type")): "x" * 20
        }
    return json.dumps(request).encode()


def _open_requests(folder: Path) -> Attempt:
    from starlette.testclient import TestClient

    from parabit.web import Settings, create_app

    app = create_app(_make_index(folder), Settings(map=False, seconds=5))
    # It stays open until the process ends.
    client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False).__enter__()

    def attempt(case: bytes) -> str:
        request = json.loads(case)
        if not isinstance(request, dict):
            return ""
        path, headers = request.get("path"), {"content-type": "application/json"}
        if isinstance(request.get("headers"), dict):
            headers |= {name: str(value) for name, value in request["headers"].items()}
        path = path if isinstance(path, str) and path.startswith("/") else "/"
        path = re.sub(r"[^!-~]", "%00", path)
        if "raw" in request:
            answer = client.post(path, content=base64.b64decode(request["raw"]), headers=headers)
        elif "body" in request:
            body = as_json(request["body"])
            answer = client.post(path, content=body, headers=headers)
        else:
            query = request.get("query")
            query = query if isinstance(query, dict) else {}
            query = {
                name.encode(errors="replace").decode(): str(value).encode(errors="replace").decode()
                for name, value in query.items()
            }
            answer = client.get(path, params=query, headers=headers)
        if answer.status_code == 500:
            return f"500 from {path}: {answer.text[:100]}"
        if path.startswith("/api") and answer.headers.get("content-type") == "application/json":
            answer.json()
        return ""

    return attempt


_TOOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search", {"query": "orbit", "k": 3, "where": ["year>=1990"]}),
    ("search", {"query": "\ud800"}),
    ("search", {"query": "a" * 24_000}),
    ("like", {"id": "d1", "k": 2}),
    ("document", {"id": "d1", "start": 3}),
    ("document", {"id": "d1", "start": 10**30}),
    ("duplicates", {"k": 5}),
    ("nothing", {}),
)


def _tool_seeds(folder: Path) -> list[bytes]:
    _make_index(folder)
    return [json.dumps({"name": name, "arguments": given}).encode() for name, given in _TOOLS]


def _changed_call(case: bytes, rng: random.Random) -> bytes:
    call = json.loads(case)
    kind = rng.random()
    if kind < 0.2 and "query" in call["arguments"]:
        query = str(call["arguments"]["query"]).encode("utf-8", "surrogatepass")
        call["arguments"]["query"] = _changed_text(query, rng).decode("utf-8", "surrogatepass")
    elif kind < 0.3 and "k" in call["arguments"]:
        call["arguments"]["k"] = rng.choice(BAD_NUMBERS[:16])
    else:
        names = ("query", "id", "k", "where", "start", "d1", "year>=1990", "\ud800", "\n")
        call["arguments"] = mutated_json(call["arguments"], rng, names)
    return json.dumps(call).encode()


class _Assistant:
    """A client that speaks the protocol by hand, so that it can say what no library would."""

    def __init__(self, index: Path) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "parabit", "mcp", str(index)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._number = 0
        about = {"name": "fuzz", "version": "1"}
        start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        self.ask("initialize", start)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        """The answer to a request; an end of the server is an EOFError."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._server.stdout is not None
        while line := self._server.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._number:
                return answer
        raise EOFError("the server has ended")

    def _send(self, message: Any) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message).encode() + b"\n")
        self._server.stdin.flush()


def _open_tools(folder: Path) -> Attempt:
    index = _make_index(folder)
    assistants: list[_Assistant] = []

    def attempt(case: bytes) -> str:
        if not assistants:
            assistants.append(_Assistant(index))
        call = json.loads(case)
        try:
            answer = assistants[0].ask("tools/call", call)
        except (EOFError, BrokenPipeError):
            assistants.clear()
            return "the server has ended"
        said = json.dumps(answer)
        failure = re.search(
            r"Traceback|unexpected \w+Error|Internal [Ee]rror|Error executing.{0,200}", said
        )
        known = re.search(r"validation error|Unknown tool|there is no document|; ", said)
        return failure[0] if failure and not known else ""

    return attempt


def _stored(name: str, spoil: Any, use: Any) -> Target:
    return Target(
        name, 20, partial(_stored_seeds, spoil), partial(_changed_stored, spoil), partial(_open_stored, use)
    )  # fmt: skip


TARGETS = {
    target.name: target
    for target in (
        Target("readers", 60, _reader_seeds, _changed_file, _open_readers, most_mb=2000),
        Target("queries", 10, _query_seeds, _changed_text, _open_queries),
        Target("conditions", 10, _condition_seeds, _changed_json, _open_conditions),
        _stored("manifest", _spoil_manifest, _use_index),
        _stored("arrays", _spoil_array, _use_index),
        _stored("log", _spoil_log, _use_index),
        _stored("model", _spoil_model, _use_model),
        Target("api", 15, _request_seeds, _changed_request, _open_requests),
        Target("mcp", 15, _tool_seeds, _changed_call, _open_tools),
    )
}

"""A Milvus server or a file of Milvus Lite, one collection on it, and documents as its entities.

Requests have the sizes that Milvus takes. An entity has the document's id as its key, a serial number, which is its
row, its code (as a vector that is searched, and as text that is read faster), the stems of its words, hashes of the
values in its fields, its numbers, and all of its fields as compressed JSON.
"""

import json
import math
import os
import re
import warnings
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from logging import CRITICAL, getLogger
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError, need
from parabit.index.store import schema
from parabit.index.store.manifest import Manifest
from parabit.index.store.schema import Id, Value

KEY, SERIAL, VECTOR, CODE, WORDS, BM25 = "id", "serial", "vector", "code", "words", "bm25"
KEYS, NUMBERS, REAL = "keys", "numbers", "real"
RECORDS = [
    "record",
    *(f"record_{part}" for part in range(2, 9)),
]  # several, as a string of Milvus is short
_SHORT = {KEY, SERIAL, CODE}
LONGEST = 65_535  # bytes of a string
LONGEST_KEY, MOST_KEYS = 4096, 4096  # bytes of a key, and values of an array
NOTHING = f"{SERIAL} < 0"  # a filter that lets nothing through
_HIGHEST = 1.7e308  # number

TOKEN = "PARABIT_MILVUS_TOKEN"
WINDOW = 16_384  # hits of a query, or entities of an answer, that Milvus gives at most
_WRITTEN = (
    64  # entities in a request, which may have 64 MB; Milvus Lite takes more of them more slowly
)
_READ = 500  # entities with long strings in an answer, which may have 100 MB
_NAMED = 5000  # keys or rows in a filter
_QUERIES, _HITS = 4096, 1 << 18  # in a request
_REMEMBERED = 1 << 19  # entities, before they are forgotten
_CONNECT, _LIMIT = (
    5.0,
    3600.0,
)  # seconds to find out that nobody is there, and for a whole collection
_TRIES = {
    "search": 4,
    "query": 4,
    "insert": 0,
    "upsert": 10,
    "delete": 10,
}  # if a server is busy: 1 s, 15 s

_files: Counter[str] = Counter()  # files of Milvus Lite that this process has open, and how often
_files_lock = Lock()


class Server:
    """A connection. `ask` calls a method of `pymilvus.MilvusClient`; what fails is an IndexFolderError."""

    def __init__(self, uri: str) -> None:
        self.pymilvus = need("pymilvus", "milvus", IndexFolderError)
        # Everything that fails is raised; the log would say it a second time, with tracebacks.
        getLogger("pymilvus").setLevel(CRITICAL + 1)
        self.uri, self.is_file, self._is_open = uri, "://" not in uri, True
        if self.is_file:
            with warnings.catch_warnings(
                action="ignore", category=UserWarning
            ):  # about its use of pkg_resources
                need("milvus_lite", "milvus", IndexFolderError)
            with _files_lock:
                _files[self.uri] += 1
        try:
            with self._explaining("connect"):
                token = (
                    "" if self.is_file else os.environ.get(TOKEN, "")
                )  # `dedicated`: a shared one is closed for all
                self.client = self.pymilvus.MilvusClient(
                    uri, token=token, timeout=_CONNECT, dedicated=True
                )
                found = (
                    version("milvus-lite")
                    if self.is_file
                    else self.client.get_server_version(timeout=_CONNECT)
                )
                self.version = str(found).removeprefix("v")
        except BaseException:
            self._release()
            raise

    def ask(self, what: str, *arguments: Any, **options: Any) -> Any:
        options |= {"retry_times": _TRIES[what]} if what in _TRIES else {"timeout": _LIMIT}
        with self._explaining(what):
            return getattr(self.client, what)(*arguments, **options)

    def close(self) -> None:
        """End the connection, and Milvus Lite if nobody else in this process uses its file."""
        if self._is_open:
            self.client.close()
            self._release()

    def _release(self) -> None:
        self._is_open = False
        if self.is_file:
            with _files_lock:
                _files[self.uri] -= 1
                if not _files[self.uri]:
                    manager = need(
                        "milvus_lite.server_manager", "milvus", IndexFolderError
                    ).server_manager_instance
                    manager.release_server(self.uri)

    @contextmanager
    def _explaining(self, doing: str) -> Iterator[None]:
        if not self._is_open:
            raise IndexFolderError("the index was closed", hint="open it again")
        try:
            yield
        except Exception as problem:  # of pymilvus, of grpc, and RuntimeError of Milvus Lite
            said = " ".join(str(getattr(problem, "message", "") or problem).split())[:500]
            lower = f"{said} {problem.__cause__}".lower()  # only the cause names a wrong password
            failed, hint = f"failed to {doing.replace('_', ' ')}: {said}", "its log may say why"
            if "unauthenticated" in lower or "auth check failure" in lower:
                failed, hint = "does not let us in", f"set {TOKEN} to a token or USER:PASSWORD"
            elif doing == "connect" or re.search(
                "unavailable|failed to connect|fail connecting|closed channel", lower
            ):
                failed, hint = (
                    "does not answer",
                    "start the server, or correct the address, and try again",
                )
                if self.is_file:
                    failed, hint = (
                        f"cannot be opened: {said}",
                        "one process at a time opens a file of Milvus Lite",
                    )
            raise IndexFolderError(f"Milvus at {self.uri} {failed}", hint=hint) from problem


class Near(NamedTuple):
    """What Milvus found for a query: distances of codes, or BM25 of words."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    cut: bool = False  # whether there may be others


class Entities:
    """The entities of an index, in a collection, as one search or change sees them.

    The keys and codes of those that were found are remembered, by row. The first answer waits until the server has
    caught up with everything that was written before, and then it need not wait again.
    """

    def __init__(self, server: Server, manifest: Manifest) -> None:
        self.server, self.manifest, self._bits = server, manifest, manifest.bits
        assert manifest.engine is not None
        self.name = manifest.engine.collection
        self._description = (
            f"parabit index {manifest.token}"  # of the collection; no two are the same
        )
        self._known: dict[int, Mapping[str, Any]] = {}
        self._level = "Strong"

    def create(self) -> None:
        server, types, has_words = (
            self.server,
            self.server.pymilvus.DataType,
            bool(self.manifest.words),
        )
        if has_words and server.version.startswith(("2.3.", "2.4.")):
            raise IndexFolderError(
                f"Milvus at {server.uri} is of version {server.version} and cannot search by words",
                hint="upgrade it to 2.5 or later, or build the index without words",
            )
        schema = server.client.create_schema(
            auto_id=False, enable_dynamic_field=False, description=self._description
        )
        indexes = server.client.prepare_index_params()
        schema.add_field(KEY, types.VARCHAR, is_primary=True, max_length=LONGEST_KEY)
        schema.add_field(SERIAL, types.INT64)
        schema.add_field(VECTOR, types.BINARY_VECTOR, dim=8 * -(-self._bits // 8))
        schema.add_field(KEYS, types.ARRAY, element_type=types.INT64, max_capacity=MOST_KEYS)
        schema.add_field(NUMBERS, types.JSON)
        for text in (CODE, *RECORDS, *([REAL] if self.manifest.dim else [])):
            schema.add_field(text, types.VARCHAR, max_length=LONGEST)
        indexes.add_index(VECTOR, index_name=VECTOR, index_type="BIN_FLAT", metric_type="HAMMING")
        if has_words:
            # Words come as stems with spaces between them, so that both engines cut texts alike.
            options = {"enable_analyzer": True, "analyzer_params": {"tokenizer": "whitespace"}}
            schema.add_field(WORDS, types.VARCHAR, max_length=LONGEST, **options)
            schema.add_field(BM25, types.SPARSE_FLOAT_VECTOR)
            kinds = server.pymilvus.FunctionType
            schema.add_function(server.pymilvus.Function(BM25, kinds.BM25, [WORDS], [BM25]))
            constants = {"bm25_k1": 1.2, "bm25_b": 0.75}  # those of tantivy
            indexes.add_index(
                BM25, "SPARSE_INVERTED_INDEX", BM25, metric_type="BM25", params=constants
            )
        server.ask(
            "create_collection", self.name, schema=schema, index_params=indexes, num_shards=1
        )

    def is_there(self) -> Any:
        """Whether there is a collection of this name and description."""
        there = self.server.ask("has_collection", self.name)
        return (
            there
            and self.server.ask("describe_collection", self.name).get("description")
            == self._description
        )

    def drop(self) -> None:
        """Remove the collection, if it is the one with this description."""
        if self.is_there():
            self.server.ask("drop_collection", self.name)

    def write(self, entities: Sequence[dict[str, Any]], new: bool = False) -> None:
        """Add entities, in place of those that have their keys; when this returns Milvus has them."""
        for some in pieces(entities, _WRITTEN):
            self.server.ask("insert" if new else "upsert", self.name, some)

    def delete(self, keys: Sequence[str]) -> None:
        for some in pieces(keys, _NAMED):
            self.server.ask("delete", self.name, filter=in_keys(some))

    def count(self, filter: str = "") -> int:
        """How many entities a filter lets through."""
        [answer] = self._read("query", filter=filter, output_fields=["count(*)"])
        return int(answer["count(*)"])

    def with_keys(self, keys: Sequence[str]) -> dict[str, int]:
        """The rows of the entities with some keys, by key."""
        return {
            row[KEY]: row[SERIAL]
            for some in pieces(keys, _NAMED)
            for row in self.some(in_keys(some), [])
        }

    def in_rows(self, rows: Sequence[int], names: Sequence[str]) -> dict[int, Mapping[str, Any]]:
        """What is kept under some names in some rows, by row; without entities that were changed meanwhile."""
        found = {
            row: self._known[row] for row in rows if self._known.get(row, {}).keys() >= {*names}
        }
        for level in (
            self._level,
            "Strong",
        ):  # a copy of the server that is behind may answer first
            if missing := [row for row in dict.fromkeys(rows) if row not in found]:
                self._level = level
                for some in pieces(missing, _NAMED if {*names} <= _SHORT else _READ):
                    found |= {entity[SERIAL]: entity for entity in self.some(in_rows(some), names)}
        return found

    def some(self, filter: str, names: Sequence[str], most: int = WINDOW) -> list[dict[str, Any]]:
        """Entities that a filter lets through, in no order, with what is kept under some names."""
        output = list({KEY, SERIAL, *names})
        found: list[dict[str, Any]] = self._read(
            "query", filter=filter, output_fields=output, limit=most
        )
        if {*names} <= _SHORT:
            self._remember(found)
        return found

    def walk(self, filter: str = "") -> Iterator[NDArray[np.int64]]:
        """The rows of all entities that a filter lets through, ascending, in blocks."""

        def ask(between: str) -> Near:
            rows = np.sort(
                np.array(
                    [row[SERIAL] for row in self.some(all_of([between, filter]), [])],
                    dtype=np.int64,
                )
            )
            return Near(rows, np.zeros(len(rows)), len(rows) == WINDOW)

        return (near.rows for near in in_ranges(ask) if len(near.rows))

    def opposite(self, filter: str) -> str:
        """A filter for the entities that this one does not let through."""
        if not self.server.is_file:
            return f"not ({filter})"
        rows = [
            row for block in self.walk(filter) for row in block.tolist()
        ]  # Lite has no `not`, only `not in`
        return f"{SERIAL} not in {rows}" if rows else ""

    def near(
        self, codes: NDArray[np.uint8], limit: int, lowest: int, highest: int, filter: str = ""
    ) -> Iterator[Near]:
        """The nearest entities of each code, between two distances, both included."""
        params = {}
        if (
            lowest > 0 or highest < self._bits
        ):  # Milvus gives distances below the radius, and from range_filter on
            params = {"radius": highest + 1, "range_filter": lowest}
        for near in self._search(
            VECTOR, "HAMMING", [code.tobytes() for code in codes], limit, filter, params
        ):
            inside = (near.scores >= lowest) & (near.scores <= highest)
            yield Near(near.rows[inside], near.scores[inside], near.cut and bool(inside.all()))

    def best(self, texts: Sequence[str], limit: int, filter: str = "") -> list[Near]:
        """The entities with the highest BM25 for each text."""
        return list(self._search(BM25, "BM25", texts, limit, filter, {}))

    def _search(
        self,
        field: str,
        metric: str,
        data: Sequence[Any],
        limit: int,
        filter: str,
        params: Mapping[str, int],
    ) -> Iterator[Near]:
        options = {
            "anns_field": field,
            "filter": filter,
            "limit": limit,
            "output_fields": [SERIAL, CODE],
        }
        options["search_params"] = {"metric_type": metric, "params": params}
        for some in pieces(data, max(1, min(_QUERIES, _HITS // limit))):
            for hits in self._read("search", data=list(some), **options):
                self._remember([{**hit["entity"], KEY: hit[KEY]} for hit in hits])
                rows = np.array([hit["entity"][SERIAL] for hit in hits], dtype=np.int64)
                yield Near(
                    rows,
                    np.array([hit["distance"] for hit in hits], dtype=np.float64),
                    len(rows) == limit,
                )

    def _read(self, what: str, **options: Any) -> Any:
        answer = self.server.ask(what, self.name, consistency_level=self._level, **options)
        self._level = "Bounded"
        return answer

    def _remember(self, found: Iterable[Mapping[str, Any]]) -> None:
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        self._known |= {entity[SERIAL]: entity for entity in found}


def in_ranges(ask: Callable[[str], Near]) -> Iterator[Near]:
    """Answers that are not cut, from the lowest rows to the highest; `ask` takes a filter for a range of rows."""
    ranges: list[tuple[int, int | None]] = [(0, None)]
    while ranges:
        first, end = ranges.pop()
        near = ask(f"{SERIAL} >= {first}" + ("" if end is None else f" and {SERIAL} < {end}"))
        if near.cut:
            middle = max(first + 1, int(np.median(near.rows)))
            ranges += [(middle, end), (first, middle)]
        else:
            yield near


def pieces(items: Any, most: int) -> Iterator[Any]:
    """Items in their order, at most so many at a time."""
    return (items[start : start + most] for start in range(0, len(items), most))


def key_of(identity: Id) -> str:
    """An id as a key in plain ASCII: a quote or a newline in a key confuses Milvus Lite. 7 and "7" are two ids."""
    key = quote_from_bytes(schema.id_bytes(identity), safe=" !#$()*+,-./:;<=>?@[]^_{|}~")
    if len(key) > LONGEST_KEY:
        raise IndexFolderError(
            f"the id {str(identity)[:40]!r}... takes {len(key):,} bytes",
            hint=f"Milvus keeps up to {LONGEST_KEY:,}",
        )
    return key


def id_of_key(key: str) -> Id:
    """The id that `key_of` wrote."""
    return schema.id_of(unquote_to_bytes(key))


def entity_of(
    identity: Id,
    serial: int,
    code: NDArray[np.uint8],
    record: bytes,
    words: Sequence[str] | None,
    vector: NDArray[np.float16] | None,
) -> dict[str, Any]:
    """A document as an entity; an IndexFolderError says what does not fit. `words` are stems, in order."""
    entries = list(schema.entries_of(schema.fields_in(record)))
    keys = sorted(
        {key >> 1 for key, number in entries if math.isnan(number)}
    )  # Milvus has no unsigned numbers
    if len(keys) > MOST_KEYS:
        raise IndexFolderError(
            f"document {identity!r} has {len(keys):,} values in its fields",
            hint=f"Milvus finds a document by {MOST_KEYS:,} at most",
        )
    numbers = {_number_name(key): number for key, number in entries if math.isfinite(number)}
    kept = b64encode(zlib.compress(record, 1)).decode()
    if len(kept) > LONGEST * len(RECORDS):
        raise IndexFolderError(
            f"document {identity!r} takes {len(kept):,} bytes compressed",
            hint=f"Milvus keeps up to {LONGEST * len(RECORDS):,}; index it in parts",
        )
    entity = {
        KEY: key_of(identity),
        SERIAL: serial,
        VECTOR: code.tobytes(),
        CODE: b64encode(code.tobytes()).decode(),
    }
    entity |= {KEYS: keys, NUMBERS: numbers}
    entity |= {
        name: kept[LONGEST * part : LONGEST * (part + 1)] for part, name in enumerate(RECORDS)
    }
    if words is not None:
        written = f" {' '.join(words)} ".encode("utf-8", "replace")
        if len(written) > LONGEST:
            written = written[: written.rfind(b" ", 0, LONGEST) + 1]
        entity[WORDS] = written.decode()
    if vector is not None:
        entity[REAL] = b64encode(vector.tobytes()).decode()
    return entity


def fields_of_entity(entity: Mapping[str, Any]) -> dict[str, Any]:
    return schema.fields_in(zlib.decompress(b64decode("".join(entity[part] for part in RECORDS))))


def in_keys(keys: Iterable[str]) -> str:
    return f"{KEY} in {json.dumps(list(keys) or [''])}"  # which no document has


def in_rows(rows: Iterable[int]) -> str:
    return f"{SERIAL} in {list(rows)}"


def having(field: str, values: Iterable[Value]) -> str:
    """A filter for the documents that have one of the values in a field."""
    return (
        f"array_contains_any({KEYS}, {[schema.field_key(field, value) >> 1 for value in values]})"
    )


def comparing(field: str, operator: str, number: float) -> str:
    """A filter for the documents whose number in a field is in order with another."""
    return f'{NUMBERS}["{_number_name(schema.number_key(field))}"] {operator} {max(-_HIGHEST, min(_HIGHEST, number))!r}'


def saying(words: Sequence[str], end: str = " ") -> str:
    """A filter for the documents with some words, one after the other."""
    pattern = "".join("_" if letter in '%_\\"' else letter for letter in " ".join(words))
    return f'{WORDS} like "% {pattern}{end}%"'


def all_of(filters: Iterable[str]) -> str:
    """A filter for the documents that all let through; an empty one lets all through."""
    return " and ".join(f"({part})" for part in filters if part)


def _number_name(key: int) -> str:
    """The name of a number among an entity's: plain, whatever the field is called."""
    return f"n{key:x}"

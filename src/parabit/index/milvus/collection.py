"""A collection on a Milvus server: what is asked of it, in pieces of the sizes that Milvus takes."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.milvus.entities import (
    CODE,
    KEY,
    KEYS,
    LONGEST,
    MOST_KEYS,
    NUMBER,
    PARTS,
    RECORD,
    TEXT,
    Entity,
    about_of,
)
from parabit.index.milvus.near import Near, near_of
from parabit.index.milvus.pieces import SENT, in_pieces, in_requests, longest, most_deleted
from parabit.index.milvus.place import MORE, Milvus
from parabit.index.milvus.server import Server
from parabit.index.milvus.where import in_keys

WINDOW = 16_384  # hits of a query that Milvus gives at most
HITS_AT_ONCE = 1 << 18  # of all queries in a request
_QUERIES_AT_ONCE = 4096
_READ_AT_ONCE = 500  # entities with long strings: at most 100 MB come in an answer
_SHORT_AT_ONCE = 5000  # others, and those that are deleted
_PATIENCE = 120.0  # seconds for a flush that somebody waits for
_FIELDS = "parabit.fields"  # the property with the names of fields
_MERGES = "collection.autocompaction.enabled"  # the one that has Milvus merge files of its own accord
_LEVELS = {"strong": "Strong", "session": "Session", "bounded": "Bounded", "eventually": "Eventually"}


class Collection:
    """The entities of an index on a server, and the parts that are too long for them."""

    def __init__(self, server: Server, name: str, place: Milvus, bits: int) -> None:
        self.server, self.name = server, name
        self._parts = name + MORE
        self._place, self._bits = place, bits
        self._has_more: bool | None = None
        # Since the last flush; who knows how many, if others have written.
        self._deleted, self._longest = inf, 0
        self._is_unsure = False  # whether something may be written of which no session knows

    @classmethod
    def create(
        cls, server: Server, name: str, place: Milvus, bits: int, extra: Iterable[str], about: Mapping[str, Any]
    ) -> "Collection":
        """Make an empty one; `about` is kept with it."""
        for taken in (name, name + MORE):
            if server.ask("has_collection", taken):
                raise IndexFolderError(
                    f"the Milvus server at {server.uri} has a collection {taken!r} already",
                    hint="give another name, or none for one that is free",
                )
        types = server.types
        # No two are described alike, so that what fails here is told from one that somebody else makes meanwhile.
        schema = server.schema(json.dumps({**about, "made": token_hex(8)}))
        schema.add_field(KEY, types.VARCHAR, is_primary=True, max_length=LONGEST)
        schema.add_field(NUMBER, types.INT64)  # the order they came in
        schema.add_field(CODE, types.BINARY_VECTOR, dim=8 * -(-bits // 8))
        schema.add_field(KEYS, types.ARRAY, element_type=types.INT64, max_capacity=MOST_KEYS)
        schema.add_field(PARTS, types.INT64)  # how many entities beside it
        for text in (RECORD, *extra):
            schema.add_field(text, types.VARCHAR, max_length=LONGEST)
        params = {"nlist": place.lists} if place.index == "BIN_IVF_FLAT" else {}
        made = cls(server, name, place, bits)
        made._make(name, schema, place.index, params)
        made._has_more, made._deleted = False, 0
        return made

    def describe(self) -> Mapping[str, Any]:
        """What the server says of it; an error where it is not there."""
        if not self.server.ask("has_collection", self.name):
            raise IndexFolderError(
                f"the Milvus server at {self.server.uri} has no collection {self.name!r}",
                hint="it was dropped, or is on another server; build the index anew",
            )
        said: Mapping[str, Any] = self.server.ask("describe_collection", self.name)
        return said

    def about(self) -> Mapping[str, Any]:
        """What it was told of the index when it was made; nothing where it is none of ours."""
        return about_of(str(self.describe().get("description", "")))

    def is_of(self, about: Mapping[str, Any]) -> bool:
        """Whether it is there, and was made for an index of that model."""
        said = about_of(self._description(self.name) or "")
        return all(said.get(name) == about[name] for name in ("bits", "fingerprint"))

    def field_names(self) -> list[str]:
        """The names of fields that documents have, or had."""
        names: list[str] = json.loads(self.describe().get("properties", {}).get(_FIELDS, "[]"))
        return names

    def set_field_names(self, names: Sequence[str]) -> None:
        """Keep the names of fields."""
        self.server.ask("alter_collection_properties", self.name, {_FIELDS: json.dumps(list(names))})

    def load(self) -> None:
        """Have it ready to be searched, also after the server was started anew."""
        for name in self._names():
            self.server.ask("load_collection", name)

    def drop(self) -> None:
        """Remove it from the server."""
        for name in self._names():
            self.server.ask("drop_collection", name)

    def flush(self, patience: float = _PATIENCE) -> None:
        """Have all that was written in the server's files, which must take no more seconds than that."""
        for name in self._names():
            self.server.ask("flush", name, timeout=patience)
        self._deleted, self._longest = 0, 0

    def settle(self) -> None:
        """Have all that was written in the server's files, and indexed, however long it takes."""
        self.flush(patience=3600)
        while self.server.ask("describe_index", self.name, index_name=CODE).get("pending_index_rows"):
            time.sleep(0.2)

    def compact(self) -> None:
        """Have the server merge its files, without what was deleted."""
        self.settle()
        for name in self._names():
            job = self.server.ask("compact", name)
            while self.server.ask("get_compaction_state", job) == "Executing":
                time.sleep(0.2)
        self.settle()

    def insert(self, entities: Sequence[Entity]) -> None:
        """Add entities whose keys no other has. When this returns the server has them."""
        for some in in_requests(entities):
            self._add_parts(some)
            self._add(self.name, [entity.values for entity in some])

    def replace(self, entities: Sequence[Entity]) -> None:
        """Put entities in the place of those that have their keys. When this returns the server has them."""
        for some in in_requests(entities):
            # Parts have the document's new number in their keys, so that those of the version before serve until then.
            self._add_parts(some)
            old = self._parts_of([entity.values[KEY] for entity in some])
            self._upsert(self.name, [entity.values for entity in some])
            self._delete_parts(old)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete entities, and their parts."""
        for some in in_pieces(keys, min(_SHORT_AT_ONCE, most_deleted(longest(keys)))):
            parts = self._parts_of(some)
            self._pace(some)
            self._is_unsure = True  # Milvus does not tell when it was
            # Not by `ids`, which pymilvus writes as Python does, and Milvus reads another way.
            self.server.ask("delete", self.name, filter=in_keys(some))
            self._delete_parts(parts)

    def count(self, condition: str = "", level: str | None = None) -> int:
        """How many entities meet a condition."""
        [answer] = self._query(self.name, condition, ["count(*)"], level)
        return int(answer["count(*)"])

    def read(self, keys: Sequence[str], names: Sequence[str], level: str | None = None) -> dict[str, dict[str, Any]]:
        """The entities that have some keys."""
        found = {}
        at_once = _READ_AT_ONCE if {*names} - {NUMBER, CODE} else _SHORT_AT_ONCE
        for some in in_pieces(keys, at_once):
            for row in self._query(self.name, in_keys(some), [KEY, *names], level):
                found[row[KEY]] = row
        return found

    def read_parts(self, keys: Sequence[str]) -> dict[str, str]:
        """The parts that have some keys."""
        found: dict[str, str] = {}
        if not keys or not self._more:
            return found
        for level in ("eventually", "strong"):  # at once, and if something is missing, for sure
            lacking = [key for key in keys if key not in found]
            for some in in_pieces(lacking, _READ_AT_ONCE):
                rows = self._query(self._parts, in_keys(some), [KEY, TEXT], level)
                found |= {row[KEY]: row[TEXT] for row in rows}
        return found

    def walk(self, condition: str = "", level: str | None = None) -> Iterator[list[tuple[int, str]]]:
        """The number and the key of all entities that meet a condition, in the order of their numbers, in blocks."""
        ranges: list[tuple[int, int | None]] = [(0, None)]
        while ranges:
            first, end = ranges.pop()
            asked = " and ".join(filter(None, [between(first, end), condition]))
            rows = self._query(self.name, asked, [KEY, NUMBER], level, limit=WINDOW)
            found = sorted((row[NUMBER], row[KEY]) for row in rows)
            if len(found) < WINDOW:
                if found:
                    yield found
                continue
            middle = halved(first, [number for number, _ in found])
            ranges += [(middle, end), (first, middle)]

    def near(
        self,
        codes: NDArray[np.uint8],
        limit: int,
        lowest: int,
        highest: int,
        condition: str = "",
        exact: bool = True,
        level: str | None = None,
    ) -> list[Near]:
        """The nearest entities of each code, at most `limit`, between two distances, both included.

        Some may be nearer than the lowest, which is there to save work.
        """
        params: dict[str, int] = {}
        if self._place.index == "BIN_IVF_FLAT":
            params["nprobe"] = self._place.lists if exact else self._place.probes
        # Within a radius Milvus does not look at all lists, whatever it is told.
        ranged = not (exact and params) and (lowest > 0 or highest < self._bits)
        if ranged:
            params["radius"] = highest + 1  # the distances that Milvus gives are below it
            params["range_filter"] = lowest
        at_once = max(1, min(_QUERIES_AT_ONCE, HITS_AT_ONCE // limit))
        found = []
        for start in range(0, len(codes), at_once):
            answers = self._read(
                "search",
                self.name,
                level,
                data=[code.tobytes() for code in codes[start : start + at_once]],
                anns_field=CODE,
                filter=condition,
                limit=limit,
                output_fields=[NUMBER],
                search_params={"metric_type": "HAMMING", "params": params},
            )
            found += [near_of(answer, limit, highest) for answer in answers]
        return found

    def _make(self, name: str, schema: Any, index: str, params: Mapping[str, Any]) -> None:
        indexes = self.server.index_params()
        indexes.add_index(CODE, index_name=CODE, index_type=index, metric_type="HAMMING", params=dict(params))
        properties = {} if self.server.remembers else {_MERGES: "false"}
        options = {"schema": schema, "index_params": indexes, "num_shards": 1, "properties": properties}
        try:
            self.server.ask("create_collection", name, **options)
        except BaseException:
            # It may be there, half made. The name was free, but somebody else may have taken it since.
            with suppress(IndexFolderError):  # what went wrong before is what is told
                if self._description(name) == schema.description:
                    self.server.ask("drop_collection", name)
            raise

    def _description(self, name: str) -> str | None:
        """What a collection says of itself; None where there is none of that name."""
        if not self.server.ask("has_collection", name):
            return None
        return str(self.server.ask("describe_collection", name).get("description", ""))

    def _names(self) -> list[str]:
        return [self.name, self._parts] if self._more else [self.name]

    @property
    def _parts_description(self) -> str:
        return f"what is too long for {self.name}"

    @property
    def _more(self) -> bool:
        """Whether there is a collection for parts, which is made with the first one; one that says so of itself."""
        if not self._has_more:
            self._has_more = self._description(self._parts) == self._parts_description
        return self._has_more

    def _make_more(self) -> None:
        if self.server.ask("has_collection", self._parts):
            raise IndexFolderError(
                f"the Milvus server at {self.server.uri} has a collection {self._parts!r} that is not of this index",
                hint="what is too long for an entity would go there; rename that one, or build the index anew",
            )
        types = self.server.types
        schema = self.server.schema(self._parts_description)
        schema.add_field(KEY, types.VARCHAR, is_primary=True, max_length=1000)
        schema.add_field(TEXT, types.VARCHAR, max_length=LONGEST)
        schema.add_field(CODE, types.BINARY_VECTOR, dim=8)
        self._make(self._parts, schema, "BIN_FLAT", {})

    def _add_parts(self, entities: Sequence[Entity]) -> None:
        """Add what is too long for some entities; before them, so that what can be found is whole."""
        parts = [part for entity in entities for part in entity.parts]
        if parts and not self._more:
            self._make_more()
        for some in in_pieces(parts, SENT // LONGEST):
            self._add(self._parts, some)

    def _add(self, name: str, rows: list[dict[str, Any]]) -> None:
        was_unsure, self._is_unsure = self._is_unsure, True
        try:
            self.server.ask("insert", name, rows)
        except IndexFolderError:
            # They may have arrived all the same, and inserted again they would be there twice.
            self._upsert(name, rows)
        self._is_unsure = was_unsure

    def _upsert(self, name: str, rows: list[dict[str, Any]]) -> None:
        for some in in_pieces(rows, most_deleted(longest(row[KEY] for row in rows))):
            self._pace([row[KEY] for row in some])
            self.server.ask("upsert", name, some)

    def _pace(self, keys: Sequence[str]) -> None:
        """Before some are deleted or replaced: have those before in the files of a server that might forget them."""
        length = longest(keys)
        if not self.server.remembers and self._deleted + len(keys) > most_deleted(max(length, self._longest)):
            self.flush()
        self._deleted, self._longest = self._deleted + len(keys), max(length, self._longest)

    def _parts_of(self, keys: Sequence[str]) -> list[str]:
        """Conditions that the parts of some entities meet, each those of one; most have none."""
        if not self._more:
            return []
        conditions = []
        for some in in_pieces(keys, _SHORT_AT_ONCE):
            rows = self._query(self.name, f"{PARTS} > 0 and {in_keys(some)}", [NUMBER], "session")
            conditions += [f'{KEY} like "{row[NUMBER]}.%"' for row in rows]
        return conditions

    def _delete_parts(self, conditions: Iterable[str]) -> None:
        for condition in conditions:
            keys = [row[KEY] for row in self._query(self._parts, condition, [KEY], "session")]
            for some in in_pieces(keys, _SHORT_AT_ONCE):
                self.server.ask("delete", self._parts, filter=in_keys(some))

    def _query(
        self, name: str, condition: str, fields: Sequence[str], level: str | None, **options: Any
    ) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._read(
            "query", name, level, filter=condition, output_fields=list(fields), **options
        )
        return rows

    def _read(self, what: str, name: str, level: str | None, **options: Any) -> Any:
        chosen = level or self._place.consistency
        # A part that was deleted may well be found: nobody asks for it.
        if chosen == "session" and self._is_unsure and name == self.name:
            chosen = "strong"
        answer = self.server.ask(what, name, consistency_level=_LEVELS[chosen], **options)
        if chosen == "strong" and name == self.name:
            self._is_unsure = False
        return answer


def between(first: int, end: int | None) -> str:
    """The condition that a number is in a range.

    Example:
        >>> between(3, None), between(0, 7)
        ('number >= 3', 'number >= 0 and number < 7')
    """
    return f"{NUMBER} >= {first}" + ("" if end is None else f" and {NUMBER} < {end}")


def halved(first: int, numbers: Sequence[int]) -> int:
    """Where to cut a range that has more than were given; what was given has about a half on each side."""
    return max(first + 1, sorted(numbers)[len(numbers) // 2])

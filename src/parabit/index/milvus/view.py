"""The documents of a collection as one search sees them: what was fetched of them, by numbers of its own."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import CodesError
from parabit.index.filtering import Where
from parabit.index.found import Found
from parabit.index.milvus.collection import Collection as Entities
from parabit.index.milvus.entities import (
    CODE,
    NUMBER,
    RECORD,
    bytes_in,
    fields_of_text,
    id_in,
    joined,
    key_of,
    parts_of,
)
from parabit.index.milvus.finding import find
from parabit.index.milvus.near import Near
from parabit.index.milvus.place import Milvus
from parabit.index.milvus.where import condition_of
from parabit.index.reading import VECTORS, WORD, WORDS
from parabit.index.store import Id, Kind
from parabit.text.bags import row_offsets

_STORED_AS = {"codes": CODE, VECTORS: VECTORS, WORDS: WORDS}


class Fetched:
    """What was fetched of a collection. A row stands for one version of a document, from when it was first seen."""

    def __init__(
        self,
        entities: Entities,
        place: Milvus,
        bits: int,
        extra: Mapping[str, Kind],
        count: Callable[[], int],
        names: Callable[[bool], list[str]],  # of fields; anew where it says so
    ) -> None:
        self.bits = bits
        self._entities, self._place, self._extra, self._count, self._names = entities, place, extra, count, names
        self._next = 0  # the row of the next that is seen; none is given twice
        self.forget()

    @property
    def documents(self) -> int:
        """How many there were when it was last asked."""
        return self._count()

    @property
    def field_names(self) -> list[str]:
        """The names of fields that documents have, or had."""
        return self._names(False)

    def notes(self, backend: str) -> tuple[str, ...]:
        """What Milvus does not promise of a search."""
        notes = []
        if not self._is_exact(backend):
            share = f"{self._place.probes:,} of {self._place.lists:,}"
            notes.append(f"Milvus looks at {share} lists (BIN_IVF_FLAT), so near documents may be missing")
        if self._place.consistency != "strong":
            notes.append(f"with the consistency {self._place.consistency} the latest changes may be missing")
        return tuple(notes)

    def rows_of(self, ids: Sequence[Id]) -> NDArray[np.int64]:
        """The row of each id; -1 where there is none."""
        keys = [key_of(identity) for identity in ids]
        found = self._entities.read(list(dict.fromkeys(keys)), [NUMBER])
        rows = [self._row(key, found[key][NUMBER]) if key in found else -1 for key in keys]
        return np.array(rows, dtype=np.int64)

    def ids_of(self, rows: NDArray[np.int64]) -> list[Id]:
        """The ids in some rows."""
        return [id_in(self._keys[row]) for row in rows.tolist()]

    def fields_of(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """The fields in some rows; none of a document that was deleted or replaced meanwhile."""
        records = self._fetch([RECORD], rows)[RECORD]
        return [fields_of_text(records[row]) if row in records else {} for row in rows.tolist()]

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The codes in some rows, (rows, bytes); zeros of a document that was deleted or replaced meanwhile."""
        width = -(-self.bits // 8)
        read = self._fetch([CODE], rows)[CODE]
        written = b"".join(read.get(row, bytes(width)) for row in rows.tolist())
        return np.frombuffer(written, dtype=np.uint8).reshape(len(rows), width)

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.float16]:
        """The vectors in some rows, (rows, dim)."""
        width = self._extra[VECTORS].width or 0
        read = self._fetch([VECTORS], rows)[VECTORS]
        written = b"".join(bytes_in(read[row]) if row in read else bytes(2 * width) for row in rows.tolist())
        return np.frombuffer(written, dtype=np.float16).reshape(len(rows), width)

    def words(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The words of the documents in some rows, one document after the other, and where each begins."""
        read = self._fetch([WORDS], rows)[WORDS]
        written = [bytes_in(read.get(row, "")) for row in rows.tolist()]
        lengths = np.array([len(bag) // WORD.itemsize for bag in written], dtype=np.int64)
        return np.frombuffer(b"".join(written), dtype=WORD), row_offsets(lengths)

    def order(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of documents, which say when each came in."""
        return np.array([self._numbers[row] for row in rows.tolist()], dtype=np.int64)

    def gone(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows were deleted or replaced before they were read."""
        return np.array([row in self._gone for row in rows.tolist()], dtype=np.bool_)

    def forget(self) -> None:
        """Let go of all that was fetched; its rows stand for nothing any more."""
        self._keys: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._rows: dict[tuple[str, int], int] = {}
        self._read: dict[str, dict[int, Any]] = {name: {} for name in (CODE, RECORD, *self._extra)}
        self._gone: set[int] = set()  # rows that were deleted or replaced before they were read

    def find(
        self,
        codes: NDArray[np.uint8],
        most: int | None,
        radius: int | None,
        where: Where | None = None,
        backend: str = "auto",
        reads: Collection[str] = (),
    ) -> Found:
        """The nearest documents of each code. What will be read of them is read at once."""
        exact = self._is_exact(backend)
        allowed = condition_of(where, self._known_names(where)) if where else ""
        if allowed is None or not len(codes):
            return Found.nothing(len(codes))

        def ask(
            codes: NDArray[np.uint8], limit: int, lowest: int, highest: int, condition: str = "", again: bool = True
        ) -> list[Near]:
            both = " and ".join(filter(None, [condition, allowed]))
            # The server has caught up with what was written when it has answered once.
            level = "bounded" if again and self._place.consistency == "strong" else None
            return self._entities.near(codes, limit, lowest, highest, both, exact, level)

        farthest = self.bits if radius is None else min(radius, self.bits)
        near = find(ask, codes, most, farthest)
        counts = np.array([len(some.keys) for some in near], dtype=np.int64)
        rows = [
            self._row(key, number)
            for some in near
            for key, number in zip(some.keys, some.numbers.tolist(), strict=True)
        ]
        distances = np.concatenate([some.distances for some in near])
        found = Found(row_offsets(counts), np.array(rows, dtype=np.int64), distances)
        if reads:
            self._fetch([_STORED_AS[name] for name in reads], found.rows)
            found = found.keep(~self.gone(found.rows))
        return found

    def sample(self, most: int, seed: int = 0) -> NDArray[np.int64]:
        """The rows of all documents; of more than `most` one in so many, as they came in."""
        step = -(-max(1, self.documents) // most)
        condition = f"{NUMBER} % {step} == {seed % step}" if step > 1 else ""
        return self._all(self._entities.walk(condition))

    def blocks(self, size: int) -> Iterator[NDArray[np.int64]]:
        """The rows of all documents, in the order they came in, so many at a time."""
        for found in self._entities.walk():
            for start in range(0, len(found), size):
                yield self._all([found[start : start + size]])

    def counts(self, field: str, sampled: Mapping[str, int], share: float) -> dict[str, int]:
        """About how many documents have each value: a look at all of them, for each, would take minutes."""
        return {value: round(count / share) for value, count in sampled.items()}

    def _all(self, blocks: Any) -> NDArray[np.int64]:
        return np.array([self._row(key, number) for block in blocks for number, key in block], dtype=np.int64)

    def _known_names(self, where: Where) -> Callable[[], list[str]]:
        """The names of fields, asked for anew where one is wanted that was not known."""
        anew = any(field != "id" and field not in self._names(False) for field in where)
        return lambda: self._names(anew)

    def _is_exact(self, backend: str) -> bool:
        if backend == "flat" or (backend == "auto" and self._place.index == "BIN_FLAT"):
            return True
        if self._place.index == "BIN_IVF_FLAT" and backend in ("auto", "lists"):
            return False
        raise CodesError(
            f"the index is on Milvus, which has no back end {backend}",
            hint="take auto, or flat to look at all codes" + ("" if self._place.index == "BIN_FLAT" else ", or lists"),
        )

    def _row(self, key: str, number: int) -> int:
        row = self._rows.setdefault((key, number), self._next)
        if row == self._next:
            self._next += 1
            self._keys[row], self._numbers[row] = key, number
        return row

    def _fetch(self, names: Sequence[str], rows: NDArray[np.int64]) -> dict[str, dict[int, Any]]:
        """Read what was not read yet."""
        lacking = sorted({row for name in names for row in set(rows.tolist()) - self._read[name].keys()} - self._gone)
        # At once, and what is not there, or in another version, for sure.
        for level in ("eventually", "strong"):
            if not lacking:
                break
            found = self._entities.read([self._keys[row] for row in lacking], [NUMBER, *names], level)
            here = [row for row in lacking if found.get(self._keys[row], {}).get(NUMBER) == self._numbers[row]]
            self._take(names, {row: found[self._keys[row]] for row in here})
            lacking = [row for row in lacking if any(row not in self._read[name] for name in names)]
        self._gone.update(lacking)
        return self._read

    def _take(self, names: Sequence[str], found: Mapping[int, Mapping[str, Any]]) -> None:
        """Keep what was read, its parts joined to it; what lacks a part is not kept."""
        texts = [name for name in names if name != CODE]
        wanted = {
            (row, name): parts_of(name, self._numbers[row], entity[name])
            for row, entity in found.items()
            for name in texts
        }
        parts = self._entities.read_parts([part for keys in wanted.values() for part in keys])
        for (row, name), keys in wanted.items():
            if all(part in parts for part in keys):
                self._read[name][row] = joined(found[row][name], [parts[part] for part in keys])
        if CODE in names:
            self._read[CODE] |= {row: entity[CODE][0] for row, entity in found.items()}

"""The index as the page sees it: requests of several people answered together, in the words of the API."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from logging import getLogger
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit import __version__
from parabit.budget import LONGEST_QUERY, check_conditions, check_time
from parabit.characters import without_halves
from parabit.errors import CodesError, ParabitError, QueryError, TooSlowError
from parabit.explore import Map, field_types, kept_map, newest, typical_phrases
from parabit.explore.overview import Field
from parabit.index import Hit, Hits, Index, Piece, Stored, marked, matching
from parabit.index.documents import stored_in
from parabit.plain_json import as_json
from parabit.text import copies_among
from parabit.untrusted import LARGEST_COUNT
from parabit.web.answers import ASK_AGAIN, AnswerCache, RefusalError
from parabit.web.map import Drawing
from parabit.web.schemas import Query
from parabit.web.worker import Work, Worker

_EVERY = 1.0  # seconds between two looks at what others have written
_LEAST = 4  # documents on a map
_WHOLE = 200_000  # characters of a document that are shown
# What a document counts as among requests that are answered together, of 100,000: each is read
# alone, and searches would wait for many of them.
DOCUMENT_SIZE = 12_500
_COMPARED = 20_000  # characters by which near-copies are recognised
_REMEMBERED_BYTES = 64 << 20  # of answers: about 4,000 with ten hits each
_LARGEST_REMEMBERED = 1 << 15  # bytes of one answer
_READ_TOGETHER = 32  # documents of the map whose texts are in memory at the same time
_log = getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """How a server behaves."""

    title: str | None = None  # of the page; the folder's name by default
    token: str | None = None  # what a request must carry; None lets everybody in
    # Bound to the loopback: requests must name it, so that no other site can send any.
    local: bool = True
    allowed_hosts: Sequence[str] = ()  # other names by which the server is reached
    most_hits: int = 100  # per search
    most_characters: int = LONGEST_QUERY  # per query
    most_bytes: int = 1 << 20  # per request
    most_waiting: int = 1000  # requests; more are asked to come back
    seconds: float = 10.0  # that a request may take; then the work for it ends, too
    # Queries that the page offers; by default phrases of the documents.
    examples: Sequence[str] = ()
    map: bool = True  # whether one is drawn


class Service:
    """An index that is open for reading, its map, and the worker that searches while it is `running`.

    `search` and `document` are for its worker alone; the others can be called from any thread.
    """

    worker: Worker  # while it runs

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.index = Index.open(folder)
        if self.index.knows_texts:
            self.index.search(["first"], k=1)  # so that nobody waits for the model
        self._folder, self._settings = folder.resolve(), settings
        self.documents = len(self.index)
        self._looked = time.monotonic()  # when they were last counted
        self.failure = ""  # why the index could not be read again
        self._known = dict[str, Any]()  # about all documents
        # One thread for what is worked out from all documents: whoever asks meanwhile waits for it.
        self._overviews = ThreadPoolExecutor(1, thread_name_prefix="parabit-overviews")
        self._kept_map = kept_map(self.index) if settings.map else None
        self._drawing: Drawing | None = None
        self._answers_given = AnswerCache(_REMEMBERED_BYTES)

    @asynccontextmanager
    async def running(self, _: object) -> AsyncIterator[None]:
        """Answer requests, and draw the map if there is none."""
        self.worker = Worker(
            self._settings.most_waiting,
            self._is_due,
            self._refresh,
            seconds=self._settings.seconds,
        )
        if self._settings.map and self.map is None and self.documents >= _LEAST:
            self._drawing = Drawing(self._folder)
        try:
            yield
        finally:
            if self._drawing is not None:
                self._drawing.stop()
            self.worker.close()
            self._overviews.shutdown(cancel_futures=True)
            self.index.close()

    @property
    def is_well(self) -> bool:
        """Whether requests can be answered, from an index as it is now."""
        return not self.failure and self.worker.is_alive

    async def ask(self, kind: Hashable, work: Work, request: Any, size: int = 0) -> bytes:
        """The answer of the worker, within the time that is allowed."""
        async with self._in_time():
            answer: bytes = await self.worker.ask(kind, work, request, size)
            return answer

    async def overview(self, work_out: Callable[[], Any]) -> Any:
        """What a method works out from all documents.

        If that takes longer than a request may, it goes on: only one such method runs at a time,
        and the next request finds its result.
        """
        async with self._in_time():
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._overviews, self.once, work_out)

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        """Limit the block to the time of a request, and turn its errors into those of the API."""
        try:
            async with asyncio.timeout(self._settings.seconds):
                yield
        except asyncio.QueueFull:
            raise RefusalError(503, "too many requests are waiting", ASK_AGAIN, retry=1) from None
        except (TimeoutError, TooSlowError):
            error = f"no answer within {self._settings.seconds:g} seconds"
            raise RefusalError(503, error, ASK_AGAIN, retry=2) from None
        except MemoryError:
            raise RefusalError(
                503, "the server is out of memory", "ask for less", retry=5
            ) from None
        except (CodesError, QueryError) as problem:
            raise RefusalError(400, problem.problem, problem.hint) from problem
        except ParabitError as problem:  # what may name files is for the log alone
            _log.error("the index cannot be read: %s", problem)
            raise RefusalError(
                503, "the index cannot be read", "the server's log says why", retry=5
            ) from problem

    async def answer(self, query: Query) -> bytes:
        """The answer to a search, from memory if it was asked before and the index has not changed."""
        answers_given = self._answers_given
        kind = query.kind
        text = query.query or ""
        # A digest, as the request itself may be a megabyte.
        digest = blake2b(repr((kind, query.like, self.map is None)).encode(), digest_size=16)
        digest.update(text.encode("utf-8", "surrogatepass"))
        key = digest.digest()
        answer = None if self._is_due() else answers_given.get(key)
        if answer is None:
            answer = await self.ask(kind, self.search, query, len(text))
            if len(answer) <= _LARGEST_REMEMBERED:
                answers_given.put(key, answer)
        return answer

    @property
    def map(self) -> Map | None:
        """The map, if it was kept or has been drawn."""
        return self._kept_map if self._drawing is None else self._drawing.map

    def _is_due(self) -> bool:
        return time.monotonic() - self._looked >= _EVERY

    def _refresh(self) -> None:
        """See what others have written; an index that cannot be read any more is searched as it was."""
        self._looked = time.monotonic()
        try:
            if self.index.refresh():
                self._known = {}
                self._answers_given = AnswerCache(_REMEMBERED_BYTES)
            self.documents = len(self.index)
            self.failure = ""
        except Exception as problem:  # whatever it is, the documents that are open can be searched
            if not self.failure:
                expected = isinstance(problem, ParabitError | OSError)
                _log.warning("the index cannot be read again: %s", problem, exc_info=not expected)
            self.failure = "the index cannot be read again"

    def about(self) -> dict[str, Any]:
        index, settings, name = self.index, self._settings, self._folder.name
        return {
            "name": name,
            "title": settings.title or name.removesuffix(".index"),
            "version": __version__,
            "documents": self.documents,
            "bits": index.bits,
            "texts": index.knows_texts,
            "text_kept": index.keeps_text,
            "words": index.has_words,
            "ranks": list(index.ranks),
            "best_rank": index.best_rank if index.knows_texts else "hamming",
            "limits": {"k": settings.most_hits, "radius": index.bits}
            | {"characters": settings.most_characters, "seconds": settings.seconds},
        }

    def once(self, work_out: Callable[[], Any]) -> Any:
        """What a method works out from all documents, remembered until they change.

        Only the thread of `_overviews` calls this.
        """
        known = self._known  # a refresh puts another one in its place
        name = work_out.__name__
        if name not in known:
            known[name] = work_out()
        return known[name]

    def fields(self) -> list[Field]:
        return field_types(self.index.snapshot())

    def start(self) -> bytes:
        """Queries that have answers here, and the newest documents, as JSON."""
        snapshot = self.index.snapshot()
        dated = next((field.name for field in self.once(self.fields) if field.kind == "date"), "")
        examples = list(self._settings.examples)
        if not examples and self._has_texts:
            examples = typical_phrases(snapshot)
        recent = [_listed(document) for document in newest(snapshot, 6, dated or None)]
        return as_json({"examples": examples, "recent": recent, "recent_by": dated})

    def chart_state(self) -> dict[str, Any]:
        """Why there is no map to show."""
        if self._drawing is not None and not self._drawing.failure:
            return {"state": "drawing", "share": self._drawing.share, "points": 0}
        if self._drawing is not None:
            why = self._drawing.failure
        elif self._settings.map:
            why = f"a map needs {_LEAST} documents"
        else:
            why = "the server was started without a map"
        return {"state": "none", "why": why}

    def chart(self) -> bytes:
        """The map as JSON, compressed; there must be one."""
        drawn = self.map
        assert drawn is not None
        snapshot = self.index.snapshot()
        rows = snapshot.rows_of(drawn.ids)
        on_map = np.flatnonzero(rows >= 0)  # of the points, those whose documents are still there
        choices = [field for field in self.once(self.fields) if field.kind == "choice"]
        field = min(choices, key=lambda choice: choice.name != "labels", default=None)
        names = [] if field is None else [value for value, _ in field.values]
        numbers = {name: number for number, name in enumerate(names)}
        ids = []
        titles = []
        labels = []
        for start in range(0, len(on_map), _READ_TOGETHER):
            block = rows[on_map[start : start + _READ_TOGETHER]]
            for document in stored_in(snapshot, block):
                ids.append(_plain(document.id))
                titles.append(document.title)
                if field is not None:
                    labels.append(_first_number(document.fields.get(field.name), numbers))
        content = {
            "state": "ready",
            "documents": snapshot.documents,
            "points": len(ids),
            "x": drawn.points[on_map, 0].tolist(),
            "y": drawn.points[on_map, 1].tolist(),
            "field": "" if field is None else field.name,
            "label": labels,
            "labels": names,
            "ids": ids,
            "titles": titles,
        }
        return gzip.compress(as_json(content), compresslevel=5, mtime=0)

    def check(self, query: Query) -> None:
        """Raise a RefusalError for a search that makes no sense, is too large, or not possible."""
        settings, text = self._settings, query.query
        if (text is None) == (query.like is None):
            raise RefusalError(400, "a search has either `query` or `like`", "give one of the two")
        if text is not None and not text.strip():
            raise RefusalError(400, "the query is empty", "give a text")
        if text is not None and len(text) > settings.most_characters:
            limit = f"{settings.most_characters:,}"
            raise RefusalError(
                413, f"the query has more than {limit} characters", "give the part that matters"
            )
        if query.k > settings.most_hits:
            raise RefusalError(
                400, f"k is {query.k}", f"at most {settings.most_hits} hits are given"
            )
        if query.radius is not None and query.radius > self.index.bits:
            raise RefusalError(
                400, f"the radius is {query.radius}", f"codes have {self.index.bits} bits"
            )
        if text is not None and not self.index.knows_texts:
            raise RefusalError(
                400, "this index was made of codes and knows no texts", "search with `like`"
            )
        ranks = self.index.ranks if text is not None or self._has_texts else ("hamming",)
        if query.rank is not None and query.rank not in ranks:
            raise RefusalError(
                400,
                f"this index cannot rank by {query.rank[:100]!r}",
                f"it can by {', '.join(ranks)}",
            )
        try:
            check_conditions(query.where or {})
        except QueryError as problem:
            raise RefusalError(413, problem.problem, problem.hint) from problem

    # In the worker's threads

    def search(self, queries: Sequence[Query]) -> list[bytes | RefusalError]:
        """The answers to searches of one kind, as JSON."""
        start = time.perf_counter()
        first_query = queries[0]  # all of them have its options
        options: dict[str, Any] = {
            name: getattr(first_query, name) for name in ("k", "radius", "rank", "where")
        }
        if first_query.query is not None:
            # JSON may carry halves of surrogate pairs, which are no characters.
            texts = [without_halves(query.query or "") for query in queries]
            hits = self.index.search(texts, **options)
            return [*self._answers(hits, first_query, time.perf_counter() - start)]
        ids = [self._id_of(query.like) for query in queries]
        is_stored = self.index.has(ids).tolist()
        stored_ids = [identity for identity, stored in zip(ids, is_stored, strict=True) if stored]
        hits = self.index.like(stored_ids, **options)
        answers_of_stored = self._answers(hits, first_query, time.perf_counter() - start)
        answers: list[bytes | RefusalError] = []
        for query, stored in zip(queries, is_stored, strict=True):
            answers.append(next(answers_of_stored) if stored else _missing(query.like))
        return answers

    def document(self, written: str, query: str | None, like: str | None) -> bytes | RefusalError:
        """A whole document, as JSON, with the words of a text or another document marked in it."""
        [identity] = self.index.ids_of([written])
        if not self.index.has([identity])[0]:
            return _missing(written)
        [stored] = self.index.stored([identity])
        text = stored.text[:_WHOLE]
        pieces = [Piece(text, mark=False)] if text else []
        marks_source = self._source_of_marks(query, like) if text else ""
        if marks_source:
            words = matching(self.index, marks_source, text)
            pieces = marked(self.index.model.vocabulary.tokenizer, text, words)
        [position] = self._positions([stored.code])
        details = {
            "text": _pieces(pieces),
            "cut": len(stored.text) > _WHOLE,
            "code": stored.code.tobytes().hex(),
            "position": position,
        }
        return as_json(_listed(stored) | details)

    @property
    def _has_texts(self) -> bool:
        return self.index.knows_texts and self.index.keeps_text

    def _answers(self, hits: Hits, query: Query, seconds: float) -> Iterator[bytes]:
        # Of the texts only what an answer has of them is kept until all are read, as each may have
        # megabytes.
        wants_copies = query.collapse and self.index.keeps_text
        listed_hits: list[list[dict[str, Any]]] = []
        compared_texts: list[list[str]] = []
        codes: list[NDArray[np.uint8]] = []
        for number in range(len(hits)):
            listed_hits.append([])
            compared_texts.append([])
            codes.append(hits.codes[number])
            for hit in hits.each(number):
                check_time()
                listed_hits[number].append(self._hit(hit, query.why))
                codes.append(hit.code)
                if wants_copies:
                    compared_texts[number].append(hit.text[:_COMPARED])
        positions = iter(self._positions(codes, query.positions))
        for number, (listed, words) in enumerate(zip(listed_hits, hits.word_queries, strict=True)):
            check_time()
            query_position = next(positions)
            for listed_hit in listed:
                listed_hit["position"] = next(positions)
            if wants_copies:
                listed = _collapsed(listed, compared_texts[number])
            is_encoded = hits.encoded[number]
            answer = {
                "known": bool(hits.known[number]),
                "rank": hits.rank,
                "documents": self.documents,
                "seconds": round(seconds, 6),
                "code": hits.codes[number].tobytes().hex() if is_encoded else None,
                "words": list(words.words),
                "unknown": words.unknown,
                "corrected": words.corrected,
                "position": query_position if is_encoded else None,
                "notes": hits.notes[number],
                "hits": listed,
            }
            yield as_json(answer)

    def _hit(self, hit: Hit, why: bool) -> dict[str, Any]:
        return _listed(hit) | {
            "distance": hit.distance,
            "score": round(hit.score, 6),
            "code": hit.code.tobytes().hex(),
            "snippet": _pieces(hit.snippet) if self.index.keeps_text else [],
            "position": None,
            "why": {"words": hit.why.words, "code": hit.why.code} if why else None,
            "copies": [],
        }

    def _positions(self, codes: Sequence[NDArray[np.uint8]], wanted: bool = True) -> list[Any]:
        """Where codes lie on the map. Hundreds are placed in the time of a few, so this is asked for all at once."""
        if self.map is None or not wanted or not codes:
            return [None] * len(codes)
        return list(self.map.place(np.array(codes)).tolist())

    def _source_of_marks(self, query: str | None, like: str | None) -> str:
        """The text whose words are marked in a document."""
        if query is not None or like is None or not self._has_texts:
            return query or "" if self.index.knows_texts else ""
        ids = [self._id_of(like)]
        return self.index.stored(ids)[0].text if self.index.has(ids)[0] else ""

    def _id_of(self, like: str | int | None) -> str | int:
        """The id that a request names: a number is a number, a string the string, or else the number it says."""
        return like if isinstance(like, int) else self.index.ids_of([str(like)])[0]


def _collapsed(listed: list[dict[str, Any]], texts: Sequence[str]) -> list[dict[str, Any]]:
    """Hits without near-copies of earlier ones, which go into the `copies` of these."""
    originals = copies_among(texts)  # of each text, the number of the first that is like it
    collapsed = []
    for number, (listed_hit, original) in enumerate(zip(listed, originals, strict=True)):
        if original == number:
            collapsed.append(listed_hit)
        else:
            listed[original]["copies"].append(listed_hit)
    return collapsed


def _listed(stored: Stored) -> dict[str, Any]:
    return {"id": _plain(stored.id), "title": stored.title, "fields": stored.fields}


def _pieces(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    return [
        {"text": piece.text, "mark": True} if piece.mark else {"text": piece.text}
        for piece in pieces
    ]


def _plain(identity: str | int) -> str | int:
    """An id as every reader of JSON has it exactly."""
    if isinstance(identity, int) and abs(identity) > LARGEST_COUNT:
        return str(identity)
    return identity


def _first_number(values: object, numbers: Mapping[str, int]) -> int:
    """The number of the first value that has one, or -1."""
    for value in values if isinstance(values, list) else [values]:
        if isinstance(value, str) and value in numbers:
            return numbers[value]
    return -1


def _missing(identity: object) -> RefusalError:
    written = without_halves(str(identity)[:100])
    return RefusalError(
        404, f"there is no document {written!r}", "it may have been deleted meanwhile"
    )

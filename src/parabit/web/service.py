"""The index as the page sees it: questions of several people answered together, in the words of the API."""

import gzip
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from logging import getLogger
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit import __version__
from parabit.errors import CodesError, ParabitError, QueryError
from parabit.index import Hit, Hits, Index, Map, Piece, labels_in, marked
from parabit.web.refusal import RefusalError
from parabit.web.settings import Settings

_LABELS = 500  # listed
_WHOLE = 200_000  # characters of a document that are shown
_SAFE = 1 << 53  # whole numbers up to here are exact in every reader of JSON
_log = getLogger(__name__)


class Asked(NamedTuple):
    """A question as it is put to the index."""

    query: str | None
    like: str | int | None
    k: int
    radius: int | None
    rank: str | None
    where: str  # the conditions as JSON, in which true and 1 are not the same

    @property
    def kind(self) -> tuple[Any, ...]:
        """What questions that are answered together have in common."""
        return ("search", self.query is None, *self[2:])


class Wanted(NamedTuple):
    """A document that somebody wants to see, with the words marked of a text or of another document."""

    id: str
    query: str | None
    like: str | None


class Collection:
    """An index that is open for reading, and the map of it.

    Not for several threads at a time: the worker's thread is the only one that comes here. `documents` and `failure`,
    which ask nobody, are for all.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._index = Index.open(folder)
        if self._index.knows_texts:
            self._index.search(["first"], k=1, rank=self._index.best_rank)  # so that nobody waits for the model
        self._settings = settings
        self.name = folder.resolve().name
        self.documents = len(self._index)  # when they were last counted
        self.failure = ""  # why the index could not be read anew
        self._labels: dict[str, Any] | None = None
        self._places: dict[Any, tuple[int, int]] = {}
        self._chart: bytes | None = None
        self._map: Map | None = None
        if settings.map:
            self.use_map(self._index.map())

    @property
    def index(self) -> Index:
        """The index itself."""
        return self._index

    @property
    def has_map(self) -> bool:
        """Whether there is a map to show."""
        return self._map is not None

    def close(self) -> None:
        """Let go of the files."""
        self._index.close()

    def refresh(self) -> None:
        """See what others have written since; an index that cannot be read any more is asked as it was."""
        try:
            if self._index.refresh():
                self._labels = self._chart = None
            self.count()
            self.failure = ""
        except (ParabitError, OSError) as problem:
            if not self.failure:
                _log.warning("the index cannot be read anew: %s", problem)
            self.failure = "the index cannot be read anew"

    def count(self) -> int:
        """How many documents there are; on a server this may take a request."""
        self.documents = len(self._index)
        return self.documents

    def use_map(self, drawn: Map | None) -> None:
        """Show this map from now on."""
        self._map, self._chart = drawn, None
        points = [] if drawn is None else zip(drawn.ids, drawn.points.tolist(), strict=True)
        self._places = {identity: (x, y) for identity, (x, y) in points}

    def about(self) -> dict[str, Any]:
        """What the index is and what it can do."""
        index, settings = self._index, self._settings
        return {
            "name": self.name,
            "version": __version__,
            "documents": len(index),
            "bits": index.bits,
            "texts": index.knows_texts,
            "text_kept": index.keeps_text,
            "ranks": list(index.ranks),
            "best_rank": index.best_rank if index.knows_texts else "hamming",
            "fields": index.fields,
            "examples": list(settings.examples),
            "limits": {
                "k": settings.most_hits,
                "radius": index.bits,
                "characters": settings.most_characters,
                "seconds": settings.seconds,
            },
        }

    def labels(self) -> dict[str, Any]:
        """The most frequent labels."""
        if self._labels is None:
            counts, complete = self._index.labels(_LABELS)
            listed = [{"label": label, "documents": count} for label, count in counts.items()]
            self._labels = {"labels": listed, "complete": complete}
        return self._labels

    def search(self, questions: Sequence[Asked]) -> list[dict[str, Any] | RefusalError]:
        """The answers to questions of one kind."""
        first = questions[0]
        self._check(first)
        start = time.perf_counter()
        options: dict[str, Any] = {"where": json.loads(first.where)}
        if first.query is not None:
            rank = first.rank or self._index.best_rank
            texts = [_clean(question.query or "") for question in questions]
            hits = self._index.search(texts, first.k, first.radius, rank, **options)
            return self._answers(hits, rank, start)
        answers: list[dict[str, Any] | RefusalError] = []
        ids = [self._id_of(question.like) for question in questions]
        there = self._index.has(ids)
        found: Iterator[dict[str, Any] | RefusalError] = iter(())
        if there.any():
            rank = first.rank or (self._index.best_rank if self._text_is_there else "hamming")
            known = [identity for identity, is_there in zip(ids, there.tolist(), strict=True) if is_there]
            hits = self._index.like(known, first.k, first.radius, rank, **options)
            found = iter(self._answers(hits, rank, start))
        for question, is_there in zip(questions, there.tolist(), strict=True):
            answers.append(next(found) if is_there else _missing(question.like))
        return answers

    def document(self, wanted: Sequence[Wanted]) -> list[dict[str, Any] | RefusalError]:
        """Whole documents."""
        return [self._document(one) for one in wanted]

    def chart(self) -> bytes | None:
        """The map as JSON, compressed; None where there is none."""
        if self._map is None:
            return None
        if self._chart is None:
            there = np.flatnonzero(self._index.has(self._map.ids))
            ids = [self._map.ids[place] for place in there.tolist()]
            names = [label["label"] for label in self.labels()["labels"]]
            places = {name: place for place, name in enumerate(names)}
            label = [
                next((places[name] for name in labels_in(stored.fields.get("labels")) if name in places), -1)
                for stored in self._index.stored(ids)
            ]
            content = {
                "state": "ready",
                "documents": len(self._index),
                "points": len(ids),
                "x": self._map.points[there, 0].tolist(),
                "y": self._map.points[there, 1].tolist(),
                "label": label,
                "labels": names,
                "ids": [_plain(identity) for identity in ids],
            }
            self._chart = gzip.compress(json.dumps(content, separators=(",", ":")).encode(), compresslevel=5, mtime=0)
        return self._chart

    @property
    def _text_is_there(self) -> bool:
        return self._index.knows_texts and self._index.keeps_text

    def _check(self, question: Asked) -> None:
        """Refuse what this index cannot do."""
        index = self._index
        by_text = question.query is not None
        if by_text and not index.knows_texts:
            raise RefusalError(
                400, "this index was made of codes and knows no texts", "search with `like`, the id of one"
            )
        ranks = index.ranks if by_text or self._text_is_there else ("hamming",)
        if question.rank is not None and question.rank not in ranks:
            raise RefusalError(
                400, f"this index cannot rank by {question.rank[:100]!r}", f"it can by {', '.join(ranks)}"
            )

    def _answers(self, hits: Hits, rank: str, start: float) -> list[dict[str, Any] | RefusalError]:
        seconds = round(time.perf_counter() - start, 6)
        found = list(hits)
        codes = [hits.codes_of(query) for query in range(len(hits))]
        positions = self._positions(hits, codes)
        answers: list[dict[str, Any] | RefusalError] = []
        for query, rows in enumerate(found):
            listed = [
                _as_json(hit, code, position, self._index.keeps_text)
                for hit, code, position in zip(rows, codes[query], positions[query][1:], strict=True)
            ]
            answers.append(
                {
                    "known": bool(hits.known[query]),
                    "rank": rank,
                    "documents": len(self._index),
                    "seconds": seconds,
                    "code": hits.codes[query].tobytes().hex(),
                    "words": hits.words(query),
                    "unknown": hits.unknown(query),
                    "corrected": hits.corrected(query),
                    "position": positions[query][0] if hits.known[query] else None,
                    "notes": list(hits.notes[query]),
                    "hits": listed,
                }
            )
        return answers

    def _id_of(self, like: str | int | None) -> str | int:
        """The id that a request names: a number is a number, a string the string, or else the number it says."""
        return like if isinstance(like, int) else self._index.ids_of([str(like)])[0]

    def _positions(self, hits: Hits, codes: Sequence[NDArray[np.uint8]]) -> list[list[tuple[int, int] | None]]:
        """Where each query, and after it each of its hits, lies on the map."""
        positions: list[list[tuple[int, int] | None]] = [
            [None, *(self._places.get(identity) for identity in ids)] for ids in hits.ids
        ]
        if self._map is None:
            return positions
        # Those that are not among the map's points, all at once.
        asked = [
            (query, place, hits.codes[query] if place == 0 else codes[query][place - 1])
            for query, row in enumerate(positions)
            for place, position in enumerate(row)
            if position is None
        ]
        placed = self._map.place(np.stack([code for _, _, code in asked])).tolist()
        for (query, place, _), (x, y) in zip(asked, placed, strict=True):
            positions[query][place] = (x, y)
        return positions

    def _document(self, wanted: Wanted) -> dict[str, Any] | RefusalError:
        index = self._index
        [identity] = index.ids_of([wanted.id])
        if not index.has([identity])[0]:
            return _missing(wanted.id)
        [stored] = index.stored([identity])
        text = stored.text[:_WHOLE]
        pieces = [Piece(text, mark=False)] if text else []
        if text and (asked := self._text_of(wanted)):
            pieces = marked(index.model.vocabulary.tokenizer, text, index.matching(asked, text))
        fields = _finite(stored.fields)
        position = self._places.get(stored.id)
        if position is None and self._map is not None:
            x, y = self._map.place(stored.code[None])[0].tolist()
            position = (x, y)
        return {
            "id": _plain(stored.id),
            "text": [_piece(piece) for piece in pieces],
            "cut": len(stored.text) > _WHOLE,
            "labels": labels_in(fields.pop("labels", None)),
            "fields": fields,
            "code": stored.code.tobytes().hex(),
            "position": position,
        }

    def _text_of(self, wanted: Wanted) -> str:
        """What the words to mark in a document are taken from."""
        if wanted.query is not None or wanted.like is None or not self._text_is_there:
            return _clean(wanted.query or "") if self._index.knows_texts else ""
        ids = self._index.ids_of([wanted.like])
        return self._index.stored(ids)[0].text if self._index.has(ids)[0] else ""


def refusal_of(problem: ParabitError) -> RefusalError:
    """What a failure of the library is told as; what may name files is for the log alone."""
    if isinstance(problem, CodesError | QueryError):
        return RefusalError(400, problem.problem, problem.hint)
    _log.error("the index cannot be read: %s", problem)
    return RefusalError(503, "the index cannot be read", "the server's log says why", retry=5)


def _as_json(hit: Hit, code: NDArray[np.uint8], position: tuple[int, int] | None, text_is_kept: bool) -> dict[str, Any]:
    fields = _finite(hit.fields)
    why = hit.why
    return {
        "id": _plain(hit.id),
        "title": hit.title,
        "distance": hit.distance,
        "score": round(hit.score, 6),
        "why": {"words": why.words, "code": round(why.code, 4)},
        "labels": labels_in(fields.pop("labels", None)),
        "fields": fields,
        "code": code.tobytes().hex(),
        "passage": [_piece(piece) for piece in hit.snippet] if text_is_kept else [],
        "position": position,
    }


def _finite(value: Any) -> Any:
    """A value as JSON has it: NaN and infinity, which JSON has not, become null."""
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _piece(piece: Piece) -> dict[str, Any]:
    return {"text": piece.text, "mark": True} if piece.mark else {"text": piece.text}


def _plain(identity: str | int) -> str | int:
    return identity if isinstance(identity, str) or abs(identity) <= _SAFE else str(identity)


def _missing(identity: object) -> RefusalError:
    return RefusalError(404, f"there is no document {str(identity)[:100]!r}", "it may have been deleted meanwhile")


def _clean(text: str) -> str:
    """A text without halves of surrogate pairs, which JSON may carry and which are no characters."""
    return text.encode("utf-8", "replace").decode()

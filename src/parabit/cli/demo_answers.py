"""What a demo's index answers to questions."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from parabit.index import Hit, Index

_HITS = 5
_TEXT = 300  # characters of a hit that are told


class Answer(NamedTuple):
    """A question with the documents that fit it."""

    query: str
    known: bool  # whether the model knows a word of it
    hits: list[Hit]
    rank: str  # what they are ordered by
    seconds: float  # of all questions together

    def as_json(self) -> dict[str, Any]:
        """The same for JSON, with the start of each text."""
        hits = [
            {
                "id": hit.id,
                "distance": hit.distance,
                "score": round(hit.score, 6),
                "labels": hit.fields.get("labels") or [],
                "text": hit.text[:_TEXT],
            }
            for hit in self.hits
        ]
        return {"query": self.query, "known": self.known, "rank": self.rank, "hits": hits}


def answers(folder: Path, questions: Sequence[Mapping[str, str]]) -> list[Answer]:
    """Ask an index all questions; a document that a question was taken from is not among its hits."""
    if not questions:
        return []
    start = time.perf_counter()
    with Index.open(folder) as index:
        rank = index.best_rank
        # Bytes that are no UTF-8 come from the shell as halves of surrogate pairs.
        queries = [
            question["query"].encode("utf-8", "surrogateescape").decode("utf-8", "replace") for question in questions
        ]
        found = index.search(queries, _HITS + 1, rank=rank)
        told = []
        for number, (query, question) in enumerate(zip(queries, questions, strict=True)):
            hits = [hit for hit in found[number] if hit.id != question.get("from")][:_HITS]
            told.append((query, bool(found.known[number]), hits))
    seconds = time.perf_counter() - start
    return [Answer(*answer, rank, seconds) for answer in told]

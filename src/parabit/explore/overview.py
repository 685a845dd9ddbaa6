"""What a collection has: its fields with their types and values, its newest documents, and phrases typical of it."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from parabit.budget import check_time
from parabit.codes import unpack
from parabit.corpus import number_of
from parabit.index.documents import Stored, stored_in
from parabit.index.store import Snapshot
from parabit.index.word_index import searchable
from parabit.text import english_stop_words

_LOOKED_AT = 5_000  # documents that are read to learn what a large collection has
_READ_TOGETHER = 32  # of these; only what is needed of them is kept
# Characters of all texts of these documents: of 5,000 pages of 10,000. Of longer documents fewer
# are read.
_MOST_CHARACTERS = 50_000_000
# Fields that are listed: documents with more have names that are values, and no page shows them
# all.
_MOST_FIELDS = 200
_LONGEST_VALUE = 200  # characters of a value that is offered as a choice
_CHOICES = 200  # different values that a field of strings may have to be offered as choices
_LISTED = 500  # values that are listed, the most frequent first
# Characters of a text in which phrases are looked for: what it is about is said first.
_BEGINNING = 200
_PARTS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|\S|\n")  # words, and what stands between them
_FIRST_SECOND = datetime.min.replace(tzinfo=UTC).timestamp()
_LAST_SECOND = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()
_COMMON = 0.02  # the share of documents above which a phrase belongs to the form of the texts, not to what they say


@dataclass(frozen=True)
class Field:
    """A field of the documents: what its values are, and which there are."""

    name: str
    # A choice is of few strings, or lists of them.
    kind: Literal["choice", "string", "number", "date", "boolean"]
    # Of choices and booleans, with the number of documents, the most frequent first.
    values: list[tuple[Any, int]]
    complete: bool  # whether all values are surely listed; of a large collection a sample is read
    least: float | str | None = None  # of numbers and dates
    most: float | str | None = None


def field_types(snapshot: Snapshot) -> list[Field]:
    """The fields of a collection, the first 200.

    Kinds and values come from a sample of a large collection, counts and ranges from all documents.
    Values of more than 200 characters are no choices.
    """
    names = [name for name in snapshot.field_names if name != "text"][:_MOST_FIELDS]
    if not names:
        return []
    documents = [
        {name: value for name, value in fields.items() if name != "text"}
        for fields in _read(snapshot, snapshot.sample(_LOOKED_AT))
    ]
    is_whole = len(documents) == snapshot.documents
    fields = []
    for name in names:
        check_time()
        values = [document[name] for document in documents if document.get(name) is not None]
        field = _field(snapshot, name, values, is_whole)
        if field is not None:
            fields.append(field)
    return fields


def _read(snapshot: Snapshot, rows: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """The fields of documents one after the other, until their texts have 50 million characters."""
    characters_left = _MOST_CHARACTERS
    for start in range(0, len(rows), _READ_TOGETHER):
        check_time()
        for fields in snapshot.fields_of(rows[start : start + _READ_TOGETHER]):
            characters_left -= len(fields.get("text", ""))
            yield fields
        if characters_left <= 0:
            return


def _field(snapshot: Snapshot, name: str, values: Sequence[Any], is_whole: bool) -> Field | None:
    """A field and its kind; None if it has no kind.

    `values` are those of the documents that were read; `is_whole` says that all were.
    """
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    numbers = [number_of(item) for item in items]
    strings = [isinstance(item, str) for item in items]
    if not items or any(isinstance(item, list | dict) for item in items):
        return None
    if None not in numbers and (all(strings) or not any(strings)):  # truth is no number
        all_numbers = _numbers(snapshot, name)
        if all_numbers is None or np.isnan(all_numbers).all():
            all_numbers = np.array(numbers, dtype=np.float64)
        least = float(np.nanmin(all_numbers))
        most = float(np.nanmax(all_numbers))
        if not all(strings):
            return Field(name, "number", [], True, least, most)
        return Field(name, "date", [], True, _day(least), _day(most))
    sampled = Counter(items)
    is_boolean = all(isinstance(item, bool) for item in items)
    several = any(isinstance(value, list) for value in values)
    few = name != "title" and len(sampled) <= min(_CHOICES, len(items) / 2)
    if not is_boolean and not (all(strings) and (several or name == "labels" or few)):
        return Field(name, "string", [], False)
    short = [value for value in sampled if len(str(value)) <= _LONGEST_VALUE]
    frequent = sorted(short, key=lambda value: (-sampled[value], value))[:_LISTED]
    counts = sampled if is_whole else {value: snapshot.count(name, value) for value in frequent}
    frequent.sort(key=lambda value: -counts[value])
    listed = [(value, counts[value]) for value in frequent]
    if is_boolean:
        return Field(name, "boolean", listed, True)
    # If each document has one value, and all have one that is listed, there is no other.
    single = not any(isinstance(value, list) and len(value) > 1 for value in values)
    is_complete = single and sum(dict(listed).values()) == snapshot.documents
    if is_whole:
        is_complete = len(listed) == len(sampled)
    return Field(name, "choice", listed, is_complete)


def _day(seconds: float) -> str:
    """The day of a moment, in UTC."""
    # A date in another time zone may be, in UTC, a day before the first or after the last.
    moment = datetime.fromtimestamp(min(max(seconds, _FIRST_SECOND), _LAST_SECOND), UTC)
    return moment.date().isoformat()


def _numbers(snapshot: Snapshot, name: str) -> NDArray[np.float64] | None:
    """The numbers in a field, NaN for documents without one; None if an engine keeps them."""
    if not isinstance(snapshot, Snapshot):
        return None
    numbers = snapshot.numbers(name)
    return numbers if snapshot.alive is None else np.where(snapshot.alive, numbers, np.nan)


def newest(snapshot: Snapshot, count: int, dated: str | None = None) -> list[Stored]:
    """The newest documents, the newest first: by a field of dates, or those that were added last."""
    numbers = None if dated is None else _numbers(snapshot, dated)
    if numbers is not None:
        order = np.argsort(-numbers, kind="stable")[:count]  # those without a date are last
        return stored_in(snapshot, order[np.isfinite(numbers[order])])
    # An engine's rows are not in order, and all of them are too many to ask it for.
    rows = snapshot.sample(snapshot.documents if isinstance(snapshot, Snapshot) else count)
    return stored_in(snapshot, rows[: -count - 1 : -1])


def typical_phrases(snapshot: Snapshot, count: int = 6) -> list[str]:
    """Pairs of words that are typical of the documents and make good queries, by pointwise mutual information times
    frequency, and by how near the codes of their documents are: `paper presents` is about nothing. They are taken from
    the beginning of a text, which says what it is about, and are written in lower case, which names are not.
    """
    stop, words, having = (
        english_stop_words(),
        Counter[str](),
        defaultdict[tuple[str, str], list[int]](list),
    )
    rows = snapshot.sample(_LOOKED_AT)
    beginnings = [searchable(fields)[:_BEGINNING] for fields in _read(snapshot, rows)]
    bits = unpack(snapshot.codes(rows[: len(beginnings)]), snapshot.bits)
    for number, beginning in enumerate(beginnings):
        tokens = [
            token if token.isalpha() and token == token.lower() and len(token) > 2 else ""
            for token in _PARTS.findall(beginning)
        ]
        tokens = ["" if token in stop else token for token in tokens]
        words.update({*tokens})
        for pair in {pair for pair in pairwise(tokens) if all(pair) and pair[0] != pair[1]}:
            having[pair].append(number)
    # What many texts have belongs to their form; in a small collection that cannot be said.
    is_small = len(beginnings) < 200
    least = max(3, len(beginnings) // 500)
    most = len(beginnings) * (1 if is_small else _COMMON)

    def worth(pair: tuple[str, str]) -> float:
        number, ones = len(having[pair]), bits[having[pair]].mean(axis=0)
        # Of the bits of two of the documents.
        apart = float((2 * ones * (1 - ones)).mean()) * number / (number - 1)
        information = math.log(number * len(beginnings) / (words[pair[0]] * words[pair[1]]))
        return number * information * max(1 - 2 * apart, 0)

    chosen: list[tuple[str, str]] = []
    several = [pair for pair, places in having.items() if least <= len(places) <= most]
    for pair in sorted(several, key=lambda one: (-worth(one), one)):
        if len(chosen) < count and not any({*pair} & {*other} for other in chosen):
            chosen.append(pair)
    return [" ".join(pair) for pair in chosen]

"""The document, and the corpus: documents that can be read again and again."""

import math
import operator
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from numbers import Integral, Real
from typing import Any, NamedTuple

from parabit.characters import CONTROLS, HALVES, without_halves
from parabit.errors import CorpusError

_MOST_NAMED = 100_000  # skipped places whose names are kept
_AS_THEY_ARE = frozenset((str, int, float, bool, type(None), list, dict))  # what a field may hold
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.{0,24})?")

# Seconds since 1970 of the years that `datetime` has. What lies outside in UTC cannot be shown as a
# date: the first hours of the year 1 in the east, and the last ones of 9999 in the west.
_YEAR_1 = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_YEAR_10000 = datetime(9999, 12, 31, tzinfo=UTC).timestamp() + 24 * 3600

# How deep lists and objects in a field may lie in each other. serde_json, which many tools read
# JSON with, stops at 128, pydantic reads 200 and writes 254, jq reads 256; an answer of the server
# puts a field four levels deeper.
DEEPEST = 100
# Bytes of an id. A path has at most 4,096, and 16,384 if each of them is written out as \xff.
# Milvus takes 65,535.
LONGEST_ID = 20_000
# Bits of a whole number: a little less than the 4,300 decimal digits that Python reads.
_LONGEST_NUMBER = 14_000

REPLACED = "half of a surrogate pair, replaced by U+FFFD"


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a corpus.

    Example:
        >>> post = Document("53068", "It was repaired in orbit.", labels=("sci.space",), fields={"title": "Hubble"})
        >>> post.labels, post.title
        (('sci.space',), 'Hubble')
    """

    id: str
    text: str
    labels: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str | None:
        """The title, if the document's format or its fields have one."""
        title = self.fields.get("title")
        return title if isinstance(title, str) and title.strip() else None


def title_of(document: Document) -> str:
    r"""The title of a document, or else its first line, on one line of at most 100 characters.

    Example:
        >>> title_of(Document("a", "\n\nThe goalie stood still.\nNobody moved."))
        'The goalie stood still.'
    """
    lines = (document.title or document.text).splitlines()
    title = next((" ".join(line.split()) for line in lines if line.strip()), "")
    return title if len(title) <= 100 else title[:100].rsplit(" ", 1)[0] + "…"


def number_of(value: object) -> float | None:
    """A value as a number to compare by: of a date, its seconds since 1970.

    A date is in UTC unless it names a time zone. None if the value is neither, or a date that is
    not in the years 1 to 9999 in UTC.
    """
    try:
        if isinstance(value, str):
            if value[4:5] != "-" or not _DATE.fullmatch(value):
                return None
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            seconds = moment.timestamp()
            return seconds if _YEAR_1 <= seconds < _YEAR_10000 else None
        if isinstance(value, bool) or not isinstance(value, Real):
            return None
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


class RefusedError(CorpusError):
    """A document that cannot be stored, as it could not be written back, or not be named."""


def checked(document: Document) -> Document:
    r"""A document as it can be stored, and written back by whatever reads the index.

    Halves of surrogate pairs, which are no characters, become U+FFFD, as in browsers and jq: in the
    text, the labels, and the names and values of fields.

    Parameters:
        document: Its id and text are strings.

    Returns:
        The same object if there was nothing to replace.

    Raises:
        RefusedError: The id is empty, too long, or has a control character, a line break or half of
            a surrogate pair; or a field is nested too deep, or is a number that is too long.

    Example:
        >>> checked(Document("a", "cut in an emoji: \ud83d")).text
        'cut in an emoji: �'
    """
    check_id(document.id)
    text = without_halves(document.text)
    labels = document.labels if _are_ascii(document.labels) else clean_value(document.labels)
    fields = clean_fields(document.fields)
    if text is document.text and labels is document.labels and fields is document.fields:
        return document
    return Document(document.id, text, labels, fields)


def check_id(identity: str) -> None:
    """Raise RefusedError for an id that cannot be written on one line, or that is too long.

    Parameters:
        identity: The id.

    Example:
        >>> check_id("notes/space station.txt")
    """
    if not identity:
        raise RefusedError("id is empty", hint="give each document an id")
    # A character has at most 4 bytes, so most ids need not be encoded.
    if 4 * len(identity) > LONGEST_ID and len(identity.encode("utf-8", "replace")) > LONGEST_ID:
        problem = f"id too long: {identity[:40]!r}… has more than {LONGEST_ID:,} bytes"
        raise RefusedError(problem, hint="shorten it")
    if identity.isprintable():  # as most ids are; the others may only have a no-break space
        return
    for kind, pattern in (("control character", CONTROLS), ("half of a surrogate pair", HALVES)):
        match = pattern.search(identity)
        if match is not None:
            excerpt = identity[max(0, match.start() - 20) : match.end() + 20]
            raise RefusedError(f"{kind} in the id: {excerpt!r}", hint="give it an id without any")


def clean_fields(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    r"""Fields as they can be stored: the same object if there was nothing to replace.

    Parameters:
        fields: Names and values. What is no JSON is left to the store, which refuses it.

    Raises:
        RefusedError: It names a field that is nested too deep, or is a number that is too long.

    Example:
        >>> clean_fields({"title": "half \udc00", "year": 1993})
        {'title': 'half �', 'year': 1993}
    """
    try:
        return _clean_items(fields, 0)
    except RefusedError:
        for name, value in fields.items():  # again, to say which
            try:
                clean_value(value)
            except RefusedError as problem:
                reason = f"{problem.problem}: the field {name!r}"
                raise RefusedError(reason, hint=problem.hint) from None
        raise


def clean_value(value: Any, depth: int = 0) -> Any:
    r"""A value of a field as it can be stored: the same object if there was nothing to replace.

    Parameters:
        value: Any value; in what JSON does not have nothing is looked for.
        depth: How many lists and objects it lies in.

    Raises:
        RefusedError: It is nested too deep, or a number in it is too long.

    Example:
        >>> clean_value(["a", {"b": "\ud83d"}])
        ['a', {'b': '�'}]
    """
    if isinstance(value, str):
        return without_halves(value)
    if isinstance(value, int):
        if value.bit_length() > _LONGEST_NUMBER:
            raise RefusedError("number of over 4,000 digits", hint="keep it as text")
        return value
    if not isinstance(value, list | tuple | dict):
        return value
    if depth == DEEPEST:
        problem = f"nested more than {DEEPEST} deep"
        raise RefusedError(problem, hint="keep it as text, or leave it out")
    if isinstance(value, dict):
        return _clean_items(value, depth + 1)
    return _clean_list(value, depth + 1)


def _clean_list(values: list[Any] | tuple[Any, ...], depth: int) -> list[Any] | tuple[Any, ...]:
    if _are_ascii(values):
        return values
    cleaned = [clean_value(value, depth) for value in values]
    if all(map(operator.is_, cleaned, values)):
        return values
    return tuple(cleaned) if isinstance(values, tuple) else cleaned


def _clean_items(items: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
    changed: dict[str, Any] = {}
    for name, value in items.items():
        if type(value) is str and value.isascii():  # most values: this is called for each document
            continue
        clean = clean_value(value, depth)
        if clean is not value:
            changed[name] = clean
    if changed:
        items = {**items, **changed}
    return items if _are_ascii(items) else _with_clean_names(items)


def _are_ascii(values: Iterable[Any]) -> bool:
    """Whether all are strings in ASCII, which is known without a look at them."""
    try:
        return all(map(str.isascii, values))
    except TypeError:  # one is no string
        return False


def _with_clean_names(items: Mapping[str, Any]) -> Mapping[str, Any]:
    names = [without_halves(name) if isinstance(name, str) else name for name in items]
    if all(map(operator.is_, names, items)):
        return items
    if len(set(names)) < len(names):
        problem = "half of a surrogate pair in the names of two fields, which become one"
        raise RefusedError(problem, hint="rename one of them")
    return dict(zip(names, items.values(), strict=True))


class Skipped(NamedTuple):
    """Something that was not read. The reason begins with its kind; details may follow after a colon."""

    place: str  # a path, or path:line
    reason: str


class Tally:
    """Places in a corpus, each with a reason: all counted by kind, the first 100,000 named."""

    def __init__(self, places: Iterable[Skipped] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self._named: list[Skipped] = []
        for place, reason in places:
            self.add(place, reason)

    def add(self, place: str, reason: str) -> None:
        self.counts[reason.partition(":")[0]] += 1
        if len(self._named) < _MOST_NAMED:
            self._named.append(Skipped(place, reason))

    def extend(self, other: "Tally") -> None:
        """Add the places of another tally."""
        self.counts += other.counts
        self._named += other._named[: _MOST_NAMED - len(self._named)]

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[Skipped]:
        return iter(self._named)

    def __str__(self) -> str:
        return ", ".join(f"{count:,} {kind}" for kind, count in self.counts.most_common())


class Corpus(ABC):
    """Documents in a fixed order, read one after the other and as often as needed, never held whole.

    `skipped` are the files and records that the latest reading could not use, `notes` those that it could, but where
    you should look, such as files whose encoding was guessed.
    """

    skipped: Tally = Tally()  # these stay empty: a corpus that skips has its own
    notes: Tally = Tally()

    @abstractmethod
    def __iter__(self) -> Iterator[Document]:
        """Read the documents from the start."""

    @property
    def place(self) -> str:
        """Where the last document comes from, for messages: a path, path:line or number."""
        return ""

    @property
    def share_read(self) -> float | None:
        """How much of the corpus the latest reading has passed, from 0 to 1; None if that is not known."""
        return None

    def batches(
        self, characters: int = 3_000_000, documents: int = 16_384
    ) -> Generator[list[Document], None, None]:
        """Read the documents in lists of bounded size; a document longer than the bound comes alone."""
        # Characters bound the memory when documents are long; documents bound the Python objects when they are short.
        batch: list[Document] = []
        size = 0
        for document in self:
            if batch and (size + len(document.text) > characters or len(batch) == documents):
                yield batch
                batch, size = [], 0
            batch.append(document)
            size += len(document.text)
        if batch:
            yield batch


class CommonLabels(Corpus):
    """A corpus without labels of fewer than `least` documents, and without the documents that have no other.

    The paper's rule for Wikipedia. The labels are counted in a first reading, once.
    """

    def __init__(self, corpus: Corpus, least: int = 20) -> None:
        self._corpus = corpus
        self._least = least

    @cached_property
    def counts(self) -> Counter[str]:
        """How many documents have each label, rare or not."""
        return Counter(label for document in self._corpus for label in set(document.labels))

    def __iter__(self) -> Iterator[Document]:
        counts = self.counts
        for document in self._corpus:
            labels = tuple(label for label in document.labels if counts[label] >= self._least)
            if labels:
                yield replace(document, labels=labels)

    @property
    def place(self) -> str:
        return self._corpus.place

    @property
    def share_read(self) -> float | None:
        return self._corpus.share_read


class PythonCorpus(Corpus):
    """A corpus over strings, Documents or dictionaries that are already in Python; made by `as_corpus`."""

    def __init__(self, documents: Iterable[str | Document | Mapping[str, Any]]) -> None:
        self._documents = documents
        self._read = 0

    def __iter__(self) -> Iterator[Document]:
        self._read = 0
        notes = self.notes = Tally()
        for position, item in enumerate(self._documents):
            self._read = position + 1
            document = _document_at(position, item)
            text = without_halves(document.text)
            if text is not document.text:
                document = replace(document, text=text)
                notes.add(self.place, REPLACED)
            yield document

    @property
    def place(self) -> str:
        return f"document {self._read - 1}"

    @property
    def share_read(self) -> float | None:
        total = len(self._documents) if isinstance(self._documents, Sized) else None
        return self._read / total if total else None


class CheckedCorpus(Corpus):
    r"""The documents of a corpus that can be stored; the others are in `skipped`, with the reason.

    Example:
        >>> corpus = CheckedCorpus(as_corpus([Document("a", "text"), Document("b\n", "text")]))
        >>> [document.id for document in corpus]
        ['a']
        >>> list(corpus.skipped)
        [Skipped(place='document 1', reason="control character in the id: 'b\\n'")]
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._position = -1

    def __iter__(self) -> Iterator[Document]:
        skipped = self.skipped = Tally()
        notes = self.notes = Tally()
        for position, document in enumerate(self._corpus):
            self._position = position
            _need_strings(document)
            try:
                clean = checked(document)
            except RefusedError as problem:
                skipped.add(self.place, problem.problem)
                continue
            if clean is not document:
                notes.add(self.place, REPLACED)
            yield clean
        skipped.extend(self._corpus.skipped)
        notes.extend(self._corpus.notes)

    @property
    def place(self) -> str:
        return self._corpus.place or f"document {self._position}"

    @property
    def share_read(self) -> float | None:
        return self._corpus.share_read


def _need_strings(document: Document) -> None:
    """Raise unless a document's id and text are strings."""
    for name, value in (("id", document.id), ("text", document.text)):
        if not isinstance(value, str):
            raise CorpusError(f"{type(value).__name__} as its {name}", hint="make it a string")


def _document_at(position: int, given: object, *named: Any) -> Document:
    """What an object in Python stands for as a document; an error names its position."""
    try:
        if isinstance(given, str):
            given = Document(str(position), given)
        elif isinstance(given, Mapping):
            given = document_from(given, str(position), *named)
        elif not isinstance(given, Document):
            kind = (
                f"missing ({given})"
                if is_missing(given)
                else f"{type(given).__name__}, not a string or a Document"
            )
            raise CorpusError(kind, hint="leave it out, or give it a text")
        _need_strings(given)
    except CorpusError as problem:
        raise CorpusError(f"document {position}: {problem.problem}", hint=problem.hint) from problem
    return given


Texts = Corpus | Iterable[str | Document]


def as_corpus(documents: Corpus | Iterable[str | Document | Mapping[str, Any]]) -> Corpus:
    """Take a corpus as it is, and strings, Documents or dictionaries from Python as a corpus.

    A string's id is its position, counted from 0. A dictionary has its text under `text`, and may have `id`, `labels`
    or `label`, and `title`; its other entries are fields, as in the rows of a Hugging Face data set. The iterable is
    read more than once, so a generator is refused.
    """
    if isinstance(documents, Corpus):
        return documents
    kind = type(documents).__name__
    if kind.endswith("Frame"):  # which iterates over the names of its columns
        hint = 'name it: parabit.documents_from(df, text="body", id="key")'
        raise CorpusError(f"a {kind} does not say which column holds the text", hint)
    if isinstance(documents, str | bytes | Document | Mapping):
        hint = "put it in a list, or read a file with parabit.open_corpus(path)"
        raise CorpusError(f"a corpus is many documents, but a single {kind} was given", hint)
    if not isinstance(documents, Iterable):
        raise CorpusError(
            f"a corpus must be iterable, but {kind} is not", hint="give a list of strings"
        )
    if iter(documents) is documents:
        raise CorpusError(
            f"documents are read more than once, but this is a one-shot {kind}",
            hint="use list(...)",
        )
    return PythonCorpus(documents)


def documents_from(
    frame: Any,
    text: str = "text",
    id: str | None = None,
    labels: str | None = None,
    title: str | None = None,
) -> list[Document]:
    """The rows of a pandas or polars DataFrame as documents.

    Name the columns of the text, the id, the labels and the title. Without names the columns `id`, `labels` or
    `label`, and `title` are used if they exist, and a row without an id gets its position, counted from 0. Other
    columns of strings, numbers and dates become fields.

    Example:
        >>> import polars as pl
        >>> frame = pl.DataFrame({"key": ["a", "b"], "body": ["Hubble repaired", "goalie"], "year": [1993, None]})
        >>> documents_from(frame, text="body", id="key")[0]
        Document(id='a', text='Hubble repaired', labels=(), fields={'year': 1993})
    """
    columns = {str(name): frame[name].to_list() for name in frame.columns}
    read = {text, id, labels, title, "id", "labels", "label"}
    rows = (zip(columns, row, strict=True) for row in zip(*columns.values(), strict=True))
    records = (
        {name: value for name, value in row if name in read or _is_scalar(value)} for row in rows
    )
    return [
        _document_at(place, record, (text,), id, labels, title)
        for place, record in enumerate(records)
    ]


def document_from(
    values: Mapping[str, Any],
    otherwise: str,
    text: Sequence[str] = ("text",),
    id: str | None = None,
    labels: str | None = None,
    title: str | None = None,
) -> Document:
    """Make a document from a record: which fields hold what, and the id it has if it has no other, or `id` is empty."""
    id_field = "id" if id is None and "id" in values else id
    label_field = labels or next((name for name in ("labels", "label") if name in values), None)
    used = {*text, id_field, label_field, title}
    fields = {name: _plain(value) for name, value in values.items() if name not in used}
    heading = _field(values, title, "title") if title else values.get("title")
    if isinstance(heading, str):  # kept even if it is part of the text
        fields["title"] = heading
    return Document(
        id=str(_field(values, id_field, "id")) if id_field else otherwise,
        text="\n\n".join([_field(values, name, "text") for name in text]),
        labels=tuple(dict.fromkeys(map(str, _field(values, label_field, "label"))))
        if label_field
        else (),
        fields=fields,
    )


def _field(values: Mapping[str, Any], name: str, what: str) -> Any:
    """What a record has as its text, id, label or title, if it can be used as that."""
    if name not in values:
        among = ", ".join(map(str, values)) or "its fields, as it has none"
        hint = f"name the field with the {what}, on the command line with --{what}-field"
        raise CorpusError(f"no {what} field: {name!r} is not among {among}", hint)
    value, usable, wanted = values[name], True, ""
    if what == "text":
        if is_missing(value):
            raise CorpusError(
                f"text is missing: the field {name!r} is empty",
                hint="leave out records without a text",
            )
        usable, wanted = isinstance(value, str), "a string"
    elif what == "id":
        if isinstance(value, str) and not value:
            hint = "give it one, or name records by path and line with --id-field ''"
            raise CorpusError(f"id is missing: the field {name!r} is empty", hint)
        usable = isinstance(value, str | Integral) and not isinstance(value, bool)
        wanted = "a string or whole number"
    elif what == "label":
        value = value.tolist() if hasattr(value, "tolist") else value  # numpy's
        value = (
            value
            if isinstance(value, list | tuple)
            else []
            if is_missing(value) or value == ""
            else [value]
        )
        usable, wanted = (
            all(isinstance(label, str | Integral) for label in value),
            "a list of strings",
        )
    if not usable:
        raise CorpusError(
            f"{what} not usable: the field {name!r} has type {type(value).__name__}",
            f"use {wanted}",
        )
    return value


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or what pandas has in their place."""
    if isinstance(value, float):
        return value != value  # noqa: PLR0124 - only NaN differs from itself
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _is_scalar(value: object) -> bool:
    is_nested = isinstance(value, list | tuple | dict | bytes) or getattr(value, "ndim", 0) > 0
    return not (is_nested or is_missing(value))


def _plain(value: Any) -> Any:
    """A value as JSON can keep it: dates as text, numbers of numpy as Python's."""
    if type(value) in _AS_THEY_ARE:
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return (
        value.tolist()
        if hasattr(value, "tolist")
        else list(value)
        if isinstance(value, tuple)
        else str(value)
    )

"""The document, and the corpus: documents that can be read again and again."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any

from parabit.errors import CorpusError

# A batch ends at whichever comes first. Characters bound the memory when documents are long; documents bound the
# Python objects when they are short.
BATCH_CHARACTERS = 3_000_000
BATCH_DOCUMENTS = 16_384


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a corpus.

    Example:
        >>> Document(id="53068", text="The Hubble was repaired in orbit.", labels=("sci.space",)).labels
        ('sci.space',)
    """

    id: str
    text: str
    labels: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


class Corpus(ABC):
    """Documents in a fixed order, read one after the other and as often as needed, never held whole.

    `skipped` counts the bad records that the latest reading left out; readers that skip none leave it at 0.
    """

    skipped: int = 0

    @abstractmethod
    def __iter__(self) -> Iterator[Document]:
        """Read the documents from the start."""

    @property
    def share_read(self) -> float | None:
        """How much of the corpus the latest reading has passed, from 0 to 1; None where nobody can know."""
        return None

    def batches(
        self, characters: int = BATCH_CHARACTERS, documents: int = BATCH_DOCUMENTS
    ) -> Generator[list[Document], None, None]:
        """Read the documents in lists of bounded size; one that is longer than the bound comes whole, alone."""
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


class PythonCorpus(Corpus):
    """A corpus over strings or Documents that are already in Python; made by `as_corpus`."""

    def __init__(self, documents: Iterable[str | Document]) -> None:
        self._documents = documents
        self._read = 0

    def __iter__(self) -> Iterator[Document]:
        self._read = 0
        for position, document in enumerate(self._documents):
            self._read = position + 1
            if isinstance(document, str):
                document = Document(id=str(position), text=document)
            self._check(document, position)
            yield document

    @staticmethod
    def _check(document: object, position: int) -> None:
        if not isinstance(document, Document):
            raise CorpusError(
                f"document {position} is a {type(document).__name__}, not a string or a Document",
                hint="give texts as str, for example ['first text', 'second text']",
            )
        for name, value in (("id", document.id), ("text", document.text)):
            if not isinstance(value, str):
                raise CorpusError(
                    f"document {position} has a {type(value).__name__} as its {name}", hint="make it a string"
                )
            if not can_be_written(value):
                raise CorpusError(
                    f"document {position} has half of a surrogate pair in its {name}, which is no character",
                    hint='clean it with value.encode("utf-8", "replace").decode()',
                )

    @property
    def share_read(self) -> float | None:
        total = len(self._documents) if isinstance(self._documents, Sized) else None
        return self._read / total if total else None


def as_corpus(documents: Corpus | Iterable[str | Document]) -> Corpus:
    """Take a corpus as it is, and strings or Documents from Python as a corpus.

    A string's id is its position, counted from 0. The iterable is read more than once, so a generator is refused.

    Example:
        >>> [document.id for document in as_corpus(["first text", "second text"])]
        ['0', '1']
    """
    if isinstance(documents, Corpus):
        return documents
    if isinstance(documents, str | bytes | Document | Mapping):
        raise CorpusError(
            f"a corpus is many documents, but a single {type(documents).__name__} was given",
            hint="put it in a list, or read a file with parabit.open_corpus(path)",
        )
    if not isinstance(documents, Iterable):
        raise CorpusError(
            f"a corpus must be iterable, but {type(documents).__name__} is not", hint="give a list of strings"
        )
    if iter(documents) is documents:
        raise CorpusError(
            f"the documents come from a one-shot {type(documents).__name__}, but they are read more than once",
            hint="give a list, or an object whose __iter__ starts anew each time",
        )
    return PythonCorpus(documents)


def can_be_written(value: str) -> bool:
    r"""Whether a string holds characters alone, and no half of a surrogate pair.

    Example:
        >>> can_be_written("é"), can_be_written("\ud800")
        (True, False)
    """
    if value.isascii():  # known without looking
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True

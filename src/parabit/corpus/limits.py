"""Limits on the time, memory and size of a file: no file stops the reading of the others."""

import os
from dataclasses import dataclass, fields

from parabit.errors import CorpusError, UnreadableError

VARIABLE = "PARABIT_LIMITS"
MB = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """What one file may cost.

    A file or record over a limit is skipped, and the reason names the limit.

    The number of lines, records, rows and documents has no limit, nor has the size of a file of
    records: they are read one after the other. The defaults are far above what ordinary files need:
    measured on pages, Markdown files and PDFs of up to 67 MB, a parser takes up to 2 seconds and 40
    MB of memory for each MB of a file.

    Parameters:
        seconds: Processor time that the parser of HTML, Markdown or PDF may take for each MB of a
            file, and for a file of less than 1 MB; also for each batch of rows of a Parquet file. A
            parser that waits, for example for a disk, may take ten times as long by the clock.
        most_seconds: Processor time for a file of HTML, Markdown or PDF, whatever its size.
        memory_mb: Memory of the process that parses HTML, Markdown, PDF and Parquet. Only Linux
            keeps this limit.
        document_mb: Size of one document, decompressed: a file that is one document, a line, a
            record of CSV, or a whole JSON array; and of the text that is extracted from a PDF.
        expansion: How many times its size a compressed file may grow. Up to `document_mb` it may
            grow in any case.
        columns: Columns of a CSV, TSV or Parquet file.
        pages: Pages of a PDF.
        depth: How deep lists and objects of a JSON record may be nested.

    Raises:
        CorpusError: if a limit is not a positive number.

    Example:
        >>> ReadLimits(seconds=60).pages
        20000
    """

    seconds: float = 20
    most_seconds: float = 600
    memory_mb: int = 4_000
    document_mb: int = 100
    # Logs reach 100; the best that gzip can do is 1,032 and bzip2 makes a million times as much of
    # one letter.
    expansion: int = 200
    columns: int = 10_000
    pages: int = 20_000
    depth: int = 200  # libraries that read JSON give up at 250 and more

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 < value < float("inf"):
                raise CorpusError(
                    f"the limit {field.name} is {value!r}", hint="it is a number above 0"
                )

    @property
    def document_bytes(self) -> int:
        return int(self.document_mb * MB)

    def parsing_seconds(self, size: int) -> float:
        """Processor time for the parsing of a file of this many bytes."""
        return min(self.most_seconds, self.seconds * max(1.0, size / MB))

    @classmethod
    def from_environment(cls) -> "ReadLimits":
        """The defaults, changed by the variable PARABIT_LIMITS, as in `seconds=60 pages=50000`.

        Raises:
            CorpusError: if the variable names another limit, or a value that is not a positive
                number.

        Example:
            >>> os.environ["PARABIT_LIMITS"] = "seconds=60 pages=50000"
            >>> ReadLimits.from_environment().pages
            50000
            >>> del os.environ["PARABIT_LIMITS"]
        """
        assignments = os.environ.get(VARIABLE, "").replace(",", " ").split()
        names = [field.name for field in fields(cls)]
        changes: dict[str, float] = {}
        for assignment in assignments:
            name, _, value = assignment.partition("=")
            number: float | None
            try:
                number = float(value)
            except ValueError:
                number = None
            if number is None or name not in names:
                raise CorpusError(
                    f"{VARIABLE} has {assignment!r}",
                    hint=f"write for example seconds=60; the limits are {', '.join(names)}",
                )
            changes[name] = int(number) if number.is_integer() else number
        return cls(**changes)  # type: ignore[arg-type]  # checked when it is made

    def said(self, name: str) -> str:
        """A limit as messages name it.

        Example:
            >>> ReadLimits().said("pages")
            'limit: pages=20000'
        """
        return f"limit: {name}={getattr(self, name)}"


def over_limit(
    name: str, what: str, limits: ReadLimits, limit: str, line: int | None = None
) -> UnreadableError:
    """The error of a file, or of a record in it, that costs more than it may."""
    hint = (
        f"if you trust the file, raise the limit with {VARIABLE}={limit}=… or ReadOptions(limits=…)"
    )
    return UnreadableError(name, f"over a limit: {what} ({limits.said(limit)})", hint, line)

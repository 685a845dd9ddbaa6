"""Reading what a stranger may have written: JSON that is checked value by value, and files that are no links.

An index is a folder that may come from anybody. What its manifest says is checked once, where it is
read, and nothing in the folder is opened through a link: so reading an index cannot reach a file
outside it, and neither can writing to it.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from parabit.errors import IndexDamagedError

# Windows has neither flag, and links only for administrators.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for somebody to write to it
_BINARY = getattr(os, "O_BINARY", 0)
_SHOWN = 60  # characters of a wrong value that an error shows

REMEDY = "restore it from a copy, or build the index again"

_BEFORE_READING_AGAIN = 0.005  # seconds; a writer replaces a file in less

T = TypeVar("T")


def damaged(path: Path, reason: str = "") -> IndexDamagedError:
    """The error for a file of an index that is not what was written."""
    because = f": {reason}" if reason else ""
    return IndexDamagedError(f"{path} is damaged{because}", hint=REMEDY)


def read_twice(read: Callable[[], T]) -> T:
    """What a function reads. If it finds damage, it reads again: only what it finds twice is damage.

    A writer in another process may change files while they are read.
    """
    try:
        return read()
    except IndexDamagedError:
        time.sleep(_BEFORE_READING_AGAIN)
        return read()


class JsonObject:
    """A JSON object whose values are taken out one by one and checked; a ValueError says what is wrong.

    `name` is what errors call the object.

    Example:
        >>> settings = JsonObject({"language": "en", "most": -1}, "words")
        >>> settings.string("language", form="[a-z]{2}")
        'en'
        >>> settings.integer("most")
        Traceback (most recent call last):
            ...
        ValueError: words.most is -1, not a whole number from 0 to 9223372036854775807
    """

    def __init__(self, content: object, name: str) -> None:
        if not isinstance(content, dict):
            raise ValueError(f"{name} is {_shown(content)}, not an object")  # noqa: TRY004
        self._content: dict[str, Any] = dict(content)
        self._name = name

    def string(self, key: str, form: str = ".*", longest: int = 4096) -> str:
        """A string that has the form of a regular expression, of at most so many characters."""
        value = self._take(key)
        return self._string(key, value, form, longest)

    def strings(self, key: str, form: str = ".*", longest: int = 4096) -> tuple[str, ...]:
        """A list of such strings."""
        values = self._list(key)
        return tuple(self._string(key, value, form, longest) for value in values)

    def choice(self, key: str, choices: Sequence[str | None]) -> str | None:
        """One of several values."""
        value = self._take(key)
        if value is not None and not isinstance(value, str):
            raise self._wrong(key, value, "a string or null")
        if value not in choices:
            raise self._wrong(key, value, f"one of {', '.join(map(str, choices))}")
        return value

    def integer(self, key: str, least: int = 0, most: int = 2**63 - 1) -> int:
        """A whole number within bounds."""
        value = self._take(key)
        if type(value) is not int or not least <= value <= most:
            raise self._wrong(key, value, f"a whole number from {least} to {most}")
        return value

    def boolean(self, key: str) -> bool:
        """True or false."""
        value = self._take(key)
        if type(value) is not bool:
            raise self._wrong(key, value, "true or false")
        return value

    def mapping(self, key: str) -> Mapping[str, Any]:
        """An object whose values are still to be checked."""
        value = self._take(key)
        if not isinstance(value, dict):
            raise self._wrong(key, value, "an object")
        return value

    def child(self, key: str) -> "JsonObject | None":
        """An object to take values out of, or None for null."""
        value = self._take(key)
        return None if value is None else JsonObject(value, f"{self._name}.{key}")

    def finish(self) -> None:
        """Raise if there is a key that nobody has taken."""
        if self._content:
            raise ValueError(f"{self._name} has an unknown key {_shown(next(iter(self._content)))}")

    def _take(self, key: str) -> Any:
        if key not in self._content:
            raise ValueError(f"{self._name} has no {key}")
        return self._content.pop(key)

    def _list(self, key: str) -> list[Any]:
        values = self._take(key)
        if not isinstance(values, list):
            raise self._wrong(key, values, "a list")
        return values

    def _string(self, key: str, value: object, form: str, longest: int) -> str:
        if not isinstance(value, str) or len(value) > longest:
            raise self._wrong(key, value, f"a string of at most {longest:,} characters")
        if re.fullmatch(form, value, re.DOTALL) is None:
            raise self._wrong(key, value, "a name of the expected form")
        return value

    def _wrong(self, key: str, value: object, expected: str) -> ValueError:
        return ValueError(f"{self._name}.{key} is {_shown(value)}, not {expected}")


def _shown(value: object) -> str:
    """The beginning of a value: a stranger's may be endless, or too deeply nested to be written."""
    if isinstance(value, str):
        return repr(value[:_SHOWN])
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, int):
        return repr(value) if value.bit_length() <= 64 else "a number of more than 64 bits"
    return f"of type {type(value).__name__}"


def open_regular(path: Path, write: bool = False) -> BinaryIO:
    """Open a file that exists and is neither a link nor a device; an IndexDamagedError if it is one."""
    flags = (os.O_RDWR if write else os.O_RDONLY) | _NO_LINK | _NO_WAITING | _BINARY
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError:
        if path.is_symlink():
            raise _not_regular(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular(path)
    return os.fdopen(descriptor, "r+b" if write else "rb", buffering=0)


def need_folder(path: Path) -> None:
    """Raise if this is there and not a folder itself, but a file or a link."""
    if os.path.lexists(path) and not stat.S_ISDIR(path.lstat().st_mode):
        raise IndexDamagedError(f"{path} is a link or a file, not a folder", hint=REMEDY)


def is_regular(path: Path) -> bool:
    """Whether this is a file itself, and not a link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _not_regular(path: Path) -> IndexDamagedError:
    return IndexDamagedError(f"{path} is a link or no plain file", hint=REMEDY)

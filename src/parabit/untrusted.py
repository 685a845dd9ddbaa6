"""Reading what strangers may have written: regular files of bounded size, and JSON as expected.

Whatever is wrong is an `UnexpectedError`, whose text names the value, what it is and what it must
be. Who reads the file makes an error of its own kind of it.
"""

import json
import math
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parabit.storage import is_regular

TensorForms = dict[str, tuple[str, tuple[int, ...]]]  # by name: the type, such as F32, and shape

LARGEST_COUNT = 1 << 53  # up to here whole numbers are the same in JSON, in float64 and in int64
_LONGEST_SHOWN = 60  # characters of a wrong value


class UnexpectedError(ValueError):
    """What was read is not what it should be."""


@dataclass(frozen=True)
class Rule:
    """What a value must be.

    Example:
        >>> even = Rule(lambda value: type(value) is int and value % 2 == 0, "an even number")
        >>> even.holds(4), even.holds("4")
        (True, False)
    """

    holds: Callable[[Any], bool]  # whether a value, which may be anything, is as it must be
    must: str  # how an error says it, after "must be"


def whole(least: int = 0, most: int | None = LARGEST_COUNT) -> Rule:
    """A whole number in a range.

    Parameters:
        least: The smallest number.
        most: The largest number; None if there is none.

    Example:
        >>> whole(1, 8).holds(8), whole(1, 8).holds(9), whole().must
        (True, False, 'a whole number, at least 0 and at most 9,007,199,254,740,992')
    """

    def holds(value: Any) -> bool:
        return type(value) is int and value >= least and (most is None or value <= most)

    limit = "" if most is None else f" and at most {most:,}"
    return Rule(holds, f"a whole number, at least {least}{limit}")


def text(longest: int) -> Rule:
    """A line of text, not empty, without control characters."""

    def holds(value: Any) -> bool:
        return isinstance(value, str) and 1 <= len(value) <= longest and value.isprintable()

    return Rule(holds, f"a line of 1 to {longest:,} characters")


def one_of(names: Collection[str]) -> Rule:
    """One of some names."""
    return Rule(
        lambda value: isinstance(value, str) and value in names, f"one of {', '.join(names)}"
    )


def optional(rule: Rule) -> Rule:
    """What a rule says, or null."""
    return Rule(lambda value: value is None or rule.holds(value), f"{rule.must}, or null")


def list_of(rule: Rule) -> Rule:
    """A list whose items are as a rule says."""

    def holds(value: Any) -> bool:
        return isinstance(value, list) and all(map(rule.holds, value))

    return Rule(holds, f"a list, and each item {rule.must}")


def is_number(value: Any) -> bool:
    """Whether a value is a number that can be calculated with."""
    if type(value) is int:
        return abs(value) <= LARGEST_COUNT
    return type(value) is float and math.isfinite(value)


FLAG = Rule(lambda value: isinstance(value, bool), "true or false")
NUMBER = Rule(is_number, "a number")
OBJECT = Rule(lambda value: isinstance(value, dict), "an object")


def check_object(
    value: Any, rules: dict[str, Rule], where: str = "", optional_names: Iterable[str] = ()
) -> None:
    """Raise `UnexpectedError` unless a value is an object with these names, each as its rule says.

    Parameters:
        value: What JSON gave.
        rules: What must hold for each name; an object with another name is refused.
        where: The name of the object itself, for the error; empty for that of a whole file.
        optional_names: Which of the names may be missing.

    Example:
        >>> check_object({"bits": 128}, {"bits": whole(1, 1024)})
        >>> check_object({"bits": "many"}, {"bits": whole(1, 1024)})
        Traceback (most recent call last):
        parabit.untrusted.UnexpectedError: bits is 'many', it must be a whole number, at least 1
        and at most 1,024
    """
    if not isinstance(value, dict):
        raise UnexpectedError(f"{where or 'the content'} is {shown(value)}, it must be an object")
    prefix = f"{where}." if where else ""
    missing = [name for name in rules if name not in value and name not in optional_names]
    if missing:
        raise UnexpectedError(f"{prefix}{missing[0]} is missing")
    unknown = [name for name in value if name not in rules]
    if unknown:
        raise UnexpectedError(f"{prefix}{shown(unknown[0])} is not known")
    for name, rule in rules.items():
        if name in value and not rule.holds(value[name]):
            raise UnexpectedError(f"{prefix}{name} is {shown(value[name])}, it must be {rule.must}")


def parse_object(content: bytes | str, has_paths: bool = False) -> dict[str, Any]:
    """A JSON object, without what only some libraries read, such as NaN and deep nesting.

    Parameters:
        content: JSON, in UTF-8 if it is bytes.
        has_paths: Whether it has paths of files, which may be no text: Python has halves of surrogate
            pairs for their bytes.

    Raises:
        UnexpectedError: if it is not JSON, not an object, or has something that not all read.
    """
    try:
        value = json.loads(content, parse_constant=_no_constant, parse_float=_finite)
        # Half of a surrogate pair, which JSON can escape, is no character: it could be neither
        # shown nor searched.
        if not has_paths:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise UnexpectedError("it is nested too deeply") from None
    except ValueError as problem:
        if isinstance(problem, UnexpectedError):
            raise
        raise UnexpectedError(f"it is not JSON: {shown(problem)}") from problem
    if not isinstance(value, dict):
        raise UnexpectedError(f"the content is {shown(value)}, it must be an object")
    return value


def read_object(path: Path, most_bytes: int) -> dict[str, Any]:
    """The JSON object in a file, checked as by `read_regular` and `parse_object`."""
    return parse_object(read_regular(path, most_bytes))


def read_regular(path: Path, most_bytes: int) -> bytes:
    """The content of a file that is no link, no folder and no pipe.

    Parameters:
        path: The file.
        most_bytes: The size above which it is an `UnexpectedError`.
    """
    need_regular(path)
    with open(path, "rb", opener=_open_without_links) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise UnexpectedError(f"it is larger than {most_bytes:,} bytes")
    return content


def _open_without_links(path: str, flags: int) -> int:
    """Open a file that may have become a link or a pipe since it was looked at."""
    no_link = getattr(os, "O_NOFOLLOW", 0)  # Windows has neither
    no_waiting = getattr(os, "O_NONBLOCK", 0)
    return os.open(path, flags | no_link | no_waiting)


def need_regular(path: Path) -> None:
    """Raise unless something is a file itself; a file that is missing is a FileNotFoundError."""
    if not is_regular(path):
        path.lstat()
        raise UnexpectedError("it is not a regular file; links are not followed")


def need_short_header(path: Path, most_bytes: int) -> None:
    """Raise if the header of a safetensors file is too large: it becomes objects in memory.

    Parameters:
        path: The file.
        most_bytes: The largest size of its header.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if length > most_bytes:
        raise UnexpectedError(f"its header has {length:,} bytes, at most {most_bytes:,} are read")


def tensor_forms(file: Any) -> TensorForms:
    """The types and shapes of the tensors in a safetensors file, whose header alone is read.

    Parameters:
        file: What `safe_open` gives.
    """
    forms = {}
    for name in file.keys():  # noqa: SIM118
        header = file.get_slice(name)
        forms[name] = (header.get_dtype(), tuple(header.get_shape()))
    return forms


def shown(value: object, longest: int = _LONGEST_SHOWN) -> str:
    """A wrong value as an error shows it, on one line and not too long.

    Parameters:
        value: What was read, or an error whose text is shown.
        longest: How many characters are shown; "…" stands for the others.
    """
    described = str(value) if isinstance(value, Exception) else _described(value)
    line = "".join(character if character.isprintable() else "?" for character in described)
    if len(line) > longest:
        return f"{line[:longest]}…"
    return line


def _described(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value):,}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST_COUNT:
        return "a very large number"
    return repr(value)


def _no_constant(name: str) -> Any:
    raise UnexpectedError(f"{name} is not a number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise UnexpectedError(f"{shown(digits)} is too large a number")
    return value

"""JSON that every reader takes, whatever is stored: for answers, and for what assistants send."""

import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from pydantic_core import to_json

from parabit.characters import without_halves

# Levels of lists and objects inside each other. Libraries that write and read JSON give up at about
# 200 levels, and an answer has a few of its own around what is stored.
MOST_LEVELS = 100
_TOO_DEEP = "…"  # stands for what lies deeper


def as_json(content: Any) -> bytes:
    r"""An answer as JSON in UTF-8: what JSON cannot have is replaced, as `plain` does it.

    Parameters:
        content: What JSON has, perhaps with dataclasses and bytes that are UTF-8 in it.

    Example:
        >>> as_json({"id": 7, "price": math.nan})
        b'{"id":7,"price":null}'
        >>> as_json(["\ud83d"]) == '["\ufffd"]'.encode()
        True
    """
    try:
        return to_json(content, inf_nan_mode="null")  # JSON knows no NaN
    except (ValueError, RecursionError):
        # A character or a level that JSON cannot have is rare, and to look for them takes several
        # times as long.
        return to_json(plain(content), inf_nan_mode="null", fallback=str)


def plain(content: Any, levels: int = MOST_LEVELS) -> Any:
    """A copy without what readers of JSON refuse.

    Halves of surrogate pairs become U+FFFD, numbers that are not finite None, and what lies too
    deep "…".

    Parameters:
        content: Values as `json.loads` gives them; others are left as they are.
        levels: How many levels of lists and objects stay.

    Example:
        >>> plain({"a": [1, [2, [3]]]}, levels=2)
        {'a': [1, '…']}
    """
    if isinstance(content, str):
        return without_halves(content)
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if is_dataclass(content):
        content = vars(content)
    is_object = isinstance(content, Mapping)
    is_list = isinstance(content, list | tuple)
    if (is_object or is_list) and levels == 0:
        return _TOO_DEEP
    if is_object:
        return {plain(name): plain(value, levels - 1) for name, value in content.items()}
    if is_list:
        return [plain(value, levels - 1) for value in content]
    return content

"""What a request of a stranger may cost: limits on its size, and a deadline for its work.

Python cannot stop a thread from outside. Long work therefore asks from time to time whether its
time is over, between steps that each take milliseconds: a word that is corrected, a query that is
ranked, a few documents that are read. Without a deadline, as in a program that uses the library,
nothing ends early.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import Any

from parabit.errors import QueryError, TooSlowError

# Characters: about 40 pages, more than anybody pastes to find what is like it.
LONGEST_QUERY = 100_000
# Characters of an id in a request. Ids of files are paths, which systems limit to 4,096 bytes.
LONGEST_REQUESTED_ID = 4_096
# Conditions of one search, values that they name, characters of a name or a value, and of all of
# them together. A page sends a handful; programs list what a user may see, at most a few hundred
# groups or ids.
MOST_CONDITIONS = 32
MOST_VALUES = 1_000
LONGEST_VALUE = 1_000
MOST_CONDITION_CHARACTERS = 50_000

# When the time of the current work is over, on the clock of time.monotonic.
_end: ContextVar[float] = ContextVar("_end", default=inf)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """End the work inside the block with a TooSlowError soon after so many seconds.

    An earlier deadline, of a block around this one, stays.

    Parameters:
        seconds: How long the work may take, from now on.

    Example:
        >>> with deadline(3600):
        ...     check_time()
    """
    token = _end.set(min(_end.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _end.reset(token)


def check_time() -> None:
    """Raise a TooSlowError if the deadline is over; to call between the steps of long work."""
    if time.monotonic() > _end.get():
        raise TooSlowError("this takes longer than a request may", hint="ask for less")


def check_conditions(conditions: Mapping[str, Any]) -> None:
    """Raise a QueryError if a request has more conditions than it may have.

    Parameters:
        conditions: By the name of a field, in the form of the API: a value, a list of values, or
            comparisons with either.

    Example:
        >>> check_conditions({"labels": ["space", "orbit"], "year": {">=": 2000}})
    """
    comparisons = 0
    values = 0
    characters = 0
    for field_name, condition in conditions.items():
        operands = list(condition.values()) if isinstance(condition, Mapping) else [condition]
        comparisons += len(operands)
        characters += len(field_name)
        for operand in operands:
            listed = operand if isinstance(operand, list) else [operand]
            values += len(listed)
            characters += sum(len(value) for value in listed if isinstance(value, str))
    limits = (
        (comparisons, MOST_CONDITIONS, "conditions"),
        (values, MOST_VALUES, "values in its conditions"),
        (characters, MOST_CONDITION_CHARACTERS, "characters in its conditions"),
    )
    for count, most, noun in limits:
        if count > most:
            problem = f"the search has {count:,} {noun}"
            raise QueryError(problem, hint=f"at most {most:,} are taken")

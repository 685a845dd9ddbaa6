"""What a request of somebody else may cost: how much it may ask for, and a time after which the work for it ends.

Python cannot stop a thread from outside. Long work therefore asks from time to time whether its time is over, between
steps that each take milliseconds: a word that is corrected, a query that is ranked, a few documents that are read.
Without a deadline, as in a program that uses the library, nothing ends early.
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
# Characters of an id. Ids of files are their paths, which systems limit to 4,096 bytes.
LONGEST_ID = 4_096
# Conditions of one search, values that they name, and characters of a name or a value and of all of them. A page sends
# a handful; programs list what a user may see, at most a few hundred groups or ids.
MOST_CONDITIONS = 32
MOST_VALUES = 1_000
LONGEST_VALUE = 1_000
MOST_CONDITION_CHARACTERS = 50_000

_end: ContextVar[float] = ContextVar("_end", default=inf)  # on the clock of time.monotonic


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Work inside the block ends with a TooSlowError soon after so many seconds; an earlier deadline stays.

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
    """Raise a TooSlowError if the time of this work is over: called between the steps of what may take long."""
    if time.monotonic() > _end.get():
        raise TooSlowError("this takes longer than a request may", hint="ask for less")


def check_conditions(conditions: Mapping[str, Any]) -> None:
    """Raise a QueryError if conditions of a request, in the form of the API, are more than a request may have.

    Parameters:
        conditions: What fields must be: a value, a list of values, or comparisons with either.

    Example:
        >>> check_conditions({"labels": ["space", "orbit"], "year": {">=": 2000}})
    """
    comparisons = 0
    values = 0
    characters = 0
    for name, wanted in conditions.items():
        several = list(wanted.values()) if isinstance(wanted, Mapping) else [wanted]
        comparisons += len(several)
        characters += len(name)
        for compared in several:
            items = compared if isinstance(compared, list) else [compared]
            values += len(items)
            characters += sum(len(item) for item in items if isinstance(item, str))
    limits = (
        (comparisons, MOST_CONDITIONS, "conditions"),
        (values, MOST_VALUES, "values in its conditions"),
        (characters, MOST_CONDITION_CHARACTERS, "characters in its conditions"),
    )
    for number, most, what in limits:
        if number > most:
            raise QueryError(
                f"the search has {number:,} {what}", hint=f"at most {most:,} are taken"
            )

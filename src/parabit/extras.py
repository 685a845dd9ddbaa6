"""Libraries that only some parts of parabit use, each in an extra of its own."""

from importlib import import_module
from types import ModuleType

from parabit.errors import ParabitError


def need(library: str, extra: str, error: type[ParabitError] = ParabitError) -> ModuleType:
    """A library; an error with what to install where it is missing.

    Example:
        >>> need("a_library_of_nobody", "baselines")
        Traceback (most recent call last):
        parabit.errors.ParabitError: a_library_of_nobody is not installed; pip install 'parabit[baselines]'
    """
    try:
        return import_module(library)
    except ImportError as problem:
        name = library.partition(".")[0]
        raise error(f"{name} is not installed", hint=f"pip install 'parabit[{extra}]'") from problem

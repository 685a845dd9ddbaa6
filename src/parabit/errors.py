"""The errors that parabit raises on purpose: each says what was wrong, what was found and what to do; late imports."""

from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class ParabitError(Exception):
    """An expected failure; the command line shows its text instead of a traceback.

    `hint` is the remedy, kept separate so that a caller can format the two as it likes.

    Example:
        >>> str(ParabitError("no such model: news-128", hint="train it with `parabit train`"))
        'no such model: news-128; train it with `parabit train`'
    """

    def __init__(self, problem: str, hint: str = "") -> None:
        self.problem = problem
        self.hint = hint
        super().__init__(f"{problem}; {hint}" if hint else problem)


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The hint for a mistyped name; empty if no known name is similar."""
    from difflib import get_close_matches  # here: each parser process imports this module

    close = get_close_matches(given, known, n=1)
    return f"did you mean {close[0]}?" if close else ""


def folder_like(path: "Path") -> str:
    """The hint for a folder that does not exist: one beside it with a similar name; empty if there is none."""
    beside = () if path.exists() else islice(path.parent.glob("*"), 1000)
    return did_you_mean(str(path), [str(other) for other in beside if other.is_dir()])


def need(library: str, extra: str, error: type[ParabitError] = ParabitError) -> ModuleType:
    """Import a library that only some parts of parabit use; the error says what to install."""
    try:
        return import_module(library)
    except ImportError as problem:
        name = library.partition(".")[0]
        hint = f"run pip install '.[{extra}]' in a copy of the repository"
        raise error(f"{name} is not installed", hint) from problem


def lazy(package: str, **modules: str) -> Callable[[str], Any]:
    """A package's `__getattr__`: the names of some modules are imported on first use, as they take long to load."""

    def find(name: str) -> Any:
        for module, names in modules.items():
            if name in names.split():
                return getattr(import_module(f"{package}.{module}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


class CorpusError(ParabitError, ValueError):
    """Documents that cannot be read, or not with these options, or a data set that cannot be downloaded."""


class UnreadableError(CorpusError):
    """A file, or a record in it, that cannot be read. `reason` begins with its kind; details follow after a colon."""

    def __init__(self, name: str, reason: str, hint: str = "", line: int | None = None) -> None:
        super().__init__(f"{name}{'' if line is None else f', line {line}'}: {reason}", hint)
        self.name, self.reason, self.line = name, reason, line


class UnknownOriginError(CorpusError):
    """An index that says where its files are, but was moved, copied, or made by somebody else."""

    def __init__(self, folder: "Path", paths: list[str]) -> None:
        import shlex  # here: each parser process imports this module

        self.paths = paths  # where its files seem to be
        problem = (
            f"{folder} was moved or copied, or somebody else made it; "
            f"it says that its files are in {', '.join(paths)}, and nothing was read"
        )
        command = shlex.join(["parabit", "sync", str(folder), "--from", *paths[:1]])
        super().__init__(problem, hint=f"if that is right, say so: {command}")


class VocabularyError(ParabitError, ValueError):
    """A vocabulary that cannot be built, read, or used with what it was given."""


class TrainingError(ParabitError, ValueError):
    """Parameters that make no sense, or training that cannot start or continue."""


class CodesError(ParabitError, ValueError):
    """Bits that cannot be packed, or codes that do not fit together."""


class EvaluationError(ParabitError, ValueError):
    """Documents that cannot be scored: labels, codes or vectors that do not fit, or nothing to find."""


class BaselineError(ParabitError, ValueError):
    """A baseline that cannot be fitted or used with what it was given, or whose library is not installed."""


class Interrupted(KeyboardInterrupt):
    """Work that a signal stopped; a message says what was saved."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number  # of the signal


class ModelError(ParabitError, ValueError):
    """A model folder that cannot be read, or a model that cannot do what was asked."""


class QueryError(ParabitError, ValueError):
    """Something is asked for that makes no sense."""


class TooSlowError(ParabitError):
    """Work that was ended because the time that it was given is over."""


class IndexFolderError(ParabitError, ValueError):
    """An index folder that cannot be read or written, or documents that cannot be added or removed."""


class IndexDamagedError(IndexFolderError):
    """A file of an index that is not what was written, read twice with the same result."""


class LockedError(IndexFolderError):
    """An index that another process is writing."""


class OverwrittenError(IndexFolderError):
    """Another index was written over the one that is open, in the middle of a search."""


class WordsMissingError(IndexFolderError):
    """A word index that cannot be opened, and that this process may not build again."""


class ClusterError(ParabitError, RuntimeError):
    """A Ray cluster that cannot be reached or does not fit, or work on it that could not be finished."""

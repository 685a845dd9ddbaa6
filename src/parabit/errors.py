"""The errors that parabit raises on purpose: each says what was wrong, what was found and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class ParabitError(Exception):
    """A failure that parabit foresaw; the command line shows its text in place of a traceback.

    `hint` is the remedy, kept apart so that a caller can lay the two out as it likes.

    Example:
        >>> str(ParabitError("no such model: news-128", hint="train it with `parabit train`"))
        'no such model: news-128; train it with `parabit train`'
    """

    def __init__(self, problem: str, hint: str = "") -> None:
        self.problem = problem
        self.hint = hint
        super().__init__(f"{problem}; {hint}" if hint else problem)


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The hint for a name that is mistyped; empty where none of those known is like it.

    Example:
        >>> did_you_mean("hybird", ["hamming", "hybrid"]), did_you_mean("best", ["hamming", "hybrid"])
        ('did you mean hybrid?', '')
    """
    close = get_close_matches(given, known, n=1)
    return f"did you mean {close[0]}?" if close else ""


class CorpusError(ParabitError, ValueError):
    """Documents that cannot be read, or not as they were asked for."""


class VocabularyError(ParabitError, ValueError):
    """A vocabulary that cannot be built, read, or used with what it was given."""


class BagsError(ParabitError, ValueError):
    """A bags folder that cannot be opened or does not belong to the vocabulary it was opened with."""


class TrainingError(ParabitError, ValueError):
    """Parameters that make no sense, or training that cannot begin or go on."""


class DownloadError(ParabitError):
    """A data set that could not be fetched whole from its official place."""


class CodesError(ParabitError, ValueError):
    """Bits that cannot be packed, or codes that do not go together."""


class EvaluationError(ParabitError, ValueError):
    """Documents that cannot be scored: labels, codes or vectors that do not fit, or nothing to find."""


class BaselineError(ParabitError, ValueError):
    """A baseline that cannot be fitted or used with what it was given, or whose library is not here."""


class Interrupted(KeyboardInterrupt):
    """Work that was stopped from outside, by a signal, with its state saved."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number  # of the signal


class ModelError(ParabitError, ValueError):
    """A model folder that cannot be read, or a model that cannot do what was asked."""


class IndexFolderError(ParabitError, ValueError):
    """An index folder that cannot be read or written, or documents that cannot go in or out of it as asked."""


class ClusterError(ParabitError, RuntimeError):
    """A Ray cluster that cannot be reached or does not fit, or work on it that could not be finished."""

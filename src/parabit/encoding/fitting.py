"""From texts to a trained network: bags, training, and a folder for what long training keeps."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from parabit.encoding.exact import statistics_of
from parabit.errors import ParabitError
from parabit.models import Shape
from parabit.progress import Report
from parabit.text import Vocabulary, VocabularyRule, build_bags
from parabit.text.build import Documents as Texts
from parabit.training import Checkpoints, Documents, Recipe, Trained, choose_device, train

_BAGS, _SCRATCH = "bags", "scratch"


class Work(NamedTuple):
    """Where long training keeps its state, and how often it saves it."""

    folder: Path
    every: float  # seconds


def fit_texts(
    texts: Texts,
    rule: VocabularyRule,
    shape: Shape,
    recipe: Recipe,
    seed: int,
    device: str,
    work: Work | None,
    identity: Mapping[str, Any],
    report: Report,
) -> tuple[Vocabulary, Trained]:
    """Count the vocabulary of texts, make their bags, and train on them.

    Files that the embeddings are mapped from may be removed afterwards: the mapping keeps them as long as it lasts.
    """
    choose_device(device)  # what is not there is told before the corpus is read
    with _work_folder(work) as folder:
        vocabulary, bags = build_bags(texts, folder / _BAGS, rule, report=report)
        documents = Documents(bags.features, bags.counts, bags.feature_offsets, bags.tokens, bags.token_offsets)
        checkpoints = None
        if work is not None:
            same = {**identity, "corpus": documents.fingerprint, "vocabulary": vocabulary.fingerprint}
            checkpoints = Checkpoints(folder, same, work.every)
        scratch = folder / _SCRATCH
        scratch.mkdir()
        trained = train(documents, statistics_of(vocabulary), shape, recipe, scratch, seed, device, checkpoints, report)
    return vocabulary, trained


@contextmanager
def _work_folder(work: Work | None) -> Iterator[Path]:
    """A temporary folder, or the caller's, in which only checkpoints outlive an end of any kind."""
    if work is None:
        with tempfile.TemporaryDirectory(prefix="parabit-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        return
    if work.folder.exists() and not is_work_folder(work.folder):
        raise ParabitError(
            f"{work.folder} is there and is something else", hint="nothing was touched; choose another name"
        )
    try:
        work.folder.mkdir(exist_ok=True)
    except OSError as problem:
        raise ParabitError(
            f"{work.folder} cannot be made: {problem.strerror}", hint="choose another place"
        ) from problem
    _clear(work.folder)  # what a kill has left
    try:
        yield work.folder
    finally:
        _clear(work.folder)
        if not any(work.folder.iterdir()):
            work.folder.rmdir()


def is_work_folder(folder: Path) -> bool:
    """Whether a folder holds what training keeps, and nothing else."""
    try:
        return all(_is_scratch(path) or Checkpoints.is_checkpoint(path) for path in folder.iterdir())
    except OSError:
        return False


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if _is_scratch(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_scratch(path: Path) -> bool:
    half_written = path.name.startswith(".") and path.name.endswith((".partial", ".old"))
    return path.name in (_BAGS, _SCRATCH) or half_written

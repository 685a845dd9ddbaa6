"""Every verb that writes, ready to be disturbed: its command, and what there may be afterwards."""

import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from isolation import NOBODY, isolated
from observation import Observation, not_allowed, not_found, observe, state_of
from world import State, World

# A name that only a run which did not end leaves behind.
_LITTER = re.compile(r"\.(partial|old)$|^\.tmp|\.tmp$|^\.(?!tantivy|managed).*\.lock$")
_SAVE = "import sys, parabit; parabit.Index.open(sys.argv[1]).save(sys.argv[2], overwrite=True)"


@dataclass(frozen=True)
class Attempt:
    """A command that is about to run, and what the index may hold when it has been stopped."""

    verb: str
    command: list[str]  # the whole one, with Python
    before: State | None  # None: there is no index
    after: State | None
    whole: bool = True  # all or nothing; if not, each document for itself
    renamed: list[tuple[str, str]] = field(default_factory=list)
    target_problem: Callable[[], str] = str  # what is wrong with another thing that it writes

    @property
    def is_command(self) -> bool:
        """Whether it is one of the command line; it is a few lines of Python if not."""
        return self.command[1] == "-m"


def prepare(verb: str, world: World) -> Attempt:
    """Change the files of a world for the next run of a verb."""
    return _PREPARE[verb](world)


def again(attempt: Attempt, world: World) -> list[str]:
    """The command with which the same verb runs once more, whatever the first run has done."""
    match attempt.verb:
        case "index":
            return [*attempt.command, "--overwrite"]
        case "add":
            # Not the same files: one of the corpus may have been removed meanwhile.
            documents = world.outside or _new_documents(world, 2)
            source = world.write_lines("more.jsonl", documents)
            return _command("add", world.index, source, "--update")
        case "delete":
            return _command("delete", world.index, min(world.indexed))
        case _:
            return attempt.command


def problems_after(
    attempt: Attempt, world: World, finished: bool, is_full: bool = False
) -> tuple[list[str], State | None, list[str]]:
    """What is wrong now; the documents that are there; and which of a reader's answers said that it is behind.

    First as a user who may not write, then as one who may, then as a writer. If the disk `is_full`, nobody can catch
    up, so that words may be behind if answers say so.
    """
    problems: list[str] = []
    state: State | None = None
    before = attempt.after if finished else attempt.before
    behind: list[str] = []
    who = {"a reader without permission": (False, NOBODY), "a reader": (False, None)}
    for name, (write, user) in (who | {"a writer": (True, None)}).items():
        ending = observe(world.index, world.numbers, write, user)
        if ending.value is None:
            if before is None and "no index in" in ending.problem:
                continue
            last = (ending.traceback or ending.errors).strip().splitlines()[-1:]
            problems.append(f"{name}: {ending.problem or last}, status {ending.status}")
            continue
        observation: Observation = ending.value
        state = state_of(observation, world.numbers)
        wrong = not_allowed(state, before, attempt.after, attempt.whole, attempt.renamed)
        wrong += not_found(observation, state, may_be_behind=is_full or user is not None)
        problems += [f"{name}: {problem}" for problem in wrong]
        if user is not None:
            behind += [note for notes in observation.notes.values() for note in notes]
    target_problem = attempt.target_problem()
    if target_problem:
        problems.append(target_problem)
    return problems, state, behind


def litter_in(folder: Path) -> list[str]:
    """The names of what killed runs have left."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if _LITTER.search(path.name)
    )


def _command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "parabit", *map(str, arguments)]


def _index(world: World) -> Attempt:
    shutil.rmtree(world.index, ignore_errors=True)
    world.indexed = {}
    world.change_files()
    command = _command("index", world.corpus, "-o", world.index, *_model_of(world))
    return Attempt("index", command, None, dict(world.files))


def _overwrite(world: World) -> Attempt:
    world.change_files()
    command = _command("index", world.corpus, "-o", world.index, "--overwrite", *_model_of(world))
    return Attempt("index --overwrite", command, dict(world.indexed), dict(world.files))


def _model_of(world: World) -> list[str]:
    """Mostly the model that is there, as learning takes longer."""
    if world.rng.random() < 0.8:
        return ["--model", str(world.model)]
    return ["--bits", "20"]


def _add(world: World) -> Attempt:
    if world.rng.random() < 0.3:
        identity = world.new_file()
        new = {identity: world.files[identity]}
        source = world.corpus / identity
    else:
        new = _new_documents(world, 5)
        source = world.write_lines("more.jsonl", new)
    after = world.indexed | new
    command = _command("add", world.index, source)
    return Attempt("add", command, dict(world.indexed), after, whole=False)


def _update(world: World) -> Attempt:
    new = _new_documents(world, 3)
    replaced = {identity: world.new_number() for identity in [*world.outside][:3]}
    source = world.write_lines("more.jsonl", new | replaced)
    command = _command("add", world.index, source, "--update")
    after = world.indexed | new | replaced
    return Attempt("add --update", command, dict(world.indexed), after, whole=False)


def _delete(world: World) -> Attempt:
    _have_outside(world)
    files = world.rng.sample(sorted(world.files.keys() & world.indexed.keys()), 2)
    for identity in files:
        world.remove_file(identity)
    deleted = [*world.rng.sample(sorted(world.outside), 3), *files]
    after = {name: number for name, number in world.indexed.items() if name not in deleted}
    return Attempt("delete", _command("delete", world.index, *deleted), dict(world.indexed), after)


def _sync(world: World) -> Attempt:
    world.change_files()
    command = _command("sync", world.index)
    return Attempt(
        "sync", command, dict(world.indexed), world.synced, whole=False, renamed=world.renamed
    )


def _compact(world: World) -> Attempt:
    return _unchanged("compact", world, _command("compact", world.index))


def _retrain(world: World) -> Attempt:
    return _unchanged("retrain", world, _command("retrain", world.index))


def _save(world: World) -> Attempt:
    copy = world.folder / "copy"
    command = [sys.executable, "-c", _SAVE, str(world.index), str(copy)]
    old = _observed_texts(copy, world)

    def target_problem() -> str:
        texts = _observed_texts(copy, world)
        if texts in (old, _observed_texts(world.index, world)):
            return ""
        return f"the copy is neither old nor new: {texts}"

    attempt = _unchanged("Index.save", world, command)
    return Attempt(
        attempt.verb, command, attempt.before, attempt.after, target_problem=target_problem
    )


def _train(world: World) -> Attempt:
    model = world.folder / "learned"
    command = _command("train", world.corpus, "-o", model, "--bits", "20", "--overwrite")

    def load() -> None:
        from parabit import ParagraphVectors

        ParagraphVectors.load(model).transform(["one text"])

    return _beside("train", world, command, model, load)


def _encode(world: World) -> Attempt:
    codes = world.folder / "codes.npy"
    command = _command("encode", world.model, world.corpus, "-o", codes, "--overwrite")
    counts = {len(world.files)}
    if codes.exists():
        counts.add(isolated(partial(_rows_of, codes)).value)

    def load() -> None:
        rows = _rows_of(codes)
        if rows not in counts:
            raise ValueError(f"{rows} codes instead of one of {counts}")

    return _beside("encode", world, command, codes, load)


def _unchanged(verb: str, world: World, command: list[str]) -> Attempt:
    """A verb that leaves all documents as they are; something is to be merged."""
    world.change_files()
    world.run("sync", world.index, "--quiet")
    world.indexed = world.synced
    return Attempt(verb, command, dict(world.indexed), dict(world.indexed))


def _beside(
    verb: str, world: World, command: list[str], path: Path, load: Callable[[], None]
) -> Attempt:
    """A verb that does not touch the index: what it writes is complete, or not there if it was not before."""
    was_there = path.exists()

    def target_problem() -> str:
        if not path.exists():
            return f"{path.name} is gone" if was_there else ""
        ending = isolated(load)
        return "" if ending.status == 0 else f"{path.name} is damaged: {ending.problem}"

    index = dict(world.indexed)
    return Attempt(verb, command, index, index, target_problem=target_problem)


def _rows_of(codes: Path) -> int:
    import numpy as np

    return len(np.load(codes))


def _observed_texts(folder: Path, world: World) -> dict[str, str] | str:
    ending = observe(folder, world.numbers, write=False)
    observation: Observation | None = ending.value
    return ending.problem if observation is None else observation.texts


def _new_documents(world: World, count: int) -> State:
    numbers = [world.new_number() for _ in range(count)]
    return {f"post{number}": number for number in numbers}


def _have_outside(world: World) -> None:
    if len(world.outside) < 6:
        new = _new_documents(world, 12)
        world.run("add", world.index, world.write_lines("more.jsonl", new), "--quiet")
        world.indexed |= new


_PREPARE: dict[str, Callable[[World], Attempt]] = {
    "index": _index,
    "index --overwrite": _overwrite,
    "add": _add,
    "add --update": _update,
    "delete": _delete,
    "sync": _sync,
    "compact": _compact,
    "retrain": _retrain,
    "Index.save": _save,
    "train": _train,
    "encode": _encode,
}
VERBS = tuple(_PREPARE)

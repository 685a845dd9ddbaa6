"""Where a plan does not work, or could be had for less."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from parabit.planning import sizes
from parabit.planning.costs import Costs
from parabit.planning.question import Question
from parabit.planning.stages import Search, Stage
from parabit.planning.training import Training
from parabit.planning.words import count, duration, size

_DAY = 24.0
_ENOUGH = 10_000_000  # documents that are a good part to train on
_FEW = 16  # documents of a worker in a step


class Warned(NamedTuple):
    """What is looked at."""

    question: Question
    training: Training
    stages: tuple[Stage, ...]
    search: Search


def warnings_of(plan: Warned) -> Iterator[str]:
    """What the reader of a plan must know, each in a sentence or two."""
    yield from _memory(plan)
    yield from _training(plan)
    yield from _index(plan)
    yield from _one_machine(plan)


def _memory(plan: Warned) -> Iterator[str]:
    training, question = plan.training, plan.question
    room, features = question.memory * 1e9, training.figures.features
    for stage in plan.stages:
        if stage.memory <= room:
            continue
        words, bookkeeping = sizes.word_tables(features, question.hidden), training.bookkeeping
        parts = ""
        if stage.name == "training":
            parts = (
                f": {size(words)} for the word matrix of {count(features)} rows, AdaGrad's sums and the best epoch's, "
                f"{size(bookkeeping)} for what each knows of every document"
            )
        yield f"{stage.name} needs {size(stage.memory)} of a worker's memory, which has {size(room)}{parts}"
        if stage.name == "training" and words > room / 2:
            yield "a higher --min-count or --max-size of train makes the word matrix smaller; --vocabulary plans it"


def _training(plan: Warned) -> Iterator[str]:
    training, question = plan.training, plan.question
    hours = plan.stages[2].hours
    busy = training.starting + training.arithmetic + training.ending
    if training.several:
        best, fewest = training.best_workers()
        if training.exchange > busy or fewest < 0.9 * hours:
            told = f"exchanging rows takes {training.exchange / busy:.2g} times as long as the arithmetic of training"
            better = "" if best == training.question.workers else f" ({duration(fewest)}); --train-workers plans it"
            yield f"{told}; of 1, 2, 4 and so on, {best} worker{'s' * (best > 1)} would train fastest{better}"
        if training.step.documents < _FEW:
            yield (
                f"a batch of {training.figures.batch} documents leaves each worker {training.step.documents:.3g} of "
                "them; --batch-size makes it larger, with codes that were not measured"
            )
    if question.trained > _ENOUGH and (hours > 7 * _DAY or training.memory > question.memory * 1e9):
        yield "codes need not be trained on all documents: --train 10M plans to train on a part and to encode all"
    saving = training.writing(training.checkpoint)
    if saving > question.checkpoint_every / 4:
        yield (
            f"a checkpoint of {size(training.checkpoint)} takes a worker {saving:.0f} s to write, every "
            f"{question.checkpoint_every:g} s; --checkpoint-every makes them rarer"
        )


def _index(plan: Warned) -> Iterator[str]:
    question = plan.question
    largest = plan.training.costs.curves["index"][-1][0]
    if plan.search.codes > largest:
        shards = -(-question.documents // int(largest))
        yield (
            f"indexes were measured up to {count(largest)} codes, so the hours of {count(plan.search.codes)} are "
            f"extrapolated; --shards {shards} plans smaller ones"
        )
    needed = plan.search.cores_needed
    if needed is not None and needed > question.workers * question.cores:
        yield (
            f"{question.queries:g} queries a second keep {needed:,.0f} cores busy with scanning, and there are "
            f"{question.workers * question.cores:,}"
        )


def _one_machine(plan: Warned) -> Iterator[str]:
    question = plan.question
    if question.workers == 1:
        return
    hours = _alone(question, plan.training.costs)
    if hours is not None and hours < _DAY:
        yield f"one worker would be enough: {duration(hours)} for all stages"
        return
    codes, room = question.documents * question.code_bytes, question.memory * 1e9
    if codes <= 4 * room:
        tables = size(codes + sizes.hashing(question.documents, question.bits))
        yield (
            f"one machine may be enough to search: {count(question.documents)} codes of {question.code_bytes} bytes "
            f"are {size(codes)}, with hash tables {tables}"
        )


def _alone(question: Question, costs: Costs) -> float | None:
    """The hours of one worker, where its memory is enough."""
    one = Training(replace(question, workers=1, train_workers=None), costs)
    stages = (one.counting(), one.bags(), one.training(), one.encoding(), one.index())
    need = max(stage.memory for stage in stages)
    return sum(stage.hours for stage in stages) if need <= question.memory * 1e9 else None

"""All that a plan takes for granted: what was measured, what is derived from it, and what is only assumed."""

from collections.abc import Iterator
from dataclasses import dataclass

from parabit.planning.costs import Costs
from parabit.planning.figures import BIGRAM_POWER, NEIGHBOURS
from parabit.planning.question import Question
from parabit.planning.training import ROUND_TRIP, Training
from parabit.planning.words import count, size

KINDS = ("measured", "derived", "assumed")


@dataclass(frozen=True)
class Assumption:
    """Something that a plan rests on."""

    kind: str  # measured, derived or assumed
    text: str


def assumptions_of(question: Question, training: Training) -> Iterator[Assumption]:
    """Each that a plan was made with, with its figures."""
    for kind, lines in (
        ("measured", _measured(training.costs)),
        ("derived", _derived(question, training)),
        ("assumed", _assumed(question, training)),
    ):
        for line in lines:
            yield Assumption(kind, line)


def _measured(costs: Costs) -> Iterator[str]:
    about = costs.about
    cpu = costs.machine.get("processor") or "an unnamed processor"
    yield (
        f"costs on one core of {cpu}, {costs.date}, with {count(about['documents'])} documents of {costs.corpus} of "
        f"{about['characters']:,.0f} characters and {about['words']:.1f} counted words"
    )
    files = sorted({source.rpartition("/")[2] for source in costs.sources.values()})
    yield f"making an index, hashing, memory of counting, threads: {', '.join(files)}"


def _derived(question: Question, training: Training) -> Iterator[str]:
    figures, costs, step = training.figures, training.costs, training.step
    yield "how these grow with documents and divide among workers; no plan was run"
    yield (
        f"a document has {figures.characters:,.0f} characters and {figures.words:.1f} words that count, "
        f"{figures.entries:.1f} of its words{' and bigrams' if question.bigrams else ''} are distinct"
    )
    if question.vocabulary is None:
        (small, few), (large, many) = costs.curves["words"][-2:]
        yield (
            f"{count(figures.features)} {'words and bigrams' if question.bigrams else 'words'} occur 5 times or more: "
            f"Heaps' law from {count(few)} words in {count(small)} tokens and {count(many)} in {count(large)}"
        )
    if training.several:
        yield (
            f"in a step of training a worker has {step.documents:.3g} of {figures.batch} documents, touches "
            f"{step.rows:,.0f} rows of the word matrix and sends them to each of {training.question.workers - 1} more, "
            f"{size(step.sent)}: {size(training.sent_an_epoch)} an epoch; so traffic grows with the workers, and each "
            "takes the step of all"
        )
    if question.cores > 1:
        yield f"{question.cores} cores train {training.faster:.1f} times as fast as one, as threads did elsewhere"
    yield "bytes of files and tables, from their formats"


def _assumed(question: Question, training: Training) -> Iterator[str]:
    several = question.workers > 1 or training.several
    network = f", a network of {question.network:g} Gbit/s" if several else ""
    yield (
        f"a worker has {question.cores} core{'s' * (question.cores > 1)} to itself (two threads of a core count as "
        f"one), {question.memory:g} GB of memory, a disk of {question.disk:g} MB/s{network}"
    )
    if question.cores > 1:
        yield "work but training divides evenly among a worker's cores; reading is done by one of them"
    yield (
        f"the default recipe on the CPU: {question.epochs} epochs, none saved by stopping early, "
        f"{training.figures.batch} documents a step, {NEIGHBOURS} neighbours, {count(question.trained)} documents"
    )
    if several:
        yield (
            f"a message goes from worker to worker in {ROUND_TRIP * 1e3:g} ms; texts are fetched over the network, a "
            "byte a character; exchanging and computing do not overlap"
        )
    if question.bigrams and question.vocabulary is None:
        yield f"bigrams grow with the power {BIGRAM_POWER:g} of the tokens beyond what was measured, at most"
    yield f"ids of {question.id_bytes:g} bytes; nothing is compressed; the index keeps no texts and no fields"
    if question.dim is not None:
        yield "the product that projects real vectors to bits is not counted"

"""What training takes: a start, epochs of steps in which workers exchange rows of the word matrix, and an end."""

from dataclasses import dataclass, replace

from parabit.planning import sizes
from parabit.planning.costs import Costs
from parabit.planning.figures import NEIGHBOURS, Figures
from parabit.planning.question import Question
from parabit.planning.stages import MAPPED_ABOVE, Stage, Working

ROUND_TRIP = 1e-4  # seconds that a message takes from worker to worker, assumed
_MESSAGES = 3  # that go round all workers in a step: how many rows, which, and their values
_LOOKED_THROUGH, _FITTED, _LEARNED_FROM = 32_768, 32_768, 65_536  # documents
# Rows that a step touches grow with this power of how much richer the vocabulary is than the measured corpus's; from 20
# Newsgroups, with words that occur 5 times and with all.
_RICHNESS = 0.5
_TRIED = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # numbers of workers


@dataclass(frozen=True)
class Step:
    """A step as one worker sees it."""

    documents: float  # its own
    rows: float  # of the word matrix that its documents and candidates touch
    all_rows: float  # that the documents of all workers touch
    arithmetic: float  # seconds on one core
    sent: float  # bytes that it gives to the others
    waiting: float  # seconds that messages are under way, whatever their size


class Training(Working):
    """The stage of training, and its parts.

    Example:
        >>> one = Training(Question(documents=10**6), Costs.shipped())
        >>> one.step.sent, one.step.rows == one.step.all_rows
        (0, True)
    """

    def __init__(self, question: Question, costs: Costs) -> None:
        super().__init__(question, costs)
        self.step = _step(question, self.figures, costs)
        self.steps = question.trained / self.figures.batch  # of an epoch

    @property
    def arithmetic(self) -> float:
        """Seconds that a worker's cores are busy in all epochs."""
        question = self.question
        scored = self.costs.seconds(completion_unit=question.hidden)
        return question.epochs * (self.steps * self.step.arithmetic + scored) / self.faster

    @property
    def faster(self) -> float:
        """How many times as fast as one core those of a worker train."""
        return self.costs.at("threads", self.question.cores) if self.question.cores > 1 else 1.0

    @property
    def exchange(self) -> float:
        """Seconds in which a worker sends, receives, adds up and waits in all epochs.

        Sending goes on while what has come is put in its place, so the slower of the two counts.
        """
        sent = self.step.sent
        busy = max(self.sending(sent), self.costs.seconds(exchange_byte=sent))
        return self.question.epochs * self.steps * (busy + self.step.waiting)

    @property
    def sent_an_epoch(self) -> float:
        """Bytes that a worker gives to the others in an epoch."""
        return self.steps * self.step.sent

    @property
    def starting(self) -> float:
        """Seconds before the first step: what documents are about, their neighbours, where they begin."""
        question, figures = self.question, self.figures
        units, own = max(question.units, 128), self.own
        candidates = min(question.trained, _LOOKED_THROUGH)
        work = self.costs.seconds(
            hash_byte=self.bags_bytes,  # each worker reads all bags once, to know what it trains on
            semantic_document_unit=min(question.trained, _FITTED) * (units + 16),
            project_entry_unit=(own + candidates) * figures.entries * units,
            neighbour_candidate=own * candidates,
            neighbour_candidate_unit=own * candidates * units,
            turn_unit_unit=question.units**2,
            begin_unit_unit=own * question.units**2,
        )
        return work / self.faster

    @property
    def ending(self) -> float:
        """Seconds after the last step, in which the first worker learns the fast encoder."""
        question, figures = self.question, self.figures
        learned = min(question.trained, _LEARNED_FROM)
        work = self.costs.seconds(
            distill_entry_unit=learned * figures.entries * question.units,
            distill_feature_unit=figures.features * question.units,
        )
        return work / self.faster

    @property
    def own(self) -> float:
        """Documents of a worker."""
        return self.question.trained / self.question.workers

    @property
    def checkpoint(self) -> float:
        """Bytes that a worker saves: all that changes, of its documents and of the words."""
        question = self.question
        words = sizes.word_tables(self.figures.features, question.hidden)
        return words + sizes.document_tables(self.own, question.units)

    @property
    def bookkeeping(self) -> float:
        """Bytes in which each worker knows how long every document is, and which are trained on."""
        return self.question.trained * self.costs.bytes["bookkeeping"]

    @property
    def memory(self) -> float:
        """Bytes of a worker: at the start, while it trains, or when the first learns the fast encoder."""
        question, features = self.question, self.figures.features
        documents = 0.0 if self.mapped else sizes.document_tables(self.own, question.units)
        around = sizes.surroundings(self.own + _LOOKED_THROUGH, question.units, NEIGHBOURS)
        fixed = self.costs.bytes["process"] + self.bookkeeping
        fixed += features * self.costs.bytes["feature_memory"]
        training = sizes.word_tables(features, question.hidden) + documents
        # The embeddings of several workers are in a file then.
        ending = training + sizes.distilling(features, question.units)
        return fixed + max(around + sizes.semantic_space(features, question.units), around + training, ending)

    @property
    def mapped(self) -> bool:
        """Whether what a worker keeps of its documents is in files, as there is too much of it for its memory."""
        tables = sizes.document_tables(self.own, self.question.units)
        return tables > MAPPED_ABOVE * self.question.memory * 1e9

    def training(self) -> Stage:
        """The whole stage: exchanging and computing do not overlap."""
        question = self.question
        cores = self.starting + self.arithmetic + self.ending
        embeddings = sizes.embeddings(question.trained, question.units)
        network = self.exchange
        if self.several:
            network += self.sending(self.bags_bytes) + self.sending(embeddings)  # which the first reads and saves
        saves = (cores + network) / question.checkpoint_every
        disk = self.writing(self.checkpoint) * saves + self.writing(embeddings)
        beside = sizes.document_tables(question.trained, question.units) if self.mapped else 0.0
        if self.several:
            beside += embeddings
        model = sizes.model(
            self.figures.features, question.hidden, question.units, self.costs.bytes["feature_name"], question.trained
        )
        traffic = question.workers * (question.epochs * self.sent_an_epoch + self.bags_bytes)
        traffic += 3 * embeddings  # written by all, read and saved by the first
        return Stage(
            "training",
            {"cores": cores, "disk": disk, "network": network},
            self.memory,
            2 * question.workers * self.checkpoint + beside + model,  # an old checkpoint goes when the new one is there
            traffic if self.several else 0.0,
            question.workers,
            one_after_the_other=True,
        )

    def best_workers(self) -> tuple[int, float]:
        """With how many workers training is fastest, of 1, 2, 4, ... 1,024 and as many as there are; and its hours."""
        tried = sorted({*_TRIED, self.question.workers})
        hours = {
            workers: Training(replace(self.question, workers=workers), self.costs).training().hours for workers in tried
        }
        best = min(hours, key=lambda workers: hours[workers])
        return best, hours[best]


def _step(question: Question, figures: Figures, costs: Costs) -> Step:
    workers, hidden, samples = question.workers, question.hidden, figures.samples
    curve = "bigram_rows" if question.bigrams else "rows"
    own = figures.batch / workers
    entries = 2 * own * figures.entries  # those of a neighbour too
    rows, all_rows = (
        min(costs.at(curve, some) * figures.richness**_RICHNESS, figures.features)
        for some in (entries, entries * workers)
    )
    arithmetic = costs.seconds(
        step=1,
        step_sample=samples,
        step_entry=entries,
        step_entry_unit=entries * hidden,
        step_candidate_unit=own * samples * hidden,
        step_row_unit=rows * hidden,
        update=1,
        update_document_unit=own * question.units,
    )
    if workers == 1:
        return Step(own, rows, rows, arithmetic + costs.seconds(update_row_unit=rows * hidden), 0, 0.0)
    # Every worker takes the step of all, and reads their rows for it.
    arithmetic += costs.seconds(update_all_row_unit=all_rows * hidden)
    sent = (rows * sizes.row_sent(hidden) + 8) * (workers - 1)
    if question.dim is not None:  # the projection to bits is added up in a ring
        sent += 2 * 4 * question.dim * question.bits * (workers - 1) / workers
    return Step(own, rows, all_rows, arithmetic, sent, _MESSAGES * (workers - 1) * ROUND_TRIP)

"""The training loop."""

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from parabit.errors import Interrupted, TrainingError
from parabit.networks import Binarization, Gradients, Network
from parabit.networks.adagrad import AdaGrad
from parabit.networks.bags import BagTable
from parabit.networks.checkpoint import Checkpoints
from parabit.networks.completion import MOST_HELD_OUT, SCORED_WORDS, halves, hold_out
from parabit.networks.documents import Documents, WordStatistics
from parabit.networks.group import ALONE, Group
from parabit.networks.inference import BATCH, Inference, Table
from parabit.networks.interrupt import listening
from parabit.networks.recipe import Recipe
from parabit.networks.room import choose_device, need_room, room_for_documents
from parabit.networks.seeds import generator
from parabit.networks.shape import Shape
from parabit.networks.starting import Surroundings, start_at_random, start_at_subjects, start_at_words, warm_up_of
from parabit.networks.tables import make_sampler, make_table
from parabit.progress import Progress, Report, silent

_GATHERED_AT_ONCE = 32  # batches
_CLEARLY = 1.05
_AGREED_EVERY = 8  # steps


@dataclass(frozen=True)
class Epoch:
    """How an epoch went: minus log likelihood of a word, on the average."""

    loss: float  # of the documents trained on
    completion: float | None  # of the unseen half of held-out documents


@dataclass
class Trained:
    """What training gives."""

    network: Network
    embeddings: Tensor  # (documents, dim); those of held-out documents are inferred
    history: list[Epoch]
    kept: int  # the epoch whose parameters these are, from 1


@dataclass
class _State:
    """All that changes while training."""

    network: Network
    tables: dict[str, AdaGrad]  # the network's tensors and the documents' embeddings
    epoch: int = 0
    step: int = 0  # of the epoch
    loss: Tensor = field(default_factory=lambda: torch.zeros(2, dtype=torch.float64))  # loss and weight of the epoch
    history: list[Epoch] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)  # parameters after the best epoch

    @property
    def best_epoch(self) -> int | None:
        """The epoch with the lowest completion loss, from 0."""
        scores = [epoch.completion for epoch in self.history if epoch.completion is not None]
        return scores.index(min(scores)) if scores else None

    @property
    def worse_epochs(self) -> int:
        """How many of the last epochs were clearly worse than the best one.

        Clearly, because the loss may stay where it is for some epochs before documents have found their codes.
        """
        best = self.best_epoch
        scores = [epoch.completion for epoch in self.history if epoch.completion is not None]
        count = 0
        while best is not None and scores[-1 - count] > scores[best] * _CLEARLY:
            count += 1
        return count


def train(
    documents: Documents,
    statistics: WordStatistics,
    shape: Shape,
    recipe: Recipe,
    scratch: Path,
    seed: int = 0,
    device: str = "auto",
    checkpoints: Checkpoints | None = None,
    report: Report = silent,
    group: Group = ALONE,
) -> Trained:
    """Train a network on a corpus.

    Embeddings that are large beside the memory are kept in files in `scratch`, which must stay as long as they are
    used. With `checkpoints`, training goes on from the last one there. Each worker of a `group` calls this with the
    same corpus, and gets the embeddings of its own documents.
    """
    try:
        return Training(documents, statistics, shape, recipe, scratch, seed, device, checkpoints, report, group).run()
    except torch.OutOfMemoryError as problem:
        raise TrainingError(
            "the GPU has too little memory",
            hint="train on the cpu, or take a smaller vocabulary, fewer samples or smaller batches",
        ) from problem


class Training:
    """One training, from its start or from a checkpoint to its end."""

    def __init__(
        self,
        documents: Documents,
        statistics: WordStatistics,
        shape: Shape,
        recipe: Recipe,
        scratch: Path,
        seed: int,
        device: str,
        checkpoints: Checkpoints | None,
        report: Report,
        group: Group = ALONE,
    ) -> None:
        if len(documents) < 2:
            raise TrainingError(
                f"a corpus of {len(documents)} document{'s' if not len(documents) else ''}",
                hint="codes are learned from what tells documents apart: give two or more",
            )
        self.group = group
        self.found = checkpoints.load(group) if checkpoints else None
        self.device = choose_device(device)
        need_room(shape, len(statistics.counts), self.device, keeps_best=bool(recipe.patience))
        self.shape, self.recipe, self.seed, self.report = shape, recipe, seed, report
        self.scratch, self.checkpoints = scratch, checkpoints
        self.chance = bool(recipe.dropout) or recipe.binarization != "rounding"  # has a step random numbers of its own
        self.statistics = statistics
        self.table = self._table(documents)
        sizes = self.table.sizes()
        trained, held = hold_out(sizes, recipe.validation, seed, MOST_HELD_OUT[shape.architecture])
        trained = trained[(sizes > 0).cpu()[trained]]
        self.first, last = group.own(len(documents))
        self.rows = last - self.first  # this worker's documents
        self.trained = trained[(trained >= self.first) & (trained < last)].to(self.device)
        self.inferred = held[(held >= self.first) & (held < last)]
        if not group.least(len(self.trained)):
            hint = "lower the minimum count" if group.alone else "take fewer workers, or lower the minimum count"
            raise TrainingError("no document has a known word", hint=hint)
        self.halves = [self._table(half) for half in halves(documents, held.numpy(), seed)] if len(held) else []
        self.warm_up = warm_up_of(documents, recipe)
        self.around: Surroundings | None = None
        if recipe.neighbours or recipe.start == "lsa":
            assert isinstance(self.table, BagTable)
            self.around = Surroundings.of(
                documents, statistics, shape, recipe, trained.numpy(), (self.first, last), seed, self.device, report
            )
            self.table.neighbours = self.around.neighbours
        self.sampler = make_sampler(statistics, recipe, self.device)
        scored = min(SCORED_WORDS, len(statistics.counts))
        sampler = make_sampler(statistics, recipe, torch.device("cpu"), scored if scored == SCORED_WORDS else 0)
        self.scored = sampler.draw(generator(seed, "completion")).to(self.device)

    def run(self) -> Trained:
        """Train to the end."""
        state = self._start()
        with listening(self.checkpoints is not None) as stop:
            saved = time.monotonic()
            while not self._finished(state):
                for step in self._steps(state):
                    self._descend(state, *step)
                    state.step += 1
                    self._tell(state)
                    due = self.checkpoints and time.monotonic() - saved >= self.checkpoints.every
                    asked, due = self._agreed(stop.asked, bool(due), state.step)
                    if asked or due:
                        self._save(state)
                        saved = time.monotonic()
                    if asked:
                        self._stopped(state, asked)
                self._end_epoch(state)
        return self._end(state)

    def _agreed(self, asked: int | None, due: bool, step: int) -> tuple[int, bool]:
        """Whether all stop or save now; workers ask each other every few steps."""
        if self.group.alone:
            return asked or 0, due
        if step % _AGREED_EVERY and step != self.steps:
            return 0, False
        signals, dues = self.group.highest([asked or 0, int(due)])
        return signals, bool(dues)

    def _steps(self, state: _State) -> Iterator[tuple[Gradients, Tensor, Tensor]]:
        """What is left of the epoch, step by step: gradients, the documents they are of, and these' embeddings."""
        steps = self.table.plan(self.trained, self.seed, state.epoch, self.group)
        # As many for all: what a worker has beyond that, part of a batch, comes at another place in the next epoch.
        self.steps = self.group.least(len(steps))
        del steps[self.steps :]
        # On a GPU a kernel's start takes longer than its work, so many batches are gathered at once.
        size = 1 if self.device.type == "cpu" else _GATHERED_AT_ONCE
        blocks = range(state.step // size, -(-len(steps) // size))

        def prepare(block: int) -> list[tuple[Tensor, Any]]:
            rng = self._rng("batch", state.epoch, block, *self.group.name)
            # The same candidates for all workers: their gradients are then those of one batch.
            drawn = rng if self.group.alone else self._rng("candidates", state.epoch, block)
            return self.table.prepare(steps[block * size : (block + 1) * size], self.sampler, rng, drawn)

        embeddings = state.tables["documents"].values
        for block in blocks:
            for number, (touched, batch) in enumerate(prepare(block), start=block * size):
                if number < state.step:  # done before the checkpoint
                    continue
                rows = touched - self.first if self.first else touched
                embedded = embeddings.index_select(0, rows.to(embeddings.device)).to(self.device)
                rng = self._rng("step", state.epoch, number, *self.group.name) if self.chance else None
                gradients = self.table.gradients(state.network, embedded, batch, state.epoch, rng)
                yield self.group.together(gradients), rows, embedded

    def _descend(self, state: _State, gradients: Gradients, touched: Tensor, embedded: Tensor) -> None:
        tables, rate = state.tables, self.recipe.word_rate
        if state.epoch >= self.warm_up:
            tables["documents"].step(gradients.embedding, self.recipe.document_rate, touched, embedded)
        tables["words"].step(gradients.words, rate, gradients.rows, gradients.current)
        if gradients.projection is not None:
            tables["projection"].step(gradients.projection, rate)
        if gradients.context is not None:
            tables["context"].step(gradients.context, rate, gradients.context_rows)
        state.loss += torch.stack([gradients.loss, gradients.weight])

    def _end_epoch(self, state: _State) -> None:
        loss, weight = self.group.total(state.loss).tolist()
        epoch = Epoch(loss / weight, self._completion())
        if not math.isfinite(epoch.loss + (epoch.completion or 0.0)):
            raise TrainingError(
                f"the loss is no longer a number in epoch {state.epoch + 1}",
                hint=f"lower the rates (documents {self.recipe.document_rate:g}, words {self.recipe.word_rate:g})",
            )
        state.history.append(epoch)
        state.epoch, state.step = state.epoch + 1, 0
        state.loss = torch.zeros_like(state.loss)
        if self.recipe.patience and state.best_epoch == state.epoch - 1:
            for name, best in state.best.items():
                best.copy_(state.tables[name].values)
        self._tell(state)

    def _completion(self) -> float | None:
        """Infer the held-out documents from one half, and score the other."""
        if not self.halves:
            return None
        given, rest = self.halves
        documents = torch.arange(len(given), device=self.device)
        loss = 0.0
        for batch in torch.split(documents, BATCH):
            embedded = self.inference.embed(given, batch)
            loss += float(self.inference.losses(rest, embedded, batch, self.scored).sum())
        return loss / float(rest.totals(documents).sum())

    def _finished(self, state: _State) -> bool:
        patience = self.recipe.patience
        return state.epoch >= self.recipe.epochs or (patience > 0 and state.worse_epochs >= patience)

    def _end(self, state: _State) -> Trained:
        """Take the best parameters if the last are clearly worse, and infer the documents that were held out."""
        kept = state.epoch
        if self.recipe.patience and state.worse_epochs:
            kept = (state.best_epoch or 0) + 1
            for name, best in state.best.items():
                state.tables[name].values.copy_(best)
        embeddings = state.tables["documents"].values
        if len(self.inferred):
            embedded = torch.cat(list(self.inference.embed_all(self.table, self.inferred.to(self.device))))
            embeddings[(self.inferred - self.first).to(embeddings.device)] = embedded.to(embeddings.device)
        return Trained(state.network, embeddings, state.history, kept)

    def _start(self) -> _State:
        """The state before the first step, or that of the last checkpoint."""
        rng = self._rng("start")
        recipe = self.recipe
        frequencies = torch.from_numpy(self.statistics.frequencies(recipe.idf_power)).to(self.device)
        network = Network.start(self.shape, Binarization.of(recipe), frequencies, recipe.embedding_start, rng)
        self.inference = Inference(
            network, make_sampler(self.statistics, recipe, torch.device("cpu")), recipe, self.seed
        )
        names = ["embeddings", "squares", *(["best"] if recipe.patience else [])]
        embeddings, squares, *best = room_for_documents(names, (self.rows, self.shape.dim), self.device, self.scratch)
        squares.fill_(recipe.accumulator_start)
        self._start_documents(embeddings)
        tables = {
            name: AdaGrad(values, torch.full_like(values, recipe.word_accumulator_start))
            for name, values in network.tensors.items()
        }
        tables["documents"] = AdaGrad(embeddings, squares)
        state = _State(network, tables, loss=torch.zeros(2, dtype=torch.float64, device=self.device))
        if best:
            state.best = {name: torch.empty_like(values) for name, values in network.tensors.items()}
            state.best["documents"] = best[0]
        if self.found is None:
            return state
        about, tensors = self.found
        for name, table in tables.items():
            table.values.copy_(tensors[name])
            table.squares.copy_(tensors[f"{name}.squares"])
        for name, values in state.best.items():
            values.copy_(tensors[f"{name}.best"])
        state.epoch, state.step = about["epoch"], about["step"]
        state.loss = tensors["loss"].clone().to(self.device)
        state.history = [Epoch(**epoch) for epoch in about["history"]]
        return state

    def _start_documents(self, embeddings: Tensor) -> None:
        recipe, name = self.recipe, self.group.name
        if recipe.start == "random":
            start_at_random(embeddings, recipe, self.seed, name)
            return
        # Alike documents begin with alike codes, so that words need not first find out what the bits are to mean.
        assert isinstance(self.table, BagTable)
        if recipe.start == "lsa":
            assert self.around is not None
            start_at_subjects(embeddings, self.table, self.around, recipe, self.seed, self.first, name)
        else:
            start_at_words(embeddings, self.table, recipe, len(self.statistics.counts), self.seed, self.first)
        self.around = None  # it is not needed any more, and large

    def _save(self, state: _State) -> None:
        assert self.checkpoints is not None
        tensors = {"loss": state.loss}
        for name, table in state.tables.items():
            tensors |= {name: table.values, f"{name}.squares": table.squares}
        tensors |= {f"{name}.best": best for name, best in state.best.items()}
        about = {"epoch": state.epoch, "step": state.step, "history": [asdict(epoch) for epoch in state.history]}
        self.checkpoints.save(state.epoch * self.steps + state.step, tensors, about, self.group)

    def _stopped(self, state: _State, number: int) -> None:
        assert self.checkpoints is not None
        where = f"in epoch {state.epoch + 1} of {self.recipe.epochs}"
        raise Interrupted(f"interrupted {where}; all is saved in {self.checkpoints.folder}", number)

    def _tell(self, state: _State) -> None:
        share = (state.epoch + state.step / self.steps) / self.recipe.epochs
        done = round((state.epoch + state.step / self.steps) * len(self.trained))
        note = ""
        if state.history:
            last = state.history[-1]
            note = f"epoch {state.epoch + 1} of {self.recipe.epochs}, loss {last.loss:.3f}"
            note += "" if last.completion is None else f", completion {last.completion:.3f}"
        self.report(Progress("training", done, "documents", share, note))

    def _table(self, documents: Documents) -> Table:
        return make_table(documents, self.statistics, self.shape, self.recipe, self.device)

    def _rng(self, *name: str | int, device: torch.device | None = None) -> torch.Generator:
        return generator(self.seed, *name, device=device or self.device)

"""Training: AdaGrad on sampled gradients, in random order, with checkpoints of its whole state; and inference.

Randomness: every step draws from a generator of its own, named after the step, and not from one that has been used
before it. So training can go on from any checkpoint as if it had never stopped.
"""

import json
import math
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from parabit.errors import Interrupted, TrainingError
from parabit.networks.config import Recipe, Shape
from parabit.networks.dbow import BagTable
from parabit.networks.dm import PositionTable
from parabit.networks.grouping import as_tensor, steady_matmul
from parabit.networks.network import Binarization, Candidates, Network, WordSampler
from parabit.progress import Progress, Report, silent
from parabit.storage import CHECKPOINT, remove, remove_leftover_checkpoints, whole_folder
from parabit.text.bags import Bags, row_offsets
from parabit.untrusted import (
    OBJECT,
    Rule,
    check_object,
    is_number,
    list_of,
    need_regular,
    read_object,
    whole,
)

Table = BagTable | PositionTable

_ABOUT = "about.json"
_NAME = re.compile(rf"{CHECKPOINT}\d{{12,}}")  # as `Checkpoints.save` makes it
# Of about.json: the parameters, stop words among them, and a line for each epoch.
_MOST_BYTES = 16 << 20
_TENSOR_NAME = Rule(
    lambda value: isinstance(value, str) and re.fullmatch(r"[a-z]+(\.[a-z]+)?", value) is not None,
    "the name of a tensor",
)
_EPOCH = Rule(
    lambda value: isinstance(value, dict) and list(value) == ["loss"] and is_number(value["loss"]),
    "an object with the loss",
)
_RULES = {
    "identity": OBJECT,
    "tensors": list_of(_TENSOR_NAME),
    "epoch": whole(),
    "step": whole(),
    "history": list_of(_EPOCH),
}
_DRAWN_ON_GPU = 32  # steps whose words are sampled at once: on a GPU, starting a kernel takes longer than its work

# Always this many documents at once, padded if there are fewer: libraries choose the order of additions by the
# number of rows, and a document's code must not depend on the documents beside it.
_INFERRED = 256


class Checkpoints:
    """A folder with the last checkpoint of one training run.

    `identity` is everything that decides the outcome: a checkpoint of another run is refused, with the differences.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], every: float = 60.0) -> None:
        self.folder = folder
        self.every = every  # seconds
        self._identity = json.loads(json.dumps(identity))  # as it will be read back

    def save(self, step: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write the state after this many steps, then delete the one before; a kill leaves one of the two."""
        self.folder.mkdir(exist_ok=True)
        older = self._folders()
        new = self.folder / f"{CHECKPOINT}{step:012d}"
        if new in older:
            return  # the state after the same steps is the same
        remove_leftover_checkpoints(self.folder)
        with whole_folder(new) as partial:
            for name, tensor in tensors.items():
                np.save(partial / f"{name}.npy", tensor.numpy(force=True))
            stored = {"identity": self._identity, "tensors": sorted(tensors), **about}
            (partial / _ABOUT).write_text(json.dumps(stored, indent=2))
        for folder in older:
            remove(folder)

    def load(
        self, state: Mapping[str, Tensor] | None = None
    ) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """The last state, or None; tensors are memory-mapped, to be copied.

        Parameters:
            state: Tensors of this training run; those of the checkpoint must have the same names,
                types and shapes. None takes whatever they are.
        """
        folders = self._folders()
        if not folders:
            return None
        latest = folders[-1]
        try:
            about = read_object(latest / _ABOUT, _MOST_BYTES)
            check_object(about, _RULES)
            theirs: dict[str, Any] = about["identity"]
            tensors = {name: _read_tensor(latest / f"{name}.npy") for name in about["tensors"]}
        except (OSError, EOFError, ValueError, TypeError) as problem:
            raise _damaged(latest) from problem
        ours = self._identity
        differences = [
            f"{name} was {theirs.get(name)!r}, now {ours.get(name)!r}"
            for name in sorted(theirs.keys() | ours)
            if theirs.get(name) != ours.get(name)
        ]
        if differences:
            refused = f"the checkpoint in {self.folder} is from another training run: {'; '.join(differences)}"
            raise TrainingError(
                refused, hint="use the same corpus and parameters, or delete it to start over"
            )
        if state is not None and _forms(state) != _forms(tensors):
            raise _damaged(latest)
        return about, tensors

    def forget(self) -> None:
        """Start over."""
        remove_leftover_checkpoints(self.folder)
        for folder in self._folders():
            remove(folder)

    def _folders(self) -> list[Path]:
        """The folders of checkpoints, the last one at the end."""
        return sorted(
            path
            for path in self.folder.glob(f"{CHECKPOINT}*")
            if _NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
        )


def _damaged(folder: Path) -> TrainingError:
    return TrainingError(f"the checkpoint {folder} is damaged", hint="delete it to start over")


def _read_tensor(path: Path) -> Tensor:
    """A memory-mapped tensor; a file that is shorter than its header says is an error."""
    need_regular(path)
    return torch.from_numpy(np.lib.format.open_memmap(path, mode="c"))


def _forms(tensors: Mapping[str, Tensor]) -> dict[str, tuple[torch.dtype, torch.Size]]:
    return {name: (tensor.dtype, tensor.shape) for name, tensor in tensors.items()}


class Trained(NamedTuple):
    """The result of training."""

    network: Network
    embeddings: Tensor  # (documents, dim); zero for documents without a known word
    history: list[dict[str, float]]  # of each epoch its loss: minus log likelihood per word


@contextmanager
def _gpu_memory_errors() -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError as problem:
        hint = "train on the cpu, or use a smaller vocabulary, fewer samples or smaller batches"
        raise TrainingError("the GPU has too little memory", hint) from problem


@_gpu_memory_errors()
def train(
    documents: Bags,
    counts: NDArray[np.int64],
    shape: Shape,
    recipe: Recipe,
    *,
    seed: int = 0,
    device: str = "auto",
    checkpoints: Checkpoints | None = None,
    report: Report = silent,
) -> Trained:
    """Train a network on a corpus; `counts` is how often each word occurs in it: (vocabulary,).

    With `checkpoints`, training continues from the last one there; Ctrl-C and SIGTERM then save the state before they
    stop it.
    """
    if len(documents) < 2:
        raise TrainingError(f"too few documents: {len(documents)}", hint="train on two or more")
    place = choose_device(device)
    table = make_table(documents, counts, shape, recipe, place)
    known = table.lengths.nonzero().squeeze(1)  # (known,) documents with at least one known word
    if not len(known):
        raise TrainingError("no document has a known word", hint="lower the minimum count")
    frequencies = as_tensor(counts, place).float()  # (vocabulary,)
    sampler = make_sampler(frequencies, recipe)

    network = Network.start(shape, recipe, frequencies, generator(seed, "start", device=place))
    embeddings = _start_embeddings(table.lengths, shape.dim, recipe.embedding_start, seed)
    parameters = network.tensors | {"documents": embeddings}
    starts = dict.fromkeys(network.tensors, recipe.word_accumulator_start) | {
        "documents": recipe.accumulator_start
    }
    tables = {
        name: AdaGrad(tensor, starts[name], recipe.row_rates) for name, tensor in parameters.items()
    }

    # Everything that changes; the step and the loss (minus log likelihood, number of words) are those of the epoch.
    epoch, step, history = 0, 0, list[dict[str, float]]()
    loss = torch.zeros(2, dtype=torch.float64, device=place)
    state = {
        "loss": loss,
        **parameters,
        **{f"{name}.squares": own.squares for name, own in tables.items()},
    }
    if checkpoints and (checkpoint := checkpoints.load(state)):
        about, saved_tensors = checkpoint
        epoch, step, history = about["epoch"], about["step"], about["history"]
        for name, tensor in state.items():
            tensor.copy_(saved_tensors[name])

    with stop_signals(checkpoints is not None) as signals:
        saved = time.monotonic()
        while epoch < recipe.epochs:
            number = epoch + 1
            network.binarization = Binarization.of(recipe, epoch)
            order = torch.randperm(len(known), generator=generator(seed, "order", epoch)).to(place)
            steps = table.plan(known[order], recipe.batch_size)
            for chosen, batch in _batches(table, steps, step, sampler, seed, epoch):
                embedded = embeddings.index_select(0, chosen)  # (batch, dim)
                rng = generator(seed, "step", epoch, step, device=place)
                gradients = batch.gradients(network, embedded, recipe.dropout, rng)
                penalty = recipe.document_prior * batch.share * embedded  # (batch, dim)

                tables["documents"].step(
                    gradients.embedding + penalty, recipe.document_rate, chosen
                )
                for name, (gradient, rows) in gradients.shared.items():
                    rate = recipe.projection_rate if name == "projection" else recipe.word_rate
                    tables[name].step(gradient, rate, rows)

                step += 1
                loss += torch.stack([gradients.loss, gradients.weight])
                if step == len(steps):
                    history.append({"loss": _mean_loss(loss, number, recipe)})
                    loss.zero_()
                    epoch, step = number, 0
                report(_progress(epoch + step / len(steps), len(known), history, recipe.epochs))
                if checkpoints and (signals or time.monotonic() - saved >= checkpoints.every):
                    about = {"epoch": epoch, "step": step, "history": history}
                    checkpoints.save(epoch * len(steps) + step, state, about)
                    saved = time.monotonic()
                    if signals:
                        where = f"in epoch {number} of {recipe.epochs}"
                        raise Interrupted(
                            f"interrupted {where}; saved in {checkpoints.folder}", signals[0]
                        )
    return Trained(network, embeddings, history)


def _start_embeddings(lengths: Tensor, dim: int, scale: float, seed: int) -> Tensor:
    """The document embeddings before the first step; zero where nothing is known."""
    embeddings = torch.empty(len(lengths), dim, device=lengths.device)
    embeddings.normal_(0, scale, generator=generator(seed, "documents", device=lengths.device))
    embeddings[lengths == 0] = 0
    return embeddings


def _batches(
    table: Table, steps: list[Tensor], first: int, sampler: WordSampler, seed: int, epoch: int
) -> Iterator[tuple[Tensor, Any]]:
    """The documents and the batch of each step of an epoch, from step `first` on."""
    size = 1 if table.device.type == "cpu" else _DRAWN_ON_GPU
    for start in range(first // size * size, len(steps), size):
        some = steps[start : start + size]
        drawn = sampler.draw_each(
            len(some), generator(seed, "batch", epoch, start // size, device=table.device)
        )
        for step, candidates in list(zip(some, drawn, strict=True))[max(first - start, 0) :]:
            yield table.prepare(step, candidates)


def _mean_loss(loss: Tensor, epoch: int, recipe: Recipe) -> float:
    total, words = loss.tolist()
    if not math.isfinite(total):
        hint = f"lower the rates (documents {recipe.document_rate:g}, words {recipe.word_rate:g})"
        raise TrainingError(f"the loss is no longer a number in epoch {epoch}", hint)
    return float(total / words)


def _progress(
    done: float, documents: int, history: list[dict[str, float]], epochs: int
) -> Progress:
    """How far training has come; `done` counts epochs."""
    note = (
        f"epoch {min(int(done) + 1, epochs)} of {epochs}, loss {history[-1]['loss']:.3f}"
        if history
        else ""
    )
    return Progress("training", round(done * documents), "documents", done / epochs, note)


class AdaGrad:
    """A table of parameters, each with the sum of its squared gradients (Duchi et al. 2011).

    Or each row with the sum of their means, which keeps the direction of the gradient.
    """

    def __init__(self, values: Tensor, start: float, by_row: bool = False) -> None:
        self.values = values
        self.squares = torch.full_like(values[:, :1] if by_row else values, start)

    def step(self, gradient: Tensor, rate: float, rows: Tensor | None = None) -> None:
        """Step against the gradient of the whole table or of some rows, each at most once."""
        by_row = self.squares.shape != self.values.shape
        squared = gradient.square().mean(1, keepdim=True) if by_row else gradient.square()
        if rows is None:
            self.squares += squared
            self.values.addcdiv_(gradient, self.squares.sqrt(), value=-rate)
            return
        squares = self.squares.index_select(0, rows).add_(squared)
        self.squares.index_copy_(0, rows, squares)
        values = self.values.index_select(0, rows).addcdiv_(gradient, squares.sqrt_(), value=-rate)
        self.values.index_copy_(0, rows, values)


def generator(seed: int, *name: str | int, device: torch.device | str = "cpu") -> Generator:
    """The random numbers for what has this name."""
    digest = blake2b(repr((seed, *name)).encode(), digest_size=8).digest()
    return Generator(device).manual_seed(int.from_bytes(digest) >> 1)


def choose_device(name: str) -> torch.device:
    """The device with this name: cpu, cuda, or auto for cuda if there is a GPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise TrainingError(f"no device {name!r}", hint="choose cpu, cuda or auto")
    if name == "cuda" and not torch.cuda.is_available():
        raise TrainingError("torch finds no GPU for device cuda", hint="use cpu or auto")
    return torch.device(name)


def make_table(
    documents: Bags, counts: NDArray[np.int64], shape: Shape, recipe: Recipe, device: torch.device
) -> Table:
    """The documents' words on a device: as bags, or in order."""
    if shape.architecture == "dm":
        return PositionTable(documents, len(counts), shape, device)
    if recipe.min_occurrences > 1:
        frequent = counts[documents.features] >= recipe.min_occurrences  # (entries,)
        offsets = row_offsets(frequent.astype(np.int64))[documents.feature_offsets]
        documents = Bags.of_counts(
            documents.features[frequent], documents.counts[frequent], offsets
        )
    return BagTable(documents, device)


def make_sampler(frequencies: Tensor, recipe: Recipe) -> WordSampler:
    """What draws the candidates of the softmax: never words that training ignores."""
    used = frequencies * (frequencies >= recipe.min_occurrences)
    return WordSampler(used, recipe.samples, recipe.sampling_power)


@contextmanager
def stop_signals(active: bool) -> Iterator[list[int]]:
    """Take Ctrl-C, SIGTERM and a closed terminal as a request to stop soon, added to a list; the second stops at once.

    Only the main thread can receive signals; in other threads nothing changes.
    """
    received: list[int] = []
    if not active or threading.current_thread() is not threading.main_thread():
        yield received
        return
    wanted = [
        signal.SIGINT,
        signal.SIGTERM,
        *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []),
    ]
    # A signal that is ignored, as nohup does with SIGHUP, stays ignored.
    before = {
        number: signal.getsignal(number)
        for number in wanted
        if signal.getsignal(number) is not signal.SIG_IGN
    }

    def receive(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, receive)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:  # it came after the last step, where nobody looked any more
        signal.raise_signal(received[0])


class NetworkEncoder:
    """Infers embeddings and bits of new documents with a trained network: AdaGrad on each one's own embedding.

    What a document gets depends on the document and the model alone: embeddings start at zero and take a fixed number
    of steps, with the same sampled words for every document. Without a known word it stays at zero, and so its bits.
    """

    def __init__(
        self, network: Network, counts: NDArray[np.int64], recipe: Recipe, seed: int
    ) -> None:
        self.network, self.recipe, self._counts = network, recipe, counts
        # Drawn on the CPU, so that they are the same on every device.
        sampler = make_sampler(as_tensor(counts, torch.device("cpu")).float(), recipe)
        drawn = (
            sampler.draw(generator(seed, "inference", number))
            for number in range(recipe.inference_rounds)
        )
        self._candidates = [
            Candidates(*(part.to(network.words.device) for part in parts)) for parts in drawn
        ]

    def embed(self, documents: Bags) -> NDArray[np.float32]:
        """The embeddings of documents: (documents, dim)."""
        network, recipe, device = self.network, self.recipe, self.network.words.device
        table = make_table(documents, self._counts, network.shape, recipe, device)
        found = np.zeros((len(documents), network.shape.dim), dtype=np.float32)
        for start in range(0, len(documents), _INFERRED):
            batch = torch.arange(start, min(start + _INFERRED, len(documents)), device=device)
            wanted: Any = table.wanted(network, batch, _INFERRED)
            embedded = torch.zeros(_INFERRED, network.shape.dim, device=device)
            adagrad = AdaGrad(embedded, recipe.accumulator_start, recipe.row_rates)
            for candidates in self._candidates:
                gradient = wanted.gradient(network, embedded, candidates)
                rate = recipe.inference_rate or recipe.document_rate
                adagrad.step(gradient + recipe.document_prior * embedded, rate)
            found[start : start + len(batch)] = embedded[: len(batch)].numpy(force=True)
        return found

    def activations(self, embedded: NDArray[np.float32]) -> NDArray[np.float32]:
        """The layer before the sigmoid, of embeddings: (documents, bits). A bit is on where it is above zero."""
        if self.network.projection is None:
            return embedded
        rows = torch.from_numpy(np.ascontiguousarray(embedded)).to(self.network.words.device)
        return steady_matmul(rows, self.network.projection).numpy(force=True)

"""Several workers that train one model: each has its own documents, and all have the same words.

A worker's documents and their embeddings stay with it. What all share, the word matrix and what else the network has,
is replicated. In every step the gradients of the rows that any worker touched are added up, and all take the same step:
it is one training whose batches are put together, so that it ends as well with four workers as with one.

Averaging the parameters every few steps was tried, and so was adding up their changes; both sent more and ended worse.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from parabit.errors import LostWorkerError
from parabit.networks import Gradients

# A worker that ends is noticed at once, by its connections. One that is silent may have more to do than the others, as
# the first has that counts the corpus: so this is long.
PATIENCE = timedelta(hours=24)
_START = timedelta(minutes=5)  # within which all workers must be there


@dataclass
class Group:
    """The workers of a training, seen from one of them; by default there is only that one.

    Example:
        >>> Group().own(10)
        (0, 10)
        >>> [Group(rank, 4).own(10) for rank in range(4)]
        [(0, 2), (2, 5), (5, 7), (7, 10)]
    """

    rank: int = 0
    size: int = 1
    sent: int = 0  # bytes that this worker has given away

    @property
    def alone(self) -> bool:
        """Whether there is nobody else."""
        return self.size == 1

    @property
    def name(self) -> tuple[int, ...]:
        """What tells a worker's random numbers from the others'; nothing where it is alone."""
        return () if self.alone else (self.rank, self.size)

    def own(self, documents: int) -> tuple[int, int]:
        """The first of this worker's documents, and the one after the last."""
        return documents * self.rank // self.size, documents * (self.rank + 1) // self.size

    def least(self, number: int) -> int:
        """The smallest of the workers' numbers."""
        return -self.highest([-number])[0]

    def highest(self, numbers: Sequence[int]) -> list[int]:
        """The largest of each of the workers' numbers."""
        highest: list[int] = self._reduced(torch.tensor(numbers), dist.ReduceOp.MAX).tolist()
        return highest

    def total(self, values: Tensor) -> Tensor:
        """The sum of the workers' tensors."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def gathered(self, value: Any) -> list[Any]:
        """What each worker has, in their order; for small things."""
        if self.alone:
            return [value]
        found: list[Any] = [None] * self.size
        with _others():
            dist.all_gather_object(found, value)
        return found

    def wait(self) -> None:
        """Go on when all are here."""
        if not self.alone:
            with _others():
                dist.barrier()

    def together(self, gradients: Gradients) -> Gradients:
        """A step's gradients added up over the workers; those of the documents stay as they are."""
        if self.alone:
            return gradients
        rows, words = self._added(gradients.rows, gradients.words)
        context_rows, context = gradients.context_rows, gradients.context
        if context_rows is not None and context is not None:
            context_rows, context = self._added(context_rows, context)
        projection = None if gradients.projection is None else self.total(gradients.projection)
        return gradients._replace(
            rows=rows, words=words, current=None, projection=projection, context_rows=context_rows, context=context
        )

    def _added(self, rows: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of all workers, each once, with the sums of their values; added in the workers' order, so that the
        sums are the same everywhere."""
        counts = [int(count) for count in self._all(torch.tensor([len(rows)], device=rows.device))]
        missing = max(counts) - len(rows)
        all_rows = self._all(torch.nn.functional.pad(rows, (0, missing)))
        all_values = self._all(torch.nn.functional.pad(values, (0, 0, 0, missing)))
        joined = torch.cat([part[:count] for part, count in zip(all_rows, counts, strict=True)])
        found, place = torch.unique(joined, return_inverse=True)
        added = torch.zeros(len(found), values.shape[1], dtype=values.dtype, device=values.device)
        for part, count, where in zip(all_values, counts, torch.split(place, counts), strict=True):
            added.index_add_(0, where, part[:count])
        return found, added

    def _all(self, mine: Tensor) -> list[Tensor]:
        """A tensor of each worker, all of one shape."""
        found = [torch.empty_like(mine) for _ in range(self.size)]
        with _others():
            dist.all_gather(found, mine)
        self.sent += mine.nbytes * (self.size - 1)
        return found

    def _reduced(self, values: Tensor, operation: Any) -> Tensor:
        if self.alone:
            return values
        reduced = values.clone()
        with _others():
            dist.all_reduce(reduced, operation)
        self.sent += 2 * reduced.nbytes * (self.size - 1) // self.size  # what a ring sends
        return reduced


ALONE = Group()


def join_group(device: str) -> Group:
    """The group that torchrun or Ray has started this process in; alone where there is none."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return ALONE
    on_gpu = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    if on_gpu:  # each worker of a machine has its own
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    if not dist.is_initialized():
        with _others():
            store, rank, size = next(rendezvous("env://", timeout=_START))
            backends = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
            dist.init_process_group(
                backends, timeout=PATIENCE, store=unused_part(store, rank, size), rank=rank, world_size=size
            )
    return Group(dist.get_rank(), dist.get_world_size())


@contextmanager
def _others() -> Iterator[None]:
    """What is asked of the other workers; torch has a plain RuntimeError for each way in which they can fail."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).strip().partition("\n")[0]
        raise LostWorkerError(
            f"another worker of the group is lost, and with it this one ends: {reason}",
            hint="start them again to go on from the last checkpoint",
        ) from error


def unused_part(store: Store, rank: int, size: int) -> Store:
    """A part of the launcher's store in which nobody has written.

    torchrun gives the workers that it starts again the store of those that ended. In it lie the addresses of the dead,
    and who reads one before its new owner has written waits for nobody. So the first worker names a part by chance, and
    gives the name to each other worker that is there now: in answer to a word that only that process knows.
    """
    word = uuid4().hex
    if rank > 0:
        store.set(f"parabit/word/{rank}", word)
        name = store.get(f"parabit/name/{word}").decode()
        store.set(f"parabit/{name}/{rank}", "")
        return PrefixStore(name, store)
    limit = time.monotonic() + _START.total_seconds()
    while missing := [other for other in range(1, size) if not store.check([f"parabit/{word}/{other}"])]:
        if time.monotonic() > limit:
            raise LostWorkerError(f"of {size} workers, {len(missing)} did not come: the first of them is {missing[0]}")
        for other in missing:
            if store.check([f"parabit/word/{other}"]):  # of this process, or of the one before it
                store.set(f"parabit/name/{store.get(f'parabit/word/{other}').decode()}", word)
        time.sleep(0.02)
    return PrefixStore(word, store)

"""A program that writes to a store until it kills itself, and says what it does before and after each step.

Lines come in, a JSON object each with a folder, a seed and `calls`, or `at`; for each a process is made. It does random
things and kills itself at the `calls`-th function that is called, wherever that is; or one addition and one compaction
in which it kills itself at the `at`-th thing that it does to files. So no test depends on how fast the machine is.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from made_up_documents import batch_of, document

from parabit.index.store import Id, Store
from parabit.index.store import store as module

IDS: list[Id] = [*range(30), *map(str, range(30))]
EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.listdir"}
CALLS = {"call", "c_call"}


def operations(
    ids: Sequence[Id], has: Callable[[Sequence[Id]], Any], rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Things that can be done to an index as it is, for ever."""
    while True:
        there = [identity for identity, is_there in zip(ids, has(ids), strict=True) if is_there]
        missing = [identity for identity in ids if identity not in there]
        kind = rng.choice(["append", "delete", "update", "compact"], p=[0.3, 0.2, 0.2, 0.3])
        some = missing if kind == "append" else there
        chosen = [some[place] for place in rng.permutation(len(some))[: rng.integers(1, 6)]]
        if kind == "compact" or chosen:
            yield {"kind": str(kind), "ids": chosen, "seeds": rng.integers(0, 10**9, len(chosen)).tolist()}


def act(store: Store, operation: dict[str, Any]) -> None:
    match operation["kind"]:
        case "append" | "update":
            store.put(batch_of(dict(zip(operation["ids"], map(document, operation["seeds"]), strict=True))))
        case "delete":
            store.put(None, operation["ids"])
        case "compact":
            store.compact()


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())  # in one piece, whatever happens next


def kill_at(number: int, events: set[str]) -> Callable[..., None]:
    """A hook that kills the process at the number-th of some events; its last argument but one is the event."""
    left = number

    def count(*arguments: Any) -> None:
        nonlocal left
        if arguments[-2] in events:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return count


def work(folder: Path, seed: int, at: int | None = None, calls: int | None = None) -> None:
    module._MERGED_CHANGES = 15  # so that additions merge the log, too
    if at is not None:
        sys.addaudithook(kill_at(at, EVENTS))
    if calls is not None:
        sys.setprofile(kill_at(calls, CALLS))
    store = Store(folder, write=True)
    steps = operations(IDS, lambda ids: store.snapshot().rows_of(ids) >= 0, np.random.default_rng(seed))
    for done, operation in enumerate(steps):
        if at is not None:
            if done == 2:
                return
            operation["kind"] = "compact" if done else operation["kind"]
        say(json.dumps(operation))
        act(store, operation)
        say("done")


def serve(work: Callable[..., None]) -> None:
    """Work in a process of its own for each line, and say when it has ended."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                work(**json.loads(line))
            except BaseException as problem:
                say(f"failed {problem!r}")
            os._exit(0)
        os.waitpid(child, 0)
        say("ended")


if __name__ == "__main__":
    serve(work)

"""A program that writes to a store until it is killed, and says what it does before and after each step.

Lines come in, a JSON object each with a folder, a seed and perhaps `at`; for each a process is made that does random
things, or one addition and one compaction in which it kills itself at the `at`-th thing that it does to files.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from made_up_documents import batch_of, document

from parabit.index.store import Id, Store
from parabit.index.store import store as module

IDS: list[Id] = [*range(30), *map(str, range(30))]
EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.listdir"}


def operations(store: Store, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Things that can be done to the store as it is, for ever."""
    while True:
        there = [identity for identity, row in zip(IDS, store.snapshot().rows_of(IDS), strict=True) if row >= 0]
        missing = [identity for identity in IDS if identity not in there]
        kind = rng.choice(["append", "delete", "update", "compact"], p=[0.3, 0.2, 0.2, 0.3])
        some = missing if kind == "append" else there
        chosen = [some[place] for place in rng.permutation(len(some))[: rng.integers(1, 6)]]
        if kind == "compact" or chosen:
            yield {"kind": str(kind), "ids": chosen, "seeds": rng.integers(0, 10**6, len(chosen)).tolist()}


def act(store: Store, operation: dict[str, Any]) -> None:
    documents = dict(zip(operation["ids"], map(document, operation["seeds"]), strict=True))
    match operation["kind"]:
        case "append":
            store.put(batch_of(documents))
        case "update":
            store.put(batch_of(documents))
        case "delete":
            store.put(None, operation["ids"])
        case "compact":
            store.compact()


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())  # in one piece, whatever happens next


def work(folder: Path, seed: int, at: int | None) -> None:
    rng = np.random.default_rng(seed)
    module._MERGED_CHANGES = 15  # so that additions merge the log, too
    left = at

    def count(event: str, _: object) -> None:
        nonlocal left
        if left is not None and event in EVENTS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    store = Store.open(folder, write=True)
    say("ready")
    for done, operation in enumerate(operations(store, rng)):
        if at is not None:
            if done == 2:
                return
            operation["kind"] = "compact" if done else operation["kind"]
        say(json.dumps(operation))
        act(store, operation)
        say("done")


def serve() -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                asked = json.loads(line)
                say(str(os.getpid()))
                work(Path(asked["folder"]), asked["seed"], asked.get("at"))
            except BaseException as problem:
                say(f"failed {problem!r}")
            os._exit(0)
        os.waitpid(child, 0)
        say("ended")


if __name__ == "__main__":
    serve()

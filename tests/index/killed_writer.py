"""A program that changes an index with words until it kills itself, and says what it does before and after each step.

Lines come in, a JSON object each with a folder, a seed and `calls`, or `at`; for each a process is made. It does random
things and kills itself at the `calls`-th function that is called in the index; or one addition and one compaction in
which it kills itself at the `at`-th thing that it does to files. So no test depends on how fast the machine is.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from parabit import Document
from parabit.index import Index
from parabit.index.store import Id
from parabit.index.store import store as module

IDS: list[Id] = [f"d{number}" for number in range(40)]
EVENTS = {
    "open",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.mkdir",
    "os.truncate",
    "os.chmod",
    "os.listdir",
}


def document(identity: Id, seed: int, texts: list[str]) -> Document:
    """A document with a word of its own, and with the code of one of the texts."""
    return Document(
        str(identity),
        f"own{seed}word {texts[seed % len(texts)]}",
        (f"label{seed % 3}",),
        {"seed": seed},
    )


def operations(index: Index, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Things that can be done to an index as it is, for ever."""
    there = [identity for identity, is_there in zip(IDS, index.has(IDS), strict=True) if is_there]
    while True:
        missing = [identity for identity in IDS if identity not in there]
        kind = rng.choice(["append", "delete", "update", "compact"], p=[0.3, 0.2, 0.2, 0.3])
        some = missing if kind == "append" else there
        chosen = [some[place] for place in rng.permutation(len(some))[: rng.integers(1, 6)]]
        if kind == "compact" or chosen:
            yield {
                "kind": str(kind),
                "ids": chosen,
                "seeds": rng.integers(0, 10**9, len(chosen)).tolist(),
            }
        if kind in ("append", "delete"):
            there = (
                [*there, *chosen] if kind == "append" else [id for id in there if id not in chosen]
            )


def act(index: Index, operation: dict[str, Any], texts: list[str]) -> None:
    pairs = zip(operation["ids"], operation["seeds"], strict=True)
    documents = [document(identity, seed, texts) for identity, seed in pairs]
    match operation["kind"]:
        case "append":
            index.add(documents)
        case "update":
            index.put(documents)
        case "delete":
            index.delete(operation["ids"])
        case "compact":
            index.compact()


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())  # in one piece, whatever happens next


def kill_at(number: int, is_counted: Callable[..., bool]) -> Callable[..., None]:
    """A hook that kills the process at the number-th event that is counted."""
    left = number

    def count(*arguments: Any) -> None:
        nonlocal left
        if is_counted(*arguments):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return count


def work(
    texts: list[str], folder: str, seed: int, at: int | None = None, calls: int | None = None
) -> None:
    module._MERGED_CHANGES = 15  # so that additions merge the log, too
    if at is not None:
        sys.addaudithook(kill_at(at, lambda event, _: event in EVENTS))
    if calls is not None:
        inside = str(Path(module.__file__).parents[1])

        def is_call(frame: FrameType, event: str, _: Any) -> bool:
            return "call" in event and frame.f_code.co_filename.startswith(inside)

        sys.setprofile(kill_at(calls, is_call))
    with Index.open(Path(folder), write=True) as index:
        for done, operation in enumerate(operations(index, np.random.default_rng(seed))):
            if at is not None:
                if done == 2:
                    return
                operation["kind"] = "compact" if done else operation["kind"]
            say(json.dumps(operation))
            act(index, operation, texts)
            say("done")


if __name__ == "__main__":
    texts = json.loads(sys.argv[1])
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                work(texts, **json.loads(line))
            except BaseException as problem:
                say(f"failed {problem!r}")
            os._exit(0)
        os.waitpid(child, 0)
        say("ended")

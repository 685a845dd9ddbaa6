"""A program that changes an index with words until it is killed, and says what it does before and after each step.

Lines come in, a JSON object each with a folder and a seed; for each a process is made that does random things.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from killed_writer import say

from parabit import Document
from parabit.index import Index
from parabit.index import index as module

IDS = [f"d{number}" for number in range(40)]


def document(identity: str, seed: int, texts: list[str]) -> Document:
    """A document with a word of its own, and with the code of one of the texts."""
    return Document(identity, f"own{seed}word {texts[seed % len(texts)]}")


def act(index: Index, operation: dict[str, Any], texts: list[str]) -> None:
    pairs = zip(operation["ids"], operation["seeds"], strict=True)
    documents = [document(identity, seed, texts) for identity, seed in pairs]
    match operation["kind"]:
        case "add":
            index.add(documents)
        case "update":
            index.put(documents)
        case "delete":
            index.delete(operation["ids"])
        case "compact":
            index.compact()


def work(folder: Path, seed: int, texts: list[str]) -> None:
    rng = np.random.default_rng(seed)
    module._COMMIT_DOCUMENTS = int(rng.choice([1, 4, 1000]))
    with Index.open(folder, write=True) as index:
        index.search(texts[:1])  # reads the model
        say("ready")
        while True:
            there = [identity for identity, row in zip(IDS, index.has(IDS), strict=True) if row]
            missing = [identity for identity in IDS if identity not in there]
            kind = str(rng.choice(["add", "update", "delete", "compact"], p=[0.4, 0.3, 0.2, 0.1]))
            some = missing if kind == "add" else there
            chosen = [some[place] for place in rng.permutation(len(some))[: rng.integers(1, 6)]]
            if not chosen:
                continue
            operation = {"kind": kind, "ids": chosen, "seeds": rng.integers(0, 10**9, len(chosen)).tolist()}
            say(json.dumps(operation))
            act(index, operation, texts)
            say("done")


def serve(texts: list[str]) -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                asked = json.loads(line)
                say(str(os.getpid()))
                work(Path(asked["folder"]), asked["seed"], texts)
            except BaseException as problem:
                say(f"failed {problem!r}")
            os._exit(0)
        os.waitpid(child, 0)
        say("ended")


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))

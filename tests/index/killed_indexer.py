"""A program that changes an index with words until it kills itself, and says what it does before and after each step.

Lines come in, a JSON object each with a folder, a seed and the number of function calls after which it kills itself.
"""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from killed_writer import CALLS, kill_at, operations, say, serve

from parabit import Document
from parabit.index import Index
from parabit.index.store import Id

IDS: list[Id] = [f"d{number}" for number in range(40)]


def document(identity: Id, seed: int, texts: list[str]) -> Document:
    """A document with a word of its own, and with the code of one of the texts."""
    return Document(str(identity), f"own{seed}word {texts[seed % len(texts)]}")


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


def work(texts: list[str], folder: str, seed: int, calls: int) -> None:
    sys.setprofile(kill_at(calls, CALLS))
    with Index.open(Path(folder), write=True) as index:
        index.search(texts[:1])  # reads the model
        for operation in operations(IDS, index.has, np.random.default_rng(seed)):
            say(json.dumps(operation))
            act(index, operation, texts)
            say("done")


if __name__ == "__main__":
    serve(partial(work, json.loads(sys.argv[1])))

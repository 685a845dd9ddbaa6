"""What the paper shows and claims, read from `paper.toml`; its figures have the names of ours."""

import tomllib
from importlib.resources import files
from typing import Any

PAPER: dict[str, Any] = tomllib.loads((files("parabit.paper") / "paper.toml").read_text("utf-8"))
COLLECTIONS = ("20 Newsgroups", "RCV1", "English Wikipedia")


def published() -> dict[tuple[str, str, str, str], float]:
    """The figures of the paper's tables, by collection, job, part and metric."""
    figures = {}
    for number, collection in enumerate(COLLECTIONS):
        for name, scores in PAPER["figures"].items():
            job, part = name.split("/")
            figures[collection, job, part, "map"], figures[collection, job, part, "ndcg@10"] = scores[number]
        for name, values in PAPER["filtered"].items():
            job, part = name.split("/")
            figures[collection, job, part, "ndcg@10"] = values[number]
    for target, (precision, ndcg) in PAPER["transfer"].items():
        figures[target, "transfer", "codes", "map"], figures[target, "transfer", "codes", "ndcg@10"] = precision, ndcg
    return figures

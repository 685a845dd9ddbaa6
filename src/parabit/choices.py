"""Names to choose from, for Python and the command line alike; quick to import, so that `--help` is quick."""

from typing import Literal, get_args

Solver = Literal["closed-form", "network"]
Preset = Literal["default", "paper"]
Architecture = Literal["dbow", "dm"]
Relevant = Literal["shared", "overlap"]
Rank = Literal["hybrid", "words", "hamming", "asymmetric", "cosine"]
Backend = Literal["auto", "flat", "hashing"]
Keep = Literal["first", "longest", "newest"]  # which of several near-duplicates stays

SOLVERS: tuple[str, ...] = get_args(Solver)
PRESETS: tuple[str, ...] = get_args(Preset)
RANKS: tuple[str, ...] = get_args(Rank)
BACKENDS: tuple[str, ...] = get_args(Backend)

RELEVANCE = {  # what two documents are to each other
    "shared": "relevant if they share a label",
    "overlap": "relevant by the share of labels in common: those of both, divided by those of either",
}

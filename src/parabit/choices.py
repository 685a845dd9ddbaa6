"""Names to choose from, for Python and the command line alike; quick to import, so that `--help` is quick."""

from typing import Literal

SOLVERS = ("closed-form", "network")
PRESETS = ("default", "paper")

RELEVANCE = {  # what two documents are to each other
    "shared": "relevant if they share a label",
    "overlap": "relevant by the share of labels in common: those of both, divided by those of either",
}

RANKS = ("hybrid", "words", "hamming", "asymmetric", "cosine")
BACKENDS = ("auto", "flat", "tables", "multi")

Keep = Literal["first", "longest", "newest"]  # which of several near-duplicates stays

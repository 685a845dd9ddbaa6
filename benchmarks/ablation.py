"""What each part of the default recipe is worth, and what was tried beside it: the recipe with one thing changed.

    python benchmarks/ablation.py [--bits 128] [--processes 2]

Documents come from the training parts of five collections alone, 3,000 to train on and 1,000 others that query each
other; test documents and their labels are not looked at. A figure is the mean of three seeds, with the standard
deviation over them; a seed draws the documents, too, so each seed's recipe is compared on the same documents.
"""

import argparse
import multiprocessing
import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from common import keep, machine, run
from parabit import Document, ParagraphVectors, open_corpus
from parabit.evaluation import evaluate_codes
from parabit.parallel import cores

CORPORA = ("20newsgroups/train", "reuters21578/train", "arxiv/train", "docstrings", "enwiki/train")
SEEDS = (0, 1, 2)
TRAINED, QUERIES = 3000, 1000

CHANGES: dict[str, dict[str, Any]] = {
    "the default recipe": {},
    "without the LSA start: at random": {"start": "random", "embedding_start": 1e-3, "warm_up": 0},
    "without the LSA start: at the words": {"start": "words", "warm_up": 0},
    "without neighbours": {"neighbours": 0},
    "without idf": {"idf_power": 0.0},
    "without the length exponent": {"length_exponent": 0.0},
    "without warm-up": {"warm_up": 0},
    "without smaller batches": {"fewest_steps": 0},
    "half the epochs": {"epochs": 15},
    "the paper's recipe": {"preset": "paper"},
    "+ bigrams": {"bigrams": True},
    "+ dropout of a fifth": {"dropout": 0.2},
    "+ noise before rounding": {"binarization": "noise"},
    "+ stochastic bits, annealed": {"binarization": "straight-through-sigmoid", "slope_growth": 0.04},
    "+ flatter sampling": {"sampling_power": 0.75},
    "+ gradient inference": {"mode": "exact"},
}


class Trial(NamedTuple):
    corpus: str
    change: str
    seed: int
    bits: int


@lru_cache(maxsize=1)
def usable(corpus: str) -> list[Document]:
    """The documents that have a label and some text."""
    return [document for document in open_corpus(corpus) if document.labels and document.text.strip()]


def parts(corpus: str, seed: int) -> tuple[list[Document], list[Document]]:
    """Documents to train on and others to query."""
    documents = usable(corpus)
    chosen = np.random.default_rng(seed).permutation(len(documents))[: TRAINED + QUERIES]
    picked = [documents[number] for number in chosen]
    return picked[:TRAINED], picked[TRAINED:]


def score(trial: Trial) -> tuple[Trial, float, float]:
    """MAP and NDCG@10 of a recipe on one collection with one seed."""
    trained, queries = parts(trial.corpus, trial.seed)
    changes = CHANGES[trial.change]
    model = ParagraphVectors(bits=trial.bits, seed=trial.seed, **changes).fit([document.text for document in trained])
    codes = model.transform([document.text for document in queries])
    scores = evaluate_codes(codes, [document.labels for document in queries], trial.bits)
    return trial, scores.map, scores.ndcg


def scored(trials: list[Trial], processes: int) -> Iterator[tuple[Trial, float, float]]:
    os.environ["OMP_NUM_THREADS"] = str(max(1, cores() // processes))  # read by the new processes
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(score, trials)


def main() -> None:
    """Train everything, print the table, keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, default=128)
    parser.add_argument("--processes", type=int, default=cores())
    options = parser.parse_args()
    trials = [Trial(*one, options.bits) for one in product(CORPORA, CHANGES, SEEDS)]
    found: dict[tuple[str, str], dict[int, tuple[float, float]]] = {}
    for number, (trial, map, ndcg) in enumerate(scored(trials, options.processes), start=1):
        found.setdefault((trial.corpus, trial.change), {})[trial.seed] = (map, ndcg)
        print(f"{number} of {len(trials)}  {trial.corpus}, {trial.change}, seed {trial.seed}: {map:.3f} / {ndcg:.3f}")

    rows = []
    print("\n" + " " * 40 + "  ".join(f"{corpus.partition('/')[0]:>13}" for corpus in CORPORA))
    for change in CHANGES:
        cells: dict[str, dict[str, float]] = {}
        for corpus in CORPORA:
            values = np.array([found[corpus, change][seed] for seed in SEEDS])  # (seeds, 2)
            (map, ndcg), (map_spread, ndcg_spread) = values.mean(axis=0), values.std(axis=0, ddof=1)
            cells[corpus] = {
                "map": round(map, 4),
                "map_spread": round(map_spread, 4),
                "ndcg10": round(ndcg, 4),
                "ndcg10_spread": round(ndcg_spread, 4),
            }
        means = {key: round(float(np.mean([cell[key] for cell in cells.values()])), 4) for key in ("map", "ndcg10")}
        rows.append({"change": change, "parameters": CHANGES[change], "mean": means, "corpora": cells})
        told = "  ".join(f"{cell['map']:.3f} / {cell['ndcg10']:.3f}" for cell in cells.values())
        print(f"{change:40}{told}  {means['map']:.3f} / {means['ndcg10']:.3f}")
    keep(
        f"ablation_{options.bits}",
        {
            "command": f"python benchmarks/ablation.py --bits {options.bits}",
            "trained": TRAINED,
            "queries": QUERIES,
            "seeds": list(SEEDS),
            "rows": rows,
            "machine": machine("torch", "numpy", "scipy"),
        },
    )


if __name__ == "__main__":
    run(main)

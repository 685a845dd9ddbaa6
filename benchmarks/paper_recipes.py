"""Choose what the paper leaves open about training its networks, on validation parts of training documents.

A quarter of a collection's training documents is held out; networks are trained on the other three quarters, and the
held-out documents query each other (MAP and NDCG@10), as test documents do in the paper. No test document is read.

    python benchmarks/paper_recipes.py results/work/arrays -o benchmarks/results/paper_recipes_check.jsonl --stage check

`--stage search` draws recipes at random; `--stage check` compares those in CHECKS on several collections. One JSON
object per trained network is written: what was changed in its recipe, and the scores of each way to infer new
documents with it. The committed results are two searches on 20 Newsgroups (the first, wider one with the ranges of
an earlier version of this file) and a check on 20 Newsgroups, with and without headers, and Reuters-21578.
"""

import argparse
import itertools
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from parabit.networks.config import choose_shape, paper_recipe
from parabit.text.bags import Bags, row_offsets
from pool import each

HELD_OUT = 0.25

# name: (bits, dim, architecture, bigrams)
NETWORKS: dict[str, tuple[int | None, int | None, str, bool]] = {
    "real-128-words": (None, 128, "dbow", False),
    "real-32-words": (None, 32, "dbow", False),
    "real-128-bigrams": (None, 128, "dbow", True),
    "real-32-bigrams": (None, 32, "dbow", True),
    "binary-128-words": (128, None, "dbow", False),
    "binary-32-words": (32, None, "dbow", False),
    "binary-128-bigrams": (128, None, "dbow", True),
    "binary-32-bigrams": (32, None, "dbow", True),
    "real-binary-28": (28, 300, "dbow", True),
    "real-128-dm": (None, 128, "dm", False),
    "real-32-dm": (None, 32, "dm", False),
    "binary-128-dm": (128, None, "dm", False),
    "binary-32-dm": (32, None, "dm", False),
}
TRIED = dict.fromkeys(NETWORKS, 20) | {
    "real-128-dm": 14,
    "binary-128-dm": 10,
}
INFERENCE = [
    (rounds, factor) for rounds in (20, 60, 150) for factor in (1.0, 0.3)
]  # and share of the document rate


def draw(rng: np.random.Generator, name: str) -> dict[str, Any]:
    """A random recipe of a network, from where a wider search found good ones."""
    bits, dim, architecture, bigrams = NETWORKS[name]
    size = bits or dim

    def between(low: float, high: float) -> float:
        return float(f"{low * (high / low) ** rng.uniform():.3g}")

    def one(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    if architecture == "dm":
        base = paper_recipe(choose_shape(bits, dim, architecture), bigrams)
        return {
            "epochs": one(12, 24),
            "document_rate": between(base.document_rate / 3, base.document_rate * 2),
            "word_rate": between(base.word_rate / 2, base.word_rate * 3),
            "row_rates": one(False, True),
            "document_prior": one(0.0, 0.3, 1.0, 3.0),
            "dropout": one(0.0, 0.1, 0.2),
            "sampling_power": one(1.0, 0.75),
            "word_accumulator_start": one(1e-4, 1e-2, 1.0),
        }
    shared = {"epochs": one(80, 150), "sampling_power": one(1.0, 0.75)}
    if dim is not None and bits is not None:
        return shared | {
            "document_rate": between(0.05, 0.4),
            "word_rate": between(0.015, 0.15),
            "projection_rate": between(0.003, 0.04),
            "document_prior": one(0.1, 0.3, 1.0),
            "dropout": one(0.1, 0.3, 0.5),
            "word_accumulator_start": one(10.0, 100.0),
            "min_occurrences": one(2, 3),
        }
    few = one(1, 2, 3) if bigrams else one(1, 2)
    if bits is None:
        return shared | {
            "document_rate": between(0.03, 0.2) if size == 128 else between(0.05, 0.3),
            "word_rate": between(0.006, 0.03) if size == 128 else between(0.012, 0.07),
            "row_rates": True,
            "document_prior": one(0.0, 1.0, 3.0, 10.0),
            "dropout": one(0.0, 0.1, 0.3),
            "word_accumulator_start": one(1.0, 10.0),
            "min_occurrences": few,
        }
    return shared | {
        "document_rate": between(0.1, 0.5) if size == 128 else between(0.2, 2.0),
        "word_rate": between(0.004, 0.016) if size == 128 else between(0.012, 0.06),
        "row_rates": one(False, False, True),
        "document_prior": one(0.3, 1.0, 3.0),
        "dropout": one(0.0, 0.1, 0.2, 0.3),
        "word_accumulator_start": one(100.0, 300.0),
        "min_occurrences": max(few, 2) if bigrams else few,
    }


_REAL = {
    "epochs": 100,
    "row_rates": True,
    "sampling_power": 0.75,
    "word_accumulator_start": 1.0,
    "dropout": 0.1,
}
_BINARY = {
    "epochs": 120,
    "sampling_power": 0.75,
    "word_accumulator_start": 300.0,
    "dropout": 0.1,
    "min_occurrences": 2,
}
_BOTH = {
    "epochs": 100,
    "sampling_power": 0.75,
    "document_prior": 0.3,
    "dropout": 0.1,
    "min_occurrences": 2,
}
_DM = {"epochs": 24, "sampling_power": 0.75, "dropout": 0.1}


def _rates(
    document: float, word: float, prior: float | None = None, **others: Any
) -> dict[str, Any]:
    prior_too = {} if prior is None else {"document_prior": prior}
    return {"document_rate": document, "word_rate": word, **prior_too, **others}


# Recipes to compare with several seeds and collections, from what the search found: network, changes.
CHECKS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("real-128-words", _REAL | more)
        for more in (
            _rates(0.05, 0.02, 3.0),
            _rates(0.06, 0.013, 1.0, min_occurrences=2),
            _rates(0.13, 0.02, 3.0),
        )
    ),
    *(
        ("real-128-bigrams", _REAL | more)
        for more in (_rates(0.04, 0.02, 3.0), _rates(0.04, 0.015, 6.0), _rates(0.15, 0.01, 10.0))
    ),
    *(
        ("real-32-words", _REAL | more)
        for more in (
            _rates(0.055, 0.05, 3.0),
            _rates(0.085, 0.06, 3.0),
            _rates(0.055, 0.05, 3.0, dropout=0.05),
        )
    ),
    *(
        ("real-32-bigrams", _REAL | more)
        for more in (
            _rates(0.057, 0.04, 6.0),
            _rates(0.057, 0.04, 10.0),
            _rates(0.09, 0.06, 10.0, min_occurrences=2),
        )
    ),
    *(
        ("binary-128-words", _BINARY | more)
        for more in (_rates(0.12, 0.009, 1.0), _rates(0.12, 0.012, 0.3), _rates(0.2, 0.0067, 1.0))
    ),
    *(
        ("binary-128-bigrams", _BINARY | more)
        for more in (_rates(0.2, 0.0067, 3.0), _rates(0.12, 0.0067, 3.0), _rates(0.2, 0.009, 3.0))
    ),
    *(
        ("binary-32-words", _BINARY | more)
        for more in (_rates(1.0, 0.02, 0.3), _rates(0.65, 0.018, 3.0), _rates(0.65, 0.025, 1.0))
    ),
    *(
        ("binary-32-bigrams", _BINARY | more)
        for more in (_rates(0.35, 0.0165, 3.0), _rates(0.8, 0.018, 3.0), _rates(0.35, 0.025, 3.0))
    ),
    *(
        ("real-binary-28", _BOTH | more)
        for more in (
            _rates(0.2, 0.03, projection_rate=0.005, word_accumulator_start=30.0),
            _rates(
                0.2, 0.022, projection_rate=0.0032, word_accumulator_start=10.0, min_occurrences=3
            ),
            _rates(0.3, 0.04, projection_rate=0.01, word_accumulator_start=100.0),
            _rates(0.2, 0.03, projection_rate=0.005, word_accumulator_start=300.0, epochs=150),
        )
    ),
    *(
        ("real-128-dm", _DM | more)
        for more in (
            _rates(0.06, 0.015, 1.0, word_accumulator_start=1.0),
            _rates(0.06, 0.013, 1.0, row_rates=True, word_accumulator_start=0.1),
        )
    ),
    *(
        ("real-32-dm", _DM | more)
        for more in (
            _rates(0.11, 0.067, 0.3, row_rates=True, word_accumulator_start=0.01),
            _rates(0.11, 0.05, 1.0, row_rates=True, word_accumulator_start=0.1),
        )
    ),
    *(
        ("binary-128-dm", _DM | more)
        for more in (
            _rates(0.5, 0.0065, 0.3, word_accumulator_start=1.0),
            _rates(0.25, 0.0065, 0.3, word_accumulator_start=1.0),
        )
    ),
    *(
        ("binary-32-dm", _DM | more)
        for more in (
            _rates(0.25, 0.02, 0.3, word_accumulator_start=1.0),
            _rates(0.39, 0.02, 1.0, word_accumulator_start=0.01),
        )
    ),
]


def hold_out(path: Path, seed: int = 0, share: float = HELD_OUT) -> dict[str, Any]:
    """The training documents of a collection as two parts, in the vocabulary of the first."""
    from parabit.paper.corpora import read_prepared

    data = read_prepared(path)
    labels = data.training.labels
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    cut = round(share * len(labels))
    held = np.array(
        sorted(row for row in order[:cut] if labels[row])
    )  # without a label nothing can be scored
    trained = np.sort(order[cut:])
    documents = data.training.documents
    matrix = documents.matrix(len(data.counts))
    counts = np.bincount(matrix[trained].indices, matrix[trained].data, len(data.counts)).astype(
        np.int64
    )
    known = np.flatnonzero(counts)
    number = np.full(len(counts), -1, np.int32)
    number[known] = np.arange(len(known), dtype=np.int32)

    def part(rows: Any) -> Bags:
        chosen = matrix[rows][:, known].tocsr()
        chosen.sort_indices()
        if not len(documents.tokens):
            return Bags.of_counts(chosen.indices, chosen.data, chosen.indptr.astype(np.int64))
        tokens = [
            number[documents.tokens[slice(*documents.token_offsets[row : row + 2])]] for row in rows
        ]
        tokens = [ids[ids >= 0] for ids in tokens]
        offsets = row_offsets(np.array([len(ids) for ids in tokens]))
        return Bags(
            chosen.indices,
            chosen.data,
            chosen.indptr.astype(np.int64),
            np.concatenate(tokens),
            offsets,
        )

    return {
        "counts": counts[known],
        "trained": part(trained),
        "held": part(held),
        "labels": [labels[row] for row in held],
    }


_DATA: dict[Any, Any] = {}


def try_recipe(task: dict[str, Any], arrays: Path, device: str) -> dict[str, Any]:
    """Train a network by a recipe, and score the held-out documents."""
    from dataclasses import replace

    from parabit.codes import pack
    from parabit.evaluation import evaluate_codes, evaluate_vectors
    from parabit.networks.training import NetworkEncoder, train

    start = time.perf_counter()
    bits, dim, architecture, bigrams = NETWORKS[task["network"]]
    relevance = "shared" if task["corpus"].startswith(("20news", "enwiki")) else "overlap"
    key = (task["corpus"], bigrams)
    if key not in _DATA:
        _DATA.clear()
        _DATA[key] = hold_out(arrays / task["corpus"] / ("bigrams.npz" if bigrams else "words.npz"))
    data = _DATA[key]
    shape = choose_shape(bits, dim, architecture)
    recipe = paper_recipe(shape, bigrams, **task["changes"])
    trained = train(
        data["trained"], data["counts"], shape, recipe, seed=task["seed"], device=device
    )
    seconds = time.perf_counter() - start
    scores = {}
    for rounds, factor in task["inference"]:
        inferring = replace(
            recipe, inference_rounds=rounds, inference_rate=factor * recipe.document_rate
        )
        encoder = NetworkEncoder(trained.network, data["counts"], inferring, task["seed"])
        vectors = encoder.embed(data["held"])
        found = {}
        if bits is not None:
            codes = pack(encoder.activations(vectors) > 0)
            score = evaluate_codes(codes, data["labels"], relevance=relevance)
            found["codes"] = [round(score.map, 4), round(score.ndcg, 4)]
        if dim is not None:
            score = evaluate_vectors(vectors, data["labels"], relevance=relevance)
            found["vectors"] = [round(score.map, 4), round(score.ndcg, 4)]
        scores[f"{rounds} x {factor}"] = found
    spread = float(trained.embeddings.std())
    return task | {"scores": scores, "spread": round(spread, 3), "loss": round(trained.history[-1]["loss"], 4),
                   "train_s": round(seconds, 1), "seconds": round(time.perf_counter() - start, 1)}  # fmt: skip


def plan(stage: str, corpora: list[str], seeds: int) -> list[dict[str, Any]]:
    """The recipes to try, those that say most first."""
    tasks = []
    if stage == "search":
        rng = np.random.default_rng(1)
        for number in range(max(TRIED.values())):
            for name, count in TRIED.items():
                changes = draw(rng, name)
                if number < count:
                    tasks.append({"network": name, "changes": changes, "seed": 0})
    else:
        seeded = itertools.product(range(seeds), CHECKS)
        tasks = [
            {"network": name, "changes": changes, "seed": seed} for seed, (name, changes) in seeded
        ]
    # Workers keep one collection's arrays: nearby tasks read the same.
    # One position at a time is slow: distributed memory is inferred in two ways only.
    ways = {
        name: INFERENCE if kind != "dm" else [(20, 1.0), (60, 1.0)]
        for name, (_, _, kind, _) in NETWORKS.items()
    }
    return [
        task | {"corpus": corpus, "inference": ways[task["network"]]}
        for corpus in corpora
        for task in tasks
    ]


def main() -> None:
    """Try recipes on several processes, and write what comes back."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("arrays", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--stage", choices=["search", "check"], default="search")
    parser.add_argument("--corpus", nargs="*", default=["20newsgroups"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--small", action="store_true", help="only the first two, for one epoch, to try the script"
    )
    options = parser.parse_args()
    planned = plan(options.stage, options.corpus, options.seeds)
    if options.small:
        planned = [task | {"changes": task["changes"] | {"epochs": 1}} for task in planned[:2]]
    work = partial(try_recipe, arrays=options.arrays, device=options.device)
    with options.output.open("w") as file:
        found = each(work, planned, options.workers, time.time() + options.seconds)
        for number, (task, result) in enumerate(found, start=1):
            if isinstance(result, Exception):  # a recipe that diverges is a result
                best, row = result, task | {"failed": f"{type(result).__name__}: {result}"[:300]}
            else:
                best, row = (
                    max(result["scores"].values(), key=lambda one: sum(next(iter(one.values())))),
                    result,
                )
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(number, "/", len(planned), row["network"], best, row.get("seconds"), flush=True)


if __name__ == "__main__":
    main()

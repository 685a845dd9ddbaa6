"""What each part of the default recipe is worth, and what was tried beside it: the recipe with one thing changed.

    python benchmarks/ablation.py [--bits 128]
    python benchmarks/ablation.py --prepare FOLDER
    PYTHONPATH=src python benchmarks/ablation.py --arrays FOLDER --out ablation_128.json

Documents come from the training parts of five collections alone, 3,000 to train on and 1,000 others that query each
other; test documents and their labels are not looked at. A figure is the mean of three seeds with the standard
deviation over them; a seed draws the documents too, so that every change is compared on the same ones.

The second command, where parabit is installed and the data sets are, writes the documents as arrays. The third, where
there are torch, numpy and scipy alone, trains on them; on a GPU that takes minutes.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from common import keep, machine, run
from parabit.codes import pack
from parabit.evaluation import evaluate_codes
from parabit.networks import (
    Documents,
    Inference,
    WordStatistics,
    choose_device,
    distill,
    make_sampler,
    make_table,
    train,
)
from parabit.networks.recipe import preset
from parabit.networks.shape import choose_shape
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
    folder: Path
    corpus: str
    change: str
    seed: int
    bits: int


def file_of(folder: Path, corpus: str, seed: int, bigrams: bool) -> Path:
    return folder / f"{corpus.partition('/')[0]}-{seed}{'-bigrams' * bigrams}.npz"


def write(folder: Path) -> None:
    """Write documents to train on and documents to query with, of each collection and for each seed."""
    from parabit import VocabularyRule, build_bags, open_corpus, write_bags

    folder.mkdir(parents=True, exist_ok=True)
    for corpus in CORPORA:
        usable = [document for document in open_corpus(corpus) if document.labels and document.text.strip()]
        for seed, bigrams in product(SEEDS, (False, True)):
            drawn = np.random.default_rng(seed).permutation(len(usable))[: TRAINED + QUERIES]
            documents = [usable[number] for number in drawn]
            with tempfile.TemporaryDirectory() as name:
                rule = VocabularyRule(bigrams=bigrams)
                vocabulary, bags = build_bags(documents[:TRAINED], Path(name, "trained"), rule)
                queries = write_bags(documents[TRAINED:], vocabulary, Path(name, "queries"))
                np.savez_compressed(
                    file_of(folder, corpus, seed, bigrams),
                    trained=np.stack([bags.features, bags.counts]),
                    trained_offsets=bags.feature_offsets,
                    queries=np.stack([queries.features, queries.counts]),
                    queries_offsets=queries.feature_offsets,
                    counts=vocabulary.counts,
                    document_frequencies=vocabulary.document_frequencies,
                    labels=np.array(json.dumps([document.labels for document in documents[TRAINED:]])),
                )
        print(f"{corpus}: {len(usable):,} documents to draw from", flush=True)


def score(trial: Trial) -> tuple[Trial, float, float]:
    """MAP and NDCG@10 of a recipe on one collection with one seed."""
    changes = dict(CHANGES[trial.change])
    bigrams, mode = changes.pop("bigrams", False), changes.pop("mode", "fast")
    name = changes.pop("preset", "default")
    with np.load(file_of(trial.folder, trial.corpus, trial.seed, bigrams)) as arrays:
        trained = Documents.of_counts(*arrays["trained"], arrays["trained_offsets"])
        queries = Documents.of_counts(*arrays["queries"], arrays["queries_offsets"])
        statistics = WordStatistics(arrays["counts"], arrays["document_frequencies"], TRAINED)
        labels = json.loads(str(arrays["labels"]))
    shape = choose_shape(bits=trial.bits)
    recipe = preset(name, shape, bigrams=bigrams, **changes)
    with tempfile.TemporaryDirectory() as scratch:
        found = train(trained, statistics, shape, recipe, Path(scratch), trial.seed)
        network = found.network
        if mode == "fast" and name == "default":
            encoder = distill(trained, statistics, network.words, found.embeddings, trial.seed)
            embedded = encoder.embed(queries.features, queries.counts, queries.feature_offsets)
        else:
            sampler = make_sampler(statistics, recipe, torch.device("cpu"))
            table = make_table(queries, statistics, shape, recipe, network.words.device)
            inference = Inference(network, sampler, recipe, trial.seed)
            everything = torch.arange(len(queries), device=network.words.device)
            embedded = torch.cat(list(inference.embed_all(table, everything))).numpy(force=True)
    scores = evaluate_codes(pack(embedded > 0), labels, trial.bits)
    return trial, scores.map, scores.ndcg


def scored(trials: list[Trial], processes: int) -> Iterator[tuple[Trial, float, float]]:
    os.environ["OMP_NUM_THREADS"] = str(max(1, cores() // processes))  # read by the new processes
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(score, trials)


def main() -> None:
    """Write the arrays, or train on them and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, default=128)
    parser.add_argument("--processes", type=int, default=cores())
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--prepare", type=Path, metavar="FOLDER", help="write the arrays here, and no more")
    what.add_argument("--arrays", type=Path, metavar="FOLDER", help="train on the arrays here")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the result, in place of results/")
    options = parser.parse_args()
    if options.prepare:
        write(options.prepare)
        return
    with tempfile.TemporaryDirectory() as name:
        if not options.arrays:
            write(Path(name))
        result = compare(options.arrays or Path(name), options.bits, options.processes)
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    else:
        keep(f"ablation_{options.bits}", result)


def compare(folder: Path, bits: int, processes: int) -> dict[str, Any]:
    """Train everything and print the table."""
    trials = [Trial(folder, *one, bits) for one in product(CORPORA, CHANGES, SEEDS)]
    found: dict[tuple[str, str], dict[int, tuple[float, float]]] = {}
    for number, (trial, map, ndcg) in enumerate(scored(trials, processes), start=1):
        found.setdefault((trial.corpus, trial.change), {})[trial.seed] = (map, ndcg)
        print(
            f"{number} of {len(trials)}  {trial.corpus}, {trial.change}, seed {trial.seed}: {map:.3f} / {ndcg:.3f}",
            flush=True,
        )

    rows = []
    print("\n" + " " * 40 + "  ".join(f"{corpus.partition('/')[0]:>13}" for corpus in CORPORA))
    for change, parameters in CHANGES.items():
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
        rows.append({"change": change, "parameters": parameters, "mean": means, "corpora": cells})
        told = "  ".join(f"{cell['map']:.3f} / {cell['ndcg10']:.3f}" for cell in cells.values())
        print(f"{change:40}{told}  {means['map']:.3f} / {means['ndcg10']:.3f}")
    device = choose_device("auto")
    return {
        "command": f"python benchmarks/ablation.py --bits {bits}",
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "trained": TRAINED,
        "queries": QUERIES,
        "seeds": list(SEEDS),
        "rows": rows,
        "machine": machine("torch", "numpy", "scipy"),
    }


if __name__ == "__main__":
    run(main)

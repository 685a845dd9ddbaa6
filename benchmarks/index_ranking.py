"""Ways of ranking what codes have selected: NDCG@10, what each keeps of a document, and what a query costs.

    python benchmarks/index_ranking.py [MODEL ...]

The test posts of 20 Newsgroups query each other. The models are trained here, one a seed, or folders that were: 128
bits, `--pattern '[a-z]+'`. Each rank orders the 1,000 nearest posts by code. A query's time is that from text to hits,
alone (200 of them) and in a batch of all posts; of equal scores, as everywhere, the expected value over orders counts.
"""

import argparse
import time
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import keep, machine, run
from parabit import Document, ParagraphVectors, open_corpus
from parabit.evaluation import evaluate_retrieved
from parabit.index import RANKS, Index

SEEDS = (0, 1, 2)
ALONE = 200  # queries
BITS = 128
CANDIDATES = 1000


def ndcg(index: Index, posts: list[Document], rank: str) -> float:
    """NDCG@10 over all posts as queries, each left out of its own hits."""
    hits = index.search(posts, k=CANDIDATES, rank=rank)
    rows, scores = hits.rows, hits.scores
    place = np.flatnonzero(hits.known)  # a post without a known word is not in the index

    def scores_of(block: slice) -> NDArray[np.float64]:
        dense = np.full((len(posts[block]), len(posts)), -np.inf)
        for query in range(len(dense)):
            dense[query, place[rows[block.start + query]]] = scores[block.start + query]
        return dense

    return evaluate_retrieved(scores_of, len(posts), [post.labels for post in posts]).strict_ndcg


def seconds_of(index: Index, posts: list[Document], rank: str) -> tuple[float, float]:
    """Seconds a query, alone and in a batch."""
    index.search(posts[:1], rank=rank)
    alone = []
    for post in posts[:ALONE]:
        start = time.perf_counter()
        index.search([post], rank=rank)
        alone.append(time.perf_counter() - start)
    start = time.perf_counter()
    index.search(posts, rank=rank)
    return median(alone), (time.perf_counter() - start) / len(posts)


def bytes_of(index: Index, rank: str) -> float:
    """Bytes a document that a rank needs, the code's among them."""
    about = index.info()
    needed = {"tfidf": "words", "hybrid": "words", "cosine": "vectors"}.get(rank)
    return about["bytes_a_code"] + (about["bytes_a_document"][needed] if needed else 0)


def main() -> None:
    """Measure every rank with every model, print the table, keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="*", metavar="MODEL")
    folders = parser.parse_args().models
    posts = list(open_corpus("20newsgroups/test"))
    texts = [] if folders else [post.text for post in open_corpus("20newsgroups/train")]
    models = [ParagraphVectors.load(folder) for folder in folders]
    models = models or [ParagraphVectors(BITS, random_state=seed).fit(texts) for seed in SEEDS]
    found: dict[str, list[float]] = {rank: [] for rank in RANKS}
    for model in models:
        index = Index.build(model, posts, vectors=True)
        for rank, values in found.items():
            values.append(ndcg(index, posts, rank))
            print(f"seed {model.random_state}, {rank}: {values[-1]:.4f}", flush=True)
    rows: list[dict[str, Any]] = []
    for rank, values in found.items():
        alone, batch = seconds_of(index, posts, rank)
        spread = stdev(values) if len(values) > 1 else 0.0
        kept = bytes_of(index, rank)
        rows.append(
            {
                "rank": rank,
                "ndcg10": round(mean(values), 4),
                "spread": round(spread, 4),
                "bytes_a_document": round(kept, 1),
                "milliseconds_alone": round(alone * 1e3, 3),
                "milliseconds_in_a_batch": round(batch * 1e3, 3),
            }
        )
        print(f"{rank:12}{mean(values):.3f} ±{spread:.3f}  {kept:7.1f} bytes a document", end="  ")
        print(f"{alone * 1e3:.2f} ms alone, {batch * 1e3:.2f} in a batch")
    keep(
        "index_ranking",
        {
            "command": "python benchmarks/index_ranking.py",
            "corpus": "20newsgroups/test",
            "documents": len(index),
            "left_out": index.left_out,
            "bits": BITS,
            "seeds": [model.random_state for model in models],
            "candidates": CANDIDATES,
            "rows": rows,
            "machine": machine("numpy", "scipy", "faiss-cpu"),
        },
    )


if __name__ == "__main__":
    run(main)

"""Text queries: every rank of an index beside plain BM25, on real queries and on known items.

    PARABIT_DATA=FOLDER python benchmarks/queries.py [--weights]

**Real queries.** Each folder of `queries/` in the data folder has documents, queries and judgements. NDCG@10 and
Recall@100, means over the queries with a relevant document; the median time of a query alone, from text to ids.

**Known items.** 3 to 8 consecutive words are cut from random documents, as somebody remembers them; the score is the
share of queries with their document among the first 10.

Peers, as their documentation recommends: bm25s with PyStemmer and its English stop words, and tantivy with its stemming
tokenizer and query parser. Codes are of 128 bits, the mean over three seeds of the model.

`--weights` changes the weights of the hybrid score one by one: of the code (CODE_WEIGHT in parabit/index/ranking.py),
of documents that have the whole query word for word and of stop words (in parabit/index/word_index.py).
Known items are three samples per collection then, also with one word left out, so that no document has them word for
word; and whole documents are queries: training posts of 20 Newsgroups and abstracts of arXiv, where documents with a
common label are relevant.
"""

import gzip
import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import bm25s
import numpy as np
import Stemmer
import tantivy

from common import about, keep, kept, options, run
from parabit import Document, Index, ParagraphVectors, open_corpus
from parabit.corpus.datasets import data_folder
from parabit.index import ranking, word_index
from parabit.parallel import cores

SEEDS = (0, 1, 2)
RANKS = ("hybrid", "words", "asymmetric", "hamming")
WEIGHTS: dict[str, tuple[Any, str, float]] = {  # what each column changes
    "as chosen": (ranking, "CODE_WEIGHT", ranking.CODE_WEIGHT),
    **{f"code {weight}": (ranking, "CODE_WEIGHT", weight) for weight in (0.0, 0.25, 0.5)},
    **{f"quotation {weight}": (word_index, "QUOTATION_WEIGHT", weight) for weight in (1.0, 4.0)},
    **{f"stop words {weight}": (word_index, "STOP_WEIGHT", weight) for weight in (0.0, 0.5)},
}
KNOWN = {
    "20newsgroups/train": 5000,
    "arxiv/train": 20_000,
    "enwiki/train": 10_000,
    "reuters21578/train": 9000,
}
KNOWN_ITEMS = 400  # queries

Answer = Callable[[str], Sequence[str]]  # the ids of the best 100 documents


class Collection(NamedTuple):
    """Documents, queries, and the ids of the documents that are relevant for each."""

    name: str
    documents: list[Document]
    queries: list[str]
    relevant: list[set[str]]


def real_queries() -> Iterator[Collection]:
    """The test collections of the data folder."""
    for folder in sorted((data_folder() / "queries").iterdir()):
        with gzip.open(folder / "documents.jsonl.gz", "rt") as file:
            rows = [json.loads(line) for line in file]
        documents = [Document(row["id"], f"{row['title']} {row['text']}") for row in rows]
        queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
        relevant: dict[str, set[str]] = {}
        for line in (folder / "qrels.tsv").read_text().splitlines():
            query, document, _ = line.split()
            relevant.setdefault(query, set()).add(document)
        judged = [query for query in queries if relevant.get(query["id"])]
        yield Collection(
            folder.name,
            documents,
            [query["text"] for query in judged],
            [relevant[query["id"]] for query in judged],
        )


def known_items(
    name: str, documents: list[Document], seed: int = 0, complete: bool = True
) -> Collection:
    """Queries cut from random documents; if they are not to be complete, one word inside each is left out."""
    rng = np.random.default_rng(seed)
    queries: list[str] = []
    relevant: list[set[str]] = []
    while len(queries) < KNOWN_ITEMS:
        document, length = documents[int(rng.integers(len(documents)))], int(rng.integers(3, 9))
        words = document.text.split()
        if len(words) > length:
            start = int(rng.integers(len(words) - length))
            cut = words[start : start + length]
            if not complete:
                del cut[int(rng.integers(1, length - 1))]
            queries.append(" ".join(cut))
            relevant.append({document.id})
    return Collection(name, documents, queries, relevant)


def known_collections(**options: Any) -> Iterator[Collection]:
    """Known items of the query collections and of other data sets that are here."""
    for collection in real_queries():
        yield known_items(collection.name, collection.documents, **options)
    for name, most in KNOWN.items():
        if (data_folder() / name.partition("/")[0]).exists():
            yield known_items(name, list(islice(open_corpus(name), most)), **options)


def peers(documents: list[Document], folder: str) -> dict[str, Answer]:
    """bm25s and tantivy on the same texts."""
    texts, ids = [document.text for document in documents], [document.id for document in documents]
    stemmer = Stemmer.Stemmer("english")
    scorer = bm25s.BM25()
    scorer.index(
        bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False),
        show_progress=False,
    )

    def by_bm25s(query: str) -> list[str]:
        tokens = bm25s.tokenize(query, stopwords="en", stemmer=stemmer, show_progress=False)
        found, _ = scorer.retrieve(tokens, k=min(100, len(ids)), show_progress=False, n_threads=0)
        return [ids[row] for row in found[0]]

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="en_stem")
    builder.add_integer_field("row", fast=True)
    index = tantivy.Index(builder.build(), path=folder)
    writer = index.writer(num_threads=1)
    for row, text in enumerate(texts):
        writer.add_document(tantivy.Document(text=text, row=row))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def by_tantivy(query: str) -> list[str]:
        plain = "".join(letter if letter.isalnum() else " " for letter in query).lower()
        hits = searcher.search(index.parse_query(plain, ["text"]), 100, count=False).hits
        rows = searcher.fast_field_values("row", [address for _, address in hits])
        return [ids[int(row)] for row in rows]  # type: ignore[arg-type]

    return {"bm25s": by_bm25s, "tantivy": by_tantivy}


def ranks(index: Index) -> dict[str, Answer]:
    """The ranks of an index."""

    def by(rank: str) -> Answer:
        return lambda query: index.search([query], k=100, rank=rank).ids[0]  # type: ignore[return-value]

    return {rank: by(rank) for rank in RANKS}


def measure(collection: Collection, answer: Answer) -> dict[str, float]:
    """Scores and the median time of a query."""
    discounts = 1 / np.log2(np.arange(10) + 2)
    rows, seconds = [], []
    for query, relevant in zip(collection.queries, collection.relevant, strict=True):
        start = time.perf_counter()
        found = answer(query)
        seconds.append(time.perf_counter() - start)
        gains = np.array([identity in relevant for identity in found[:10]], dtype=float)
        ndcg = (gains * discounts[: len(gains)]).sum() / discounts[: min(10, len(relevant))].sum()
        rows.append(
            (ndcg, len(relevant.intersection(found[:100])) / len(relevant), bool(gains.any()))
        )
    means = np.mean(rows, axis=0)
    return {
        "ndcg@10": float(means[0]),
        "recall@100": float(means[1]),
        "first_10": float(means[2]),
        "ms": 1e3 * float(np.median(seconds)),
    }


def compare(collection: Collection, seeds: Sequence[int]) -> dict[str, Any]:
    """All ranks, as means over models, and the peers."""
    found: dict[str, list[dict[str, float]]] = {}
    with TemporaryDirectory() as folder:
        for name, answer in peers(collection.documents, folder).items():
            found[name] = [measure(collection, answer)]
    for seed in seeds:
        model = ParagraphVectors(128, random_state=seed).fit(collection.documents)
        with Index.build(collection.documents, model=model) as index:
            for name, answer in ranks(index).items():
                found.setdefault(name, []).append(measure(collection, answer))
    return {
        "documents": len(collection.documents),
        "queries": len(collection.queries),
        "scores": {
            name: {
                **{
                    metric: round(float(np.mean([row[metric] for row in rows])), 4)
                    for metric in rows[0]
                },
                "ndcg@10 spread": round(float(np.std([row["ndcg@10"] for row in rows])), 4),
            }
            for name, rows in found.items()
        },
    }


def as_queries(name: str, most: int, asked: int = 200) -> Collection:
    """Whole documents as queries, where those with a common label are relevant."""
    documents = list(islice((document for document in open_corpus(name) if document.labels), most))
    queried = np.random.default_rng(1).permutation(len(documents))[:asked]
    relevant = [
        {other.id for other in documents if set(other.labels) & set(documents[n].labels)}
        - {documents[n].id}
        for n in queried.tolist()
    ]
    kept = [place for place, ids in enumerate(relevant) if ids]
    return Collection(
        f"{name}, documents as queries",
        documents,
        [documents[int(queried[place])].id for place in kept],
        [relevant[place] for place in kept],
    )


def weights() -> dict[str, Any]:
    """NDCG@10 of the hybrid rank, or known items in the first 10, with each weight changed."""
    found: dict[str, Any] = {}
    collections = [
        *real_queries(),
        as_queries("20newsgroups/train", 5000),
        as_queries("arxiv/train", 10_000),
    ]
    for one in known_collections():
        for complete, kind in ((True, "known items"), (False, "known items, a word missing")):
            samples = [
                known_items(f"{one.name}, {kind}", one.documents, seed, complete) for seed in SEEDS
            ]
            queries, relevant = (
                [part for sample in samples for part in sample[place]] for place in (2, 3)
            )
            collections.append(Collection(samples[0].name, one.documents, queries, relevant))
    for collection in collections:
        model = ParagraphVectors(128, random_state=0).fit(collection.documents)
        with Index.build(collection.documents, model=model) as index:
            row = {}
            for column, (module, constant, weight) in WEIGHTS.items():
                chosen = getattr(module, constant)
                setattr(module, constant, weight)
                if "as queries" in collection.name:
                    scores = measure(
                        collection, lambda query, index=index: index.like(query, k=100).ids[0]
                    )
                else:
                    scores = measure(collection, ranks(index)["hybrid"])
                setattr(module, constant, chosen)
                row[column] = round(
                    scores["first_10" if "known" in collection.name else "ndcg@10"], 4
                )
        found[collection.name] = row
        print(collection.name, row, flush=True)
    return found


def show(results: dict[str, Any]) -> None:
    """Print tables."""
    for part, metrics in (
        ("real queries", ("ndcg@10", "recall@100", "ms")),
        ("known items", ("first_10", "ms")),
    ):
        for name, row in results[part].items():
            print(f"\n{part}: {name}, {row['documents']:,} documents, {row['queries']} queries")
            for method, scores in row["scores"].items():
                print(
                    f"  {method:12}",
                    "  ".join(f"{metric} {scores[metric]:.3f}" for metric in metrics),
                )


def main() -> None:
    """Measure all, and keep the result."""
    parser = options(__doc__)
    parser.add_argument(
        "--weights", action="store_true", help="try how much the code counts beside the words"
    )
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    given = parser.parse_args()
    results = {} if given.small else kept("queries")
    if given.small:
        [*_, one] = islice(real_queries(), 2)
        part, found = (
            "ranks",
            {"real queries": {one.name: compare(one, SEEDS[:1])}, "known items": {}},
        )
    elif given.weights:
        part, found = "weights", {"scores": weights()}
    else:
        real = {one.name: compare(one, SEEDS[: given.seeds]) for one in real_queries()}
        known = {one.name: compare(one, SEEDS[:1]) for one in known_collections()}
        part, found = "ranks", {"real queries": real, "known items": known}
    repetitions = (
        "1 seed" if given.weights else f"{given.seeds} seeds for real queries, 1 for known items"
    )
    packages = ("tantivy", "bm25s", "PyStemmer", "faiss-cpu", "numpy")
    before = results.get(part, {})
    for name, row in found.get(
        "real queries", {}
    ).items():  # what sentence_vectors.py has added stays
        row["scores"] = (
            before.get("real queries", {}).get(name, {}).get("scores", {}) | row["scores"]
        )
    results[part] = {
        **before,
        **found,
        "run": about(*packages, threads=cores(), repetitions=repetitions),
    }
    if not given.weights:
        show(results[part])
    keep("queries", results, given.small)


if __name__ == "__main__":
    run(main)

"""The quality of codes on collections of all kinds, beside LSA + ITQ and gensim's Doc2Vec.

    PARABIT_DATA=FOLDER python benchmarks/quality.py [--peers] [--again] [--only NAME ...]

Test documents query each other (the paper's protocol); MAP and NDCG@10 are expected values over all orders of equal
distances. Codes of 128 and 32 bits, the mean and spread of three seeds. Collections: those of the data folder that
`parabit datasets` knows, titles and the longest articles of some, Python documentation, and files `short/*.jsonl.gz`
with `text` and `label`, of which a random 60% are learned from. Labels are used for scores alone.

`--peers` also runs gensim's Doc2Vec (PV-DBOW, 128 floats, cosine), which takes hours on two cores: `sample`, then
`epochs`, then `min_count` are chosen on 40% of at most 3,000 training documents. Results are kept after each
collection; what is there is not measured again, unless `--again` asks for it.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from common import about, keep, kept, options, run
from parabit import Document, ParagraphVectors, Tokenizer
from parabit.baselines.peers import LSA, IterativeQuantization
from parabit.corpus import Corpus, open_corpus
from parabit.corpus.datasets import data_folder
from parabit.evaluation import evaluate_codes, evaluate_vectors
from parabit.evaluation.relevance import relevance_of
from parabit.paper.corpora import labelled_documents, paper_corpora, sample_documents
from parabit.parallel import cores
from parabit.text import count_bags, make_bags

SEEDS, SIZES = (0, 1, 2), (128, 32)
DOC2VEC = {"sample": (0, 1e-4, 1e-5), "epochs": (20, 40, 100, 200), "min_count": (1, 2, 5)}


class Collection(NamedTuple):
    """What is learned from, and what is searched."""

    name: str
    train: list[Document]
    test: list[Document]
    relevance: str


# Collections of other kinds than the paper's: their data set, title, relevance, and how many documents at most.
FURTHER = {
    "docstrings": ("docstrings", "Python documentation", "shared", 20_000, 5_000),
    "reuters-titles": ("reuters21578", "Reuters titles", "overlap", None, None),
    "arxiv-titles": ("arxiv", "arXiv titles", "overlap", 20_000, 5_000),
    "enwiki-long": ("enwiki", "Longest articles", "shared", None, None),
}
LONGEST = 2_500  # documents


def _view(name: str, documents: Corpus) -> Corpus | list[Document]:
    """All documents, their titles, or the longest of those with a label."""
    if name.endswith("titles"):
        return [replace(document, text=document.fields["title"]) for document in documents]
    if name.endswith("long"):
        able = [document for document in documents if document.labels]
        longest = sorted(range(len(able)), key=lambda place: -len(able[place].text))[:LONGEST]
        return [able[place] for place in sorted(longest)]
    return documents


def collections(only: list[str] | None) -> Iterator[Collection]:
    """All collections that are here, or some by name, one in memory at a time."""
    present = [path.name for path in data_folder().iterdir()]
    for corpus in paper_corpora(present):
        if corpus.headers or (only and corpus.title not in only):
            continue
        train = list(sample_documents(open_corpus(f"{corpus.name}/train"), corpus.most_trained))
        yield Collection(corpus.title, train, labelled_documents(corpus), relevance_of(corpus.name))
    for name, (source, title, relevance, most_trained, most_tested) in FURTHER.items():
        if (source in present or source in ("docstrings", "reuters21578")) and (
            not only or title in only
        ):
            documents, tested = (
                _view(name, open_corpus(f"{source}/{split}")) for split in ("train", "test")
            )
            labelled = [document for document in tested if document.labels]
            train, test = (
                sample_documents(documents, most_trained),
                sample_documents(labelled, most_tested),
            )
            yield Collection(title, list(train), list(test), relevance)
    for path in sorted((data_folder() / "short").glob("*.jsonl.gz")):
        if only and path.name.removesuffix(".jsonl.gz") not in only:
            continue
        with gzip.open(path, "rt") as file:
            records = [json.loads(line) for line in file]
        documents = [
            Document(str(n), record["text"], (str(record["label"]),))
            for n, record in enumerate(records)
        ]
        order = np.random.default_rng(0).permutation(len(documents))
        cut = int(0.6 * len(order))
        train, test = ([documents[place] for place in part] for part in (order[:cut], order[cut:]))
        yield Collection(path.name.removesuffix(".jsonl.gz"), train, test, "shared")


def codes_of(collection: Collection, bits: int, seed: int, **options: Any) -> NDArray[np.uint8]:
    """The codes of the test documents by parabit."""
    model = ParagraphVectors(bits, random_state=seed, **options).fit(collection.train).encoder_
    codes = model.infer([document.text for document in collection.test]).codes
    assert codes is not None
    return codes


def lsa_itq(collection: Collection, bits: int, seed: int) -> NDArray[np.uint8]:
    """The codes of the test documents by LSA with iterative quantization, of as many dimensions."""
    vocabulary, bags = count_bags(collection.train)
    train = bags.matrix(len(vocabulary))
    tested = make_bags([document.text for document in collection.test], vocabulary).matrix(
        len(vocabulary)
    )
    analysis = LSA(bits, seed).fit(train)
    quantization = IterativeQuantization(bits, seed=seed).fit(analysis.transform(train))
    return quantization.transform(analysis.transform(tested))


METHODS = {"closed form": codes_of, "LSA + ITQ": lsa_itq}


def doc2vec(collection: Collection, settings: dict[str, Any], seed: int = 0) -> NDArray[np.float32]:
    """Vectors of the test documents by gensim."""
    from gensim.models.doc2vec import Doc2Vec, TaggedDocument

    words = Tokenizer().content_words
    tagged = [
        TaggedDocument(words(document.text), [number])
        for number, document in enumerate(collection.train)
    ]
    model = Doc2Vec(
        tagged, dm=0, vector_size=128, negative=5, seed=seed, workers=cores(), **settings
    )
    return np.stack([model.infer_vector(words(document.text)) for document in collection.test])


def tuned_doc2vec(collection: Collection) -> dict[str, Any]:
    """Doc2Vec with what is best on a validation part of the training documents."""
    labelled = [document for document in collection.train if document.labels]
    order = np.random.default_rng(1).permutation(len(labelled))[:3000]
    learned, held = (
        [labelled[place] for place in part] for part in np.split(order, [int(0.6 * len(order))])
    )
    validation = collection._replace(train=learned, test=held)
    settings: dict[str, Any] = {"epochs": 40, "min_count": 2}  # as in its notebook on reviews
    for name, values in DOC2VEC.items():
        found = {
            value: score(doc2vec(validation, {**settings, name: value}), validation)[1]
            for value in values
        }
        settings[name] = max(found, key=lambda value: found[value])
    return (
        summary([score(doc2vec(collection, settings, seed), collection) for seed in SEEDS])
        | settings
    )


def score(found: NDArray[Any], collection: Collection) -> tuple[float, float]:
    """MAP and NDCG@10 of what was found for the test documents."""
    evaluate: Any = evaluate_codes if found.dtype == np.uint8 else evaluate_vectors
    scores = evaluate(
        found, [document.labels for document in collection.test], relevance=collection.relevance
    )
    return round(scores.map, 4), round(scores.ndcg, 4)


def summary(rows: list[tuple[float, float]]) -> dict[str, Any]:
    """The mean and the spread of MAP and of NDCG@10."""
    spread = np.round([np.mean(rows, axis=0), np.std(rows, axis=0)], 4).T.tolist()
    return dict(zip(("map", "ndcg@10"), spread, strict=True))


def measure(collection: Collection, row: dict[str, Any]) -> bool:
    """Mean and spread of each kind of codes that has not been measured; whether there was any."""
    done = False
    row |= {
        "documents": len(collection.train),
        "tested": len(collection.test),
        "relevance": collection.relevance,
    }
    for bits in SIZES:
        for method, encode in METHODS.items():
            found = row.setdefault(str(bits), {})
            if method not in found:
                found[method] = summary(
                    [score(encode(collection, bits, seed), collection) for seed in SEEDS]
                )
                done = True
    return done


def show(results: dict[str, Any]) -> None:
    """Print a table."""
    for bits in map(str, SIZES):
        print(
            f"\n{bits} bits, MAP / NDCG@10{'':18} closed form    LSA + ITQ      Doc2Vec, 128 floats"
        )
        for name, row in results["collections"].items():
            cells = [
                f"{row[bits][method]['map'][0]:.3f} / {row[bits][method]['ndcg@10'][0]:.3f}"
                for method in ("closed form", "LSA + ITQ")
            ]
            if peer := row.get("Doc2Vec"):
                cells.append(f"{peer['map'][0]:.3f} / {peer['ndcg@10'][0]:.3f}")
            print(f"{name:40} {'  '.join(cells)}")


def main() -> None:
    """Measure what has not been measured yet."""
    parser = options(__doc__)
    parser.add_argument("--peers", action="store_true", help="also run Doc2Vec")
    parser.add_argument(
        "--again", action="store_true", help="measure what was measured before, too"
    )
    parser.add_argument("--only", nargs="*", help="collections, by name")
    given = parser.parse_args()
    results = {} if given.small else kept("quality")
    rows = results.setdefault("collections", {})
    for collection in collections(["tweets"] if given.small else given.only):
        row = rows.setdefault(collection.name, {})
        if given.again:
            for method in (*map(str, SIZES), *(["Doc2Vec"] if given.peers else [])):
                row.pop(method, None)
        if measure(collection, row):
            row["run"] = about(
                "numpy", "scipy", "faiss-cpu", threads=cores(), repetitions=f"{len(SEEDS)} seeds"
            )
        if given.peers and "Doc2Vec" not in row:
            row["Doc2Vec"] = tuned_doc2vec(collection)
            row["Doc2Vec"]["run"] = about(
                "gensim", threads=cores(), repetitions=f"{len(SEEDS)} seeds"
            )
        keep("quality", results, given.small)
    show(results)


if __name__ == "__main__":
    run(main)

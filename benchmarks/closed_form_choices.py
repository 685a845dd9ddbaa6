"""How the constants of the closed form (parabit/model/closed_form.py) were chosen: the default with one thing changed.

    python benchmarks/closed_form_choices.py --data FOLDER
    python benchmarks/closed_form_choices.py --data FOLDER --prepared FOLDER --only-prepare
    python benchmarks/closed_form_choices.py --prepared FOLDER --out closed_form_choices.json

The first command does everything. The second, where parabit, PyStemmer and the data sets are, writes word counts as
compressed arrays; the third, with torch and numpy alone, tries the variants on them. On a GPU that takes
minutes, on a CPU hours; `--quick` takes three small collections and one of queries.

Only training parts are used: 60% of each to learn from, and the rest to query each other, where documents that share a
label are relevant. Ties in Hamming distance count with their expected value. Differences are to LSA + ITQ on the same
TF-IDF rows as the default. The documents of the three query collections are not split; queries rank them by BM25, by
the cosine of the query's activations with the codes, and by both: BM25 divided by its best score, plus half the cosine.

The constants were chosen on earlier runs of such comparisons, for a small loss on the worst collection first, then for
the mean. Here many variants are as good as the default (*) within the noise of seeds, and some lose less on the worst
collection: the table is a record, not a proof.
"""

import argparse
import gzip
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

OUT = Path(__file__).parent / "results" / "closed_form_choices.json"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SIZES = (16, 24, 32, 48, 64, 96, 128, 192, 256, 512)
COMPARED = (128, 32)  # bits at which everything but the levels is compared
RULES = ((), (4,), (5, 1), (5, 2), (6, 2), (6, 2, 1), (5, 3, 2, 1), (6, 4, 2, 1))  # bits of the short levels, in 32
POLAR_STEPS = 18  # of Newton and Schulz
LARGEST = 50_000  # documents of a collection
BLOCK = 2048  # documents ranked, or given neighbours, at a time

# Sums over the first ranks, from none on: of the discounts of DCG, and of 1 / rank.
DISCOUNTS = torch.tensor([0, *(1 / np.log2(np.arange(2, 12)))], dtype=torch.float64, device=DEVICE).cumsum(0)
HARMONIC = torch.tensor([0, *(1 / np.arange(1, LARGEST))], dtype=torch.float64, device=DEVICE).cumsum(0)
Levels = tuple[int, ...]


class Source(NamedTuple):
    corpus: str  # a data set of parabit, or a file in the data folder
    titles: bool = False  # titles in place of texts
    longest: int | None = None  # only this many documents, the longest
    most: int | None = None  # documents drawn at most
    least: int = 0  # documents that a label must have


LABELLED = {
    "20ng": Source("20newsgroups/train"),
    "reuters": Source("reuters21578/train"),
    "arxiv": Source("arxiv/train", most=24_000),
    "enwiki": Source("enwiki/train", least=12),
    "enwiki-long": Source("enwiki/train", longest=5000, least=4),
    "reuters-titles": Source("reuters21578/train", titles=True),
    "arxiv-titles": Source("arxiv/train", titles=True, most=24_000),
    "docstrings": Source("docstrings/train", most=20_000),
    "searchsnippets": Source("short/searchsnippets.jsonl.gz"),
    "biomedical-titles": Source("short/biomedical-titles.jsonl.gz"),
    "googlenews-titles": Source("short/googlenews-titles.jsonl.gz"),
    "tweets": Source("short/tweets.jsonl.gz"),
    "dblp-titles": Source("short/dblp-titles.jsonl.gz"),
    "dbpedia-italian": Source("short/dbpedia-italian.jsonl.gz"),
}
QUERIES = ("q-cacm", "q-cranfield", "q-npl")
RANKINGS = ("bm25", "asymmetric", "bm25_and_asymmetric")
QUICK = ("tweets", "dblp-titles", "dbpedia-italian", "q-cranfield")


@dataclass(frozen=True)
class Options:
    """What can be changed; the defaults are what parabit uses."""

    stem: bool = False
    idf_plus: float = 0.0
    dimensions: int = 192  # of the LSA
    power_steps: int = 3  # of the LSA
    neighbours: int = 10
    words: tuple[float, ...] = (1.0, 1.0)  # weight of the words' cosine, each time that neighbours are searched
    share: tuple[float, float] = (0.5, 0.7)  # of the neighbours, for the first level and for the short ones
    steps: int = 8  # of diffusion
    whitening: float | None = None  # power of the first level's standard deviations divided out; None is by its size
    rotation_rounds: int = 30
    prior: float = 1.0
    ridge: float = 1e-2
    direct_ridge: float = 1.0
    direct_rounds: int = 4  # of conjugate gradients
    ways: tuple[float, float] = (1.0, 0.5)  # weights of the way through word vectors, and of the direct one


DEFAULT = Options()
ENCODER = {name: getattr(DEFAULT, name) for name in ("ridge", "direct_ridge", "direct_rounds", "ways")}
TRIED: dict[str, tuple[Any, ...]] = {
    "stem": (False, True),
    "idf_plus": (0.0, 0.3, 1.0),
    "ways": ((1.0, 0.0), (0.0, 1.0), (1.0, 0.25), (1.0, 0.5), (1.0, 1.0)),
    "neighbours": (5, 10, 15, 20),
    "words": ((1.0,), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 1.0, 1.0)),
    "share": ((0.4, 0.7), (0.5, 0.5), (0.5, 0.7), (0.6, 0.7), (0.7, 0.8)),
    "dimensions": (128, 160, 192, 256),
    "whitening": (None, 0.0, 0.25, 0.5, 0.75),
    "prior": (0.5, 1.0, 2.0),
    "direct_rounds": (2, 4, 8),
    "ridge": (1e-3, 1e-2, 1e-1),
    "direct_ridge": (0.3, 1.0, 3.0),
}


def levels_of(bits: int, rule: Sequence[int]) -> Levels:
    short = [size for share in rule if (size := round(bits * share / 32))]
    return (bits - sum(short), *short)


def default_levels(bits: int) -> Levels:
    return levels_of(bits, (5, 3, 2, 1) if bits >= 64 else (5, 1) if bits >= 24 else ())


# Step 1: word counts of all collections, as arrays.


def prepare(data: Path, folder: Path, names: Sequence[str]) -> None:
    """Write the arrays that are not there yet, with words as they are and stemmed."""
    os.environ["PARABIT_DATA"] = str(data)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        paths = {stemmed: folder / f"{name}{'.stem' * stemmed}.npz" for stemmed in (False, True)}
        if all(path.exists() for path in paths.values()):
            continue
        learned, tested, arrays = _labelled(data, LABELLED[name]) if name in LABELLED else _queries(data, name)
        for stemmed, path in paths.items():
            counter = _counter(stemmed, least=2)
            counts, queried = counter.fit_transform(learned), counter.transform(tested)
            np.savez_compressed(path, words=counts.shape[1], **_flat("l", counts), **_flat("v", queried), **arrays)
        print(f"{name}: {len(learned):,} documents, {len(tested):,} queries", flush=True)


def _flat(letter: str, counts: Any) -> dict[str, Any]:
    entries = np.minimum(counts.data, 255).astype(np.uint8)
    return {f"{letter}i": counts.indices.astype(np.int32), f"{letter}c": entries, f"{letter}p": counts.indptr}


def _ragged(name: str, rows: Sequence[Sequence[int]]) -> dict[str, Any]:
    return {
        name: np.array([entry for row in rows for entry in row], np.int32),
        f"{name}p": np.cumsum([0, *map(len, rows)]),
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def _counter(stemmed: bool, least: int = 1) -> Any:
    """Counts the words that parabit finds, if at least so many documents have them."""
    import Stemmer
    from sklearn.feature_extraction.text import CountVectorizer

    from parabit.text import Tokenizer

    words, stems = Tokenizer().content_words, Stemmer.Stemmer("english").stemWords
    return CountVectorizer(analyzer=lambda text: stems(words(text)) if stemmed else words(text), min_df=least)


def _labelled(data: Path, source: Source) -> tuple[list[str], list[str], dict[str, Any]]:
    """Texts to learn from, texts to query with, and the labels of the latter."""
    from parabit import open_corpus

    documents: list[tuple[str, tuple[str, ...]]]
    if (data / source.corpus).is_file():
        rows = _lines(data / source.corpus)
        order = np.random.RandomState(0).permutation(len(rows))[: int(0.6 * len(rows))]  # the training part
        documents = [(rows[number]["text"], (str(rows[number]["label"]),)) for number in order]
    else:
        corpus = open_corpus(source.corpus)
        texts = ((row.fields.get("title", "") if source.titles else row.text, row.labels) for row in corpus)
        documents = [(text, labels) for text, labels in texts if text or not source.titles]
    if source.longest:
        documents = sorted(documents, key=lambda document: -len(document[0]))[: source.longest]
    order = np.random.RandomState(0).permutation(len(documents))[: source.most]
    cut = int(0.6 * len(order))
    rest = [documents[number] for number in order[cut:]]
    frequencies = Counter(label for _, labels in rest for label in labels)
    rest = [(text, tuple(label for label in labels if frequencies[label] >= source.least)) for text, labels in rest]
    rest = [document for document in rest if document[1]]
    numbers: dict[str, int] = {}
    marks = _ragged("lab", [[numbers.setdefault(label, len(numbers)) for label in labels] for _, labels in rest])
    return [documents[number][0] for number in order[:cut]], [text for text, _ in rest], marks


def _queries(data: Path, name: str) -> tuple[list[str], list[str], dict[str, Any]]:
    """Documents, queries, and which documents are relevant, with BM25 of stemmed words: (queries, documents)."""
    folder = data / "queries" / name.removeprefix("q-")
    documents, queries = _lines(folder / "documents.jsonl.gz"), _lines(folder / "queries.jsonl")
    numbers = {document["id"]: number for number, document in enumerate(documents)}
    relevant: dict[str, list[int]] = {query["id"]: [] for query in queries}
    for line in (folder / "qrels.tsv").read_text().splitlines():
        query, document, _ = line.split()
        if query in relevant:
            relevant[query].append(numbers[document])
    texts, asked = [f"{row['title']} {row['text']}" for row in documents], [query["text"] for query in queries]
    counter = _counter(stemmed=True)
    counts = counter.fit_transform(texts).astype(np.float64)
    frequencies = np.bincount(counts.indices)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    idf = np.log(1 + (len(texts) - frequencies + 0.5) / (frequencies + 0.5))
    relative = np.repeat(lengths / lengths.mean(), np.diff(counts.indptr))
    counts.data *= 2.2 / (counts.data + 1.2 * (0.25 + 0.75 * relative)) * idf[counts.indices]
    scores = (counter.transform(asked) @ counts.T).toarray()
    return texts, asked, {"bm25": scores.astype(np.float16), **_ragged("rel", list(relevant.values()))}


# Step 2: the variants. Matrices are dense, and X X' is computed once for all variants of a collection.


def unit(rows: Tensor) -> Tensor:
    return rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-9)


def eigh(square: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors, largest first; a CPU is faster than a GPU for a few hundred."""
    values, vectors = torch.linalg.eigh(square.cpu().double())
    return values.flip(0).to(DEVICE), vectors.flip(1).to(DEVICE)


class Collection:
    """The TF-IDF rows of a collection; of query collections the tested rows are the queries, then all documents."""

    def __init__(self, folder: Path, name: str, options: Options) -> None:
        with np.load(folder / f"{name}{'.stem' * options.stem}.npz") as file:
            arrays: dict[str, Any] = dict(file)
        width = int(arrays["words"])
        weights = {part: 1 + np.log(arrays[f"{part}c"], dtype=np.float32) for part in "lv"}
        learned, queries = (_dense(arrays[f"{x}i"], arrays[f"{x}p"], width, weights[x]) for x in "lv")
        idf = torch.log((len(learned) + 1) / (learned > 0).sum(dim=0).clamp(min=1)) + options.idf_plus
        learned, queries = unit(learned * idf), unit(queries * idf)
        self.rows = learned[learned.any(dim=1)]  # X: (documents, words)
        self.queries, self.bm25 = len(queries), None
        if "bm25" in arrays:
            self.tested = torch.cat([queries, learned])  # (tested, words)
            self.bm25 = torch.from_numpy(arrays["bm25"]).float().to(DEVICE)  # (queries, documents)
            self.relevance = _dense(arrays["rel"], arrays["relp"], len(learned)) > 0  # (queries, documents)
        else:
            self.tested = queries
            labels = _dense(arrays["lab"], arrays["labp"], arrays["lab"].max() + 1)
            self.relevance = labels @ labels.T > 0  # (queries, queries)
        self.gram = self.rows @ self.rows.T  # X X': (documents, documents)
        self.cross = self.tested @ self.rows.T  # (tested, documents)
        self.kept: dict[Any, Any] = {}  # what several variants share

    def lsa(self, size: int, power_steps: int, seed: int) -> tuple[Tensor, Tensor]:
        """Documents on the leading singular directions, and the squares of the singular values."""
        if (key := (size, power_steps, seed)) not in self.kept:
            generator = torch.Generator(DEVICE).manual_seed(seed)
            size = min(size, *self.rows.shape)
            wide = min(size + 10, *self.rows.shape)
            basis = torch.randn(len(self.rows), wide, device=DEVICE, generator=generator)
            for _ in range(power_steps):
                basis = torch.linalg.qr(self.gram @ basis)[0]  # (documents, wide)
            squares, directions = eigh(basis.T @ self.gram @ basis)
            squares = squares[:size].clamp(min=1e-6 * float(squares[0]))
            self.kept[key] = (basis @ (directions[:, :size] * squares.sqrt()).float(), squares.float())
        return self.kept[key]

    def lsa_itq(self, bits: int, seed: int) -> Tensor:
        """Activations of the baseline: (tested, bits)."""
        placed, squares = (part[..., :bits] for part in self.lsa(SIZES[-1], 4, seed))
        centre = placed.mean(dim=0)
        return (self.cross @ placed / squares - centre) @ rotation(placed - centre, placed.shape[1], 50, seed)


def _dense(columns: Any, offsets: Any, width: int, values: Any = 1.0) -> Tensor:
    """A matrix from its entries, row by row."""
    matrix = torch.zeros(len(offsets) - 1, width, device=DEVICE)
    rows = np.repeat(np.arange(len(matrix)), np.diff(offsets))
    places = [torch.from_numpy(place.astype(np.int64)).to(DEVICE) for place in (rows, columns)]
    matrix[places[0], places[1]] = torch.as_tensor(values, device=DEVICE)
    return matrix


def rotation(vectors: Tensor, bits: int, rounds: int, seed: int) -> Tensor:
    """The rotation of iterative quantization: (dimensions, bits)."""
    generator = torch.Generator(DEVICE).manual_seed(seed)
    found = torch.linalg.qr(torch.randn(vectors.shape[1], bits, device=DEVICE, generator=generator))[0]
    for _ in range(rounds):
        moment = vectors.T @ torch.where(vectors @ found > 0, 1.0, -1.0)
        # The nearest rotation by Newton-Schulz steps: on a GPU much faster than a singular value decomposition.
        found = moment / (moment.T @ moment).norm().sqrt()
        for _ in range(POLAR_STEPS):
            found = torch.addmm(found, found, found.T @ found, beta=1.5, alpha=-0.5)
    return found


def nearest(vectors: Tensor, gram: Tensor, count: int, words: float) -> Tensor:
    """The nearest documents by vectors and words, among three times as many by vectors: (documents, count)."""
    vectors, found = unit(vectors), []
    for start in range(0, len(vectors), BLOCK):
        cosines = vectors[start : start + BLOCK] @ vectors.T
        cosines.diagonal(start).fill_(-torch.inf)
        values, candidates = cosines.topk(min(3 * count, len(vectors) - 1))
        values += words * gram[start : start + BLOCK].gather(1, candidates)
        found.append(candidates.gather(1, values.topk(min(count, values.shape[1])).indices))
    return torch.cat(found)


def diffuse(vectors: Tensor, neighbours: Tensor, share: float, steps: int) -> Tensor:
    """Vectors moved towards those of their neighbours."""
    documents, count = neighbours.shape
    own, other = torch.arange(documents, device=DEVICE).repeat_interleave(count), neighbours.ravel()
    pairs = torch.unique(torch.cat([own * documents + other, other * documents + own]))
    places = torch.stack([pairs // documents, pairs % documents])
    degrees = torch.bincount(places[0], minlength=documents).float()
    values = (degrees[places[0]] * degrees[places[1]]).rsqrt()
    size = (documents, documents)
    adjacency = torch.sparse_coo_tensor(places, values, size, is_coalesced=True, check_invariants=False)
    moved = vectors
    for _ in range(steps):
        moved = (1 - share) * vectors + share * torch.sparse.mm(adjacency, moved)
    return unit(moved)


def components(vectors: Tensor) -> Tensor:
    """Principal components, strongest first."""
    centred = vectors - vectors.mean(dim=0)
    variances, directions = eigh(centred.T @ centred)
    kept = variances > max(1e-6 * float(variances[0]), 1e-9 * len(vectors))
    return centred @ directions[:, kept].float()


def word_vectors(rows: Tensor, targets: Tensor, prior: float) -> Tensor:
    sums = rows.sum(dim=0)
    prior *= float(np.median(sums[sums > 0].cpu()))
    means = rows.T @ torch.where(targets > 0, 1.0, -1.0) / (sums + prior)[:, None]
    return means.clamp(-0.99, 0.99).atanh()


class Targets:
    """The codes that documents should have, before rounding."""

    def __init__(self, collection: Collection, options: Options, seed: int) -> None:
        self.rounds, self.whitening, self.seed = options.rotation_rounds, options.whitening, seed
        start = unit(collection.lsa(options.dimensions, options.power_steps, seed)[0])
        found = nearest(start, collection.gram, options.neighbours, options.words[0])
        for words in options.words[1:]:
            first = components(diffuse(start, found, options.share[0], options.steps))
            wanted = self.rotated(first, min(128, first.shape[1]))
            vectors = collection.rows @ word_vectors(collection.rows, wanted, options.prior)
            found = nearest(vectors, collection.gram, options.neighbours, words)
        fine, coarse = (diffuse(start, found, share, options.steps) for share in options.share)
        self.fine, self.coarse = components(fine), components(coarse)

    def level(self, size: int, first: bool) -> Tensor:
        if first:
            power = min(size / 130, 0.5) if self.whitening is None else self.whitening
            return self.rotated(self.fine / self.fine.std(dim=0) ** power, size)
        directions = unit((self.coarse if size <= 32 else self.fine)[:, :size])
        return self.rotated(directions - directions.mean(dim=0), size)

    def rotated(self, vectors: Tensor, size: int) -> Tensor:
        generator = torch.Generator(DEVICE).manual_seed(1000 * self.seed + size)
        some = vectors[torch.randperm(len(vectors), device=DEVICE, generator=generator)[:4096]]
        blocks = -(-size // vectors.shape[1])
        sizes = [size // blocks + (number < size % blocks) for number in range(blocks)]
        rotations = [rotation(some, bits, self.rounds, 1000 * self.seed + n) for n, bits in enumerate(sizes)]
        rotated = vectors @ torch.cat(rotations, dim=1)
        return rotated / rotated.std()


def encode(collection: Collection, targets: Tensor, options: Options) -> Tensor:
    """Activations of one level, of the tested documents: (tested, bits)."""
    words = word_vectors(collection.rows, targets, options.prior)
    summed = collection.rows @ words
    centre = summed.mean(dim=0)
    square = ((summed - centre).T @ (summed - centre)).double()
    square += options.ridge * square.trace() / len(square) * torch.eye(len(square), device=DEVICE)
    mapping = torch.linalg.solve(square, ((summed - centre).T @ targets).double()).float()
    through_words = (collection.tested @ words - centre) @ mapping / ((summed - centre) @ mapping).std()

    weights, residual = torch.zeros_like(targets), targets  # conjugate gradients for X X' W + a W = S
    direction, squares = residual, (residual**2).sum(dim=0)
    for _ in range(options.direct_rounds):
        image = collection.gram @ direction + options.direct_ridge * direction
        step = squares / (direction * image).sum(dim=0).clamp(min=1e-12)
        weights, residual = weights + step * direction, residual - step * image
        before, squares = squares, (residual**2).sum(dim=0)
        direction = residual + squares / before.clamp(min=1e-12) * direction
    direct = collection.cross @ weights / (collection.gram @ weights).std()
    return options.ways[0] * through_words + options.ways[1] * direct


def score(collection: Collection, activations: Tensor) -> list[float]:
    """MAP and NDCG@10 of a labelled collection; NDCG@10 of BM25, codes and both of a query collection."""
    signs = torch.where(activations > 0, 1.0, -1.0)
    if collection.bm25 is None:
        blocks = [_score_codes(signs, collection.relevance, start) for start in range(0, len(signs), BLOCK)]
        return torch.cat(blocks, dim=1).mean(dim=1).tolist()
    relevant, found = collection.relevance.sum(dim=1), []
    bm25 = collection.bm25 / collection.bm25.amax(dim=1, keepdim=True).clamp(min=1e-9)
    cosines = unit(activations[: collection.queries]) @ unit(signs[collection.queries :]).T
    for scores in (bm25, cosines, bm25 + 0.5 * cosines):
        best = scores.sort(dim=1, descending=True, stable=True).indices[:, :10]
        gains = (collection.relevance.gather(1, best) * DISCOUNTS.diff()).sum(dim=1)
        found.append(float((gains / DISCOUNTS[relevant.clamp(max=10)])[relevant > 0].mean()))
    return found


def _score_codes(signs: Tensor, relevance: Tensor, start: int) -> Tensor:
    """Average precision and NDCG@10 of a block of queries, as expected over all orders of ties: (2, queries)."""
    bits = signs.shape[1]
    # Documents by twice their distance, plus 1 if relevant; the query itself goes to a bin of its own.
    keys = (bits - signs @ signs[start : start + BLOCK].T).long() + relevance[:, start : start + BLOCK]
    keys.diagonal(-start).fill_(2 * bits + 2)
    bins = torch.zeros(2 * bits + 3, keys.shape[1], device=DEVICE)
    bins.scatter_add_(0, keys, torch.ones(1, 1, device=DEVICE).expand_as(keys))
    counts = bins[:-1].double().unflatten(0, (bits + 1, 2))  # (distances, not relevant or relevant, queries)
    tied, relevant = counts.sum(dim=1), counts[:, 1]
    nearer, relevant_nearer = tied.cumsum(dim=0) - tied, relevant.cumsum(dim=0) - relevant
    inverse_ranks = HARMONIC[(nearer + tied).long()] - HARMONIC[nearer.long()]  # summed over the ranks of ties
    others = (relevant - 1) / (tied - 1).clamp(min=1)  # share of relevant ones among the others of a tie
    precision = (relevant_nearer + 1) * inverse_ranks + others * (tied - (nearer + 1) * inverse_ranks)
    gains = DISCOUNTS[(nearer + tied).clamp(max=10).long()] - DISCOUNTS[nearer.clamp(max=10).long()]
    share, total = relevant / tied.clamp(min=1), relevant.sum(dim=0)
    sums = torch.stack([(share * precision).sum(dim=0), (share * gains).sum(dim=0)])
    return (sums / torch.stack([total, DISCOUNTS[total.clamp(max=10).long()]]))[:, total > 0]


# Step 3: run everything, and say what came of it.


def variants() -> Iterator[tuple[str, Options | None, Levels]]:
    """Each question with what is tried; no options are those of LSA + ITQ."""
    yield from (("LSA + ITQ", None, (bits,)) for bits in SIZES)
    for bits in SIZES:
        yield from (("levels", DEFAULT, levels) for levels in dict.fromkeys(levels_of(bits, rule) for rule in RULES))
    for name, bits in product(TRIED, COMPARED):
        yield from ((name, replace(DEFAULT, **{name: value}), default_levels(bits)) for value in TRIED[name])


class Trials:
    """The scores of all variants on all collections, as far as they are known."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self.names = folder, names
        self.labelled, self.asked = [n for n in names if n in LABELLED], [n for n in names if n in QUERIES]
        self.loaded = {name: Collection(folder, name, DEFAULT) for name in names}
        self.scores: dict[tuple[Options | None, Levels], list[dict[str, list[float]]]] = {}  # a list over seeds

    def run(self, seeds: int) -> Iterator[None]:
        """Try everything with one seed, then with the next; pauses after each set of options."""
        codes: dict[Options | None, dict[Levels, None]] = {}
        for _, options, levels in variants():
            codes.setdefault(options, {})[levels] = None
        for seed, (options, layouts) in product(range(seeds), codes.items()):
            found = [self._score(name, options, list(layouts), seed) for name in self.names]
            for levels, scores in zip(layouts, zip(*found, strict=True), strict=True):
                self.scores.setdefault((options, levels), []).append(dict(zip(self.names, scores, strict=True)))
            yield

    def _score(self, name: str, options: Options | None, layouts: list[Levels], seed: int) -> list[list[float]]:
        collection = self.loaded[name]
        if options is None:
            return [score(collection, collection.lsa_itq(bits, seed)) for (bits,) in layouts]
        if options.stem or options.idf_plus:
            collection = Collection(self.folder, name, options)
        learned_by = replace(options, **ENCODER)  # targets do not depend on these
        targets = collection.kept.get((DEFAULT, seed)) if learned_by == DEFAULT else None
        targets = targets or Targets(collection, learned_by, seed)
        if learned_by == DEFAULT:
            collection.kept[DEFAULT, seed] = targets
        parts = {(size, number == 0) for levels in layouts for number, size in enumerate(levels)}
        encoded = {part: encode(collection, targets.level(*part), options) for part in parts}
        codes = ([encoded[size, number == 0] for number, size in enumerate(levels)] for levels in layouts)
        return [score(collection, torch.cat(code, dim=1)) for code in codes]

    def mean(self, options: Options | None, levels: Levels, names: Sequence[str], seeds: int | None = None) -> Any:
        """Means over the first seeds: (collections, scores)."""
        return np.mean([[seed[name] for name in names] for seed in self.scores[options, levels][:seeds]], axis=0)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row for each variant; those of a question are of the same seeds, so that they can be compared."""
        known = [variant for variant in variants() if variant[1:] in self.scores]
        seeds: dict[str, int] = {}
        for question, options, levels in known:
            done = len(self.scores[options, levels])
            seeds[question] = min(seeds.get(question, done), done)
        for question, options, levels in known:
            bits, value, most = sum(levels), getattr(options, question, levels), seeds[question]
            scores = self.mean(options, levels, self.labelled, most)  # (collections, MAP and NDCG@10)
            differences = scores - self.mean(None, (bits,), self.labelled, most)
            yield {
                "question": question,
                "bits": bits,
                "variant": "+".join(map(str, levels)) if value == levels else str(value),
                "used": options == DEFAULT and levels == default_levels(bits),
                "seeds": most,
                **_rounded(("map", "ndcg10"), scores.mean(axis=0)),
                **_rounded(("worst_map", "worst_ndcg10"), differences.min(axis=0)),
                "worst_in": [self.labelled[number] for number in differences.argmin(axis=0)],
                **_rounded(RANKINGS, self.mean(options, levels, self.asked, most).mean(axis=0)),
            }

    def used(self) -> Iterator[dict[str, Any]]:
        """What the default scores on each collection."""
        for bits, name in product(SIZES, self.names):
            ours, baseline = self.mean(DEFAULT, default_levels(bits), [name])[0], self.mean(None, (bits,), [name])[0]
            columns = ("map", "ndcg10") if name in LABELLED else RANKINGS
            others = tuple(f"lsa_itq_{column}" for column in columns if column != "bm25")
            yield {"collection": name, "bits": bits, **_rounded(columns + others, [*ours, *baseline[-2:]])}


def _rounded(names: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(names, values, strict=True)}


def show(row: dict[str, Any]) -> str:
    means, queries = (" ".join(f"{row[key]:.4f}" for key in keys) for keys in (("map", "ndcg10"), RANKINGS))
    worst = zip(("worst_map", "worst_ndcg10"), row["worst_in"], strict=True)
    losses = " ".join(f"{row[key]:+.4f} {name:17}" for key, name in worst)
    variant = f"{row['question']:15} {row['bits']:3} {row['variant']:>20} {' *'[row['used']]}"
    return f"{variant} {means} | {losses} | {queries} | {row['seeds']}"


def main() -> None:
    """Prepare the arrays if the data are given, try all variants, print the table and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="the data sets, to prepare arrays from")
    prepared = Path(tempfile.gettempdir(), "closed_form_choices")
    parser.add_argument("--prepared", type=Path, metavar="FOLDER", default=prepared, help="where the arrays are kept")
    parser.add_argument("--only-prepare", action="store_true")
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)} only")
    parser.add_argument("--seeds", type=int, default=2, help="times that everything is tried")
    parser.add_argument("--out", type=Path, metavar="FILE", default=OUT)
    options = parser.parse_args()
    names = QUICK if options.quick else (*LABELLED, *QUERIES)
    if options.data:
        prepare(options.data, options.prepared, names)
    elif missing := [name for name in names if not (options.prepared / f"{name}.stem.npz").exists()]:
        parser.error(f"no arrays of {', '.join(missing)} in {options.prepared}; prepare them with --data FOLDER")
    if options.only_prepare:
        return
    trials, start = Trials(options.prepared, names), time.perf_counter()
    for number, _ in enumerate(trials.run(options.seeds)):
        print(f"{number + 1}: {time.perf_counter() - start:.0f} s", flush=True)
        if number == 0:  # LSA + ITQ alone
            continue
        # Kept after each step: a run that is stopped leaves what it knows, and rows say how many seeds they are of.
        result = {
            "command": "python benchmarks/closed_form_choices.py --data FOLDER" + " --quick" * options.quick,
            "device": torch.cuda.get_device_name() if DEVICE.type == "cuda" else "cpu",
            "torch": torch.__version__,
            "seconds": round(time.perf_counter() - start),
            "collections": trials.labelled,
            "query_collections": trials.asked,
            "rows": list(trials.rows()),
            "used": list(trials.used()),
        }
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\n{'':42} MAP    NDCG   | worst differences to LSA + ITQ in both {'':11} | {', '.join(RANKINGS)} | seeds")
    print("\n".join(map(show, trials.rows())))


if __name__ == "__main__":
    main()

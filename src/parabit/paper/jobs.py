"""One run: train on the arrays of a collection, infer its test documents, and score them."""

import base64
import time
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.evaluation import (
    Relevance,
    ScoreRanking,
    Scores,
    evaluate,
    evaluate_codes,
    evaluate_filtered,
    evaluate_vectors,
)
from parabit.paper.corpora import PaperCorpus, Part, Prepared, labelled_documents
from parabit.paper.experiments import PICTURED, RADII, Network, Run
from parabit.paper.machine import code_version
from parabit.paper.plots import RECALLS
from parabit.progress import Report, silent
from parabit.text.bags import Bags

_MOST_QUERIES = 2000  # of the hashing papers' protocol
_MOST_POINTS = 2500  # of a picture

Rows = list[tuple[str, str, float]]  # part, metric, value
Inferred = tuple[Any, Any]  # packed codes, or None from a real-valued network; vectors


class Finished(NamedTuple):
    """What came out of a run."""

    rows: Rows
    picture: dict[str, Any] | None = None


def perform(run: Run, data: Prepared, device: str = "auto", report: Report = silent) -> tuple[dict[str, Any], Finished]:
    """Train and score: what the run was made with, and what came out."""
    import torch

    from parabit.networks import choose_device

    start = time.perf_counter()
    if run.job.networks:
        finished = _network(run, data, device, report)
    else:
        finished = Finished(_closed_form(run, data) if run.job.peer == "closed-form" else _peer(run, data, device))
    place = choose_device(device if run.job.on_gpu else "cpu")
    about = {
        "id": run.id,
        "corpus": run.corpus.name,
        "job": run.job.name,
        "seed": run.seed,
        "quick": run.quick,
        "code": code_version(),
        "data": data.facts["fingerprint"],
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(time.perf_counter() - start, 1),
    }
    return about, finished


def _train(run: Run, network: Network, data: Prepared, device: str, report: Report) -> dict[str, Inferred]:
    """What a network says of the training documents ("") and of each set of test documents."""
    from parabit.codes import pack
    from parabit.networks import NetworkEncoder, train

    shape, recipe = network.shape, network.recipe(run.quick)
    documents = data.training.documents
    trained = train(documents, data.counts, shape, recipe, seed=run.seed, device=device, report=report)
    encoder = NetworkEncoder(trained.network, data.counts, recipe, run.seed)
    vectors = {"": trained.embeddings.numpy(force=True)}
    vectors |= {name: encoder.embed(part.documents) for name, part in data.tests.items()}
    return {
        name: (None if shape.bits is None else pack(encoder.activations(rows) > 0), rows)
        for name, rows in vectors.items()
    }


def _network(run: Run, data: Prepared, device: str, report: Report) -> Finished:
    name, job = run.corpus.name, run.job.name
    *others, network = run.job.networks
    inferred = _train(run, network, data, device, report)
    (trained_codes, trained_vectors), (codes, vectors) = inferred[""], inferred[name]
    if job == "transfer":
        return Finished(_transferred(inferred, run, data))
    rows: Rows = []
    if codes is not None:
        rows += _code_scores("codes", codes, trained_codes, run, data)
    if network.dim is not None:
        rows += _vector_scores(vectors, run, data)
    if job == "pv-dbow-32-bigrams":  # Table 2
        rows += _hashed(trained_vectors, vectors, 32, run, data)
    if job.startswith("real-binary"):  # Table 4, variant A: one network
        rows += _filtered(codes, network.bits, vectors, run, data)
    for other in others:  # Table 4, variant B: codes of separate networks, vectors of the last one
        rows += _filtered(_train(run, other, data, device, report)[name][0], other.bits, vectors, run, data)
    pictured = job == PICTURED and run.seed == 0
    return Finished(rows, _picture(codes, data.tests[name], data, run.corpus) if pictured else None)


def _closed_form(run: Run, data: Prepared) -> Rows:
    """The codes that parabit gives by default, learned from the same words as the networks."""
    from parabit.model.closed_form import default_levels
    from parabit.model.encoder import LinearEncoder
    from parabit.model.learning import SAMPLE, learn_from_counts

    size, counts = run.job.size, data.training.documents.matrix(len(data.counts))
    if counts.shape[0] > SAMPLE:
        counts = counts[np.sort(np.random.default_rng(run.seed).choice(counts.shape[0], SAMPLE, replace=False))]
    learned = learn_from_counts(counts, [default_levels(size)], run.seed)
    words = np.flatnonzero(learned.kept)
    encoder = LinearEncoder(learned.idf, learned.tensors, size, size)

    def infer(part: Part) -> Inferred:
        known = part.documents.matrix(len(data.counts))[:, words]
        inferred = encoder(Bags.of_counts(known.indices, known.data, known.indptr))
        return inferred.codes, inferred.vectors

    if run.job.name.endswith("transfer"):
        return _transferred({name: infer(test) for name, test in data.tests.items()}, run, data)
    codes, vectors = infer(data.tests[run.corpus.name])
    if size in RADII:
        return _filtered(codes, size, vectors, run, data)
    return _code_scores("codes", codes, infer(data.training)[0], run, data) + _vector_scores(vectors, run, data)


def _peer(run: Run, data: Prepared, device: str) -> Rows:
    from parabit.baselines import peers
    from parabit.baselines.semantic_hashing import SemanticHashing

    peer, size, seed, options = run.job.peer, run.job.size, run.seed, run.job.options(run.quick)
    test = data.tests[run.corpus.name]
    if peer == "sentences":  # pretrained, and reads the texts themselves
        texts = [document.text for document in labelled_documents(run.corpus)]
        return _vector_scores(peers.SentenceEncoder(**options).transform(texts), run, data)
    if peer == "doc2vec":  # reads words in order
        model = peers.Doc2Vec(size, seed=seed, **options).fit(data.training.documents)
        return _vector_scores(model.transform(test.documents), run, data)
    training, tested = (part.documents.matrix(len(data.counts)) for part in (data.training, test))
    if peer == "bm25":
        documents = peers.BM25(**options).fit(tested)
        count = len(test.labels)
        ranking = ScoreRanking(lambda block: documents.scores(tested[block]), count, count, itself=True)
        return _scores("vectors", evaluate(ranking, Relevance(test.labels, run.corpus.relevance)))
    if peer == "tf-idf":
        return _vector_scores(peers.TfIdf().fit(training).transform(tested), run, data)
    if peer == "lsa":
        analysis = peers.LSA(size, seed=seed).fit(training)
        trained, vectors = analysis.transform(training), analysis.transform(tested)
        return _vector_scores(vectors, run, data) + _hashed(trained, vectors, size, run, data)
    autoencoder = SemanticHashing(size, seed=seed, device=device, **options).fit(training)
    return _code_scores("codes", autoencoder.transform(tested), autoencoder.transform(training), run, data)


def _vector_scores(vectors: Any, run: Run, data: Prepared) -> Rows:
    labels = data.tests[run.corpus.name].labels
    return _scores("vectors", evaluate_vectors(vectors, labels, relevance=run.corpus.relevance))


def _scores(part: str, scores: Scores) -> Rows:
    recall, precision = 100 * np.array(scores.curve.recall), np.array(scores.curve.precision)
    curve = np.interp(np.log(RECALLS), np.log(np.maximum(recall, 1e-9)), precision)
    rows = [("map", scores.map), ("ndcg@10", scores.ndcg), ("queries", scores.queries), ("skipped", scores.skipped)]
    rows += [(f"precision@recall={at:g}%", float(value)) for at, value in zip(RECALLS, curve, strict=True)]
    return [(part, metric, round(value, 4)) for metric, value in rows]


def _code_scores(name: str, codes: NDArray[np.uint8], trained: Any, run: Run, data: Prepared) -> Rows:
    """Scores of codes; also by the hashing papers' protocol, where test documents query the training documents."""
    labels, relevance = data.tests[run.corpus.name].labels, run.corpus.relevance
    rows = _scores(name, evaluate_codes(codes, labels, relevance=relevance))
    labelled = np.flatnonzero([bool(labels) for labels in data.training.labels])
    if not len(labelled):
        return rows
    chosen = np.sort(np.random.default_rng(0).permutation(len(codes))[:_MOST_QUERIES])
    searched = (trained[labelled], [data.training.labels[document] for document in labelled])
    queries = [labels[query] for query in chosen]
    scores = evaluate_codes(codes[chosen], queries, relevance=relevance, searched=searched)
    return [*rows, (name, "training_precision@100", round(scores.precision, 4))]


def _hashed(trained: Any, vectors: Any, bits: int, run: Run, data: Prepared) -> Rows:
    """Vectors made into codes by the two separate algorithms."""
    from parabit.baselines.peers import IterativeQuantization, RandomHyperplanes

    rows: Rows = []
    for name, method in (("hyperplanes", RandomHyperplanes), ("itq", IterativeQuantization)):
        hashing = method(bits, seed=run.seed).fit(trained)
        rows += _code_scores(name, hashing.transform(vectors), hashing.transform(trained), run, data)
    return rows


def _filtered(codes: Any, bits: Any, vectors: Any, run: Run, data: Prepared) -> Rows:
    """Table 4: codes select, vectors rank."""
    rows: Rows = []
    labels, metrics = data.tests[run.corpus.name].labels, ("ndcg@10", "strict_ndcg@10", "retrieved", "empty")
    for radius in RADII[bits]:
        scores = evaluate_filtered(codes, vectors, labels, radius, relevance=run.corpus.relevance)
        values = (scores.ndcg, scores.strict_ndcg, scores.retrieved, scores.empty)
        part = f"{bits} bits, radius {radius}"
        rows += [(part, metric, round(value, 4)) for metric, value in zip(metrics, values, strict=True)]
    return rows


def _transferred(inferred: dict[str, Inferred], run: Run, data: Prepared) -> Rows:
    """Table 3: codes of collections that the network has not seen."""
    rows: Rows = []
    for name, test in data.tests.items():
        if name != run.corpus.name:
            relevance = data.facts["tests"][name]["relevance"]
            rows += _scores(name, evaluate_codes(inferred[name][0], test.labels, relevance=relevance))
    return rows


def _picture(codes: Any, part: Part, data: Prepared, corpus: PaperCorpus) -> dict[str, Any]:
    """The codes of documents that have one of a few labels."""
    names, numbers = data.facts["labels"], [label for labels in part.labels for label in labels]
    common = np.argsort(-np.bincount(numbers), kind="stable")[:5].tolist()
    wanted = {names.index(name) for name in corpus.picture if name in names} or set(common)
    points = [(place, *wanted.intersection(labels)) for place, labels in enumerate(part.labels)]
    shown = [point for point in points if len(point) == 2]  # with one of the labels, and no other of them
    if len(shown) > _MOST_POINTS:
        shown = [shown[place] for place in np.random.default_rng(0).choice(len(shown), _MOST_POINTS, replace=False)]
    chosen = base64.b64encode(codes[[place for place, _ in shown]].tobytes()).decode()
    return {"codes": chosen, "bytes": codes.shape[1], "labels": [names[label] for _, label in shown]}

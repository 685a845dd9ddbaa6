"""One run: train on the arrays of a collection, infer its test documents, and score them."""

import base64
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

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
        finished = Finished(*_network(run, data, device, report))
    else:
        finished = Finished(_PEERS[run.job.peer](run, data, device))
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


class _Encoded(NamedTuple):
    codes: NDArray[np.uint8] | None
    vectors: NDArray[np.float32]


def _train(run: Run, network: Network, data: Prepared, device: str, report: Report) -> dict[str, _Encoded]:
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
        name: _Encoded(None if shape.bits is None else pack(encoder.activations(rows) > 0), rows)
        for name, rows in vectors.items()
    }


def _network(run: Run, data: Prepared, device: str, report: Report) -> tuple[Rows, dict[str, Any] | None]:
    name = run.corpus.name
    *others, network = run.job.networks
    encoded = _train(run, network, data, device, report)
    codes, vectors = encoded[name]
    if run.job.name == "transfer":
        return _transferred({target: found.codes for target, found in encoded.items()}, run, data), None
    rows: Rows = []
    if codes is not None:
        rows += _code_scores("codes", codes, encoded[""].codes, run, data)
    if network.dim is not None:
        rows += _vector_scores(vectors, run, data)
    if run.job.name == "pv-dbow-32-bigrams":  # Table 2
        rows += _hashed(encoded[""].vectors, vectors, 32, run, data)
    if run.job.name.startswith("real-binary") and codes is not None:  # Table 4, variant A: one network
        rows += _filtered(codes, network.bits or 0, vectors, run, data)
    for other in others:  # Table 4, variant B: codes of separate networks, vectors of the last one
        rows += _filtered(_train(run, other, data, device, report)[name].codes, other.bits or 0, vectors, run, data)
    pictured = codes is not None and run.job.name == PICTURED and run.seed == 0
    return rows, _picture(codes, data.tests[name], data, run.corpus) if pictured else None


def _closed_form(run: Run, data: Prepared, device: str) -> Rows:
    """The codes that parabit gives by default, learned from the same words as the networks."""
    from parabit.model.closed_form import default_levels
    from parabit.model.encoder import LinearEncoder
    from parabit.model.learning import SAMPLE, learn_from_counts

    counts = _matrix(data.training, data)
    if counts.shape[0] > SAMPLE:
        counts = counts[np.sort(np.random.default_rng(run.seed).choice(counts.shape[0], SAMPLE, replace=False))]
    learned = learn_from_counts(counts, [default_levels(run.job.size)], run.seed)
    words = np.flatnonzero(learned.kept)
    encoder = LinearEncoder(learned.idf, learned.tensors, run.job.size, run.job.size)

    def encoded(part: Part) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        known = _matrix(part, data)[:, words]
        found = encoder(Bags.of_counts(known.indices, known.data, known.indptr))
        assert found.codes is not None
        return found.codes, found.vectors

    if run.job.name.endswith("transfer"):
        return _transferred({name: encoded(test)[0] for name, test in data.tests.items()}, run, data)
    codes, vectors = encoded(data.tests[run.corpus.name])
    if run.job.size in RADII:
        return _filtered(codes, run.job.size, vectors, run, data)
    return _code_scores("codes", codes, encoded(data.training)[0], run, data) + _vector_scores(vectors, run, data)


def _semantic_hashing(run: Run, data: Prepared, device: str) -> Rows:
    from parabit.baselines.semantic_hashing import SemanticHashing

    model = SemanticHashing(run.job.size, seed=run.seed, device=device, **run.job.options(run.quick))
    trained, codes = _transformed(model, run, data)
    return _code_scores("codes", codes, trained, run, data)


def _lsa(run: Run, data: Prepared, device: str) -> Rows:
    from parabit.baselines.peers import LSA

    trained, vectors = _transformed(LSA(run.job.size, seed=run.seed), run, data)
    return _vector_scores(vectors, run, data) + _hashed(trained, vectors, run.job.size, run, data)


def _doc2vec(run: Run, data: Prepared, device: str) -> Rows:
    from parabit.baselines.peers import Doc2Vec

    model = Doc2Vec(run.job.size, seed=run.seed, **run.job.options(run.quick)).fit(data.training.documents)
    return _vector_scores(model.transform(data.tests[run.corpus.name].documents), run, data)


def _tf_idf(run: Run, data: Prepared, device: str) -> Rows:
    from parabit.baselines.peers import TfIdf

    return _vector_scores(_transformed(TfIdf(), run, data)[1], run, data)


def _sentences(run: Run, data: Prepared, device: str) -> Rows:
    """A pretrained encoder, which reads the texts themselves."""
    from parabit.baselines.peers import SentenceEncoder

    texts = [document.text for document in labelled_documents(run.corpus)]
    return _vector_scores(SentenceEncoder(**run.job.options(run.quick)).transform(texts), run, data)


def _bm25(run: Run, data: Prepared, device: str) -> Rows:
    from parabit.baselines.peers import BM25

    part = data.tests[run.corpus.name]
    documents, count = _matrix(part, data), len(part.labels)
    model = BM25(**run.job.options(run.quick)).fit(documents)
    ranking = ScoreRanking(lambda block: model.scores(documents[block]), count, count, itself=True)
    return _scores("vectors", evaluate(ranking, Relevance(part.labels, run.corpus.relevance)))


_PEERS: dict[str, Callable[[Run, Prepared, str], Rows]] = {
    "closed-form": _closed_form,
    "semantic-hashing": _semantic_hashing,
    "lsa": _lsa,
    "doc2vec": _doc2vec,
    "tf-idf": _tf_idf,
    "bm25": _bm25,
    "sentences": _sentences,
}


def _matrix(part: Part, data: Prepared) -> csr_array:
    return part.documents.matrix(len(data.counts))


def _transformed(model: Any, run: Run, data: Prepared) -> tuple[Any, Any]:
    """The training and the test documents by a peer that is fitted to the former."""
    trained = _matrix(data.training, data)
    model.fit(trained)
    return model.transform(trained), model.transform(_matrix(data.tests[run.corpus.name], data))


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


def _filtered(codes: Any, bits: int, vectors: Any, run: Run, data: Prepared) -> Rows:
    """Table 4: codes select, vectors rank."""
    rows: Rows = []
    labels = data.tests[run.corpus.name].labels
    for radius in RADII[bits]:
        scores = evaluate_filtered(codes, vectors, labels, radius, relevance=run.corpus.relevance)
        found = {"ndcg@10": scores.ndcg, "strict_ndcg@10": scores.strict_ndcg}
        found |= {"retrieved": scores.retrieved, "empty": scores.empty}
        rows += [(f"{bits} bits, radius {radius}", metric, round(value, 4)) for metric, value in found.items()]
    return rows


def _transferred(codes: Mapping[str, NDArray[np.uint8] | None], run: Run, data: Prepared) -> Rows:
    """Table 3: codes of collections that the network has not seen."""
    rows: Rows = []
    for name, found in codes.items():
        if name not in ("", run.corpus.name) and found is not None:
            relevance = data.facts["tests"][name]["relevance"]
            rows += _scores(name, evaluate_codes(found, data.tests[name].labels, relevance=relevance))
    return rows


def _picture(codes: Any, part: Part, data: Prepared, corpus: PaperCorpus) -> dict[str, Any]:
    """The codes of documents that have one of a few labels."""
    names, numbers = data.facts["labels"], np.concatenate([np.array(labels, dtype=int) for labels in part.labels])
    common = np.argsort(-np.bincount(numbers), kind="stable")[:5].tolist()
    wanted = {names.index(name) for name in corpus.picture if name in names} or set(common)
    found = [(place, *wanted.intersection(labels)) for place, labels in enumerate(part.labels)]
    shown = [point for point in found if len(point) == 2]  # with one of the labels, and no other of them
    if len(shown) > _MOST_POINTS:
        shown = [shown[place] for place in np.random.default_rng(0).choice(len(shown), _MOST_POINTS, replace=False)]
    chosen = base64.b64encode(codes[[place for place, _ in shown]].tobytes()).decode()
    return {"codes": chosen, "bytes": codes.shape[1], "labels": [names[label] for _, label in shown]}

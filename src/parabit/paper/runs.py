"""Performing a run: train on the arrays of a collection, infer its test documents, and score them."""

import base64
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.codes import pack
from parabit.evaluation import (
    Relevance,
    ScoreRanking,
    Scores,
    asymmetric_ranking,
    evaluate,
    evaluate_codes,
    evaluate_retrieved,
    evaluate_vectors,
)
from parabit.networks import NetworkEncoder, choose_device, train
from parabit.paper.corpora import PaperCorpus, Part, Prepared, labelled_documents
from parabit.paper.jobs import PICTURED, RADII, Network, Run
from parabit.progress import Report, silent

_MOST_QUERIES = 2000  # where training documents are searched
_MOST_POINTS = 2500  # of a picture


class Encoded(NamedTuple):
    """What a network says of documents."""

    codes: NDArray[np.uint8] | None
    vectors: NDArray[np.float32]


def perform(run: Run, data: Prepared, device: str = "auto", report: Report = silent) -> dict[str, Any]:
    """Train and score."""
    start = time.perf_counter()
    results = _ACTIONS[_action(run)](run, data, device, report)
    return {
        "job": run.job.name,
        "corpus": run.corpus.name,
        "identity": run.identity(data.fingerprint),
        "device": _name_of(choose_device(device if run.job.trains else "cpu")),
        "seconds": round(time.perf_counter() - start, 2),
        "results": results,
    }


def _name_of(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _action(run: Run) -> str:
    if run.job.baseline:
        return run.job.baseline
    return run.job.name if run.job.name in _ACTIONS else "network"


def _train_network(
    run: Run, network: Network, data: Prepared, device: str, report: Report
) -> tuple[Encoded, dict[str, Encoded]]:
    """Train a network: what it says of the training documents, and of each set of test documents."""
    shape, recipe = network.shape, network.recipe(run.quick)
    documents = data.training.documents
    trained = train(documents, data.counts, shape, recipe, seed=run.seed, device=device, report=report)
    encoder = NetworkEncoder(trained.network, data.counts, recipe, run.seed)

    def encoded(vectors: NDArray[np.float32]) -> Encoded:
        return Encoded(None if shape.bits is None else pack(encoder.activations(vectors) > 0), vectors)

    tests = {name: encoded(encoder.embed(part.documents)) for name, part in data.tests.items()}
    return encoded(trained.embeddings.numpy(force=True)), tests


def _network(run: Run, data: Prepared, device: str, report: Report) -> dict[str, Any]:
    [network] = run.job.networks
    trained, tests = _train_network(run, network, data, device, report)
    part, relevance = data.tests[run.corpus.name], run.corpus.relevance
    mine = tests[run.corpus.name]
    if network.bits is not None:
        assert mine.codes is not None
        scores = _scores(mine.codes, part, relevance)
        results = {"codes": scores | _searched(trained.codes, mine.codes, data, part, relevance)}
        return results | (_picture(mine.codes, part, data, run.corpus) if run.job.name == PICTURED else {})
    results = {"vectors": _vector_scores(mine.vectors, part, relevance)}
    if run.job.name == "pv-dbow-32-bigrams":  # Table 2
        results |= _hashed(trained.vectors, mine.vectors, network.dim or 0, run.seed, part, relevance)
    return results


def _closed_form(run: Run, data: Prepared, device: str, report: Report) -> dict[str, Any]:
    """The codes that parabit gives by default, learned from the same words as all others."""
    from parabit.model.closed_form import default_levels
    from parabit.model.encoder import Inferred, LinearEncoder
    from parabit.model.learning import SAMPLE, learn_from_counts
    from parabit.text.bags import Bags

    counts = _matrix(data.training, data)
    if counts.shape[0] > SAMPLE:
        counts = counts[np.sort(np.random.default_rng(run.seed).choice(counts.shape[0], SAMPLE, replace=False))]
    learned = learn_from_counts(counts, [default_levels(run.job.size)], run.seed, report)
    words = np.flatnonzero(learned.kept)
    encoder = LinearEncoder(learned.idf, learned.tensors, run.job.size, run.job.size)

    def encoded(part: Part) -> Inferred:
        counts = _matrix(part, data)[:, words]
        return encoder(Bags.of_counts(counts.indices, counts.data, counts.indptr))

    part, relevance = data.tests[run.corpus.name], run.corpus.relevance
    trained, tested = encoded(data.training), encoded(part)
    assert tested.codes is not None
    assert tested.activations is not None
    asymmetric = asymmetric_ranking(tested.activations, tested.codes)
    return {
        "codes": _scores(tested.codes, part, relevance) | _searched(trained.codes, tested.codes, data, part, relevance),
        "asymmetric": _told(evaluate(asymmetric, Relevance(part.labels, relevance))),
    }


def _real_binary(run: Run, data: Prepared, device: str, report: Report) -> dict[str, Any]:
    """Table 4, variant A: the code and the real vector are those of one network."""
    [network] = run.job.networks
    _, tests = _train_network(run, network, data, device, report)
    part, mine = data.tests[run.corpus.name], tests[run.corpus.name]
    assert mine.codes is not None
    assert network.bits is not None
    return {
        "codes": _scores(mine.codes, part, run.corpus.relevance),
        "vectors": _vector_scores(mine.vectors, part, run.corpus.relevance),
        **_filtered(mine.codes, network.bits, mine.vectors, part, run.corpus.relevance),
    }


def _separate(run: Run, data: Prepared, device: str, report: Report) -> dict[str, Any]:
    """Table 4, variant B: codes of one network, real vectors of another."""
    *binary, real = run.job.networks
    part, relevance = data.tests[run.corpus.name], run.corpus.relevance
    vectors = _train_network(run, real, data, device, report)[1][run.corpus.name].vectors
    results = {"vectors": _vector_scores(vectors, part, relevance)}
    for network in binary:
        codes = _train_network(run, network, data, device, report)[1][run.corpus.name].codes
        assert codes is not None
        assert network.bits is not None
        results |= _filtered(codes, network.bits, vectors, part, relevance)
    return results


def _transfer(run: Run, data: Prepared, device: str, report: Report) -> dict[str, Any]:
    """Table 3: codes of collections that the network has not seen."""
    [network] = run.job.networks
    _, tests = _train_network(run, network, data, device, report)
    return {
        name: _scores(encoded.codes, data.tests[name], data.facts["tests"][name]["relevance"])
        for name, encoded in tests.items()
        if name != run.corpus.name and encoded.codes is not None
    }


def _semantic_hashing(run: Run, data: Prepared, device: str, report: Report) -> dict[str, Any]:
    from parabit.baselines.semantic_hashing import SemanticHashing

    model = SemanticHashing(run.job.size, seed=run.seed, device=device, **run.job.options(run.quick))
    model.fit(_matrix(data.training, data), report)
    part = data.tests[run.corpus.name]
    trained, codes = (model.transform(_matrix(documents, data)) for documents in (data.training, part))
    relevance = run.corpus.relevance
    return {"codes": _scores(codes, part, relevance) | _searched(trained, codes, data, part, relevance)}


def _lsa(run: Run, data: Prepared, device: str, report: Report) -> dict[str, Any]:
    from parabit.baselines.peers import LSA

    model = LSA(run.job.size, seed=run.seed).fit(_matrix(data.training, data))
    part = data.tests[run.corpus.name]
    trained, vectors = (model.transform(_matrix(documents, data)) for documents in (data.training, part))
    relevance = run.corpus.relevance
    results = {"vectors": _vector_scores(vectors, part, relevance)}
    return results | _hashed(trained, vectors, run.job.size, run.seed, part, relevance, data)


def _doc2vec(run: Run, data: Prepared, device: str, report: Report) -> dict[str, Any]:
    from parabit.baselines.peers import Doc2Vec

    model = Doc2Vec(run.job.size, seed=run.seed, **run.job.options(run.quick)).fit(data.training.documents)
    part = data.tests[run.corpus.name]
    return {"vectors": _vector_scores(model.transform(part.documents), part, run.corpus.relevance)}


def _tf_idf(run: Run, data: Prepared, device: str, report: Report) -> dict[str, Any]:
    from parabit.baselines.peers import TfIdf

    model = TfIdf().fit(_matrix(data.training, data))
    part = data.tests[run.corpus.name]
    return {"vectors": _vector_scores(model.transform(_matrix(part, data)), part, run.corpus.relevance)}


def _bm25(run: Run, data: Prepared, device: str, report: Report) -> dict[str, Any]:
    from parabit.baselines.peers import BM25

    part = data.tests[run.corpus.name]
    documents = _matrix(part, data)
    model = BM25(**run.job.options(run.quick)).fit(documents)
    count = len(part.labels)
    ranking = ScoreRanking(lambda block: model.scores(documents[block]), count, count, itself=True)
    return {"vectors": _told(evaluate(ranking, Relevance(part.labels, run.corpus.relevance)))}


def _sentences(run: Run, data: Prepared, device: str, report: Report) -> dict[str, Any]:
    """A pretrained encoder, which reads the texts themselves."""
    from parabit.baselines.peers import SentenceEncoder

    texts = [document.text for document in labelled_documents(run.corpus, report)]
    vectors = SentenceEncoder(**run.job.options(run.quick)).transform(texts)
    return {"vectors": _vector_scores(vectors, data.tests[run.corpus.name], run.corpus.relevance)}


_ACTIONS: dict[str, Callable[[Run, Prepared, str, Report], dict[str, Any]]] = {
    "network": _network,
    "real-binary-28": _real_binary,
    "real-binary-24": _real_binary,
    "separate": _separate,
    "transfer": _transfer,
    "closed-form": _closed_form,
    "semantic-hashing": _semantic_hashing,
    "wide-semantic-hashing": _semantic_hashing,
    "sentences": _sentences,
    "lsa": _lsa,
    "doc2vec": _doc2vec,
    "tf-idf": _tf_idf,
    "bm25": _bm25,
}


def _picture(codes: NDArray[np.uint8], part: Part, data: Prepared, corpus: PaperCorpus) -> dict[str, Any]:
    """The codes of documents that have one of a few labels, for a picture of them."""
    names, numbers = data.facts["labels"], np.concatenate([np.array(mine, dtype=int) for mine in part.labels])
    common = np.argsort(-np.bincount(numbers), kind="stable")[:5].tolist()
    wanted = {names.index(name) for name in corpus.picture if name in names} or set(common)
    shown = [(place, *wanted.intersection(mine)) for place, mine in enumerate(part.labels)]
    shown = [point for point in shown if len(point) == 2]  # of one of the labels, and no other of them
    if len(shown) > _MOST_POINTS:
        shown = [shown[place] for place in np.random.default_rng(0).choice(len(shown), _MOST_POINTS, replace=False)]
    chosen = codes[[place for place, _ in shown]]
    return {
        "picture": {
            "codes": base64.b64encode(chosen.tobytes()).decode(),
            "bytes": codes.shape[1],
            "labels": [names[label] for _, label in shown],
        }
    }


def _matrix(part: Part, data: Prepared) -> csr_array:
    """Documents by words, with counts."""
    return part.documents.matrix(len(data.counts))


def _scores(codes: NDArray[np.uint8], part: Part, relevance: str) -> dict[str, Any]:
    return _told(evaluate_codes(codes, part.labels, relevance=relevance))


def _vector_scores(vectors: Any, part: Part, relevance: str) -> dict[str, Any]:
    return _told(evaluate_vectors(vectors, part.labels, relevance=relevance))


def _searched(
    trained: NDArray[np.uint8] | None, codes: NDArray[np.uint8], data: Prepared, part: Part, relevance: str
) -> dict[str, Any]:
    """The hashing literature's protocol: test documents, or some of them, query the labelled training documents."""
    labelled = np.flatnonzero([bool(mine) for mine in data.training.labels])
    if trained is None or not len(labelled):
        return {}
    chosen = np.arange(len(codes))
    if len(codes) > _MOST_QUERIES:
        chosen = np.sort(np.random.default_rng(0).choice(len(codes), _MOST_QUERIES, replace=False))
    scores = evaluate_codes(
        codes[chosen],
        [part.labels[query] for query in chosen],
        relevance=relevance,
        searched=(trained[labelled], [data.training.labels[document] for document in labelled]),
    )
    return {"training_precision@100": round(scores.precision, 4)}


def _hashed(
    trained: NDArray[np.float32],
    vectors: NDArray[np.float32],
    bits: int,
    seed: int,
    part: Part,
    relevance: str,
    data: Prepared | None = None,
) -> dict[str, Any]:
    """Vectors made into codes by the two separate algorithms."""
    from parabit.baselines.peers import IterativeQuantization, RandomHyperplanes

    results = {}
    for name, method in (("hyperplanes", RandomHyperplanes), ("itq", IterativeQuantization)):
        hashing = method(bits, seed=seed).fit(trained)
        codes = hashing.transform(vectors)
        results[name] = _scores(codes, part, relevance)
        if data is not None:
            results[name] |= _searched(hashing.transform(trained), codes, data, part, relevance)
    return results


def _filtered(
    codes: NDArray[np.uint8], bits: int, vectors: NDArray[np.float32], part: Part, relevance: str
) -> dict[str, Any]:
    """Table 4: the index selects by codes and ranks by vectors."""
    from parabit.index import Index  # here: its library is asked for only where something is searched

    index, results = Index.of_codes(codes, bits, vectors=vectors), {}
    for radius in RADII[bits]:

        def retrieved(block: slice, radius: int = radius) -> NDArray[np.float64]:
            hits = index.search(codes[block], radius=radius, rank="cosine", query_vectors=vectors[block])
            scores = np.full((len(hits), len(codes)), -np.inf)
            for query, (rows, found) in enumerate(zip(hits.rows, hits.scores, strict=True)):
                scores[query, rows] = found
            return scores

        scores = evaluate_retrieved(retrieved, len(codes), part.labels, relevance=relevance)
        results[f"radius-{bits}-{radius}"] = {
            "ndcg@10": round(scores.ndcg, 4),
            "cut_ndcg@10": round(scores.cut_ndcg, 4),
            "strict_ndcg@10": round(scores.strict_ndcg, 4),
            "retrieved": round(scores.retrieved, 1),
            "queries": scores.queries,
            "empty": scores.empty,
            "skipped": scores.skipped,
        }
    return results


def _told(scores: Scores) -> dict[str, Any]:
    return {
        "map": round(scores.map, 4),
        "ndcg@10": round(scores.ndcg, 4),
        "precision@100": round(scores.precision, 4),
        "queries": scores.queries,
        "skipped": scores.skipped,
        "recall": [round(value, 5) for value in scores.curve.recall],
        "precision": [round(value, 5) for value in scores.curve.precision],
    }

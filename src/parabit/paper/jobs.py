"""One run: train on the arrays of a collection, infer its test documents, and score them."""

import subprocess
import time
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from parabit import __version__
from parabit.codes import pack
from parabit.errors import BaselineError, need
from parabit.evaluation import (
    Relevance,
    Scores,
    evaluate,
    evaluate_codes,
    evaluate_filtered,
    evaluate_vectors,
)
from parabit.evaluation.rankings import ScoreRanking
from parabit.model.closed_form import SAMPLE, default_levels, learn_from_counts
from parabit.model.encoder import LinearEncoder
from parabit.networks.training import NetworkEncoder, choose_device, train
from parabit.paper.corpora import PAPER, Part, Prepared, labelled_documents
from parabit.paper.experiments import PICTURED, RADII, Network, Run
from parabit.paper.plots import RECALLS
from parabit.progress import Report, silent
from parabit.text.bags import Bags

_MOST_QUERIES = 2000  # of the hashing papers' protocol
_MOST_POINTS = 2500  # of a picture

Rows = list[tuple[str, str, float]]  # part, metric, value
Inferred = tuple[Any, Any]  # packed codes, or None from a real-valued network; vectors


def perform(
    run: Run, data: Prepared, device: str = "auto", report: Report = silent
) -> tuple[dict[str, Any], Rows, dict[str, Any] | None]:
    """Train and score: what the run was made with, its rows of the long table, and the codes of a picture."""
    start, work = time.perf_counter(), Work(run, data, device, report)
    if run.job.networks:
        work.networks()
    elif run.job.peer == "closed-form":
        work.closed_form()
    else:
        work.peer()
    by_torch = run.job.networks or run.job.peer == "semantic-hashing"
    about = describe(run, data, device if by_torch else "cpu", time.perf_counter() - start)
    return about, work.rows, work.picture


def describe(run: Run, data: Prepared, device: str, seconds: float) -> dict[str, Any]:
    """What a run was made with."""
    place = choose_device(device)
    return {
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
        "seconds": round(seconds, 1),
    }


@cache
def code_version() -> str:
    """The version of parabit, with the commit if it runs from a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return __version__
    return f"{__version__} {commit}".strip()


class Work:
    """A run's training, inference and scoring; each step adds rows."""

    def __init__(
        self, run: Run, data: Prepared, device: str = "auto", report: Report = silent
    ) -> None:
        self.run, self.data, self.device, self.report = run, data, device, report
        self.test = data.tests[run.corpus.name]
        self.relevance = data.facts["tests"][run.corpus.name]["relevance"]
        self.rows: Rows = []
        self.picture: dict[str, Any] | None = None

    def networks(self) -> None:
        """The paper's networks."""
        name, job = self.run.corpus.name, self.run.job.name
        *others, network = self.run.job.networks
        inferred = self._train(network)
        (trained_codes, trained_vectors), (codes, vectors) = inferred[""], inferred[name]
        if job == "transfer":
            return self.transferred(inferred)
        if codes is not None:
            self.codes(codes, trained_codes)
        if network.shape.bits is None or network.shape.projected:
            self.vectors(vectors)
        if job == "pv-dbow-32-bigrams":  # Table 2
            self.hashed(vectors, trained_vectors, 32)
        if job.startswith("real-binary"):  # Table 4, variant A: one network
            self.filtered(codes, network.shape.bits, vectors)
        for (
            other
        ) in others:  # Table 4, variant B: codes of separate networks, vectors of the last one
            self.filtered(self._train(other)[name][0], other.shape.bits, vectors)
        if job == PICTURED and self.run.seed == 0:
            self._take_picture(codes)
        return None

    def _train(self, network: Network) -> dict[str, Inferred]:
        """What a network says of the training documents ("") and of each set of test documents."""
        shape, recipe, seed, data = (
            network.shape,
            network.recipe(self.run.quick),
            self.run.seed,
            self.data,
        )
        documents = data.training.documents
        trained = train(
            documents, data.counts, shape, recipe, seed=seed, device=self.device, report=self.report
        )
        encoder = NetworkEncoder(trained.network, data.counts, recipe, seed)
        vectors = {"": trained.embeddings.numpy(force=True)}
        vectors |= {name: encoder.embed(part.documents) for name, part in data.tests.items()}
        return {
            name: (None if shape.bits is None else pack(encoder.activations(rows) > 0), rows)
            for name, rows in vectors.items()
        }

    def closed_form(self) -> None:
        """The codes that parabit gives by default, learned from the same words as the networks."""
        data, size, seed = self.data, self.run.job.size, self.run.seed
        counts = data.training.documents.matrix(len(data.counts))
        if counts.shape[0] > SAMPLE:
            counts = counts[
                np.sort(np.random.default_rng(seed).choice(counts.shape[0], SAMPLE, replace=False))
            ]
        kept, idf, tensors = learn_from_counts(counts, [default_levels(size)], seed)
        encoder = LinearEncoder(idf, tensors, size, size)

        def infer(part: Part) -> Inferred:
            known = part.documents.matrix(len(data.counts))[:, np.flatnonzero(kept)]
            inferred = encoder(Bags.of_counts(known.indices, known.data, known.indptr))
            return inferred.codes, inferred.vectors

        if self.run.job.name.endswith("transfer"):
            return self.transferred({name: infer(test) for name, test in data.tests.items()})
        codes, vectors = infer(self.test)
        if size in RADII:
            return self.filtered(codes, size, vectors)
        self.codes(codes, infer(data.training)[0])
        return self.vectors(vectors)

    def peer(self) -> None:
        """What one would try instead."""
        from parabit.baselines import peers
        from parabit.baselines.semantic_hashing import SemanticHashing

        job, seed, data, test = self.run.job, self.run.seed, self.data, self.test
        options = job.options(self.run.quick)
        training, tested = (
            part.documents.matrix(len(data.counts)) for part in (data.training, test)
        )
        if job.peer == "sentences":  # pretrained, and reads the texts themselves
            encoder = need("sentence_transformers", "sentences", BaselineError).SentenceTransformer(
                options["model"]
            )
            self.vectors(
                encoder.encode([document.text for document in labelled_documents(self.run.corpus)])
            )
        elif job.peer == "doc2vec":  # reads words in order
            model = peers.Doc2Vec(job.size, seed=seed, **options).fit(data.training.documents)
            self.vectors(model.transform(test.documents))
        elif job.peer == "bm25":
            index, count = peers.BM25(**options).fit(tested), len(test.labels)
            ranking = ScoreRanking(
                lambda block: index.scores(tested[block]), count, count, itself=True
            )
            self.scores("vectors", evaluate(ranking, Relevance(test.labels, self.relevance)))
        elif job.peer == "tf-idf":
            self.vectors(peers.TfIdf().fit(training).transform(tested))
        elif job.peer == "lsa":
            analysis = peers.LSA(job.size, seed=seed).fit(training)
            vectors = analysis.transform(tested)
            self.vectors(vectors)
            self.hashed(vectors, analysis.transform(training), job.size)
        else:
            autoencoder = SemanticHashing(job.size, seed=seed, device=self.device, **options).fit(
                training
            )
            self.codes(autoencoder.transform(tested), autoencoder.transform(training))

    def _add(self, part: str, values: dict[str, float]) -> None:
        self.rows += [(part, metric, round(value, 4)) for metric, value in values.items()]

    def scores(self, part: str, scores: Scores) -> None:
        """Means over queries, and the precision-recall curve at a few points."""
        recall = np.log(np.maximum(100 * np.array(scores.curve.recall), 1e-9))
        curve = np.interp(np.log(RECALLS), recall, scores.curve.precision).tolist()
        at_recalls = {
            f"precision@recall={at:g}%": precision
            for at, precision in zip(RECALLS, curve, strict=True)
        }
        counts = {"queries": scores.queries, "skipped": scores.skipped}
        self._add(part, {"map": scores.map, "ndcg@10": scores.ndcg} | counts | at_recalls)

    def vectors(self, vectors: Any) -> None:
        """Scores of real-valued vectors."""
        self.scores(
            "vectors", evaluate_vectors(vectors, self.test.labels, relevance=self.relevance)
        )

    def codes(self, codes: Any, trained: Any, part: str = "codes") -> None:
        """Scores of codes; also by the hashing papers' protocol, where test documents query the training documents."""
        labels = self.test.labels
        self.scores(part, evaluate_codes(codes, labels, relevance=self.relevance))
        labelled = [number for number, of in enumerate(self.data.training.labels) if of]
        chosen = np.sort(np.random.default_rng(0).permutation(len(codes))[:_MOST_QUERIES])
        searched = (trained[labelled], [self.data.training.labels[number] for number in labelled])
        queries = [labels[query] for query in chosen]
        scores = evaluate_codes(codes[chosen], queries, relevance=self.relevance, searched=searched)
        self._add(part, {"training_precision@100": scores.precision})

    def hashed(self, vectors: Any, trained: Any, bits: int) -> None:
        """Vectors made into codes by the two separate algorithms."""
        from parabit.baselines.peers import IterativeQuantization, RandomHyperplanes

        for name, method in (("hyperplanes", RandomHyperplanes), ("itq", IterativeQuantization)):
            hashing = method(bits, seed=self.run.seed).fit(trained)
            self.codes(hashing.transform(vectors), hashing.transform(trained), name)

    def filtered(self, codes: Any, bits: Any, vectors: Any) -> None:
        """Table 4: codes select, vectors rank."""
        for radius in RADII[bits]:
            scores = evaluate_filtered(
                codes, vectors, self.test.labels, radius, relevance=self.relevance
            )
            values = {"ndcg@10": scores.ndcg, "strict_ndcg@10": scores.strict_ndcg}
            values |= {"retrieved": scores.retrieved, "empty": scores.empty}
            self._add(f"{bits} bits, radius {radius}", values)

    def transferred(self, inferred: dict[str, Inferred]) -> None:
        """Table 3: codes of collections that the model has not seen."""
        for name, test in self.data.tests.items():
            if name != self.run.corpus.name:
                relevance = self.data.facts["tests"][name]["relevance"]
                self.scores(
                    name, evaluate_codes(inferred[name][0], test.labels, relevance=relevance)
                )

    def _take_picture(self, codes: Any) -> None:
        """The codes of documents that have one of a few labels: the paper's, or else the most frequent ones."""
        names, labels = self.data.facts["labels"], self.test.labels
        common = [label for label, _ in Counter(sorted(chain(*labels))).most_common(5)]
        wanted = {names.index(name) for name in PAPER["newsgroups"] if name in names} or set(common)
        points = [(place, *wanted.intersection(of)) for place, of in enumerate(labels)]
        shown = [
            point for point in points if len(point) == 2
        ]  # with one of the labels, and no other of them
        if len(shown) > _MOST_POINTS:
            shown = [
                shown[place]
                for place in np.random.default_rng(0).choice(
                    len(shown), _MOST_POINTS, replace=False
                )
            ]
        self.picture = {
            "codes": codes[[place for place, _ in shown]],
            "labels": [names[label] for _, label in shown],
        }

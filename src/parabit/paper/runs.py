"""Runs: train on the arrays of a collection, infer its test documents, score them, and keep what came out.

What came out is one long table, `results.jsonl`, with a row per (corpus, job, seed, part, metric, value); `runs.jsonl`
says with which code, on what device and in how many seconds each run was made. A run is finished when its line
is there, so an interrupted command continues where it stopped.

Runs of networks need torch, numpy, scipy and scikit-learn only, so they can be made on another machine, with arrays
that were prepared here:

    python -m parabit.paper.runs REPORT --corpus 20newsgroups --workers 8
"""

import argparse
import base64
import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.errors import EvaluationError, ParabitError
from parabit.evaluation import (
    Relevance,
    ScoreRanking,
    Scores,
    evaluate,
    evaluate_codes,
    evaluate_filtered,
    evaluate_vectors,
)
from parabit.paper.corpora import (
    HEADERS_KEPT,
    PaperCorpus,
    Part,
    Prepared,
    labelled_documents,
    paper_corpora,
    prepare,
    read_facts,
    read_prepared,
)
from parabit.paper.experiments import ALL, EXPERIMENTS, JOBS, PICTURED, RADII, Network, Run, runs_of
from parabit.progress import Report, silent
from parabit.text.bags import Bags

RECALLS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 100.0)  # per cent, of curves: those of the paper's
_MOST_QUERIES = 2000  # of the hashing papers' protocol
_MOST_POINTS = 2500  # of a picture

Rows = list[tuple[str, str, float]]  # part, metric, value


class Finished(NamedTuple):
    """What came out of a run."""

    rows: Rows
    picture: dict[str, Any] | None = None


class Store:
    """The folder of a report: the long table, what its runs were made with, and arrays to work with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results, self.runs = folder / "results.jsonl", folder / "runs.jsonl"
        self._read = lru_cache(maxsize=1)(read_prepared)

    def arrays(self, corpus: PaperCorpus, bigrams: bool) -> Path:
        size = "" if corpus.most_trained is None else f"-{corpus.most_trained}-{corpus.most_tested}"
        return self.folder / "work" / "arrays" / f"{corpus.name}{size}" / ("bigrams.npz" if bigrams else "words.npz")

    def prepare(self, run: Run, corpora: Iterable[PaperCorpus], report: Report = silent) -> None:
        """Write the arrays of a run's collection, unless they are there; `corpora` are all those of the paper."""
        transfers = run.job.bigrams and run.corpus.collection == "English Wikipedia"
        others = [other for other in corpora if other.collection != run.corpus.collection] if transfers else []
        facts = self.facts(run.corpus, run.job.bigrams)
        if facts is None or not {other.name for other in others} <= facts["tests"].keys():
            work = self.folder / "work"
            work.mkdir(parents=True, exist_ok=True)
            (work / ".gitignore").write_text("*\n")
            prepare(self.arrays(run.corpus, run.job.bigrams), run.corpus, run.job.bigrams, others, report)
            self._read.cache_clear()

    def facts(self, corpus: PaperCorpus, bigrams: bool) -> dict[str, Any] | None:
        """What is known of a collection; None if it is not prepared, or its arrays are damaged."""
        try:
            return read_facts(self.arrays(corpus, bigrams))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return None

    def data(self, run: Run) -> Prepared:
        """The arrays of a run."""
        path = self.arrays(run.corpus, run.job.bigrams)
        if not path.exists():
            raise EvaluationError(f"{run.corpus.name} is not prepared: no {path}", hint="`parabit reproduce` does it")
        return self._read(path)

    def finished(self) -> dict[tuple[str, str, int, bool], dict[str, Any]]:
        """What each run was made with, the last one of each; a line that was cut off is ignored."""
        return {(line["corpus"], line["job"], line["seed"], line["quick"]): line for line in _lines(self.runs)}

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Runs that are not finished, or were made with other code, parameters or data."""
        kept = self.finished()
        return [run for run in runs if not self.is_current(run, kept.get(run.key))]

    def is_current(self, run: Run, line: dict[str, Any] | None) -> bool:
        facts = self.facts(run.corpus, run.job.bigrams)
        return line is not None and line["id"] == run.id and (not facts or line["data"] == facts["fingerprint"])

    def keep(self, about: dict[str, Any], finished: Finished) -> None:
        """Write what came out: rows first, as their run counts only when its line is there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        where = {name: about[name] for name in ("corpus", "job", "seed")}
        lines = [{**where, "part": p, "metric": m, "value": v, "run": about["id"]} for p, m, v in finished.rows]
        _append(self.results, lines)
        if finished.picture:
            path = self.folder / "work" / f"picture-{about['corpus']}{'-quick' if about['quick'] else ''}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(finished.picture))
        _append(self.runs, [about])


def _append(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    torn = path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    with path.open("a") as file:
        file.write("\n" * bool(torn) + "".join(json.dumps(line) + "\n" for line in lines))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:  # written when the power went
            continue


def perform(run: Run, data: Prepared, device: str = "auto", report: Report = silent) -> tuple[dict[str, Any], Finished]:
    """Train and score: what the run was made with, and what came out."""
    import torch

    from parabit.networks import choose_device

    start = time.perf_counter()
    finished = _network(run, data, device, report) if run.job.networks else _PEERS[run.job.peer](run, data, device)
    place = choose_device(device if run.job.on_gpu else "cpu")
    about = {
        "id": run.id,
        "corpus": run.corpus.name,
        "job": run.job.name,
        "seed": run.seed,
        "quick": run.quick,
        "code": run.job.code,
        "data": data.fingerprint,
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


def _network(run: Run, data: Prepared, device: str, report: Report) -> Finished:
    name, relevance, part = run.corpus.name, run.corpus.relevance, data.tests[run.corpus.name]
    *others, network = run.job.networks
    encoded = _train(run, network, data, device, report)
    codes, vectors = encoded[name]
    if run.job.name == "transfer":
        return Finished(_transferred({target: encoded[target].codes for target in encoded}, run, data))
    rows: Rows = []
    if codes is not None:
        rows += _code_scores("codes", codes, encoded[""].codes, data, part, relevance)
    if network.dim is not None:
        rows += _scores("vectors", evaluate_vectors(vectors, part.labels, relevance=relevance))
    if run.job.name == "pv-dbow-32-bigrams":  # Table 2
        rows += _hashed(encoded[""].vectors, vectors, 32, run, data)
    if run.job.name.startswith("real-binary") and codes is not None:  # Table 4, variant A: one network
        rows += _filtered(codes, network.bits or 0, vectors, part, relevance)
    for other in others:  # Table 4, variant B: codes of separate networks, vectors of the last one
        separate = _train(run, other, data, device, report)[name].codes
        assert separate is not None
        rows += _filtered(separate, other.bits or 0, vectors, part, relevance)
    picture = _picture(codes, part, data, run.corpus) if run.job.name == PICTURED and codes is not None else None
    return Finished(rows, picture if run.seed == 0 else None)


def _closed_form(run: Run, data: Prepared, device: str) -> Finished:
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

    def encoded(part: Part) -> _Encoded:
        known = _matrix(part, data)[:, words]
        found = encoder(Bags.of_counts(known.indices, known.data, known.indptr))
        assert found.codes is not None
        return _Encoded(found.codes, found.vectors)

    part, relevance = data.tests[run.corpus.name], run.corpus.relevance
    if run.job.name.endswith("transfer"):
        return Finished(_transferred({name: encoded(test).codes for name, test in data.tests.items()}, run, data))
    codes, vectors = encoded(part)
    assert codes is not None
    if run.job.size in RADII:
        return Finished(_filtered(codes, run.job.size, vectors, part, relevance))
    rows = _code_scores("codes", codes, encoded(data.training).codes, data, part, relevance)
    return Finished(rows + _scores("vectors", evaluate_vectors(vectors, part.labels, relevance=relevance)))


def _semantic_hashing(run: Run, data: Prepared, device: str) -> Finished:
    from parabit.baselines.semantic_hashing import SemanticHashing

    model = SemanticHashing(run.job.size, seed=run.seed, device=device, **run.job.options(run.quick))
    model.fit(_matrix(data.training, data))
    part = data.tests[run.corpus.name]
    trained, codes = (model.transform(_matrix(documents, data)) for documents in (data.training, part))
    return Finished(_code_scores("codes", codes, trained, data, part, run.corpus.relevance))


def _lsa(run: Run, data: Prepared, device: str) -> Finished:
    from parabit.baselines.peers import LSA

    model = LSA(run.job.size, seed=run.seed).fit(_matrix(data.training, data))
    part = data.tests[run.corpus.name]
    trained, vectors = (model.transform(_matrix(documents, data)) for documents in (data.training, part))
    rows = _scores("vectors", evaluate_vectors(vectors, part.labels, relevance=run.corpus.relevance))
    return Finished(rows + _hashed(trained, vectors, run.job.size, run, data))


def _doc2vec(run: Run, data: Prepared, device: str) -> Finished:
    from parabit.baselines.peers import Doc2Vec

    model = Doc2Vec(run.job.size, seed=run.seed, **run.job.options(run.quick)).fit(data.training.documents)
    return _vectors(model.transform(data.tests[run.corpus.name].documents), run, data)


def _tf_idf(run: Run, data: Prepared, device: str) -> Finished:
    from parabit.baselines.peers import TfIdf

    model = TfIdf().fit(_matrix(data.training, data))
    return _vectors(model.transform(_matrix(data.tests[run.corpus.name], data)), run, data)


def _sentences(run: Run, data: Prepared, device: str) -> Finished:
    """A pretrained encoder, which reads the texts themselves."""
    from parabit.baselines.peers import SentenceEncoder

    texts = [document.text for document in labelled_documents(run.corpus)]
    return _vectors(SentenceEncoder(**run.job.options(run.quick)).transform(texts), run, data)


def _bm25(run: Run, data: Prepared, device: str) -> Finished:
    from parabit.baselines.peers import BM25

    part = data.tests[run.corpus.name]
    documents, count = _matrix(part, data), len(part.labels)
    model = BM25(**run.job.options(run.quick)).fit(documents)
    ranking = ScoreRanking(lambda block: model.scores(documents[block]), count, count, itself=True)
    return Finished(_scores("vectors", evaluate(ranking, Relevance(part.labels, run.corpus.relevance))))


_PEERS = {
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


def _vectors(vectors: Any, run: Run, data: Prepared) -> Finished:
    labels = data.tests[run.corpus.name].labels
    return Finished(_scores("vectors", evaluate_vectors(vectors, labels, relevance=run.corpus.relevance)))


def _scores(part: str, scores: Scores) -> Rows:
    recall, precision = 100 * np.array(scores.curve.recall), np.array(scores.curve.precision)
    curve = np.interp(np.log(RECALLS), np.log(np.maximum(recall, 1e-9)), precision)
    rows = [("map", scores.map), ("ndcg@10", scores.ndcg), ("queries", scores.queries), ("skipped", scores.skipped)]
    rows += [(f"precision@recall={at:g}%", float(value)) for at, value in zip(RECALLS, curve, strict=True)]
    return [(part, metric, round(value, 4)) for metric, value in rows]


def _code_scores(
    name: str,
    codes: NDArray[np.uint8],
    trained: NDArray[np.uint8] | None,
    data: Prepared,
    part: Part,
    relevance: str,
) -> Rows:
    """Scores of codes; also by the hashing papers' protocol, where test documents query the training documents."""
    rows = _scores(name, evaluate_codes(codes, part.labels, relevance=relevance))
    labelled = np.flatnonzero([bool(labels) for labels in data.training.labels])
    if trained is None or not len(labelled):
        return rows
    chosen = np.sort(np.random.default_rng(0).permutation(len(codes))[:_MOST_QUERIES])
    searched = (trained[labelled], [data.training.labels[document] for document in labelled])
    asked = [part.labels[query] for query in chosen]
    scores = evaluate_codes(codes[chosen], asked, relevance=relevance, searched=searched)
    return [*rows, (name, "training_precision@100", round(scores.precision, 4))]


def _hashed(trained: Any, vectors: Any, bits: int, run: Run, data: Prepared) -> Rows:
    """Vectors made into codes by the two separate algorithms."""
    from parabit.baselines.peers import IterativeQuantization, RandomHyperplanes

    rows: Rows = []
    part = data.tests[run.corpus.name]
    for name, method in (("hyperplanes", RandomHyperplanes), ("itq", IterativeQuantization)):
        hashing = method(bits, seed=run.seed).fit(trained)
        codes = [hashing.transform(rows) for rows in (vectors, trained)]
        rows += _code_scores(name, codes[0], codes[1], data, part, run.corpus.relevance)
    return rows


def _filtered(codes: NDArray[np.uint8], bits: int, vectors: Any, part: Part, relevance: str) -> Rows:
    """Table 4: codes select, vectors rank."""
    rows: Rows = []
    for radius in RADII[bits]:
        scores = evaluate_filtered(codes, vectors, part.labels, radius, relevance=relevance)
        found = {
            "ndcg@10": scores.ndcg,
            "strict_ndcg@10": scores.strict_ndcg,
            "retrieved": scores.retrieved,
            "empty": scores.empty,
        }
        rows += [(f"{bits} bits, radius {radius}", metric, round(value, 4)) for metric, value in found.items()]
    return rows


def _transferred(codes: dict[str, NDArray[np.uint8] | None], run: Run, data: Prepared) -> Rows:
    """Table 3: codes of collections that the network has not seen."""
    rows: Rows = []
    for name, found in codes.items():
        if name not in ("", run.corpus.name) and found is not None:
            relevance = data.facts["tests"][name]["relevance"]
            rows += _scores(name, evaluate_codes(found, data.tests[name].labels, relevance=relevance))
    return rows


def _picture(codes: NDArray[np.uint8], part: Part, data: Prepared, corpus: PaperCorpus) -> dict[str, Any]:
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


def _work(tasks: Any, results: Any, folder: Path, device: str, deadline: float) -> None:
    """Perform runs until none is left; several processes keep one GPU busy."""
    import torch

    from parabit.parallel import limit_cores

    torch.set_num_threads(1)
    limit_cores(1)
    store = Store(folder)
    while time.time() < deadline and (run := tasks.get()) is not None:
        try:
            results.put(perform(run, store.data(run), device))
        except Exception as problem:  # it is the caller's to say
            results.put((run, problem))
    results.put(None)


def main() -> None:
    """Perform runs on arrays that are prepared, on several processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--corpus", nargs="*", default=[])
    parser.add_argument("--job", nargs="*", default=[name for name, job in JOBS.items() if job.on_gpu])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no run after so many")
    parser.add_argument("--arrays", type=Path, help="another folder to read arrays from")
    options = parser.parse_args()
    corpora = [*paper_corpora(["arxiv", "enwiki"])]
    corpora.insert(1, HEADERS_KEPT)
    corpora = [corpus for corpus in corpora if not options.corpus or corpus.name in options.corpus]
    store = Store(options.report)
    names = tuple(name for name in EXPERIMENTS if name != ALL)
    runs = store.missing(runs_of(names, corpora, options.seeds, jobs=tuple(options.job)))
    # The paper's own collections first, then one seed of what stands in for the others.
    runs.sort(key=lambda run: run.corpus.stand_in * (1 + run.seed))
    context = multiprocessing.get_context("spawn")
    tasks, results = context.Queue(), context.Queue()
    for run in [*runs, *[None] * options.workers]:
        tasks.put(run)
    deadline = time.time() + options.seconds
    arguments = (tasks, results, options.arrays or options.report, options.device, deadline)
    workers = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(options.workers)]
    for worker in workers:
        worker.start()
    ended = done = 0
    while ended < len(workers):
        result = results.get()
        if result is None:
            ended += 1
            continue
        done += 1
        if isinstance(result[1], Exception):
            sys.stdout.write(f"{result[0].key} failed: {result[1]!r}\n")
            continue
        store.keep(*result)
        about, finished = result
        shown = [value for _, metric, value in finished.rows if metric in ("map", "ndcg@10")]
        name = f"{about['corpus']} {about['job']} {about['seed']}"
        sys.stdout.write(f"{done} of {len(runs)}: {name} {about['seconds']} s {shown}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except ParabitError as problem:
        sys.exit(f"parabit.paper.runs: {problem}")
    except KeyboardInterrupt:
        sys.stderr.write("parabit.paper.runs: interrupted; finished runs are kept\n")
        sys.exit(130)

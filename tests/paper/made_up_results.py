"""Results of runs that nobody made: every part that a job has, with figures drawn at random."""

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np

from parabit.paper.corpora import PaperCorpus
from parabit.paper.jobs import JOBS, PICTURED, RADII, Job
from parabit.paper.tables import Finished
from parabit.paper.work import runs_of


def made_up(corpora: Iterable[PaperCorpus], seeds: int = 3, jobs: Iterable[Job] = JOBS.values()) -> Finished:
    """All runs of some jobs."""
    corpora = list(corpora)
    rng = np.random.default_rng(0)
    results: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs_of(corpora, jobs, range(seeds)):
        made = results_of(run.job, [corpus.name for corpus in corpora if corpus != run.corpus], rng)
        results.setdefault((run.corpus.name, run.job.name), []).append(made)
    return Finished(corpora, results)


def results_of(job: Job, others: Iterable[str], rng: np.random.Generator) -> dict[str, Any]:
    """What a run of a job gives."""

    def scores(searched: bool = False) -> dict[str, Any]:
        found = {name: round(float(rng.random()), 4) for name in ("map", "ndcg@10", "precision@100")}
        if searched:
            found["training_precision@100"] = round(float(rng.random()), 4)
        curve = {name: rng.random(5).round(5).tolist() for name in ("recall", "precision")}
        return {**found, "queries": 38, "skipped": 2, **curve}

    def filtered() -> dict[str, Any]:
        found = {name: round(float(rng.random()), 4) for name in ("ndcg@10", "cut_ndcg@10", "strict_ndcg@10")}
        return {**found, "retrieved": round(float(100 * rng.random()), 1), "queries": 30, "empty": 8, "skipped": 2}

    if job.name == "transfer":
        return {name: scores() for name in others}
    hashed = {name: scores(searched=bool(job.baseline)) for name in ("hyperplanes", "itq")}
    if job.baseline == "closed-form":
        return {"codes": scores(searched=True), "asymmetric": scores()}
    if job.baseline:
        if "semantic" in job.name:
            return {"codes": scores(searched=True)}
        return {"vectors": scores(), **(hashed if job.name.startswith("lsa") else {})}
    if job.name == "separate":
        return {"vectors": scores(), **{f"radius-{bits}-{r}": filtered() for bits in RADII for r in RADII[bits]}}
    [network] = job.networks
    if network.shape.projected:
        radii = {f"radius-{network.bits}-{radius}": filtered() for radius in RADII[network.bits or 0]}
        return {"codes": scores(), "vectors": scores(), **radii}
    if network.bits is None:
        return {"vectors": scores(), **(hashed if job.name == "pv-dbow-32-bigrams" else {})}
    return {"codes": scores(searched=True), **({"picture": picture(rng)} if job.name == PICTURED else {})}


def picture(rng: np.random.Generator, count: int = 12) -> dict[str, Any]:
    codes = rng.integers(256, size=(count, 16), dtype=np.uint8)
    labels = rng.choice(["sci.crypt", "comp.graphics"], count).tolist()
    return {"codes": base64.b64encode(codes.tobytes()).decode(), "bytes": 16, "labels": labels}

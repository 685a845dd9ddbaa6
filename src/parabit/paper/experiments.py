"""What is trained and scored: a job is one or more networks or a peer, a run is a job on a collection with a seed."""

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

from parabit.networks.config import Recipe, Shape, choose_shape, paper_recipe
from parabit.paper.corpora import PAPER, PaperCorpus

SIZES = (128, 32)
RADII = {28: (1, 2), 24: (2, 3)}  # of Table 4, by code size
QUICK_EPOCHS = {"dbow": 30, "dm": 6, "peers": 6}
_QUICK_SAMPLES = {
    "dbow": 1024,
    "dm": 128,
}  # in dm every position has a softmax of its own, so samples are the time
_REAL_DIM = 300

# Raised by hand when the results of a method change: then its runs are stale, and repeated. Code that is moved or
# written more simply and gives the same results keeps its version; docs/reproducing.md says how that is checked.
VERSIONS = {"network": 1, **dict.fromkeys(PAPER["peers"], 1)}


@dataclass(frozen=True)
class Network:
    """A network, trained by the paper's recipe with some changes."""

    shape: Shape
    bigrams: bool = False
    changes: dict[str, Any] = field(default_factory=dict)

    def recipe(self, quick: bool) -> Recipe:
        """How it is trained; the quick version has fewer epochs."""
        architecture = self.shape.architecture
        less = {"epochs": QUICK_EPOCHS[architecture], "samples": _QUICK_SAMPLES[architecture]}
        return paper_recipe(self.shape, self.bigrams, **self.changes | (less if quick else {}))


@dataclass(frozen=True, eq=False)
class Job:
    """What is trained and scored in one run."""

    name: str
    networks: tuple[Network, ...] = ()
    peer: str = ""
    size: int = 0  # of the peer's codes or vectors
    seeds: bool = True  # whether the result depends on a seed

    @property
    def bigrams(self) -> bool:
        return any(network.bigrams for network in self.networks) or self.name.endswith("transfer")

    def options(self, quick: bool) -> dict[str, Any]:
        """What a peer is run with."""
        options: dict[str, Any] = PAPER["peers"][self.peer]
        return options | (
            {"epochs": QUICK_EPOCHS["peers"]} if quick and "epochs" in options else {}
        )

    def parameters(self, quick: bool) -> dict[str, Any]:
        """Everything that decides the result, beside the collection, the seed and the code."""
        if self.peer:
            return {"peer": self.peer, "size": self.size, **self.options(quick)}
        return {
            "networks": [
                asdict(network.shape) | asdict(network.recipe(quick)) for network in self.networks
            ]
        }


def _jobs() -> dict[str, Job]:
    jobs = []
    for size in SIZES:
        for kind, bits, dim in (("binary-pv", size, None), ("pv", None, size)):
            dbow, dm = choose_shape(bits, dim), choose_shape(bits, dim, "dm")
            jobs.append(Job(f"{kind}-dbow-{size}-words", (Network(dbow),)))
            jobs.append(Job(f"{kind}-dbow-{size}-bigrams", (Network(dbow, bigrams=True),)))
            jobs.append(Job(f"{kind}-dm-{size}", (Network(dm),)))
        peers = ("closed-form", "semantic-hashing", "lsa", "doc2vec")
        jobs += [Job(f"{peer}-{size}", peer=peer, size=size) for peer in peers]
    jobs += [Job(peer, peer=peer, seeds=False) for peer in ("tf-idf", "bm25", "sentences")]
    for bits in RADII:
        jobs.append(
            Job(f"real-binary-{bits}", (Network(choose_shape(bits, _REAL_DIM), bigrams=True),))
        )
        jobs.append(Job(f"closed-form-{bits}", peer="closed-form", size=bits))
    selecting = [
        Network(choose_shape(bits), bigrams=True, changes=PAPER["filters"][str(bits)])
        for bits in RADII
    ]
    jobs.append(Job("separate", (*selecting, Network(choose_shape(None, _REAL_DIM), bigrams=True))))
    jobs.append(Job("transfer", (Network(choose_shape(128), bigrams=True),)))
    jobs.append(Job("closed-form-transfer", peer="closed-form", size=128))
    # What the paper says it tried: other binarizations, and wider contexts of distributed memory.
    for name, changes in PAPER["binarizations"].items():
        jobs.append(Job(f"binarization-{name}", (Network(choose_shape(128), changes=changes),)))
    jobs.append(
        Job(
            "window-1-two-sided",
            (Network(choose_shape(128, None, "dm", window=1, two_sided=True)),),
        )
    )
    jobs.append(Job("window-3", (Network(choose_shape(128, None, "dm", window=3)),)))
    return {job.name: job for job in jobs}


JOBS = _jobs()
PICTURED = "binary-pv-dbow-128-bigrams"  # whose codes the t-SNE pictures show

Row = tuple[str, ...]  # label (of a curve also its look), job, part

# What is filled into rows.
_SIZES = [{"size": size} for size in SIZES]
_FILTERS = [{"bits": bits, "radius": radius} for bits, radii in RADII.items() for radius in radii]


def _fill(rows: list[list[str]], values: list[dict[str, Any]]) -> list[Row]:
    """Rows with a {name} once for each of the values, then the others once."""
    filled = [
        tuple(text.format(**value) for text in row)
        for value in values
        for row in rows
        if "{" in "".join(row)
    ]
    return [*filled, *(tuple(row) for row in rows if "{" not in "".join(row))]


class Layout(NamedTuple):
    """A table: the same rows for each collection of an experiment, with the same metrics."""

    title: str
    caption: str
    head: str  # of the labels
    rows: list[Row]
    experiment: str
    metrics: tuple[str, ...] = ("map", "ndcg@10")


TABLES = {
    name: Layout(
        **{"experiment": name}
        | table
        | {"rows": _fill(table["rows"], _FILTERS if name == "table4" else _SIZES)}
    )
    for name, table in PAPER["tables"].items()
}
# Precision-recall curves of each collection.
CURVES = {str(value["size"]): _fill(PAPER["curves"]["networks"], [value]) for value in _SIZES}
CURVES |= {name: _fill(PAPER["curves"][name], []) for name in ("transfer", "Real-Binary")}


def _jobs_of(rows: Iterable[Row]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for row in rows for text in row if text in JOBS))


# The jobs that each part of the report shows.
EXPERIMENTS = {
    name: _jobs_of(TABLES[name].rows) for name in ("table1", "table2", "table3", "table4")
}
EXPERIMENTS["figures"] = _jobs_of(chain(*CURVES.values()))
EXPERIMENTS |= {
    "claims": _jobs_of(TABLES["variants"].rows),
    "peers": _jobs_of(TABLES["peers"].rows),
}


def runs_on(experiment: str, corpus: PaperCorpus) -> bool:
    """Whether an experiment has figures of a collection."""
    if experiment == "claims":
        return corpus.name == "20newsgroups"
    return not corpus.headers or experiment in ("table1", "table2", "table4")


class Run(NamedTuple):
    """A job on a collection with a seed."""

    job: Job
    corpus: PaperCorpus
    seed: int
    quick: bool = False

    @property
    def key(self) -> tuple[str, str, int, bool]:
        return self.corpus.name, self.job.name, self.seed, self.quick

    @property
    def id(self) -> str:
        """A digest of everything that decides the result, except the data."""
        whole = (*self.key, self.job.parameters(self.quick), VERSIONS[self.job.peer or "network"])
        return blake2b(json.dumps(whole, sort_keys=True).encode(), digest_size=6).hexdigest()


def runs_of(
    names: Iterable[str],
    corpora: list[PaperCorpus],
    seeds: int,
    quick: bool = False,
    jobs: Collection[str] = (),
) -> list[Run]:
    """The runs of some experiments, each once: by seed, collection, and words or bigrams."""
    runs = [
        Run(JOBS[job], corpus, seed, quick)
        for name in names
        for corpus in corpora
        if runs_on(name, corpus)
        for job in EXPERIMENTS[name]
        if not jobs or job in jobs
        if not job.endswith("transfer") or corpus.wikipedia
        for seed in range(seeds if JOBS[job].seeds else 1)
    ]
    return sorted(
        dict.fromkeys(runs), key=lambda run: (run.seed, corpora.index(run.corpus), run.job.bigrams)
    )

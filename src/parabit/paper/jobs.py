"""The runs that tables and figures are made of: what is trained on which collection, with which seed."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from parabit.networks.config import Recipe, Shape, choose_shape, paper_recipe
from parabit.paper.corpora import PaperCorpus

SIZES = (128, 32)
RADII = {28: (1, 2), 24: (2, 3)}  # of Table 4, by code size
QUICK_EPOCHS = {"dbow": 15, "dm": 3, "peers": 6}
_QUICK_SAMPLES = {"dbow": 1024, "dm": 128}  # where every position has a softmax of its own, samples are the time
_REAL_DIM = 300


# What the closed form and the peers are run with, beside size and seed.
BASELINES: dict[str, dict[str, Any]] = {
    "closed-form": {},
    "semantic-hashing": {
        "words": 2000,
        "hidden": [500, 500],
        "noise": 8.0,
        "word_dropout": 0.8,
        "dropout": 0.2,
        "epochs": 40,
        "rate": 1e-3,
    },
    "wide-semantic-hashing": {"words": 10_000},  # and else the same
    "lsa": {},
    "sentences": {"model": "all-MiniLM-L6-v2"},
    "doc2vec": {"epochs": 20},
    "tf-idf": {},
    "bm25": {"k1": 1.5, "b": 0.75},
}


class Network(NamedTuple):
    """A network to train by the paper's recipe."""

    bits: int | None = None
    dim: int | None = None
    architecture: str = "dbow"
    bigrams: bool = False

    @property
    def shape(self) -> Shape:
        return choose_shape(self.bits, self.dim, self.architecture)

    def recipe(self, quick: bool) -> Recipe:
        """How it is trained; with fewer epochs where it is to be quick."""
        less = {"epochs": QUICK_EPOCHS[self.architecture], "samples": _QUICK_SAMPLES[self.architecture]}
        return paper_recipe(self.shape, self.bigrams, **(less if quick else {}))


@dataclass(frozen=True)
class Job:
    """What is trained and scored in one run."""

    name: str
    networks: tuple[Network, ...] = ()
    baseline: str = ""
    size: int = 0  # of the baseline's codes or vectors
    seeds: bool = True  # whether chance plays a part

    def options(self, quick: bool) -> dict[str, Any]:
        """What a baseline is run with."""
        usual = BASELINES["semantic-hashing"] if self.baseline == "wide-semantic-hashing" else {}
        options = usual | BASELINES.get(self.baseline, {})
        return options | ({"epochs": QUICK_EPOCHS["peers"]} if quick and "epochs" in options else {})

    @property
    def trains(self) -> bool:
        """Whether torch trains it, on a GPU where there is one."""
        return bool(self.networks) or self.baseline.endswith("semantic-hashing")

    @property
    def bigrams(self) -> bool:
        """Whether it reads bigrams."""
        return any(network.bigrams for network in self.networks)

    def parameters(self, quick: bool) -> dict[str, Any]:
        """All that decides what comes out, beside the collection and the seed."""
        return {
            "bigrams": self.bigrams,
            "networks": [{**network._asdict(), "recipe": asdict(network.recipe(quick))} for network in self.networks],
            **({"baseline": self.baseline, "size": self.size, **self.options(quick)} if self.baseline else {}),
        }


def _jobs() -> dict[str, Job]:
    jobs = []
    for size in SIZES:
        for kind, network in (("binary-pv", Network(bits=size)), ("pv", Network(dim=size))):
            jobs.append(Job(f"{kind}-dbow-{size}-words", (network,)))
            jobs.append(Job(f"{kind}-dbow-{size}-bigrams", (network._replace(bigrams=True),)))
            jobs.append(Job(f"{kind}-dm-{size}", (network._replace(architecture="dm"),)))
        jobs.append(Job(f"default-{size}", baseline="closed-form", size=size))
        peers = ("semantic-hashing", "wide-semantic-hashing", "lsa", "doc2vec")
        jobs += [Job(f"{baseline}-{size}", baseline=baseline, size=size) for baseline in peers]
    jobs += [Job(baseline, baseline=baseline, seeds=False) for baseline in ("tf-idf", "bm25", "sentences")]
    binary, real = (Network(bits=bits, bigrams=True) for bits in RADII), Network(dim=_REAL_DIM, bigrams=True)
    jobs += [Job(f"real-binary-{bits}", (real._replace(bits=bits),)) for bits in RADII]
    jobs.append(Job("separate", (*binary, real)))
    jobs.append(Job("transfer", (Network(bits=128, bigrams=True),)))
    return {job.name: job for job in jobs}


JOBS = _jobs()
PICTURED = "binary-pv-dbow-128-bigrams"  # whose codes the t-SNE pictures show


class Run(NamedTuple):
    """A job with a collection and a seed."""

    job: Job
    corpus: PaperCorpus
    seed: int
    quick: bool = False

    @property
    def file(self) -> str:
        # The quick version has its own: it must not cost anybody the runs of the whole, which take hours.
        return f"{self.corpus.name}{'-quick' if self.quick else ''}/{self.job.name}-{self.seed}.json"

    def identity(self, fingerprint: str) -> dict[str, Any]:
        """What a kept result must have been made with to be taken for this run's."""
        return {"data": fingerprint, "seed": self.seed, **self.job.parameters(self.quick)}

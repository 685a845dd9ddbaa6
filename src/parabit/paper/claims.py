"""The paper's claims, each with our figures and a verdict computed from the long table."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from parabit.paper.corpora import PaperCorpus
from parabit.paper.tables import Figures

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "holds in part", "does not hold", "cannot be tested here"

# A comparison: what is compared, the value that should be higher (or near), and the one that it is compared with.
Comparison = tuple[str, float | None, float | None]


class Claim(NamedTuple):
    """A claim of the paper."""

    text: str
    verdict: str
    figures: str


def claims(figures: Figures) -> list[Claim]:
    """All claims that are checked, in the paper's order."""
    shown = {line["corpus"] for line in figures.runs}
    corpora = [corpus for corpus in figures.corpora if corpus.group == "paper" and corpus.name in shown]
    return [_claim(text, compare(figures, corpora), margin) for text, compare, margin in _CLAIMS]


def _claim(text: str, comparisons: Iterable[Comparison], margin: float) -> Claim:
    """It holds where the first value is above the second; a negative margin lets it be that much below."""
    known = [(name, first, second) for name, first, second in comparisons if first is not None and second is not None]
    if not known:
        return Claim(text, UNTESTED, "no such runs")
    true = [first - second > margin for _, first, second in known]
    said = "; ".join(f"{name}: {_shown(first)} and {_shown(second)}" for name, first, second in known)
    return Claim(text, HOLDS if all(true) else PARTLY if any(true) else FAILS, said)


def _shown(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _each(
    job: str, other: str, part: str = "codes", other_part: str = "codes", metric: str = "map"
) -> Callable[[Figures, list[PaperCorpus]], list[Comparison]]:
    """Two jobs on each collection."""

    def compare(figures: Figures, corpora: list[PaperCorpus]) -> list[Comparison]:
        return [
            (c.title, figures.value(c.name, job, part, metric), figures.value(c.name, other, other_part, metric))
            for c in corpora
        ]

    return compare


def _on_first(*pairs: tuple[str, str, str]) -> Callable[[Figures, list[PaperCorpus]], list[Comparison]]:
    """Pairs of jobs on 20 Newsgroups: name, job, other job."""

    def compare(figures: Figures, corpora: list[PaperCorpus]) -> list[Comparison]:
        return [
            (name, figures.value("20newsgroups", job), figures.value("20newsgroups", other))
            for name, job, other in pairs
        ]

    return compare


def _bigrams(figures: Figures, corpora: list[PaperCorpus]) -> list[Comparison]:
    found = []
    for corpus in corpora:
        for kind, job, part in (("binary", "binary-pv-dbow", "codes"), ("real", "pv-dbow", "vectors")):
            for size in (128, 32):
                both, words = (figures.value(corpus.name, f"{job}-{size}-{way}", part) for way in ("bigrams", "words"))
                found.append((f"{corpus.title}, {kind} {size}", both, words))
    return found


def _transfer(figures: Figures, corpora: list[PaperCorpus]) -> list[Comparison]:
    """Codes from Wikipedia keep more than half of the MAP of codes from the collection itself."""
    found = []
    for corpus in corpora:
        own = figures.value(corpus.name, "binary-pv-dbow-128-bigrams")
        other = figures.value("enwiki", "transfer", corpus.name) or figures.value("wikipedia", "transfer", corpus.name)
        found.append((f"{corpus.title}, half of its own", other, None if own is None else own / 2))
    return found


def _radius(job: str, other: str, other_part: str = "") -> Callable[[Figures, list[PaperCorpus]], list[Comparison]]:
    """NDCG@10 of Table 4, of all codes and radii, and another job's for the same or a fixed part."""

    def compare(figures: Figures, corpora: list[PaperCorpus]) -> list[Comparison]:
        found = []
        for corpus in corpora:
            for bits, radius in ((28, 1), (28, 2), (24, 2), (24, 3)):
                part = f"{bits} bits, radius {radius}"
                first = figures.value(corpus.name, job.format(bits=bits), part, "ndcg@10")
                second = figures.value(corpus.name, other.format(bits=bits), other_part or part, "ndcg@10")
                found.append((f"{corpus.title}, {part}", first, second))
        return found

    return compare


_DBOW, _DM = "binary-pv-dbow-{}-bigrams", "binary-pv-dm-{}"
_ROUNDED = "binary-pv-dbow-128-words"

_CLAIMS: list[tuple[str, Callable[[Figures, list[PaperCorpus]], list[Comparison]], float]] = [
    (
        "128-bit Binary PV-DBOW with bigrams beats 128-bit semantic hashing (MAP).",
        _each(_DBOW.format(128), "semantic-hashing-128"),
        0.0,
    ),
    (
        "32-bit Binary PV-DBOW with bigrams beats 128-bit semantic hashing, with fewer bits (MAP).",
        _each(_DBOW.format(32), "semantic-hashing-128"),
        0.0,
    ),
    (
        "128-bit Binary PV-DBOW with bigrams comes near real-valued PV-DBOW with bigrams (MAP, at most .05 below).",
        _each(_DBOW.format(128), "pv-dbow-128-bigrams", "codes", "vectors"),
        -0.05,
    ),
    (
        "Rounding learns better codes than noise and stochastic neurons (MAP, 128 bits).",
        _on_first(
            *(
                (name, _ROUNDED, f"binarization-{name}")
                for name in ("noise", "straight-through", "straight-through-sigmoid", "annealed")
            )
        ),
        0.0,
    ),
    (
        "Random hyperplanes on real-valued vectors bring no benefit over 32-bit Binary PV-DBOW (MAP).",
        _each(_DBOW.format(32), "pv-dbow-32-bigrams", "codes", "hyperplanes"),
        -0.005,
    ),
    (
        "Iterative quantization of real-valued vectors brings no benefit over 32-bit Binary PV-DBOW (MAP).",
        _each(_DBOW.format(32), "pv-dbow-32-bigrams", "codes", "itq"),
        -0.005,
    ),
    ("Binary PV-DBOW beats Binary PV-DM at 128 bits (MAP).", _each(_DBOW.format(128), _DM.format(128)), 0.0),
    ("Binary PV-DBOW beats Binary PV-DM at 32 bits (MAP).", _each(_DBOW.format(32), _DM.format(32)), 0.0),
    (
        "A context of one word, on one side, is the best for Binary PV-DM (MAP).",
        _on_first(
            ("one on each side", "binary-pv-dm-128", "window-1-two-sided"),
            ("three before", "binary-pv-dm-128", "window-3"),
        ),
        0.0,
    ),
    ("Bigrams usually raise MAP.", _bigrams, 0.0),
    (
        "Codes transfer from Wikipedia to other collections (MAP of 128 bits, more than half of their own).",
        _transfer,
        0,
    ),
    (
        "Real-Binary's vectors improve the top hits over its codes (NDCG@10, 28 bits).",
        _each("real-binary-28", "real-binary-28", "vectors", "codes", "ndcg@10"),
        0.0,
    ),
    (
        "Real-Binary's vectors are less precise than those of a plain PV-DBOW of 300 dimensions (MAP).",
        _each("separate", "real-binary-28", "vectors", "vectors"),
        0.0,
    ),
    (
        "Filtering by Real-Binary's code and ranking by its vector beats 32-bit Binary PV-DBOW (NDCG@10).",
        _radius("real-binary-{bits}", _DBOW.format(32), "codes"),
        0.0,
    ),
    (
        "Separate networks (B) beat Real-Binary (A) in Table 4 (NDCG@10).",
        _radius("separate", "real-binary-{bits}"),
        0.0,
    ),
]

"""The paper's claims, each with our figures and a verdict computed from the long table."""

from typing import NamedTuple

from parabit.paper.corpora import PaperCorpus
from parabit.paper.experiments import BINARIZATIONS, FILTERS
from parabit.paper.tables import Figures

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "holds in part", "does not hold", "cannot be tested here"


class Claim(NamedTuple):
    """A claim of the paper."""

    text: str
    verdict: str
    figures: str


class _Check(NamedTuple):
    """What is compared: in each pair the first figure should be higher, by the margin; a negative one lets it be lower.

    A pair has a name, empty if there is only one, and two figures, each as job/part; without a part it is "codes".
    """

    text: str
    pairs: tuple[tuple[str, str, str], ...]
    metric: str = "map"
    margin: float = 0.0
    share: float = 1.0  # of the second figure


_DBOW_128, _DBOW_32 = "binary-pv-dbow-128-bigrams", "binary-pv-dbow-32-bigrams"
_NEAR = "no benefit over 32-bit Binary PV-DBOW (MAP)."

_CHECKS = (  # in the paper's order
    _Check(
        "128-bit Binary PV-DBOW with bigrams beats 128-bit semantic hashing (MAP).",
        (("", _DBOW_128, "semantic-hashing-128"),),
    ),
    _Check(
        "32-bit Binary PV-DBOW with bigrams beats 128-bit semantic hashing, with fewer bits (MAP).",
        (("", _DBOW_32, "semantic-hashing-128"),),
    ),
    _Check(
        "128-bit Binary PV-DBOW with bigrams comes near real-valued PV-DBOW with bigrams (MAP, at most .05 below).",
        (("", _DBOW_128, "pv-dbow-128-bigrams/vectors"),),
        margin=-0.05,
    ),
    _Check(
        "Rounding learns better codes than noise and stochastic neurons (MAP, 128 bits).",
        tuple((name, "binary-pv-dbow-128-words", f"binarization-{name}") for name in BINARIZATIONS),
    ),
    _Check(
        f"Random hyperplanes on real-valued vectors bring {_NEAR}",
        (("", _DBOW_32, "pv-dbow-32-bigrams/hyperplanes"),),
        margin=-0.005,
    ),
    _Check(
        f"Iterative quantization of real-valued vectors brings {_NEAR}",
        (("", _DBOW_32, "pv-dbow-32-bigrams/itq"),),
        margin=-0.005,
    ),
    _Check("Binary PV-DBOW beats Binary PV-DM at 128 bits (MAP).", (("", _DBOW_128, "binary-pv-dm-128"),)),
    _Check("Binary PV-DBOW beats Binary PV-DM at 32 bits (MAP).", (("", _DBOW_32, "binary-pv-dm-32"),)),
    _Check(
        "A context of one word, on one side, is the best for Binary PV-DM (MAP).",
        (
            ("one on each side", "binary-pv-dm-128", "window-1-two-sided"),
            ("three before", "binary-pv-dm-128", "window-3"),
        ),
    ),
    _Check(
        "Bigrams usually raise MAP.",
        (
            ("binary 128", _DBOW_128, "binary-pv-dbow-128-words"),
            ("binary 32", _DBOW_32, "binary-pv-dbow-32-words"),
            ("real 128", "pv-dbow-128-bigrams/vectors", "pv-dbow-128-words/vectors"),
            ("real 32", "pv-dbow-32-bigrams/vectors", "pv-dbow-32-words/vectors"),
        ),
    ),
    _Check(
        "Codes transfer from Wikipedia to other collections (MAP of 128 bits, more than half of their own).",
        (("half of its own", "transfer", _DBOW_128),),
        share=0.5,
    ),
    _Check(
        "Real-Binary's vectors improve the top hits over its codes (NDCG@10, 28 bits).",
        (("", "real-binary-28/vectors", "real-binary-28"),),
        "ndcg@10",
    ),
    _Check(
        "Real-Binary's vectors are less precise than those of a plain PV-DBOW of 300 dimensions (MAP).",
        (("", "separate/vectors", "real-binary-28/vectors"),),
    ),
    _Check(
        "Filtering by Real-Binary's code and ranking by its vector beats 32-bit Binary PV-DBOW (NDCG@10).",
        tuple((part, f"real-binary-{bits}/{part}", _DBOW_32) for bits, _, part in FILTERS),
        "ndcg@10",
    ),
    _Check(
        "Separate networks (B) beat Real-Binary (A) in Table 4 (NDCG@10).",
        tuple((part, f"separate/{part}", f"real-binary-{bits}/{part}") for bits, _, part in FILTERS),
        "ndcg@10",
    ),
)


def claims(figures: Figures) -> list[Claim]:
    """All claims that are checked, in the paper's order: one holds if it does in every comparison."""
    return [_judge(check, figures) for check in _CHECKS]


def _judge(check: _Check, figures: Figures) -> Claim:
    compared = []
    for corpus in figures.shown:
        if corpus.group == "paper":
            for name, *pair in check.pairs:
                first, second = (_value(figures, corpus, figure, check.metric) for figure in pair)
                if first is not None and second is not None:
                    compared.append((", ".join(filter(None, (corpus.title, name))), first, check.share * second))
    if not compared:
        return Claim(check.text, UNTESTED, "no such runs")
    true = [first - second > check.margin for _, first, second in compared]
    shown = "; ".join(f"{name}: {first:.3f} and {second:.3f}" for name, first, second in compared).replace(" 0.", " .")
    return Claim(check.text, HOLDS if all(true) else PARTLY if any(true) else FAILS, shown)


def _value(figures: Figures, corpus: PaperCorpus, figure: str, metric: str) -> float | None:
    job, _, part = figure.partition("/")
    if job == "transfer":  # a figure of the collection that it was trained on
        values = (figures.value(source, job, corpus.name, metric) for source in ("enwiki", "wikipedia"))
        return next((value for value in values if value is not None), None)
    return figures.value(corpus.name, job, part or "codes", metric)

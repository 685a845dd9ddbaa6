"""The paper's claims, each with our figures and a verdict computed from the long table."""

from typing import NamedTuple

from parabit.paper.tables import Figures

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "holds in part", "does not hold", "cannot be tested here"

Figure = tuple[str, str, str]  # job, part, metric


class Claim(NamedTuple):
    """A claim of the paper."""

    text: str
    verdict: str
    figures: str


class _Check(NamedTuple):
    """What is compared: in each pair the first figure should be higher, by the margin; a negative one lets it be lower.

    A pair has a name, which is empty if there is only one, and two figures of the same collection.
    """

    text: str
    pairs: tuple[tuple[str, Figure, Figure], ...]
    margin: float = 0.0
    first_only: bool = False  # 20 Newsgroups alone


def _codes(job: str, metric: str = "map") -> Figure:
    return job, "codes", metric


_DBOW_128, _DBOW_32 = _codes("binary-pv-dbow-128-bigrams"), _codes("binary-pv-dbow-32-bigrams")
_BIGRAMS = tuple(
    (f"{kind} {size}", (f"{job}-{size}-bigrams", part, "map"), (f"{job}-{size}-words", part, "map"))
    for kind, job, part in (("binary", "binary-pv-dbow", "codes"), ("real", "pv-dbow", "vectors"))
    for size in (128, 32)
)
_RADII = tuple((bits, f"{bits} bits, radius {radius}") for bits, radius in ((28, 1), (28, 2), (24, 2), (24, 3)))
_BOTH = [(part, (f"real-binary-{bits}", part, "ndcg@10")) for bits, part in _RADII]  # variant A of Table 4
_NEAR = "no benefit over 32-bit Binary PV-DBOW (MAP)."

# In the paper's order; the claim of transfer, which compares two collections, is the one named None.
_CHECKS: tuple[_Check | None, ...] = (
    _Check(
        "128-bit Binary PV-DBOW with bigrams beats 128-bit semantic hashing (MAP).",
        (("", _DBOW_128, _codes("semantic-hashing-128")),),
    ),
    _Check(
        "32-bit Binary PV-DBOW with bigrams beats 128-bit semantic hashing, with fewer bits (MAP).",
        (("", _DBOW_32, _codes("semantic-hashing-128")),),
    ),
    _Check(
        "128-bit Binary PV-DBOW with bigrams comes near real-valued PV-DBOW with bigrams (MAP, at most .05 below).",
        (("", _DBOW_128, ("pv-dbow-128-bigrams", "vectors", "map")),),
        -0.05,
    ),
    _Check(
        "Rounding learns better codes than noise and stochastic neurons (MAP, 128 bits).",
        tuple(
            (name, _codes("binary-pv-dbow-128-words"), _codes(f"binarization-{name}"))
            for name in ("noise", "straight-through", "straight-through-sigmoid", "annealed")
        ),
        first_only=True,
    ),
    _Check(
        f"Random hyperplanes on real-valued vectors bring {_NEAR}",
        (("", _DBOW_32, ("pv-dbow-32-bigrams", "hyperplanes", "map")),),
        -0.005,
    ),
    _Check(
        f"Iterative quantization of real-valued vectors brings {_NEAR}",
        (("", _DBOW_32, ("pv-dbow-32-bigrams", "itq", "map")),),
        -0.005,
    ),
    _Check("Binary PV-DBOW beats Binary PV-DM at 128 bits (MAP).", (("", _DBOW_128, _codes("binary-pv-dm-128")),)),
    _Check("Binary PV-DBOW beats Binary PV-DM at 32 bits (MAP).", (("", _DBOW_32, _codes("binary-pv-dm-32")),)),
    _Check(
        "A context of one word, on one side, is the best for Binary PV-DM (MAP).",
        (
            ("one on each side", _codes("binary-pv-dm-128"), _codes("window-1-two-sided")),
            ("three before", _codes("binary-pv-dm-128"), _codes("window-3")),
        ),
        first_only=True,
    ),
    _Check("Bigrams usually raise MAP.", _BIGRAMS),
    None,
    _Check(
        "Real-Binary's vectors improve the top hits over its codes (NDCG@10, 28 bits).",
        (("", ("real-binary-28", "vectors", "ndcg@10"), _codes("real-binary-28", "ndcg@10")),),
    ),
    _Check(
        "Real-Binary's vectors are less precise than those of a plain PV-DBOW of 300 dimensions (MAP).",
        (("", ("separate", "vectors", "map"), ("real-binary-28", "vectors", "map")),),
    ),
    _Check(
        "Filtering by Real-Binary's code and ranking by its vector beats 32-bit Binary PV-DBOW (NDCG@10).",
        tuple((part, both, _codes("binary-pv-dbow-32-bigrams", "ndcg@10")) for part, both in _BOTH),
    ),
    _Check(
        "Separate networks (B) beat Real-Binary (A) in Table 4 (NDCG@10).",
        tuple((part, ("separate", part, "ndcg@10"), both) for part, both in _BOTH),
    ),
)


def claims(figures: Figures) -> list[Claim]:
    """All claims that are checked, in the paper's order: one holds if it does in every comparison."""
    shown = {line["corpus"] for line in figures.runs}
    corpora = [corpus for corpus in figures.corpora if corpus.group == "paper" and corpus.name in shown]
    found = []
    for check in _CHECKS:
        compared: list[tuple[str, float | None, float | None]] = []
        for corpus in corpora:
            if check is None:
                own = figures.value(corpus.name, *_DBOW_128)
                values = (figures.value(source, "transfer", corpus.name) for source in ("enwiki", "wikipedia"))
                half = None if own is None else own / 2
                compared.append((f"{corpus.title}, half of its own", next(filter(None, values), None), half))
            elif corpus.name == "20newsgroups" or not check.first_only:
                for name, first, second in check.pairs:
                    named = name if check.first_only else f"{corpus.title}, {name}" if name else corpus.title
                    compared.append((named, figures.value(corpus.name, *first), figures.value(corpus.name, *second)))
        text = "Codes transfer from Wikipedia to other collections (MAP of 128 bits, more than half of their own)."
        found.append(_judge(check.text if check else text, compared, check.margin if check else 0.0))
    return found


def _judge(text: str, compared: list[tuple[str, float | None, float | None]], margin: float) -> Claim:
    known = [(name, first, second) for name, first, second in compared if first is not None and second is not None]
    if not known:
        return Claim(text, UNTESTED, "no such runs")
    true = [first - second > margin for _, first, second in known]
    shown = "; ".join(f"{name}: {first:.3f} and {second:.3f}" for name, first, second in known).replace(" 0.", " .")
    return Claim(text, HOLDS if all(true) else PARTLY if any(true) else FAILS, shown)

"""The paper's claims, each with our figures and a verdict computed from the long table."""

from typing import NamedTuple

from parabit.paper.published import PAPER
from parabit.paper.tables import Figures

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "holds in part", "does not hold", "cannot be tested here"


class Claim(NamedTuple):
    """A claim of the paper."""

    text: str
    verdict: str
    figures: str


def claims(figures: Figures) -> list[Claim]:
    """All claims that are checked, in the paper's order: one holds if it does in every comparison."""
    return [_judge(figures, **claim) for claim in PAPER["claims"]]


def _judge(
    figures: Figures,
    text: str,
    pairs: list[tuple[str, str, str]],
    metric: str = "map",
    margin: float = 0.0,
    share: float = 1.0,
) -> Claim:
    compared = []
    for corpus in figures.shown:
        for name, *pair in [] if corpus.headers else pairs:
            places = (figure.partition("/") for figure in pair)
            first, second = (figures.value(corpus.name, job, part or "codes", metric) for job, _, part in places)
            if first is not None and second is not None:
                compared.append((", ".join(filter(None, (corpus.title, name))), first, share * second))
    if not compared:
        return Claim(text, UNTESTED, "no such runs")
    true = [first - second > margin for _, first, second in compared]
    shown = "; ".join(f"{name}: {first:.3f} and {second:.3f}" for name, first, second in compared).replace(" 0.", " .")
    return Claim(text, HOLDS if all(true) else PARTLY if any(true) else FAILS, shown)

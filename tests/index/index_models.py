"""Small models for the tests of the index, trained once."""

from functools import cache
from typing import Any

from parabit import Document, ParagraphVectors
from topics import make_topics

QUICK: dict[str, Any] = {"epochs": 2, "warm_up": 1, "samples": 64, "inference_rounds": 4, "device": "cpu"}
TOPICS = make_topics(300)
LEARNT = TOPICS.texts  # that the models are trained on
# Half of one text and half of another: texts of one topic have nearly the same code.
TEXTS = [f"{one[:70]}{other[70:]}" for one, other in zip(LEARNT, LEARNT[7:] + LEARNT[:7], strict=True)]
TEXTS = [" ".join(word for word in text.split() if len(word) == 6) for text in TEXTS]
UNKNOWN = "qwertyuiop asdfghjkl"  # words of no text


@cache
def binary() -> ParagraphVectors:
    """Binary PV-DBOW."""
    return ParagraphVectors(20, **QUICK).fit(LEARNT)


@cache
def real_binary() -> ParagraphVectors:
    """Real-Binary PV-DBOW, whose real vectors are longer than its codes."""
    return ParagraphVectors(12, dim=30, **QUICK).fit(LEARNT)


def documents(first: int, last: int) -> list[Document]:
    """Some of the texts, with labels and fields."""
    return [
        Document(f"d{place}", TEXTS[place], (f"topic{TOPICS.labels[place]}",), {"place": place, "odd": place % 2 == 1})
        for place in range(first, last)
    ]


def queries(count: int) -> list[str]:
    """Every third word of the last texts."""
    return [" ".join(text.split()[::3]) for text in TEXTS[-count:]]

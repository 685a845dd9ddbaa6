"""Small models for the tests of the index, learned once."""

from functools import cache

from parabit import Document, ParagraphVectors
from topics import make_topics

TOPICS = make_topics(300)
LEARNT = TOPICS.texts  # that the models are learned from
# Half of one text and half of another: texts of one topic have nearly the same code.
TEXTS = [
    f"{one[:70]}{other[70:]}" for one, other in zip(LEARNT, LEARNT[7:] + LEARNT[:7], strict=True)
]
# At most 40 words: BM25 knows the lengths of longer texts only roughly.
TEXTS = [" ".join([word for word in text.split() if len(word) == 6][:40]) for text in TEXTS]
UNKNOWN = "qwertyuiop asdfghjkl"  # words of no text


@cache
def binary() -> ParagraphVectors:
    """Codes alone."""
    return ParagraphVectors(20).fit(LEARNT)


@cache
def real_binary() -> ParagraphVectors:
    """Codes and real vectors, which are longer."""
    return ParagraphVectors(12, dim=30).fit(LEARNT)


def documents(first: int, last: int) -> list[Document]:
    """Some of the texts, with labels and fields."""
    return [
        Document(
            f"d{place}",
            TEXTS[place],
            (f"topic{TOPICS.labels[place]}",),
            {"place": place, "odd": place % 2 == 1},
        )
        for place in range(first, last)
    ]


def queries(count: int) -> list[str]:
    """Every third word of the last texts."""
    return [" ".join(text.split()[::3]) for text in TEXTS[-count:]]

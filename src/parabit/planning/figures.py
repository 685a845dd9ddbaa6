"""What a corpus is like, as far as a question says it; the rest follows from the corpus that was measured."""

from dataclasses import dataclass

from parabit.planning.costs import Costs
from parabit.planning.question import Question

SAMPLES, BIGRAM_SAMPLES = 1024, 4096  # candidates of the softmax in the default recipe
NEIGHBOURS = 10
# New pairs grow rarer as a corpus grows, but in a small one ever more of those that are there come often enough to
# count, so that what was measured would promise too many.
BIGRAM_POWER = 0.8
_SMALLEST_BATCH, _FEWEST_STEPS = 32, 32


@dataclass(frozen=True)
class Figures:
    """A corpus in numbers, and how it is trained on.

    Example:
        >>> figures = Figures.of(Question(documents=10**6, words=100, vocabulary=50_000), Costs.shipped())
        >>> figures.words, figures.features, figures.batch
        (100, 50000.0, 256)
    """

    characters: float  # of a document
    tokens: float  # of a document, those that are not in the vocabulary too
    words: float  # of a document, in the vocabulary
    entries: float  # distinct words and bigrams of a document
    features: float  # words and bigrams of the vocabulary
    richness: float  # of the vocabulary: how many times as large it is as one that grows as measured, at least 1
    samples: int  # candidates of the softmax
    batch: int  # documents in a step, of all workers together

    @classmethod
    def of(cls, question: Question, costs: Costs) -> "Figures":
        """Those that a question leaves open, as they were measured."""
        about = costs.about
        words = about["words"] if question.words is None else question.words
        share = words / about["words"]
        characters = about["characters"] * share if question.characters is None else question.characters
        tokens = about["tokens"] * share
        entries = min(about["entries"] * share ** about["entries_power"], words)
        if question.bigrams:
            entries += about["bigram_entries"] * share
        read = tokens * question.trained
        grown = costs.at("words", read) + (costs.at("bigrams", read, BIGRAM_POWER) if question.bigrams else 0)
        features = float(question.vocabulary or grown)
        # A small corpus has small batches, so that there are enough of them.
        fewest = max(_SMALLEST_BATCH, question.trained // _FEWEST_STEPS)
        batch = min(question.batch_size, fewest)
        return cls(
            characters,
            tokens,
            words,
            entries,
            features,
            max(features / grown, 1.0),
            BIGRAM_SAMPLES if question.bigrams else SAMPLES,
            max(batch, question.workers),  # each worker has at least one
        )

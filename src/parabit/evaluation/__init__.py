"""Measuring codes, vectors and rankings: tie-aware metrics, relevance by labels, and the protocols of the field."""

from parabit.evaluation.rankings import (
    HammingRanking,
    Ranking,
    ScoreRanking,
    asymmetric_ranking,
    cosine_ranking,
)
from parabit.evaluation.relevance import Relevance
from parabit.evaluation.scoring import (
    FilteredScores,
    Scores,
    evaluate,
    evaluate_codes,
    evaluate_filtered,
    evaluate_vectors,
)

__all__ = [
    "FilteredScores",
    "HammingRanking",
    "Ranking",
    "Relevance",
    "ScoreRanking",
    "Scores",
    "asymmetric_ranking",
    "cosine_ranking",
    "evaluate",
    "evaluate_codes",
    "evaluate_filtered",
    "evaluate_vectors",
]

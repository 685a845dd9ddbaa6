"""How well codes and vectors find documents of the same label: scores that no tie's order can change."""

from parabit.evaluation.metrics import Scores, evaluate_codes, evaluate_vectors, mean_average_precision, ndcg

__all__ = ["Scores", "evaluate_codes", "evaluate_vectors", "mean_average_precision", "ndcg"]

"""What makes a model an estimator of scikit-learn, if it is installed; without it an install is 60 MB smaller."""

from inspect import signature
from typing import Any, Self

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.exceptions import NotFittedError
except ModuleNotFoundError:

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """A model that has not learned yet."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Parameters by their names."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters of the constructor as they are now."""
            return {name: getattr(self, name) for name in signature(type(self)).parameters}

        def set_params(self, **parameters: Any) -> Self:
            """Change some of the constructor's parameters."""
            if unknown := parameters.keys() - self.get_params():
                raise ValueError(f"{type(self).__name__} has no parameter {min(unknown)!r}")
            vars(self).update(parameters)
            return self

    class TransformerMixin:  # type: ignore[no-redef]
        """Fit and transform in one call."""

        def fit_transform(self, X: Any, y: object = None, **options: Any) -> Any:  # noqa: N803
            """What `transform` returns for the texts that were learned from."""
            model: Any = self
            return model.fit(X, y, **options).transform(X)

    class ClassNamePrefixFeaturesOutMixin:  # type: ignore[no-redef]
        """Names of columns, which only scikit-learn asks for."""


__all__ = ["BaseEstimator", "ClassNamePrefixFeaturesOutMixin", "NotFittedError", "TransformerMixin", "check_fitted"]


def check_fitted(model: Any) -> None:
    """Raise unless a model has learned."""
    if not hasattr(model, "encoder_"):
        raise NotFittedError(f"this {type(model).__name__} is not fitted yet; call fit, or load a saved model")

"""What makes a model an estimator of scikit-learn, if it is installed; without it an install is 60 MB smaller."""

from inspect import signature
from typing import Any, Self

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.exceptions import NotFittedError

    class Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
        """A transformer of texts."""

        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.input_tags.string, tags.input_tags.two_d_array = True, False
            return tags
except ModuleNotFoundError:

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """A model that has not learned yet."""

    class Estimator:  # type: ignore[no-redef]
        """What estimators have that works without scikit-learn."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters of the constructor as they are now."""
            return {name: getattr(self, name) for name in signature(type(self)).parameters}

        def set_params(self, **parameters: Any) -> Self:
            """Change some of the constructor's parameters."""
            if unknown := parameters.keys() - self.get_params():
                raise ValueError(f"{type(self).__name__} has no parameter {min(unknown)!r}")
            vars(self).update(parameters)
            return self

        def fit_transform(self, X: Any, y: object = None, **options: Any) -> Any:  # noqa: N803
            """What `transform` returns for the texts that were learned from."""
            model: Any = self
            return model.fit(X, y, **options).transform(X)


def check_fitted(model: Any) -> None:
    """Raise unless a model has learned."""
    if not hasattr(model, "encoder_"):
        raise NotFittedError(
            f"this {type(model).__name__} is not fitted yet; call fit, or load a saved model"
        )

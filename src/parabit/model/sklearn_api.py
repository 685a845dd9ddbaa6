"""What makes a class a scikit-learn estimator, without importing scikit-learn, which takes longer than a search."""

import inspect
import reprlib
import textwrap
from typing import Any, Self

from parabit.errors import ModelError

_SHORT = reprlib.Repr()
_SHORT.maxset = _SHORT.maxfrozenset = 6
_SHORT.maxstring = 200


MODES = ("fast", "exact")  # of inference for new documents


def check_mode(mode: object) -> None:
    """Raise for what is not a way of inference; None is the model's own."""
    if mode is not None and mode not in MODES:
        raise ModelError(f"no mode {mode!r}", hint=f"there are {', '.join(MODES)}")


class Estimator:
    """Parameters are those of the constructor, which only stores them: scikit-learn's conventions.

    scikit-learn asks what an object can do, not what it inherits from. It is imported where something of it is needed:
    by those who ask for tags or show a model in a notebook, which scikit-learn or its user does.

    Example:
        >>> class Shift(Estimator):
        ...     def __init__(self, by=1, *, sign="+"):
        ...         self.by, self.sign = by, sign
        >>> Shift(2).set_params(sign="-").get_params()
        {'by': 2, 'sign': '-'}
        >>> Shift(2)
        Shift(by=2)
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = inspect.signature(cls).parameters.values()
        return {parameter.name: parameter.default for parameter in sorted(parameters, key=lambda one: one.name)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` makes no difference, as none is an estimator itself."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Set some parameters; the next `fit` uses them."""
        valid = self._defaults()
        for name, value in params.items():
            if name not in valid:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {[*valid]}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The parameters that were set, as scikit-learn shows them."""
        defaults = self._defaults()
        changed = [
            f"{name}={_SHORT.repr(value)}"
            for name, value in self.get_params().items()
            if repr(value) != repr(defaults[name])
        ]
        start = f"{type(self).__name__}("
        return textwrap.fill(
            start + ", ".join(changed) + ")",
            width=80,
            subsequent_indent=" " * len(start),
            expand_tabs=False,
            replace_whitespace=False,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            classifier_tags=None,
            regressor_tags=None,
            input_tags=InputTags(string=True, two_d_array=False),
        )

    def _repr_html_(self) -> str | None:
        """What a notebook shows."""
        from sklearn import get_config
        from sklearn.utils import estimator_html_repr

        return estimator_html_repr(self) if get_config()["display"] == "diagram" else None

    def _get_params_html(self, *args: Any, **options: Any) -> Any:
        """The table of parameters, which scikit-learn puts there from version 1.7 on."""
        from sklearn.base import BaseEstimator

        return BaseEstimator._get_params_html(self, *args, **options)


def check_fitted(model: Estimator, attribute: str) -> None:
    """Raise scikit-learn's NotFittedError for a model that was not trained."""
    if not hasattr(model, attribute):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model, attribute)

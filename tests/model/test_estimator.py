"""ParagraphVectors as scikit-learn sees it, though it does not inherit from scikit-learn."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_checks, get_tags

from parabit import ParagraphVectors
from parabit.model.sklearn_api import Estimator
from topics import Topics


class _Own(Estimator):
    def __init__(self, bits: int | None = 128, *, pattern: str = "a", stop_words: Any = "english", b: int = 1) -> None:
        self.bits, self.pattern, self.stop_words, self.b = bits, pattern, stop_words, b


class _Theirs(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    __init__ = _Own.__init__  # type: ignore[assignment]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


_Own.__name__ = _Theirs.__name__ = "Model"


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"bits": 16},
        {"b": 2, "bits": None},
        {"pattern": "[a-z]  [a-z]"},
        {"stop_words": frozenset({"a"}), "bits": 64, "b": 7},
        {"pattern": "a" * 40, "stop_words": "b" * 30, "bits": 64},
    ],
)
def test_what_it_shows_gives_and_refuses_is_what_scikit_learns_own_base_does(parameters: dict[str, Any]) -> None:
    own, theirs = _Own(**parameters), _Theirs(**parameters)
    assert repr(own) == repr(theirs)
    assert list(own.get_params().items()) == list(theirs.get_params().items())
    assert get_tags(own) == get_tags(theirs)
    for each in (own, theirs):
        with pytest.raises(ValueError, match="Invalid parameter 'bytes' for estimator Model") as problem:
            each.set_params(bytes=2)
        assert "Valid parameters are: ['b', 'bits', 'pattern', 'stop_words']." in str(problem.value)


def test_a_long_list_of_stop_words_is_not_shown_whole() -> None:
    shown = repr(ParagraphVectors(stop_words=frozenset(f"word{number}" for number in range(300))))
    assert len(shown) < 200
    assert shown.startswith("ParagraphVectors(stop_words=frozenset({'word0', ")


@pytest.mark.parametrize(
    "check",
    [
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_get_params_invariance",
        "check_mixin_order",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    ],
)
def test_it_passes_scikit_learns_own_checks_of_estimators(check: str) -> None:
    """Those that do not train: they do so on numbers."""
    run = getattr(estimator_checks, check, None)
    if run is None:
        pytest.skip(f"this version of scikit-learn has no {check}")
    run("ParagraphVectors", ParagraphVectors(bits=16))


def test_a_notebook_shows_its_parameters_alone_and_in_a_pipeline() -> None:
    model = ParagraphVectors(bits=24, bigrams=True)
    pipeline = Pipeline([("codes", model), ("topic", KNeighborsClassifier())])
    for shown in (model._repr_html_(), pipeline._repr_html_()):
        assert "ParagraphVectors" in shown
        assert "bigrams" in shown
        assert "24" in shown
    with config_context(display="text"):
        assert model._repr_html_() is None


def test_a_fitted_model_is_shown_as_fitted(topics: Topics) -> None:
    model = ParagraphVectors(8, epochs=1, device="cpu")
    assert "Not fitted" in str(model._repr_html_())
    assert "Not fitted" not in str(model.fit(topics.texts[:50])._repr_html_())


def test_it_works_in_a_pipeline_with_metadata_routing(topics: Topics) -> None:
    model = ParagraphVectors(8, epochs=1, device="cpu")
    with config_context(enable_metadata_routing=True):
        pipeline = Pipeline([("codes", clone(model)), ("topic", KNeighborsClassifier())])
        pipeline.fit(topics.texts[:60], topics.labels[:60])
        assert len(pipeline.predict(topics.texts[60:70])) == 10


def test_it_can_be_pickled_for_work_in_other_processes() -> None:
    model = ParagraphVectors(24, bigrams=True)
    assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()


def test_loading_and_encoding_import_neither_scikit_learn_nor_torch(topic_model: Path) -> None:
    code = """import sys
from parabit import Index, ParagraphVectors
model = ParagraphVectors.load(sys.argv[1])
index = Index.build(model, ["alpha beta", *model.vocabulary_.words.head(3)])
index.search(["x"], k=1), repr(model), model.get_params()
print({"sklearn", "torch", "pandas"} & sys.modules.keys())
"""
    result = subprocess.run([sys.executable, "-c", code, topic_model], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("set()\n", "")

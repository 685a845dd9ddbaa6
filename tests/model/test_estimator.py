"""ParagraphVectors as scikit-learn and its users see it."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_checks

from parabit import Document, ParagraphVectors, Tokenizer
from parabit.codes import unpack
from parabit.corpus import as_corpus
from parabit.errors import CorpusError, ParabitError, TrainingError
from topics import Topics

BAD_LEVELS: list[tuple[float, ...]] = [(), (8,), (20, 20), (-8, 40), (31.0, 1), (33, -1)]
QUICK = {"epochs": 2, "samples": 64, "inference_rounds": 3}


@pytest.fixture(scope="module")
def model(topics: Topics) -> ParagraphVectors:
    return ParagraphVectors(20).fit(topics.texts)


# The other checks of scikit-learn fit on arrays of numbers, which are no texts: what they claim is tested below, on
# texts (not fitted, cloned, fitted twice the same, feature names, fit returns self, a pipeline, pickled after fitting).
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
def test_it_passes_scikit_learns_checks_that_need_no_data(check: str) -> None:
    getattr(estimator_checks, check)("ParagraphVectors", ParagraphVectors(bits=16))


def test_fit_returns_itself_and_twice_the_same(topics: Topics, model: ParagraphVectors) -> None:
    twin = clone(model)
    for ask in (twin.transform, twin.infer, twin.save):
        with pytest.raises(NotFittedError):
            ask(["text"])
    assert twin.fit(topics.texts, topics.labels) is twin
    codes = model.transform(topics.texts)
    assert twin.transform(topics.texts).tobytes() == codes.tobytes()
    assert twin.fit(topics.texts).transform(topics.texts).tobytes() == codes.tobytes()
    assert clone(model).fit_transform(topics.texts).tobytes() == codes.tobytes()
    assert pickle.loads(pickle.dumps(model)).transform(topics.texts).tobytes() == codes.tobytes()


def test_output_is_packed_bytes_or_bits_with_names(topics: Topics, model: ParagraphVectors) -> None:
    packed = model.transform(topics.texts)
    assert packed.shape == (300, 3)
    assert model.get_feature_names_out().tolist() == [
        f"paragraphvectors{number}" for number in range(3)
    ]
    bits = clone(model).set_params(output="bits").fit(topics.texts)
    assert (bits.transform(topics.texts) == unpack(packed, 20)).all()
    assert len(bits.get_feature_names_out()) == 20
    frame = clone(bits).set_output(transform="pandas").fit(topics.texts).transform(topics.texts)
    assert frame.columns[-1] == "paragraphvectors19"
    real = ParagraphVectors(None, dim=30).fit(topics.texts)
    assert real.transform(topics.texts).dtype == np.float32
    assert len(real.get_feature_names_out()) == 30
    with pytest.raises(TrainingError, match="output is 'hex'; it must be packed or bits"):
        model.set_params(output="hex").transform(topics.texts)
    model.set_params(output="packed")


def test_it_stands_in_a_pipeline_and_a_grid_search(topics: Topics) -> None:
    pipeline = Pipeline(
        [("codes", ParagraphVectors(24, output="bits")), ("topic", KNeighborsClassifier(5))]
    )
    assert (
        pipeline.fit(topics.texts[:200], topics.labels[:200]).score(
            topics.texts[200:], topics.labels[200:]
        )
        > 0.9
    )
    search = GridSearchCV(pipeline, {"codes__bits": np.array([8, 16])}, cv=2, error_score="raise")
    assert search.fit(topics.texts, topics.labels).best_params_["codes__bits"] in (8, 16)
    with config_context(enable_metadata_routing=True):
        assert clone(pipeline).fit(topics.texts[:60], topics.labels[:60]).predict(
            topics.texts[60:70]
        ).shape == (10,)
    assert "ParagraphVectors" in pipeline._repr_html_()


def test_random_state_follows_scikit_learn(topics: Topics) -> None:
    def codes(random_state: Any) -> bytes:
        texts = topics.texts[:60]
        return bytes(
            ParagraphVectors(16, random_state=random_state).fit(texts).transform(texts).tobytes()
        )

    assert codes(3) == codes(np.int64(3)) != codes(4)
    assert codes(np.random.RandomState(5)) == codes(np.random.RandomState(5))
    assert len({codes(None) for _ in range(3)}) > 1


def test_texts_come_in_any_form(topics: Topics, model: ParagraphVectors) -> None:
    texts, codes = topics.texts, model.transform(topics.texts).tobytes()
    forms = [
        tuple(texts), np.array(texts), np.array(texts, dtype=object), pd.Series(texts), pl.Series(texts),
        [Document(str(number), text) for number, text in enumerate(texts)], as_corpus(texts), (text for text in texts),
    ]  # fmt: skip
    for form in forms:
        assert model.transform(form).tobytes() == codes
    assert ParagraphVectors(20).fit(text for text in texts).transform(texts).tobytes() == codes


def test_what_is_no_list_of_texts_is_refused_with_words_that_help(model: ParagraphVectors) -> None:
    for ask in (model.transform, ParagraphVectors().fit):
        with pytest.raises(CorpusError, match=r"texts have shape \(2, 1\)"):
            ask(np.array([["a"], ["b"]]))


def test_missing_texts_are_learned_without_and_get_zeros(topics: Topics) -> None:
    texts: list[Any] = [*topics.texts[:100], None, *topics.texts[100:], float("nan")]
    model = ParagraphVectors(20, missing="skip").fit(texts)
    with pytest.warns(UserWarning, match="2 of 302 texts have no word"):
        codes = model.transform(texts)
    assert model.n_unknown_ == 2
    assert not codes[[100, 301]].any()
    assert (codes[:100] == model.transform(topics.texts[:100])).all()
    with pytest.raises(TrainingError, match="missing is 'drop'"):
        ParagraphVectors(missing="drop").fit(texts)


def untouched() -> Iterator[str]:
    raise AssertionError("the texts were read")
    yield ""


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"bits": 7}, "bits is 7; it must be a whole number from 8 to 1,024"),
        ({"bits": True}, "bits is True"),
        ({"bits": None}, "neither bits nor dim is given"),
        ({"bits": None, "dim": 0}, "dim is 0"),
        *(
            ({"bits": 32, "levels": sizes}, f"levels {[*sizes]} for a size of 32; ")
            for sizes in BAD_LEVELS
        ),
        ({"solver": "closed"}, "no solver 'closed'; did you mean closed-form?"),
        ({"preset": "best"}, "no preset 'best'; there are default and paper"),
        ({"architecture": "dm"}, "architecture 'dm' with the closed form; use solver=\"network\""),
        (
            {"network_params": {"epochs": 5}},
            'network_params with the closed form; use solver="network"',
        ),
        ({"solver": "network", "levels": (120, 8)}, "levels with a network"),
        ({"random_state": 1.5}, "random_state is 1.5; it must be a whole number"),
        ({"min_count": 0}, "min_count is 0"),
    ],
)
def test_parameters_without_sense_are_refused_before_a_text_is_read(
    parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(ParabitError) as refused:
        ParagraphVectors(**parameters).fit(untouched())
    assert str(refused.value).startswith(words)


def test_the_papers_networks_are_trained_by_gradient_descent(topics: Topics) -> None:
    model = ParagraphVectors(16, preset="paper", network_params=QUICK, device="cpu").fit(
        topics.texts
    )
    assert (model.encoder_.solver, model.encoder_.name) == ("network", "Binary PV-DBOW")
    assert model.embeddings_ is not None
    assert model.embeddings_.shape == (300, 16)
    assert len(model.encoder_.config["training"]["history"]) == 2
    assert model.encoder_.config["network"]["recipe"]["samples"] == 64


def test_parameters_set_after_fitting_do_not_change_what_is_saved(
    topics: Topics, tmp_path: Path
) -> None:
    for name, model in {
        "closed": ParagraphVectors(16, tokenizer=Tokenizer(max_length=9)),
        "network": ParagraphVectors(16, solver="network", network_params=QUICK, device="cpu"),
    }.items():
        codes = model.fit(topics.texts).transform(topics.texts)
        fitted_with = model.get_params()
        model.set_params(random_state=7, bits=24, tokenizer=None)
        model.save(tmp_path / name)
        loaded = ParagraphVectors.load(tmp_path / name, device=model.device)
        assert loaded.transform(topics.texts).tobytes() == codes.tobytes()
        assert loaded.get_params() == fitted_with

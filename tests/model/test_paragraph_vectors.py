import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from parabit import Document, ParagraphVectors
from parabit.codes import check_codes, hamming, pack, unpack
from parabit.errors import CorpusError, ModelError, ParabitError, TrainingError
from parabit.model import Inferred
from parabit.progress import Progress
from topics import Topics
from without_torch import WITHOUT_TORCH

QUICK: dict[str, Any] = {"epochs": 2, "warm_up": 1, "samples": 64, "inference_rounds": 4, "device": "cpu"}
# Steps and rates for a small corpus.
LEARNING: dict[str, Any] = QUICK | {"epochs": 8, "batch_size": 32, "word_accumulator_start": 1e-4}
MODELS: dict[str, dict[str, Any]] = {
    "dbow": {"bits": 16},
    "dbow, 8 bits": {"bits": 8},
    "dbow, 128 bits, bigrams": {"bits": 128, "bigrams": True, "samples": 1024},
    "dbow, paper": {"bits": 20, "preset": "paper", "samples": 0},
    "real-binary": {"bits": 12, "dim": 40},
    "real-binary, 5 bits": {"bits": 5, "dim": 10},
    "real-valued": {"bits": None, "dim": 21},
    "dm": {"bits": 16, "architecture": "dm"},
    "dm, wide window": {"bits": 9, "architecture": "dm", "window": 2, "two_sided": True, "word_dim": 7},
    "dm, real-valued": {"bits": None, "dim": 16, "architecture": "dm"},
}


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, topics: Topics) -> ParagraphVectors:
    return ParagraphVectors(**(QUICK | MODELS[request.param])).fit(topics.texts)


@pytest.fixture(scope="module")
def dbow(topics: Topics) -> ParagraphVectors:
    return ParagraphVectors(16, **QUICK).fit(topics.texts)


@pytest.fixture(scope="module")
def texts(topics: Topics) -> list[str]:
    """Texts of all kinds: seen and new, long and short, empty, unknown, and some twice."""
    words = " ".join(topics.texts).split()
    long = [" ".join(words[start : start + size]) for start, size in ((0, 1024), (50, 1025), (7, 3000))]
    short = [words[0], f"{words[1]} {words[1]}", " ".join(reversed(words[:30]))]
    return [*topics.texts[:250], *long, *short, "", "qqqq xxxx", "...", *topics.texts[:20]]


def same(one: Inferred, other: Inferred) -> bool:
    """To the bit."""
    if (one.codes is None) != (other.codes is None) or one.vectors.tobytes() != other.vectors.tobytes():
        return False
    return one.codes is None or other.codes is None or one.codes.tobytes() == other.codes.tobytes()


def rows(inferred: Inferred, chosen: Any) -> Inferred:
    return Inferred(None if inferred.codes is None else inferred.codes[chosen], inferred.vectors[chosen])


def test_a_documents_code_is_the_same_alone_in_any_batch_and_in_any_order(
    model: ParagraphVectors, texts: list[str]
) -> None:
    rng = np.random.default_rng(1)
    together = model.infer(texts)
    subsets = [[place] for place in (0, 17, 250, 251, 252, 253, 255, 256)]
    subsets += [rng.choice(len(texts), size, replace=False).tolist() for size in (2, 3, 60, 255, 256, 257)]
    subsets.append(list(range(len(texts)))[::-1])
    for chosen in subsets:
        assert same(model.infer([texts[place] for place in chosen]), rows(together, chosen))


def test_more_documents_than_are_worked_on_at_once_get_the_codes_they_get_alone(
    dbow: ParagraphVectors, texts: list[str]
) -> None:
    alone = dbow.infer(texts)
    places = np.random.default_rng(2).integers(len(texts), size=5000)
    assert same(dbow.infer([texts[place] for place in places]), rows(alone, places))


def test_inference_gives_the_same_at_every_call(model: ParagraphVectors, texts: list[str]) -> None:
    assert same(model.infer(texts), model.infer(texts))
    assert model.transform(texts).tobytes() == model.transform(texts).tobytes()


def test_a_text_without_a_known_word_gets_zeros(model: ParagraphVectors, topics: Topics) -> None:
    strange = ["", "qqqq xxxx", "!!! ...", "\n"]
    for given in (strange, [topics.texts[0], *strange]):
        inferred = rows(model.infer(given), slice(-4, None))
        assert not inferred.vectors.any()
        assert inferred.codes is None or not inferred.codes.any()
    assert model.coverage(strange).tolist() == [0, 0, 0, 0]
    known = model.infer(topics.texts[:1])
    assert known.vectors.any()


def test_no_texts_get_no_codes(model: ParagraphVectors) -> None:
    inferred = model.infer([])
    assert inferred.vectors.shape == (0, model.shape_.dim)
    assert inferred.codes is None or inferred.codes.shape == (0, -(-model.shape_.bits // 8))
    assert model.coverage([]).shape == (0,)


def test_transform_gives_packed_codes_or_the_vectors_of_a_real_valued_model(
    model: ParagraphVectors, texts: list[str]
) -> None:
    inferred, transformed = model.infer(texts), model.transform(texts)
    assert inferred.vectors.shape == (len(texts), model.shape_.dim)
    assert inferred.vectors.dtype == np.float32
    if model.bits is None:
        assert inferred.codes is None
        assert transformed.tobytes() == inferred.vectors.tobytes()
    else:
        assert transformed.tobytes() == inferred.codes.tobytes()
        check_codes(transformed, model.bits)
        assert transformed.shape == (len(texts), -(-model.bits // 8))


def test_fit_transform_gives_the_codes_that_training_found(topics: Topics) -> None:
    for shape in ({"bits": 16}, {"bits": 12, "dim": 40}, {"bits": None, "dim": 16}):
        model = ParagraphVectors(**QUICK, **shape)
        trained = model.fit_transform(topics.texts)
        expected = model.embeddings_ if model.bits is None else model.codes_
        assert trained.tobytes() == expected.tobytes()
        assert len(trained) == len(topics.texts)
        again = ParagraphVectors(**QUICK, **shape).fit(topics.texts)
        assert again.embeddings_.tobytes() == model.embeddings_.tobytes()
        if shape == {"bits": 16}:
            assert trained.tobytes() == pack(model.embeddings_ > 0).tobytes()


def test_inferred_codes_are_near_the_trained_ones(topics: Topics) -> None:
    model = ParagraphVectors(32, **LEARNING)
    trained, inferred = model.fit_transform(topics.texts), model.transform(topics.texts)
    distances = hamming(inferred, trained)
    assert distances.diagonal().mean() < 0.5 * distances.mean()


@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_a_real_binary_model_gives_both_codes_and_vectors(mode: str, topics: Topics, tmp_path: Path) -> None:
    model = ParagraphVectors(12, dim=40, **QUICK).fit(topics.texts)
    model.save(tmp_path / "model")
    projection = load_file(tmp_path / "model" / "model.safetensors")["projection"]
    codes, vectors = model.infer(topics.texts[:50], mode=mode)
    assert codes is not None
    assert (codes.shape, vectors.shape) == ((50, 2), (50, 40))
    layer = vectors.astype(np.float64) @ projection
    clear = np.abs(layer) > 1e-4  # where rounding decides nothing
    assert clear.mean() > 0.9
    assert ((layer > 0) == unpack(codes, 12))[clear].all()


def test_coverage_is_the_share_of_known_words(dbow: ParagraphVectors, topics: Topics) -> None:
    known = topics.texts[0].split()[:3]
    texts = [" ".join(known), f"{known[0]} qqqq", f"{known[0]} {known[0]} qqqq xxxx", "qqqq", ""]
    assert dbow.coverage(texts).tolist() == [1.0, 0.5, 0.5, 0.0, 0.0]


def test_parameters_are_stored_as_they_are_and_nothing_else_is_done_to_them() -> None:
    model = ParagraphVectors(bits="many", epochs=-1, stop_words=frozenset({"a"}))  # type: ignore[arg-type]
    parameters = model.get_params()
    assert (parameters["bits"], parameters["epochs"], parameters["stop_words"]) == ("many", -1, frozenset({"a"}))
    assert parameters["dropout"] is None  # the preset's
    assert model.set_params(bits=8, epochs=3) is model
    assert (model.bits, model.epochs) == (8, 3)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(bytes=2)


def test_a_clone_has_the_parameters_and_is_not_fitted(dbow: ParagraphVectors, topics: Topics) -> None:
    twin = clone(dbow)
    assert twin.get_params() == dbow.get_params()
    assert not hasattr(twin, "vocabulary_")
    with pytest.raises(NotFittedError):
        twin.transform(topics.texts[:1])
    assert twin.fit(topics.texts) is twin
    assert same(twin.infer(topics.texts[:9]), dbow.infer(topics.texts[:9]))


def test_what_is_not_fitted_says_so(tmp_path: Path) -> None:
    model = ParagraphVectors(8)
    for ask in (model.transform, model.infer, model.coverage):
        with pytest.raises(NotFittedError):
            ask(["text"])
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_it_stands_in_a_pipeline_before_a_classifier(topics: Topics) -> None:
    pipeline = Pipeline(
        [
            ("codes", ParagraphVectors(24, **LEARNING)),
            ("bits", FunctionTransformer(unpack, kw_args={"bits": 24})),
            ("topic", KNeighborsClassifier(5, metric="manhattan")),
        ]
    )
    pipeline.fit(topics.texts[:200], topics.labels[:200])
    assert pipeline.score(topics.texts[200:], topics.labels[200:]) > 0.8
    pipeline.set_params(codes__bits=16, bits__kw_args={"bits": 16}, codes__epochs=1)
    assert pipeline.fit(topics.texts, topics.labels).named_steps["codes"].transform(["text"]).shape == (1, 2)


def test_a_grid_search_chooses_among_its_parameters(topics: Topics) -> None:
    pipeline = Pipeline([("codes", ParagraphVectors(**QUICK)), ("topic", KNeighborsClassifier(5))])
    search = GridSearchCV(pipeline, {"codes__bits": [8, 16]}, cv=2, error_score="raise")
    search.fit(topics.texts, topics.labels)
    assert search.best_params_["codes__bits"] in (8, 16)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"bits": 0}, "bits is 0; it must be a whole number, at least 1, such as 32 or 128"),
        ({"bits": None}, "neither bits nor dim is given"),
        ({"architecture": "cbow"}, "no architecture 'cbow'"),
        ({"preset": "best"}, "no preset 'best'"),
        ({"epochs": 0}, "epochs is 0; it must be a whole number, at least 1"),
        ({"binarization": "sign"}, "binarization is 'sign'; it must be one of rounding, noise"),
        ({"architecture": "dm", "bigrams": True}, "bigrams with architecture dm; it reads words in their order"),
        ({"architecture": "dm", "neighbours": 5}, "neighbours with architecture dm; it is an option of dbow"),
        ({"seed": 1.5}, "seed is 1.5; it must be a whole number"),
        ({"seed": True}, "seed is True; it must be a whole number"),
        ({"seed": None}, "seed is None; it must be a whole number"),
        ({"seed": -1}, "seed is -1; it must be a whole number, at least 0"),
        ({"device": "tpu"}, "no device 'tpu'; there are cpu, cuda and auto"),
        ({"pattern": "["}, "the pattern '[' is not valid"),
        ({"stop_words": "klingon"}, "the stop words cannot be read from klingon"),
    ],
)
def test_parameters_that_make_no_sense_are_told_before_a_text_is_read(parameters: dict[str, Any], words: str) -> None:
    class Untouched:
        def __iter__(self) -> Iterator[str]:
            raise AssertionError("the texts were read")

    with pytest.raises(ParabitError) as refused:
        ParagraphVectors(**parameters).fit(Untouched())
    assert str(refused.value).startswith(words)


def test_a_seed_may_be_as_large_as_one_likes(topics: Topics) -> None:
    assert ParagraphVectors(8, **QUICK, seed=2**70).fit_transform(topics.texts).shape == (300, 1)


def test_texts_that_are_no_corpus_are_refused(topics: Topics) -> None:
    model = ParagraphVectors(8, **QUICK)
    with pytest.raises(CorpusError, match="one-shot generator"):
        model.fit(text for text in topics.texts)
    with pytest.raises(CorpusError, match="a single str"):
        model.fit(topics.texts[0])
    with pytest.raises(TrainingError, match="^a corpus of 1 document;"):
        model.fit(topics.texts[:1])
    with pytest.raises(ParabitError, match="no documents"):
        model.fit([])
    assert not hasattr(model, "vocabulary_")


def test_documents_and_labels_may_be_given(topics: Topics, dbow: ParagraphVectors) -> None:
    documents = [Document(id=f"d{number}", text=text) for number, text in enumerate(topics.texts)]
    model = ParagraphVectors(16, **QUICK).fit(documents, topics.labels)
    assert model.codes_.tobytes() == dbow.codes_.tobytes()
    assert same(model.infer(documents[:5]), dbow.infer(topics.texts[:5]))


def test_a_model_can_be_fitted_again_to_other_texts(topics: Topics) -> None:
    model = ParagraphVectors(16, **QUICK).fit(topics.texts[:100])
    model.fit(topics.texts)
    assert model.codes_.shape == (300, 2)
    assert model.vocabulary_.documents == 300


class StopError(Exception):
    """The end of a process, as a test has it."""


def test_training_goes_on_from_its_work_folder(topics: Topics, dbow: ParagraphVectors, tmp_path: Path) -> None:
    work = tmp_path / "work"

    def stop(progress: Progress) -> None:
        if progress.stage == "training" and progress.share and progress.share > 0.6:
            raise StopError

    with pytest.raises(StopError):
        clone(dbow).fit(topics.texts, work=work, checkpoint_every=0, report=stop)
    assert [path.name.startswith("checkpoint-") for path in work.iterdir()] == [True]  # and no bags, no scratch

    with pytest.raises(TrainingError, match="of another training: epochs 2 there, 3 here; give the same"):
        clone(dbow).set_params(epochs=3).fit(topics.texts, work=work)
    with pytest.raises(TrainingError, match="of another training: corpus '.*' there, '.*' here; vocabulary '.*' there"):
        clone(dbow).fit(topics.texts[:-1], work=work)
    told: list[Progress] = []
    resumed = clone(dbow).fit(topics.texts, work=work, report=told.append)
    assert next(progress.share for progress in told if progress.stage == "training") > 0.4
    assert resumed.embeddings_.tobytes() == dbow.embeddings_.tobytes()
    assert same(resumed.infer(topics.texts), dbow.infer(topics.texts))


def test_a_work_folder_that_training_did_not_need_is_not_left(topics: Topics, tmp_path: Path) -> None:
    ParagraphVectors(8, **QUICK).fit(topics.texts, work=tmp_path / "work")
    assert list(tmp_path.iterdir()) == []


def test_a_work_folder_that_is_something_else_is_not_touched(topics: Topics, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "bags").mkdir(parents=True)
    (work / "bags" / "mine.txt").write_text("mine")
    (work / "notes.txt").write_text("mine")
    with pytest.raises(ParabitError, match="work is there and is something else; nothing was touched"):
        ParagraphVectors(8, **QUICK).fit(topics.texts, work=work)
    assert (work / "bags" / "mine.txt").read_text() == (work / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("ask", ["fit", "exact"])
def test_without_torch_the_message_says_what_to_install(
    ask: str, dbow: ParagraphVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dbow.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "torch", None)
    loaded = ParagraphVectors.load(tmp_path / "model")
    with pytest.raises(ModelError, match=r"^torch is not installed; pip install 'parabit\[train\]'$"):
        _ = ParagraphVectors(8).fit(["a text", "a word"]) if ask == "fit" else loaded.infer(["a text"], mode="exact")


def test_the_estimator_can_be_made_and_cloned_without_torch() -> None:
    code = (
        WITHOUT_TORCH
        + """from parabit import ParabitError, ParagraphVectors
from sklearn.base import clone
try:
    clone(ParagraphVectors(32)).fit(["a telescope in orbit", "a goalie on ice"])
except ParabitError as problem:
    print(problem)
"""
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    told = "torch is not installed; pip install 'parabit[train]'\n"
    assert (result.stdout, result.stderr) == (told, "")

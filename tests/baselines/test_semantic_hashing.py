import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from made_up import Made, make_counts
from scipy.sparse import csr_array

from parabit.baselines.semantic_hashing import SemanticHashing
from parabit.codes import unpack
from parabit.evaluation import evaluate_codes

TRAIN, NEW = make_counts(256, seed=1), make_counts(150, seed=2)


def small(**changes: Any) -> SemanticHashing:
    return SemanticHashing(
        **{"bits": 16, "hidden": (30,), "epochs": 25, "rate": 5e-3, "device": "cpu", **changes}
    )


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """With layers as small as these, threads wait for each other most of the time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> SemanticHashing:
    return small().fit(TRAIN.counts)


def map_of(model: SemanticHashing, made: Made = NEW) -> float:
    return evaluate_codes(model.transform(made.counts), made.labels).map


def test_codes_of_new_documents_tell_the_topics_apart(model: SemanticHashing) -> None:
    assert map_of(model) > 0.9
    assert map_of(model) > map_of(small(epochs=1, rate=1e-6).fit(TRAIN.counts)) + 0.2


def test_two_hidden_layers_and_none_learn_as_well() -> None:
    assert map_of(small(hidden=(30, 30)).fit(TRAIN.counts)) > 0.8
    assert map_of(small(hidden=()).fit(TRAIN.counts)) > 0.8


def test_training_makes_activations_nearly_binary_and_noise_more_so(model: SemanticHashing) -> None:
    def undecided(model: SemanticHashing, made: Made) -> float:
        """How far activations are from 0 and 1 on the average; 0.5 at most."""
        activations = model.activations(made.counts)
        return float(np.minimum(activations, 1 - activations).mean())

    assert undecided(small(epochs=1).fit(TRAIN.counts), NEW) > 0.3
    assert undecided(model, NEW) < 0.1
    many = make_counts(256, topics=12, seed=1)  # so many that bits are needed for them
    quiet, loud = (
        small(bits=32, noise=noise, word_dropout=0.5, dropout=0.0).fit(many.counts)
        for noise in (0.0, 16.0)
    )
    assert undecided(loud, many) < 0.9 * undecided(quiet, many)


def test_a_bit_is_its_activation_rounded(model: SemanticHashing) -> None:
    assert (
        unpack(model.transform(NEW.counts), 16) == np.round(model.activations(NEW.counts))
    ).all()


def test_a_seed_gives_the_same_codes_and_another_seed_others(model: SemanticHashing) -> None:
    codes = model.transform(NEW.counts)
    assert (small().fit(TRAIN.counts).transform(NEW.counts) == codes).all()
    assert (small(seed=1).fit(TRAIN.counts).transform(NEW.counts) != codes).any()


def test_activations_are_the_same_alone_and_in_a_batch(
    model: SemanticHashing, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = model.activations(NEW.counts)
    chosen = np.array([140, 3, 77])
    assert (model.activations(NEW.counts[chosen]) == together[chosen]).all()
    assert (model.activations(NEW.counts[[9]]) == together[[9]]).all()
    monkeypatch.setattr("parabit.baselines.semantic_hashing._ENCODED_AT_ONCE", 7)
    assert (model.activations(NEW.counts) == together).all()


def test_only_the_most_frequent_words_are_read() -> None:
    counts = TRAIN.counts.copy()
    model = small(words=60, epochs=1).fit(counts)
    totals = counts.sum(axis=0)
    assert len(model.words_) == 60
    assert totals[model.words_].min() >= np.delete(totals, model.words_).max()
    others = np.setdiff1d(np.arange(counts.shape[1]), model.words_)
    changed = NEW.counts.toarray()
    changed[:, others] += 5
    assert (model.activations(csr_array(changed)) == model.activations(NEW.counts)).all()


def test_documents_without_words_are_no_trouble() -> None:
    empty = csr_array((3, 200), dtype=np.int64)
    counts = csr_array(np.vstack([TRAIN.counts[:50].toarray(), empty.toarray()]))
    codes = small(epochs=2).fit(counts).transform(empty)
    assert codes.shape == (3, 2)
    assert (codes == codes[0]).all()
    assert small(epochs=1).fit(counts).transform(empty[:0]).shape == (0, 2)


def test_semantic_hashing_needs_torch_numpy_and_scipy_alone() -> None:
    names = ("sklearn", "polars", "safetensors", "bm25s", "gensim", "typer", "rich")
    block = f"import sys; sys.modules.update(dict.fromkeys({names}))"
    use = "from parabit.baselines.semantic_hashing import SemanticHashing; SemanticHashing(8)"
    assert subprocess.run([sys.executable, "-c", f"{block}; {use}"], check=False).returncode == 0

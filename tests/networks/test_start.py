"""Where documents start, what the first epochs do, and what follows from a collection's size."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from counted import count, count_ids
from torch import Tensor

from parabit.networks import Checkpoints, Documents, Trained, WordStatistics
from parabit.networks.bags import BagTable
from parabit.networks.recipe import preset
from parabit.networks.semantics import OfDocuments, Quantization, semantic_vectors, smoothed
from parabit.networks.shape import Shape, choose_shape
from parabit.networks.training import Training
from parabit.progress import Progress, silent
from topics import Topics

SHAPES = {
    "Binary PV-DBOW": choose_shape(16),
    "Real-Binary PV-DBOW": choose_shape(16, dim=24),
    "PV-DBOW": choose_shape(None, dim=16),
}
DBOW, DM = SHAPES["Binary PV-DBOW"], choose_shape(16, architecture="dm")
# The default preset: documents start at their LSA. What must not change when the preset does is given.
QUICK: dict[str, Any] = {
    "epochs": 3,
    "warm_up": 1,
    "start": "lsa",
    "samples": 0,
    "inference_rounds": 2,
    "validation": 0.0,
    "patience": 0,
    "embedding_start": 0.5,
    "word_accumulator_start": 1e-4,
}

Corpus = tuple[Documents, WordStatistics]


@pytest.fixture(scope="module")
def corpus(topics: Topics) -> Corpus:
    return count([*topics.texts[:119], ""])


def training(
    corpus: Corpus,
    scratch: Path,
    shape: Shape = DBOW,
    seed: int = 0,
    checkpoints: Checkpoints | None = None,
    report: Any = silent,
    **changes: Any,
) -> Training:
    given = QUICK | ({"start": "random"} if shape.architecture == "dm" else {}) | changes
    recipe = preset("default", shape, **given)
    return Training(*corpus, shape, recipe, scratch, seed, "cpu", checkpoints, report)


def start_of(ready: Training) -> Tensor:
    return ready._start().tables["documents"].values.clone()


@pytest.mark.parametrize("shape", [*SHAPES.values(), DM], ids=[*SHAPES, "Binary PV-DM"])
def test_in_the_first_epochs_words_learn_and_documents_stay_where_they_started(
    shape: Shape, corpus: Corpus, tmp_path: Path
) -> None:
    start = start_of(training(corpus, tmp_path, shape))
    before = training(corpus, tmp_path, shape)._start().network.tensors
    ready = training(corpus, tmp_path, shape, epochs=4, warm_up=2)
    ready._finished = lambda state: state.epoch >= 2  # type: ignore[method-assign] # before documents begin to learn
    warm = ready.run()
    assert torch.equal(warm.embeddings, start)
    for name, tensor in warm.network.tensors.items():
        assert not torch.equal(tensor, before[name])
    assert warm.history[1].loss < warm.history[0].loss
    trained = training(corpus, tmp_path, shape, epochs=4, warm_up=9).run()  # at most half of the epochs
    moved = (trained.embeddings != start).any(dim=1)
    assert moved[:119].all()
    assert [epoch.loss for epoch in trained.history[:2]] == [epoch.loss for epoch in warm.history]


def test_without_warm_up_documents_learn_from_the_first_epoch_on(corpus: Corpus, tmp_path: Path) -> None:
    trained = training(corpus, tmp_path, epochs=1, warm_up=0).run()
    moved = (trained.embeddings != start_of(training(corpus, tmp_path))).any(dim=1)
    assert moved[:119].sum() > 60  # all but those of the first step, in which words know nothing yet


def test_documents_start_at_their_smoothed_and_quantized_semantic_vectors(corpus: Corpus, tmp_path: Path) -> None:
    ready = training(corpus, tmp_path, seed=3)
    assert isinstance(ready.table, BagTable)
    assert ready.table.neighbours is not None
    fitted = np.arange(119)
    every = np.arange(120)
    vectors = semantic_vectors(*corpus, fitted, every, 128, 3, torch.device("cpu")).values[:, :16]
    moved = smoothed(OfDocuments(every, vectors), torch.arange(120), ready.table.neighbours, 0.5)
    expected = Quantization.of(moved[fitted], 3)(moved) * 0.5
    start = start_of(ready)
    np.testing.assert_allclose(start[:119], expected[:119], atol=1e-6)
    assert not start[119].any()  # it has no words
    assert float(start[:119].std(correction=0)) == pytest.approx(0.5, abs=1e-3)


def test_without_neighbours_they_start_at_their_own_vectors(corpus: Corpus, tmp_path: Path) -> None:
    ready = training(corpus, tmp_path, neighbours=0)
    assert isinstance(ready.table, BagTable)
    assert ready.table.neighbours is None
    every = np.arange(120)
    vectors = semantic_vectors(*corpus, np.arange(119), every, 128, 0, torch.device("cpu")).values[:, :16]
    own = smoothed(OfDocuments(every, vectors), torch.arange(119), None, 0.5)
    np.testing.assert_allclose(start_of(ready)[:119], Quantization.of(own, 0)(own) * 0.5, atol=1e-6)


def test_documents_of_a_topic_start_with_alike_signs(corpus: Corpus, topics: Topics, tmp_path: Path) -> None:
    signs = start_of(training(corpus, tmp_path))[:119].sign()
    alike = (signs @ signs.T / 16).numpy()
    together = np.equal.outer(topics.labels[:119], topics.labels[:119])
    assert alike[together].mean() > alike[~together].mean() + 0.5


def test_held_out_documents_say_nothing_about_the_start_of_others(corpus: Corpus, tmp_path: Path) -> None:
    documents, statistics = corpus
    ready = training(corpus, tmp_path, validation=0.1)
    held = ready.inferred.numpy()
    assert len(held)
    features = documents.features.copy()
    for document in held:
        mine = slice(*documents.feature_offsets[document : document + 2])
        features[mine] = np.arange(mine.stop - mine.start)
    others = Documents.of_counts(features, documents.counts, documents.feature_offsets)
    trained = ready.trained
    expected = start_of(ready)[trained]
    assert torch.equal(start_of(training((others, statistics), tmp_path, validation=0.1))[trained], expected)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize(
    "documents",
    [[[0, 1], [0, 2]], [[0, 1], [2, 3]], [[0], [0]], [[0, 1], [], [1, 2, 2]], [[0]] * 5 + [[1, 2], [], [3]]],
    ids=["one word shared", "no word shared", "alike", "one without words", "mostly alike"],
)
def test_documents_too_few_or_too_strange_for_semantics_start_apart_and_are_trained(
    documents: list[list[int]], shape: Shape, tmp_path: Path
) -> None:
    ready = training(count_ids(documents, 4), tmp_path, shape, epochs=4)
    start = start_of(ready)
    trained = training(count_ids(documents, 4), tmp_path, shape, epochs=4).run()
    assert trained.embeddings.isfinite().all()
    for number, document in enumerate(documents):
        if document:
            # At zero no bit would ever change.
            assert start[number].norm() > 0.1
            # Where all documents say the same, there is nothing to learn.
            assert (trained.embeddings[number] != start[number]).any() or documents == [[0], [0]]
        else:
            assert not trained.embeddings[number].any()
    different = [number for number, document in enumerate(documents) if document and documents.count(document) == 1]
    codes = {tuple((trained.embeddings[number] > 0).tolist()) for number in different}
    assert len(codes) == len(different)


class StopError(Exception):
    """The end of a process, as a test has it."""


@pytest.mark.parametrize("stop_at", [0.2, 0.4, 0.7])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_training_stopped_in_or_after_the_first_epochs_ends_as_if_it_had_never_stopped(
    shape: Shape, stop_at: float, corpus: Corpus, tmp_path: Path
) -> None:
    def stop(progress: Progress) -> None:
        if progress.stage == "training" and progress.share is not None and progress.share > stop_at:
            raise StopError

    changes = {"epochs": 4, "warm_up": 2, "validation": 0.1, "patience": 2}
    whole = training(corpus, tmp_path, shape, **changes).run()
    kept = tmp_path / "kept"
    with pytest.raises(StopError):
        training(corpus, tmp_path, shape, 0, Checkpoints(kept, {}, every=0), stop, **changes).run()
    told: list[Progress] = []
    resumed: Trained = training(corpus, tmp_path, shape, 0, Checkpoints(kept, {}), told.append, **changes).run()
    first = next(progress.share for progress in told if progress.stage == "training")
    assert first is not None
    assert first > stop_at  # it did not begin anew
    assert torch.equal(resumed.embeddings, whole.embeddings)
    assert all(torch.equal(tensor, whole.network.tensors[name]) for name, tensor in resumed.network.tensors.items())
    assert resumed.history == whole.history


@pytest.mark.parametrize(
    ("documents", "batch_size", "fewest", "sizes"),
    [
        (1000, 256, 0, {256}),  # not asked for
        (1000, 256, 10, {100}),
        (1000, 64, 10, {64}),  # has more steps as it is
        (5120, 256, 20, {256}),
        (100, 256, 10, {32}),  # but never very small ones
        (100, 16, 10, {16}),  # unless they are wanted
    ],
)
def test_batches_are_smaller_where_an_epoch_had_too_few_steps(
    documents: int, batch_size: int, fewest: int, sizes: set[int]
) -> None:
    recipe = preset("paper", DBOW, batch_size=batch_size, fewest_steps=fewest)
    counted, _ = count_ids([*[[0]] * documents, [], []], 1)
    steps = BagTable(counted, torch.ones(1), recipe).plan(torch.arange(documents + 2), seed=0, epoch=0)
    assert {len(step) for step in steps[:-1]} == sizes
    assert sorted(torch.cat(steps).tolist()) == list(range(documents))


@pytest.mark.parametrize(
    ("documents", "wanted", "found"),
    [(100, 20, 5), (1199, 20, 5), (1200, 20, 6), (2000, 20, 10), (2000, 8, 8), (100, 3, 3)],
)
def test_a_small_collection_has_fewer_neighbours(documents: int, wanted: int, found: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(documents)
    counted = count_ids(rng.integers(0, 50, (documents, 6)).tolist(), 50)
    ready = training(counted, tmp_path, start="random", neighbours=wanted)
    assert isinstance(ready.table, BagTable)
    assert ready.table.neighbours is not None
    assert ready.table.neighbours.values.shape == (documents, found)

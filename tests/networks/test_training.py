import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from counted import count, count_ids

from parabit.codes import hamming, pack
from parabit.errors import TrainingError
from parabit.networks import Checkpoints, Documents, Trained, WordStatistics, train
from parabit.networks.completion import hold_out
from parabit.networks.recipe import preset
from parabit.networks.shape import Shape, choose_shape
from parabit.networks.training import Training
from parabit.progress import Progress, silent
from topics import Topics

DBOW, DM = choose_shape(16), choose_shape(16, architecture="dm")
SHAPES = {
    "Binary PV-DBOW": DBOW,
    "Real-Binary PV-DBOW": choose_shape(16, dim=24),
    "PV-DBOW": choose_shape(None, dim=16),
    "Binary PV-DM": DM,
    "PV-DM": choose_shape(None, dim=16, architecture="dm"),
    "Binary PV-DM, wide window": choose_shape(16, architecture="dm", window=2, two_sided=True, word_dim=8),
}
# Fast, and with chance in all its places; what must not change when a preset does is given.
QUICK: dict[str, Any] = {
    "epochs": 2,
    "batch_size": 32,
    "warm_up": 0,
    "samples": 32,
    "inference_rounds": 2,
    "validation": 0.1,
    "patience": 0,
    "dropout": 0.1,
    "word_accumulator_start": 1e-4,
}
QUICK_DM = QUICK | {"batch_size": 1000}
CASES: dict[str, tuple[Shape, dict[str, Any]]] = {
    "dbow": (DBOW, {"binarization": "straight-through-sigmoid", "slope_growth": 0.2, "neighbours": 5, "patience": 1}),
    "dbow, paper": (DBOW, {"preset": "paper", "binarization": "noise"}),
    "dbow, from its words": (DBOW, {"start": "words"}),
    "real-binary": (SHAPES["Real-Binary PV-DBOW"], {"neighbours": 5, "warm_up": 1}),
    "real-valued": (SHAPES["PV-DBOW"], {}),
    "dm": (DM, {"binarization": "straight-through", "patience": 1}),
    "dm, real-valued": (SHAPES["PV-DM"], {}),
}

DOCUMENTS, HELD_OUT = 120, 12

Corpus = tuple[Documents, WordStatistics]


@pytest.fixture(scope="module")
def corpus(topics: Topics) -> Corpus:
    return count(topics.texts[:DOCUMENTS])


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def run(
    corpus: Corpus,
    shape: Shape,
    scratch: Path,
    seed: int = 0,
    checkpoints: Checkpoints | None = None,
    report: Any = silent,
    **changes: Any,
) -> Trained:
    quick = QUICK_DM if shape.architecture == "dm" else QUICK
    recipe = preset(changes.pop("preset", "default"), shape, **(quick | changes))
    return train(*corpus, shape, recipe, scratch, seed, "cpu", checkpoints, report)


def same(one: Trained, other: Trained) -> bool:
    """To the bit."""
    ours, theirs = one.network.tensors, other.network.tensors
    return (
        ours.keys() == theirs.keys()
        and all(torch.equal(ours[name], theirs[name]) for name in ours)
        and torch.equal(one.embeddings, other.embeddings)
        and (one.history, one.kept) == (other.history, other.kept)
    )


@pytest.mark.parametrize("case", CASES)
def test_the_same_seed_gives_the_same_result_to_the_bit_and_another_seed_another(
    case: str, corpus: Corpus, scratch: Path
) -> None:
    shape, changes = CASES[case]
    one, again, other = (run(corpus, shape, scratch, seed, **changes) for seed in (1, 1, 2))
    assert same(one, again)
    for name, tensor in one.network.tensors.items():
        assert not torch.equal(tensor, other.network.tensors[name])
    assert not torch.equal(one.embeddings, other.embeddings)


def test_training_leaves_the_global_random_numbers_alone(corpus: Corpus, scratch: Path) -> None:
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    run(corpus, DBOW, scratch, epochs=1)
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert (np.random.get_state()[1] == numpy_before).all()  # noqa: NPY002


class StopError(Exception):
    """The end of a process, as a test has it."""


def stop_after(calls: int) -> Any:
    """A report that ends training when it has been told so often of a step."""
    left = calls

    def report(progress: Progress) -> None:
        nonlocal left
        if progress.stage == "training":
            left -= 1
            if not left:
                raise StopError

    return report


@pytest.mark.parametrize("calls", [3, 5])
@pytest.mark.parametrize("case", CASES)
def test_training_stopped_again_and_again_and_resumed_ends_as_if_it_had_never_stopped(
    case: str, calls: int, corpus: Corpus, scratch: Path, tmp_path: Path
) -> None:
    shape, changes = CASES[case]
    unbroken = run(corpus, shape, scratch, **changes)
    stops = 0
    while stops < 50:
        checkpoints = Checkpoints(tmp_path / "kept", {"case": case}, every=0)
        try:
            resumed = run(corpus, shape, scratch, 0, checkpoints, stop_after(calls), **changes)
            break
        except StopError:
            stops += 1
    assert 1 <= stops < 50
    assert same(resumed, unbroken)


def test_checkpoints_change_nothing(corpus: Corpus, scratch: Path, tmp_path: Path) -> None:
    shape, changes = CASES["dbow"]
    checkpoints = Checkpoints(tmp_path / "kept", {}, every=0)
    assert same(run(corpus, shape, scratch, 0, checkpoints, **changes), run(corpus, shape, scratch, **changes))


@pytest.fixture
def steady_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("steady_handlers")
def test_an_interrupt_is_heard_between_two_steps_and_all_is_saved(
    number: signal.Signals, corpus: Corpus, scratch: Path, tmp_path: Path
) -> None:
    shape, changes = CASES["dbow"]
    kept = tmp_path / "kept"

    def interrupt(progress: Progress) -> None:
        if progress.stage == "training" and progress.share and progress.share > 0.6:
            signal.raise_signal(number)

    with pytest.raises(KeyboardInterrupt) as stopped:
        run(corpus, shape, scratch, 0, Checkpoints(kept, {}), interrupt, **changes)
    assert str(stopped.value) == f"interrupted in epoch 2 of 2; all is saved in {kept}"
    steps: list[Progress] = []
    resumed = run(corpus, shape, scratch, 0, Checkpoints(kept, {}), steps.append, **changes)
    first = next(step for step in steps if step.stage == "training")
    assert first.share is not None
    assert first.share > 0.6  # it did not begin anew
    assert same(resumed, run(corpus, shape, scratch, **changes))


@pytest.mark.usefixtures("steady_handlers")
def test_the_second_interrupt_ends_at_once(corpus: Corpus, scratch: Path, tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.stage == "training":
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(corpus, DBOW, scratch, 0, Checkpoints(tmp_path / "kept", {}), interrupt)
    assert not (tmp_path / "kept").exists()  # not even a step was done


def test_without_checkpoints_an_interrupt_is_python_s_own(corpus: Corpus, scratch: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.stage == "training":
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as stopped:
        run(corpus, DBOW, scratch, report=interrupt)
    assert str(stopped.value) == ""


# So fast that the words of single documents are soon known by heart.
HASTY = {"word_rate": 0.5, "document_rate": 3.0}


@pytest.mark.parametrize("shape", [DBOW, DM], ids=["dbow", "dm"])
def test_early_stopping_takes_the_parameters_of_the_best_epoch(shape: Shape, corpus: Corpus, scratch: Path) -> None:
    stopped = run(corpus, shape, scratch, epochs=30, patience=2, **HASTY)
    scores = [epoch.completion for epoch in stopped.history if epoch.completion is not None]
    assert stopped.kept + 2 <= len(scores) < 30
    assert min(scores) == scores[stopped.kept - 1] < min(scores[-2:])
    until_best = run(corpus, shape, scratch, epochs=stopped.kept, **HASTY)
    assert same(replace(stopped, history=until_best.history), until_best)


def test_without_patience_training_goes_on_to_the_last_epoch(corpus: Corpus, scratch: Path) -> None:
    trained = run(corpus, DBOW, scratch, epochs=8, **HASTY)
    assert (len(trained.history), trained.kept) == (8, 8)
    scores = [epoch.completion for epoch in trained.history if epoch.completion is not None]
    assert scores[-1] > min(scores)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_a_loss_that_is_no_number_ends_training_with_a_remedy(shape: Shape, corpus: Corpus, scratch: Path) -> None:
    with pytest.raises(TrainingError) as refused:
        run(corpus, shape, scratch, epochs=3, word_rate=1e38, document_rate=1e38)
    assert str(refused.value).startswith("the loss is no longer a number in epoch ")
    assert str(refused.value).endswith("; lower the rates (documents 1e+38, words 1e+38)")


@pytest.mark.parametrize(("texts", "words"), [([[0, 1]], "a corpus of 1 document;"), ([], "a corpus of 0 documents;")])
def test_one_document_is_no_corpus(texts: list[list[int]], words: str, scratch: Path) -> None:
    with pytest.raises(TrainingError) as refused:
        run(count_ids(texts, 2), DBOW, scratch)
    assert str(refused.value).startswith(words)


@pytest.mark.parametrize("shape", [DBOW, DM], ids=["dbow", "dm"])
def test_documents_without_a_known_word_are_no_corpus(shape: Shape, scratch: Path) -> None:
    documents, _ = count_ids([[], []], 3)
    with pytest.raises(TrainingError, match="^no document has a known word; lower the minimum count$"):
        run((documents, WordStatistics(np.ones(3, np.int64), np.ones(3, np.int64), 2)), shape, scratch)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_two_documents_are_a_corpus_and_one_without_words_stays_beside_them(shape: Shape, scratch: Path) -> None:
    trained = run(count_ids([[0, 1], [], [1, 2, 2]], 3), shape, scratch)
    assert trained.embeddings.shape == (3, shape.dim)
    assert trained.embeddings.isfinite().all()
    assert trained.history[-1].completion is None  # too few to hold any out


def test_a_network_too_large_is_refused_before_training_with_the_figure(
    corpus: Corpus, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parabit.networks.room.free_memory", lambda: 1_000_000_000)
    told: list[Progress] = []
    with pytest.raises(TrainingError) as refused:
        run(corpus, choose_shape(1_000_000), scratch, report=told.append)
    assert f"a vocabulary of {len(corpus[1].counts)} words and bigrams with 1000001 units each" in str(refused.value)
    assert "GB of memory to train, and 1.0 GB are free" in str(refused.value)
    assert told == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_told(corpus: Corpus, scratch: Path) -> None:
    with pytest.raises(TrainingError, match="cuda was asked for, and torch finds no GPU here; take cpu, or auto"):
        train(*corpus, DBOW, preset("default", DBOW), scratch, device="cuda")


def lies_in(folder: Path, tensor: torch.Tensor) -> bool:
    """Whether a tensor's memory is mapped from a file there."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        bounds, *_, path = line.split(maxsplit=5)
        first, last = (int(bound, 16) for bound in bounds.split("-"))
        if first <= tensor.data_ptr() < last:
            return path.startswith(str(folder))
    return False


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for the words, but not for the documents."""
    monkeypatch.setattr("parabit.networks.room.free_memory", lambda: 10_000)
    monkeypatch.setattr("parabit.networks.training.need_room", lambda *_, **__: None)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The states in which trainings end."""
    states: list[Any] = []
    end = Training._end

    def look(self: Training, state: Any) -> Trained:
        states.append(state)
        return end(self, state)

    monkeypatch.setattr(Training, "_end", look)
    return states


only_linux = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what is mapped")


@only_linux
@pytest.mark.parametrize("case", CASES)
def test_documents_too_many_for_memory_lie_in_files_and_the_model_is_the_same(
    case: str, corpus: Corpus, scratch: Path, ends: list[Any], request: pytest.FixtureRequest
) -> None:
    shape, changes = CASES[case]
    in_memory = run(corpus, shape, scratch, **changes)
    assert list(scratch.iterdir()) == []
    request.getfixturevalue("little_memory")
    in_files = run(corpus, shape, scratch, **changes)
    documents = ends[-1].tables["documents"]
    assert lies_in(scratch, documents.values)
    assert lies_in(scratch, documents.squares)
    assert same(in_files, in_memory)


@only_linux
@pytest.mark.usefixtures("little_memory")
def test_the_best_epochs_documents_are_no_more_in_memory_than_the_others(
    corpus: Corpus, scratch: Path, ends: list[Any]
) -> None:
    run(corpus, DBOW, scratch, patience=1)
    assert lies_in(scratch, ends[-1].best["documents"])


@pytest.mark.parametrize("case", CASES)
def test_held_out_documents_are_not_trained_on(case: str, corpus: Corpus, scratch: Path) -> None:
    shape, changes = CASES[case]
    documents, statistics = corpus
    sizes = torch.from_numpy(documents.feature_offsets if shape.architecture == "dbow" else documents.token_offsets)
    trained, held = hold_out(sizes.diff(), QUICK["validation"], seed=0)
    assert len(held) == HELD_OUT
    # The held-out documents say something else, of the same length: nothing that is learned can change.
    others = replace(documents, features=documents.features.copy(), tokens=documents.tokens.copy())
    rng = np.random.default_rng(4)
    for document in held:
        for array, offsets in ((others.features, documents.feature_offsets), (others.tokens, documents.token_offsets)):
            mine = slice(offsets[document], offsets[document + 1])
            array[mine] = np.sort(rng.choice(len(statistics.counts), mine.stop - mine.start, replace=False))
    changes = {**changes, "patience": 0}
    one, other = (run((said, statistics), shape, scratch, **changes) for said in (documents, others))
    for name, tensor in one.network.tensors.items():
        assert torch.equal(tensor, other.network.tensors[name])
    assert torch.equal(one.embeddings[trained], other.embeddings[trained])
    assert not torch.equal(one.embeddings[held], other.embeddings[held])
    assert [epoch.loss for epoch in one.history] == [epoch.loss for epoch in other.history]


def apart(trained: Trained, labels: list[int]) -> tuple[float, float]:
    """The mean distance of codes of the same topic, and of different topics."""
    projection = trained.network.projection
    layer = trained.embeddings if projection is None else trained.embeddings @ projection
    codes = pack((layer > 0).numpy())
    distances = hamming(codes, codes)
    together = np.equal.outer(labels, labels)
    return distances[together & ~np.eye(len(labels), dtype=bool)].mean(), distances[~together].mean()


# Exact, so that a loss is no matter of luck, and with rates for a small corpus.
LEARNING = {"epochs": 8, "samples": 0, "dropout": 0.0, "document_rate": 1.0, "word_rate": 0.03}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_every_network_learns_and_gives_documents_of_a_topic_alike_codes(
    shape: Shape, corpus: Corpus, topics: Topics, scratch: Path
) -> None:
    trained = run(corpus, shape, scratch, **LEARNING, preset="paper")
    losses = [epoch.loss for epoch in trained.history]
    assert losses == sorted(losses, reverse=True)
    scores = [epoch.completion for epoch in trained.history if epoch.completion is not None]
    assert scores[-1] < scores[0]
    together, otherwise = apart(trained, topics.labels[:DOCUMENTS])
    assert together < 0.7 * otherwise


@pytest.mark.parametrize("method", ["noise", "straight-through", "straight-through-sigmoid"])
def test_every_binarization_learns(method: str, corpus: Corpus, topics: Topics, scratch: Path) -> None:
    slope = 0.1 if method.startswith("straight") else 0.0
    trained = run(corpus, DBOW, scratch, **LEARNING, preset="paper", binarization=method, slope_growth=slope)
    assert trained.history[-1].loss < trained.history[0].loss
    together, otherwise = apart(trained, topics.labels[:DOCUMENTS])
    assert together < 0.7 * otherwise


@pytest.mark.parametrize(("name", "shape"), [("default", DBOW), ("paper", DBOW), ("default", DM)])
def test_a_preset_as_it_is_learns_the_topics_of_a_small_corpus(
    name: str, shape: Shape, topics: Topics, scratch: Path
) -> None:
    trained = train(*count(topics.texts), shape, preset(name, shape), scratch, device="cpu")
    together, otherwise = apart(trained, topics.labels)
    assert together < 0.7 * otherwise
    assert trained.history[trained.kept - 1].loss < trained.history[0].loss


def test_progress_grows_to_the_end(corpus: Corpus, scratch: Path) -> None:
    told: list[Progress] = []
    run(corpus, DBOW, scratch, report=told.append)
    steps = [progress for progress in told if progress.stage == "training"]
    shares = [step.share for step in steps if step.share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert steps[-1].done == 2 * (DOCUMENTS - HELD_OUT)
    assert "completion" in steps[-1].note

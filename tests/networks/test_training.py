import itertools
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from counted import count, count_ids
from hypothesis import example, given
from hypothesis import strategies as st

from parabit.codes import hamming, pack
from parabit.errors import Interrupted, TrainingError
from parabit.networks.config import Shape, choose_shape, paper_recipe
from parabit.networks.network import Network
from parabit.networks.training import (
    AdaGrad,
    Checkpoints,
    NetworkEncoder,
    Trained,
    choose_device,
    generator,
    stop_signals,
    train,
)
from parabit.progress import Progress, silent
from parabit.text import Bags
from topics import Topics

DBOW, DM = choose_shape(16), choose_shape(16, architecture="dm")
SHAPES = {
    "Binary PV-DBOW": DBOW,
    "Real-Binary PV-DBOW": choose_shape(16, dim=24),
    "PV-DBOW": choose_shape(None, dim=16),
    "Binary PV-DM": DM,
    "PV-DM": choose_shape(None, dim=16, architecture="dm"),
    "Binary PV-DM, wide window": choose_shape(
        16, architecture="dm", window=2, two_sided=True, word_dim=8
    ),
}
# Fast, and random wherever training can be.
QUICK: dict[str, Any] = {
    "epochs": 2,
    "batch_size": 32,
    "samples": 32,
    "dropout": 0.1,
    "word_accumulator_start": 1e-4,
}
QUICK_DM = QUICK | {"batch_size": 1000}
CASES: dict[str, tuple[Shape, dict[str, Any]]] = {
    "dbow": (DBOW, {"binarization": "straight-through-sigmoid", "slope_growth": 0.2}),
    "dbow, noise": (DBOW, {"binarization": "noise"}),
    "real-binary": (SHAPES["Real-Binary PV-DBOW"], {}),
    "real-valued": (SHAPES["PV-DBOW"], {}),
    "dm": (DM, {"binarization": "straight-through"}),
    "dm, real-valued": (SHAPES["PV-DM"], {}),
}

DOCUMENTS = 120

Corpus = tuple[Bags, np.ndarray]


@pytest.fixture(scope="module")
def corpus(topics: Topics) -> Corpus:
    return count(topics.texts[:DOCUMENTS])


def run(
    corpus: Corpus,
    shape: Shape,
    seed: int = 0,
    kept: Checkpoints | None = None,
    report: Any = silent,
    **changes: Any,
) -> Trained:
    recipe = paper_recipe(shape, **((QUICK_DM if shape.architecture == "dm" else QUICK) | changes))
    return train(*corpus, shape, recipe, seed=seed, device="cpu", checkpoints=kept, report=report)


def same(one: Trained, other: Trained) -> bool:
    """To the bit."""
    ours, theirs = one.network.tensors, other.network.tensors
    return (
        ours.keys() == theirs.keys()
        and all(torch.equal(ours[name], theirs[name]) for name in ours)
        and torch.equal(one.embeddings, other.embeddings)
        and one.history == other.history
    )


@pytest.mark.parametrize("case", CASES)
def test_the_same_seed_gives_the_same_result_to_the_bit_and_another_seed_another(
    case: str, corpus: Corpus
) -> None:
    shape, changes = CASES[case]
    one, again, other = (run(corpus, shape, seed, **changes) for seed in (1, 1, 2))
    assert same(one, again)
    for name, tensor in one.network.tensors.items():
        assert not torch.equal(tensor, other.network.tensors[name])
    assert not torch.equal(one.embeddings, other.embeddings)


def test_training_leaves_the_global_random_numbers_alone(corpus: Corpus) -> None:
    torch_before, numpy_before = torch.get_rng_state(), str(np.random.get_state(legacy=False))  # noqa: NPY002
    run(corpus, DBOW, epochs=1)
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert str(np.random.get_state(legacy=False)) == numpy_before  # noqa: NPY002


class StopError(Exception):
    """The end of a process."""


def stop_after(calls: int) -> Any:
    """A report that ends training after so many steps."""
    numbers_of_calls = itertools.count(1)

    def report(progress: Progress) -> None:
        if next(numbers_of_calls) == calls:
            raise StopError

    return report


@pytest.mark.parametrize("calls", [3, 5])
@pytest.mark.parametrize("case", CASES)
def test_training_resumed_many_times_ends_as_if_unbroken(
    case: str, calls: int, corpus: Corpus, tmp_path: Path
) -> None:
    shape, changes = CASES[case]
    unbroken = run(corpus, shape, **changes)
    stops = 0
    while stops < 50:
        checkpoints = Checkpoints(tmp_path / "kept", {"case": case}, every=0)
        try:
            resumed = run(corpus, shape, 0, checkpoints, stop_after(calls), **changes)
            break
        except StopError:
            stops += 1
    assert 1 <= stops < 50
    assert same(resumed, unbroken)


@pytest.fixture
def steady_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in before} == before


def send(number: signal.Signals, share: float) -> Any:
    """A report that sends a signal, once, when this share of the training is done."""
    pending = [number]

    def report(progress: Progress) -> None:
        assert progress.share is not None
        if pending and progress.share >= share:
            signal.raise_signal(pending.pop())

    return report


@pytest.mark.parametrize(
    "share", [0.1, 0.5, 0.6, 1.0], ids=["begin", "between epochs", "middle", "end"]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("steady_handlers")
def test_a_signal_stops_with_all_saved(
    number: signal.Signals, share: float, corpus: Corpus, tmp_path: Path
) -> None:
    shape, changes = CASES["dbow"]
    kept = tmp_path / "kept"
    with pytest.raises(Interrupted) as stopped:
        run(corpus, shape, 0, Checkpoints(kept, {}), send(number, share), **changes)
    assert stopped.value.number == number
    assert (
        str(stopped.value)
        == f"interrupted in epoch {1 if share <= 0.5 else 2} of 2; saved in {kept}"
    )
    shares: list[float | None] = []
    resumed = run(
        corpus,
        shape,
        0,
        Checkpoints(kept, {}),
        lambda progress: shares.append(progress.share),
        **changes,
    )
    assert all(done is not None and done > share for done in shares)  # it did not start over
    assert same(resumed, run(corpus, shape, **changes))


@pytest.mark.usefixtures("steady_handlers")
def test_a_signal_while_the_last_checkpoint_is_written_is_not_lost(
    corpus: Corpus, tmp_path: Path
) -> None:
    class Late(Checkpoints):
        def save(self, step: int, tensors: Any, about: Any) -> None:
            super().save(step, tensors, about)
            if about["epoch"] == 2:
                signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        run(corpus, DBOW, 0, Late(tmp_path / "kept", {}, every=0))
    assert same(run(corpus, DBOW, 0, Checkpoints(tmp_path / "kept", {})), run(corpus, DBOW))


def test_a_signal_that_nobody_has_acted_on_is_delivered_afterwards() -> None:
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        with stop_signals(True) as asked:
            signal.raise_signal(signal.SIGTERM)
            assert (asked, received) == ([signal.SIGTERM], [])
        assert received == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("steady_handlers")
def test_the_second_interrupt_stops_at_once(corpus: Corpus, tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(corpus, DBOW, 0, Checkpoints(tmp_path / "kept", {}), interrupt)
    assert not (tmp_path / "kept").exists()


def test_without_checkpoints_an_interrupt_is_pythons_own(corpus: Corpus) -> None:
    with pytest.raises(KeyboardInterrupt) as stopped:
        run(corpus, DBOW, report=send(signal.SIGINT, 0.0))
    assert str(stopped.value) == ""


@pytest.mark.parametrize("shape", [DBOW, DM], ids=["dbow", "dm"])
def test_a_loss_that_is_not_a_number_ends_training_with_a_remedy(
    shape: Shape, corpus: Corpus
) -> None:
    with pytest.raises(TrainingError) as refused:
        run(corpus, shape, epochs=3, word_rate=1e38, document_rate=1e38)
    assert str(refused.value).startswith("the loss is no longer a number in epoch ")
    assert str(refused.value).endswith("; lower the rates (documents 1e+38, words 1e+38)")


@pytest.mark.parametrize("shape", [DBOW, DM], ids=["dbow", "dm"])
@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([[0, 1]], "too few documents: 1; train on two or more"),
        ([], "too few documents: 0; train on two or more"),
        ([[], []], "no document has a known word; lower the minimum count"),
    ],
)
def test_too_few_documents_or_words_are_refused(
    texts: list[list[int]], message: str, shape: Shape
) -> None:
    with pytest.raises(TrainingError, match=f"^{message}$"):
        run((count_ids(texts, 3)[0], np.ones(3, np.int64)), shape)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_a_document_without_a_known_word_gets_zeros_and_is_not_trained_on(shape: Shape) -> None:
    documents = count_ids([[0, 1], [], [1, 2, 2]], 3)
    start, trained = (
        run(documents, shape, document_rate=rate, min_occurrences=1) for rate in (1e-30, 0.1)
    )
    assert trained.embeddings.shape == (3, shape.dim)
    assert trained.embeddings.isfinite().all()
    assert trained.embeddings.any(dim=1).tolist() == [True, False, True]
    assert (trained.embeddings != start.embeddings).any(dim=1).tolist() == [True, False, True]
    assert [len(trained.history), trained.history[0]["loss"] > 0] == [2, True]


def test_a_device_has_a_name() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(TrainingError, match="^no device 'tpu'; choose cpu, cuda or auto$"):
        choose_device("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(
            TrainingError, match="^torch finds no GPU for device cuda; use cpu or auto$"
        ):
            choose_device("cuda")


def codes_of(trained: Trained) -> np.ndarray:
    projection = trained.network.projection
    return pack(
        (trained.embeddings if projection is None else trained.embeddings @ projection).numpy() > 0
    )


def apart(codes: np.ndarray, others: np.ndarray, labels: list[int]) -> tuple[float, float]:
    """The mean distance of codes of two documents of the same topic, and of different topics."""
    distances = hamming(codes, others)
    together = np.equal.outer(labels, labels)
    return distances[together & ~np.eye(len(labels), dtype=bool)].mean(), distances[
        ~together
    ].mean()


# The exact softmax, so that a loss is no matter of luck, and rates for a small corpus.
LEARNING: dict[str, Any] = {
    "epochs": 8,
    "samples": 0,
    "dropout": 0.0,
    "document_rate": 1.0,
    "word_rate": 0.03,
}
LEARNING |= {
    "row_rates": False,
    "document_prior": 0.0,
    "word_accumulator_start": 1.0,
    "min_occurrences": 1,
}

LEARNERS: dict[str, tuple[Shape, dict[str, Any]]] = {
    **{name: (shape, {}) for name, shape in SHAPES.items()},
    "noise": (DBOW, {"binarization": "noise"}),
    "straight-through": (DBOW, {"binarization": "straight-through", "slope_growth": 0.1}),
    "straight-through-sigmoid": (
        DBOW,
        {"binarization": "straight-through-sigmoid", "slope_growth": 0.1},
    ),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_every_network_learns_similar_codes_for_documents_of_a_topic(
    name: str, corpus: Corpus, topics: Topics
) -> None:
    shape, changes = LEARNERS[name]
    trained = run(corpus, shape, **LEARNING, **changes)
    losses = [epoch["loss"] for epoch in trained.history]
    if changes:  # the bits are drawn
        assert losses[-1] < losses[0]
    else:
        assert losses == sorted(losses, reverse=True)
    together, otherwise = apart(codes_of(trained), codes_of(trained), topics.labels[:DOCUMENTS])
    assert together < 0.7 * otherwise


@pytest.mark.parametrize("shape", [DBOW, DM], ids=["dbow", "dm"])
def test_the_papers_recipe_as_it_is_learns_the_topics_of_a_small_corpus(
    shape: Shape, topics: Topics
) -> None:
    trained = train(*count(topics.texts), shape, paper_recipe(shape), device="cpu")
    together, otherwise = apart(codes_of(trained), codes_of(trained), topics.labels)
    assert together < 0.7 * otherwise
    assert trained.history[-1]["loss"] < trained.history[0]["loss"]


# That inference depends on the document alone, tests/model/test_encoder.py shows.
def test_new_documents_get_codes_like_those_of_their_topic(topics: Topics) -> None:
    documents, counts = count(topics.texts)
    recipe = paper_recipe(choose_shape(32), epochs=8, batch_size=32, word_accumulator_start=1e-4)
    trained = train(documents, counts, choose_shape(32), recipe, device="cpu")
    encoder = NetworkEncoder(trained.network, counts, recipe, seed=0)
    inferred = pack(encoder.activations(encoder.embed(documents)) > 0)
    together, otherwise = apart(inferred, codes_of(trained), topics.labels)
    assert together < 0.6 * otherwise


def test_inference_uses_the_slope_that_training_ended_with(corpus: Corpus) -> None:
    recipe = paper_recipe(DBOW, binarization="straight-through-sigmoid", slope_growth=0.5, epochs=5)
    trained = train(*corpus, DBOW, recipe, device="cpu").network
    arrays = {name: tensor.numpy() for name, tensor in trained.tensors.items()}
    loaded = Network.of_arrays(arrays, DBOW, recipe, torch.device("cpu"))
    layer = torch.tensor([[-0.3, 0.2] * 8])
    soft = torch.sigmoid(3 * layer)  # epochs 0 to 4: the slope ends at 1 + 4 * 0.5
    for network in (trained, loaded):
        torch.testing.assert_close(network.embed(layer).gate, 3 * soft * (1 - soft))


def test_progress_grows_to_the_end(corpus: Corpus) -> None:
    steps: list[Progress] = []
    trained = run(corpus, DBOW, report=steps.append)
    shares = [step.share for step in steps if step.share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert steps[-1].done == 2 * DOCUMENTS
    assert steps[-1].note == f"epoch 2 of 2, loss {trained.history[-1]['loss']:.3f}"


def test_adagrad_is_torchs_with_no_gradient_on_other_rows() -> None:
    rng = torch.Generator().manual_seed(1)
    start = torch.randn(7, 3, generator=rng, dtype=torch.float64)
    table, whole, torchs = (
        AdaGrad(start.clone(), 0.01),
        AdaGrad(start.clone(), 0.01),
        torch.nn.Parameter(start.clone()),
    )
    optimizer = torch.optim.Adagrad([torchs], lr=0.3, initial_accumulator_value=0.01, eps=0.0)
    for size in (3, 1, 7, 0, 2, 4):
        rows, gradient = torch.randperm(7, generator=rng)[:size], torch.zeros_like(start)
        gradient[rows] = torch.randn(size, 3, generator=rng, dtype=torch.float64)
        before, others = table.values.clone(), torch.isin(torch.arange(7), rows, invert=True)
        table.step(gradient[rows], 0.3, rows)
        assert torch.equal(table.values[others], before[others])  # to the bit
        whole.step(gradient, 0.3)
        torchs.grad = gradient
        optimizer.step()
    torch.testing.assert_close(table.values, torchs.detach())
    torch.testing.assert_close(whole.values, table.values)


NAMES = st.lists(
    st.one_of(st.integers(0, 1000), st.sampled_from(["order", "batch", "step"])), max_size=3
).map(tuple)


def numbers(seed: int, *name: str | int) -> list[float]:
    return torch.rand(4, generator=generator(seed, *name)).tolist()


SEEDS = st.one_of(st.integers(0, 3), st.integers(-(2**70), 2**70))


@example(one=(0, ("step", 1, 12)), other=(0, ("step", 11, 2)))
@example(one=(0, ("step", 1, 12)), other=(0, ("step", "1", 12)))
@example(one=(0, ("step", 1, 12)), other=(0, ("step1", 12)))
@given(one=st.tuples(SEEDS, NAMES), other=st.tuples(SEEDS, NAMES))
def test_a_name_and_a_seed_give_the_same_numbers_and_others_give_others(
    one: tuple[int, tuple[str | int, ...]], other: tuple[int, tuple[str | int, ...]]
) -> None:
    assert numbers(one[0], *one[1]) == numbers(one[0], *one[1])
    assert (numbers(one[0], *one[1]) == numbers(other[0], *other[1])) == (one == other)


def test_the_numbers_are_those_of_every_release() -> None:
    """A saved model infers with numbers drawn by name: other ones would give its documents other codes."""
    assert generator(0, "inference", 0).initial_seed() == 7241477568000688659
    assert generator(1, "inference", 19).initial_seed() == 7468281498999639776


def test_adagrad_by_row_keeps_the_direction_of_the_gradient() -> None:
    gradient = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    table = AdaGrad(torch.zeros(2, 2), 1e-12, by_row=True)
    table.step(gradient, 0.5)
    expected = -0.5 * gradient / gradient.square().mean(1, keepdim=True).sqrt()
    assert torch.allclose(table.values, expected, atol=1e-5)
    rows = AdaGrad(torch.zeros(2, 2), 1e-12, by_row=True)
    rows.step(gradient[1:], 0.5, torch.tensor([1]))
    assert torch.allclose(rows.values, torch.stack([torch.zeros(2), expected[1]]), atol=1e-5)


def test_words_that_occur_less_often_than_asked_are_neither_predicted_nor_sampled(
    corpus: Corpus,
) -> None:
    _, counts = corpus
    fewest = int(np.median(counts))
    rare = counts < fewest
    trained = run(corpus, choose_shape(8), epochs=2, min_occurrences=fewest)
    weights = trained.network.words[:, :8].abs().sum(1)
    assert not weights[torch.from_numpy(rare)].any()
    assert weights[torch.from_numpy(~rare)].any()


def test_a_penalty_keeps_document_embeddings_small(corpus: Corpus) -> None:
    free, held = (
        run(corpus, choose_shape(None, dim=8), epochs=5, document_prior=prior)
        for prior in (0.0, 100.0)
    )
    assert held.embeddings.norm() < 0.5 * free.embeddings.norm()

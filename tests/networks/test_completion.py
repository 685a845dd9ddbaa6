import numpy as np
import torch
from counted import count_ids
from hypothesis import given
from hypothesis import strategies as st

from parabit.networks.completion import halves, hold_out
from parabit.networks.documents import Documents

DOCUMENTS = st.lists(st.lists(st.integers(0, 9), max_size=40), min_size=1, max_size=8)


def bag(documents: Documents, row: int) -> np.ndarray:
    counts = np.zeros(10, dtype=int)
    mine = slice(documents.feature_offsets[row], documents.feature_offsets[row + 1])
    counts[documents.features[mine]] = documents.counts[mine]
    return counts


def words(documents: Documents, row: int) -> list[int]:
    return documents.tokens[documents.token_offsets[row] : documents.token_offsets[row + 1]].tolist()


@given(documents=DOCUMENTS, data=st.data(), seed=st.integers(0, 99))
def test_the_halves_of_a_document_make_the_whole(documents: list[list[int]], data: st.DataObject, seed: int) -> None:
    whole, _ = count_ids(documents, 10)
    chosen = np.array(data.draw(st.lists(st.integers(0, len(documents) - 1), unique=True)), dtype=np.int64)
    first, second = halves(whole, chosen, seed)
    assert len(first) == len(second) == len(chosen)
    for row, document in enumerate(chosen):
        assert (bag(first, row) + bag(second, row) == bag(whole, document)).all()
        assert words(first, row) == words(second, row) == documents[document]  # the context is whole in both
    assert (first.counts > 0).all()
    assert (second.counts > 0).all()
    assert first.predicted is not None
    assert second.predicted is not None
    assert (first.predicted != second.predicted).all()
    assert len(first.predicted) == len(first.tokens)


def test_each_occurrence_goes_to_either_half_with_the_same_chance() -> None:
    whole, _ = count_ids([[0] * 4000 + [1] * 4000] * 2, 10)
    first, _ = halves(whole, np.array([0, 1]), seed=0)
    assert first.predicted is not None
    for share in (*(first.counts / 4000), first.predicted.mean()):
        assert abs(share - 0.5) < 0.05


def test_halves_follow_the_seed() -> None:
    whole, _ = count_ids([list(range(10)) * 5] * 3, 10)
    one, same, other = (halves(whole, np.arange(3), seed)[0] for seed in (1, 1, 2))
    assert one.fingerprint == same.fingerprint != other.fingerprint


@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=400),
    share=st.sampled_from([0.0, 0.05, 0.3, 0.9]),
    seed=st.integers(0, 5),
)
def test_every_document_is_either_trained_on_or_held_out(sizes: list[int], share: float, seed: int) -> None:
    trained, held = hold_out(torch.tensor(sizes), share, seed)
    assert sorted([*trained.tolist(), *held.tolist()]) == list(range(len(sizes)))
    assert trained.tolist() == sorted(trained.tolist())
    assert held.tolist() == sorted(held.tolist())
    assert len(held) in (0, int(len(sizes) * share))
    assert all(sizes[document] > 1 for document in held)


def test_fewer_than_ten_are_too_few_to_hold_out() -> None:
    assert len(hold_out(torch.full((199,), 30), 0.05, seed=0)[1]) == 0
    assert len(hold_out(torch.full((200,), 30), 0.05, seed=0)[1]) == 10


def test_no_more_are_held_out_than_asked_for() -> None:
    assert len(hold_out(torch.full((100_000,), 30), 0.05, seed=0)[1]) == 256  # one batch of inference
    assert len(hold_out(torch.full((100_000,), 30), 0.05, seed=0, most=64)[1]) == 64


def test_another_seed_holds_out_others() -> None:
    one, same, other = (hold_out(torch.full((1000,), 30), 0.05, seed)[1].tolist() for seed in (1, 1, 2))
    assert one == same != other


def test_documents_of_one_word_cannot_be_halved() -> None:
    sizes = torch.ones(1000, dtype=torch.int64)
    assert len(hold_out(sizes, 0.05, seed=0)[1]) == 0
    sizes[:60] = 2
    assert set(hold_out(sizes, 0.05, seed=0)[1].tolist()) < set(range(60))

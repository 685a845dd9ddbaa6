"""The steps of an epoch take every word of every document once."""

from collections import Counter

import numpy as np
import pytest
import torch
from counted import count_ids
from hypothesis import given, settings
from hypothesis import strategies as st

from parabit.networks import WordSampler
from parabit.networks.bags import BagTable
from parabit.networks.positions import PositionTable
from parabit.networks.recipe import preset
from parabit.networks.semantics import OfDocuments
from parabit.networks.shape import choose_shape

VOCABULARY = 8
DOCUMENTS = st.lists(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=12), min_size=1, max_size=12)
CPU = torch.device("cpu")


def bags(documents: list[list[int]], **recipe: object) -> BagTable:
    counted, statistics = count_ids(documents, VOCABULARY)
    chosen = preset("paper", choose_shape(4), **recipe)
    return BagTable(counted, torch.from_numpy(statistics.weights(chosen.idf_power)), chosen)


def positions(documents: list[list[int]], batch_size: int, window: int = 1, two_sided: bool = False) -> PositionTable:
    shape = choose_shape(4, architecture="dm", window=window, two_sided=two_sided)
    recipe = preset("paper", shape, batch_size=batch_size)
    return PositionTable(count_ids(documents, VOCABULARY)[0], VOCABULARY, shape, recipe, CPU)


@settings(max_examples=40)
@given(documents=DOCUMENTS, batch_size=st.integers(1, 7), at_once=st.integers(1, 5), epoch=st.integers(0, 3))
def test_an_epoch_of_bags_has_every_document_once(
    documents: list[list[int]], batch_size: int, at_once: int, epoch: int
) -> None:
    table = bags([*documents, []], batch_size=batch_size)  # the last has no words, and is left out
    steps = table.plan(torch.arange(len(documents) + 1), seed=1, epoch=epoch)
    assert sorted(torch.cat(steps).tolist()) == list(range(len(documents)))
    assert {len(step) for step in steps[:-1]} <= {batch_size}
    sampler = WordSampler(torch.ones(VOCABULARY), samples=3)
    for first in range(0, len(steps), at_once):
        for mine, batch in table.prepare(steps[first : first + at_once], sampler, torch.Generator().manual_seed(2)):
            ids = batch.touched.ids[batch.touched.of].tolist()
            owners = torch.searchsorted(batch.starts, torch.arange(len(batch.weights)), right=True) - 1
            for row, document in enumerate(mine.tolist()):
                places = (owners == row).nonzero().squeeze(1).tolist()
                found = {ids[place]: batch.weights[place].item() for place in places}
                assert found == Counter(documents[document])
                assert batch.totals[row] == len(documents[document])
            # In the order of the words: candidates weigh nothing, all else stands with its document.
            entries = batch.touched.order < len(batch.weights)
            assert len(ids) == len(batch.weights) + 3
            assert not batch.ordered_weights[~entries].any()
            assert torch.equal(batch.ordered_weights[entries], batch.weights[batch.touched.order[entries]])
            assert torch.equal(batch.ordered_documents[entries], owners[batch.touched.order[entries]])


def test_another_epoch_and_another_seed_have_another_order() -> None:
    table = bags([[0]] * 50, batch_size=50)
    orders = [table.plan(torch.arange(50), seed, epoch)[0].tolist() for seed, epoch in [(1, 0), (1, 0), (1, 1), (2, 0)]]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) == 3


@pytest.mark.parametrize("exponent", [0.0, 0.4, 1.0])
def test_a_document_counts_its_length_to_the_rest_of_the_power(exponent: float) -> None:
    table = bags([[0, 1, 1, 2], [3] * 9], length_exponent=exponent)
    chosen = table.select(torch.arange(2))
    assert chosen.totals.tolist() == pytest.approx([4 ** (1 - exponent), 9 ** (1 - exponent)])
    expected = [length**-exponent * times for length, times in [(4, 1), (4, 2), (4, 1), (9, 9)]]
    assert chosen.weights.tolist() == pytest.approx(expected)


def test_a_document_is_trained_on_together_with_one_of_its_neighbours() -> None:
    table = bags([[0, 0], [1], [2], [3, 3, 3]], neighbours=2, neighbour_weight=0.25)
    table.neighbours = OfDocuments(np.arange(4), torch.tensor([[1, 2], [0, 0], [2, 2], [0, 1]]))
    seen = set()
    for seed in range(30):
        chosen = table.select(torch.tensor([0, 3]), torch.Generator().manual_seed(seed))
        owners, words = chosen.owners.tolist(), chosen.words.tolist()
        weights = dict(zip(zip(owners, words, strict=True), chosen.weights.tolist(), strict=True))
        assert weights.pop((0, 0)) == 1.5
        assert weights.pop((1, 3)) == 2.25
        assert set(weights.items()) <= {((0, 1), 0.25), ((0, 2), 0.25), ((1, 0), 0.5), ((1, 1), 0.25)}
        assert chosen.totals.tolist() == pytest.approx([1.75, 2.75 if (1, 0) in weights else 2.5])
        seen.update(weights)
    assert seen == {(0, 1), (0, 2), (1, 0), (1, 1)}  # either neighbour has its turn
    assert table.select(torch.tensor([0])).weights.tolist() == [2.0]  # but not where nothing is to be drawn


@settings(max_examples=40)
@given(documents=DOCUMENTS, batch_size=st.integers(1, 9), at_once=st.integers(1, 5), two_sided=st.booleans())
def test_an_epoch_of_positions_has_every_word_once_with_what_stands_around_it(
    documents: list[list[int]], batch_size: int, at_once: int, two_sided: bool
) -> None:
    table = positions(documents, batch_size, window=2, two_sided=two_sided)
    steps = table.plan(torch.arange(len(documents)), seed=1, epoch=0)
    sampler = WordSampler(torch.ones(VOCABULARY), samples=3)
    found = []
    sizes = []
    for first in range(0, len(steps), at_once):
        for mine, batch in table.prepare(steps[first : first + at_once], sampler, torch.Generator().manual_seed(2)):
            targets = batch.touched.ids[batch.touched.of][:-3].tolist()
            owners = mine[batch.documents.of].tolist()
            contexts = [slot.ids[slot.of].tolist() for slot in batch.contexts]
            found += list(zip(owners, targets, *contexts, strict=True))
            sizes.append(len(targets))
    slots = (-2, -1, 1, 2) if two_sided else (-2, -1)
    plain = []
    for number, document in enumerate(documents):
        around = dict(enumerate(document))
        plain += [
            (number, word, *(around.get(place + slot, VOCABULARY) for slot in slots))
            for place, word in enumerate(document)
        ]
    assert Counter(found) == Counter(plain)
    assert set(sizes[:-1]) <= {batch_size}
    assert 0 < sizes[-1] <= batch_size

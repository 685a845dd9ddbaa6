"""The steps of an epoch take every word of every document once."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from counted import count_ids
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from parabit.networks.config import choose_shape
from parabit.networks.dbow import BagTable
from parabit.networks.dm import PositionTable
from parabit.networks.network import WordSampler

VOCABULARY = 8
DOCUMENTS = st.lists(
    st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=12), min_size=1, max_size=12
)
CPU = torch.device("cpu")


def prepared(
    table: Any, documents: list[list[int]], batch_size: int
) -> Iterator[tuple[Tensor, Any]]:
    """The documents and the batch of each step of an epoch."""
    steps = table.plan(torch.randperm(len(documents)), batch_size)
    sampler = WordSampler(torch.ones(VOCABULARY), samples=3)
    yield from map(
        table.prepare, steps, sampler.draw_each(len(steps), torch.Generator().manual_seed(2))
    )


@settings(max_examples=40)
@given(documents=DOCUMENTS, batch_size=st.integers(1, 7))
def test_an_epoch_of_bags_has_every_document_once(
    documents: list[list[int]], batch_size: int
) -> None:
    table = BagTable(count_ids(documents, VOCABULARY)[0], CPU)
    steps = list(prepared(table, documents, batch_size))
    assert sorted(torch.cat([mine for mine, _ in steps]).tolist()) == list(range(len(documents)))
    assert {len(mine) for mine, _ in steps[:-1]} <= {batch_size}
    for mine, batch in steps:
        ids = batch.touched.ids[batch.touched.of].tolist()
        owners = torch.searchsorted(batch.starts, torch.arange(len(ids) - 3), right=True) - 1
        for row, document in enumerate(mine.tolist()):
            places = (owners == row).nonzero().squeeze(1).tolist()
            assert {ids[place]: batch.counts[place].item() for place in places} == Counter(
                documents[document]
            )
            assert batch.totals[row] == len(documents[document])
        assert torch.equal(batch.owners[:-3], owners)
        assert len(batch.counts) == len(batch.owners) == len(ids)
        assert not batch.counts[-3:].any()  # candidates are not to be predicted


@settings(max_examples=40)
@given(documents=DOCUMENTS, batch_size=st.integers(1, 9), two_sided=st.booleans())
def test_an_epoch_has_every_position_once(
    documents: list[list[int]], batch_size: int, two_sided: bool
) -> None:
    shape = choose_shape(4, architecture="dm", window=2, two_sided=two_sided)
    table = PositionTable(count_ids(documents, VOCABULARY)[0], VOCABULARY, shape, CPU)
    found, sizes = [], []
    for mine, batch in prepared(table, documents, batch_size):
        targets = batch.touched.ids[batch.touched.of][:-3].tolist()
        owners = mine[batch.documents.of].tolist()
        contexts = [slot.ids[slot.of].tolist() for slot in batch.contexts]
        found += list(zip(owners, targets, *contexts, strict=True))
        sizes.append(len(targets))
    slots = (-2, -1, 1, 2) if two_sided else (-2, -1)
    plain = []
    for number, document in enumerate(documents):
        around = dict(enumerate(document))
        for place, word in enumerate(document):
            plain.append((number, word, *(around.get(place + slot, VOCABULARY) for slot in slots)))
    assert Counter(found) == Counter(plain)
    assert set(sizes[:-1]) <= {batch_size}
    assert 0 < sizes[-1] <= batch_size


def test_the_fingerprint_of_bags_tells_corpora_apart() -> None:
    corpora: list[list[list[int]]] = [
        [[0, 1, 1, 2], [], [2, 0]],
        [[0, 1, 1, 2], [], [2, 1]],
        [[0, 1, 2], [], [2, 0]],
        [[0, 1, 2, 1], [], [2, 0]],  # the bags of the first in another order
        [[0, 1, 1, 2], [2, 0], []],
        [[0, 1, 1, 2], [2, 0]],
    ]
    assert len({count_ids(documents, 3)[0].fingerprint for documents in corpora}) == len(corpora)

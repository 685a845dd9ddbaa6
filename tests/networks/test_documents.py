import numpy as np
import pytest
import torch
from counted import count_ids

from parabit.networks.grouping import as_tensor
from parabit.text import Bags

TEXTS = [[0, 1, 1, 2], [], [2, 0]]


def test_a_corpus_has_as_many_documents_as_it_was_given_empty_ones_too() -> None:
    documents, _ = count_ids(TEXTS, 3)
    assert len(documents) == 3
    assert len(Bags.of_counts(documents.features, documents.counts, documents.feature_offsets)) == 3


@pytest.mark.parametrize(
    "other",
    [
        [[0, 1, 1, 2], [], [2, 1]],
        [[0, 1, 2], [], [2, 0]],
        [[0, 1, 2, 1], [], [2, 0]],  # the same bags in another order
        [[0, 1, 1, 2], [2, 0], []],
        [[0, 1, 1, 2], [], [2, 0], []],
        [[0, 1, 1, 2], [2, 0]],
    ],
)
def test_the_fingerprint_tells_corpora_apart(other: list[list[int]]) -> None:
    assert count_ids(other, 3)[0].fingerprint != count_ids(TEXTS, 3)[0].fingerprint


def test_arrays_that_may_not_be_written_become_tensors_without_a_warning() -> None:
    array = np.arange(3, dtype=np.int32)
    array.flags.writeable = False
    assert as_tensor(array, torch.device("cpu")).tolist() == [0, 1, 2]

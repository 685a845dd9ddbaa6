from dataclasses import replace

import numpy as np
import pytest
import torch
from counted import count_ids

from parabit.networks import Documents, WordStatistics
from parabit.networks.documents import on_device

TEXTS = [[0, 1, 1, 2], [], [2, 0]]


def test_a_corpus_has_as_many_documents_as_it_was_given_empty_ones_too() -> None:
    documents, _ = count_ids(TEXTS, 3)
    assert len(documents) == 3
    assert len(Documents.of_counts(documents.features, documents.counts, documents.feature_offsets)) == 3


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


def test_the_fingerprint_is_of_what_is_said_not_of_where_it_lies(tmp_path_factory: pytest.TempPathFactory) -> None:
    documents, _ = count_ids(TEXTS, 3)
    path = tmp_path_factory.mktemp("arrays") / "features.npy"
    np.save(path, documents.features)
    mapped = replace(documents, features=np.load(path, mmap_mode="r"))
    assert mapped.fingerprint == documents.fingerprint


def test_a_word_weighs_its_inverse_document_frequency_to_a_power() -> None:
    statistics = WordStatistics(np.array([9, 5, 1]), np.array([3, 2, 1]), documents=3)
    assert statistics.weights(0.0).tolist() == [1, 1, 1]
    np.testing.assert_allclose(statistics.weights(1.0), np.log([4 / 3, 4 / 2, 4 / 1]), rtol=1e-6)
    np.testing.assert_allclose(statistics.weights(0.5), np.log([4 / 3, 4 / 2, 4 / 1]) ** 0.5, rtol=1e-6)
    assert statistics.weights(0.0).dtype == statistics.weights(1.0).dtype == np.float32


def test_a_word_of_every_document_still_weighs_something() -> None:
    assert WordStatistics(np.array([5]), np.array([5]), documents=5).weights(1.0)[0] > 0


def test_arrays_that_may_not_be_written_become_tensors_without_a_warning() -> None:
    array = np.arange(3, dtype=np.int32)
    array.flags.writeable = False
    assert on_device(array, torch.device("cpu")).tolist() == [0, 1, 2]

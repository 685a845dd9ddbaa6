"""What a document gets depends on the document and the model alone."""

from typing import Any

import numpy as np
import pytest
import torch
from counted import count

from parabit.codes import hamming, pack
from parabit.networks.config import Shape, choose_shape, paper_recipe
from parabit.networks.inference import NetworkEncoder
from parabit.networks.training import train
from parabit.text import Bags, Vocabulary, build_vocabulary, make_bags
from topics import Topics

QUICK: dict[str, Any] = {"epochs": 2, "samples": 64, "inference_rounds": 4}


@pytest.fixture(scope="module")
def vocabulary(topics: Topics) -> Vocabulary:
    return build_vocabulary(topics.texts)


def bags(texts: list[str], vocabulary: Vocabulary) -> Bags:
    return make_bags(texts, vocabulary)


def trained_encoder(shape: Shape, vocabulary: Vocabulary, topics: Topics, **changes: Any) -> NetworkEncoder:
    documents = bags(topics.texts, vocabulary)
    recipe = paper_recipe(shape, **(QUICK | changes))
    trained = train(documents, vocabulary.counts, shape, recipe, seed=3, device="cpu")
    return NetworkEncoder(trained.network, vocabulary.counts, recipe, seed=3)


def arrays(encoder: NetworkEncoder) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in encoder.network.tensors.items()}


def test_new_documents_get_codes_like_those_of_their_topic(topics: Topics) -> None:
    documents, counts = count(topics.texts)
    shape = choose_shape(32)
    recipe = paper_recipe(shape, epochs=8, batch_size=32, word_accumulator_start=1e-4)
    trained = train(documents, counts, shape, recipe, device="cpu")
    encoder = NetworkEncoder(trained.network, counts, recipe, seed=0)
    codes = pack(encoder.activations(encoder.embed(documents)) > 0)
    distances = hamming(codes, pack((trained.embeddings > 0).numpy()))
    together = np.equal.outer(topics.labels, topics.labels)
    assert distances[together].mean() < 0.6 * distances[~together].mean()


def test_inference_uses_the_slope_that_training_ended_with(vocabulary: Vocabulary, topics: Topics) -> None:
    annealed = {"binarization": "straight-through-sigmoid", "slope_growth": 0.5, "epochs": 5}
    trained = trained_encoder(choose_shape(16), vocabulary, topics, **annealed)
    shape, counts = trained.network.shape, vocabulary.counts
    loaded = NetworkEncoder.of_tensors(arrays(trained), shape, counts, trained.recipe, seed=3, device="cpu")
    layer = torch.tensor([[-0.3, 0.2] * 8])
    soft = torch.sigmoid(3 * layer)  # epochs 0 to 4: the slope ends at 1 + 4 * 0.5
    for encoder in (trained, loaded):
        torch.testing.assert_close(encoder.network.embed(layer).gate, 3 * soft * (1 - soft))

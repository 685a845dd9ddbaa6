"""Inference with a trained network; that it depends on the document alone, tests/model/test_encoder.py shows."""

import numpy as np
import torch
from counted import count

from parabit.codes import hamming, pack
from parabit.networks.config import choose_shape, paper_recipe
from parabit.networks.inference import NetworkEncoder
from parabit.networks.training import train
from topics import Topics


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


def test_inference_uses_the_slope_that_training_ended_with(topics: Topics) -> None:
    documents, counts = count(topics.texts[:40])
    shape = choose_shape(16)
    recipe = paper_recipe(shape, binarization="straight-through-sigmoid", slope_growth=0.5, epochs=5)
    trained = train(documents, counts, shape, recipe, device="cpu").network
    arrays = {name: tensor.numpy() for name, tensor in trained.tensors.items()}
    loaded = NetworkEncoder.of_tensors(arrays, shape, counts, recipe, seed=0, device="cpu").network
    layer = torch.tensor([[-0.3, 0.2] * 8])
    soft = torch.sigmoid(3 * layer)  # epochs 0 to 4: the slope ends at 1 + 4 * 0.5
    for network in (trained, loaded):
        torch.testing.assert_close(network.embed(layer).gate, 3 * soft * (1 - soft))

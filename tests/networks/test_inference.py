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

SHAPES = {
    "dbow": choose_shape(16),
    "real-binary": choose_shape(12, dim=40),
    "real-binary, 5 bits": choose_shape(5, dim=10),
    "real-valued": choose_shape(None, dim=21),
    "dm": choose_shape(16, architecture="dm"),
    "dm, wide window": choose_shape(9, architecture="dm", window=2, two_sided=True, word_dim=7),
}
QUICK: dict[str, Any] = {"epochs": 2, "samples": 64, "inference_rounds": 4}


@pytest.fixture(scope="module")
def vocabulary(topics: Topics) -> Vocabulary:
    return build_vocabulary(topics.texts)


@pytest.fixture(scope="module")
def texts(topics: Topics) -> list[str]:
    """Texts of all kinds: seen and new, long and short, empty, unknown, and some twice."""
    words = " ".join(topics.texts).split()
    long = [" ".join(words[start : start + size]) for start, size in ((0, 1024), (50, 1025), (7, 3000))]
    short = [words[0], f"{words[1]} {words[1]}", " ".join(reversed(words[:30]))]
    return [*topics.texts[:250], *long, *short, "", "qqqq xxxx", "...", *topics.texts[:20]]


def bags(texts: list[str], vocabulary: Vocabulary) -> Bags:
    return make_bags(texts, vocabulary)


def trained_encoder(shape: Shape, vocabulary: Vocabulary, topics: Topics, **changes: Any) -> NetworkEncoder:
    documents = bags(topics.texts, vocabulary)
    recipe = paper_recipe(shape, **(QUICK | changes))
    trained = train(documents, vocabulary.counts, shape, recipe, seed=3, device="cpu")
    return NetworkEncoder(trained.network, vocabulary.counts, recipe, seed=3)


def arrays(encoder: NetworkEncoder) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in encoder.network.tensors.items()}


@pytest.fixture(scope="module", params=SHAPES)
def encoder(request: pytest.FixtureRequest, vocabulary: Vocabulary, topics: Topics) -> NetworkEncoder:
    return trained_encoder(SHAPES[request.param], vocabulary, topics)


def test_a_document_gets_the_same_alone_in_any_batch_and_in_any_order(
    encoder: NetworkEncoder, vocabulary: Vocabulary, texts: list[str]
) -> None:
    together = encoder.embed(bags(texts, vocabulary))
    assert (together.shape, together.dtype) == ((len(texts), encoder.network.shape.dim), np.dtype(np.float32))
    last = len(texts) - 1
    for chosen in ([0], [250], [252], [253], [5, 5, 252], [256, 1], list(range(last, -1, -1)), list(range(100, 110))):
        part = encoder.embed(bags([texts[place] for place in chosen], vocabulary))
        assert part.tobytes() == together[chosen].tobytes()
        assert encoder.activations(part).tobytes() == encoder.activations(together)[chosen].tobytes()


def test_documents_without_a_known_word_get_zeros_and_no_documents_nothing(
    encoder: NetworkEncoder, vocabulary: Vocabulary
) -> None:
    embedded = encoder.embed(bags(["", "qqqq xxxx"], vocabulary))
    assert not embedded.any()
    assert not encoder.activations(embedded).any()
    assert encoder.embed(bags([], vocabulary)).shape == (0, encoder.network.shape.dim)


def test_an_encoder_made_of_saved_tensors_gives_the_same_to_the_bit(
    encoder: NetworkEncoder, vocabulary: Vocabulary, texts: list[str]
) -> None:
    shape, recipe = encoder.network.shape, encoder.recipe
    loaded = NetworkEncoder.of_tensors(arrays(encoder), shape, vocabulary.counts, recipe, seed=3, device="cpu")
    some = bags(texts[:20], vocabulary)
    assert loaded.embed(some).tobytes() == encoder.embed(some).tobytes()


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

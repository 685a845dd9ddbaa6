"""The analytic gradients of every model are those that torch's autograd finds for the loss written out plainly."""

import pytest
import torch
from counted import count_ids
from torch import Tensor

from parabit.networks.config import METHODS, Recipe, Shape
from parabit.networks.dbow import BagBatch, WantedWords
from parabit.networks.dm import PositionBatch, PositionTable
from parabit.networks.grouping import group, sum_rows
from parabit.networks.network import Candidates, Gradients, Network, WordSampler

VOCABULARY = 17
DOUBLE = torch.float64

DBOW = {
    "PV-DBOW": Shape("dbow", bits=None, dim=6),
    "Binary PV-DBOW": Shape("dbow", bits=6, dim=6),
    "Real-Binary PV-DBOW": Shape("dbow", bits=4, dim=9, projected=True),
}
DM = {
    "PV-DM": Shape("dm", bits=None, dim=6, window=1, word_dim=6),
    "Binary PV-DM": Shape("dm", bits=6, dim=6, window=1, word_dim=6),
    "Binary PV-DM, wide window": Shape("dm", bits=4, dim=4, window=2, two_sided=True, word_dim=3),
}


def a_network(shape: Shape, method: str = "rounding") -> Network:
    rng = torch.Generator().manual_seed(5)
    frequencies = torch.rand(VOCABULARY, generator=rng, dtype=DOUBLE) + 0.1
    network = Network.start(
        shape, Recipe(binarization=method, embedding_start=1.0), frequencies, rng
    )
    network.words = torch.randn(VOCABULARY, sum(shape.parts), generator=rng, dtype=DOUBLE)
    return network


def everything() -> Candidates:
    return Candidates(torch.arange(VOCABULARY), torch.zeros(VOCABULARY, dtype=DOUBLE))


def activate(network: Network, layer: Tensor) -> Tensor:
    """The hidden layer for autograd: rounded on the way forward, the sigmoid itself on the way back."""
    if network.shape.bits is None:
        return layer
    soft = torch.sigmoid(layer)
    if network.binarization.method == "noise":
        return soft
    if network.binarization.method == "straight-through":
        return (soft > 0.5).to(DOUBLE) + layer - layer.detach()
    return (soft > 0.5).to(DOUBLE) + soft - soft.detach()


def relative_error(ours: Tensor, theirs: Tensor) -> float:
    return float((ours - theirs).norm() / theirs.norm())


def dense(gradients: Gradients, name: str, like: Tensor) -> Tensor:
    values, rows = gradients.shared[name]
    return values if rows is None else torch.zeros_like(like).index_add_(0, rows, values)


def some_embeddings(documents: int, network: Network) -> Tensor:
    return torch.randn(
        documents, network.shape.dim, dtype=DOUBLE, generator=torch.Generator().manual_seed(1)
    )


def bag_batch(counts: Tensor, candidates: Candidates) -> BagBatch:
    owners, words = counts.nonzero(as_tuple=True)
    padding = (0, len(candidates.ids))
    return BagBatch(
        touched=group(torch.cat([words, candidates.ids])),
        counts=torch.nn.functional.pad(counts[owners, words], padding),
        owners=torch.nn.functional.pad(owners, padding),
        starts=torch.searchsorted(owners, torch.arange(len(counts))),
        totals=counts.sum(1),
        correction=candidates.correction,
    )


def some_counts() -> Tensor:
    rng = torch.Generator().manual_seed(3)
    counts = torch.randint(-2, 3, (5, VOCABULARY), generator=rng).clamp(min=0).to(DOUBLE) * 1.5
    counts[2] = 0  # a document without a word
    return counts


def leaves_of(network: Network, embeddings: Tensor) -> dict[str, Tensor]:
    return {
        name: tensor.requires_grad_()
        for name, tensor in (network.tensors | {"documents": embeddings}).items()
    }


def check(ours: Gradients, loss: Tensor, leaves: dict[str, Tensor], documents: Tensor) -> None:
    """Our gradients, of these documents and what all share, are autograd's; the others of autograd's are zero."""
    theirs = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
    embedding = torch.zeros_like(leaves["documents"]).index_add_(0, documents, ours.embedding)
    found = {name: dense(ours, name, leaves[name]) for name in ours.shared} | {
        "documents": embedding
    }
    assert float(ours.loss) == pytest.approx(loss.item(), rel=1e-12)
    assert found.keys() == theirs.keys()
    assert all(relative_error(found[name], theirs[name]) < 1e-6 for name in found)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", DBOW)
def test_the_gradients_of_the_bag_of_words_are_autograds(name: str, method: str) -> None:
    network, counts = a_network(DBOW[name], method), some_counts()
    embedded = some_embeddings(5, network)
    ours = bag_batch(counts, everything()).gradients(network, embedded)

    leaves = leaves_of(network, embedded)
    layer = embedded if network.projection is None else embedded @ network.projection
    logits = activate(network, layer) @ network.words[:, :-1].T + network.words[:, -1]
    loss = -(counts * torch.log_softmax(logits, 1)).sum()
    assert float(ours.weight) == pytest.approx(counts.sum().item())
    check(ours, loss, leaves, torch.arange(5))


DOCUMENTS = [[3, 1, 4, 1, 5, 9, 2, 6], [5], [], [8, 9, 7, 9, 3, 2, 3, 8, 4, 6]]


def positions(shape: Shape, document: list[int], outside: int) -> list[tuple[int, list[int]]]:
    """Each word with what stands around it, written out plainly."""
    found = []
    for place, word in enumerate(document):
        around = [place + slot for slot in shape.slots]
        found.append(
            (word, [document[at] if 0 <= at < len(document) else outside for at in around])
        )
    return found


def position_batch(shape: Shape) -> tuple[PositionBatch, Tensor, Tensor, Tensor]:
    """All positions of the documents; their documents, words and contexts (positions, slots)."""
    rows = [
        (number, *at)
        for number, text in enumerate(DOCUMENTS)
        for at in positions(shape, text, VOCABULARY)
    ]
    owners, targets, contexts = (torch.tensor(column) for column in zip(*rows, strict=True))
    batch = PositionBatch(
        touched=group(torch.cat([targets, torch.arange(VOCABULARY)])),
        documents=group(owners),
        contexts=tuple(group(slot) for slot in contexts.unbind(1)),
        correction=torch.zeros(VOCABULARY, dtype=DOUBLE),
        share=torch.ones(1),
    )
    return batch, owners, targets, contexts


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", DM)
def test_the_gradients_of_distributed_memory_are_autograds(name: str, method: str) -> None:
    network = a_network(DM[name], method)
    assert network.context is not None
    batch, owners, targets, contexts = position_batch(network.shape)
    embeddings = some_embeddings(4, network)
    ours = batch.gradients(network, embeddings[batch.documents.ids])

    leaves = leaves_of(network, embeddings)
    layer = torch.cat(
        [embeddings[owners], *(network.context[slot] for slot in contexts.unbind(1))], dim=1
    )
    bias = network.shape.code
    weights = torch.cat([network.words[:, :bias], network.words[:, bias + 1 :]], dim=1)
    logits = activate(network, layer) @ weights.T + network.words[:, bias]
    loss = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    assert float(ours.weight) == len(targets)
    check(ours, loss, leaves, batch.documents.ids)


@pytest.mark.parametrize("name", DBOW)
def test_inference_follows_the_same_gradient_of_a_bag(name: str) -> None:
    network, counts = a_network(DBOW[name]), some_counts()
    embedded = some_embeddings(5, network)
    owners, words = counts.nonzero(as_tuple=True)
    starts = torch.searchsorted(owners, torch.arange(5))
    wanted = WantedWords(
        sum_rows(network.words, words, starts, counts[owners, words]), counts.sum(1)
    )
    gradient = wanted.gradient(network, embedded, everything())
    training = bag_batch(counts, everything()).gradients(network, embedded)
    torch.testing.assert_close(gradient, training.embedding)
    assert gradient[2].abs().max() == 0  # a document without a word stays where it is


@pytest.mark.parametrize(("piece", "chunk"), [(1024, 8192), (3, 4), (1, 1)])
@pytest.mark.parametrize("name", DM)
def test_inference_follows_the_same_gradient_of_positions_in_whatever_pieces(
    name: str, piece: int, chunk: int
) -> None:
    network = a_network(DM[name])
    batch = position_batch(network.shape)[0]
    embeddings = some_embeddings(4, network)
    table = PositionTable(
        count_ids(DOCUMENTS, VOCABULARY)[0], VOCABULARY, network.shape, torch.device("cpu")
    )
    wanted = table.wanted(network, torch.arange(4), 4, piece, chunk)
    gradient = wanted.gradient(network, embeddings, everything())
    training = batch.gradients(network, embeddings[batch.documents.ids])
    torch.testing.assert_close(gradient[batch.documents.ids], training.embedding)
    assert gradient[2].abs().max() == 0


def test_the_sampled_gradient_goes_to_the_exact_one_as_samples_grow() -> None:
    network, counts = a_network(DBOW["Binary PV-DBOW"]), some_counts()
    embedded = torch.randn(5, 6, dtype=DOUBLE, generator=torch.Generator().manual_seed(1))
    exact = bag_batch(counts, everything()).gradients(network, embedded)
    frequencies = (
        torch.rand(VOCABULARY, dtype=DOUBLE, generator=torch.Generator().manual_seed(2)) + 0.1
    )

    def error(samples: int) -> float:
        sampler, rng = WordSampler(frequencies, samples), torch.Generator().manual_seed(4)
        errors = []
        for _ in range(20):
            ours = bag_batch(counts, sampler.draw(rng)).gradients(network, embedded)
            errors.append(relative_error(ours.embedding, exact.embedding))
            errors.append(
                relative_error(*(dense(each, "words", network.words) for each in (ours, exact)))
            )
        return sum(errors) / len(errors)

    few, more, many = error(30), error(3000), error(300_000)
    # The error of importance sampling falls with the square root of the samples: tenfold for each hundredfold.
    assert 6 < few / more < 15
    assert 6 < more / many < 15
    assert many < 5e-3

"""From documents to a learned model, by the closed form or by a network."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit import __version__
from parabit.corpus import Corpus
from parabit.errors import ModelError, ParabitError, TrainingError, need
from parabit.model.closed_form import default_levels, learn
from parabit.model.encoder import Tensors, TextEncoder, quantized
from parabit.networks.config import Recipe, Shape
from parabit.progress import Progress, Report, silent
from parabit.storage import CHECKPOINT
from parabit.text import Vocabulary, VocabularyRule, count_bags, inverse_frequencies, tf_idf_rows

SAMPLE = 50_000  # documents; learning from more changes nothing (docs/models.md)
LARGEST = 1024  # bits or numbers of the closed form
_SAMPLED_CHARACTERS = 500_000_000  # at most, in all, so that long documents fit in memory
_REPORTED = 10_000  # documents after which reading reports progress
_MANY_DOCUMENTS = 1_000  # from which words of a single document are dropped: they would double the model for nothing


def draw_sample(corpus: Corpus, size: int | None, seed: int = 0, report: Report = silent) -> tuple[list[str], int]:
    """Texts drawn at random in one pass, in the order of the corpus, and how many documents it has.

    Every document has the same chance; a size of None takes all. Fewer are drawn if their texts together would be
    longer than 500 million characters.
    """
    rng = np.random.default_rng(seed)
    kept: list[tuple[float, int, str]] = []  # a heap with the largest key, negated, on top
    characters, number, highest = 0, 0, 1.0
    for number, document in enumerate(corpus, start=1):
        key = rng.random()
        if key < highest:
            heappush(kept, (-key, number, document.text))
            characters += len(document.text)
            while len(kept) > 1 and ((size is not None and len(kept) > size) or characters > _SAMPLED_CHARACTERS):
                top, _, text = heappop(kept)
                highest, characters = -top, characters - len(text)
        if number % _REPORTED == 0:
            report(Progress("reading", number, "documents", corpus.share_read))
    return [text for _, _, text in sorted(kept, key=lambda entry: entry[1])], number


def choose_levels(bits: object, dim: object, levels: Sequence[int] | None) -> list[tuple[int, ...]]:
    """The levels of the closed form's codes, by rule or as given; those of a vector beside the code come first."""
    for name, value, lowest in (("bits", bits, 8), ("dim", dim, 1)):
        if value is not None and not (type(value) is int and lowest <= value <= LARGEST):
            raise TrainingError(f"{name} is {value!r}", hint=f"it must be a whole number from {lowest} to {LARGEST:,}")
    sizes = [size for size in (dim, bits) if isinstance(size, int)]
    if not sizes:
        raise TrainingError("neither bits nor dim is given", hint="bits=128 learns codes, dim=128 real-valued vectors")
    codes = [default_levels(size) for size in sizes]
    if levels is not None:
        codes[-1], size = tuple(levels), sizes[-1]
        if not all(isinstance(level, int) and level >= 1 for level in levels) or sum(levels) != size:
            hint = f"give whole numbers, at least 1, that add up to {size}"
            raise TrainingError(f"levels {list(levels)} for a size of {size}", hint)
    return codes


def learn_from_counts(
    counts: csr_array, codes: Sequence[Sequence[int]], seed: int = 0, report: Report = silent
) -> tuple[NDArray[np.bool_], NDArray[np.float32], Tensors]:
    """Learn from how often each document has each word, (documents, words): the kept words, their idf, the encoder.

    Of many documents, words that only one of them has are dropped: nothing can be learned about them.
    """
    documents = counts.shape[0]
    frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
    kept = frequencies >= (2 if documents >= _MANY_DOCUMENTS and frequencies.max(initial=0) > 1 else 1)
    counts = counts[:, np.flatnonzero(kept)]
    idf = inverse_frequencies(frequencies[kept], documents)
    return kept, idf, quantized(*learn(tf_idf_rows(counts, idf), codes, seed, report))


def learn_closed_form(
    corpus: Corpus,
    bits: int | None = 128,
    dim: int | None = None,
    levels: Sequence[int] | None = None,
    rule: VocabularyRule | None = None,
    sample: int | None = SAMPLE,
    seed: int = 0,
    report: Report = silent,
) -> TextEncoder:
    """Learn a model from a random sample of a corpus, in seconds."""
    codes = choose_levels(bits, dim, levels)
    texts, documents = draw_sample(corpus, sample, seed, report)
    vocabulary, bags = count_bags(texts, rule, report)
    known = int(np.count_nonzero(bags.feature_lengths))
    size = max(map(sum, codes))
    if known < size:
        effect = "the codes tell these documents apart, but learn little about subjects"
        warnings.warn(f"fewer documents ({known}) than bits ({size}): {effect}", stacklevel=3)
    kept, _, tensors = learn_from_counts(bags.matrix(len(vocabulary)), codes, seed, report)
    vocabulary = vocabulary.without_features(~kept)
    kind = "paragraph vectors" if bits is None else "binary paragraph vectors"
    config = _config("closed-form", f"{kind} in closed form", bits, dim or bits, codes[-1], vocabulary, documents)
    return TextEncoder(vocabulary, config, tensors)


def _config(
    solver: str,
    name: str,
    bits: int | None,
    dim: int | None,
    levels: Sequence[int],
    learned: Vocabulary,
    documents: int,
) -> dict[str, Any]:
    """What a model says about itself: its kind, its size, and what it was learned from."""
    counts = {"tokens": learned.tokens, "words": len(learned.words), "bigrams": len(learned.bigrams)}
    training = {"documents": documents, "sampled": learned.documents, **counts}
    size = {"bits": bits, "dim": dim, "levels": list(levels)}
    return {"parabit": __version__, "solver": solver, "name": name, **size, "training": training}


def train_network(
    corpus: Corpus,
    shape: Shape,
    recipe: Recipe,
    rule: VocabularyRule | None = None,
    seed: int = 0,
    device: str = "auto",
    work: Path | None = None,
    resume: bool = True,
    checkpoint_every: float = 60.0,
    identity: Mapping[str, Any] | None = None,
    report: Report = silent,
) -> tuple[TextEncoder, NDArray[np.float32]]:
    """Train one of the paper's networks on all documents of a corpus: the model, and the documents' embeddings.

    `work` is a folder for checkpoints; training continues from the last one there, unless `resume` is False.
    """
    need("torch", "networks", ModelError)
    from parabit.networks.training import Checkpoints, choose_device, train

    choose_device(device)  # a device that is not there is an error before the corpus is read
    if work is not None:
        check_work_folder(work)
    vocabulary, documents = count_bags(corpus, rule, report)
    checkpoints = None
    if work is not None:
        same = {**(identity or {}), "corpus": documents.fingerprint, "vocabulary": vocabulary.fingerprint}
        checkpoints = Checkpoints(work, same, checkpoint_every)
        if not resume:
            checkpoints.forget()
    trained = train(
        documents, vocabulary.counts, shape, recipe, seed=seed, device=device, checkpoints=checkpoints, report=report
    )
    config = _config("network", shape.name, shape.bits, shape.dim, [shape.code], vocabulary, vocabulary.documents)
    config["network"] = {"shape": asdict(shape), "recipe": asdict(recipe), "seed": seed}
    config["training"]["history"] = trained.history
    tensors = {name: tensor.numpy(force=True) for name, tensor in trained.network.tensors.items()}
    return TextEncoder(vocabulary, config, tensors, device), trained.embeddings.numpy(force=True)


def check_work_folder(work: Path) -> None:
    """Raise unless a folder holds checkpoints and nothing else, or does not exist yet."""
    try:
        ours = all(path.name.lstrip(".").startswith(CHECKPOINT) for path in work.iterdir())
    except FileNotFoundError:
        return
    except OSError:
        ours = False
    if not ours:
        raise ParabitError(f"{work} exists and is not a training folder", hint="nothing was changed; use another name")

"""From documents to a learned model, by the closed form or by a network."""

import shutil
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from parabit import __version__
from parabit.corpus import Corpus
from parabit.errors import ModelError, ParabitError, TrainingError, VocabularyError
from parabit.extras import need
from parabit.model.closed_form import default_levels, learn
from parabit.model.encoder import TextEncoder, quantized
from parabit.networks.config import Recipe, Shape
from parabit.progress import Progress, Report, silent
from parabit.ragged import row_offsets
from parabit.text import BatchBags, Vocabulary, VocabularyRule, count_bags
from parabit.text.tfidf import inverse_frequencies, tf_idf_rows

SAMPLE = 50_000  # documents; learning from more changes nothing (FINDINGS in docs/models.md)
LARGEST = 1024  # bits or numbers of the closed form
_SAMPLED_CHARACTERS = 500_000_000  # at most, in all, so that long documents fit in memory
_REPORTED = 10_000  # documents after which reading reports progress
_MANY_DOCUMENTS = 1_000  # from which words of a single document are dropped: they would double the model for nothing


class Sample(NamedTuple):
    """Texts drawn at random, in the order of the corpus."""

    texts: list[str]
    documents: int  # in the corpus


def draw_sample(corpus: Corpus, size: int | None, seed: int = 0, report: Report = silent) -> Sample:
    """Draw documents at random in one pass; every document has the same chance. None takes all of them.

    Fewer are drawn if their texts together would be longer than 500 million characters.

    Example:
        >>> from parabit.corpus import as_corpus
        >>> draw_sample(as_corpus(["first", "second", "third"]), size=2).documents
        3
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
    return Sample([text for _, _, text in sorted(kept, key=lambda entry: entry[1])], number)


def check_size(bits: object, dim: object) -> None:
    """Raise for sizes that the closed form cannot have."""
    for name, value in (("bits", bits), ("dim", dim)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (whole and (8 if name == "bits" else 1) <= value <= LARGEST):  # type: ignore[operator]
            lowest = "8" if name == "bits" else "1"
            raise TrainingError(f"{name} is {value!r}", hint=f"it must be a whole number from {lowest} to {LARGEST:,}")
    if bits is None and dim is None:
        raise TrainingError("neither bits nor dim is given", hint="bits=128 learns codes, dim=128 real-valued vectors")


def check_levels(levels: Sequence[int] | None, size: int) -> tuple[int, ...]:
    """The levels of a code of this size, by rule or as given.

    Example:
        >>> check_levels(None, 64), check_levels([24, 8], 32)
        ((46, 12, 4, 2), (24, 8))
    """
    if levels is None:
        return default_levels(size)
    given = tuple(levels)
    if not all(isinstance(level, int) and level >= 1 for level in given) or sum(given) != size:
        raise TrainingError(
            f"levels {list(given)} for a size of {size}", hint=f"give whole numbers, at least 1, that add up to {size}"
        )
    return given


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
    """Learn a model from a random sample of a corpus, in seconds.

    Example:
        >>> from parabit.corpus import as_corpus
        >>> encoder = learn_closed_form(as_corpus(["hubble telescope", "telescope in orbit", "ice hockey"]), bits=8)
        >>> encoder.bits, encoder.config["levels"]
        (8, [8])
    """
    check_size(bits, dim)
    chosen = check_levels(levels, bits or dim or 0)
    codes = [chosen] if bits is None or dim is None else [default_levels(dim), chosen]
    drawn = draw_sample(corpus, sample, seed, report)
    vocabulary, bags = count_bags(drawn.texts, rule, report)
    vocabulary, counts = _without_single_documents(vocabulary, bags)
    known = int(np.count_nonzero(np.diff(counts.indptr)))
    if known < sum(map(sum, codes)):
        warnings.warn(
            f"{known} documents are few for {sum(map(sum, codes))} bits: the codes tell them apart, "
            "but learn little about their subjects",
            stacklevel=3,
        )
    idf = inverse_frequencies(vocabulary.document_frequencies, vocabulary.documents)
    rows = tf_idf_rows(counts.indices, counts.data, counts.indptr, idf)
    tensors = quantized(learn(rows, codes, seed, report))
    kind = "paragraph vectors" if bits is None else "binary paragraph vectors"
    config = {
        "parabit": __version__,
        "solver": "closed-form",
        "name": f"{kind} in closed form",
        "bits": bits,
        "dim": dim or bits,
        "levels": list(chosen),
        "training": _training(vocabulary, drawn.documents),
    }
    return TextEncoder(vocabulary, config, tensors)


def _without_single_documents(vocabulary: Vocabulary, bags: BatchBags) -> tuple[Vocabulary, csr_array]:
    """The counts of documents by word, and the vocabulary, without words that only one document of many has."""
    offsets = row_offsets(bags.feature_lengths)
    shape = (len(offsets) - 1, len(vocabulary))
    counts = csr_array((bags.counts, bags.features, offsets), shape=shape)
    single = vocabulary.document_frequencies < 2
    if shape[0] < _MANY_DOCUMENTS or single.all() or not single.any():
        return vocabulary, counts
    smaller = vocabulary.without_features(single)
    return smaller, counts[:, np.flatnonzero(~single)]


def _training(vocabulary: Vocabulary, documents: int) -> dict[str, Any]:
    return {
        "documents": documents,
        "sampled": vocabulary.documents,
        "tokens": vocabulary.tokens,
        "words": len(vocabulary.words),
        "bigrams": len(vocabulary.bigrams),
    }


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
) -> tuple[TextEncoder, np.ndarray[Any, np.dtype[np.float32]]]:
    """Train one of the paper's networks on all documents of a corpus: the model, and the documents' embeddings.

    `work` is a folder for checkpoints; training goes on from the last one there, unless `resume` is False.
    """
    need("torch", "networks", ModelError)
    from parabit.networks import Checkpoints, Documents, NetworkEncoder, WordStatistics, choose_device, train

    choose_device(device)  # a device that is not there is an error before the corpus is read
    vocabulary, bags = count_bags(corpus, rule, report)
    documents, statistics = Documents.of_bags(bags), WordStatistics.of(vocabulary)
    checkpoints = None
    if work is not None:
        same = {**(identity or {}), "corpus": documents.fingerprint, "vocabulary": vocabulary.fingerprint}
        checkpoints = Checkpoints(_work_folder(work), same, checkpoint_every)
        if not resume:
            checkpoints.forget()
    trained = train(
        documents, statistics, shape, recipe, seed=seed, device=device, checkpoints=checkpoints, report=report
    )
    config = {
        "parabit": __version__,
        "solver": "network",
        "name": shape.name,
        "bits": shape.bits,
        "dim": shape.dim,
        "levels": [shape.code],
        "network": {"shape": asdict(shape), "recipe": asdict(recipe), "seed": seed},
        "training": {
            **_training(vocabulary, vocabulary.documents),
            "history": [asdict(epoch) for epoch in trained.history],
        },
    }
    tensors = NetworkEncoder(trained.network, statistics, recipe, seed).tensors
    return TextEncoder(vocabulary, config, tensors, device), trained.embeddings.numpy(force=True)


def is_work_folder(folder: Path) -> bool:
    """Whether a folder holds the checkpoints of a training, and nothing else."""
    try:
        return all(path.name.lstrip(".").startswith("checkpoint-") for path in folder.iterdir())
    except OSError:
        return False


def _work_folder(work: Path) -> Path:
    if work.exists() and not is_work_folder(work):
        raise ParabitError(f"{work} exists and is not a training folder", hint="nothing was changed; use another name")
    return work

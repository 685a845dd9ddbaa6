"""From texts to a trained network: bags, training, and a folder for what long training keeps."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from parabit.encoding.work import BAGS, SCRATCH, CountedTexts, Work, work_folder
from parabit.linear_encoder import LinearEncoder
from parabit.networks import (
    Checkpoints,
    Documents,
    Group,
    Trained,
    WordStatistics,
    choose_device,
    distill,
    join_group,
    train,
)
from parabit.networks.config import Recipe, Shape
from parabit.progress import Report, silent
from parabit.storage import array_header
from parabit.text import Bags, Vocabulary, VocabularyRule, build_bags
from parabit.text.build import Documents as Texts

_VOCABULARY = "vocabulary.parquet"


def fit_texts(
    texts: Texts | CountedTexts,
    rule: VocabularyRule | None,
    shape: Shape,
    recipe: Recipe,
    seed: int,
    device: str,
    work: Work | None,
    identity: Mapping[str, Any],
    report: Report,
) -> tuple[Vocabulary, Trained, LinearEncoder | None]:
    """Count the vocabulary of texts, make their bags, train on them, and learn the fast encoder.

    Files that the embeddings are mapped from may be removed afterwards: the mapping keeps them as long as it lasts.

    Where torchrun or Ray has started several workers, the first makes the bags and ends with the whole model. The
    others have the network, and neither embeddings nor a fast encoder.
    """
    choose_device(device)  # what is not there is told before the corpus is read
    group = join_group(device)
    report = report if group.rank == 0 else silent
    with work_folder(work) if group.rank == 0 else nullcontext(Path()) as mine:
        [folder, *_] = group.gathered(mine if group.alone else mine.resolve())
        vocabulary, bags = _read(texts, rule, folder, group, report)
        documents = Documents(bags.features, bags.counts, bags.feature_offsets, bags.tokens, bags.token_offsets)
        checkpoints = None
        if work is not None:
            same = {**identity, "corpus": documents.fingerprint, "vocabulary": vocabulary.fingerprint}
            checkpoints = Checkpoints(folder, same, work.every)
            if not work.resume:
                checkpoints.forget()
                group.wait()
        scratch = folder / SCRATCH / str(group.rank)
        scratch.mkdir(parents=True, exist_ok=True)
        statistics = WordStatistics.of(vocabulary)
        trained = train(documents, statistics, shape, recipe, scratch, seed, device, checkpoints, report, group)
        if not group.alone:
            trained = _gathered(trained, folder / SCRATCH, group)
        fast = None
        if group.rank == 0:
            fast = distill(documents, statistics, trained.network.words, trained.embeddings, seed, report)
        group.wait()  # the folder goes when the first is done
    return vocabulary, trained, fast


def _read(
    texts: Texts | CountedTexts, rule: VocabularyRule | None, folder: Path, group: Group, report: Report
) -> tuple[Vocabulary, Bags]:
    """The vocabulary and the bags of texts, which the first worker makes for all where they are not there yet."""
    if isinstance(texts, CountedTexts):
        vocabulary = Vocabulary.load(texts.vocabulary)
        return vocabulary, Bags.open(texts.bags, vocabulary)
    if group.rank == 0:
        vocabulary, bags = build_bags(texts, folder / BAGS, rule, report=report)
        if not group.alone:
            (folder / SCRATCH).mkdir()
            vocabulary.save(folder / SCRATCH / _VOCABULARY)
        group.wait()
        return vocabulary, bags
    group.wait()
    vocabulary = Vocabulary.load(folder / SCRATCH / _VOCABULARY)
    return vocabulary, Bags.open(folder / BAGS, vocabulary)


def _gathered(trained: Trained, folder: Path, group: Group) -> Trained:
    """The embeddings of all workers for the first of them, in a file: they may be more than memory holds.

    Each writes its own at their place; plain writes, as a full disk is then an error that can be told.
    """
    own = np.ascontiguousarray(trained.embeddings.numpy(force=True), dtype=np.float32)
    counts, path = group.gathered(len(own)), folder / "embeddings.npy"
    header = array_header(own.dtype, (sum(counts), *own.shape[1:]))
    if group.rank == 0:
        path.write_bytes(header)
    group.wait()
    with path.open("r+b") as file:
        file.seek(len(header) + sum(counts[: group.rank]) * own.strides[0])
        file.write(own.data)
    group.wait()
    if group.rank:
        return replace(trained, embeddings=trained.embeddings[:0])
    return replace(trained, embeddings=torch.from_numpy(np.load(path, mmap_mode="r+")))

"""From texts to a trained network: bags, training, and a folder for what long training keeps."""

from collections.abc import Mapping
from typing import Any

from parabit.encoding.exact import statistics_of
from parabit.encoding.work import BAGS, SCRATCH, Work, work_folder
from parabit.linear_encoder import LinearEncoder
from parabit.progress import Report
from parabit.recipe import Recipe
from parabit.shape import Shape
from parabit.text import Vocabulary, VocabularyRule, build_bags
from parabit.text.build import Documents as Texts
from parabit.training import Checkpoints, Documents, Trained, choose_device, distill, train


def fit_texts(
    texts: Texts,
    rule: VocabularyRule,
    shape: Shape,
    recipe: Recipe,
    seed: int,
    device: str,
    work: Work | None,
    identity: Mapping[str, Any],
    report: Report,
) -> tuple[Vocabulary, Trained, LinearEncoder]:
    """Count the vocabulary of texts, make their bags, train on them, and learn the fast encoder.

    Files that the embeddings are mapped from may be removed afterwards: the mapping keeps them as long as it lasts.
    """
    choose_device(device)  # what is not there is told before the corpus is read
    with work_folder(work) as folder:
        vocabulary, bags = build_bags(texts, folder / BAGS, rule, report=report)
        documents = Documents(bags.features, bags.counts, bags.feature_offsets, bags.tokens, bags.token_offsets)
        checkpoints = None
        if work is not None:
            same = {**identity, "corpus": documents.fingerprint, "vocabulary": vocabulary.fingerprint}
            checkpoints = Checkpoints(folder, same, work.every)
            if not work.resume:
                checkpoints.forget()
        scratch = folder / SCRATCH
        scratch.mkdir()
        statistics = statistics_of(vocabulary)
        trained = train(documents, statistics, shape, recipe, scratch, seed, device, checkpoints, report)
        fast = distill(documents, statistics, trained.network.words, trained.embeddings, seed, report)
    return vocabulary, trained, fast

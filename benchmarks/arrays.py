"""Corpora as compressed arrays, so that benchmarks run where there is torch, numpy and scipy alone, on a GPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.training import Documents, WordStatistics


class Labelled(NamedTuple):
    """Documents with the number of each one's first label."""

    documents: Documents
    labels: NDArray[np.int64]


def write_arrays(
    path: Path,
    corpora: Sequence[str],
    pattern: str = "[a-z]+",
    bigrams: bool = False,
    min_count: int = 1,
    order: bool = True,
) -> None:
    """Write corpora, all with the vocabulary of the first; needs the whole of parabit.

    `order` keeps the order of the words, which distributed memory reads.
    """
    import tempfile

    from parabit import Tokenizer, VocabularyRule, build_bags, open_corpus, write_bags

    with tempfile.TemporaryDirectory() as folder:
        rule = VocabularyRule(Tokenizer(pattern="[a-z]+"), bigrams=bigrams, min_count=min_count)
        vocabulary, first = build_bags(open_corpus(corpora[0]), Path(folder, "0"), rule)
        others = [
            write_bags(open_corpus(name), vocabulary, Path(folder, name.replace("/", "-"))) for name in corpora[1:]
        ]
        arrays: dict[str, Any] = {
            "counts": vocabulary.counts,
            "document_frequencies": vocabulary.document_frequencies,
            "documents": vocabulary.documents,
        }
        for number, (name, bags) in enumerate(zip(corpora, [first, *others], strict=True)):
            labels = [document.labels[0] if document.labels else "" for document in open_corpus(name)]
            arrays |= {
                # Ascending within a document: the steps between features are small, and compress well.
                f"{number}.steps": np.diff(np.asarray(bags.features), prepend=0).astype(np.int32),
                f"{number}.counts": np.minimum(bags.counts, np.iinfo(np.uint16).max).astype(np.uint16),
                f"{number}.lengths": np.diff(bags.feature_offsets).astype(np.int32),
                f"{number}.labels": np.unique(labels, return_inverse=True)[1].astype(np.int32),
            }
            if order:
                arrays[f"{number}.tokens"] = np.asarray(bags.tokens)
                arrays[f"{number}.token_lengths"] = np.diff(bags.token_offsets).astype(np.int32)
    np.savez_compressed(path, **arrays)


def read_arrays(path: Path) -> tuple[WordStatistics, list[Labelled]]:
    """What was written: how frequent words are, and the corpora."""
    with np.load(path) as file:
        arrays = dict(file)
    statistics = WordStatistics(arrays["counts"], arrays["document_frequencies"], int(arrays["documents"]))
    corpora = []
    while f"{len(corpora)}.steps" in arrays:
        part = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{len(corpora)}.")}
        features = np.cumsum(part["steps"], dtype=np.int64).astype(np.int32)
        offsets, counts = _offsets(part["lengths"]), part["counts"].astype(np.int32)
        documents = Documents.of_counts(features, counts, offsets)
        if "tokens" in part:
            documents = Documents(features, counts, offsets, part["tokens"], _offsets(part["token_lengths"]))
        corpora.append(Labelled(documents, part["labels"].astype(np.int64)))
    return statistics, corpora


def _offsets(lengths: NDArray[np.int32]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])

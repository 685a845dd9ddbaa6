"""The collections of the paper, what stands in for those that are not here, and both as arrays."""

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.corpus import Document, open_corpus
from parabit.corpus.document import CommonLabels
from parabit.errors import EvaluationError
from parabit.evaluation.relevance import relevance_of
from parabit.progress import Report, silent
from parabit.storage import whole_file
from parabit.text.bags import Bags, row_offsets

# What the paper shows and claims, and what the report shows beside it.
PAPER: dict[str, Any] = tomllib.loads((files("parabit.paper") / "paper.toml").read_text("utf-8"))
COLLECTIONS = _NEWSGROUPS, _RCV1, _WIKIPEDIA = "20 Newsgroups", "RCV1", "English Wikipedia"


@dataclass(frozen=True)
class PaperCorpus:
    """A collection that the experiments run on."""

    name: str  # of the data set
    title: str
    collection: str  # of the paper
    min_count: int  # of words and bigrams
    most_trained: int | None = None  # documents, of more a random part
    most_tested: int | None = None
    stand_in: bool = False
    headers: bool = False  # kept; only some experiments are run with them

    @property
    def heading(self) -> str:
        """The title, and what it stands in for."""
        return f"{self.title} (stands in for {self.collection})" if self.stand_in else self.title

    @property
    def wikipedia(self) -> bool:
        """Whether models that are trained on it are tested on other collections."""
        return self.collection == _WIKIPEDIA


def paper_corpora(present: Iterable[str]) -> list[PaperCorpus]:
    """The paper's collections if they are present, otherwise what stands in for them.

    The paper's vocabulary of "slightly over one million" is that of posts with their headers, so both ways are run.
    """
    present = set(present)
    chosen = [
        PaperCorpus("20newsgroups", _NEWSGROUPS, _NEWSGROUPS, 1),
        PaperCorpus(
            "20newsgroups-raw", "20 Newsgroups, headers kept", _NEWSGROUPS, 1, headers=True
        ),
    ]
    if "rcv1" in present:
        chosen.append(PaperCorpus("rcv1", _RCV1, _RCV1, 10, most_tested=10_000))
    else:
        chosen.append(PaperCorpus("reuters21578", "Reuters-21578", _RCV1, 2, stand_in=True))
        if "arxiv" in present:
            chosen.append(
                PaperCorpus("arxiv", "arXiv sample", _RCV1, 5, 20_000, 5_000, stand_in=True)
            )
    if "wikipedia" in present:
        chosen.append(PaperCorpus("wikipedia", _WIKIPEDIA, _WIKIPEDIA, 100, most_tested=10_000))
    elif "enwiki" in present:
        chosen.append(PaperCorpus("enwiki", "Wikipedia sample", _WIKIPEDIA, 5, stand_in=True))
    return chosen


class Part(NamedTuple):
    """Documents with the numbers of their labels."""

    documents: Bags
    labels: list[tuple[int, ...]]


class Prepared(NamedTuple):
    """A collection as arrays, all with the vocabulary of its training documents."""

    counts: NDArray[np.int64]  # (vocabulary,) how often each word occurs in the training documents
    training: Part
    tests: dict[str, Part]  # its own test documents under its name, and those of other collections
    facts: dict[str, Any]


def prepare(
    path: Path,
    corpus: PaperCorpus,
    bigrams: bool,
    others: Sequence[PaperCorpus] = (),
    report: Report = silent,
) -> None:
    """Write a collection to a file: training and test documents, and the test documents of others."""
    from parabit.text import Tokenizer, VocabularyRule, count_bags, make_bags

    numbers: dict[str, int] = {}  # of labels
    trained = sample_documents(
        open_corpus(f"{corpus.name}/train", report=report), corpus.most_trained
    )
    rule = VocabularyRule(Tokenizer.paper(), bigrams=bigrams, min_count=corpus.min_count)
    vocabulary, bags = count_bags(trained, rule, report)
    arrays = _as_arrays("training", bags, trained, numbers, order=not bigrams)
    sizes = {
        "training_documents": len(bags),
        "words": len(vocabulary.words),
        "features": len(vocabulary),
    }
    tests, digest = {}, blake2b(digest_size=16)
    for number, tested in enumerate([corpus, *others]):
        labelled = labelled_documents(tested, report)
        bags = make_bags([document.text for document in labelled], vocabulary)
        arrays |= _as_arrays(f"test{number}", bags, labelled, numbers, order=not bigrams)
        tests[tested.name] = {"documents": len(labelled), "relevance": relevance_of(tested.name)}
        for array in (
            arrays.values() if tested is corpus else ()
        ):  # other collections may come and go
            digest.update(np.ascontiguousarray(array).data)
    facts = {**sizes, "tests": tests, "fingerprint": digest.hexdigest(), "labels": list(numbers)}
    arrays |= {"counts": vocabulary.counts, "facts": np.array(json.dumps(facts))}
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type] # its types take the names for its own options


def labelled_documents(corpus: PaperCorpus, report: Report = silent) -> list[Document]:
    """The test documents of a collection that have labels, or a random part of them, always the same."""
    documents = CommonLabels(open_corpus(f"{corpus.name}/test", report=report), least=1)
    labelled = list(sample_documents(documents, corpus.most_tested))
    if not labelled:
        raise EvaluationError(
            f"no test document of {corpus.name} has a label", hint="labels say what is found"
        )
    return labelled


def read_prepared(path: Path) -> Prepared:
    """The arrays that were written."""
    with np.load(path) as file:
        arrays = dict(file)
    facts = json.loads(str(arrays["facts"]))
    tests = {name: _part(arrays, f"test{number}") for number, name in enumerate(facts["tests"])}
    return Prepared(arrays["counts"], _part(arrays, "training"), tests, facts)


def sample_documents(documents: Iterable[Document], most: int | None) -> Iterable[Document]:
    """All documents, or a random part of so many, always the same, in their order."""
    if most is None or (count := sum(1 for _ in documents)) <= most:
        return documents
    chosen = set(np.random.default_rng(0).choice(count, most, replace=False).tolist())
    return [document for place, document in enumerate(documents) if place in chosen]


def _as_arrays(
    name: str, bags: Bags, documents: Iterable[Document], numbers: dict[str, int], order: bool
) -> dict[str, NDArray[Any]]:
    labels = [
        [numbers.setdefault(label, len(numbers)) for label in dict.fromkeys(one.labels)]
        for one in documents
    ]
    arrays: dict[str, NDArray[Any]] = {
        # Ascending within a document: the steps between features are small, and compress well.
        f"{name}.steps": np.diff(bags.features, prepend=0).astype(np.int32),
        f"{name}.counts": np.minimum(bags.counts, np.iinfo(np.uint16).max).astype(np.uint16),
        f"{name}.lengths": bags.feature_lengths.astype(np.int32),
        f"{name}.labels": np.array([number for row in labels for number in row], dtype=np.int32),
        f"{name}.label_lengths": np.array([len(row) for row in labels], dtype=np.int32),
    }
    if order:
        arrays[f"{name}.tokens"] = bags.tokens
        arrays[f"{name}.token_lengths"] = np.diff(bags.token_offsets).astype(np.int32)
    return arrays


def _part(arrays: dict[str, NDArray[Any]], name: str) -> Part:
    part = {
        key.partition(".")[2]: array for key, array in arrays.items() if key.startswith(f"{name}.")
    }
    features = np.cumsum(part["steps"], dtype=np.int64).astype(np.int32)
    documents = Bags.of_counts(
        features, part["counts"].astype(np.int32), row_offsets(part["lengths"])
    )
    if "tokens" in part:
        documents = replace(
            documents, tokens=part["tokens"], token_offsets=row_offsets(part["token_lengths"])
        )
    numbers, bounds = part["labels"].tolist(), row_offsets(part["label_lengths"]).tolist()
    labels = [tuple(numbers[start:end]) for start, end in pairwise(bounds)]
    return Part(documents, labels)

"""A learned model: what it needs to encode texts, without scikit-learn and, unless it is a network, without torch.

It is kept as a folder: config.json, model.safetensors, vocabulary.safetensors and a card.
"""

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from parabit import __version__
from parabit.codes import pack
from parabit.corpus import Corpus, Document, Texts, as_corpus
from parabit.errors import ModelError, VocabularyError, folder_like, need
from parabit.model.config import FORMAT, MOST_BYTES, check_config, is_newer
from parabit.networks.config import Recipe, Shape
from parabit.parallel import ordered_map
from parabit.progress import Progress, Report, silent
from parabit.storage import folder_to_read, whole_folder
from parabit.text import Bags, Vocabulary, make_bags
from parabit.text.bags import FEW, NewerVocabularyError, inverse_frequencies, tf_idf_weights
from parabit.untrusted import (
    TensorForms,
    UnexpectedError,
    need_regular,
    need_short_header,
    read_object,
    tensor_forms,
)

CONFIG, TENSORS, VOCABULARY, CARD = (
    "config.json",
    "model.safetensors",
    "vocabulary.safetensors",
    "README.md",
)
_NAMES = {CONFIG, TENSORS, VOCABULARY, CARD}
_MOST_HEADER = 1 << 20  # bytes of the tensors' header; a few hundred are usual
# Of weights: far above what learning gives, and sums of a million squares still fit a float32.
_LARGEST_NUMBER = 1e9
_AGAIN = "train the model again, or restore it from a copy"
AT_ONCE = 2048  # documents, so that progress is shown about every second
_WHOLE = 1 << 23  # times 127, the largest number of a word, it fits 32 bits

Tensors = dict[str, NDArray[Any]]


class Inferred(NamedTuple):
    """What a model says about documents."""

    codes: NDArray[np.uint8] | None  # (documents, bytes) packed bits; None from a real-valued model
    activations: (
        NDArray[np.float32] | None
    )  # (documents, bits) what is rounded to bits: how sure each one is
    vectors: NDArray[np.float32]  # (documents, dim)
    known: NDArray[
        np.bool_
    ]  # (documents,) whether the model knows any of the words; codes are zeros if not


InferredBatches = Generator[
    tuple[list[Document], Inferred], None, None
]  # some documents of a corpus at a time


class TextEncoder:
    """A learned model: a vocabulary, and what turns bags of words into codes and vectors.

    A code depends on the text and the model alone: it is the same for a text alone and in any batch.

    Example:
        >>> from parabit import ParagraphVectors
        >>> texts = ["telescope in orbit", "the telescope of Hubble", "hockey on ice", "ice hockey goalies"]
        >>> encoder = ParagraphVectors(bits=16).fit(texts * 5).encoder_
        >>> encoder.infer(["a telescope", "hockey"]).codes.shape
        (2, 2)
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        config: Mapping[str, Any],
        tensors: Tensors,
        device: str = "auto",
    ):
        self.vocabulary = vocabulary
        self.config = dict(config)  # how it was learned; some of it decides the codes
        self.tensors = tensors
        self.device = device
        self.bits: int | None = config["bits"]  # per code; None for a real-valued model
        self.dim: int = config["dim"]  # numbers per vector
        self.solver: str = config["solver"]  # closed-form or network
        self.name: str = config["name"]  # what kind of model this is, in words

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes: without what is made of the tensors on first use."""
        return TextEncoder, (self.vocabulary, self.config, self.tensors, self.device)

    @property
    def size(self) -> str:
        """The size of a code or vector, in words."""
        return f"{self.dim} numbers" if self.bits is None else f"{self.bits} bits"

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that decides the codes; two models with the same one give the same codes."""
        parts = {name: self.config.get(name) for name in ("solver", "bits", "dim", "network")}
        digest = sha256(json.dumps([parts, self.vocabulary.fingerprint], sort_keys=True).encode())
        for name, tensor in sorted(self.tensors.items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(tensor).data)
        return digest.hexdigest()

    @cached_property
    def infer_bags(self) -> Callable[[Bags], Inferred]:
        """The function from bags of words to codes and vectors."""
        if self.solver == "closed-form":
            idf = inverse_frequencies(
                self.vocabulary.document_frequencies, self.vocabulary.documents
            )
            return LinearEncoder(idf, self.tensors, self.bits, self.dim)
        need("torch", "networks", ModelError)
        return _network_encoder(self)

    def infer(self, texts: Texts, report: Report = silent) -> Inferred:
        """The codes and vectors of texts; a text without a known word gets zeros."""
        if (
            isinstance(texts, list)
            and len(texts) <= FEW
            and all(isinstance(text, str) for text in texts)
        ):
            return self.infer_bags(
                make_bags(texts, self.vocabulary)
            )  # the fastest way, for queries
        parts = [inferred for _, inferred in self.infer_each(as_corpus(texts), report)] or [
            self.infer([])
        ]
        joint: Any = (
            None if column[0] is None else np.concatenate(column)
            for column in zip(*parts, strict=True)
        )
        return Inferred(*joint)

    def infer_each(self, corpus: Corpus, report: Report = silent) -> InferredBatches:
        """The same, batch by batch and with the documents: a corpus of any size is encoded in constant memory."""

        def bags_of(documents: list[Document]) -> Bags:
            return make_bags([document.text for document in documents], self.vocabulary)

        encode, done = self.infer_bags, 0
        with closing(corpus.batches(documents=AT_ONCE)) as batches:
            if self.solver == "closed-form":
                parts: Iterator[Any] = ordered_map(
                    lambda batch: (batch, encode(bags_of(batch))), batches
                )
            else:  # torch has threads of its own; only the next batch's text is read meanwhile
                bags = ordered_map(lambda batch: (batch, bags_of(batch)), batches, threads=1)
                parts = ((batch, encode(of_batch)) for batch, of_batch in bags)
            for part in parts:
                yield part
                done += len(part[0])
                report(Progress("encoding", done, "documents", corpus.share_read))

    def word_shares(self, text: str) -> dict[str, float]:
        """How much each known word or bigram of a text moved its code, the most first; the shares add up to 1.

        The activations of the closed form are a sum over words. A word's share is the part of that sum that points
        where the whole points, so it is negative for a word that pulls the other way. The activations of a network are
        no such sum, and there are no shares.
        """
        encode = self.infer_bags
        if not isinstance(encode, LinearEncoder):
            return {}
        bags = make_bags([text], self.vocabulary)
        parts = encode.parts(bags)  # (words, columns)
        whole = parts.sum(axis=0)
        shares = parts @ whole / max(float(whole @ whole), 1e-30)
        names = [self.vocabulary.name(feature) for feature in bags.features.tolist()]
        order = np.argsort(-shares, kind="stable").tolist()
        return {names[place]: round(float(shares[place]), 4) for place in order}

    def coverage(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The share of each text's words that the model knows; 0 if it knows none, and the code means nothing."""
        ids, lengths = self.vocabulary.ids_of(texts)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        return np.bincount(rows, ids >= 0, len(lengths)) / np.maximum(lengths, 1)


class LinearEncoder:
    """The closed form's encoder: the activations of a TF-IDF row are one sparse product.

    Each word has a row of 8-bit numbers and a scale. A document's weights are rounded to whole numbers as well, so that
    sums are exact: a code is the same alone and in any batch, on any machine and any number of threads.
    """

    def __init__(
        self, idf: NDArray[np.float32], tensors: Tensors, bits: int | None, dim: int
    ) -> None:
        self._weights, self._scales, self._offset = (
            tensors["weights"],
            tensors["scales"],
            tensors["offset"],
        )
        self._idf, self._bits, self._dim = idf, bits, dim

    def __call__(self, bags: Bags) -> Inferred:
        known, weights = bags.feature_lengths > 0, self._weigh(bags)
        totals = np.maximum(np.bincount(bags.rows, weights, len(bags)), 1e-30)
        whole = np.rint(weights * (_WHOLE / totals)[bags.rows]).astype(
            np.int32
        )  # of a document they add up to _WHOLE
        sums = self._product(whole, bags)  # (documents, columns)
        activations = (sums * (totals / _WHOLE)[:, None] + self._offset).astype(np.float32)
        activations[~known] = 0
        if self._bits is None:
            return Inferred(None, None, activations, known)
        # The columns of a vector, if there is one beside the code, come first.
        own = activations[:, -self._bits :]
        return Inferred(pack(own > 0), own, activations[:, : self._dim], known)

    def parts(self, bags: Bags) -> NDArray[np.float32]:
        """What each word of a single document adds to its activations: (words, columns)."""
        parts: NDArray[np.float32] = (
            self._weigh(bags)[:, None].astype(np.float32) * self._weights[bags.features]
        )
        return parts if self._bits is None else parts[:, -self._bits :]

    def _weigh(self, bags: Bags) -> NDArray[np.float32]:
        return tf_idf_weights(bags, self._idf) * self._scales[bags.features]

    def _product(self, whole: NDArray[np.int32], bags: Bags) -> NDArray[np.int32]:
        if len(bags) > FEW:
            return np.asarray(
                replace(bags, counts=whole).matrix(len(self._weights)) @ self._integers
            )
        sums = np.zeros((len(bags), self._weights.shape[1]), dtype=np.int32)
        for number, own in enumerate(
            map(slice, bags.feature_offsets[:-1], bags.feature_offsets[1:])
        ):
            sums[number] = whole[own] @ self._weights[bags.features[own]].astype(np.int32)
        return sums

    @cached_property
    def _integers(self) -> NDArray[np.int32]:
        return self._weights.astype(np.int32)


def quantized(matrix: NDArray[np.float32], offset: NDArray[np.float32]) -> Tensors:
    """A learned encoder as it is kept: 8 bits per number, and one scale per word."""
    scales = np.maximum(np.abs(matrix).max(axis=1, initial=0), 1e-12) / 127
    weights = np.rint(matrix / scales[:, None]).astype(np.int8)
    return {"weights": weights, "scales": scales.astype(np.float32), "offset": offset}


def config_of(
    solver: str, name: str, sizes: dict[str, Any], learned: Vocabulary, documents: int
) -> dict[str, Any]:
    """What a model says about itself: its kind, its size, and what it was learned from."""
    counts = {
        "tokens": learned.tokens,
        "words": len(learned.words),
        "bigrams": len(learned.bigrams),
    }
    training = {"documents": documents, "sampled": learned.documents, **counts}
    return {"parabit": __version__, "solver": solver, "name": name, **sizes, "training": training}


def _network_encoder(encoder: TextEncoder) -> Callable[[Bags], Inferred]:
    """The paper's gradient inference."""
    from parabit.networks.network import Network
    from parabit.networks.training import NetworkEncoder, choose_device

    network = encoder.config["network"]
    shape, recipe = Shape(**network["shape"]), Recipe(**network["recipe"])
    restored = Network.of_arrays(encoder.tensors, shape, recipe, choose_device(encoder.device))
    inference = NetworkEncoder(restored, encoder.vocabulary.counts, recipe, network["seed"])

    def infer(bags: Bags) -> Inferred:
        vectors, known = inference.embed(bags), bags.feature_lengths > 0
        if encoder.bits is None:
            return Inferred(None, None, vectors, known)
        activations = inference.activations(vectors)
        return Inferred(pack(activations > 0), activations, vectors, known)

    return infer


def save_model(
    encoder: TextEncoder, folder: Path, overwrite: bool = False, *, locked: bool = True
) -> None:
    """Write a model folder, complete or not at all.

    Parameters:
        encoder: The model.
        folder: Where it is written.
        overwrite: Whether an old model in this folder is replaced; nothing else ever is.
        locked: False for a model that is a part of an index, whose lock the caller holds.

    Raises:
        ModelError: if it could not be read again.
    """
    config = {"format": FORMAT, **encoder.config, "vocabulary": encoder.vocabulary.fingerprint}
    content = json.dumps(config, indent=2) + "\n"
    try:
        check_config(json.loads(content))
    except UnexpectedError as problem:  # what is written can be read
        raise ModelError(f"this model cannot be saved: {problem}") from problem
    if len(content) > MOST_BYTES:
        raise ModelError(
            f"the parameters of this model take {len(content):,} bytes, too many to be saved",
            hint="it has very many stop words; use fewer",
        )
    with whole_folder(folder, is_model if overwrite else None, locked=locked) as partial:
        (partial / CONFIG).write_text(content)
        # Not save_file, which ignores the umask: nobody else could read its file.
        (partial / TENSORS).write_bytes(
            save({name: np.ascontiguousarray(t) for name, t in encoder.tensors.items()})
        )
        (partial / VOCABULARY).write_bytes(encoder.vocabulary.to_bytes())
        (partial / CARD).write_text(_card(encoder))


def load_model(folder: Path, device: str = "auto") -> TextEncoder:
    """Read a model folder; anything wrong with it is a ModelError.

    The model may be a stranger's. So links are not followed, config.json is checked by rules, the
    types and shapes of arrays are compared with it before they are read, and numbers are checked
    that others are found by.

    Parameters:
        folder: What `save_model` wrote.
        device: Where a network calculates.
    """
    folder = folder_to_read(folder, is_model)
    config = _read_config(folder)
    training = config["training"]
    possible_forms = _possible_forms(config, training["words"] + training["bigrams"])
    with _explained(folder / TENSORS):
        need_regular(folder / TENSORS)
        need_short_header(folder / TENSORS, _MOST_HEADER)
        with safe_open(folder / TENSORS, framework="numpy") as file:
            if tensor_forms(file) not in possible_forms:
                raise ModelError(f"the files in {folder} are not those of one model", hint=_AGAIN)
            tensors = {name: file.get_tensor(name) for name in possible_forms[0]}
        _check_numbers(tensors, config["solver"])
    with _explained(folder / VOCABULARY):
        need_regular(folder / VOCABULARY)
        vocabulary = Vocabulary.load(folder / VOCABULARY)
    fingerprint = config.pop("vocabulary")
    sizes = (len(vocabulary.words), len(vocabulary.bigrams))
    has_sizes = sizes == (training["words"], training["bigrams"])
    if not has_sizes or vocabulary.fingerprint != fingerprint:
        raise ModelError(f"the files in {folder} are not those of one model", hint=_AGAIN)
    if config["solver"] == "network":
        with _explained(folder / CONFIG):
            least = config["network"]["recipe"]["min_occurrences"]
            if vocabulary.counts.max(initial=0) < least:
                raise UnexpectedError(f"no word occurs {least:,} times, as network.recipe asks")
    return TextEncoder(vocabulary, config, tensors, device)


def _read_config(folder: Path) -> dict[str, Any]:
    """The checked config.json of a model, without its format."""
    path = folder / CONFIG
    if not os.path.lexists(path):
        models_inside = sorted(folder.glob(f"model-*/{CONFIG}"))
        if models_inside:
            raise ModelError(
                f"{folder} is an index, not a model",
                hint=f"its model is {models_inside[0].parent}",
            )
        hint = folder_like(folder) or "make one with `parabit train CORPUS -o FOLDER`"
        raise ModelError(f"no model in {folder}", hint)
    with _explained(path):
        config = read_object(path, MOST_BYTES)
        if is_newer(config):
            raise ModelError(
                f"{folder} was made by a newer version of parabit", hint="upgrade parabit"
            )
        check_config(config)
    del config["format"]
    return config


def _possible_forms(config: Mapping[str, Any], features: int) -> list[TensorForms]:
    """The types and shapes that the tensors of a model may have, all with the same names."""
    if config["solver"] == "network":
        tensors = Shape(**config["network"]["shape"]).tensors(features)
        return [{name: ("F32", shape) for name, shape in tensors.items()}]
    bits, dim = config["bits"], config["dim"]
    widths = [dim] if bits is None else [dim + bits]
    if bits == dim:  # a vector beside the code has columns of its own, but may not be there
        widths.append(dim)
    return [
        {
            "weights": ("I8", (features, width)),
            "scales": ("F32", (features,)),
            "offset": ("F32", (width,)),
        }
        for width in widths
    ]


def _check_numbers(tensors: Tensors, solver: str) -> None:
    """Raise unless numbers are finite, and no larger than sums can hold."""
    for name, tensor in tensors.items():
        if tensor.dtype != np.float32 or not tensor.size:
            continue
        low, high = float(tensor.min()), float(tensor.max())  # both are NaN if any number is
        least = 0.0 if name == "scales" and solver == "closed-form" else -_LARGEST_NUMBER
        if not (least <= low and high <= _LARGEST_NUMBER):
            raise UnexpectedError(
                f"{name} has numbers from {low:g} to {high:g}, not {least:g} to {_LARGEST_NUMBER:g}"
            )


def is_model(folder: Path) -> bool:
    """Whether a folder holds a model and nothing else, so that nobody's files are lost with it.

    Only files count, under the names of a model's: no folders, no links.
    """
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name not in _NAMES or not entry.is_file(follow_symlinks=False):
                    return False
        config = read_object(folder / CONFIG, MOST_BYTES)
    except (OSError, UnexpectedError):
        return False
    return {"format", "parabit", "solver"} <= config.keys()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a file of a model is a ModelError."""
    try:
        yield
    except ModelError:
        raise
    except NewerVocabularyError as problem:
        raise ModelError(problem.problem, problem.hint) from problem
    except PermissionError as problem:
        raise ModelError(
            f"{path} may not be read", hint="ask its owner for permission"
        ) from problem
    except UnexpectedError as problem:
        raise ModelError(f"{path} is damaged: {problem}", hint=_AGAIN) from problem
    except VocabularyError as problem:
        raise ModelError(f"{path} is damaged: {problem.problem}", _AGAIN) from problem
    except (OSError, SafetensorError, ValueError) as problem:
        raise ModelError(f"{path} is damaged or missing", hint=_AGAIN) from problem


def _card(encoder: TextEncoder) -> str:
    """What a model is and what it was learned from, in Markdown; without a date, so that training can be reproduced."""
    config, training = encoder.config, encoder.config["training"]
    lines = [
        f"# {encoder.name[0].upper()}{encoder.name[1:]}, {encoder.size} per document",
        "",
        f"Learned by parabit {config['parabit']}. Load it with `parabit.ParagraphVectors.load(folder)`.",
        "",
        "| | |",
        "| --- | --- |",
        f"| solver | {encoder.solver} |",
        f"| documents | {training['documents']:,}, learned from {training['sampled']:,} |",
        f"| words of text | {training['tokens']:,} |",
        f"| vocabulary | {training['words']:,} words, {training['bigrams']:,} bigrams |",
        f"| levels of the code | {' + '.join(map(str, config['levels']))} |",
        "",
        "`config.json` has every parameter, `vocabulary.safetensors` the words, `model.safetensors` the weights.",
    ]
    if history := training.get("history"):
        lines += ["", "## Loss per word", "", "| epoch | loss |", "| --- | --- |"]
        lines += [
            f"| {number} | {epoch['loss']:.4f} |" for number, epoch in enumerate(history, start=1)
        ]
    return "\n".join(lines) + "\n"

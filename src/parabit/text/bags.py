"""Bags: a corpus as integer arrays on disk, in the order of the text and as counts a document."""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.errors import BagsError
from parabit.storage import ArrayWriter, plain_disk_errors
from parabit.text.counting import pair_keys, run_lengths
from parabit.text.tokenizer import Tokens
from parabit.text.vocabulary import Vocabulary

FORMAT = 1
_MANIFEST = "manifest.json"
_IDS = "ids.parquet"
_IDS_AT_ONCE = 100_000
_ARRAYS = {
    "tokens": np.int32,
    "token_offsets": np.int64,
    "features": np.int32,
    "counts": np.int32,
    "feature_offsets": np.int64,
}


class BatchBags(NamedTuple):
    """The bags of some documents, in memory."""

    tokens: NDArray[np.int32]  # (known tokens,) word ids in the order of the text, all documents one after the other
    token_lengths: NDArray[np.int64]  # (documents,) known tokens
    features: NDArray[np.int32]  # (entries,) distinct words and bigrams a document, ascending
    counts: NDArray[np.int32]  # (entries,) how often
    feature_lengths: NDArray[np.int64]  # (documents,) entries


def batch_bags(tokens: Tokens, vocabulary: Vocabulary) -> BatchBags:
    """Turn the tokens of some documents into bags; unknown words are left out.

    Example:
        >>> from parabit.text import build_vocabulary
        >>> vocabulary = build_vocabulary(["hubble space hubble", "space shuttle"])
        >>> bags = batch_bags(vocabulary.tokenizer.tokenize(["space hubble space probe"]), vocabulary)
        >>> vocabulary.words.gather(bags.features).to_list(), bags.counts.tolist()
        (['hubble', 'space'], [1, 2])
    """
    ids, lengths = vocabulary.word_ids(tokens.words)[tokens.codes], tokens.lengths
    size, documents = len(vocabulary), len(lengths)
    document = np.repeat(np.arange(documents), lengths)  # (tokens,)
    known = ids >= 0
    known_ids, of_document = (ids, document) if known.all() else (ids[known], document[known])
    # One number for document and feature, so that one sort of plain integers counts both.
    keys = [of_document * size + known_ids]
    if len(vocabulary.bigrams):
        pairs, starts = pair_keys(ids, lengths, len(vocabulary.words))
        bigrams = vocabulary.bigram_ids(pairs)
        keys.append((document[:-1][starts] * size + bigrams)[bigrams >= 0])
    entries, counts = run_lengths(np.sort(np.concatenate(keys)))
    firsts = np.arange(documents + 1) * size  # the number of each document's feature 0
    feature_lengths = np.diff(np.searchsorted(entries, firsts))
    return BatchBags(
        tokens=known_ids,
        token_lengths=np.bincount(of_document, minlength=documents),
        features=(entries - np.repeat(firsts[:-1], feature_lengths)).astype(np.int32),
        counts=counts.astype(np.int32),
        feature_lengths=feature_lengths,
    )


def bags_of_few(texts: Sequence[str], vocabulary: Vocabulary) -> BatchBags:
    """The same bags of a few texts, such as queries: no data frame, 50 times faster for one text.

    Example:
        >>> from parabit.text import build_vocabulary
        >>> vocabulary = build_vocabulary(["hubble space hubble", "space shuttle"])
        >>> bags_of_few(["space hubble space probe"], vocabulary).counts.tolist()
        [1, 2]
    """
    numbers, tokenizer = vocabulary.numbers, vocabulary.tokenizer
    tokens, lengths, features, counts, sizes = [], [], [], [], []
    for text in texts:
        ids = [numbers.get(word, -1) for word in tokenizer.words(text)]
        known = [number for number in ids if number >= 0]
        tally = Counter(known)
        if len(vocabulary.bigrams):
            pairs, _ = pair_keys(np.array(ids, np.int32), np.array([len(ids)]), len(vocabulary.words))
            tally.update(number for number in vocabulary.bigram_ids(pairs).tolist() if number >= 0)
        own = sorted(tally)
        tokens += known
        features += own
        counts += [tally[feature] for feature in own]
        lengths.append(len(known))
        sizes.append(len(own))
    return BatchBags(
        np.array(tokens, np.int32),
        np.array(lengths, np.int64),
        np.array(features, np.int32),
        np.array(counts, np.int32),
        np.array(sizes, np.int64),
    )


class Bags:
    """A corpus as memory-mapped integer arrays; opened in an instant whatever its size.

    `tokens[token_offsets[i]:token_offsets[i + 1]]` are the word ids of document i in the order of its text;
    `features` and `counts` between `feature_offsets[i]` and `feature_offsets[i + 1]` are its distinct words and
    bigrams, ascending, and how often each occurs.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.folder = folder
        self.vocabulary_fingerprint: str = manifest["vocabulary"]
        self.vocabulary_size: int = manifest["features"]
        self.tokens: NDArray[np.int32] = arrays["tokens"]
        self.token_offsets: NDArray[np.int64] = arrays["token_offsets"]
        self.features: NDArray[np.int32] = arrays["features"]
        self.counts: NDArray[np.int32] = arrays["counts"]
        self.feature_offsets: NDArray[np.int64] = arrays["feature_offsets"]

    def __len__(self) -> int:
        return len(self.token_offsets) - 1

    @classmethod
    def open(cls, folder: Path | str, vocabulary: Vocabulary | None = None) -> "Bags":
        """Open a bags folder; with a vocabulary, make sure that it is the one the bags were made with."""
        folder = Path(folder)
        manifest = _read_manifest(folder)
        if vocabulary is not None and vocabulary.fingerprint != manifest["vocabulary"]:
            raise BagsError(
                f"the bags in {folder} were made with another vocabulary", hint="make them anew from the corpus"
            )
        arrays = {}
        for name, length in manifest["arrays"].items():
            try:
                arrays[name] = np.load(folder / f"{name}.npy", mmap_mode="r" if length else None)
            except (OSError, ValueError, EOFError) as problem:
                raise BagsError(f"{folder}: {name}.npy is damaged or missing", hint="make the bags anew") from problem
            if arrays[name].shape != (length,) or arrays[name].dtype != _ARRAYS[name]:
                raise BagsError(f"{folder}: {name}.npy is not the array that was written", hint="make the bags anew")
        return cls(folder, manifest, arrays)

    @cached_property
    def ids(self) -> pl.Series:
        """The documents' ids, in order."""
        try:
            ids = pl.read_parquet(self.folder / _IDS, glob=False)["id"]
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
            raise BagsError(f"{self.folder}: {_IDS} is damaged or missing", hint="make the bags anew") from problem
        if len(ids) != len(self):
            raise BagsError(f"{self.folder}: {_IDS} is not the file that was written", hint="make the bags anew")
        return ids

    def matrix(self, start: int = 0, stop: int | None = None) -> csr_array:
        """The counts of some documents as a sparse matrix, a row a document; all of them unless bounds are given."""
        start, stop, _ = slice(start, stop).indices(len(self))
        offsets = np.asarray(self.feature_offsets[start : max(start, stop) + 1])
        entries = slice(offsets[0], offsets[-1])
        return csr_array(
            (self.counts[entries], self.features[entries], offsets - offsets[0]),
            shape=(len(offsets) - 1, self.vocabulary_size),
        )


class BagsWriter:
    """Writes a bags folder batch by batch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._ids: list[str] = []
        self._id_parts: list[Path] = []

    def __enter__(self) -> "BagsWriter":
        self._arrays = {
            name: self._stack.enter_context(ArrayWriter(self._folder / f"{name}.npy", dtype))
            for name, dtype in _ARRAYS.items()
        }
        for name in ("token_offsets", "feature_offsets"):
            self._arrays[name].append(np.zeros(1))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def append(self, bags: BatchBags) -> None:
        """Add the next documents."""
        tokens, features = self._arrays["tokens"].length, self._arrays["features"].length
        self._arrays["token_offsets"].append(tokens + np.cumsum(bags.token_lengths))
        self._arrays["feature_offsets"].append(features + np.cumsum(bags.feature_lengths))
        self._arrays["tokens"].append(bags.tokens)
        self._arrays["features"].append(bags.features)
        self._arrays["counts"].append(bags.counts)

    def append_ids(self, ids: Sequence[str]) -> None:
        """Add the ids of the next documents; they may come before or after their bags."""
        self._ids.extend(ids)
        if len(self._ids) >= _IDS_AT_ONCE:
            self._write_ids()

    def _write_ids(self) -> None:
        part = self._folder / f"ids-{len(self._id_parts):06d}.parquet"
        with plain_disk_errors():
            pl.DataFrame({"id": self._ids}, schema={"id": pl.String}).write_parquet(part)
        self._id_parts.append(part)
        self._ids.clear()

    def finish(self, vocabulary: Vocabulary) -> None:
        """Write what ties the arrays together; without it the folder does not open."""
        self._write_ids()
        if len(self._id_parts) == 1:
            self._id_parts.pop().rename(self._folder / _IDS)
        else:
            with plain_disk_errors():
                pl.scan_parquet(self._id_parts, glob=False).sink_parquet(self._folder / _IDS)
        for part in self._id_parts:
            part.unlink()
        manifest = {
            "format": FORMAT,
            "vocabulary": vocabulary.fingerprint,
            "features": len(vocabulary),
            "documents": self._arrays["token_offsets"].length - 1,
            "arrays": {name: writer.length for name, writer in self._arrays.items()},
        }
        (self._folder / _MANIFEST).write_text(json.dumps(manifest, indent=2))


def is_bags(folder: Path) -> bool:
    """Whether a folder holds bags and nothing else, so that no file of anybody's is lost with it."""
    try:
        names = {path.name for path in folder.iterdir()}
        manifest = json.loads((folder / _MANIFEST).read_text())
    except (OSError, ValueError):
        return False
    ours = {_MANIFEST, _IDS, *(f"{name}.npy" for name in _ARRAYS)}
    return names <= ours and isinstance(manifest, dict) and "arrays" in manifest


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / _MANIFEST).read_text())
        newer = manifest["format"] > FORMAT
        known = isinstance(manifest["features"], int) and isinstance(manifest["vocabulary"], str)
        known = known and manifest["arrays"].keys() == _ARRAYS.keys()
    except FileNotFoundError as problem:
        raise BagsError(
            f"no bags in {folder}", hint="make them with `parabit vocabulary CORPUS --bags FOLDER`"
        ) from problem
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise BagsError(f"{folder}: {_MANIFEST} is damaged", hint="make the bags anew") from problem
    if newer:
        raise BagsError(
            f"{folder} has format {manifest['format']}, this version of parabit reads up to {FORMAT}",
            hint="upgrade parabit",
        )
    if not known:
        raise BagsError(f"{folder}: {_MANIFEST} is not that of bags", hint="make the bags anew")
    return manifest

"""The vocabulary: the words and bigrams that a model knows; and bags: texts as arrays of their ids, with weights."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b, sha256
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import VocabularyError
from parabit.storage import whole_file
from parabit.text.tokenizer import Numbering, Tokenizer
from parabit.untrusted import (
    OBJECT,
    TensorForms,
    UnexpectedError,
    check_object,
    need_short_header,
    parse_object,
    tensor_forms,
    whole,
)

if TYPE_CHECKING:
    import polars as pl
    from scipy.sparse import csr_array

FORMAT = 1
FEW = 32  # texts, such as queries, that are answered without threads and other machinery
_ARRAYS = ("bigrams", "counts", "document_frequencies")
_NEWLINE = ord("\n")
# Bytes of a vocabulary file's header, most of it stop words: 100,000 are 1 MB.
_MOST_HEADER = 8 << 20
_SUMMARY = {"format": whole(1), "tokenizer": OBJECT, "documents": whole(), "tokens": whole()}
_MOST_UNKNOWN = 1_000_000  # words that are numbered, until the numbering starts again


class NewerVocabularyError(VocabularyError):
    """A vocabulary that a newer version of parabit wrote."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words and bigrams, numbered: words from 0, most frequent first, then bigrams likewise.

    Both are called features where the difference does not matter. `build_vocabulary` makes one of a corpus.
    """

    tokenizer: Tokenizer
    words: list[str]
    bigrams: NDArray[np.int32]  # (bigrams, 2) word ids
    counts: NDArray[np.int64]  # (features,) occurrences in the corpus
    document_frequencies: NDArray[
        np.int64
    ]  # (features,) documents of the corpus that have the feature
    documents: int  # in the corpus
    tokens: int  # in the corpus, known or not

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def coverage(self) -> float:
        """The share of the corpus's tokens that are words of the vocabulary."""
        return float(self.counts[: len(self.words)].sum() / self.tokens)

    def name(self, feature: int) -> str:
        """A feature as people read it: `telescope`, `hubble telescope`."""
        ids = [feature] if feature < len(self.words) else self.bigrams[feature - len(self.words)]
        return " ".join(self.words[word] for word in ids)

    @property
    def names(self) -> list[str]:
        """The names of all features."""
        return [
            *self.words,
            *(
                f"{self.words[first]} {self.words[second]}"
                for first, second in self.bigrams.tolist()
            ),
        ]

    def ids_of(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of the texts' words, -1 for unknown ones, and how many words each text has."""
        if len(texts) <= FEW:  # in Python one text takes a tenth of the time
            words = list(map(self.tokenizer.content_words, texts))
            few = [self._numbers.get(word, -1) for each in words for word in each]
            return np.array(few, np.int32), np.array(list(map(len, words)), np.int64)
        tokens, lengths = self.tokenizer.content_tokens(texts)
        ids = self._numbering.of(tokens).astype(np.int32)
        if ids.max(initial=0) > len(self.words) + _MOST_UNKNOWN:
            self.__dict__.pop("_numbering", None)
        ids[ids >= len(self.words)] = -1
        return ids, lengths

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def _numbering(self) -> Numbering:
        """The words by their ids; unknown words get numbers above them. A fifth of the time that `pl.Enum` takes."""
        return Numbering(self.words)

    def without_features(self, dropped: NDArray[np.bool_]) -> "Vocabulary":
        """The same without some words and bigrams. A bigram never has a word that is rarer than itself."""
        kept = ~dropped
        words = kept[: len(self.words)]
        renumbered = np.cumsum(words, dtype=np.int32) - np.int32(1)
        return replace(
            self,
            words=list(compress(self.words, words)),
            bigrams=renumbered[self.bigrams[kept[len(self.words) :]]],
            counts=self.counts[kept],
            document_frequencies=self.document_frequencies[kept],
        )

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all that the vocabulary is; two with the same fingerprint are the same."""
        digest = sha256(json.dumps(self._summary, sort_keys=True).encode())
        words = self._word_bytes
        ends = np.flatnonzero(words == _NEWLINE)
        digest.update((np.diff(ends, prepend=-1) - 1).astype("<u4").data)
        digest.update(words[words != _NEWLINE].data)
        for array in (self.bigrams, self.counts, self.document_frequencies):
            digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
        return digest.hexdigest()

    def bigram_ids(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """The feature id of each bigram, given as `first * words + second`; -1 for an unknown one."""
        known, features = self._bigram_table
        # Searched in order, so that the search walks through memory once: five times faster than in the text's order.
        order = np.argsort(keys)
        found = np.minimum(np.searchsorted(known, keys[order]), len(known) - 1)
        ids = np.empty(len(keys), dtype=np.int32)
        ids[order] = np.where(known[found] == keys[order], features[found], np.int32(-1))
        return ids

    def save(self, path: Path | str) -> None:
        """Write the vocabulary to a file that is read in milliseconds; `table` is for other programs."""
        with whole_file(Path(path)) as partial:
            partial.write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes.

        Raises:
            VocabularyError: if there are more stop words than can be read again.
        """
        from safetensors.numpy import save  # here: machines that only train have none

        kind = np.int32 if self.counts.max(initial=0) <= np.iinfo(np.int32).max else np.int64
        arrays = {name: np.ascontiguousarray(getattr(self, name), dtype=kind) for name in _ARRAYS}
        summary = json.dumps(self._summary)
        # JSON in JSON: each quotation mark takes two bytes more.
        if len(summary) > _MOST_HEADER // 2:
            raise VocabularyError(
                f"the stop words and the pattern take {len(summary):,} bytes",
                hint=f"at most {_MOST_HEADER // 2:,} can be saved",
            )
        return save({**arrays, "words": self._word_bytes}, {"vocabulary": summary})

    @classmethod
    def load(cls, path: Path | str) -> "Vocabulary":
        """Read a vocabulary that was saved; anything wrong with the file is a VocabularyError.

        The file may be a stranger's: types and sizes are compared before arrays are read, and then
        every number.

        Parameters:
            path: What `save` wrote.
        """
        from safetensors import SafetensorError

        try:
            return cls._read(Path(path))
        except FileNotFoundError as problem:
            raise VocabularyError(
                f"no vocabulary at {path}", hint="make one with Vocabulary.save"
            ) from problem
        except NewerVocabularyError:
            raise
        except VocabularyError as problem:
            raise VocabularyError(
                f"{path} is not a whole vocabulary file: {problem.problem}", hint="save it again"
            ) from problem
        except UnexpectedError as problem:
            raise VocabularyError(
                f"{path} is not a whole vocabulary file: {problem}", hint="save it again"
            ) from problem
        except (OSError, SafetensorError, ValueError) as problem:
            raise VocabularyError(
                f"{path} is not a whole vocabulary file", hint="save it again"
            ) from problem

    @classmethod
    def _read(cls, path: Path) -> "Vocabulary":
        """What `load` reads; what is wrong is an error of the kind that found it."""
        from safetensors import safe_open

        need_short_header(path, _MOST_HEADER)
        with safe_open(path, framework="numpy") as file:
            summary = parse_object((file.metadata() or {}).get("vocabulary", ""))
            number = summary.get("format")
            if isinstance(number, int) and number > FORMAT:
                raise NewerVocabularyError(
                    f"{path} was made by a newer version of parabit", hint="upgrade parabit"
                )
            check_object(summary, _SUMMARY)
            _check_forms(tensor_forms(file))
            word_bytes = file.get_tensor("words")
            bigrams, counts, frequencies = map(file.get_tensor, _ARRAYS)
        words = _split_words(word_bytes, len(counts) - len(bigrams))
        _check_range("bigrams", bigrams, len(words) - 1)
        _check_range("counts", counts, summary["tokens"])
        _check_range("document_frequencies", frequencies, summary["documents"])
        tokenizer = Tokenizer.from_config(summary["tokenizer"])
        vocabulary = cls(
            tokenizer,
            words,
            bigrams.astype(np.int32),
            counts.astype(np.int64),
            frequencies.astype(np.int64),
            summary["documents"],
            summary["tokens"],
        )
        vocabulary.__dict__["_word_bytes"] = word_bytes  # it would be the same, made of the words
        return vocabulary

    def table(self) -> "pl.DataFrame":
        """A row per word and bigram: `feature`, `count` and the number of `documents` that have it."""
        import polars as pl  # here: a search needs none

        return pl.DataFrame(
            {"feature": self.names, "count": self.counts, "documents": self.document_frequencies}
        )

    @property
    def _summary(self) -> dict[str, object]:
        corpus = {"documents": self.documents, "tokens": self.tokens}
        return {"format": FORMAT, "tokenizer": self.tokenizer.config, **corpus}

    @cached_property
    def _word_bytes(self) -> NDArray[np.uint8]:
        """The words in UTF-8, each with a newline, which no word has."""
        return np.frombuffer("".join(f"{word}\n" for word in self.words).encode(), np.uint8)

    @cached_property
    def _bigram_table(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The bigrams' keys in order, and their feature ids."""
        keys = self.bigrams[:, 0].astype(np.int64) * len(self.words) + self.bigrams[:, 1]
        order = np.argsort(keys)
        return keys[order], (len(self.words) + order).astype(np.int32)


def _check_forms(forms: TensorForms) -> None:
    """Raise unless the types and shapes of the arrays are those of one vocabulary."""
    if set(forms) != {"words", *_ARRAYS}:
        raise UnexpectedError(f"it must have the arrays words, {', '.join(_ARRAYS)}")
    for name in ("words", *_ARRAYS):
        kind, shape = forms[name]
        kinds = ("U8",) if name == "words" else ("I32", "I64")
        if kind not in kinds:
            raise UnexpectedError(f"{name} has the type {kind}")
        dimensions = 2 if name == "bigrams" else 1
        if len(shape) != dimensions:
            raise UnexpectedError(f"{name} has the shape {shape}")
    (_, bigrams), (_, counts) = forms["bigrams"], forms["counts"]
    (_, document_frequencies) = forms["document_frequencies"]
    if counts != document_frequencies or bigrams[1] != 2 or bigrams[0] > counts[0]:
        raise UnexpectedError("its arrays do not have the sizes of one vocabulary")
    if counts[0] > np.iinfo(np.int32).max:
        raise UnexpectedError(f"it has {counts[0]:,} words and bigrams")  # their ids have 32 bits


def _split_words(word_bytes: NDArray[np.uint8], size: int) -> list[str]:
    """The words in UTF-8, each with a newline."""
    ends = int(np.count_nonzero(word_bytes == _NEWLINE))
    if ends != size or (len(word_bytes) and word_bytes[-1] != _NEWLINE):
        raise UnexpectedError(f"there are {ends:,} words, and numbers of {size:,}")
    words = word_bytes.tobytes().decode().split("\n")[:-1]
    if len(set(words)) != size:
        raise UnexpectedError("a word is there twice")
    return words


def _check_range(name: str, array: NDArray[Any], most: int) -> None:
    """Raise unless the numbers of an array are from 0 to a largest."""
    if array.size and (array.min() < 0 or array.max() > most):
        raise UnexpectedError(
            f"{name} has numbers from {array.min()} to {array.max()}, not 0 to {most}"
        )


def row_offsets(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where each row begins, and where the last one ends: (rows + 1,)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def blocks(sizes: NDArray[np.integer], most: int) -> Iterator[slice]:
    """Consecutive parts of rows whose sizes add up to `most` at most; a larger row is a part of its own."""
    ends = np.cumsum(sizes, dtype=np.int64)
    start = 0
    while start < len(sizes):
        stop = max(
            start + 1, int(np.searchsorted(ends, (ends[start - 1] if start else 0) + most, "right"))
        )
        yield slice(start, stop)
        start = stop


@dataclass(frozen=True)
class Bags:
    """Documents as counts of their words and bigrams, and as word ids in the order of the text.

    Example:
        >>> bags = Bags.of_counts(np.array([0, 2, 1]), np.array([1, 1, 3]), np.array([0, 2, 3]))
        >>> len(bags), bags.matrix(3).toarray().tolist()
        (2, [[1, 0, 1], [0, 3, 0]])
    """

    features: NDArray[
        np.int32
    ]  # (entries,) the distinct words and bigrams of each document, ascending
    counts: NDArray[np.int32]  # (entries,) how often each occurs
    feature_offsets: NDArray[np.int64]  # (documents + 1,)
    tokens: NDArray[np.int32]  # (known tokens,) word ids in the order of the text
    token_offsets: NDArray[np.int64]  # (documents + 1,)

    @classmethod
    def of_counts(
        cls, features: NDArray[Any], counts: NDArray[Any], offsets: NDArray[Any]
    ) -> "Bags":
        """Bags without the order of the words."""
        return cls(
            features,
            counts,
            offsets,
            np.zeros(0, dtype=np.int32),
            np.zeros(len(offsets), dtype=np.int64),
        )

    @classmethod
    def joined(cls, parts: Sequence["Bags"]) -> "Bags":
        """Several bags as one."""

        def column(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in parts])

        def offsets(name: str) -> NDArray[np.int64]:
            return row_offsets(np.concatenate([np.diff(getattr(part, name)) for part in parts]))

        features, counts, tokens = map(column, ("features", "counts", "tokens"))
        return cls(features, counts, offsets("feature_offsets"), tokens, offsets("token_offsets"))

    def __len__(self) -> int:
        return len(self.feature_offsets) - 1

    @property
    def feature_lengths(self) -> NDArray[np.int64]:
        """(documents,) distinct words and bigrams."""
        return np.diff(self.feature_offsets)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """(entries,) the document of each entry."""
        return np.repeat(np.arange(len(self)), self.feature_lengths)

    def matrix(self, vocabulary: int) -> "csr_array":
        """The counts as a sparse matrix: (documents, vocabulary)."""
        from scipy.sparse import (
            csr_array,
        )  # here: it takes half a second to import, and a search needs none

        return csr_array(
            (self.counts, self.features, self.feature_offsets), shape=(len(self), vocabulary)
        )

    @property
    def fingerprint(self) -> str:
        """A digest of everything in the bags."""
        digest = blake2b(digest_size=16)
        for array in (
            self.features,
            self.counts,
            self.feature_offsets,
            self.tokens,
            self.token_offsets,
        ):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def make_bags(texts: Sequence[str], vocabulary: Vocabulary) -> Bags:
    """Turn texts into bags; stop words and words that the vocabulary does not have are left out."""
    return bags_of_ids(*vocabulary.ids_of(texts), vocabulary)


def bags_of_ids(ids: NDArray[np.int32], lengths: NDArray[np.int64], vocabulary: Vocabulary) -> Bags:
    """Bags of documents given as word ids, -1 for unknown words: those of all documents, and how many each has."""
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
    entries, counts = np.unique(np.concatenate(keys), return_counts=True)
    firsts = np.arange(documents + 1) * size  # the number of each document's feature 0
    offsets = np.searchsorted(entries, firsts).astype(np.int64)
    return Bags(
        features=(entries - np.repeat(firsts[:-1], np.diff(offsets))).astype(np.int32),
        counts=counts.astype(np.int32),
        feature_offsets=offsets,
        tokens=known_ids,
        token_offsets=row_offsets(np.bincount(of_document, minlength=documents)),
    )


def pair_keys(
    ids: NDArray[np.int32], lengths: NDArray[np.int64], words: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The bigrams in a stream of word ids, as numbers `first * words + second`, and which places they start at.

    Two words are a bigram if they stand side by side in one document and are both known (not -1).
    """
    starts = (ids[:-1] >= 0) & (ids[1:] >= 0)
    ends = np.cumsum(lengths)[:-1]  # the last token of a document has no neighbour
    inside = ends[(ends > 0) & (ends < len(ids))]
    starts[inside - 1] = False
    return ids[:-1][starts].astype(np.int64) * words + ids[1:][starts], starts


def inverse_frequencies(document_frequencies: NDArray[Any], documents: int) -> NDArray[np.float32]:
    """The idf of each word, log((n + 1) / df)."""
    idf: NDArray[np.float64] = np.log((documents + 1) / np.maximum(document_frequencies, 1))
    return np.where(document_frequencies < 1, 0.0, idf).astype(np.float32)


def tf_idf_weights(bags: Bags, idf: NDArray[np.float32]) -> NDArray[np.float32]:
    """The weight of each entry, (1 + log count) idf, scaled so that each document has length 1.

    A document's weights do not depend on the others.
    """
    weights = (1 + np.log(bags.counts)) * idf[bags.features]
    lengths = np.sqrt(np.bincount(bags.rows, weights * weights, len(bags)))
    return np.asarray((weights / np.maximum(lengths, 1e-12)[bags.rows]).astype(np.float32))


def tf_idf_rows(counts: "csr_array", idf: NDArray[np.float32]) -> "csr_array":
    """Counts as rows of length 1, (documents, words); a document without words stays zero."""
    from scipy.sparse import csr_array

    weights = tf_idf_weights(Bags.of_counts(counts.indices, counts.data, counts.indptr), idf)
    return csr_array((weights, counts.indices, counts.indptr), shape=counts.shape)

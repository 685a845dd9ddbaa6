"""What stage_costs.py measures of words, codes and files, in a process that has one core.

Seconds are those of the processor, so that what else runs on the machine counts less.
"""

import itertools
import re
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import nnls

from parabit import Document, ParagraphVectors, VocabularyRule, build_bags, build_vocabulary, open_corpus
from parabit.encoding.files import encode_to_file
from parabit.index import Index
from parabit.index.backends import Flat
from parabit.linear_encoder import LinearEncoder
from parabit.progress import Progress
from parabit.ragged import row_offsets
from parabit.text import Bags, Vocabulary, batch_bags

LEAST = 5  # times that a word or a bigram must occur
ROUNDS = 3
_SCANNED = 64_000_000  # bytes of codes: more than caches hold
_QUERIES = 32


class Watch:
    """A report that adds up the seconds of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.process_time()

    def __call__(self, progress: Progress) -> None:
        now = time.process_time()
        self.seconds[progress.stage] = self.seconds.get(progress.stage, 0.0) + now - self._last
        self._last = now


def seconds(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """What some work takes, the median of a few rounds."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return median(taken)


def fitted(names: Sequence[str], terms: Sequence[Sequence[float]], taken: Sequence[float]) -> dict[str, float]:
    """Costs in nanoseconds, none below 0, that add up to the seconds taken; each row of terms counts alike."""
    rows, wanted = np.array(terms, dtype=float), np.array(taken)
    scale = rows.max(axis=0)
    found = nnls(rows / scale / wanted[:, None], np.ones(len(wanted)))[0] / scale
    error = float(np.abs(rows @ found / wanted - 1).mean())
    print(f"  {', '.join(names)}: {error:.0%} off on the average", flush=True)
    return {name: float(cost) * 1e9 for name, cost in zip(names, found, strict=True)}


def peak() -> int:
    """The most memory that this process has had, in bytes.

    As the kernel tells it: what getrusage tells begins with what the process had that started this one.
    """
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class Texts:
    """A corpus in memory with its vocabulary and bags, with words and with bigrams too."""

    def __init__(self, name: str, most: int | None, folder: Path) -> None:
        start = time.process_time()
        self.documents: list[Document] = list(itertools.islice(open_corpus(name), most))
        self.reading = time.process_time() - start
        self.count = len(self.documents)
        self.characters = sum(len(document.text) for document in self.documents)
        self.before = peak()
        self.vocabulary, self.bags, self.taken = self._made(folder / "words", bigrams=False)
        self.with_bigrams, self.bigram_bags, self.bigrams_taken = self._made(folder / "bigrams", bigrams=True)
        self.counting_peak = peak()

    def _made(self, folder: Path, bigrams: bool) -> tuple[Vocabulary, Bags, dict[str, float]]:
        spent: list[dict[str, float]] = []
        for _ in range(ROUNDS):
            watch = Watch()
            rule = VocabularyRule(bigrams=bigrams, min_count=LEAST)
            vocabulary, bags = build_bags(self.documents, folder, rule, overwrite=True, report=watch)
            spent.append(watch.seconds)
        return vocabulary, bags, {stage: median(one[stage] for one in spent) for stage in spent[0]}

    def about(self) -> dict[str, float]:
        """What its documents are like: averages, and how distinct words grow with all of a document's."""
        words, entries = np.diff(self.bags.token_offsets), np.diff(self.bags.feature_offsets)
        there = words > 1
        power, _ = np.polyfit(np.log(words[there]), np.log(entries[there]), 1)
        return {
            "documents": self.count,
            "characters": self.characters / self.count,
            "tokens": self.vocabulary.tokens / self.count,
            "words": len(self.bags.tokens) / self.count,  # of the vocabulary
            "entries": len(self.bags.features) / self.count,  # distinct ones
            "entries_power": float(power),
            "bigram_entries": (len(self.bigram_bags.features) - len(self.bags.features)) / self.count,
            "id": sum(len(document.id.encode()) for document in self.documents) / self.count,
        }

    def costs(self) -> dict[str, float]:
        """Reading, cutting and counting words, counting bigrams, and making bags."""
        words, tokens = len(self.bags.tokens), self.vocabulary.tokens
        return {
            "read_character": self.reading / self.characters * 1e9,
            "cut_character": self.taken["reading"] / self.characters * 1e9,
            "bag_word": self.taken["making bags"] / words * 1e9,
            "bigram_token": self.bigrams_taken["counting bigrams"] / tokens * 1e9,
            "bag_bigram_word": self.bigrams_taken["making bags"] / words * 1e9,
            "hash_byte": self._hashing(),
        }

    def _hashing(self) -> float:
        block = np.zeros(1 << 26, dtype=np.uint8)
        return seconds(lambda: blake2b(block.data, digest_size=16).digest()) / len(block) * 1e9

    def growth(self) -> dict[str, list[list[float]]]:
        """How the vocabulary grows: [tokens, words] and [tokens, bigrams] of a sixteenth, a quarter and all."""
        found: dict[str, list[list[float]]] = {"words": [], "bigrams": []}
        for part in (16, 4, 1):
            made = build_vocabulary(self.documents[::part], VocabularyRule(bigrams=True, min_count=LEAST))
            found["words"].append([made.tokens, len(made.words)])
            found["bigrams"].append([made.tokens, len(made.bigrams)])
        return found

    def partial_counts(self) -> dict[str, float]:
        """What is counted of a batch before counts are merged, a token: distinct words and pairs, and bytes a word."""
        tokens = self.vocabulary.tokenizer.tokenize([document.text for document in self.documents[:8192]])
        ids = self.vocabulary.word_ids(tokens.words)[tokens.codes].astype(np.int64)
        pairs = np.unique(ids[:-1] * len(self.vocabulary.words) + ids[1:])
        return {
            "counted_words": len(tokens.words) / len(tokens.codes),
            "counted_pairs": len(pairs) / len(tokens.codes),
            "word_bytes": float(np.mean(tokens.words.str.len_bytes().to_numpy())),
        }

    def products(self) -> dict[str, float]:
        """Counting the words of a batch, and the fast encoder's product for codes of several lengths."""
        tokens = self.vocabulary.tokenizer.tokenize([document.text for document in self.documents[:2048]])
        bags = batch_bags(tokens, self.vocabulary)
        offsets, entries = row_offsets(bags.feature_lengths), len(bags.features)
        terms, taken = [], []
        counting = [
            seconds(lambda known=known: batch_bags(tokens, known)) / len(bags.tokens) * 1e9  # type: ignore[misc]
            for known in (self.vocabulary, self.with_bigrams)
        ]
        for dim in (32, 128, 256):
            matrix = np.ones((len(self.vocabulary), dim), dtype=np.float16)
            encoder = LinearEncoder(
                matrix, np.zeros(dim, dtype=np.float32), self.vocabulary.document_frequencies, self.count
            )
            taken.append(seconds(lambda encoder=encoder: encoder.embed(bags.features, bags.counts, offsets)))  # type: ignore[misc]
            terms.append([entries, entries * dim])
        return {
            "count_word": counting[0],
            "count_bigram_word": counting[1],
            **fitted(["product_entry", "product_entry_unit"], terms, taken),
        }


def encoded(model: ParagraphVectors, documents: Sequence[Document], folder: Path) -> dict[str, float]:
    """From texts to a file of codes, and from codes to an index: seconds and bytes."""
    codes, index = folder / "codes.parquet", folder / "codes.index"
    taken = seconds(lambda: encode_to_file(model, documents, codes, overwrite=True))
    packed, ids = model.transform(documents), [document.id for document in documents]

    def make() -> None:
        Index.of_codes(packed, model.shape_.bits or 0, index, ids=ids, backend="flat", overwrite=True).close()

    making = seconds(make)
    return {
        "encode_seconds": taken,
        "codes_bytes": codes.stat().st_size,
        "index_seconds": making,
        "index_bytes": size_of(index),
    }


def scans() -> dict[str, float]:
    """The exact scan for the 10 nearest of some millions of codes, one query and many at once."""
    rng = np.random.default_rng(0)
    costs: dict[str, float] = {}
    for name, asked in (("scan_alone", 1), ("scan", _QUERIES)):
        terms, taken = [], []
        for width in (4, 8, 16, 32):
            codes = rng.integers(0, 256, (_SCANNED // width, width), dtype=np.uint8)
            flat, queries = Flat(codes, 8 * width), codes[:asked].copy()
            flat.nearest(queries, 10)
            taken.append(seconds(lambda flat=flat, queries=queries: flat.nearest(queries, 10)) / asked)  # type: ignore[misc]
            terms.append([len(codes), codes.size])
        costs |= fitted([f"{name}_code", f"{name}_byte"], terms, taken)
    return costs

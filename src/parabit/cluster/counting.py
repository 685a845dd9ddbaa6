"""The vocabulary and the bags of a corpus, counted by the workers of a cluster.

Each shard is read once, by one worker; its tokens stay in Ray's object store, on the disk where memory ends, and are
read again if their node is lost. Counts are made a shard at a time and merged a range of keys at a time, so that no
process holds all bigrams.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from parabit.cluster.connection import most_workers
from parabit.cluster.shards import DIED, Failed, answer, failure, positions, told
from parabit.corpus.files import Shard
from parabit.corpus.unique import same_id
from parabit.errors import ClusterError, CorpusError
from parabit.parallel import limit_cores
from parabit.progress import Progress, Report, silent
from parabit.storage import whole_folder
from parabit.text import Bags, BatchBags, Tokenizer, Tokens, Vocabulary, VocabularyRule, batch_bags
from parabit.text.bags import BagsWriter, is_bags
from parabit.text.choosing import most_frequent_bigrams, need_tokens, of_words, with_bigrams
from parabit.text.counting import (
    MERGED_AT_ONCE,
    add_up,
    key_bounds,
    merge_bigrams,
    merge_words,
    most_frequent_words,
    partial_bigrams,
    split_keys,
)

_MOST_RANGES = 256  # of keys: with many more, Ray has more to do with them than with what they hold
_TOGETHER = 4_000_000  # rows of small shards: so a task's results for 256 ranges are large enough for the object store
_LARGEST = 2**64


class Counted(NamedTuple):
    """What a cluster has counted."""

    vocabulary: Vocabulary
    skipped: int  # bad records that were left out


class _About(NamedTuple):
    """What a worker tells of a shard it has read."""

    version: str  # of the file
    documents: int
    tokens: int
    rows: int  # of the dictionaries of its batches
    skipped: int
    problem: str


class _Ids(NamedTuple):
    """The ids of a shard's documents, and which of them are but positions, still to be told."""

    version: str
    ids: list[str]
    unnamed: list[int]
    problem: str = ""


class _Batches(NamedTuple):
    """The tokens of a shard."""

    version: str
    batches: list[Tokens]
    problem: str = ""


Part = TypeVar("Part", _Ids, _Batches)


def build_vocabulary_on_ray(
    ray: Any, shards: Sequence[Shard], rule: VocabularyRule, report: Report = silent
) -> Counted:
    """The vocabulary of a corpus, the same as `parabit.text.build_vocabulary` counts on one machine."""
    return _counted(ray, shards, rule, None, report)


def build_bags_on_ray(
    ray: Any,
    shards: Sequence[Shard],
    folder: Path | str,
    rule: VocabularyRule,
    overwrite: bool = False,
    report: Report = silent,
) -> tuple[Counted, Bags]:
    """The vocabulary and the bags of a corpus, the same as `parabit.text.build_bags` makes.

    Workers make the bags, and this process writes them, in order.
    """
    folder = Path(folder)
    with whole_folder(folder, is_bags if overwrite else None) as partial, BagsWriter(partial) as writer:
        counted = _counted(ray, shards, rule, writer, report)
        writer.finish(counted.vocabulary)
    return counted, Bags.open(folder, counted.vocabulary)


def _counted(
    ray: Any, shards: Sequence[Shard], rule: VocabularyRule, writer: BagsWriter | None, report: Report
) -> Counted:
    if not most_workers(ray, cores=1):
        raise ClusterError("no node of the cluster has a core", hint="look at `ray status` there")
    read = ray.remote(_read).options(num_returns=3)
    results = [read.remote(shard, rule.tokenizer) for shard in shards]
    abouts = _read_all(ray, [about for about, _, _ in results], shards, report)
    versions = [about.version for about in abouts]
    documents, total = sum(about.documents for about in abouts), sum(about.tokens for about in abouts)
    firsts = positions([about.documents for about in abouts])
    ids = [(part, version, first) for (_, part, _), version, first in zip(results, versions, firsts, strict=True)]
    tokens = [(part, version) for (_, _, part), version in zip(results, versions, strict=True)]
    _need_different(ray, ids, abouts)
    need_tokens(documents, total, rule)

    vocabulary = of_words(_words(ray, tokens, abouts, rule, report), rule, documents, total)
    if rule.bigrams:
        vocabulary = with_bigrams(vocabulary, _bigrams(ray, tokens, abouts, vocabulary, rule, report), rule)

    shared, wanted = ray.put(vocabulary), writer is not None
    frequencies = np.zeros(len(vocabulary), dtype=np.int64)
    bags_of, ids_of = ray.remote(_bags).options(num_returns=2), ray.remote(_named)
    made = (
        (*bags_of.remote(*token, shared, wanted), ids_of.remote(*one) if wanted else None)
        for token, one in zip(tokens, ids, strict=True)
    )
    for done, (found, bags, named) in enumerate(_some_at_once(ray, made), start=1):
        features, counts = ray.get(found)
        frequencies[features] += counts
        if writer is not None:
            writer.append_ids(ray.get(named))
            for batch in ray.get(bags):
                writer.append(batch)
        report(Progress("making bags", done, "shards", done / len(shards)))
    return Counted(replace(vocabulary, document_frequencies=frequencies), sum(about.skipped for about in abouts))


def _read_all(ray: Any, references: Sequence[Any], shards: Sequence[Shard], report: Report) -> list[_About]:
    """What was found in the shards; where some cannot be read, they are told when the others are done."""
    found: dict[Any, _About] = {}
    documents, waiting = 0, list(references)
    while waiting:
        ready, waiting = ray.wait(waiting, timeout=1.0)
        for one in ready:
            found[one] = answer(ray, one, _About("", 0, 0, 0, 0, DIED))
            documents += found[one].documents
        report(Progress("reading", documents, "documents", len(found) / len(references)))
    abouts = [found[reference] for reference in references]
    failed = [
        Failed(shard.source.name, about.problem) for shard, about in zip(shards, abouts, strict=True) if about.problem
    ]
    if failed:
        raise failure(failed, len(shards), "nothing was written; mend or remove them; do all nodes see these files?")
    return abouts


def _need_different(ray: Any, ids: Sequence[Any], abouts: Sequence[_About]) -> None:
    """Raise if two documents have one id; found by hashes, a range of them at a time."""
    counts = [about.documents for about in abouts]
    ranges = _ranges(sum(counts))
    split = _split(ray, _id_ranges, ids, counts, ranges)
    doubled = ray.remote(_doubled)
    suspects = np.concatenate(ray.get([doubled.remote(*parts) for parts in zip(*split, strict=True)]))
    if not len(suspects):
        return
    shared, holders = ray.put(suspects), ray.remote(_holders)
    first: dict[str, int] = {}
    for found in (ray.get(reference) for reference in [holders.remote(*one, shared) for one in ids]):
        for position, identity in found:
            if identity in first:
                raise same_id(identity, first[identity], position)
            first[identity] = position


def _words(
    ray: Any, tokens: Sequence[Any], abouts: Sequence[_About], rule: VocabularyRule, report: Report
) -> pl.DataFrame:
    rows = [about.rows for about in abouts]
    ranges, merge = _ranges(sum(rows)), ray.remote(_merged_words)
    split = _split(ray, _word_ranges, tokens, rows, ranges)
    merged = [merge.remote(rule.min_count, *parts) for parts in zip(*split, strict=True)]
    return most_frequent_words(list(_each(ray, merged, "counting words", report)), rule)


def _bigrams(
    ray: Any,
    tokens: Sequence[Any],
    abouts: Sequence[_About],
    vocabulary: Vocabulary,
    rule: VocabularyRule,
    report: Report,
) -> pl.DataFrame:
    total = int(vocabulary.counts.sum())
    bounds = key_bounds(vocabulary.counts, max(MERGED_AT_ONCE, -(-total // (_MOST_RANGES - 1))))
    sizes, merge = [about.tokens for about in abouts], ray.remote(_merged_bigrams)
    split = _split(ray, _bigram_ranges, tokens, sizes, len(bounds) + 1, ray.put(vocabulary), bounds)
    merged = [merge.remote(len(vocabulary.words), rule, *parts) for parts in zip(*split, strict=True)]
    parts: list[pl.DataFrame] = list(_each(ray, merged, "counting bigrams", report))
    return pl.concat(parts)


def _ranges(rows: int) -> int:
    return min(1 + rows // MERGED_AT_ONCE, _MOST_RANGES)


def _split(
    ray: Any, function: Callable[..., Any], parts: Sequence[Any], sizes: Sequence[int], ranges: int, *shared: Any
) -> list[list[Any]]:
    """Parts of shards cut into ranges by tasks: for each task, what it has for each range.

    A task takes shards of some million rows together: of small ones Ray would keep the many small results in the memory
    of this process.
    """
    task = ray.remote(function).options(num_returns=ranges)
    found = [task.remote(ranges, shared, *chain.from_iterable(group)) for group in _groups(parts, sizes)]
    return [[one] if ranges == 1 else list(one) for one in found]  # Ray gives a single result by itself


def _groups(parts: Sequence[Any], sizes: Sequence[int]) -> Iterator[list[Any]]:
    """Parts put together until they have enough rows."""
    group: list[Any] = []
    rows = 0
    for part, size in zip(parts, sizes, strict=True):
        group.append(part)
        rows += size
        if rows >= _TOGETHER:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _each(ray: Any, references: Sequence[Any], stage: str, report: Report) -> Iterator[Any]:
    for done, reference in enumerate(references, start=1):
        yield ray.get(reference)
        report(Progress(stage, done, "ranges of keys", done / len(references)))


def _some_at_once(ray: Any, submitted: Iterator[Any]) -> Iterator[Any]:
    """Tasks in order, of which only some are begun before their results are taken, so that these do not pile up."""
    most = 2 * int(ray.cluster_resources().get("CPU", 1))
    under_way: list[Any] = []
    for task in submitted:
        under_way.append(task)
        if len(under_way) >= most:
            yield under_way.pop(0)
    yield from under_way


# What follows runs on the workers, one core each.


def _read(shard: Shard, tokenizer: Tokenizer) -> tuple[_About, _Ids, _Batches]:
    """The ids and the tokens of a shard; what is wrong with it is told, not raised, so that the others go on."""
    limit_cores(1)
    ids: list[str] = []
    batches: list[Tokens] = []
    try:
        version = shard.source.version
        for batch in shard.batches():
            ids.extend(document.id for document in batch)
            batches.append(tokenizer.tokenize([document.text for document in batch]))
        if shard.source.version != version:
            raise CorpusError(f"{shard.source.name} has changed while it was read")
    except Exception as problem:  # whatever it is, it is this shard's
        why = told(problem)
        return _About("", 0, 0, 0, 0, why), _Ids("", [], [], why), _Batches("", [], why)
    tokens, rows = sum(len(batch.codes) for batch in batches), sum(len(batch.words) for batch in batches)
    about = _About(version, len(ids), tokens, rows, shard.skipped, "")
    return about, _Ids(version, ids, shard.unnamed), _Batches(version, batches)


def _whole(part: Part, version: str) -> Part:
    """What was read of a shard; if its node was lost it has been read again, and must be what it was."""
    if part.problem:
        raise CorpusError(f"a shard had to be read again, as its node was lost: {part.problem}")
    if part.version != version:
        raise CorpusError("a shard has changed while the corpus was counted", hint="run the same command again")
    return part


def _named(part: _Ids, version: str, first: int) -> list[str]:
    """The ids of a shard's documents; its first has this position in the corpus."""
    ids = list(_whole(part, version).ids)
    for place in part.unnamed:
        ids[place] = str(first + place)
    return ids


def _hashes(strings: Sequence[str]) -> NDArray[np.uint64]:
    """A number for each string, the same on every machine."""
    digests = b"".join(blake2b(string.encode(), digest_size=8).digest() for string in strings)
    return np.frombuffer(digests, dtype="<u8")


def _range_of(hashes: NDArray[np.uint64], ranges: int) -> NDArray[np.uint64]:
    """Which of the equal ranges of all hashes each is in."""
    return hashes // np.uint64(-(-_LARGEST // ranges)) if ranges > 1 else np.zeros_like(hashes)


def _one_or_all(parts: list[Any]) -> Any:
    """As Ray takes the results of a task: a single one by itself."""
    return parts[0] if len(parts) == 1 else tuple(parts)


def _id_ranges(ranges: int, shared: object, *parts: Any) -> Any:
    ids = [_named(*part) for part in _some(parts, 3)]
    hashes = _hashes(list(chain.from_iterable(ids)))
    of_range = _range_of(hashes, ranges)
    return _one_or_all([hashes[of_range == part] for part in range(ranges)])


def _doubled(*parts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    ordered = np.sort(np.concatenate(parts))
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def _holders(part: _Ids, version: str, first: int, suspects: NDArray[np.uint64]) -> list[tuple[int, str]]:
    """The documents of a shard whose ids have these hashes, with their positions in the corpus."""
    ids = _named(part, version, first)
    return [(first + place, ids[place]) for place in np.flatnonzero(np.isin(_hashes(ids), suspects)).tolist()]


def _some(parts: Sequence[Any], count: int) -> Iterator[Sequence[Any]]:
    """So many at a time; itertools has it from Python 3.12 on."""
    return (parts[first : first + count] for first in range(0, len(parts), count))


def _batches_of(parts: Sequence[Any]) -> Iterator[Tokens]:
    """The tokens of some shards, each with the version that it must have."""
    for part, version in _some(parts, 2):
        yield from _whole(part, version).batches


def _word_ranges(ranges: int, shared: object, *parts: Any) -> Any:
    nothing = pl.DataFrame(schema={"word": pl.String, "count": pl.Int64})
    frames = [
        pl.DataFrame({"word": batch.words, "count": np.bincount(batch.codes, minlength=len(batch.words))})
        for batch in _batches_of(parts)
    ]
    counts = merge_words(pl.concat([nothing, *frames]).lazy(), least=1)
    of_range = _range_of(_hashes(counts["word"].to_list()), ranges)
    return _one_or_all([counts.filter(pl.Series(of_range == part)) for part in range(ranges)])


def _merged_words(least: int, *parts: pl.DataFrame) -> pl.DataFrame:
    return merge_words(pl.concat(parts).lazy(), least)


def _bigram_ranges(ranges: int, shared: tuple[Any, NDArray[np.int64]], *parts: Any) -> Any:
    import ray

    vocabulary, bounds = ray.get(shared[0]), shared[1]
    rows = [np.zeros((0, 2), dtype=np.int64)]
    rows += [partial_bigrams(batch, vocabulary.word_ids, len(vocabulary.words)) for batch in _batches_of(parts)]
    merged = add_up(np.concatenate(rows)).sort("key").collect().to_numpy()
    return _one_or_all(split_keys(merged, bounds))


def _merged_bigrams(words: int, rule: VocabularyRule, *parts: NDArray[np.int64]) -> pl.DataFrame:
    # No more of one range can be kept than of all, so no more need travel.
    return most_frequent_bigrams(merge_bigrams(np.concatenate(parts), words, rule.least_bigrams), rule)


def _bags(
    part: _Batches, version: str, vocabulary: Vocabulary, wanted: bool
) -> tuple[tuple[NDArray[np.int32], NDArray[np.int64]], list[BatchBags]]:
    """In how many documents of a shard features are, and its bags where they are wanted."""
    limit_cores(1)
    bags = [batch_bags(tokens, vocabulary) for tokens in _whole(part, version).batches]
    features = np.concatenate([np.zeros(0, dtype=np.int32), *(batch.features for batch in bags)])
    return np.unique(features, return_counts=True), bags if wanted else []

"""The files of a corpus that a cluster works on, one shard at a time."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from parabit.corpus import ReadOptions, names_dataset, open_corpus
from parabit.corpus.files import FileCorpus, Shard, WholeFileCorpus
from parabit.corpus.remote import RemoteSource, is_address
from parabit.corpus.sources import PipeSource, Source
from parabit.errors import CorpusError, ParabitError

T = TypeVar("T")
DIED = "its worker died each time"


def open_shards(name: str, options: ReadOptions, format: str | None = None) -> list[Shard]:
    """The shards of a corpus: a file of records, a folder of them, or an address that fsspec knows.

    Paths are made whole, as the workers of a cluster have other current folders; all must see the same files there.
    """
    hint = "a cluster reads JSON lines, Parquet, CSV or TSV files, or lines of text"
    if names_dataset(name) or name == "-":
        raise CorpusError(f"{name} is not made of files that a cluster can share out", hint=hint)
    corpus = open_corpus(name if is_address(name) else str(Path(name).absolute()), options, format)
    if not isinstance(corpus, FileCorpus) or isinstance(corpus, WholeFileCorpus):
        raise CorpusError(f"{name} has files that are a document each", hint=hint)
    if any(isinstance(source, PipeSource) for source in corpus.sources):
        raise CorpusError(f"{name} can be read only once, and here alone", hint=hint)
    return corpus.shards()


def output_names(name: str, shards: Sequence[Shard]) -> list[str]:
    """What the output of each shard is called: as the shard below its corpus, with the ending `.parquet`.

    Example:
        >>> from parabit.corpus.readers import read_json_lines
        >>> sources = [Source(Path(path)) for path in ("c/a.jsonl", "c/b/a.jsonl")]
        >>> shards = [Shard(source, read_json_lines, ReadOptions()) for source in sources]
        >>> output_names("c", shards)
        ['a.jsonl.parquet', 'b/a.jsonl.parquet']
    """
    root = Path(name).absolute()
    below = [_below(shard.source, root) for shard in shards]
    named = [path if path.endswith(".parquet") else f"{path}.parquet" for path in below]
    if len({*named}) < len(named):
        raise CorpusError(f"{name} has shards of the same name", hint="give a folder, in which each has its own")
    return named


def _below(source: Source, root: Path) -> str:
    """The path of a file from the folder of its corpus; its name where the corpus is but that file."""
    if isinstance(source, RemoteSource):
        return source.below
    path = source.path.absolute()
    return path.relative_to(root).as_posix() if path != root else path.name


class Failed(NamedTuple):
    """A shard that could not be worked on, and why."""

    shard: str
    problem: str


def answer(ray: Any, reference: Any, otherwise: T) -> T:
    """What a task has found in a shard; where its worker died each time that Ray began it, what stands for that."""
    try:
        found: T = ray.get(reference)
    except ray.exceptions.RayError:
        return otherwise
    return found


def told(problem: Exception) -> str:
    """An error that a worker found, in words that travel."""
    if isinstance(problem, ParabitError):
        return problem.problem
    return " ".join(str(problem).split()) or type(problem).__name__


def failure(failed: Sequence[Failed], total: int, hint: str) -> CorpusError:
    """The error that names the shards that could not be worked on."""
    shown = [one.problem if one.shard in one.problem else f"{one.shard}: {one.problem}" for one in failed[:5]]
    more = f" and {len(failed) - 5:,} more" if len(failed) > 5 else ""
    return CorpusError(f"{len(failed):,} of {total:,} shards could not be used: {'; '.join(shown)}{more}", hint=hint)


def positions(counts: Sequence[int]) -> list[int]:
    """Where each shard's first document stands in the corpus.

    Example:
        >>> positions([3, 0, 2])
        [0, 3, 3]
    """
    return list(accumulate(counts, initial=0))[:-1]

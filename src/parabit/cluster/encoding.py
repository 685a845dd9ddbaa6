"""The codes of a corpus, shard by shard, by the workers of a cluster: a pipeline of Ray Data."""

import json
import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from parabit import __version__
from parabit.cluster.connection import most_workers
from parabit.cluster.place import Place
from parabit.cluster.shards import DIED, Failed, answer, failure, output_names, positions, told
from parabit.corpus.files import Shard
from parabit.corpus.remote import is_address
from parabit.errors import ClusterError, CorpusError
from parabit.model import TextEncoder, encode_to_file
from parabit.model.code_files import META, SUFFIXES, columns_of
from parabit.parallel import limit_cores, ordered_map
from parabit.progress import Progress, Report, silent

ABOUT = "parabit.json"
FORMAT = 1
_SHARD = "shard"  # the key of what decides a shard's output, in what its file tells of itself
_COUNTS = ("documents", "without_words", "skipped")
_MOST_ATTEMPTS = 4  # at a shard whose worker is lost
_LOOKED_AT = 16  # outputs at once, most of the time waiting for the storage


class EncodedShards(NamedTuple):
    """What was written."""

    documents: int
    without_words: int  # of them, those of whose words the model knows none; their codes are zeros
    skipped: int  # bad records that were left out
    shards: int
    resumed: int  # of the shards, those that an earlier run had encoded
    encoded: int  # documents that this run encoded
    bytes: int  # per document, without its id


class _Task(NamedTuple):
    """A shard to encode."""

    shard: Shard
    output: str
    identity: dict[str, Any]  # what decides its output


def encode_shards(
    ray: Any,
    model: TextEncoder,
    name: str,
    shards: Sequence[Shard],
    output: str,
    *,
    vectors: bool = False,
    overwrite: bool = False,
    workers: int | None = None,
    cores: int = 1,
    report: Report = silent,
) -> EncodedShards:
    """Write the codes of each shard to a Parquet file of its own in the folder `output`, a path or an address.

    The rows are those that `encode_to_file` writes for the whole corpus. A shard's file appears when it is whole; one
    that is there already, of the same shard, model and options, is left as it is. What cannot be read is told when all
    others are done. `workers` processes, as many as the cluster has cores unless given, load the model once each.
    """
    place = Place(output)
    about = {
        "format": FORMAT,
        "parabit": __version__,
        "corpus": name if is_address(name) else str(Path(name).absolute()),
        "model": model.fingerprint,
        "vectors": vectors,
        "reading": shards[0].reading,
    }
    _need_same(place, about, overwrite)
    most = most_workers(ray, cores)
    if not most:
        raise ClusterError(f"no node of the cluster has {cores} cores", hint="ask for less with --worker-cores")
    names = output_names(name, shards)
    tasks, failed = _tasks(ray, shards, names, about, report)
    kept = _finished(place, tasks)
    _tidy(place, kept)  # first, so that there are never codes of two models, or of what a shard was before
    place.write_json(ABOUT, about)
    waiting = [task for task in tasks if task.output not in kept]
    done: dict[str, dict[str, Any]] = dict(kept)
    documents = sum(row["documents"] for row in kept.values())
    _tell(documents, len(done), len(shards), report)
    for row in _encoded(ray, model, waiting, min(workers or most, most), cores, place, vectors):
        if row["problem"]:
            failed.append(Failed(row["shard"], row["problem"]))
        else:
            done[row["output"]] = row
            documents += row["documents"]
        _tell(documents, len(done), len(shards), report)
    if failed:
        raise failure(failed, len(shards), f"the others are in {place.name}; mend these and run the same command again")
    if not documents:
        raise CorpusError(f"no documents in the {len(shards):,} shards", hint="they hold no records")
    total = {key: sum(row[key] for row in done.values()) for key in _COUNTS}
    before = sum(row["documents"] for row in kept.values())
    return EncodedShards(
        **total,
        shards=len(shards),
        resumed=len(kept),
        encoded=total["documents"] - before,
        bytes=sum(width for _, width in columns_of(model, Path(names[0]), vectors).values()),
    )


def _need_same(place: Place, about: Mapping[str, Any], overwrite: bool) -> None:
    """Raise where a folder holds something else, or codes that were made otherwise."""
    if Path(place.name).suffix in SUFFIXES:
        raise ClusterError(
            f"{place.name} names a file, and on a cluster each shard has a file of its own",
            hint="name a folder, without an ending",
        )
    if f"{place.name}/".startswith(f"{about['corpus'].rstrip('/')}/"):
        raise ClusterError(f"{place.name} is within the corpus", hint="write the codes elsewhere")
    found = place.read_json(ABOUT)
    if found is None:
        if place.files():
            raise ClusterError(
                f"{place.name} is there and holds no codes", hint="nothing was touched; choose another name"
            )
        return
    different = [key for key in about if not isinstance(found, dict) or found.get(key) != about[key]]
    if different and not overwrite:
        raise ClusterError(
            f"the codes in {place.name} were made with another {' and '.join(different)}",
            hint="choose another folder, or replace them with --overwrite",
        )


def _tasks(
    ray: Any, shards: Sequence[Shard], names: Sequence[str], about: Mapping[str, Any], report: Report
) -> tuple[list[_Task], list[Failed]]:
    """What is to be done for each shard that can be read.

    Documents without an id have their position in the corpus for one, and then all shards are counted first.
    """
    look, count = ray.remote(_look), ray.remote(_count)
    looks = [answer(ray, reference, _Look("", True, DIED)) for reference in [look.remote(shard) for shard in shards]]
    problems = [found.problem for found in looks]
    firsts: list[int | None] = [None] * len(shards)
    if not all(found.problem or found.has_ids for found in looks):
        counts = []
        for done, reference in enumerate([count.remote(shard) for shard in shards], start=1):
            number, problems[done - 1] = answer(ray, reference, (0, DIED))
            counts.append(number)
            report(Progress("counting documents", sum(counts), "documents", done / len(shards)))
        firsts = [*positions(counts)]
    tasks, failed = [], []
    for shard, output, found, first, problem in zip(shards, names, looks, firsts, problems, strict=True):
        if problem:
            failed.append(Failed(shard.source.name, problem))
        else:
            here = {"shard": shard.source.name, "version": found.version, "first": first}
            tasks.append(_Task(shard.at(first or 0), output, {**about, **here}))
    return tasks, failed


def _finished(place: Place, tasks: Sequence[_Task]) -> dict[str, dict[str, Any]]:
    """What earlier runs have told of the shards that they finished, by output."""

    def look(task: _Task) -> dict[str, Any] | None:
        about = json.loads(place.parquet_metadata(task.output).get(META, "{}"))
        return about if about.get(_SHARD) == task.identity else None

    found = zip(tasks, ordered_map(look, tasks, _LOOKED_AT), strict=True)
    return {task.output: row for task, row in found if row is not None}


def _encoded(
    ray: Any, model: TextEncoder, tasks: Sequence[_Task], workers: int, cores: int, *how: Any
) -> Iterator[dict[str, Any]]:
    """What became of each shard, as they are done."""
    if not tasks:
        return iter([])
    pool = min(workers, len(tasks))
    attempts = ray.remote(_Attempts).options(num_cpus=0, max_restarts=-1, max_task_retries=-1).remote()
    shared = (ray.put(model), ray.put(list(tasks)), attempts, cores, *how)
    if not ray.util.client.ray.is_connected():
        return _pipeline(len(tasks), pool, cores, shared)
    # Ray Data does not run at the far end of ray://; so all of it runs on the cluster, and tells when it is done. Not
    # tried again, as it would do again what is done: the same command does what is missing.
    whole = ray.remote(_whole_pipeline).options(num_cpus=0, max_retries=0)
    whole = whole.remote(len(tasks), pool, cores, [shared])
    return iter(ray.get(whole))


def _pipeline(tasks: int, pool: int, cores: int, shared: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """The pipeline of Ray Data: a row for each shard goes in, and one that tells what became of it comes out."""
    from ray.data import ActorPoolStrategy, DataContext, from_items

    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # here: it sets its own level when it is imported
    DataContext.get_current().enable_progress_bars = False
    rows = from_items([{"task": number} for number in range(tasks)], override_num_blocks=tasks)
    actors = ActorPoolStrategy(min_size=1, max_size=pool, max_tasks_in_flight_per_actor=2)
    worker: Any = _Worker  # Ray takes a class here, too, whatever its types say
    encoded = rows.map(
        worker,
        fn_constructor_args=shared,
        compute=actors,
        num_cpus=cores,
    )
    return iter(encoded.iter_rows())


def _whole_pipeline(tasks: int, pool: int, cores: int, shared: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return list(_pipeline(tasks, pool, cores, shared[0]))


def _tell(documents: int, done: int, shards: int, report: Report) -> None:
    report(Progress("encoding", documents, "documents", done / shards, f"{done:,} of {shards:,} shards"))


def _tidy(place: Place, names: Collection[str]) -> None:
    """Remove all codes but these, and what killed workers have left half-written."""
    for name in {*place.files()} - {*names, ABOUT}:
        if name.endswith(".parquet") and _SHARD in json.loads(place.parquet_metadata(name).get(META, "{}")):
            place.remove(name)
    place.tidy()


# What follows runs on the workers.


class _Look(NamedTuple):
    """What the first record of a shard shows."""

    version: str
    has_ids: bool
    problem: str


def _look(shard: Shard) -> _Look:
    try:
        return _Look(shard.source.version, shard.has_ids(), "")
    except Exception as problem:  # whatever it is, it is this shard's
        return _Look("", True, told(problem))


def _count(shard: Shard) -> tuple[int, str]:
    """How many documents a shard has, and what is wrong with it."""
    try:
        return sum(1 for _ in shard), ""
    except Exception as problem:
        return 0, told(problem)


class _Attempts:
    """Counts how often each shard has been begun: Ray would give one that kills its worker to others for ever."""

    def __init__(self) -> None:
        self._begun: Counter[int] = Counter()

    def begin(self, task: int) -> int:
        self._begun[task] += 1
        return self._begun[task]


class _Worker:
    """Encodes shards; the model comes once."""

    def __init__(self, model: Any, tasks: Any, attempts: Any, cores: int, place: Place, vectors: bool) -> None:
        import ray

        limit_cores(cores)
        self._model, self._tasks = ray.get([model, tasks])
        self._begin: Callable[[int], int] = lambda task: ray.get(attempts.begin.remote(task))
        self._place, self._vectors = place, vectors

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        task: _Task = self._tasks[row["task"]]
        result = {"shard": task.shard.source.name, "output": task.output, "problem": "", **dict.fromkeys(_COUNTS, 0)}
        if self._begin(row["task"]) > _MOST_ATTEMPTS:
            return {**result, "problem": DIED}
        try:
            return {**result, **self._encode(task)}
        except Exception as problem:
            return {**result, "problem": told(problem)}

    def _encode(self, task: _Task) -> dict[str, int]:
        with tempfile.TemporaryDirectory(prefix="parabit-") as folder:
            file = Path(folder, "codes.parquet")
            encoded = encode_to_file(
                self._model, task.shard, file, vectors=self._vectors, about={_SHARD: task.identity}
            )
            if task.identity["first"] is None and task.shard.unnamed:
                nameless = f"some documents have an id, and document {task.shard.unnamed[0]}, from 0, has none"
                raise CorpusError(f"{task.shard.source.name}: {nameless}")
            if task.shard.source.version != task.identity["version"]:
                raise CorpusError(f"{task.shard.source.name} has changed while it was read")
            self._place.put(file, task.output)
        counts = {"documents": encoded.documents, "without_words": encoded.without_words}
        return {**counts, "skipped": task.shard.skipped}

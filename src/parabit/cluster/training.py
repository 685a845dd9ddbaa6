"""Training on the workers of a cluster: Ray Train starts them, and starts them again where one is lost."""

import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from parabit.cluster.connection import in_words, most_workers
from parabit.cluster.counting import build_bags_on_ray
from parabit.corpus.files import Shard
from parabit.encoding import ParagraphVectors
from parabit.encoding.work import BAGS, COUNTED, CountedTexts, clear_scratch
from parabit.errors import ClusterError, LostWorkerError, ParabitError, TrainingError
from parabit.parallel import limit_cores
from parabit.progress import Progress, Report, silent

_MOST_LOSSES = 10  # of workers, before it is no accident
_TOLD_EVERY = 0.5  # seconds
_LAST_WORDS = 5.0  # seconds for them


def train_on_ray(
    ray: Any,
    model: ParagraphVectors,
    shards: Sequence[Shard],
    output: Path,
    work: Path,
    *,
    workers: int | None = None,
    cores: int = 1,
    slim: bool = False,
    resume: bool = False,
    checkpoint_every: float = 60.0,
    report: Report = silent,
) -> int:
    """Count a corpus on a cluster, train the model on it with several workers, and save it as the folder `output`.

    Gives the number of bad records that were left out. `output` and `work`, where checkpoints are kept, must lie on a
    disk that all nodes share. With `resume` training goes on from a checkpoint that is there. There is a worker for
    each node of the cluster that has cores unless told otherwise.
    """
    from parabit.networks import Checkpoints  # here: torch takes seconds to import, and who counts has no use for it

    model.planned()
    rule = model.rule()
    workers = workers or max(1, sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0)))
    use_gpu = _need_room(ray, model.device, workers, cores)
    output, work = output.absolute(), work.absolute()
    work.mkdir(exist_ok=True)
    folder = work / COUNTED
    shutil.rmtree(folder, ignore_errors=True)  # what a kill has left
    folder.mkdir()
    if not resume:
        Checkpoints(work, {}).forget()
    try:
        counted, _ = build_bags_on_ray(ray, shards, folder / BAGS, rule, report=report)
        texts = CountedTexts(folder / "vocabulary.parquet", folder / BAGS)
        counted.vocabulary.save(texts.vocabulary)
        with _board(ray, report) as board:
            _run(
                {
                    "parameters": {**model.get_params(), "device": "cuda" if use_gpu else "cpu"},
                    "texts": texts,
                    "work": work,
                    "output": output,
                    "slim": slim,
                    "every": checkpoint_every,
                    "board": board,
                    "cores": cores,
                },
                workers,
                cores,
                use_gpu,
                folder,
            )
            if problem := ray.get(board.problem.remote()):
                raise TrainingError(*problem)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        clear_scratch(work)
        if not any(work.iterdir()):
            work.rmdir()
    return counted.skipped


def _need_room(ray: Any, device: str, workers: int, cores: int) -> bool:
    """Whether the workers train on GPUs; raise where the cluster has no room for them, and would wait for ever."""
    room, with_gpu = most_workers(ray, cores), most_workers(ray, cores, gpus=1)
    if room < workers:
        raise ClusterError(
            f"{workers} workers with {cores} cores each, and the cluster has room for {room}",
            hint="ask for less with --workers or --worker-cores",
        )
    if device == "cuda" and with_gpu < workers:
        raise ClusterError(
            f"{workers} workers with a GPU each, and the cluster has room for {with_gpu}",
            hint="ask for fewer with --workers, or take --device cpu",
        )
    return device != "cpu" and with_gpu >= workers


def _run(config: dict[str, Any], workers: int, cores: int, use_gpu: bool, folder: Path) -> None:
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    from parabit.networks.group import PATIENCE

    timeout = int(PATIENCE.total_seconds())
    trainer = TorchTrainer(
        _work,
        train_loop_config=config,
        torch_config=TorchConfig("cpu:gloo,cuda:nccl" if use_gpu else "gloo", timeout_s=timeout),
        scaling_config=ScalingConfig(
            num_workers=workers,
            use_gpu=use_gpu,
            resources_per_worker={"CPU": cores, **({"GPU": 1} if use_gpu else {})},
            placement_strategy="SPREAD",
        ),
        run_config=RunConfig(
            name="ray", storage_path=str(folder), failure_config=FailureConfig(max_failures=_MOST_LOSSES)
        ),
    )
    heard, main = signal.getsignal(signal.SIGINT), threading.current_thread() is threading.main_thread()
    try:
        trainer.fit()
    except SystemExit as stop:
        if stop.code in (None, 0, 1):  # what Ray makes of Ctrl-C
            raise KeyboardInterrupt from stop
        raise
    except Exception as problem:  # whatever Ray wraps it in
        raise in_words(problem) from problem
    finally:
        if main:  # Ray listens in its own way, and goes on with it
            signal.signal(signal.SIGINT, heard)


@contextmanager
def _board(ray: Any, report: Report) -> Iterator[Any]:
    """Where the first worker writes how far it is; this process reads it, and tells."""
    # Where its node is lost it is made anew, with nothing on it, and whoever asks meanwhile waits.
    board = ray.remote(_Board).options(num_cpus=0, max_restarts=-1, max_task_retries=-1).remote()
    stop = threading.Event()

    def read() -> None:
        while not stop.wait(_TOLD_EVERY):
            try:
                told = ray.get(board.last.remote())
            except ray.exceptions.RayError:  # training goes on in silence
                return
            if told is not None:
                report(told)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield board
    finally:
        stop.set()
        reader.join(_LAST_WORDS)


class _Board:
    """Holds the last thing told, and what was wrong."""

    def __init__(self) -> None:
        self._last: Progress | None = None
        self._problem: tuple[str, str] | None = None

    def fail(self, problem: str, hint: str) -> None:
        self._problem = (problem, hint)

    def problem(self) -> tuple[str, str] | None:
        return self._problem

    def tell(self, progress: Progress) -> None:
        self._last = progress

    def last(self) -> Progress | None:
        return self._last


# What follows runs on the workers.


def _work(config: dict[str, Any]) -> None:
    import ray

    board = config["board"]
    if ray.get(board.problem.remote()):  # what was wrong is wrong again, however often Ray starts it
        return
    try:
        _train(config)
    except LostWorkerError:  # this is not wrong again
        raise
    except ParabitError as problem:
        ray.get(board.fail.remote(problem.problem, problem.hint))
        raise


def _train(config: dict[str, Any]) -> None:
    from ray.train import get_context

    texts: CountedTexts = config["texts"]
    if not texts.vocabulary.exists():
        raise TrainingError(
            f"a node of the cluster does not see {texts.vocabulary.parent}",
            hint="save the model to a folder that all nodes share",
        )
    limit_cores(config["cores"])
    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last > _TOLD_EVERY:
            last = time.monotonic()
            config["board"].tell.remote(progress)

    model = ParagraphVectors(**config["parameters"])
    model.fit(texts, work=config["work"], resume=True, checkpoint_every=config["every"], report=report)
    if get_context().get_world_rank() == 0:
        # The driver has made sure that no model of anybody's is there; one that is was saved by a worker lost since.
        model.save(config["output"], slim=config["slim"], overwrite=True)

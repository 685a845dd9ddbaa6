"""A Ray cluster to work on: one that answers within seconds, with this very parabit on each of its nodes."""

import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from parabit import __version__
from parabit.errors import ClusterError, Interrupted, ParabitError
from parabit.extras import need

_PATIENCE = 5.0  # seconds, with an address that does not answer
_CHECKED = 60.0  # seconds, with a node that is asked for its versions
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # HTTP/2's first words
_SETTINGS = 4  # the kind of frame that every HTTP/2 server answers with


@contextmanager
def connected(address: str | None = None) -> Iterator[Any]:
    """The module `ray`, connected to a cluster until the block ends.

    `address` is HOST:PORT of the cluster's head, as seen from one of its nodes, `auto` for the cluster that this
    machine is a node of, or ray://HOST:PORT from elsewhere. Without one the environment variable RAY_ADDRESS counts;
    where there is none either, Ray is started on this machine alone.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray's C++ says much on standard error that is of no use here; what goes wrong is raised.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    ray = need("ray", "ray", ClusterError)
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if found := re.fullmatch(r"(?:ray://)?(.+):(\d+)", address):
        _need_answer(address, found[1], int(found[2]))
    elif address not in ("auto", "local"):
        raise ClusterError(f"{address!r} is no address of Ray", hint="give HOST:PORT, ray://HOST:PORT or auto")
    before, heard = signal.getsignal(signal.SIGTERM), []

    def hear(number: int, frame: FrameType | None) -> NoReturn:
        heard.append(number)
        raise KeyboardInterrupt  # which Ray lets pass

    try:
        with _hushed():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, runtime_env=_one_core_each())
    except SystemExit as stop:  # Ray hears the signal in a way of its own
        raise SystemExit(128 + signal.SIGTERM) from stop
    except (ConnectionError, RuntimeError, ValueError, OSError) as problem:
        reason = " ".join(str(problem).split())[:300]
        where = "Ray cannot be started here" if address == "local" else f"no Ray cluster can be used at {address}"
        raise ClusterError(f"{where}: {reason}", hint="look at `ray status` there") from problem
    main = threading.current_thread() is threading.main_thread()
    if main:  # Ray ends at this signal in ways of its own, and as often as not without a word
        signal.signal(signal.SIGTERM, hear if before is not signal.SIG_IGN else before)
    try:
        if address != "local":  # a cluster that has just been started here has what is installed here
            _need_this_version(ray)
        yield ray
    except ray.exceptions.RayError as problem:
        raise in_words(problem) from problem
    except KeyboardInterrupt as stop:
        if heard:
            raise Interrupted("interrupted", heard[0]) from stop
        raise
    finally:
        ray.shutdown()
        if main:
            signal.signal(signal.SIGTERM, before)


def in_words(problem: BaseException) -> ParabitError:
    """What is behind an error that Ray has wrapped: parabit's own, or else that of the cluster."""
    from ray.exceptions import RayTaskError

    waiting: list[BaseException | None] = [problem]
    seen: list[BaseException] = []
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, ParabitError) and not isinstance(one, RayTaskError):  # which has a traceback for its words
            return one
        if one is not None and one not in seen:
            seen.append(one)
            waiting += [getattr(one, "cause", None), getattr(one, "_base_exc", None), one.__cause__]
    reason = " ".join(str(seen[-1]).split())
    return ClusterError(f"the cluster could not do it: {reason[-500:]}", hint="run the same command again")


def _one_core_each() -> dict[str, Any]:
    """The environment of workers: polars would start as many threads in each as its machine has cores."""
    return {"env_vars": {"POLARS_MAX_THREADS": "1"}}


@contextmanager
def _hushed() -> Iterator[None]:
    """Nothing on standard error: Ray's C++ tells there that it was told to be silent."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _need_answer(address: str, host: str, port: int) -> None:
    """Raise where nobody answers at an address, or not as Ray does; Ray itself would try for two minutes."""
    hint = "is the cluster up, and is the port that of its head (6379 unless set, 10001 for ray://)?"
    try:
        with socket.create_connection((host.strip("[]"), port), _PATIENCE) as connection:
            if os.environ.get("RAY_USE_TLS") == "1":  # it would not understand
                return
            connection.sendall(_HELLO)
            answer = connection.recv(9)
    except OSError as problem:
        raise ClusterError(
            f"no Ray cluster answers at {address}: {problem.strerror or problem}", hint=hint
        ) from problem
    if len(answer) < 4 or answer[3] != _SETTINGS:
        raise ClusterError(f"what answers at {address} is no Ray cluster", hint=hint)


def most_workers(ray: Any, cores: int) -> int:
    """How many workers with so many cores the nodes of a cluster have room for."""
    return sum(int(node["Resources"].get("CPU", 0)) // cores for node in ray.nodes() if node["Alive"])


def _need_this_version(ray: Any) -> None:
    """Raise where a node lacks parabit or has another one: its codes might differ."""
    import polars as pl

    def versions() -> dict[str, str]:
        # A function inside another travels whole, so that a node without parabit can run it.
        from importlib.metadata import PackageNotFoundError, version

        found = {}
        for name in ("parabit", "polars"):
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = ""
        try:
            import parabit

            found["parabit"] = parabit.__version__
        except ImportError:
            found["parabit"] = ""
        return found

    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"]]
    asked = {
        node["NodeManagerAddress"] + " " + node["NodeID"][:8]: ray.remote(versions)
        .options(num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
        .remote()
        for node in nodes
    }
    for node, reference in asked.items():
        try:
            found = ray.get(reference, timeout=_CHECKED)
        except ray.exceptions.RayError as problem:
            raise ClusterError(
                f"the node {node} of the cluster does not work: {' '.join(str(problem).split())[:300]}",
                hint="look at `ray status` there",
            ) from problem
        for name, here in (("parabit", __version__), ("polars", pl.__version__)):
            if found[name] != here:
                there = f"has {name} {found[name]}" if found[name] else f"has no {name}"
                raise ClusterError(
                    f"the node {node} of the cluster {there}, and here it is {here}",
                    hint=f"install on every node: pip install 'parabit[ray]=={__version__}' {name}=={here}",
                )

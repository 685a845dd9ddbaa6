"""Kills every verb that writes, and compares what is left with a model in plain Python.

    python tests/attacks/kills.py --kills 300          # by signals at random times, and at system calls
    python tests/attacks/kills.py --verb sync --seed 7 # one verb

Real processes are killed: by SIGKILL, SIGINT or SIGTERM at a random time of their work, and by strace at the N-th
fsync, rename, unlink and so on. Afterwards nothing acknowledged may be missing, nothing may be there by half, a reader
without permission must not deny what is there, and two syncs must make the index what the folder is.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

from attack_results import keep
from isolation import import_all, run_parabit
from verbs import VERBS, Attempt, again, litter_in, prepare, problems_after
from world import State, World

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
# How Python, and tantivy in Rust, make things durable and visible.
CALLS = (
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "rmdir",
    "ftruncate",
)
DOCUMENTS = 80
_SLOWEST = 120.0  # seconds of a command, under strace on a busy machine
_CALL = re.compile(r"^(\d+) +(\w+)\(", re.MULTILINE)
_FAILURE = re.compile(r"Traceback|unexpected |please report")


@dataclass(frozen=True)
class Stop:
    """How a command is stopped: by a signal after some seconds, or at the N-th system call of a name."""

    signal: int = signal.SIGKILL
    after: float = 0.0
    call: str = ""
    number: int = 0

    def __str__(self) -> str:
        if self.call:
            return f"{self.call} {self.number}"
        return f"{signal.Signals(self.signal).name} after {self.after:.3f} s"


@dataclass
class Kill:
    """What came of a kill."""

    verb: str
    stop: str
    finished: bool  # before it was killed
    outcome: str = ""  # before, after or between
    problems: list[str] = field(default_factory=list)
    saved: str = ""  # where the world is kept, if something was wrong


def run_and_stop(command: list[str], stop: Stop, folder: Path) -> tuple[int, str]:
    """Run a command until it ends or is killed; its exit status and its errors."""
    if stop.call:
        # Under strace's filter for fewer stops (--seccomp-bpf) signals are not delivered.
        injected = f"inject={stop.call}:signal=KILL:when={stop.number}"
        command = [
            "strace",
            "-f",
            "-o",
            "/dev/null",
            "-e",
            f"trace={stop.call}",
            "-e",
            injected,
            *command,
        ]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            process.wait(_SLOWEST if stop.call else stop.after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL if stop.call else stop.signal)
        try:
            status = process.wait(_SLOWEST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        errors.seek(0)
        return status, errors.read().decode(errors="replace")


def seconds_of(command: list[str], folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return time.perf_counter() - start


def calls_of(command: list[str], folder: Path) -> dict[str, int]:
    """How often a command makes each system call, in the thread that makes it most often."""
    log = folder / "strace.log"
    strace = ["strace", "-f", "--seccomp-bpf", "-o", str(log), "-e", f"trace={','.join(CALLS)}"]
    subprocess.run([*strace, *command], cwd=folder, capture_output=True, check=True)
    of_thread = Counter(_CALL.findall(log.read_text()))
    log.unlink()
    most: dict[str, int] = defaultdict(int)
    for (_, call), count in of_thread.items():
        most[call] = max(most[call], count)
    return most


def stops_by_signal(verb: str, world: World, count: int) -> Iterator[Stop]:
    """Signals at random times, of the part of the work that comes after Python has started."""
    attempt = prepare(verb, world)
    seconds = seconds_of(attempt.command, world.folder)
    settle(attempt, world)
    for number in range(count):
        after = world.rng.uniform(0.25 * seconds, 0.95 * seconds)
        yield Stop(SIGNALS[number % len(SIGNALS)], after)


def stops_at_calls(verb: str, world: World, count: int) -> Iterator[Stop]:
    """The N-th system call for every N, or for some if there are more than `count`."""
    attempt = prepare(verb, world)
    stops = [
        Stop(call=call, number=number)
        for call, most in sorted(calls_of(attempt.command, world.folder).items())
        for number in range(1, most + 1)
    ]
    settle(attempt, world)
    rng = random.Random(world.seed)
    yield from stops if len(stops) <= count else rng.sample(stops, count)


def settle(attempt: Attempt, world: World) -> None:
    """The command has run to its end: so has the model."""
    if attempt.after is not None:
        world.indexed = dict(attempt.after)


def kill(verb: str, world: World, stop: Stop) -> Kill:
    """Run a verb, stop it, and look at everything that may be wrong."""
    attempt = prepare(verb, world)
    status, errors = run_and_stop(attempt.command, stop, world.folder)
    done = Kill(verb, str(stop), finished=status == 0)
    if attempt.is_command:  # Python shows a traceback of its own for an interrupt
        failures = [line for line in errors.splitlines() if _FAILURE.search(line)]
        done.problems += [f"it said: {line}" for line in failures]
    wrong, state, _ = problems_after(attempt, world, done.finished)
    done.problems += wrong
    done.outcome = _outcome(attempt, state)
    world.indexed = {} if state is None else state
    if state is not None:
        verified = run_parabit("info", world.index, "--verify")
        if verified.status:
            done.problems.append(f"info --verify: {verified.errors.strip()}")
        world.change_files()
        done.problems += _synced_twice(world)
    status, errors = run_and_stop(again(attempt, world), Stop(after=_SLOWEST), world.folder)
    if status:
        done.problems.append(f"it does not work again: {errors.strip()[-300:]}")
    done.problems += [f"litter: {name}" for name in litter_in(world.folder)]
    # Whatever the repeated command did to the documents, sync has the last word.
    final = run_parabit("sync", world.index, "--quiet")
    if final.status:
        done.problems.append(f"sync at the end: {final.errors.strip()}")
    world.indexed = _state_now(world)
    return done


def _outcome(attempt: Attempt, state: State | None) -> str:
    if state == attempt.after:
        return "after"
    return "before" if state == attempt.before else "between"


def _synced_twice(world: World) -> list[str]:
    """What is wrong after two syncs: the index must hold the folder, and the second has nothing to do."""
    wanted = world.synced
    for _ in range(2):
        ending = run_parabit("sync", world.index, "--json")
        if ending.status:
            return [f"sync: {ending.errors.strip()}"]
    result = json.loads(ending.output)
    kinds = ("added", "replaced", "renamed", "deleted")
    problems = [f"a second sync: {result[kind]} {kind}" for kind in kinds if result[kind]]
    world.indexed = wanted
    attempt = Attempt("sync", [], wanted, wanted)
    wrong, _, _ = problems_after(attempt, world, finished=True)
    return [*problems, *(f"after two syncs: {problem}" for problem in wrong)]


def _state_now(world: World) -> State:
    from observation import Observation, observe, state_of

    observation: Observation | None = observe(world.index, world.numbers, write=False).value
    return {} if observation is None else state_of(observation, world.numbers)


def work(
    verb: str, how: str, count: int, seed: int, folder: Path, keep_worlds: Path | None
) -> list[Kill]:
    """Kill one verb again and again; a world in which something was wrong is kept, and another one made."""
    kills: list[Kill] = []
    world = World(folder, seed).make(DOCUMENTS)
    choose = stops_by_signal if how == "signals" else stops_at_calls
    for stop in choose(verb, world, count):
        try:
            done = kill(verb, world, stop)
        except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as problem:
            done = Kill(verb, str(stop), finished=False, problems=[f"the harness: {problem!r}"])
        kills.append(done)
        if done.problems:
            if keep_worlds is not None:
                done.saved = _keep_world(world, keep_worlds, f"{verb}-{stop}-seed{seed}")
            world = World(folder, world.rng.randrange(1 << 30)).make(DOCUMENTS)
    return kills


def _keep_world(world: World, folder: Path, name: str) -> str:
    target = folder / re.sub(r"\W+", "-", name)
    if target.exists() or len([*folder.glob("*")]) >= 20:  # enough to see what is wrong
        return ""
    shutil.copytree(world.folder, target, symlinks=True)
    return str(target)


def tried(
    verbs: list[str], by_signal: int, by_call: int, seed: int, jobs: int, keep_worlds: Path | None
) -> list[Kill]:
    """Kill some verbs so often each, several at a time."""
    has_strace = shutil.which("strace") is not None
    if by_call and not has_strace:
        print("strace is not installed: no kills at system calls")
    ways = {"signals": by_signal, "calls": by_call if has_strace else 0}
    with (
        tempfile.TemporaryDirectory(prefix="parabit-kills-") as folder,
        ProcessPoolExecutor(jobs, get_context("fork")) as pool,
    ):
        Path(folder).chmod(0o755)
        futures = [
            pool.submit(work, verb, how, count, seed, Path(folder, f"{how}-{place}"), keep_worlds)
            for how, count in ways.items()
            if count
            for place, verb in enumerate(verbs)
        ]
        kills = []
        for future in futures:
            done = future.result()
            kills += done
            _say(done)
        return kills


def _say(kills: list[Kill]) -> None:
    outcomes = Counter(kill.outcome for kill in kills if not kill.finished)
    bad = [kill for kill in kills if kill.problems]
    verb = kills[0].verb if kills else "nothing"
    print(
        f"{verb}: {len(kills)} runs, {sum(kill.finished for kill in kills)} ended first, "
        f"{outcomes['before']} before, {outcomes['after']} after, {outcomes['between']} between; "
        f"{len(bad)} with problems",
        flush=True,
    )
    for kill in bad[:5]:
        print(f"  {kill.stop}: {'; '.join(kill.problems[:4])} {kill.saved}", flush=True)


def _kind_of(problem: str) -> str:
    """A problem without names and numbers, so that it can be counted."""
    return re.sub(r"[\w./'-]*\d[\w./'-]*", "N", re.sub(r"\[.*\]", "[]", problem))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=300, help="by signals, over all verbs")
    parser.add_argument(
        "--calls", type=int, default=10_000, help="at system calls, per verb at most"
    )
    parser.add_argument("--verb", choices=VERBS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--worlds", type=Path, help="keep worlds with problems in this folder")
    parser.add_argument(
        "--keep", action="store_true", help="write the result for the documentation"
    )
    given = parser.parse_args()
    import_all()
    verbs = given.verb or [*VERBS]
    if given.worlds is not None:
        given.worlds.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    by_signal = -(-given.kills // len(verbs))
    kills = tried(verbs, by_signal, given.calls, given.seed, given.jobs, given.worlds)
    bad = [kill for kill in kills if kill.problems]
    kinds = Counter(kind for kill in bad for kind in {*map(_kind_of, kill.problems)})
    for kind, count in kinds.most_common(30):
        print(f"{count:5}  {kind[:200]}")
    seconds = time.perf_counter() - start
    print(f"{len(kills)} runs in {seconds:.0f} s, {len(bad)} with problems")
    if given.keep:
        ways = {
            "by signals": [kill for kill in kills if kill.stop.startswith("SIG")],
            "at system calls": [kill for kill in kills if not kill.stop.startswith("SIG")],
        }
        summary = {
            way: {"runs": len(some), "problems": sum(bool(kill.problems) for kill in some)}
            for way, some in ways.items()
        }
        keep("kills", {**summary, "what": [asdict(kill) for kill in bad]}, seconds)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

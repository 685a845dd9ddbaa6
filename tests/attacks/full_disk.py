"""Every verb that writes, on a disk that becomes full.

    python tests/attacks/full_disk.py --runs 50       # as root, on a small disk in memory that it mounts

A ballast leaves so many bytes and no more. Then a verb must have done its work, or fail with a clear error and leave
everything as it was; and once there is room again the same command works. With strace, single system calls fail, too:
as if the disk became full at the N-th write, or broke at the N-th fsync.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from attack_results import keep
from isolation import import_all, run_parabit
from verbs import VERBS, Attempt, again, litter_in, prepare, problems_after
from world import State, World

DISK_MB = 24
DOCUMENTS = 60
_ERRORS = {
    "write": "ENOSPC",
    "fsync": "EIO",
    "rename": "EIO",
    "ftruncate": "ENOSPC",
    "mkdir": "ENOSPC",
}
_FAILURE = re.compile(r"Traceback|unexpected |please report")


@dataclass
class Run:
    """A verb on a disk without room, and what came of it."""

    verb: str
    where: str
    status: int = 0
    outcome: str = ""
    problems: list[str] = field(default_factory=list)


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path | None]:
    """A disk of a few megabytes; None where none can be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="parabit-disk-"))
    options = f"size={megabytes}m,mode=755"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    try:
        yield folder if mounted.returncode == 0 else None
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        shutil.rmtree(folder, ignore_errors=True)


class Ballast:
    """A file that takes all room but some."""

    def __init__(self, disk: Path) -> None:
        self._disk, self._path = disk, disk / "ballast"

    def leave(self, size: int) -> None:
        """Fill the disk until this many bytes are left, to the page."""
        free = self.free()
        with self._path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, free - size))

    def drop(self) -> None:
        self._path.unlink(missing_ok=True)

    def free(self) -> int:
        state = os.statvfs(self._disk)
        return state.f_bavail * state.f_frsize


def run(command: list[str], folder: Path) -> tuple[int, str]:
    """The exit status of a command, and its errors."""
    environment = {**os.environ, "TMPDIR": str(folder)}  # what it puts aside takes room as well
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, errors="replace", timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def need_of(attempt: Attempt, world: World, ballast: Ballast) -> int:
    """How many bytes a command takes at most while it runs."""
    free = ballast.free()
    least = [free]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            least.append(ballast.free())

    watcher = threading.Thread(target=watch)
    watcher.start()
    status, errors = run(attempt.command, world.folder)
    done.set()
    watcher.join()  # before anything forks again
    if status:
        raise RuntimeError(f"{attempt.verb}: {errors}")
    return free - min(least)


def disturb(
    world: World, attempt: Attempt, where: str, command: list[str], ballast: Ballast
) -> Run:
    """Run a command that meets a full or broken disk, then look at everything; the room comes back in between."""
    status, errors = run(command, world.folder)
    result = Run(attempt.verb, where, status)
    if status not in (0, 1):
        result.problems.append(f"it ended with {status}: {errors.strip()[-200:]}")
    if attempt.is_command and _FAILURE.search(errors):
        result.problems.append(f"it said: {errors.strip()[-200:]}")
    # Twice: what one reader does for lack of room must not spoil it for the next.
    for time_of_look in ("full", "full, again"):
        wrong, _, _ = problems_after(attempt, world, status == 0, is_full=True)
        result.problems += [f"{time_of_look}: {problem}" for problem in wrong]
    ballast.drop()
    wrong, state, _ = problems_after(attempt, world, status == 0)
    result.problems += [f"with room: {problem}" for problem in wrong]
    result.outcome = _outcome(attempt, state)
    world.indexed = {} if state is None else state
    if state is not None:
        verified = run_parabit("info", world.index, "--verify")
        if verified.status:
            result.problems.append(f"info --verify: {verified.errors.strip()}")
    repeated, errors = run(again(attempt, world), world.folder)
    if repeated:
        result.problems.append(f"it does not work again: {errors.strip()[-200:]}")
    result.problems += [f"litter: {name}" for name in litter_in(world.folder)]
    result.problems += _synced(world)
    return result


def _outcome(attempt: Attempt, state: State | None) -> str:
    if state == attempt.after:
        return "after"
    return "before" if state == attempt.before else "between"


def _synced(world: World) -> list[str]:
    """What is wrong after a sync, which the second has nothing to add to."""
    for _ in range(2):
        ending = run_parabit("sync", world.index, "--json")
        if ending.status:
            return [f"sync: {ending.errors.strip()}"]
    result = json.loads(ending.output)
    changes = [kind for kind in ("added", "replaced", "renamed", "deleted") if result[kind]]
    return [f"a second sync has {', '.join(changes)}"] if changes else []


def runs_of(verb: str, world: World, ballast: Ballast, count: int) -> Iterator[Run]:
    """A verb on a disk that leaves it less and less of what it needs."""
    fresh = World(world.folder, world.seed).make(DOCUMENTS)
    attempt = prepare(verb, fresh)
    need = need_of(attempt, fresh, ballast)
    for number in range(count):
        world = World(fresh.folder, fresh.seed + number).make(DOCUMENTS)
        attempt = prepare(verb, world)
        room = need * number // count
        ballast.leave(room)
        try:
            yield disturb(world, attempt, f"{room:,} of {need:,} bytes", attempt.command, ballast)
        finally:
            ballast.drop()


def runs_of_errors(verb: str, world: World, ballast: Ballast, count: int) -> Iterator[Run]:
    """A verb whose N-th system call of a kind fails."""
    for number in range(count):
        world = World(world.folder, world.seed + number).make(DOCUMENTS)
        attempt = prepare(verb, world)
        call = world.rng.choice([*_ERRORS])
        nth = world.rng.randint(1, 40 if call == "write" else 15)
        injected = f"inject={call}:error={_ERRORS[call]}:when={nth}+"
        strace = ["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", f"trace={call}"]
        command = [*strace, "-e", injected, *attempt.command]
        yield disturb(world, attempt, f"{_ERRORS[call]} from {call} {nth} on", command, ballast)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=50, help="on a full disk, over all verbs")
    parser.add_argument("--errors", type=int, default=50, help="with failing system calls")
    parser.add_argument("--verb", choices=VERBS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--keep", action="store_true", help="write the result for the documentation"
    )
    given = parser.parse_args()
    start = time.perf_counter()
    import_all()
    verbs = given.verb or [*VERBS]
    done: list[Run] = []
    with small_disk(DISK_MB) as disk:
        if disk is None:
            print("no disk can be mounted here: run it as root")
            sys.exit(0)
        ballast = Ballast(disk)
        has_strace = shutil.which("strace") is not None
        for number, verb in enumerate(verbs):
            world = World(disk / "world", given.seed + 1000 * number)
            shares = (-(-given.runs // len(verbs)), -(-given.errors // len(verbs)))
            runs = [*runs_of(verb, world, ballast, shares[0])] if given.runs else []
            if has_strace and given.errors:
                runs += runs_of_errors(verb, world, ballast, shares[1])
            outcomes = Counter(run.outcome for run in runs)
            bad = [run for run in runs if run.problems]
            print(
                f"{verb}: {len(runs)} runs, {dict(outcomes)}, {len(bad)} with problems", flush=True
            )
            for run in bad[:6]:
                print(f"  {run.where}: {'; '.join(run.problems[:3])[:600]}", flush=True)
            done += runs
    bad = [run for run in done if run.problems]
    print(f"{len(done)} runs in {time.perf_counter() - start:.0f} s, {len(bad)} with problems")
    if given.keep:
        ways = {
            "full disk": [run for run in done if " from " not in run.where],
            "failing calls": [run for run in done if " from " in run.where],
        }
        summary = {
            way: {"runs": len(some), "problems": sum(bool(run.problems) for run in some)}
            for way, some in ways.items()
        }
        what = [asdict(run) for run in bad]
        keep("full_disk", {**summary, "what": what}, time.perf_counter() - start)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

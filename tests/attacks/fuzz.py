"""Tries inputs that nobody would give, each in a process that may crash or hang.

    python tests/attacks/fuzz.py                        # every target for 20 seconds
    FUZZ_SECONDS=600 python tests/attacks/fuzz.py --target readers --seed 7
    python tests/attacks/fuzz.py --target readers --replay .fuzz/readers-0-12.case

A case fails if it ends in anything but an answer or an error that parabit raises on purpose: another exception, an
answer 500, a crash, more time or memory than a case may take, or a change outside the folder that it is about. Failing
cases are kept in `.fuzz`. The same seed tries the same cases.
"""

import argparse
import json
import mmap
import os
import random
import re
import resource
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from attack_results import keep
from fuzz_targets import TARGETS, Attempt, Target
from isolation import Child, Limits, import_all, isolated

KEPT = Path(__file__).parents[2] / ".fuzz"
_MEMORY_MB = 6144  # addresses of a child; libraries reserve about 2,000 without use
_KEPT_OF_A_KIND = 2
_WATCHED = struct.Struct("<qd")  # the case that is being tried, and since when


@dataclass
class Failure:
    """A case that failed, and how."""

    target: str
    seed: int
    number: int
    problem: str
    case: str = ""  # the file that it is kept in


@dataclass
class Tried:
    """What came of the cases of one target."""

    target: str
    cases: int = 0
    failures: list[Failure] = field(default_factory=list)
    peak_mb: int = 0
    seconds: float = 0.0


def case_of(target: Target, seeds: list[bytes], seed: int, number: int) -> bytes:
    """The cases that are known come first, then changes to them; a number says which."""
    if number < len(seeds):
        return seeds[number]
    rng = random.Random(f"{target.name} {seed} {number}")
    return target.change(rng.choice(seeds), rng)


def try_cases(
    target: Target, seeds: list[bytes], folder: Path, seed: int, first: int, last: int,
    until: float, watched: mmap.mmap, said: Path,
) -> bool:  # fmt: skip
    """Try one case after the other, in a child; each that fails is a line in the file `said`.

    Returns whether all were tried; if not, another child is to go on, as this one has taken too much memory.
    """
    attempt = target.open(folder)
    for number in range(first, last):
        case = case_of(target, seeds, seed, number)
        if time.time() > until and number >= len(seeds):
            break
        watched[: _WATCHED.size] = _WATCHED.pack(number, time.time())
        problem = problem_of(attempt, case)
        taken_mb = _peak_mb()
        if taken_mb > target.most_mb:
            problem = f"took {taken_mb:,} MB; {problem}"
        if problem:
            with said.open("a") as file:
                file.write(json.dumps([number, problem]) + "\n")
        watched[: _WATCHED.size] = _WATCHED.pack(number + 1, time.time())
        if taken_mb > target.most_mb:
            return False
    return True


def _peak_mb() -> int:
    """The most memory that this process has had, or one that it started and that has ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in whose) // 1024


def problem_of(attempt: Attempt, case: bytes) -> str:
    """What is wrong after a case, with the place in the code if it is an exception; empty if nothing is."""
    from parabit import ParabitError

    try:
        return attempt(case)
    except ParabitError:
        return ""
    except (Exception, MemoryError) as problem:
        frames = traceback.extract_tb(problem.__traceback__)
        ours = [frame for frame in frames if "parabit" in frame.filename] or frames
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
        return f"{type(problem).__name__} at {place}: {' '.join(str(problem).split())[:200]}"


def try_target(
    target: Target, folder: Path, seconds: float, most: int, seed: int, known: bool = True
) -> Tried:
    """Try cases of a target for some time, or so many; a child that crashes or hangs is replaced by another."""
    tried = Tried(target.name)
    start = time.perf_counter()
    folder = folder / target.name
    folder.mkdir()
    said = folder / "failures"
    seeds = isolated(partial(target.seeds, folder))
    if seeds.value is None:
        raise RuntimeError(f"{target.name}: no seeds: {seeds.traceback or seeds.errors}")
    watched = mmap.mmap(-1, mmap.PAGESIZE)
    first = 0 if known else len(seeds.value)
    most += first
    number, until = first, time.time() + seconds
    while number < most and (time.time() < until or number < len(seeds.value)):
        watched[: _WATCHED.size] = _WATCHED.pack(number, time.time())
        work = partial(
            try_cases,
            target,
            seeds.value,
            Path(folder),
            seed,
            number,
            most,
            until,
            watched,
            said,
        )
        child = Child(work, Limits(memory_mb=_MEMORY_MB))
        hung = _wait(child, watched, target.seconds)
        ending = child.end()
        tried.peak_mb = max(tried.peak_mb, ending.peak_mb)
        number, _ = _WATCHED.unpack(watched[: _WATCHED.size])
        if ending.status == 0 and not hung:
            if ending.value:
                break
            continue
        problem = f"no end within {target.seconds:g} s" if hung else _how_ended(ending.status)
        if ending.traceback:
            problem = ending.traceback.strip().splitlines()[-1]
        with said.open("a") as file:
            file.write(json.dumps([number, problem]) + "\n")
        number += 1
    tried.cases = number - first
    lines = said.read_text().splitlines() if said.exists() else []
    kinds = Counter[str]()
    for failed, problem in map(json.loads, lines):
        failure = Failure(target.name, seed, failed, problem)
        kinds[_kind_of(problem)] += 1
        if kinds[_kind_of(problem)] <= _KEPT_OF_A_KIND:
            failure.case = _keep(failure, case_of(target, seeds.value, seed, failed))
        tried.failures.append(failure)
    tried.seconds = time.perf_counter() - start
    return tried


def _how_ended(status: int) -> str:
    return f"killed by signal {-status}" if status < 0 else f"ended with {status}"


def _wait(child: Child, watched: mmap.mmap, seconds: float) -> bool:
    """Wait until a child has ended, or has been at one case for too long; whether it has."""
    while not child.ended(0.1):
        _, since = _WATCHED.unpack(watched[: _WATCHED.size])
        if time.time() - since > seconds:
            return True
    return False


def _keep(failure: Failure, case: bytes) -> str:
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{failure.target}-{failure.seed}-{failure.number}.case"
    path.write_bytes(case)
    return os.path.relpath(path)


def _kind_of(problem: str) -> str:
    """A failure without what is different each time."""
    return re.sub(r"0x[0-9a-f]+|[\d,]{3,}|'.*'|\".*\"", "…", problem.partition(": ")[0])


def replay(target: Target, path: Path) -> None:
    """Try one case that was kept, here and now."""
    with tempfile.TemporaryDirectory(prefix="parabit-replay-") as folder:
        own_folder = Path(folder, target.name)
        own_folder.mkdir()
        target.seeds(own_folder)
        problem = target.open(own_folder)(path.read_bytes())
    print(problem or "nothing is wrong")
    sys.exit(1 if problem else 0)


def report(tried: Tried) -> None:
    rate = tried.cases / max(tried.seconds, 0.001)
    print(
        f"{tried.target}: {tried.cases:,} cases in {tried.seconds:.0f} s ({rate:,.0f} per second), "
        f"{len(tried.failures)} failed, {tried.peak_mb} MB at most",
        flush=True,
    )
    kinds = Counter(_kind_of(failure.problem) for failure in tried.failures)
    for kind, count in kinds.most_common():
        examples = [one for one in tried.failures if _kind_of(one.problem) == kind]
        first = examples[0]
        again = f"seed {first.seed}, case {first.number}, {first.case}"
        print(f"  {count} x {first.problem[:300]}\n      {again}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--target", choices=[*TARGETS], action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1 << 40, help="so many, the known ones first")
    parser.add_argument("--no-known", action="store_true", help="leave out the known ones")
    parser.add_argument("--replay", type=Path, help="a file of .fuzz")
    parser.add_argument(
        "--keep", action="store_true", help="write the result for the documentation"
    )
    given = parser.parse_args()
    seconds = float(os.environ.get("FUZZ_SECONDS", "20"))
    targets = [TARGETS[name] for name in given.target or TARGETS]
    if given.replay is not None:
        replay(targets[0], given.replay)
    import_all()
    start = time.perf_counter()
    print(f"seed {given.seed}, {seconds:g} s for each target")
    done = []
    with tempfile.TemporaryDirectory(prefix="parabit-fuzz-") as folder:
        for target in targets:
            tried = try_target(
                target, Path(folder), seconds, given.cases, given.seed, not given.no_known
            )
            report(tried)
            done.append(tried)
    if given.keep:
        summary = {
            "seed": given.seed,
            "targets": {
                one.target: {
                    "cases": one.cases,
                    "failures": [failure.problem for failure in one.failures],
                    "peak_mb": one.peak_mb,
                }
                for one in done
            },
        }
        keep("fuzz", summary, time.perf_counter() - start)
    failures = sum(len(one.failures) for one in done)
    print(f"{sum(one.cases for one in done):,} cases, {failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

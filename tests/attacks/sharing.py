"""One index in many hands: threads that share it, and processes that write it.

    python tests/attacks/sharing.py --seconds 30

Readers must never see an error, or anything but the documents that were there before or after a step; and a writer
beside them must not wait for them.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from attack_results import keep
from world import text_of, word_of

READERS = 20
REFRESHING = 5  # of the readers; the others see what these have read
_ALWAYS = 40  # documents that no writer touches
_SLOWEST_ADD = 2.0  # seconds; alone an addition takes hundredths

# Another process adds and deletes documents, and merges now and then.
_WRITER = """
import sys, time
sys.path.insert(0, sys.argv[3])
from parabit import Document, Index
from world import text_of
number, until = 1000, time.time() + float(sys.argv[2])
with Index.open(sys.argv[1], write=True) as index:
    while time.time() < until:
        ids = [f"new{number + place}" for place in range(5)]
        index.add([Document(id, text_of(number + place)) for place, id in enumerate(ids)])
        index.delete(ids[:4])
        if number % 50 == 0:
            index.compact()
        number += 5
"""


@dataclass
class Shared:
    """What came of sharing an index in one way."""

    way: str
    searches: int = 0
    additions: int = 0
    slowest_addition: float = 0.0
    problems: list[str] = field(default_factory=list)


class Readers:
    """Threads that search one index all the time, and remember what was wrong."""

    def __init__(self, index: Any, count: int, refreshing: int, seed: int) -> None:
        self.searches, self.problems = Counter[int](), list[str]()
        self._index, self._stop = index, threading.Event()
        self._threads = [
            threading.Thread(target=self._read, args=(number, number < refreshing, seed))
            for number in range(count)
        ]

    def __enter__(self) -> "Readers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        if any(thread.is_alive() for thread in self._threads):
            self.problems.append("a reading thread hangs")

    def _read(self, thread: int, refreshes: bool, seed: int) -> None:
        rng = random.Random(f"{seed} {thread}")
        while not self._stop.is_set():
            try:
                problem = self._look(rng, refreshes)
            except BaseException as error:
                frame = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{Path(frame.filename).name}:{frame.lineno}"
                problem = f"{type(error).__name__} at {place}: {str(error)[:200]}"
            if problem:
                self.problems.append(problem)
            self.searches[thread] += 1

    def _look(self, rng: random.Random, refreshes: bool) -> str:
        """Search for a document that is always there, in one of the ways; what is wrong."""
        index = self._index
        if refreshes:
            index.refresh()
        number = rng.randrange(_ALWAYS)
        identity = f"always{number}"
        way = rng.randrange(4)
        if way == 0:
            found = index.search([word_of(number)], k=3, rank="words").ids[0]
            return "" if found == [identity] else f"its word finds {found} instead of {identity}"
        if way == 1:
            found = index.search([text_of(number)], k=3).ids[0]
            return "" if found[:1] == [identity] else f"its text finds {found}, not {identity}"
        if way == 2:
            stored = index.stored([identity])[0]
            return "" if stored.text == text_of(number) else f"{identity} has another text"
        found = index.search([text_of(number)], radius=0, rank="hamming").ids[0]
        return "" if identity in found else f"its code does not find {identity}"


def make_index(folder: Path) -> Path:
    from parabit import Document, Index, ParagraphVectors

    texts = [text_of(number) for number in range(_ALWAYS)]
    model = ParagraphVectors(20).fit(texts)
    documents = [Document(f"always{number}", text) for number, text in enumerate(texts)]
    Index.build(documents, folder, model=model).close()
    return folder


def beside_a_process(folder: Path, seconds: float, seed: int) -> Shared:
    """Twenty threads share an index that another process writes; some of them refresh it."""
    from parabit import Index

    result = Shared("20 reading threads, another process writes")
    command = [sys.executable, "-c", _WRITER, str(folder), str(seconds), str(Path(__file__).parent)]
    with Index.open(folder) as index, Readers(index, READERS, REFRESHING, seed) as readers:
        writer = subprocess.run(command, capture_output=True, text=True, check=False)
        if writer.returncode:
            result.problems.append(f"the writer: {writer.stderr.strip()[-300:]}")
    result.searches = readers.searches.total()
    result.problems += readers.problems
    return result


def beside_a_thread(
    folder: Path, seconds: float, seed: int, additions: int | None = None
) -> Shared:
    """Twenty threads share an index for writing with the one thread that writes it."""
    from parabit import Document, Index

    result = Shared("20 reading threads, one writing thread")
    until = time.monotonic() + seconds
    with Index.open(folder, write=True) as index, Readers(index, READERS, 0, seed) as readers:
        while time.monotonic() < until and result.additions != additions:
            start = time.monotonic()
            number = 500_000 + seed * 10_000 + result.additions
            try:
                index.add([Document(f"thread{number}", text_of(number))])
                found = index.search([word_of(number)], k=3, rank="words").ids[0]
                if found != [f"thread{number}"]:
                    result.problems.append(f"a document that was just added: {found}")
                if result.additions % 3 == 0:
                    index.delete(f"thread{number}")
                if result.additions % 20 == 19:
                    index.compact()
            except Exception as error:
                result.problems.append(f"the writer: {type(error).__name__}: {str(error)[:200]}")
            result.additions += 1
            result.slowest_addition = max(result.slowest_addition, time.monotonic() - start)
    result.searches = readers.searches.total()
    result.problems += readers.problems
    if not result.additions:
        result.problems.append("nothing could be added")
    return result


def after_fork(folder: Path) -> Shared:
    """A child that was forked from a process that has used an index opens one of its own and searches."""
    from parabit import Index, ParabitError

    result = Shared("a forked child opens the index")
    with Index.open(folder) as index:
        index.search(["é ü 漢字", text_of(1), text_of(2)], k=2)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with Index.open(folder) as own:
                own.search(["é ü 漢字", text_of(1), text_of(2)], k=2)
                status = 0
        except ParabitError:  # it may say that this cannot be done
            status = 0
        finally:
            os._exit(status)
    until = time.monotonic() + 30
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            if status:
                result.problems.append(f"it ended with {os.waitstatus_to_exitcode(status)}")
            result.searches = 1
            return result
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    result.problems.append("it hangs")
    return result


def shown(result: Shared) -> Shared:
    kinds = Counter(problem.split(" at ")[0][:150] for problem in result.problems)
    print(
        f"{result.way}: {result.searches:,} searches, {result.additions:,} additions, the slowest "
        f"{result.slowest_addition:.2f} s; {len(result.problems):,} problems",
        flush=True,
    )
    for kind, count in kinds.most_common(8):
        example = next(problem for problem in result.problems if problem.startswith(kind))
        print(f"  {count} x {example[:300]}", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30, help="for each way")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--additions", type=int, help="so many by the writing thread, no more")
    parser.add_argument(
        "--no-process", action="store_true", help="leave out the one that takes longer"
    )
    parser.add_argument(
        "--keep", action="store_true", help="write the result for the documentation"
    )
    given = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="parabit-sharing-") as temporary:
        folder = make_index(Path(temporary, "index"))
        results = [shown(beside_a_thread(folder, given.seconds, given.seed, given.additions))]
        alone = results[0].slowest_addition
        if given.additions is None and alone > _SLOWEST_ADD:
            results[0].problems.append(f"an addition took {alone:.1f} s")
        if not given.no_process:
            results.append(shown(beside_a_process(folder, given.seconds, given.seed)))
        results.append(shown(after_fork(folder)))
    bad = sum(len(result.problems) for result in results)
    if given.keep:
        summary = {
            result.way: {**asdict(result), "problems": Counter(result.problems)}
            for result in results
        }
        keep("sharing", summary, time.perf_counter() - start)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

"""What the benchmarks share: their options, what a result says of its measurement, and corpora of many documents."""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from math import isnan
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import parabit
from parabit import Document, ParabitError, open_corpus
from parabit.corpus.datasets import data_folder
from parabit.parallel import cores

RESULTS = Path(__file__).parent / "results"
_SOURCE = Path(parabit.__file__).parent
_FEW = 50_000  # passages that one small collection has


def options(explanation: str | None) -> argparse.ArgumentParser:
    """A parser of options, with the one that all benchmarks have."""
    parser = argparse.ArgumentParser(
        description=explanation, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--small", action="store_true", help="try it in seconds; the result is not kept"
    )
    return parser


def run(main: Callable[[], None]) -> None:
    """Run a benchmark; what it lacks is explained in one line."""
    try:
        main()
    except ParabitError as problem:
        sys.exit(f"{sys.argv[0]}: {problem}")


def _busy() -> float:
    """Seconds of all cores that were not idle since the machine started; nan if the system does not say."""
    times = Path("/proc/stat")
    if not times.exists():
        return float("nan")
    user, nice, system, _, _, *interrupts = map(int, times.read_text().splitlines()[0].split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


_STARTED = time.time(), _busy()


def about(*packages: str, threads: Any, repetitions: Any) -> dict[str, Any]:
    """When, with which code and where a result was measured, and how many cores other processes took meanwhile."""
    own, (start, busy) = sum(os.times()[:4]), _STARTED
    others = (_busy() - busy - own) / (time.time() - start)
    return {
        "date": date.today().isoformat(),
        "commit": _commit(),
        "threads": threads,
        "repetitions": repetitions,
        "processor": _processor(),
        "cores": cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "cores_of_others": None if isnan(others) else round(max(0.0, others), 2),
        "versions": _versions(packages),
    }


def _processor() -> str:
    """The name of the processor; empty if the system does not say it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), ""
    )
    return name or platform.processor()


def _versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of packages, those that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """The commit of the parabit that was measured."""
    git = ["git", "-C", str(_SOURCE)]
    done = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    changed = subprocess.run(
        [*git, "diff", "--quiet", "HEAD", "--", "."], check=False, capture_output=True
    ).returncode
    return done.stdout.strip() + (" and changes" if changed else "")


def kept(name: str) -> dict[str, Any]:
    """A result that was kept before, or an empty one."""
    path = RESULTS / f"{name}.json"
    result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return result


def keep(name: str, result: dict[str, Any], small: bool = False) -> None:
    """Write a result where it is committed, or only show that of a small trial."""
    text = json.dumps(result, indent=1)
    if small:
        print(text)
        return
    path = RESULTS / f"{name}.json"
    path.write_text(text + "\n")
    print(f"\nkept in {path.relative_to(Path(__file__).parent.parent)}")


def seconds(work: Callable[[], Any]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function of a benchmark's own file, run in a fresh process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def peak_mb() -> int:
    """The most memory that this process has had, without what its parent had."""
    [line] = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return int(line.split()[1]) // 1024


def abstracts(count: int) -> Iterator[Document]:
    """The arXiv sample over and over, each copy without another tenth of its words: not as many different documents."""
    rng, copy = random.Random(0), 0
    while count:
        for document in open_corpus("arxiv"):
            if not count:
                return
            words = [word for word in document.text.split() if not copy or rng.random() >= 0.1]
            yield Document(
                f"{copy}-{document.id}", " ".join(words), fields={"title": document.title or ""}
            )
            count -= 1
        copy += 1


def write_lines(path: Path, documents: Iterable[Document]) -> None:
    """Write documents as JSON lines."""
    with path.open("w") as file:
        for document in documents:
            file.write(
                json.dumps({"id": document.id, "text": document.text, **document.fields}) + "\n"
            )


def passages(count: int) -> tuple[int, Iterator[str]]:
    """So many different passages, none overlapping another, of all collections that are here; and their words.

    The documents are cut into pieces of equal length, the longest that give as many.
    """
    names = [
        "reuters21578",
        *(name for name in ("arxiv", "enwiki") if (data_folder() / name).exists()),
    ]
    if count < _FEW:
        names = names[:1]
    lengths = [len(document.text.split()) for name in names for document in open_corpus(name)]
    words = sum(lengths) // count
    while sum(length // words for length in lengths) < count:
        words -= 1

    def cut() -> Iterator[str]:
        for name in names:
            for document in open_corpus(name):
                there = document.text.split()
                for start in range(0, len(there) - words + 1, words):
                    yield " ".join(there[start : start + words])

    return words, cut()

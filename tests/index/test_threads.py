"""One index may be shared by threads that read, and by one that writes beside them; a forked process opens its own."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import Event

import pytest
from index_models import TEXTS, binary

from parabit import Document, Index

READERS = 8
ADDITIONS = 12


def document(number: int) -> Document:
    return Document(f"d{number}", f"own{number}word {TEXTS[number % len(TEXTS)]} naïve")


def read_until(done: Event, index: Index, seed: int, refreshes: bool) -> int:
    """Search for documents that are always there; how often every one was found and nothing else."""
    random = Random(seed)
    rounds = 0
    while not done.is_set() or not rounds:
        number = random.randrange(50)
        if refreshes:
            index.refresh()
        [hits] = index.search([f"own{number}word"], k=1, rank="words")
        assert [hit.id for hit in hits] == [f"d{number}"]
        assert hits[0].why.words
        assert len(index.search(["naïve", "telescope"], k=3)) == 2
        rounds += 1
    return rounds


def test_threads_search_an_index_that_one_of_them_writes_and_another_process_too(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "a.index"
    with (
        Index.build([document(number) for number in range(50)], folder, model=binary()) as writer,
        Index.open(folder, model=binary()) as reader,
        ThreadPoolExecutor(2 * READERS) as pool,
    ):
        done = Event()
        readers = [
            pool.submit(read_until, done, index, seed, refreshes=bool(seed % 2))
            for index in (writer, reader)
            for seed in range(READERS)
        ]
        try:
            for number in range(50, 50 + ADDITIONS):
                writer.add([document(number)])
                assert writer.search(f"own{number}word", rank="words").ids == [[f"d{number}"]]
                if number % 4 == 0:
                    writer.compact()
                    writer.delete([f"d{number}"])
        finally:
            done.set()
        assert sum(future.result() for future in readers) >= 2 * READERS
        reader.refresh()
        assert len(reader) == len(writer) == 50 + ADDITIONS - ADDITIONS // 4


def test_threads_meet_a_new_model_with_its_own_codes(tmp_path: Path) -> None:
    folder = tmp_path / "a.index"
    documents = [document(number) for number in range(60)]
    with (
        Index.build(documents, folder, model=binary()) as writer,
        ThreadPoolExecutor(4) as pool,
    ):
        done = Event()

        def search() -> set[int]:
            lengths = set()
            while not done.is_set():
                hits = writer.search([documents[7].text], k=1)
                assert hits.ids == [["d7"]]
                assert hits[0][0].distance == 0
                lengths.add(hits.codes.shape[1])
            return lengths

        searches = [pool.submit(search) for _ in range(4)]
        try:
            writer.retrain(bits=32)
            assert writer.search([documents[7].text], k=1).codes.shape == (1, 4)
        finally:
            done.set()
        assert all(future.result() <= {3, 4} for future in searches)


FORKED = """
import os, signal, sys
from parabit import Index, ParabitError

index = Index.open(sys.argv[1])
index.search(["naïve"])
if not os.fork():
    signal.alarm(60)
    print(index.search(["telescope"], k=1).rank)  # one query in plain English needs no threads
    for ask in (lambda: index.search(["naïve"]), lambda: Index.open(sys.argv[1]).search(["naïve"])):
        try:
            ask()
        except ParabitError as problem:
            print(problem.hint)
    sys.stdout.flush()
    os._exit(0)
_, status = os.wait()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_gets_an_answer_or_an_error_and_does_not_wait_for_ever(
    tmp_path: Path,
) -> None:
    Index.build([document(number) for number in range(20)], tmp_path / "a", model=binary()).close()
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "a")]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    hint = "start it with spawn: multiprocessing.set_start_method('spawn')"
    assert child.stdout.splitlines() == ["hybrid", hint, hint]

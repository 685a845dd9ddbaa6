"""Parsers in processes of their own: they are used again, replaced, and never outlive who started them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from parabit.corpus import ReadOptions, open_corpus, sandbox
from parabit.corpus.limits import ReadLimits

Write = Callable[[str, str | bytes], Path]

HANGS = "[" * 300_000  # for minutes, in a parser of Markdown


def children_of(process: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False
    )
    return [int(line) for line in listed.stdout.split()]


def is_running(process: int) -> bool:
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    )
    return bool(state.stdout.strip()) and not state.stdout.strip().startswith("Z")


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_process_reads_many_files(write: Write) -> None:
    for number in range(200):
        folder = write(f"docs/{number:03}.md", f"# title {number}\n\ntext").parent
    list(open_corpus(folder))
    before = [process._process.pid for process in sandbox._idle]
    corpus = open_corpus(folder)
    assert [document.title for document in corpus] == [f"title {number}" for number in range(200)]
    assert [process._process.pid for process in sandbox._idle] == before


def test_a_process_that_was_ended_is_replaced(write: Write) -> None:
    folder = write("docs/a.md", "good").parent
    assert len(list(open_corpus(folder))) == 1
    for process in sandbox._idle:
        process._process.kill()
    assert len(list(open_corpus(folder))) == 1


def test_a_corpus_that_is_left_early_can_be_read_again(write: Write) -> None:
    for number in range(100):
        folder = write(f"docs/{number:02}.html", f"<p>{number}").parent
    corpus = open_corpus(folder)
    for _ in range(3):
        documents = iter(corpus)
        assert [next(documents).text, next(documents).text] == ["0", "1"]
    assert len(list(corpus)) == 100


def test_threads_have_processes_of_their_own(write: Write) -> None:
    for number in range(100):
        folder = write(f"docs/{number:02}.html", f"<p>{number}").parent
    with ThreadPoolExecutor(4) as pool:
        read = list(
            pool.map(lambda _: [document.text for document in open_corpus(folder)], range(8))
        )
    assert read == [[str(number) for number in range(100)]] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_a_parser_of_its_own(write: Write) -> None:
    folder = write("docs/a.md", "good").parent
    list(open_corpus(folder))
    child = os.fork()
    if child == 0:
        is_read = [document.text for document in open_corpus(folder)] == ["good"]
        os._exit(0 if is_read else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert [document.text for document in open_corpus(folder)] == ["good"]


def test_files_that_end_a_process_are_named_and_all_others_read(write: Write) -> None:
    """Also those before it, whose answers the process had not sent."""
    bad = {"010.md", "011.md", "090.md", "149.md"}
    for number in range(150):
        name = f"{number:03}.md"
        folder = write(f"docs/{name}", HANGS if name in bad else f"text {number}").parent
    corpus = open_corpus(folder, ReadOptions(limits=ReadLimits(seconds=0.2)))
    read = [(document.id, document.text) for document in corpus]
    names = [f"{number:03}.md" for number in range(150)]
    assert read == [(name, f"text {int(name[:3])}") for name in names if name not in bad]
    assert {skipped.place for skipped in corpus.skipped} == bad


def test_neither_process_waits_for_the_other(write: Write) -> None:
    """More paths than a pipe holds are on the way in, and more text on the way out."""
    name = "/".join(["n" * 200] * 12)
    for number in range(300):
        root = write(f"docs/{name}/{number:03}.html", "<p>" + "word " * 8_000)
    corpus = open_corpus(root.parents[12])
    assert [len(document.text) for document in corpus] == [39_999] * 300


def test_a_parser_process_imports_little() -> None:
    program = "import sys, parabit.corpus.sandbox_worker; print(*sys.modules)"
    listed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    modules = set(listed.stdout.split())
    assert "parabit.corpus.pages" in modules
    # Each of these takes longer to import than a page takes to parse.
    assert not modules & {"numpy", "polars", "markdown_it", "tempfile", "parabit.corpus.sources"}


PROGRAM = "from parabit import open_corpus; print('reading', flush=True); list(open_corpus({!r}))"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_parser_ends_with_who_started_it(number: signal.Signals, write: Write) -> None:
    write("docs/a.md", "good")
    folder = write("docs/b.md", HANGS).parent
    reader = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(str(folder))],
        env={**os.environ, "PARABIT_LIMITS": "seconds=600"},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with reader:
        wait_until(lambda: bool(children_of(reader.pid)))
        [parser] = children_of(reader.pid)
        reader.send_signal(number)
        assert reader.wait(60) != 0
        wait_until(lambda: not is_running(parser))


def test_a_parser_finds_nothing_in_the_current_folder(write: Write, tmp_path: Path) -> None:
    """It may be a folder of a stranger."""
    for name in ("json", "selectolax", "markdown_it", "parabit"):
        write(f"here/{name}.py", "raise SystemExit('run by mistake')")
    folder = write("docs/a.md", "good").parent
    source = str(Path(sandbox.__file__).parents[2])
    program = (
        "import sys; sys.path[:] = [path for path in sys.path if path]\n"
        "from parabit import open_corpus\n"
        f"print([document.text for document in open_corpus({str(folder)!r})])"
    )
    completed = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=tmp_path / "here", capture_output=True,
        env={**os.environ, "PYTHONPATH": source}, text=True, check=True,
    )  # fmt: skip
    assert completed.stdout == "['good']\n"


@pytest.mark.skipif(sys.platform != "linux", reason="no limit of memory")
def test_memory_is_limited(write: Write) -> None:
    page = "".join(f"<font a={number}><p>" for number in range(4_000))
    write("docs/a.html", page)
    corpus = open_corpus(
        write("docs/b.html", "good").parent, ReadOptions(limits=ReadLimits(memory_mb=150))
    )
    assert [document.id for document in corpus] == ["b.html"]
    [skipped] = corpus.skipped
    assert skipped.reason.endswith("needs more than 150 MB of memory (limit: memory_mb=150)")

"""The demo, on small folders of documents of all kinds."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from made_up_files import make_pdf
from parabit.cli.app import app
from parabit.cli.command import out
from parabit.cli.demo import QUESTIONS
from parabit.cli.demo_kept import place_of
from parabit.cli.demo_work import FEWEST, make, spread_over
from parabit.corpus import ReadOptions, as_corpus, open_corpus
from parabit.index import Index
from parabit.model import load_model
from parabit.progress import Progress, silent
from without_torch import WITHOUT_TORCH

Write = Callable[[str, str | bytes], Path]
First = tuple[Path, Path, dict[str, Any]]

SUBJECTS = {
    "boats": ["a boat floats on the wide river", "the oars of the boat", "sails pull a boat", "a harbour for ships"],
    "lamps": ["a lamp lights the dark room", "the bulb of the lamp", "candles light a room", "electric light at night"],
}
BITS = ("--bits", "16")


def fill(folder: Path) -> Path:
    """Some dozens of documents of all kinds, in two sub-folders, and a picture."""
    for subject, sentences in SUBJECTS.items():
        (folder / subject).mkdir(parents=True)
        for number in range(16):
            chosen = [sentences[(number + step) % len(sentences)] for step in range(3)]
            text = ". ".join(sentence.capitalize() for sentence in chosen)
            written: dict[str, str | bytes] = {
                "md": f"# {subject.capitalize()}\n\n*{text}*.",
                "html": f"<title>{subject}</title><script>x()</script><p>{text}.",
                "txt": f"{text}.",
                "pdf": make_pdf(f"{text}."),
            }
            ending = [*written][number % len(written)]
            content = written[ending]
            path = folder / subject / f"{number:02}.{ending}"
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "picture.png").write_bytes(b"\x89PNG\0\0")
    return folder


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> First:
    """The documents, the cache folder and what the first start told."""
    base = tmp_path_factory.mktemp("demo")
    documents = fill(base / "docs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(base / "cache"))
        told = json.loads(run("demo", documents, *BITS, "--json").stdout)
    return documents, base / "cache", told


@pytest.fixture
def cache(first: First, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the cache after the first start."""
    folder = tmp_path / "cache"
    shutil.copytree(first[1], folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where anything is trained or indexed, the test fails."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("it did the work again")

    monkeypatch.setattr("parabit.model.learn_closed_form", fail)
    monkeypatch.setattr(Index, "build", fail)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def kept_in(cache: Path) -> list[str]:
    folder = cache / "parabit" / "demo"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_the_first_start_learns_measures_and_answers(first: First) -> None:
    _, cache, told = first
    assert (told["documents"], told["skipped"], told["bits"], told["bytes_a_document"]) == (32, 1, 16, 2)
    assert told["kept"] is False
    assert set(told["seconds"]) == {"reading", "training", "indexing", "measuring"}
    figures = told["figures"]
    assert (figures["queries"], figures["searched"], figures["labels"]) == (32, 31, 2)
    assert figures["ours"]["map"] > 0.8  # the two subjects share no word
    assert 0 < figures["lsa_itq"]["ndcg@10"] <= 1
    assert len(told["questions"]) == 3
    for question in told["questions"]:
        assert question["rank"] == "hybrid"
        assert len(question["hits"]) == 5
        subject = "boats" if any(word in question["query"].lower() for word in ("boat", "oars", "sails")) else "lamps"
        assert question["hits"][0]["labels"] == [subject]
        assert all("x()" not in hit["text"] for hit in question["hits"])
    assert Path(told["folder"]).parent == cache / "parabit" / "demo"
    assert load_model(Path(told["model"])).infer(["a boat"]).vectors.any()
    with Index.open(told["index"]) as index:
        assert len(index) == 32


def test_the_second_start_tells_the_same_without_the_work(first: First, cache: Path, no_work: None) -> None:
    documents, original, told = first
    again = json.loads(run("demo", documents, *BITS, "--json").stdout)
    assert again.pop("kept") is True
    for name in ("folder", "model", "index"):
        assert again.pop(name) == told[name].replace(str(original), str(cache))
    assert again == {name: value for name, value in told.items() if name in again}


def test_people_are_told_in_words(first: First, cache: Path, no_work: None) -> None:
    result = run("demo", first[0], *BITS, "--ask", "the dark room", "--ask", "xyzzy")
    assert (result.exit_code, result.stderr) == (0, "")
    for words in (
        "32 documents",
        "1 skipped: no readable text",
        "16-bit codes, 2 bytes per document, learned without labels from all of them in ",
        "LSA + ITQ",
        "32 documents as queries",
        "the dark room\n",
        "[lamps] ",
        "xyzzy\n  no document has a word of it",
        "Learned by an earlier start: reading",
        "parabit serve ",
    ):
        assert words in result.stdout
    assert "boats" not in result.stdout.split("the dark room")[1].split("\n")[1]


def test_a_narrow_terminal_is_not_overrun(
    first: First, cache: Path, no_work: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(out, "_width", 40)
    monkeypatch.setenv("COLUMNS", "40")
    result = CliRunner().invoke(app, ["demo", str(first[0]), *BITS, "--ask", "boat"])
    hits = result.stdout.split("boat\n", 1)[1].split("\n\n")[0].split("\n")
    assert len(hits) == 10
    assert max(map(len, hits)) == 40


def test_more_bits_and_changed_documents_are_learned_anew(first: First, tmp_path: Path, empty_cache: Path) -> None:
    documents = fill(tmp_path / "docs")
    told = json.loads(run("demo", documents, *BITS, "--json").stdout)
    other = json.loads(run("demo", documents, "--bits", "8", "--json").stdout)
    assert other["kept"] is False
    (documents / "boats" / "new.md").write_text("A harbour full of boats.")
    after = json.loads(run("demo", documents, *BITS, "--json").stdout)
    assert (after["kept"], after["documents"]) == (False, 33)
    # The old state is gone, that of other bits is not.
    assert kept_in(empty_cache) == sorted(Path(one["folder"]).name for one in (after, other))
    assert told["folder"] != after["folder"]
    again = json.loads(run("demo", documents, *BITS, "--again", "--json").stdout)
    assert (again["kept"], again["folder"]) == (False, after["folder"])
    assert again["questions"] == after["questions"]  # the same documents, the same model


@pytest.mark.parametrize("damage", ["figures.json", "index/*", "model-*", "half a file", "all"])
def test_what_was_kept_and_is_damaged_is_made_anew(damage: str, first: First, cache: Path) -> None:
    [name] = kept_in(cache)
    folder = cache / "parabit" / "demo" / name
    if damage == "half a file":
        largest = max(
            (path for path in (folder / "index").rglob("*") if path.is_file()), key=lambda p: p.stat().st_size
        )
        largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
    else:
        pattern = {"all": "*", "model-*": "index/model-*/*"}.get(damage, damage)
        for path in [*folder.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    result = run("demo", first[0], *BITS, "--json")
    assert (result.exit_code, json.loads(result.stdout)["kept"]) == (0, False)
    assert kept_in(cache) == [name]
    assert json.loads(run("demo", first[0], *BITS, "--json").stdout)["kept"] is True


@pytest.mark.parametrize("stage", ["reading", "rotating", "measuring"])
def test_an_interrupt_at_any_stage_leaves_what_was_there(stage: str, first: First, cache: Path) -> None:
    corpus = open_corpus(first[0], ReadOptions())

    def stop(progress: Progress) -> None:
        if progress.stage == stage:
            raise KeyboardInterrupt

    [before] = kept_in(cache)
    for bits in (16, 32):  # the first is kept already, the second not
        place = place_of(str(first[0]), corpus, ReadOptions(), None, bits)
        files = {path: path.stat().st_mtime_ns for path in place.folder.rglob("*")}
        assert bool(files) == (bits == 16)
        with pytest.raises(KeyboardInterrupt):
            make(corpus, str(first[0]), bits, place, stop)
        assert {path: path.stat().st_mtime_ns for path in place.folder.rglob("*")} == files
    assert kept_in(cache) == [before]


def test_the_demo_of_an_address_is_kept_until_its_file_changes(
    write: Write, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("there/x.jsonl", '{"text": "boats float"}\n')
    monkeypatch.chdir(write("here/x.jsonl", "another file of that name").parent)

    def place() -> Path:
        address = f"file://{path}"
        return place_of(address, open_corpus(address), ReadOptions(), None, 16).folder

    before = place()
    write("here/x.jsonl", "changed")
    assert place() == before
    path.write_text('{"text": "boats sink again"}\n')
    assert place() != before


def test_a_full_disk_is_told_and_leaves_nothing(first: First, empty_cache: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "parabit", "demo", first[0], *BITS],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000)),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert process.returncode == 1
    assert process.stderr.startswith("parabit: no room left on the disk")
    assert kept_in(empty_cache) == []


def test_the_demo_needs_no_torch(first: First, empty_cache: Path) -> None:
    program = f"{WITHOUT_TORCH}\nfrom parabit.cli import main\nmain()"
    command = [sys.executable, "-c", program, "demo", str(first[0]), *BITS, "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.stderr, json.loads(result.stdout)["kept"]) == ("", False)


def test_the_search_page_can_be_started_at_once(first: First, cache: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "parabit", "demo", first[0], *BITS, "--serve", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    addresses = (re.search(r"http://\S+:\d+", line) for line in process.stdout)
    address = next(found[0] for found in addresses if found)
    with urllib.request.urlopen(f"{address}/healthz", timeout=30) as answer:
        assert answer.status == 200
    process.send_signal(signal.SIGINT)
    assert process.communicate()[1] == ""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no-such-folder",), "parabit: no such file or folder: no-such-folder; "),
        (("empty",), "parabit: no files in empty; hidden files do not count"),
        (
            ("pictures",),
            "parabit: no documents in pictures: 12 skipped (12 binary file), the first is 0.png: binary file; ",
        ),
        (("few",), f"parabit: few has 3 documents, and codes are learned from {FEWEST} or more; give"),
        (("one.txt",), f"parabit: one.txt has 1 documents, and codes are learned from {FEWEST} or more; give"),
        (("-",), "parabit: a demo keeps what it has learned for the next start, and a pipe comes but once; write"),
        (("few", "--ask", " "), "parabit: a question is empty; "),
        (("records.jsonl",), "parabit: no documents in records.jsonl: 20 skipped (20 no text field), the first is "),
        (("--text-field", "body"), "parabit: docstrings is a data set and read in its own way; "),
    ],
)
def test_what_is_wrong_is_told_in_a_line_and_nothing_stays(
    arguments: tuple[str, ...], words: str, write: Write, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        write(f"pictures/{number}.png", b"\x89PNG\0")
    for number in range(3):
        write(f"few/{number}.txt", "boats float")
    monkeypatch.chdir(write("one.txt", "boats float").parent)
    write("records.jsonl", '{"body": "boats"}\n' * 20)
    write("empty/.hidden", "")
    result = run("demo", *arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert result.stderr.startswith(words)
    assert kept_in(empty_cache) == []


def test_a_cache_that_cannot_be_written_is_told_before_the_work(
    first: First, write: Write, monkeypatch: pytest.MonkeyPatch, no_work: None
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(write("a-file", "")))
    result = run("demo", first[0], *BITS)
    assert result.exit_code == 1
    assert "cannot be made: Not a directory; the demo keeps its index there; set XDG_CACHE_HOME" in result.stderr


def test_documents_without_labels_are_not_measured(write: Write, empty_cache: Path) -> None:
    lines = [
        {"text": f"{sentence} {number}"} for several in SUBJECTS.values() for number, sentence in enumerate(several)
    ]
    path = write("texts.jsonl", "".join(json.dumps(line) + "\n" for line in lines * 2))
    told = json.loads(run("demo", path, *BITS, "--json", "--ask", "oars of a boat").stdout)
    assert told["figures"] is None
    assert told["questions"][0]["hits"][0]["labels"] == []
    result = run("demo", path, *BITS)
    assert "Not measured: no labels tell which documents belong together" in result.stdout


def test_the_demo_of_what_is_installed(monkeypatch: pytest.MonkeyPatch, write: Write, empty_cache: Path) -> None:
    """On a few modules of our own, in place of all that is installed."""
    ways = {"lamp": "light a lamp in a dark room", "boat": "row a boat over a wide river, by the shortest path"}
    for name, about in ways.items():
        lines = []
        for number in range(9):
            lines += [f"def {name}{number}():", f'    """Ways to {about}, number {number}: {about} again and again."""']
        write(f"site/{name}.py", "\n".join(lines))
    site = empty_cache.parent / "site"
    places = dict.fromkeys(("stdlib", "purelib", "platlib"), str(site))
    monkeypatch.setattr("sysconfig.get_paths", lambda: places)
    told = json.loads(run("demo", *BITS, "--json").stdout)
    assert (told["corpus"], told["documents"], told["labels"]) == ("docstrings", 18, 2)
    assert [question["query"] for question in told["questions"]] == list(QUESTIONS)
    assert told["questions"][0]["hits"][0]["id"].startswith("boat.boat")
    page = run("demo", *BITS, "--ask", "a dark room").stdout
    assert "18 pieces of documentation of 2 Python packages" in page
    assert "lamp.lamp" in page.split("a dark room\n")[1]


def test_of_a_large_collection_a_part_is_taken_from_all_over() -> None:
    corpus = as_corpus([str(number) for number in range(1000)])
    for most in (1, 3, 100, 999, 1000, 2000):
        documents, count = spread_over(corpus, silent, most)
        numbers = [int(document.text) for document in documents]
        assert count == 1000
        assert min(most, 1000) / 2 <= len(numbers) <= most
        steps = {later - earlier for earlier, later in pairwise(numbers)}
        assert len(steps) <= 1  # evenly
        assert numbers[0] == 0

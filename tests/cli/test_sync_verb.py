"""`parabit sync` and `parabit retrain`."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from commands import answer, run

from parabit import Index, ParagraphVectors, open_corpus
from topics import Topics


@pytest.fixture
def notes(
    topics: Topics, topic_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder with 100 files, and `notes.index` of them beside it."""
    monkeypatch.chdir(tmp_path)
    Path("notes").mkdir()
    for number, text in enumerate(topics.texts[:100]):
        Path(f"notes/{number:02}.txt").write_text(text)
        os.utime(f"notes/{number:02}.txt", ns=(0, 123))
    Index.build(
        open_corpus("notes"), "notes.index", model=ParagraphVectors.load(topic_model)
    ).close()
    return Path("notes")


def change(notes: Path, topics: Topics) -> None:
    (notes / "new.txt").write_text(topics.texts[150])
    (notes / "00.txt").write_text(topics.texts[151])
    (notes / "01.txt").rename(notes / "renamed.txt")
    (notes / "02.txt").unlink()
    (notes / "picture.png").write_bytes(b"\0\1")
    os.utime(
        notes / "picture.png", ns=(0, 123)
    )  # what was written a moment ago would be read again


def test_a_sync_says_what_it_did_and_a_dry_run_what_it_would(notes: Path, topics: Topics) -> None:
    change(notes, topics)
    before = {path: path.read_bytes() for path in Path("notes.index").rglob("*.*")}
    listed = run("sync", "notes.index", "--dry-run").stdout.splitlines()
    assert listed[:4] == ["+ new.txt", "~ 00.txt", "- 02.txt", "> 01.txt -> renamed.txt"]
    line = "1 added, 1 replaced, 1 renamed, 1 deleted, 97 unchanged; "
    assert listed[4].startswith(f"notes.index: would be {line}")
    assert {path: path.read_bytes() for path in Path("notes.index").rglob("*.*")} == before
    done = run("sync", "notes.index").stdout.splitlines()
    assert done[0].startswith(f"notes.index: {line}")
    assert done[1:] == ["  1 skipped: 1 binary file", "    picture.png: binary file"]
    figures = answer("sync", "notes.index")
    assert figures.pop("seconds") > 0
    assert figures == {
        "index": "notes.index", "dry_run": False, "added": 0, "replaced": 0, "renamed": 0, "deleted": 0,
        "unchanged": 100, "changes": {"added": [], "replaced": [], "renamed": [], "deleted": []}, "left_out": 0,
        "kept": [], "skipped": 0, "reading": {"skipped": {}, "places": [], "notes": []}, "documents": 100,
        "retrain": "", "unknown_words": 0.0,
    }  # fmt: skip


def test_another_corpus_and_other_patterns_are_remembered(notes: Path) -> None:
    notes.rename("moved")
    assert answer("sync", "notes.index", "moved")["unchanged"] == 100
    assert answer("sync", "notes.index", "moved", "--exclude", "0*.txt")["deleted"] == 10
    assert answer("sync", "notes.index")["unchanged"] == 90


def test_much_that_is_new_asks_for_a_new_model(notes: Path) -> None:
    for number in range(100):
        (notes / f"new{number}.txt").write_text(
            f"entirely unheard subject {'abcdefghij'[number % 10]}"
        )
    assert run("sync", "notes.index").stdout.endswith(
        "of the words in the documents: parabit retrain notes.index\n"
    )
    figures = answer("retrain", "notes.index", "--bits", 32)
    assert figures.pop("seconds") > 0
    assert figures == {
        "index": "notes.index",
        "documents": 200,
        "bits": 32,
        "sampled": 200,
        "words": 203,
        "bigrams": 0,
    }
    assert run("retrain", "notes.index").stdout.startswith(
        "notes.index: learned from 200 of 200 documents, 203 words, 32"
    )
    (notes / "more.txt").write_text("an entirely unheard subject")
    assert answer("sync", "notes.index")["retrain"] == ""


def test_watching_syncs_at_each_change_and_goes_on_after_an_error(
    notes: Path, topics: Topics
) -> None:
    missing = iter([True, False])

    def changes(*roots: str, **options: Any) -> Iterator[set[Any]]:
        assert roots == (str(notes.absolute()),)
        assert not options["watch_filter"](1, str(Path("notes.index/lock").absolute()))
        if not Path("moved").exists():
            yield set()  # the first is always a sync
            change(notes, topics)
            yield {(1, "notes/new.txt")}
            notes.rename("moved")
            yield {(3, "notes")}  # which is an error
        if next(missing):
            raise FileNotFoundError("No path was found.")  # as watchfiles says it
        Path("moved").rename(notes)
        (notes / "last.txt").write_text(topics.texts[160])
        yield set()
        raise KeyboardInterrupt

    with mock.patch("watchfiles.watch", changes), mock.patch("time.sleep"):
        ended = run("sync", "notes.index", "--watch")
    assert ended.exit_code == 0
    assert [line for line in ended.stdout.splitlines() if not line.startswith(" ")] == [
        mock.ANY, f"watching {notes.absolute()}; Ctrl-C stops it", mock.ANY, mock.ANY, "stopped",
    ]  # fmt: skip
    assert "1 added, 1 replaced, 1 renamed, 1 deleted" in ended.stdout
    assert "1 added, 0 replaced, 0 renamed, 0 deleted, 100 unchanged" in ended.stdout
    assert "no such file or folder" in ended.stderr
    assert ended.stderr.endswith(f"parabit: waiting for {notes.absolute()}\n")


def test_a_real_change_is_seen_and_ctrl_c_stops_it(notes: Path, topics: Topics) -> None:
    command = [sys.executable, "-m", "parabit", "sync", "notes.index", "--watch"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as process:
        assert process.stdout is not None
        assert "0 added" in process.stdout.readline()
        assert "watching" in process.stdout.readline()
        Path("new.txt").write_text(topics.texts[150])
        Path("new.txt").rename(notes / "new.txt")  # so it is never seen half written
        assert "1 added" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readlines()[-1] == "stopped\n"
    assert process.returncode == 0

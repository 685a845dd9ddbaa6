"""What killed commands leave is gone after the next one of the same name, and nothing of a user's."""

import os
import signal
from pathlib import Path

import pytest
from caught_at_work import signalled
from commands import names, run

from topics import Topics

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no SIGKILL")


@pytest.mark.parametrize(
    ("verb", "output", "moment", "calls"),
    [
        ("train", "out", "parabit.model.encoder._card", 1),
        ("encode", "out.npy", "parabit.storage.sync", 1),
        ("encode", "out.parquet", "polars.scan_parquet", 1),  # its parts are written
        ("index", "out.index", "parabit.index.store.generation.write_manifest", 1),
    ],
)
def test_what_a_killed_command_left_is_removed_by_the_next(
    verb: str, output: str, moment: str, calls: int, here: Path, topic_model: Path
) -> None:
    command = ["train", "news.jsonl", "-o", output, "--bits", "16"]
    if verb == "encode":
        command = ["encode", str(topic_model), "news.jsonl", "-o", output]
    elif verb == "index":
        command = ["index", "news.jsonl", "-o", output, "--model", str(topic_model)]
    mine = here / f".{output}.0123abcd.partial"  # without a lock
    mine.mkdir()
    for _ in range(2):
        result = signalled(signal.SIGKILL, moment, calls, here, *command)
        assert result.returncode == -signal.SIGKILL, result.stderr
        litter = names(here) - {"news.jsonl", mine.name}
        # One set of temporaries, that of the last run: the second removed those of the first.
        assert litter
        assert len({name.removeprefix(f".{output}.").partition(".")[0] for name in litter}) == 1
    assert run(*command).exit_code == 0
    assert names(here) == {"news.jsonl", mine.name, output}


def test_nothing_is_written_into_an_index_or_a_model(
    here: Path, topic_model: Path, topics: Topics
) -> None:
    """The next command that cleans up there would delete it."""
    built = run("index", "news.jsonl", "-o", "x.index", "--model", str(topic_model))
    assert built.exit_code == 0, built.stderr
    before = sorted(here.rglob("*"))
    inside = next((here / "x.index").glob("model-*")).name
    for command in (
        ("train", "news.jsonl", "-o", "x.index/model-mine", "--bits", "16"),
        ("index", "news.jsonl", "-o", "x.index/words-0", "--model", str(topic_model)),
        ("encode", str(topic_model), "news.jsonl", "-o", "x.index/codes.npy"),
        ("encode", str(topic_model), "news.jsonl", "-o", f"x.index/{inside}/codes.parquet"),
    ):
        result = run(*command)
        assert result.exit_code == 1, command
        assert ", the folder of a" in result.stderr
        assert "choose a place outside it" in result.stderr
        assert sorted(here.rglob("*")) == before

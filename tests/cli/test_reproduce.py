"""`parabit reproduce`: what it says, and how it ends."""

import shlex
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from commands import answer, run

from made_up_collections import lay_out
from parabit.errors import Interrupted
from parabit.paper import report
from parabit.paper.experiments import QUICK_EPOCHS, Run

TABLE_2 = (
    "table2",
    "--quick",
    "--corpus",
    "20newsgroups",
    "--corpus",
    "reuters21578",
    "--device",
    "cpu",
)


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that no test changes."""
    folder = tmp_path_factory.mktemp("data")
    lay_out(folder, "20newsgroups", "reuters21578", "enwiki")
    return folder


@pytest.fixture(autouse=True)
def here(collections: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with made-up collections and a quick version that is done in a moment."""
    monkeypatch.setenv("PARABIT_DATA", str(collections))

    monkeypatch.setattr(report, "_QUICK_TRAINED", 40)
    monkeypatch.setattr(report, "_QUICK_TESTED", 30)
    for architecture in QUICK_EPOCHS:
        monkeypatch.setitem(QUICK_EPOCHS, architecture, 1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def performed(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that were made."""
    made: list[Run] = []
    real: Any = vars(report)["perform"]

    def count(run: Run, *rest: Any) -> Any:
        made.append(run)
        return real(run, *rest)

    monkeypatch.setattr(report, "perform", count)
    return made


def test_a_report_is_summed_up_and_nothing_is_run_twice(
    performed: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["parabit", "reproduce", *TABLE_2])
    result = run("reproduce", *TABLE_2)
    assert (result.exit_code, result.stderr) == (0, "")
    assert len(performed) == 6
    first, second = result.stdout.splitlines()
    assert first == "report/report.html: 6 runs"
    assert second.startswith("  20 Newsgroups beside the paper's figures: ")
    found = answer("reproduce", *TABLE_2)
    assert (found["report"], found["runs"], found["stale"]) == ("report/report.html", 6, 0)
    assert found["above"] + found["equal"] + found["below"] == 8
    assert len(performed) == 6
    assert (
        f"<code>parabit reproduce {' '.join(TABLE_2)}</code>"
        in Path("report/report.html").read_text()
    )


def test_an_interrupted_report_goes_on(
    here: Path, performed: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on: Any = vars(report)["perform"]

    def stop_after_one(*arguments: Any) -> Any:
        if performed:
            raise KeyboardInterrupt
        return go_on(*arguments)

    monkeypatch.setattr(report, "perform", stop_after_one)
    command = ["parabit", "reproduce", *TABLE_2, "--seeds", "2", "-o", "my report"]
    monkeypatch.setattr(sys, "argv", command)
    result = run(*command[1:])
    assert (result.exit_code, result.stdout) == (130, "")
    said = "parabit: interrupted; finished runs are kept; continue with: "
    assert result.stderr.startswith(said)
    assert result.stderr.count("\n") == 1
    assert not (here / "my report" / "report.html").exists()
    monkeypatch.setattr(report, "perform", go_on)
    assert shlex.split(result.stderr.removeprefix(said)) == command
    assert run(*command[1:]).exit_code == 0
    assert len(performed) == len(set(performed)) == 6
    assert (here / "my report" / "report.html").exists()


def test_a_signal_that_training_saw_ends_with_its_number(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise Interrupted("interrupted by a signal", 15)

    monkeypatch.setattr(report, "perform", stop)
    result = run("reproduce", *TABLE_2)
    assert (result.exit_code, result.stderr.count("\n")) == (143, 1)
    assert result.stderr.startswith(
        "parabit: interrupted by a signal; finished runs are kept; continue with: "
    )


@pytest.mark.parametrize(
    ("missing", "what"),
    [("matplotlib", TABLE_2), ("openTSNE", ("figures", "--quick")), ("", TABLE_2)],
)
def test_what_is_missing_is_explained_before_any_run(
    missing: str,
    what: tuple[str, ...],
    data: Path,
    performed: list[Run],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lay_out(data, "20newsgroups")
    words = "could not be downloaded"  # a collection
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)
        words = f"parabit: {missing} is not installed; run pip install '.[plot]' in a copy of the repository\n"
    monkeypatch.setattr(
        "urllib.request.OpenerDirector.open",
        Mock(side_effect=OSError(101, "Network is unreachable")),
    )
    result = run("reproduce", *what)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert result.stderr.startswith("parabit: ")
    assert words in result.stderr
    assert performed == []
    assert not missing or not Path("report").exists()

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from parabit.cli.app import app

COSTS = Path(__file__).parent.parent.parent / "benchmarks" / "results" / "stage_costs.json"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def test_a_plan_has_a_row_for_each_stage_and_what_it_rests_on() -> None:
    result = run("--documents", "1e9", "--bits", "128", "--workers", "64")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "1.00 billion documents, 128 bits, 64 workers"
    assert [line.split()[0] for line in lines[2:9]] == [
        *("counting", "bags", "training", "encoding", "index", "total", "search")
    ]
    assert all(len(line) <= 80 for line in lines[1:9])
    told = lines[lines.index("Assumptions") + 1 :]
    assert {line.split(":")[0].strip() for line in told} == {"measured", "derived", "assumed"}


def test_the_table_fits_a_narrow_terminal_and_leaves_out_what_is_nothing(
    parabit: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    def table(columns: int, *arguments: str) -> list[str]:
        return parabit("plan", *arguments, COLUMNS=str(columns)).stdout.splitlines()[1:9]

    assert "traffic" not in table(100, "--documents", "10M")[0]
    wide, narrow = (table(columns, "--documents", "1e9", "--workers", "64") for columns in (100, 50))
    assert "traffic each" in wide[0]
    assert max(map(len, narrow)) <= 50
    for shorter, longer in zip(narrow, wide, strict=True):
        assert longer.startswith(shorter[:30])


def test_json_has_all_of_it() -> None:
    result = run("--documents", "7M", "--workers", "2", "--queries", "10", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    made = json.loads(result.stdout)
    assert made["question"]["documents"] == 7_000_000
    assert [stage["stage"] for stage in made["stages"]] == ["counting", "bags", "training", "encoding", "index"]
    for stage in made["stages"]:
        assert stage["hours"] > 0
        assert stage["traffic_bytes"] == pytest.approx(2 * stage["traffic_bytes_a_worker"])
    assert made["total"]["hours"] == pytest.approx(sum(stage["hours"] for stage in made["stages"]))
    assert made["search"]["bytes_read"] == 7_000_000 * 16
    assert made["assumptions"]


def test_every_option_arrives() -> None:
    options = {
        "bits": 64, "dim": 300, "words": 50.5, "characters": 400.0, "workers": 3, "cores": 4, "memory": 9.0,
        "network": 25.0, "disk": 100.0, "train_workers": 2, "epochs": 7, "batch_size": 512, "checkpoint_every": 600.0,
        "shards": 5, "queries": 3.0,
    }  # fmt: skip
    given = [str(part) for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    counts = ["--documents", "2.5k", "--vocabulary", "10_000", "--train", "1e3", "--bigrams"]
    result = run(*counts, *given, "--json")
    assert result.exit_code == 0, result.stderr
    asked = json.loads(result.stdout)["question"]
    asked.pop("id_bytes")
    assert asked == {"documents": 2500, "vocabulary": 10_000, "train": 1000, "bigrams": True, **options}


def test_the_costs_of_another_machine_can_be_given(tmp_path: Path) -> None:
    slower = json.loads(COSTS.read_text())
    slower["nanoseconds"] = {name: 10 * cost for name, cost in slower["nanoseconds"].items()}
    slower["machine"]["processor"] = "a slow one"
    (tmp_path / "costs.json").write_text(json.dumps(slower))
    asked, other = ["--documents", "1M"], ["--costs", str(tmp_path / "costs.json")]
    first, second = (json.loads(run(*asked, *more, "--json").stdout)["stages"][3]["hours"] for more in ([], other))
    assert second == pytest.approx(10 * first)
    assert "one core of a slow one" in run(*asked, *other).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--documents", "many"], "documents is 'many'; it must be a number such as 1e9"),
        (["--documents", "0"], "documents is '0'; it must be at least 1"),
        (["--documents", "-5"], "documents is '-5'"),
        (["--documents", "1e400"], "documents is '1e400'"),
        (["--documents", "nan"], "documents is 'nan'"),
        (["--documents", "1e9", "--bits", "0"], "bits is 0; it must be a whole number, at least 1"),
        (["--documents", "1e9", "--workers", "-1"], "workers is -1"),
        (["--documents", "1e9", "--network", "nan"], "network is nan"),
        (["--documents", "1e9", "--vocabulary", "x"], "vocabulary is 'x'"),
        (["--documents", "1k", "--train", "2k"], "train on 2,000 of 1,000 documents"),
        (["--documents", "1k", "--costs", "nothing.json"], "nothing.json cannot be read"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_line(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert said in " ".join(result.stderr.split())
    assert len(result.stderr.splitlines()) == 1


def test_the_number_of_documents_must_be_given() -> None:
    assert run().exit_code == 2

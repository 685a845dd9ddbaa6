"""The command line inside the tests' own process."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from parabit.cli.app import app


def run(*arguments: object, stdin: str | None = None, **environment: str) -> Result:
    """What a command does; 80 columns wide."""
    environment = {"COLUMNS": "80", **environment}
    return CliRunner().invoke(
        app, [*map(str, arguments)], input=stdin, env=environment, prog_name="parabit"
    )


def answer(*arguments: object, stdin: str | None = None) -> dict[str, Any]:
    """The JSON object of a command that does what it should, and says nothing else."""
    result = run(*arguments, "--json", stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.count("\n") == 1
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder; a lock has nothing in it."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}

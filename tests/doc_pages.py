"""Runs what a page of the documentation shows, block by block, in one folder and one Python session."""

import doctest
import json
import os
import re
import shlex
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

from parabit.cli.app import app
from serve_process import ServeProcess

# Commands that are shown and not run here, each with the reason.
NOT_RUN = {
    "make demo": "sets up an environment; tests of the command line run `parabit demo`",
    "make test": "sets up an environment, and runs this very test",
    "make bench": "benchmarks take hours; their results are committed and compared with the pages",
    "parabit reproduce": "the paper's experiments take hours; tests/paper runs small ones",
    "python benchmarks/": "benchmarks take hours; their results are committed and compared with the pages",
    "pip install": "installation",
    "parabit train notes/ -o notes-gpu": "it needs a GPU",
}
LANGUAGES = {"python", "bash", "text", "json", "sql"}
# The collections here are small, and stand for larger ones.
_EXPECTED_WARNING = "fewer documents .* than bits"

_FIGURE = re.compile(r"(\d[\d,]*(?:\.\d+)?)( s\b| documents per second| of \d+ bits)?")
_TIMES = {"seconds", "documents_per_second"}
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHELL = re.compile(r"[|<>;&$`*]")
_ADDRESS = "http://127.0.0.1:8000"


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    code: str
    line: int
    follows: bool  # directly on the block before, as output does


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    end = -1
    for match in _FENCE.finditer(text):
        follows = end >= 0 and not text[end : match.start()].strip()
        found.append(Block(match[1], match[2], text.count("\n", 0, match.start()) + 1, follows))
        end = match.end()
    return found


def commands_in(code: str) -> list[str]:
    """The commands of a block: lines, joined where they end with a backslash, without what is a comment alone."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line for line in map(str.strip, lines) if line and not line.startswith("#")]


def reason_not_to_run(command: str) -> str | None:
    """Why a command is not run here, if it is not."""
    return next((reason for prefix, reason in NOT_RUN.items() if command.startswith(prefix)), None)


def fits(shown: str, found: str) -> bool:
    """Whether output is as a page shows it: the same words, and figures near those shown; `...` stands for anything.

    Times and distances of codes may differ, and other figures by a fifth: most pages search the documentation of
    Python, which is another in each version.
    """
    checker = doctest.OutputChecker()
    if not checker.check_output(_plain(shown), _plain(found), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE):
        return False
    lines = [" ".join(line.split()) for line in found.splitlines()]
    for line in (" ".join(line.split()) for line in shown.splitlines()):
        like = [other for other in lines if _plain(other) == _plain(line)]
        if "..." not in line and like and not any(_near(line, other) for other in like):
            return False
    return True


def _near(shown: str, found: str) -> bool:
    """Whether the figures of two lines are about the same, but for times and distances."""
    pairs = zip(_FIGURE.finditer(shown), _FIGURE.finditer(found), strict=True)
    return all(_about_equal(float(a[1].replace(",", "")), float(b[1].replace(",", ""))) for a, b in pairs if not a[2])


def _about_equal(shown: float, found: float) -> bool:
    return abs(shown - found) <= max(0.2 * abs(shown), 2 if shown.is_integer() and abs(shown) < 20 else 0)


def _plain(text: str) -> str:
    text = re.sub(r"-{3,}", "---", re.sub(r"[\u2800-\u28ff]+", "⠿", text))
    return re.sub(r"\d[\d,]*(\.\d+)?(e-?\d+)?", "0", text) + "\n"


def same_values(shown: Any, found: Any) -> bool:
    """Whether JSON has the keys and values that a page shows, figures about as shown; of a list, the first elements."""
    if isinstance(shown, dict):
        return isinstance(found, dict) and all(
            key in found and (key in _TIMES or same_values(value, found[key])) for key, value in shown.items()
        )
    if isinstance(shown, list):
        return (
            isinstance(found, list)
            and len(shown) <= len(found)
            and all(same_values(*pair) for pair in zip(shown, found, strict=False))
        )
    if isinstance(shown, str) and isinstance(found, str):
        code = re.compile(r"[0-9a-f]{8,}")
        return fits(shown, found) or bool(code.fullmatch(shown) and code.fullmatch(found))
    if isinstance(shown, bool) or shown is None or isinstance(found, bool) or not isinstance(found, int | float):
        return bool(shown == found)
    return _about_equal(float(shown), float(found))


class Page:
    """A page that is being run."""

    def __init__(self, folder: Path, shims: Path) -> None:
        self.folder = folder
        self.skipped: list[str] = []
        self._space: dict[str, Any] = {"__name__": "__main__"}
        self._shims = shims
        self._server: ServeProcess | None = None

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.end()

    def run(self, blocks: list[Block]) -> None:
        """Run the blocks one after the other; an AssertionError names the line of one that is not true."""
        output = ""
        for block in blocks:
            assert block.language in LANGUAGES, f"line {block.line}: {block.language or 'no language'} is never run"
            if block.language in ("text", "json"):
                if block.follows and output is not None:
                    self._compare(block, output)
                continue
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", f".*{_EXPECTED_WARNING}")
                output = getattr(self, f"_run_{block.language}")(block)

    def _compare(self, block: Block, output: str) -> None:
        if block.language == "json":
            found = json.loads(output)
            assert same_values(json.loads(block.code), found), f"line {block.line}: the JSON differs:\n{output[:2000]}"
        else:
            assert fits(block.code, output), f"line {block.line}: the output differs:\n{output}"

    def _run_python(self, block: Block) -> str:
        code = self._addressed(block.code)
        output = StringIO()
        with redirect_stdout(output):
            exec(compile("\n" * block.line + code, "page", "exec"), self._space)
        lines = iter(output.getvalue().splitlines())
        for promise in re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE):
            assert promise in lines, f"line {block.line}: {promise!r} is not printed:\n{output.getvalue()}"
        return output.getvalue()

    def _run_bash(self, block: Block) -> str | None:
        output = ""
        ran = 0
        for command in commands_in(block.code):
            reason = reason_not_to_run(command)
            if reason is not None:
                self.skipped.append(f"{command}: {reason}")
                continue
            ran += 1
            if re.match(r"(\w+=\S+ )*parabit serve\b", command):
                self._serve(command)
            elif command.startswith("parabit ") and "--engine ray" not in command and not _needs_shell(command):
                output += self._in_process(command, block)
            else:
                output += self._in_shell(command, block)
        return output if ran else None

    def _run_sql(self, block: Block) -> None:
        self.skipped.append(f"line {block.line}: it needs a PostgreSQL server")

    def _in_process(self, command: str, block: Block) -> str:
        words = shlex.split(self._addressed(command), comments=True)[1:]
        result = CliRunner().invoke(app, words, env={"COLUMNS": "80"})
        assert result.exit_code == 0, f"line {block.line}: {command}\n{result.output}\n{result.exception!r}"
        return result.stdout

    def _in_shell(self, command: str, block: Block) -> str:
        environment = {**os.environ, "PATH": f"{self._shims}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}
        command = self._addressed(command)
        result = subprocess.run(["bash", "-c", command], capture_output=True, env=environment, check=False, text=True)
        failed = result.returncode or re.search(r"^parabit:", result.stderr, re.MULTILINE)
        assert not failed, f"line {block.line}: {command}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    def _addressed(self, text: str) -> str:
        """With the addresses that the servers have here."""
        return text.replace(_ADDRESS, self._server.address) if self._server else text

    def _serve(self, command: str) -> None:
        """Start the server, at a port that is free, for the rest of the page."""
        if self._server is not None:
            self._server.end()
        words = [word for word in shlex.split(command, comments=True) if word != "&"]
        start = words.index("parabit")
        self._server = ServeProcess(*words[start + 2 :], **dict(word.split("=", 1) for word in words[:start]))


def _needs_shell(command: str) -> bool:
    """Whether there is more to a command than words, but for what stands in quotes or in a comment."""
    return _SHELL.search(re.sub(r"'[^']*'|\"[^\"]*\"|\s#.*", "", command)) is not None


def pages_below(root: Path) -> Iterator[Path]:
    """README.md and the pages of docs/."""
    yield root / "README.md"
    yield from sorted((root / "docs").rglob("*.md"))

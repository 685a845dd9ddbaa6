"""What the documentation shows is true: every command and snippet of README.md and docs/ is run here."""

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stdout
from io import StringIO
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

import parabit
from parabit.cli.app import app
from parabit.model import closed_form
from serve_process import ServeProcess

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"  # all other pages go on where it ended

# Commands that are shown and not run here, each with the reason.
NOT_RUN = {
    "make demo": "sets up an environment; tests of the command line run `parabit demo`",
    "make test": "sets up an environment, and runs this very test",
    "make fuzz": "it takes minutes; tests/attacks runs a few cases of each target",
    "python tests/attacks/": "they take minutes to hours; tests/attacks runs a few cases of each",
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
_VARYING = {"seconds", "documents_per_second", "distance"}
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHELL = re.compile(r"[|<>;&$`*]")
_ADDRESS = "http://127.0.0.1:8000"

# Most pages search the documentation of Python, which is another in each version. They show what this one's gives; with
# others the commands run, and what they print is not compared.
SHOWN = sys.version_info[:2] == (3, 11)


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


def fits(shown: str, found: str) -> bool:
    """Whether output is as a page shows it: the same words, and figures near those shown; `...` stands for anything.

    Times and distances of codes may differ, and other figures by a fifth: the documentation of Python is another in
    each patch release, and each kind of processor learns a little differently. So a page may show somewhat older
    figures: run its commands again before a release.
    """
    checker = doctest.OutputChecker()
    if not checker.check_output(
        _plain(shown), _plain(found), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    ):
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
    return all(
        _about_equal(float(a[1].replace(",", "")), float(b[1].replace(",", "")))
        for a, b in pairs
        if not a[2]
    )


def _about_equal(shown: float, found: float) -> bool:
    return abs(shown - found) <= max(
        0.2 * abs(shown), 2 if shown.is_integer() and abs(shown) < 20 else 0
    )


def _plain(text: str) -> str:
    text = re.sub(r"-{3,}", "---", re.sub(r"[\u2800-\u28ff]+", "⠿", text))
    return re.sub(r"\d[\d,]*(\.\d+)?(e-?\d+)?", "0", text) + "\n"


def same_values(shown: Any, found: Any) -> bool:
    """Whether JSON has the keys and values that a page shows, compared as by `fits`; of a list, the first elements."""
    if isinstance(shown, dict):
        return isinstance(found, dict) and all(
            key in found and (key in _VARYING or same_values(value, found[key]))
            for key, value in shown.items()
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
    if (
        isinstance(shown, bool)
        or shown is None
        or isinstance(found, bool)
        or not isinstance(found, int | float)
    ):
        return bool(shown == found)
    return _about_equal(float(shown), float(found))


class Page(ExitStack):
    """A page that is being run; at its end the servers that it started are ended."""

    def __init__(self, shims: Path) -> None:
        super().__init__()
        self._space: dict[str, Any] = {"__name__": "__main__"}
        self._shims = shims
        self._server: ServeProcess | None = None

    def run(self, blocks: list[Block]) -> None:
        """Run the blocks one after the other; an AssertionError names the line of one that is not true."""
        output: str | None = ""
        for block in blocks:
            assert block.language in LANGUAGES, (
                f"line {block.line}: {block.language or 'no language'} is never run"
            )
            if block.language in ("text", "json"):
                if SHOWN and block.follows and output is not None:
                    self._compare(block, output)
            elif block.language == "sql":
                output = None  # it needs a PostgreSQL server
            else:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", f".*{_EXPECTED_WARNING}")
                    output = getattr(self, f"_run_{block.language}")(block)

    def _compare(self, block: Block, output: str) -> None:
        if block.language == "json":
            found = json.loads(output)
            assert same_values(json.loads(block.code), found), (
                f"line {block.line}: the JSON differs:\n{output[:2000]}"
            )
        else:
            assert fits(block.code, output), f"line {block.line}: the output differs:\n{output}"

    def _run_python(self, block: Block) -> str:
        code = self._addressed(block.code)
        output = StringIO()
        with redirect_stdout(output):
            exec(compile("\n" * block.line + code, "page", "exec"), self._space)
        lines = iter(output.getvalue().splitlines())
        for promise in re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE) if SHOWN else ():
            assert promise in lines, (
                f"line {block.line}: {promise!r} is not printed:\n{output.getvalue()}"
            )
        return output.getvalue()

    def _run_bash(self, block: Block) -> str | None:
        output = ""
        ran = 0
        for command in commands_in(block.code):
            if command.startswith(tuple(NOT_RUN)):
                continue
            ran += 1
            if re.match(r"(\w+=\S+ )*parabit serve\b", command):
                self._serve(command)
            elif (
                command.startswith("parabit ")
                and "--engine ray" not in command
                and not _needs_shell(command)
            ):
                output += self._in_process(command, block)
            else:
                output += self._in_shell(command, block)
        return output if ran else None

    def _in_process(self, command: str, block: Block) -> str:
        words = shlex.split(self._addressed(command), comments=True)[1:]
        result = CliRunner().invoke(app, words, env={"COLUMNS": "80"})
        assert result.exit_code == 0, (
            f"line {block.line}: {command}\n{result.output}\n{result.exception!r}"
        )
        return result.stdout

    def _in_shell(self, command: str, block: Block) -> str:
        environment = {
            **os.environ,
            "PATH": f"{self._shims}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "80",
        }
        command = self._addressed(command)
        result = subprocess.run(
            ["bash", "-c", command], capture_output=True, env=environment, check=False, text=True
        )
        failed = result.returncode or re.search(r"^parabit:", result.stderr, re.MULTILINE)
        assert not failed, f"line {block.line}: {command}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    def _addressed(self, text: str) -> str:
        """With the addresses that the servers have here."""
        return text.replace(_ADDRESS, self._server.address) if self._server else text

    def _serve(self, command: str) -> None:
        """Start the server, at a port that is free, for the rest of the page."""
        words = [word for word in shlex.split(command, comments=True) if word != "&"]
        start = words.index("parabit")
        self._server = ServeProcess(
            *words[start + 2 :], **dict(word.split("=", 1) for word in words[:start])
        )
        self.callback(self._server.end)


def _needs_shell(command: str) -> bool:
    """Whether there is more to a command than words, but for what stands in quotes or in a comment."""
    return _SHELL.search(re.sub(r"'[^']*'|\"[^\"]*\"|\s#.*", "", command)) is not None


PAGES = [
    path
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    if blocks_of(path.read_text())
]


@pytest.fixture(scope="session")
def shims(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PATH whose `parabit` is the one that is tested here."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "parabit").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m parabit "$@"\n')
    (folder / "parabit").chmod(0o755)
    return folder


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Such small models are learned faster by one thread than by several that wait for each other."""
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        patch.setenv("OMP_NUM_THREADS", "1")  # for processes of their own
        yield


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory, shims: Path, one_thread: None) -> Path:
    """The folder in which the tutorial was run."""
    folder = tmp_path_factory.mktemp("tutorial")
    with pytest.MonkeyPatch.context() as patch, Page(shims) as page:
        patch.chdir(folder)
        page.run(blocks_of(TUTORIAL.read_text()))
    return folder


def test_the_tutorial_leads_from_files_to_an_index(tutorial: Path) -> None:
    assert len(list((tutorial / "notes").rglob("*.txt"))) > 500
    assert (tutorial / "notes-128" / "config.json").is_file()
    assert (tutorial / "notes.index" / "manifest.json").is_file()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            path, marks=pytest.mark.scale if path.name in ("milvus.md", "cluster.md") else ()
        )
        for path in PAGES
        if path != TUTORIAL
    ],
    ids=lambda path: str(path.relative_to(ROOT).with_suffix("")),
)
def test_a_page_runs(
    page: Path, tutorial: Path, shims: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    shutil.copytree(tutorial, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PARABIT_DATA", str(tmp_path / "data"))
    text = page.read_text()
    if " sync " in text:  # the copy of an index asks where its files are
        with parabit.Index.open(folder / "notes.index", write=True) as index:
            index.sync(folder / "notes")
    with Page(shims) as shown:
        shown.run(blocks_of(text))


def test_a_page_that_is_not_true_is_an_error(
    tmp_path: Path, shims: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "SHOWN", True)
    for wrong in (
        "```python\nprint(1 + 1)  # 3\n```",
        "```bash\nparabit info nothing.index\n```",
        "```bash\necho one | cat\n```\n\n```text\ntwo\n```",
        "```\nwhat is this\n```",
    ):
        with Page(shims) as shown, pytest.raises(AssertionError):
            shown.run(blocks_of(wrong))


def test_the_pages_build_without_a_warning_and_take_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stderr
    for page in site.rglob("*.html"):
        fetched = re.findall(
            r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(\w+:)?//", page.read_text()
        )
        assert fetched == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//", style.read_text()), style


def test_every_page_is_in_the_navigation_and_short_enough_to_read() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in DOCS.rglob("*.md"):
        assert re.search(
            rf"[-:] {re.escape(page.relative_to(DOCS).as_posix())}$", navigation, re.MULTILINE
        )
        prose = [
            line for line in page.read_text().splitlines() if not line.startswith("|")
        ]  # without tables
        assert len(" ".join(prose).split()) < 1500


def test_every_option_of_the_search_page_is_documented() -> None:
    documented = set(
        re.findall(r"^\| `(--[\w-]+)` \|", (DOCS / "page.md").read_text(), re.MULTILINE)
    )
    help_text = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).stdout
    there = set(re.findall(r"(?<![\w`-])--[a-z][\w-]*", help_text))
    assert documented == there - {"--help", "--quiet", "--map"}


def test_the_closed_form_is_explained_with_the_constants_that_it_has() -> None:
    page = (DOCS / "models.md").read_text()
    for shown in (
        f"LSA of X, {closed_form.DIMENSIONS} dimensions",
        f"its {closed_form.NEIGHBOURS} nearest",
        f"{closed_form._STEPS} times from Y = Z ",
        f"a = {closed_form._SHARE}; {closed_form._COARSE_SHARE} for short levels",
        f"U M + D / {1 / closed_form._DIRECT_WEIGHT:g}",
        f"`sample={closed_form.SAMPLE:_}`",
        f"From {closed_form._MANY_DOCUMENTS:,} documents",
        *(" + ".join(map(str, closed_form.default_levels(bits))) for bits in (128, 32)),
    ):
        assert shown in page, shown
    assert closed_form.default_levels(23) == (23,)
    assert (closed_form._PRIOR, closed_form._DIRECT_ROUNDS) == (
        1,
        4,
    )  # "the median of n", "four steps"


def test_every_public_name_is_in_the_api_pages() -> None:
    text = "\n".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    for name in set(parabit.__all__) - {"__version__"}:
        assert f"::: parabit.{name}\n" in text, name


def test_links_of_the_readme_lead_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"):
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_is_kept_with_its_outputs(path: Path, tmp_path: Path) -> None:
    from nbclient import NotebookClient
    from nbformat.v4 import nbjson
    from traitlets.config import Config

    read: Callable[[str], Any] = nbjson.JSONReader().reads
    kept = read(path.read_text())
    assert not re.search(r"/(home|tmp|work|Users|root|usr)/", path.read_text()), (
        "a path of a machine"
    )
    where = {"metadata": {"path": str(tmp_path)}}
    with TemporaryDirectory(
        prefix="parabit-"
    ) as sockets:  # ports may be taken by a kernel that starts meanwhile
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}})
        notebook = read(path.read_text())
        ran = NotebookClient(
            notebook, config=config, timeout=None, startup_timeout=600, resources=where
        ).execute()
    for before, after in zip(kept.cells, ran.cells, strict=True):
        kinds = [
            {output.output_type for output in cell.get("outputs", [])} for cell in (before, after)
        ]
        assert kinds[0] == kinds[1]  # as sets: what is printed comes in one piece or in several


def test_the_pictures_are_those_that_are_drawn() -> None:
    for name, content in run_path(str(DOCS / "pictures.py"))["pictures"]().items():
        assert (DOCS / "images" / name).read_text() == content, (
            f"draw it again: python docs/pictures.py ({name})"
        )

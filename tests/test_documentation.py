"""What the documentation shows is true: every command and snippet of README.md and docs/ is run here."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from doc_pages import NOT_RUN, Page, blocks_of, commands_in, fits, pages_below, same_values

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [path for path in pages_below(ROOT) if blocks_of(path.read_text())]
# All other pages go on where the tutorial ended.
TUTORIAL = DOCS / "tutorial.md"


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
    with pytest.MonkeyPatch.context() as patch, Page(folder, shims) as page:
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
        pytest.param(path, marks=pytest.mark.scale if path.name in ("milvus.md", "cluster.md") else ())
        for path in PAGES
        if path != TUTORIAL
    ],
    ids=lambda path: str(path.relative_to(ROOT).with_suffix("")),
)
def test_what_a_page_shows_runs(
    page: Path, tutorial: Path, shims: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    shutil.copytree(tutorial, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PARABIT_DATA", str(tmp_path / "data"))
    with Page(folder, shims) as shown:
        shown.run(blocks_of(page.read_text()))


def test_every_command_that_is_not_run_has_a_reason_that_is_needed() -> None:
    commands = [
        command
        for page in PAGES
        for block in blocks_of(page.read_text())
        if block.language == "bash"
        for command in commands_in(block.code)
    ]
    for prefix in NOT_RUN:
        assert any(command.startswith(prefix) for command in commands), f"nothing begins with {prefix!r}"


def test_output_is_compared_by_its_values_but_for_times() -> None:
    assert fits("a: 3 of 1,020 documents; 1.5 s\n...", "a: 3 of 980 documents; 90.0 s\nmore\nand more")
    assert not fits("a: 3 of 1,020 documents", "a: 3 of 500 documents")
    assert not fits("a: 3 of 1,020 documents", "a: 3 of 1,020 posts")
    assert not fits("MAP 0.59", "MAP 0.31")
    assert same_values({"hits": [{"id": "a", "score": 0.5}]}, {"hits": [{"id": "a", "score": 0.55}, {}], "more": 1})
    for shown in ({"hits": [{"name": "a"}]}, {"hits": [{"id": "b"}]}, {"hits": [{"id": "a", "score": 0.9}]}):
        assert not same_values(shown, {"hits": [{"id": "a", "score": 0.5}]})


def test_a_page_that_is_not_true_is_an_error(tmp_path: Path, shims: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in (
        "```python\nprint(1 + 1)  # 3\n```",
        "```bash\nparabit info nothing.index\n```",
        "```bash\necho one | cat\n```\n\n```text\ntwo\n```",
        "```\nwhat is this\n```",
    ):
        with Page(tmp_path, shims) as shown, pytest.raises(AssertionError):
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
        fetched = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(\w+:)?//", page.read_text())
        assert fetched == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//", style.read_text()), style


def test_every_page_is_in_the_navigation_and_short_enough_to_read() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in DOCS.rglob("*.md"):
        assert re.search(rf"[-:] {re.escape(page.relative_to(DOCS).as_posix())}$", navigation, re.MULTILINE)
        prose = [line for line in page.read_text().splitlines() if not line.startswith("|")]  # without tables
        assert len(" ".join(prose).split()) < 1500


def test_every_option_of_the_search_page_is_documented() -> None:
    from typer.testing import CliRunner

    from parabit.cli.app import app

    documented = set(re.findall(r"^\| `(--[\w-]+)` \|", (DOCS / "page.md").read_text(), re.MULTILINE))
    help_text = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).stdout
    there = set(re.findall(r"(?<![\w`-])--[a-z][\w-]*", help_text))
    assert documented == there - {"--help", "--quiet", "--map"}


def test_the_closed_form_is_explained_with_the_constants_that_it_has() -> None:
    from parabit.model import closed_form, learning

    page = (DOCS / "models.md").read_text()
    for shown in (
        f"LSA of X, {closed_form.DIMENSIONS} dimensions",
        f"its {closed_form.NEIGHBOURS} nearest",
        f"{closed_form._STEPS} times from Y = Z ",
        f"a = {closed_form._SHARE}; {closed_form._COARSE_SHARE} for short levels",
        f"U M + D / {1 / closed_form._DIRECT_WEIGHT:g}",
        f"`sample={learning.SAMPLE:_}`",
        f"From {learning._MANY_DOCUMENTS:,} documents",
        *(" + ".join(map(str, closed_form.default_levels(bits))) for bits in (128, 32)),
    ):
        assert shown in page, shown
    assert closed_form.default_levels(23) == (23,)
    assert (closed_form._PRIOR, closed_form._DIRECT_ROUNDS) == (1, 4)  # "the median of n", "four steps"


def test_every_public_name_is_in_the_api_pages() -> None:
    import parabit

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
    assert not re.search(r"/(home|tmp|work|Users|root|usr)/", path.read_text()), "a path of a machine"
    options: dict[str, Any] = {
        "timeout": None,
        "startup_timeout": 600,
        "resources": {"metadata": {"path": str(tmp_path)}},
    }
    with TemporaryDirectory(prefix="parabit-") as sockets:
        if os.name != "nt":  # ports may be taken by another kernel that starts at the same time
            options["config"] = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}})
        ran = NotebookClient(read(path.read_text()), **options).execute()
    for before, after in zip(kept.cells, ran.cells, strict=True):
        # What is printed comes in one piece or in several.
        assert {output.output_type for output in before.get("outputs", [])} == {
            output.output_type for output in after.get("outputs", [])
        }


def test_the_pictures_are_those_that_are_drawn() -> None:
    spec = spec_from_file_location("pictures", DOCS / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, content in module.pictures().items():
        assert (DOCS / "images" / name).read_text() == content, f"draw it again: python docs/pictures.py ({name})"

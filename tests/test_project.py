"""Truths about the project as a whole."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import parabit
from parabit.cli.app import VERBS, app
from parabit.paper.corpora import paper_corpora
from parabit.paper.results import Figures

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "parabit"

# The way of the data: a stage imports only those before it.
STAGES = [
    "corpus", "text", "networks", "model", "index", "explore",
    "evaluation", "baselines", "paper", "engines", "web", "cli",
]  # fmt: skip
MODULES = sorted(SOURCE.rglob("*.py"))


def test_the_data_goes_one_way() -> None:
    for module in MODULES:
        stage = module.relative_to(SOURCE).parts[0]
        if stage in STAGES:
            allowed = STAGES[: STAGES.index(stage) + 1]
        else:  # the shared pieces at the root, which know no stage; the face only names them
            allowed = STAGES if stage in ("__init__.py", "__main__.py") else []
        for node in ast.walk(ast.parse(module.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported = {name.split(".")[1] for name in names if name.startswith("parabit.")} & set(
                STAGES
            )
            assert imported <= set(allowed), module


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == parabit.__version__
    assert f"version: {parabit.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_a_tag_is_released_only_if_it_is_the_version() -> None:
    for tag, fits in {
        f"v{parabit.__version__}": True,
        "v0.0.9": False,
        "v0-1-0": False,
        "": False,
    }.items():
        made = subprocess.run(
            ["make", "check-tag", f"TAG={tag}"], cwd=ROOT, capture_output=True, check=False
        )
        assert (made.returncode == 0) == fits, tag


def test_everything_offered_is_there() -> None:
    for name in parabit.__all__:
        assert getattr(parabit, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        parabit.nothing  # noqa: B018


TEXTS = [
    f"{first} {second} in orbit"
    for first in ("hubble", "telescope")
    for second in ("repair", "mirror")
] * 10


def _run(program: str, folder: Path) -> str:
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=folder
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_learning_and_searching_need_neither_torch_nor_scikit_learn_and_leave_the_environment_alone(
    tmp_path: Path,
) -> None:
    program = f"""
import os
import sys

class Missing:  # they cannot be imported, though they are installed
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "sklearn"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Missing())
before = dict(os.environ)
import parabit

texts = {TEXTS!r}
model = parabit.ParagraphVectors().set_params(bits=32)
try:
    model.transform(texts)
except ValueError as error:
    print(error)
assert (model.fit_transform(texts) == parabit.ParagraphVectors(**model.get_params()).fit(texts).transform(texts)).all()
index = parabit.Index.build(texts, model=model)
[hits] = index.search(["telescope mirror"], k=3, rank="hybrid")
print(len(hits), hits[0].text)
print([name for name in os.environ if os.environ[name] != before.get(name) and not name.startswith("_RJEM")])
"""
    # polars sets some of its own
    not_fitted = "this ParagraphVectors is not fitted yet; call fit, or load a saved model"
    assert _run(program, tmp_path) == f"{not_fitted}\n3 telescope mirror in orbit\n[]\n"


def test_help_and_a_search_import_nothing_that_takes_long(tmp_path: Path) -> None:
    model = parabit.ParagraphVectors(bits=32).fit(TEXTS)
    parabit.Index.build(TEXTS, tmp_path / "texts.index", model=model).close()
    program = """
import sys
from parabit.cli.app import VERBS, app, load_verb

heavy = {"numpy", "polars", "scipy", "sklearn", "torch", "faiss", "rich"}
app(["--help"], standalone_mode=False)
print({*heavy, "pydantic"} & sys.modules.keys())
print({name for verbs in VERBS.values() for name in verbs if load_verb(name) and heavy & sys.modules.keys()})
app(["search", "texts.index", "telescope mirror", "-k", "1", "--json"], standalone_mode=False)
print({"torch", "sklearn", "scipy", "polars", "rich"} & sys.modules.keys())
"""
    *_, after_help, slow_verbs, answer, after_search = _run(program, tmp_path).splitlines()
    assert json.loads(answer)["hits"][0]["text"] == "telescope mirror in orbit"
    assert after_help == slow_verbs == after_search == "set()"


def test_the_two_commands_stand_on_the_first_screen_of_the_readme() -> None:
    screen = (ROOT / "README.md").read_text().splitlines()[:40]
    assert {"make demo", "make test"} <= {" ".join(line.split()[:2]) for line in screen}


def _shown(figure: float | None, decimals: int = 3) -> str:
    return f"{figure:.{decimals}f}".lstrip("0")


@pytest.mark.parametrize("page", ["README.md", "docs/reproducing.md"])
def test_the_figures_of_the_paper_are_those_of_the_results(page: str) -> None:
    text, figures = (ROOT / page).read_text(), Figures(ROOT / "results", paper_corpora(["enwiki"]))
    rows = re.findall(
        r'^\| `preset="paper"`, ([^|,]+), (\d+) bits \| (.*?) \| (.*?) \|', text, re.MULTILINE
    )
    assert len(rows) == 4
    for model, bits, *shown in rows:
        job = f"{model.lower().replace(' ', '-')}-{bits}{'-words' if 'DBOW' in model else ''}"
        cells = [
            figures.cells["20newsgroups", job, "codes", metric] for metric in ("map", "ndcg@10")
        ]
        ours = " / ".join(f"{_shown(cell.value)} ±{_shown(cell.spread)}" for cell in cells)
        assert shown == [ours, " / ".join(_shown(cell.paper, 2) for cell in cells)]
        assert {cell.seeds for cell in cells} == {3}
    prose = " ".join(text.split())
    for corpus in ("20newsgroups", "20newsgroups-raw"):
        counts = {standing: len(cells) for standing, cells in figures.compared(corpus).items()}
        said = f"{counts['above']} are above the paper's, {counts['equal']} equal and {counts['below']} below"
        assert said in prose


def test_every_command_that_is_named_has_the_options_that_are_shown() -> None:
    names = {name for verbs in VERBS.values() for name in verbs}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = [
        found
        for page in pages
        for found in re.findall(r"`parabit ([a-z]\w*)((?: [^`\n]*)?)`", page.read_text())
    ]
    assert len(shown) >= 4
    for verb, arguments in shown:
        assert verb in names, f"there is no {verb}"
        help_text = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "200"}).stdout
        for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", arguments):
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", help_text), f"{verb} has no {option}"


def test_tables_that_a_script_writes_are_those_of_the_result_files() -> None:
    script = [sys.executable, str(ROOT / "benchmarks" / "pages.py"), "--check"]
    checked = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")

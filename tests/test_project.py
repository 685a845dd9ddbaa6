"""Truths about the project as a whole."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

import parabit
from parabit.paper.report import Cell, Report, Table

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "parabit"

# The way of the data: a stage imports only those before it.
STAGES = ["corpus", "text", "models", "training", "encoding", "index", "evaluation", "baselines", "paper", "cli"]
MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_data_goes_one_way(module: Path) -> None:
    stage = module.relative_to(SOURCE).parts[0]
    if stage not in STAGES:  # the shared pieces at the root, which know no stage; the face only names them
        stage = "corpus" if stage == "__init__.py" else ""
        allowed: list[str] = STAGES if stage or module.stem == "__main__" else []
    else:
        allowed = STAGES[: STAGES.index(stage) + 1]
    for node in ast.walk(ast.parse(module.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            if name.startswith("parabit."):
                assert name.split(".")[1] not in STAGES or name.split(".")[1] in allowed


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == parabit.__version__
    assert f"version: {parabit.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_everything_offered_is_there() -> None:
    for name in parabit.__all__:
        assert getattr(parabit, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        parabit.nothing  # noqa: B018


def test_the_readme_begins_with_the_two_commands() -> None:
    first, second = (ROOT / "README.md").read_text().splitlines()[:2]
    assert first.split()[:2] == ["make", "demo"]
    assert second.split()[:2] == ["make", "test"]


def _news(tables: dict[str, Table], name: str, *labels: str) -> list[Cell]:
    """MAP and NDCG@10 on 20 Newsgroups of a row of the report."""
    cells = {
        metric: cell
        for row, group, metric, cell in tables[name].cells()
        if row.labels == labels and group.title == "20 Newsgroups"
    }
    return [cells["MAP"], cells["NDCG@10"]]


def _shown(figure: float | None, decimals: int = 3) -> str:
    return f"{figure:.{decimals}f}".lstrip("0")


def test_the_figures_of_the_paper_in_the_readme_are_those_of_the_report() -> None:
    text = (ROOT / "README.md").read_text()
    prose = " ".join(text.split())
    report = Report.from_json(json.loads((ROOT / "results" / "report.json").read_text()))
    tables = {table.name: table for table in report.tables}

    rows = re.findall(r'^\| `preset="(\w+)"`(?:, ([^|,]+))?, (\d+) bits \| (.*?) \| (.*?) \|$', text, re.MULTILINE)
    assert len(rows) == 6
    for preset, model, bits, ours, paper in rows:
        if preset == "default":
            cells = _news(tables, "peers", f"parabit, default, {bits} bits")
        else:
            cells = _news(tables, "table1", bits, model, "no")
        assert ours == " / ".join(f"{_shown(cell.mean)} ±{_shown(cell.spread)}" for cell in cells)
        assert paper == " / ".join(_shown(cell.paper, 2) for cell in cells if cell.paper is not None)
        assert {cell.seeds for cell in cells} == {3}

    default = _news(tables, "peers", "parabit, default, 128 bits")
    gensim = _news(tables, "peers", "gensim Doc2Vec, 128 floats")
    [(codes, floats)] = re.findall(r"128-bit codes reach (.*?); .*? with 128 floats, (.*?)\. ", prose)
    assert codes == "a MAP of {} and an NDCG@10 of {}".format(*(_shown(cell.mean) for cell in default))
    assert floats == " and ".join(_shown(cell.mean) for cell in gensim)

    first, last = tables["table1"].counts(), tables["table4"].counts()
    assert (
        f"Of the {first.above + first.equal + first.below} figures of Table 1 on 20 Newsgroups {first.above} are above "
        f"the paper's, {first.equal} equal and {first.below} below"
    ) in prose
    assert f"{last.below} of {last.above + last.equal + last.below} are below" in prose


def test_the_figures_of_training_in_the_readmes_are_those_that_were_measured() -> None:
    results, pages = ROOT / "benchmarks" / "results", {}
    for page in ("README.md", "benchmarks/README.md"):
        pages[page] = (ROOT / page).read_text()
    speed = json.loads((results / "train_speed.json").read_text())
    for name in ("default", "default_without_neighbours"):
        assert speed[name]["passed"]
        for figure in (f"{speed[name]['seconds']} s", str(speed[name]["ratio_to_gensim"]["median"])):
            assert all(figure in text for text in pages.values())
    for row in json.loads((results / "train_gpu.json").read_text())["corpora"]:
        least, most = row["seconds_least_to_most"]
        assert (
            f"{row['seconds']} ({least} to {most}) | {row['documents_per_second']:,}" in pages["benchmarks/README.md"]
        )


def test_the_figures_of_scoring_in_the_readmes_are_those_that_were_measured() -> None:
    speed = json.loads((ROOT / "benchmarks" / "results" / "evaluate_speed.json").read_text())["evaluations"]
    page = (ROOT / "benchmarks" / "README.md").read_text()
    for row in speed.values():
        ratio = "{median} ({least} to {most})".format(**row["ratio"])
        assert f"| {row['seconds']} | {row['floor_seconds']} | {row['scikit_learn_seconds']} | {ratio} |" in page
    codes = f"{speed['codes']['seconds']} s on 2 cores, {speed['codes']['ratio']['median']} times"
    assert codes in (ROOT / "README.md").read_text()


def test_the_readmes_python_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [snippet] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(snippet, {})
    told = capsys.readouterr().out
    promised = re.findall(r"print\(.*\)  # (.*)", snippet)
    assert promised
    assert all(promise in told for promise in promised)


def test_the_readmes_commands_are_ones_that_exist() -> None:
    from typer.testing import CliRunner

    from parabit.cli.app import app

    commands = re.findall(r"^ {4}.*?parabit (\w+)(.*?)(?: {2,}#|$)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(commands) >= 4
    for verb, arguments in commands:
        help_text = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "200"}).stdout
        for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", arguments):
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", help_text), f"{verb} has no {option}"


def test_files_stay_small_enough_to_hold_in_mind() -> None:
    assert [path.name for path in MODULES if len(path.read_text().splitlines()) > 400] == []


def test_the_figures_in_the_readmes_are_those_that_were_measured() -> None:
    results = ROOT / "benchmarks" / "results"
    speed, memory = (json.loads((results / f"{name}.json").read_text()) for name in ("text_speed", "text_memory"))
    rates, small, large = speed["documents_per_second"], *memory["sizes"]
    figures = [f"{rates['parabit vocabulary and bags']:,}", f"{rates['parabit bags']:,}"]
    figures += [str(ratio[which]) for ratio in speed["ratios"].values() for which in ("median", "least", "most")]
    figures += [f"{size[what]:,}" for size in (small, large) for what in ("peak_mb", "documents_per_second")]
    for page in ("README.md", "benchmarks/README.md"):
        text = (ROOT / page).read_text()
        assert [figure for figure in figures if figure not in text] == []


def test_the_collections_in_the_readme_are_those_of_the_report() -> None:
    text = (ROOT / "README.md").read_text()
    report = Report.from_json(json.loads((ROOT / "results" / "report.json").read_text()))
    [table] = [table for table in report.tables if table.name == "everywhere"]
    cells = {row.labels: row.cells for row in table.rows}
    methods = ("parabit, fast", "LSA + iterative quantization", "gensim Doc2Vec, 128 floats")
    wanted = [(methods[0], 0), (methods[1], 0), (methods[2], 0), (methods[0], 2), (methods[1], 2)]
    for collection in {row.labels[0] for row in table.rows}:
        shown = []
        for method, first in wanted:
            both = [cell for cell in cells[collection, method][first : first + 2] if cell]
            assert {cell.seeds for cell in both} == {3}
            shown.append(" / ".join(_shown(cell.mean) for cell in both))
        assert f"| {collection} | {' | '.join(shown)} |" in text


def test_the_figures_of_encoding_in_the_readmes_are_those_that_were_measured() -> None:
    speed = json.loads((ROOT / "benchmarks" / "results" / "encode_speed.json").read_text())
    for page in ("README.md", "benchmarks/README.md"):
        text = (ROOT / page).read_text()
        assert f"{speed['parabit']['2']['documents_per_second']:,}" in text
        assert f"{speed['times_gensim']['2']} times" in text

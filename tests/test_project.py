"""Truths about the project as a whole."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import parabit
from parabit.paper.corpora import HEADERS_KEPT, paper_corpora
from parabit.paper.tables import Figures
from without_torch import WITHOUT_TORCH

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "parabit"

# The way of the data: a stage imports only those before it.
STAGES = ["corpus", "text", "networks", "model", "index", "evaluation", "baselines", "paper", "engines", "web", "cli"]
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


TEXTS = [f"{first} {second} in orbit" for first in ("hubble", "telescope") for second in ("repair", "mirror")] * 10


def _run(program: str, folder: Path) -> str:
    result = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False, cwd=folder
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_learning_indexing_and_searching_need_no_torch(tmp_path: Path) -> None:
    program = f"""{WITHOUT_TORCH}
import parabit

texts = {TEXTS!r}
model = parabit.ParagraphVectors(bits=32).fit(texts)
index = parabit.Index.build(texts, model=model)
[hits] = index.search(["telescope mirror"], k=3, rank="hybrid")
print(len(hits), hits[0].text)
"""
    assert _run(program, tmp_path) == "3 telescope mirror in orbit\n"


def test_importing_and_using_parabit_changes_nothing_in_the_environment(tmp_path: Path) -> None:
    program = f"""
import os
before = dict(os.environ)
import parabit
parabit.ParagraphVectors(bits=8).fit({TEXTS!r}).transform({TEXTS!r})
print([name for name in os.environ if os.environ[name] != before.get(name) and not name.startswith(("KMP_", "_RJEM"))])
"""
    assert _run(program, tmp_path) == "[]\n"  # scikit-learn and polars set some of their own


def test_opening_an_index_and_searching_it_import_neither_torch_nor_scikit_learn(tmp_path: Path) -> None:
    model = parabit.ParagraphVectors(bits=32).fit(TEXTS)
    parabit.Index.build(TEXTS, tmp_path / "texts.index", model=model).close()
    program = """
import sys
import parabit

with parabit.Index.open("texts.index") as index:
    [hits] = index.search(["telescope mirror"], k=3, rank="hybrid")
    print(hits[0].text)
print(sorted({"torch", "sklearn"} & sys.modules.keys()))
"""
    assert _run(program, tmp_path) == "telescope mirror in orbit\n[]\n"


def test_the_readme_begins_with_the_two_commands() -> None:
    first, second = (ROOT / "README.md").read_text().splitlines()[:2]
    assert first.split()[:2] == ["make", "demo"]
    assert second.split()[:2] == ["make", "test"]


def _shown(figure: float | None, decimals: int = 3) -> str:
    return f"{figure:.{decimals}f}".lstrip("0")


def _page(name: str) -> str:
    return (ROOT / name).read_text()


def _measured(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def _searched(name: str, codes: int, bits: int, ask: str, queries: int) -> Any:
    """What a benchmark of searching tells of one way to ask."""
    rows = [row for size in _measured(name)["sizes"] for row in size["rows"]]
    [row] = [
        row for row in rows if (row["codes"], row["bits"], row["ask"], row["queries"]) == (codes, bits, ask, queries)
    ]
    return row


@pytest.mark.parametrize("page", ["docs/reproducing.md"])
def test_the_figures_of_the_paper_are_those_of_the_results(page: str) -> None:
    text, figures = _page(page), Figures(ROOT / "results", [*paper_corpora(["enwiki"]), HEADERS_KEPT])
    rows = re.findall(r'^\| `preset="paper"`, ([^|,]+), (\d+) bits \| (.*?) \| (.*?) \|', text, re.MULTILINE)
    assert len(rows) == 4
    for model, bits, *shown in rows:
        words = "-words" if "DBOW" in model else ""
        job = f"{model.lower().replace(' ', '-')}-{bits}{words}"
        cells = [figures.get("20newsgroups", job, "codes", metric) for metric in ("map", "ndcg@10")]
        ours = " / ".join(f"{_shown(cell.value)} ±{_shown(cell.spread)}" for cell in cells if cell)
        assert shown == [ours, " / ".join(_shown(cell.paper, 2) for cell in cells if cell)]
        assert {cell.seeds for cell in cells if cell} == {3}
    prose = " ".join(text.split())
    for corpus in ("20newsgroups", "20newsgroups-raw"):
        counts = figures.compared(corpus)
        said = f"{counts['above']} are above the paper's, {counts['equal']} equal and {counts['below']} below"
        assert said in prose


def test_the_figures_of_scoring_are_those_that_were_measured() -> None:
    speed = _measured("evaluate_speed")["evaluations"]
    page = _page("benchmarks/README.md")
    for row in speed.values():
        ratio = "{median} ({least} to {most})".format(**row["ratio"])
        assert f"| {row['seconds']} | {row['floor_seconds']} | {row['scikit_learn_seconds']} | {ratio} |" in page
    codes = f"{speed['codes']['seconds']} s on 2 cores, {speed['codes']['ratio']['median']} times"
    assert codes in _page("docs/measuring.md")


def test_the_table_of_benchmarks_is_what_was_measured() -> None:
    keep = _measured("index_keeping")["sizes"]
    near = [_searched("index_speed_real_128", 5_000_000, 128, "top 10", queries) for queries in (1, 256)]
    within, again = (
        [_searched(name, 5_000_000, 28, "radius 2", queries) for queries in (1, 256)]
        for name in ("index_speed", "index_speed_5000000")
    )

    def times(rows: list[Any], backend: str) -> str:
        return " and ".join(str(row["times_as_fast_as_faiss_flat"][backend]) for row in rows)

    def milliseconds(rows: list[Any], backend: str) -> str:
        return "{} ms alone, {} in a batch".format(*(row["milliseconds"][backend] for row in rows))

    rows = [
        (milliseconds(near, "multi"), f"{times(near, 'multi')} times as fast as faiss's flat scan"),
        (milliseconds(within, "tables"), f"{times(within, 'tables')} times; {times(again, 'tables')} in another run"),
        (f"{keep[2]['open_first_milliseconds']} ms", f"{keep[0]['open_first_milliseconds']} ms for 100,000"),
    ]
    page = _page("docs/benchmarks.md")
    shown = re.findall(r"^\| [^|]+ \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)[2:]
    assert shown[: len(rows)] == rows
    nearest = near[0]["milliseconds"]["multi"]
    assert f"of 5,000,000 codes are found in {nearest} ms" in " ".join(_page("README.md").split())
    scaling, largest = _page("docs/scaling.md"), keep[2]
    size = f"{largest['megabytes']} MB on disk, {largest['peak_megabytes']:,} MB peak memory"
    assert f"| {largest['make_seconds']} s, {size} |" in scaling
    assert f"| {largest['open_first_milliseconds']} ms |" in scaling
    assert f"| {nearest} ms per query |" in scaling


def test_every_command_that_is_named_has_the_options_that_are_shown() -> None:
    from typer.testing import CliRunner

    from parabit.cli.app import VERBS, app

    names = {name for verbs in VERBS.values() for name in verbs}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = [found for page in pages for found in re.findall(r"`parabit ([a-z]\w*)((?: [^`\n]*)?)`", page.read_text())]
    assert len(shown) >= 4
    for verb, arguments in shown:
        assert verb in names, f"there is no {verb}"
        help_text = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "200"}).stdout
        for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", arguments):
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", help_text), f"{verb} has no {option}"


def test_files_stay_small_enough_to_hold_in_mind() -> None:
    assert [path.name for path in MODULES if len(path.read_text().splitlines()) > 400] == []


def test_the_tables_of_the_index_are_what_was_measured() -> None:
    page = _page("benchmarks/README.md")
    for size in _measured("index_keeping")["sizes"]:
        assert (
            f"| {size['documents']:,} | {size['make_seconds']} s | {size['open_first_milliseconds']}, "
            f"{size['open_milliseconds']} ms | {size['add_one_milliseconds']} ms | {size['add_10000_seconds']} s | "
            f"{size['delete_1000_seconds']} s | {size['open_with_that_log_milliseconds']} ms | "
            f"{size['filtered_query_milliseconds']} ms | {size['compact_seconds']} s | {size['verify_seconds']} s | "
            f"{size['megabytes']} MB | {size['peak_megabytes']:,} MB |"
        ) in page
    lines = page.splitlines()
    for row in (
        row
        for name in ("index_speed_real_128", "index_speed")
        for size in _measured(name)["sizes"]
        for row in size["rows"]
    ):
        start = f"| {row['codes']:,} | {row['bits']} | {row['ask']} | {row['queries']} |"
        figures = [
            f"{milliseconds:.3f} (x{row['times_as_fast_as_faiss_flat'][name]:g})"
            for name, milliseconds in row["milliseconds"].items()
        ]
        assert any(line.startswith(start) and all(figure in line for figure in figures) for line in lines), start


def test_tables_that_a_script_writes_are_those_of_the_result_files() -> None:
    script = [sys.executable, ROOT / "benchmarks" / "pages.py", "--check"]
    checked = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_table_of_the_server_is_what_was_measured() -> None:
    load, page = _measured("serve_load"), _page("benchmarks/README.md")
    for row in (load["one_client"], load["many_clients"]):
        search, like, document, memory = row["search"], row["like"], row["document"], row["memory_mb"]
        assert not row["errors"]
        assert (
            f"| {row['clients']} | {row['requests_per_second']} | {', '.join(map(str, search.values()))} | "
            f"{like['p50_ms']}, {like['p99_ms']} | {document['p50_ms']}, {document['p99_ms']} | "
            f"{memory['after_a_quarter']}, {memory['at_the_end']} MB |"
        ) in page
    bare = load["bare"]
    assert f"{bare['single_ms']} ms for one text, {bare['in_batches_of_64_ms']} ms a text" in page
    assert f"{1000 / bare['in_batches_of_64_ms']:.0f} texts a second at most" in page
    assert f"{load['index']['documents']:,} documents" in page

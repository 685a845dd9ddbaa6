"""Truths about the project as a whole."""

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import parabit
from parabit.paper.report import Cell, Report, Table

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "parabit"

# The way of the data: a stage imports only those before it.
STAGES = ["corpus", "text", "networks", "model", "index", "evaluation", "baselines", "paper", "cluster", "web", "cli"]
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


REPORT = Report.from_json(json.loads((ROOT / "results" / "report.json").read_text()))


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


@pytest.mark.parametrize("page", ["README.md", "docs/reproducing.md"])
def test_the_figures_of_the_paper_are_those_of_the_report(page: str) -> None:
    text = _page(page)
    tables = {table.name: table for table in REPORT.tables}
    heads = re.findall(r"^\| codes \| (\w+) \| (\w+) \|", text, re.MULTILINE)
    rows = re.findall(r'^\| `preset="(\w+)"`(?:, ([^|,]+))?, (\d+) bits \| (.*?) \| (.*?) \|', text, re.MULTILINE)
    assert len(rows) == 6
    for preset, model, bits, *columns in rows:
        shown = dict(zip(heads[0], columns, strict=True))
        if preset == "default":
            cells = _news(tables, "peers", f"parabit, default, {bits} bits")
        else:
            cells = _news(tables, "table1", bits, model, "no")
        assert shown["ours"] == " / ".join(f"{_shown(cell.mean)} ±{_shown(cell.spread)}" for cell in cells)
        assert shown["paper"] == " / ".join(_shown(cell.paper, 2) for cell in cells if cell.paper is not None)
        assert {cell.seeds for cell in cells} == {3}
        assert {" ".join(cell.command.split()[:3]) for cell in cells} == {
            "parabit reproduce peers" if preset == "default" else "parabit reproduce table1"
        }

    prose = " ".join(text.split())
    first, last = tables["table1"].counts(), tables["table4"].counts()
    assert (
        f"Of the {first.above + first.equal + first.below} figures of Table 1 on 20 Newsgroups {first.above} are above "
        f"the paper's, {first.equal} equal and {first.below} below"
    ) in prose
    assert f"{last.below} of {last.above + last.equal + last.below} are below" in prose


def test_the_claim_of_the_readme_is_that_of_the_report_and_the_benchmarks() -> None:
    tables = {table.name: table for table in REPORT.tables}
    prose = " ".join(_page("README.md").split())
    default = _news(tables, "peers", "parabit, default, 128 bits")
    gensim = _news(tables, "peers", "gensim Doc2Vec, 128 floats")
    paper = _news(tables, "table1", "128", "Binary PV-DBOW", "no")
    [(codes, published, floats)] = re.findall(
        r"128-bit codes reach (.*?); the paper's have (.*?), and .*? with 128 floats, (.*?)\. ", prose
    )
    assert codes == "a MAP of {} and an NDCG@10 of {}".format(*(_shown(cell.mean) for cell in default))
    assert published == " and ".join(_shown(cell.paper, 2) for cell in paper)
    assert floats == " and ".join(_shown(cell.mean) for cell in gensim)
    search = _searched("index_speed_real_128", 5_000_000, 128, "top 10", 1)
    for claim in (
        f"in {_measured('train_speed')['default']['ratio_to_gensim']['median']} of its training time",
        f"{_measured('encode_speed')['times_gensim']['2']} times as fast",
        f"the 10 nearest of {search['codes']:,} codes are found in {search['milliseconds']['multi']} ms",
    ):
        assert claim in prose


def test_the_figures_of_bits_are_those_of_the_report() -> None:
    tables = {table.name: table for table in REPORT.tables}
    text = _page("docs/howto/bits.md")
    for bits, size in (("128", 16), ("32", 4)):
        figures = [
            " / ".join(_shown(cell.mean) for cell in _news(tables, "peers", f"{row}, {bits} bits"))
            for row in ("parabit, default", "the same with real-valued queries")
        ]
        assert f"| {bits} | {size} | {figures[0]} | {figures[1]} |" in text


def test_the_figures_of_training_are_those_that_were_measured() -> None:
    pages = [_page(page) for page in ("docs/benchmarks.md", "benchmarks/README.md")]
    speed = _measured("train_speed")
    for name in ("default", "default_without_neighbours"):
        assert speed[name]["passed"]
        for figure in (f"{speed[name]['seconds']} s", str(speed[name]["ratio_to_gensim"]["median"])):
            assert all(figure in text for text in pages)
    for row in _measured("train_gpu")["corpora"]:
        least, most = row["seconds_least_to_most"]
        figures = f"{row['seconds']} ({least} to {most}) | {row['documents_per_second']:,}"
        assert figures in pages[1]
        assert figures in _page("docs/howto/gpu.md")


def test_the_figures_of_scoring_are_those_that_were_measured() -> None:
    speed = _measured("evaluate_speed")["evaluations"]
    page = _page("benchmarks/README.md")
    for row in speed.values():
        ratio = "{median} ({least} to {most})".format(**row["ratio"])
        assert f"| {row['seconds']} | {row['floor_seconds']} | {row['scikit_learn_seconds']} | {ratio} |" in page
    codes = f"{speed['codes']['seconds']} s on 2 cores, {speed['codes']['ratio']['median']} times"
    assert codes in _page("docs/measuring.md")


def test_the_figures_of_ranking_are_those_that_were_measured() -> None:
    text = _page("docs/search.md")
    rows = _measured("index_ranking")["rows"]
    for row in rows:
        figures = rf"{row['ndcg10']:.3f} \| {row['bytes_a_document']:g}"
        assert re.search(rf"^\| `{row['rank']}` \| .*? \| {figures} \|$", text, re.MULTILINE)
    assert len(re.findall(r"^\| `\w+` \| .*? \| 0\.\d+ \| ", text, re.MULTILINE)) == len(rows)


def test_the_table_of_benchmarks_is_what_was_measured() -> None:
    train, memory, gpu = _measured("train_speed"), _measured("train_memory")["sizes"], _measured("train_gpu")["corpora"]
    encode, keep = _measured("encode_speed"), _measured("index_keeping")["sizes"]
    text, bags = _measured("text_speed"), _measured("text_memory")["sizes"]
    load = _measured("serve_load")
    plain, default = train["default_without_neighbours"], train["default"]
    near = [_searched("index_speed_real_128", 5_000_000, 128, "top 10", queries) for queries in (1, 256)]
    within, again = (
        [_searched(name, 5_000_000, 28, "radius 2", queries) for queries in (1, 256)]
        for name in ("index_speed", "index_speed_5000000")
    )

    def times(rows: list[Any], backend: str) -> str:
        return " and ".join(str(row["times_as_fast_as_faiss_flat"][backend]) for row in rows)

    def milliseconds(rows: list[Any], backend: str) -> str:
        return "{} ms alone, {} in a batch".format(*(row["milliseconds"][backend] for row in rows))

    def ratio(name: str) -> str:
        return "{median}|({least} to {most})".format(**text["ratios"][name])

    small, large = memory[:2]
    rates, least_to_most = text["documents_per_second"], "({} to {})".format(*gpu[0]["seconds_least_to_most"])
    made, moved = ratio("vocabulary and bags / fit_transform").split("|"), ratio("bags / transform").split("|")
    rows = [
        (f"{default['seconds']} s; {plain['seconds']} s without neighbours",
         f"{default['ratio_to_gensim']['median']} and {plain['ratio_to_gensim']['median']} of its time"),
        (f"{train['whole']['seconds']} s", f"{train['whole']['ratio']} times one without start and neighbours"),
        (f"{encode['parabit']['2']['documents_per_second']:,} documents/s; "
         f"{encode['parabit']['1']['documents_per_second']:,} on one core",
         f"{encode['times_gensim']['2']} times gensim's `infer_vector` ({encode['gensim_documents_per_second']:.0f})"),
        (milliseconds(near, "multi"), f"{times(near, 'multi')} times as fast as faiss's flat scan"),
        (milliseconds(within, "tables"), f"{times(within, 'tables')} times; {times(again, 'tables')} in another run"),
        (f"{keep[2]['open_first_milliseconds']} ms", f"{keep[0]['open_first_milliseconds']} ms for 100,000"),
        (f"{load['many_clients']['requests_per_second']} requests/s, "
         f"{load['many_clients']['search']['p50_ms']} ms (median of a search)",
         f"{load['bare']['in_batches_of_64_ms']} ms a text in the bare index, in batches of 64"),
        (f"{large['peak_mb']:,} MB peak memory, {large['seconds']} s",
         f"{small['peak_mb']} MB and {small['seconds']} s for 100,000"),
        (f"{gpu[0]['seconds']} s {least_to_most}",
         f"{gpu[0]['documents_per_second']:,} documents/s; {gpu[1]['documents_per_second']:,} on Wikipedia articles"),
        (f"{rates['parabit vocabulary and bags']:,} documents/s",
         f"{made[0]} times scikit-learn's `CountVectorizer.fit_transform` {made[1]}"),
        (f"{rates['parabit bags']:,} documents/s", f"{moved[0]} times its `transform` {moved[1]}"),
        (f"{bags[1]['peak_mb']} MB peak memory, {bags[1]['documents_per_second']:,} documents/s",
         f"{bags[0]['peak_mb']} MB and {bags[0]['documents_per_second']:,} documents/s for 100,000"),
    ]  # fmt: skip
    page = _page("docs/benchmarks.md")
    shown = re.findall(r"^\| [^|]+ \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)[2:]
    assert shown == rows
    assert f"({train['gensim']['options']['epochs']} epochs, {train['gensim']['seconds']} s)" in page
    assert f"the newsgroups take {train['whole']['seconds']} s" in " ".join(_page("docs/howto/gpu.md").split())


def test_every_command_that_is_named_has_the_options_that_are_shown() -> None:
    from typer.testing import CliRunner

    from parabit.cli.app import app

    names = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
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


def test_the_figures_of_words_are_those_that_were_measured() -> None:
    speed, memory = _measured("text_speed"), _measured("text_memory")
    rates, small, large = speed["documents_per_second"], *memory["sizes"]
    figures = [f"{rates['parabit vocabulary and bags']:,}", f"{rates['parabit bags']:,}"]
    figures += [str(ratio[which]) for ratio in speed["ratios"].values() for which in ("median", "least", "most")]
    figures += [f"{size[what]:,}" for size in (small, large) for what in ("peak_mb", "documents_per_second")]
    for page in ("docs/benchmarks.md", "benchmarks/README.md"):
        assert [figure for figure in figures if figure not in _page(page)] == []


def test_the_collections_are_those_of_the_report() -> None:
    text = _page("docs/reproducing.md")
    [table] = [table for table in REPORT.tables if table.name == "everywhere"]
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


def test_the_figures_of_encoding_are_those_that_were_measured() -> None:
    speed = _measured("encode_speed")
    for page in ("docs/benchmarks.md", "benchmarks/README.md"):
        assert f"{speed['parabit']['2']['documents_per_second']:,}" in _page(page)
        assert f"{speed['times_gensim']['2']} times" in _page(page)


def test_the_tables_of_the_index_are_what_was_measured() -> None:
    page = _page("benchmarks/README.md")
    for row in _measured("index_ranking")["rows"]:
        assert (
            f"| {row['rank']} | {row['ndcg10']:.3f} ±{row['spread']:.3f} | {row['bytes_a_document']:g} | "
            f"{row['milliseconds_alone']} | {row['milliseconds_in_a_batch']} |"
        ) in page
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


def test_the_tables_of_workers_are_what_was_measured() -> None:
    measured, page = _measured("train_workers"), _page("benchmarks/README.md")
    assert [row["workers"] for row in measured["quality"]] == [1, 2, 4]
    for row in measured["quality"]:
        assert row["seeds"] == [0, 1, 2]
        assert row["within"]  # .01 of one worker
        scores = " | ".join(f"{row[name]:.3f} ±{row[f'{name}_spread']:.3f}" for name in ("map", "ndcg10"))
        assert f"| {row['workers']} | {scores} |" in page
        assert f"| {row['mb_sent_an_epoch_by_a_worker']:,} MB | {row['mb_sent_an_epoch_together']:,} MB |" in page
    for row in measured["speed"]:
        assert (
            f"| {row['workers']} | {row['threads']} | {row['cores']} | {row['seconds']} s | "
            f"{row['seconds_before_the_first_step']} s | {row['seconds_an_epoch']} s | "
            f"{row['seconds_of_exchange_an_epoch']} s | {row['speed_up_of_an_epoch'] or ''} |"
        ) in page
    scaling = " ".join(_page("docs/scaling.md").split())
    means = [", ".join(f"{row[name]:.3f}" for row in measured["quality"]) for name in ("map", "ndcg10")]
    assert f"a MAP of {means[0]} and an NDCG@10 of {means[1]}" in scaling
    timed = [row for row in measured["speed"] if row["threads"] == 4]
    assert f"an epoch takes {', '.join(str(row['seconds_an_epoch']) for row in timed)} s" in scaling
    assert f"{' and '.join(str(row['seconds_of_exchange_an_epoch']) for row in timed[1:])} s are exchange" in scaling
    sent = " and ".join(str(row["mb_sent_an_epoch_by_a_worker"]) for row in measured["quality"][1:])
    assert f"sends {sent} MB, beside a word matrix of {measured['word_matrix_mb']} MB" in scaling
    assert f"{timed[-1]['derived']['speed_up_without_exchange']} times as fast as one" in scaling


def test_the_table_of_parts_is_what_was_measured() -> None:
    page = _page("benchmarks/README.md")
    collections = ("20newsgroups/train", "reuters21578/train", "arxiv/train", "docstrings", "enwiki/train")
    for row in _measured("ablation_128")["rows"]:
        scores = [*(row["corpora"][name] for name in collections), row["mean"]]
        figures = " | ".join(f"{one['map']:.3f} / {one['ndcg10']:.3f}" for one in scores)
        assert f"| {row['change']} | {figures} |" in page

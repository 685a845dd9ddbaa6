"""Tables and figures say what runs gave, each figure beside the paper's for the same thing."""

import base64
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest
from made_up_results import made_up, picture
from typer.testing import CliRunner

from parabit.cli.app import app
from parabit.index.map import embed_codes
from parabit.paper.beyond import table_everywhere, table_peers
from parabit.paper.corpora import PaperCorpus, further_corpora, paper_corpora
from parabit.paper.figures import picture_figures, precision_recall_figures, real_binary_figures, transfer_figures
from parabit.paper.jobs import JOBS, PICTURED
from parabit.paper.published import COLLECTIONS, NEWSGROUPS, TABLE_1, TABLE_2, TABLE_3, TABLE_4
from parabit.paper.report import Cell, Table
from parabit.paper.reproduce import EXPERIMENTS, Plan
from parabit.paper.tables import Finished, table_1, table_2, table_3, table_4, table_4_strict
from parabit.paper.work import runs_of

HERE = paper_corpora(["enwiki", "arxiv"])  # two stand-ins for RCV1, and one for Wikipedia
WHOLE = paper_corpora(["rcv1", "wikipedia"])
MIXED = paper_corpora(["wikipedia"])  # Wikipedia is there, and RCV1 is not
PAPER = Path(__file__).parents[3] / "shared" / "paper" / "binary-paragraph-vectors.tex"  # beside the checkout

MODELS = {
    "PV-DBOW": ("pv-dbow", "vectors"),
    "Binary PV-DBOW": ("binary-pv-dbow", "codes"),
    "PV-DM": ("pv-dm", "vectors"),
    "Binary PV-DM": ("binary-pv-dm", "codes"),
}


def printed_tables() -> list[list[list[str]]]:
    """The cells of the paper's tables, row by row, without their formatting; a cell that spans rows is empty below."""
    tables = []
    inside = r"\\begin\{table\*?\}.*?\\begin\{tabular\}.*?\n(.*?)\\end\{tabular\}"
    for table in re.findall(inside, PAPER.read_text(), re.DOTALL):
        rows = []
        for line in re.split(r"\\\\", table):
            line = re.sub(r"\\(hline|cline\{[^}]*\})", "", line)
            while (plain := re.sub(r"\\multi(?:row|column)\{[^{}]*\}\{[^{}]*\}\{([^{}]*)\}", r"\1", line)) != line:
                line = plain
            cells = [re.sub(r"\\textbf\{(.*)\}", r"\1", cell.strip()) for cell in line.split("&")]
            rows.append(cells)
        tables.append(rows)
    return tables


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's text is not here")
class TestPublished:
    def test_tables_1_to_4_are_those_of_the_paper(self) -> None:
        first, second, third, fourth = printed_tables()
        assert list(TABLE_1.values()) == [pairs(row[3:]) for row in first if is_number(row[-1])]
        assert {row[0]: pairs(row[1:]) for row in second if is_number(row[-1])} == TABLE_2
        assert {row[0]: pairs(row[1:])[0] for row in third if is_number(row[-1])} == TABLE_3
        assert list(TABLE_4.values()) == [pairs(row[2:]) for row in fourth if is_number(row[-1])]

    def test_table_1s_rows_are_in_the_papers_order(self) -> None:
        read: list[tuple[str, int, bool]] = []
        size, model, above = 0, "", ""
        for row in printed_tables()[0]:
            if not is_number(row[-1]):
                continue
            first, second, third = row[:3]
            size = int(first or size)
            if second == "Binary":  # a cell of two lines: "PV-DBOW" is the next
                model = "Binary PV-DBOW"
            elif second and above != "Binary":
                model = second
            above = second
            read.append((model, size, third == "yes"))
        assert read == list(TABLE_1)

    def test_table_4s_rows_are_its_sizes_and_radii(self) -> None:
        sizes, radii = [], []
        for row in printed_tables()[3]:
            if is_number(row[-1]):
                sizes.append(row[0] or sizes[-1])
                radii.append(row[1] or radii[-1])
        assert [(int(size), int(radius)) for size, radius in zip(sizes, radii, strict=True)] == list(TABLE_4)

    def test_the_collections_and_newsgroups_are_the_papers(self) -> None:
        text = PAPER.read_text()
        heads = [cell for row in printed_tables()[1] for cell in row]
        assert tuple(head for head in heads if head in COLLECTIONS) == COLLECTIONS
        assert all(name in text.replace("\\-", "") for name in NEWSGROUPS)


def is_number(cell: str) -> bool:
    return re.fullmatch(r"0?\.\d+", cell) is not None


def pairs(cells: list[str]) -> tuple[tuple[float, float], ...]:
    figures = [float(cell) for cell in cells]
    return tuple(zip(figures[::2], figures[1::2], strict=True))


def check(cell: Cell, finished: Finished, corpus: str, job: str, part: str, metric: str) -> None:
    """The cell is the mean and the spread of what this job gave."""
    values = [result[part][metric] for result in finished.results[corpus, job]]
    assert cell.mean == pytest.approx(mean(values), abs=5e-5)
    assert cell.seeds == len(values)
    assert cell.spread == (pytest.approx(stdev(values), abs=5e-5) if len(values) > 1 else None)


METRICS = {"MAP": ("map", 0), "NDCG@10": ("ndcg@10", 1)}


@pytest.mark.parametrize("corpora", [HERE, WHOLE], ids=["stand-ins", "whole"])
def test_table_1_has_each_network_beside_its_own_figure(corpora: list[PaperCorpus]) -> None:
    finished = made_up(corpora)
    table = table_1(finished)
    by_title = {corpus.title: corpus for corpus in corpora}
    seen = 0
    for row, group, metric, cell in table.cells():
        size, model, bigrams = row.labels
        corpus = by_title[group.title]
        name, place = METRICS[metric]
        kind, part = MODELS[model]
        job = f"{kind}-{size}" if "dm" in kind else f"{kind}-{size}-{'bigrams' if bigrams == 'yes' else 'words'}"
        check(cell, finished, corpus.name, job, part, name)
        column = COLLECTIONS.index(corpus.collection)
        assert cell.paper == TABLE_1[model, int(size), bigrams == "yes"][column][place]
        assert group.stands_for == corpus.stands_for
        seen += 1
    assert seen == len(TABLE_1) * len(corpora) * 2


def test_table_2_has_two_ways_of_hashing_one_network_and_the_codes_of_table_1() -> None:
    finished = made_up(HERE)
    table = table_2(finished)
    parts = {
        "Random hyperplane projection": ("pv-dbow-32-bigrams", "hyperplanes"),
        "Iterative quantization": ("pv-dbow-32-bigrams", "itq"),
        "Binary PV-DBOW (as in Table 1)": ("binary-pv-dbow-32-bigrams", "codes"),
    }
    assert [row.labels[0] for row in table.rows] == list(parts)
    for row, group, metric, cell in table.cells():
        [corpus] = [corpus for corpus in HERE if corpus.title == group.title]
        name, place = METRICS[metric]
        check(cell, finished, corpus.name, *parts[row.labels[0]], name)
        published = TABLE_2.get(row.labels[0], TABLE_1["Binary PV-DBOW", 32, True])
        assert cell.paper == published[COLLECTIONS.index(corpus.collection)][place]


@pytest.mark.parametrize("corpora", [HERE, WHOLE, MIXED], ids=["stand-ins", "whole", "mixed"])
def test_table_3_sets_a_network_of_wikipedia_beside_each_collections_own(corpora: list[PaperCorpus]) -> None:
    finished = made_up(corpora)
    table = table_3(finished)
    *targets, wikipedia = corpora
    assert [group.title for group in table.groups] == [f"Trained on {wikipedia.title}", "Trained on its own documents"]
    for target, row in zip(targets, table.rows, strict=True):
        assert row.labels[0].startswith(target.title)
        assert (f"stands in for {target.stands_for}" in row.labels[0]) == (target.stands_for is not None)
        for (group, metric), cell in zip(table.columns, row.cells, strict=True):
            assert cell is not None
            name, place = METRICS[metric]
            if group == table.groups[0]:
                check(cell, finished, wikipedia.name, "transfer", target.name, name)
                figure = TABLE_3[target.collection][place]
            else:
                check(cell, finished, target.name, PICTURED, "codes", name)
                figure = TABLE_1["Binary PV-DBOW", 128, True][COLLECTIONS.index(target.collection)][place]
            # A stand-in is never compared: its column is one, or it has the paper's figure as a note.
            if cell.paper is None:
                assert target.stands_for
                assert f"On {target.stands_for} the paper has {figure:.2f}." == cell.note
            else:
                assert cell.paper == figure
                assert target.stands_for is None or group.stands_for is not None


@pytest.mark.parametrize("make", [table_4, table_4_strict])
def test_table_4_has_both_variants_and_only_the_papers_figure_beside_the_papers(
    make: Callable[[Finished], Table],
) -> None:
    finished = made_up(HERE)
    table = make(finished)
    assert [tuple(map(int, row.labels)) for row in table.rows] == list(TABLE_4)
    for row, group, metric, cell in table.cells():
        bits, radius = map(int, row.labels)
        variant, _, judged = metric.partition(", ")
        [corpus] = [corpus for corpus in HERE if corpus.title == group.title]
        job, part = f"real-binary-{bits}" if variant == "A" else "separate", f"radius-{bits}-{radius}"
        check(cell, finished, corpus.name, job, part, f"{judged}_ndcg@10" if judged else "ndcg@10")
        column = TABLE_4[bits, radius][COLLECTIONS.index(corpus.collection)]
        assert cell.paper == (None if judged else column["AB".index(variant)])
        found = [result[part] for result in finished.results[corpus.name, job]]
        assert cell.note.startswith(f"{mean(scores['retrieved'] for scores in found):.0f} documents retrieved")
        assert cell.note.endswith("8 queries retrieved nothing")


def test_peers_are_told_without_a_figure_of_the_paper() -> None:
    finished = made_up(HERE)
    table = table_peers(finished)
    parts = {f"LSA, {size} floats": (f"lsa-{size}", "vectors") for size in (128, 32)}
    parts |= {f"LSA + iterative quantization, {size} bits": (f"lsa-{size}", "itq") for size in (128, 32)}
    parts |= {f"parabit, default, {size} bits": (f"default-{size}", "codes") for size in (128, 32)}
    parts |= {"BM25": ("bm25", "vectors"), "TF-IDF, cosine": ("tf-idf", "vectors")}
    metrics = {"MAP": "map", "NDCG@10": "ndcg@10", "P@100": "training_precision@100"}
    seen = set()
    for row, group, metric, cell in table.cells():
        assert cell.paper is None
        assert cell.mean is not None
        [corpus] = [corpus for corpus in HERE if corpus.title == group.title]
        if row.labels[0] in parts:
            seen.add(row.labels[0])
            check(cell, finished, corpus.name, *parts[row.labels[0]], metrics[metric])
    assert seen == parts.keys()
    # Only codes search the training documents; nothing else is expected of vectors, and nothing is missing.
    for row in table.rows:
        floats = row.labels[0] in ("BM25", "TF-IDF, cosine") or "floats" in row.labels[0] or "real" in row.labels[0]
        assert [cell is None for cell in row.cells] == [floats and metric == "P@100" for _, metric in table.columns]


def test_the_closed_form_is_set_beside_its_peers_on_collections_of_all_kinds() -> None:
    finished = made_up([*HERE, *further_corpora(["arxiv", "enwiki"])])
    table = table_everywhere(finished)
    parts = {
        "parabit, default": ("default-{}", "codes"),
        "parabit, default, real-valued queries": ("default-{}", "asymmetric"),
        "LSA + iterative quantization": ("lsa-{}", "itq"),
        "gensim Doc2Vec, 128 floats": ("doc2vec-{}", "vectors"),
    }
    ours, peers = {}, {}
    for row, group, metric, cell in table.cells():
        title, method = row.labels
        [corpus] = [corpus for corpus in finished.corpora if corpus.title == title]
        job, part = parts[method]
        check(cell, finished, corpus.name, job.format(group.title.split()[0]), part, metric.lower())
        place = (title, f"{metric} with {group.title}")
        if method == "parabit, default":
            ours[place] = cell.mean
        elif not method.startswith("parabit"):
            peers[method, place] = cell.mean
    assert len(ours) == 4 * len(finished.corpora)
    # Every figure of a peer that is above ours is told, and no other.
    told = " ".join(table.below)
    for (_, place), theirs in peers.items():
        assert (f"{place[0]}, {place[1]}: {ours[place]:.3f} against {theirs:.3f}" in told) == (ours[place] < theirs)


TABLES = [table_1, table_2, table_3, table_4, table_4_strict, table_everywhere, table_peers]


@pytest.mark.parametrize("make", TABLES)
def test_runs_that_are_missing_leave_their_cells_empty(make: Callable[[Finished], Table]) -> None:
    table = make(Finished(HERE, {}))
    for *_, cell in table.cells():
        assert (cell.mean, cell.spread, cell.seeds) == (None, None, 0)
    assert table.below == ()
    assert table.counts().below == table.counts().above == 0


def test_one_seed_has_no_spread() -> None:
    for *_, cell in table_1(made_up(HERE, seeds=1)).cells():
        assert cell.mean is not None
        assert (cell.spread, cell.seeds) == (None, 1)


@pytest.mark.parametrize("corpora", [HERE, WHOLE, MIXED], ids=["stand-ins", "whole", "mixed"])
@pytest.mark.parametrize("make", [table_1, table_2, table_3, table_4])
def test_what_is_below_the_paper_is_told_of_the_papers_own_collections_and_of_no_others(
    make: Callable[[Finished], Table], corpora: list[PaperCorpus]
) -> None:
    table = make(made_up(corpora))
    told = table.below[0] if table.below else ""
    expected = []
    titles = {corpus.title for corpus in corpora if corpus.stands_for is None}
    for row, group, metric, cell in table.cells():
        assert cell.mean is not None
        if cell.paper is None or cell.mean >= cell.paper or abs(cell.mean - cell.paper) < 0.005:
            continue
        if table.name == "table3":
            trained = group.title.removeprefix("Trained on ")
            if row.labels[0] not in titles or (trained != "its own documents" and trained not in titles):
                continue
        elif group.title not in titles:
            continue
        figures = f"{cell.mean:.3f} against {cell.paper:.2f}"
        about = row.labels[0]
        if table.name == "table1":
            about = f"code size {row.labels[0]}, {row.labels[1]}, with{'' if row.labels[2] == 'yes' else 'out'} bigrams"
        elif table.name == "table4":
            about = f"code size {row.labels[0]}, radius {row.labels[1]}"
        expected.append(f"{group.title}, {about}, {metric}: {figures}")
    assert told == (f"Below the paper's figure: {'; '.join(expected)}." if expected else "")
    assert table.counts().below == len(expected)
    if table.name == "table1":
        assert expected  # figures at random are below as often as not


def test_nothing_is_told_where_nothing_is_below() -> None:
    finished = made_up([HERE[0]])
    for results in finished.results.values():
        for result in results:
            for scores in result.values():
                scores |= dict.fromkeys(("map", "ndcg@10"), 1.0)
    for make in (table_1, table_2, table_3, table_4):
        assert make(finished).below == ()
    assert table_1(finished).counts().above == 24


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that commands ask for, none of which is carried out."""
    plans: list[Plan] = []

    def stop(plan: Plan, *_: object) -> None:
        plan.check()
        plans.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr("parabit.paper.reproduce.reproduce", stop)
    return plans


def test_each_cells_command_asks_for_the_run_that_gave_it(planned: list[Plan]) -> None:
    """And for the collections that its table needs to show it."""
    here = paper_corpora(["enwiki"])
    tables = [make(made_up(here, 1)) for make in TABLES]
    commands = {cell.command for table in tables for *_, cell in table.cells()}
    jobs, places = set(), set()
    for command in sorted(commands):
        parabit, *arguments = shlex.split(command)
        assert parabit == "parabit"
        assert CliRunner().invoke(app, arguments).exit_code == 130, command
        plan = planned.pop()
        assert plan.what in EXPERIMENTS
        corpora = [corpus for corpus in here if corpus.name in plan.corpora]
        assert len(corpora) == len(plan.corpora)
        runs = runs_of(corpora, [JOBS[name] for name in plan.jobs], [0])
        assert len(runs) == 1
        jobs.update(plan.jobs)
        places.update(plan.corpora)
        # With these collections alone the same table still has a cell of that command.
        again = made_up(corpora, 1, [JOBS[name] for name in plan.jobs])
        made = [make(again) for make in EXPERIMENTS[plan.what].tables]
        found = [cell for table in made for *_, cell in table.cells() if cell.command == command]
        assert any(cell.mean is not None for cell in found)
    assert places == {corpus.name for corpus in here}
    in_tables = {name for what in ("table1", "table2", "table3", "table4", "peers") for name in EXPERIMENTS[what].jobs}
    assert jobs == in_tables


def average(finished: Finished, corpus: str, job: str, part: str, name: str) -> list[float]:
    return np.mean([result[part][name] for result in finished.results[corpus, job]], axis=0).round(5).tolist()


def test_curves_are_means_over_seeds() -> None:
    finished = made_up(HERE)
    figures = {figure.name: figure for figure in precision_recall_figures(finished)}
    assert figures.keys() == {f"precision-recall-{corpus.name}-{size}" for corpus in HERE for size in (128, 32)}
    curves = {curve.label: curve for curve in figures["precision-recall-arxiv-32"].curves}
    for label, family, job, part in (
        ("PV-DBOW, bigrams", "real", "pv-dbow-32-bigrams", "vectors"),
        ("Binary PV-DM", "binary", "binary-pv-dm-32", "codes"),
        ("Semantic hashing", "baseline", "semantic-hashing-32", "codes"),
    ):
        assert curves[label].family == family
        for name in ("recall", "precision"):
            assert list(getattr(curves[label], name)) == average(finished, "arxiv", job, part, name)
    assert "stands in for RCV1" in figures["precision-recall-arxiv-32"].title
    assert "stands in" not in figures["precision-recall-20newsgroups-32"].title


def test_transfer_is_drawn_beside_each_collections_own_network() -> None:
    finished = made_up(HERE)
    figures = {figure.name: figure for figure in transfer_figures(finished)}
    assert figures.keys() == {"transfer-20newsgroups", "transfer-reuters21578", "transfer-arxiv"}
    own, other = figures["transfer-20newsgroups"].curves
    assert list(own.precision) == average(finished, "20newsgroups", PICTURED, "codes", "precision")
    assert list(other.precision) == average(finished, "enwiki", "transfer", "20newsgroups", "precision")
    assert other.label == "trained on Wikipedia sample"


def test_a_real_binary_networks_code_and_vector_are_drawn_beside_plain_vectors() -> None:
    finished = made_up(HERE[:1])
    [figure] = real_binary_figures(finished)
    jobs = {
        "PV-DBOW, 300 dimensions": ("separate", "vectors"),
        "Real-Binary PV-DBOW, 300 dimensions": ("real-binary-28", "vectors"),
        "Real-Binary PV-DBOW, 28 bits": ("real-binary-28", "codes"),
    }
    assert [curve.label for curve in figure.curves] == list(jobs)
    for curve in figure.curves:
        assert list(curve.recall) == average(finished, "20newsgroups", *jobs[curve.label], "recall")


def test_a_curve_of_runs_that_are_missing_is_not_drawn_nor_a_figure_without_curves() -> None:
    finished = made_up(HERE[:1], jobs=[JOBS["pv-dm-32"]])
    [figure] = precision_recall_figures(finished)
    assert (figure.name, [curve.label for curve in figure.curves]) == ("precision-recall-20newsgroups-32", ["PV-DM"])
    assert transfer_figures(finished) == real_binary_figures(finished) == picture_figures(finished) == []


def test_the_pictures_points_are_those_of_the_first_seeds_codes() -> None:
    finished = made_up(HERE[:1], seeds=2, jobs=[JOBS[PICTURED]])
    [figure] = picture_figures(finished)
    first = finished.results["20newsgroups", PICTURED][0]["picture"]
    codes = np.frombuffer(base64.b64decode(first["codes"]), dtype=np.uint8).reshape(-1, 16)
    assert np.array_equal(np.stack([figure.x, figure.y], axis=1), embed_codes(codes).round(3))
    assert list(figure.labels) == first["labels"]


def test_three_documents_are_too_few_for_a_picture() -> None:
    few = {"picture": picture(np.random.default_rng(0), count=3)}
    assert picture_figures(Finished(HERE[:1], {("20newsgroups", PICTURED): [few]})) == []

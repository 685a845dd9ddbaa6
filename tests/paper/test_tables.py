"""Tables and claims say what is in the long table, and count each figure of the paper once."""

from pathlib import Path

import pytest

from parabit.paper.corpora import PAPER, PaperCorpus, paper_corpora
from parabit.paper.experiments import CURVES, JOBS, TABLES, Run
from parabit.paper.jobs import Rows
from parabit.paper.results import (
    FAILS,
    HOLDS,
    PARTLY,
    PUBLISHED,
    UNTESTED,
    Figures,
    Store,
    claims,
    tables,
)

CORPORA = NEWS, HEADERS_KEPT, REUTERS = paper_corpora([])


def keep(folder: Path, corpus: PaperCorpus, job: str, rows: Rows, seed: int = 0) -> None:
    run = Run(JOBS[job], corpus, seed)
    about = {
        "id": run.id,
        "corpus": corpus.name,
        "job": job,
        "seed": seed,
        "quick": False,
        "data": "",
    }
    about |= {"code": "", "device": "cpu", "torch": "", "date": "", "seconds": 1.0}
    Store(folder).keep(about, rows)


def test_all_36_distinct_figures_of_20_newsgroups_are_compared_once(tmp_path: Path) -> None:
    by_job: dict[str, Rows] = {}
    for (collection, job, part, metric), value in PUBLISHED.items():
        if collection == "20 Newsgroups":
            by_job.setdefault(job, []).append((part, metric, value))
    for job, rows in by_job.items():
        keep(tmp_path, NEWS, job, [(part, metric, value + 0.01) for part, metric, value in rows])
        keep(tmp_path, HEADERS_KEPT, job, rows)
        keep(tmp_path, REUTERS, job, rows)
    figures = Figures(tmp_path, CORPORA)
    counts = [
        {name: len(cells) for name, cells in figures.compared(one.name).items()} for one in CORPORA
    ]
    assert counts[0] == {"above": 36, "equal": 0, "below": 0}
    assert counts[1] == {"above": 0, "equal": 36, "below": 0}
    assert sum(counts[2].values()) == 0  # it stands in for RCV1
    first = tables(figures)[0]
    assert (first.name, len(first.columns), len(first.rows)) == ("table1", 3, 12)
    cell = first.rows[0][1][0]
    assert cell is not None
    assert cell.command == "parabit reproduce table1 --corpus 20newsgroups --job pv-dbow-128-words"


def test_every_job_and_look_that_the_data_file_names_exists() -> None:
    rows = [*(table.rows for table in TABLES.values()), *CURVES.values()]
    assert {look for curves in CURVES.values() for _, look, _, _ in curves} == PAPER["looks"].keys()
    names = {row[-2] for some in rows for row in some} | {job for _, job, _, _ in PUBLISHED}
    pairs = [pair for claim in PAPER["claims"] for pair in claim["pairs"]]
    assert (
        names | {figure.partition("/")[0] for _, *both in pairs for figure in both} <= JOBS.keys()
    )


@pytest.mark.parametrize(
    ("value", "standing"), [(0.405, "above"), (0.404, "equal"), (0.396, "equal"), (0.39, "below")]
)
def test_what_is_nearer_than_half_of_the_last_digit_is_equal(
    tmp_path: Path, value: float, standing: str
) -> None:
    keep(tmp_path, NEWS, "pv-dbow-128-words", [("vectors", "map", value + 1e-9)])
    cell = Figures(tmp_path, CORPORA).cells[NEWS.name, "pv-dbow-128-words", "vectors", "map"]
    assert (cell.paper, cell.standing) == (0.4, standing)


def test_a_cell_is_the_mean_over_seeds_of_the_last_runs(tmp_path: Path) -> None:
    keep(tmp_path, NEWS, "pv-dm-32", [("vectors", "map", 0.9)])
    for seed, value in enumerate((0.1, 0.2, 0.3)):
        keep(tmp_path, NEWS, "pv-dm-32", [("vectors", "map", value)], seed)
    cell = Figures(tmp_path, CORPORA).cells[NEWS.name, "pv-dm-32", "vectors", "map"]
    assert (cell.value, cell.spread) == pytest.approx((0.2, 0.1))
    assert not cell.stale


def test_a_claim_is_judged_by_means_and_their_spread(tmp_path: Path) -> None:
    codes, shorter = "binary-pv-dbow-128-bigrams", "binary-pv-dbow-32-bigrams"
    for job, part, values in [
        (codes, "codes", (0.430, 0.440)),
        ("semantic-hashing-128", "codes", (0.3, 0.3)),
        ("binary-pv-dm-128", "codes", (0.434, 0.441)),  # within the spread of the first
        (shorter, "codes", (0.35, 0.36)),
        ("pv-dbow-32-bigrams", "itq", (0.35, 0.37)),  # as good
        ("binary-pv-dm-32", "codes", (0.37, 0.371)),
        ("binary-pv-dbow-32-words", "codes", (0.3, 0.3)),
        ("binary-pv-dbow-128-words", "codes", (0.5, 0.5)),
        ("pv-dbow-32-bigrams", "vectors", (0.5, 0.5)),
        ("pv-dbow-32-words", "vectors", (0.4, 0.4)),
        ("window-3", "codes", (0.4, 0.4)),
        ("window-1-two-sided", "codes", (0.5, 0.5)),
    ]:
        for seed, value in enumerate(values):
            keep(tmp_path, NEWS, job, [(part, "map", value)], seed)
    found = {claim.text: claim for claim in claims(Figures(tmp_path, CORPORA))}
    judged = {
        text.partition(" (")[0]: (one.verdict, one.agree, len(one.compared))
        for text, one in found.items()
    }
    assert judged["128-bit Binary PV-DBOW with bigrams beats 128-bit semantic hashing"] == (
        HOLDS,
        1,
        1,
    )
    assert judged["Binary PV-DBOW beats Binary PV-DM at 128 bits"] == (
        FAILS,
        0,
        1,
    )  # equal is not more
    assert judged["Binary PV-DBOW beats Binary PV-DM at 32 bits"] == (FAILS, 0, 1)
    benefit = (
        "Iterative quantization of real-valued vectors brings no benefit over 32-bit Binary PV-DBOW"
    )
    assert judged[benefit] == (HOLDS, 1, 1)
    assert judged["A context of one word, on one side, is the best for Binary PV-DM"] == (
        PARTLY,
        1,
        2,
    )
    assert judged["Bigrams usually raise MAP"] == (HOLDS, 2, 3)
    assert judged["Separate networks"] == (UNTESTED, 0, 0)
    assert [
        one.sign for claim in found.values() for one in claim.compared if "DM at" in claim.text
    ] == ["≈", "<"]

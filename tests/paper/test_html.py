import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from made_up_report import make_report

from parabit.errors import EvaluationError
from parabit.paper.html import render
from parabit.paper.plots import draw
from parabit.paper.report import Cell, Group, Report, Row, Table

VOID = {"meta", "br", "hr", "img", "input", "link"}
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><defs><g id="a"/></defs><g clip-path="url(#a)" id="b"/></svg>'


class Page(HTMLParser):
    """What a browser would see: elements, each closed where it should be, ids, links, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.tables: list[list[list[tuple[str, dict[str, str], str]]]] = []  # rows of cells: tag, attributes, text
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = {key: value or "" for key, value in attributes}
        assert len(known) == len(attributes), f"an attribute of {tag} occurs twice"
        self.elements.append((tag, known))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append((tag, known, ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)
        if {"td", "th"} & set(self.open):
            tag, known, said = self.tables[-1][-1][-1]
            self.tables[-1][-1][-1] = tag, known, said + data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def of(self, key: str) -> list[str]:
        return [known[key] for _, known in self.elements if key in known]


def pictures_of(report: Report, folder: Path) -> dict[str, str]:
    for figure in report.figures:
        draw(figure, folder)
    return {figure.name: (folder / f"{figure.name}.svg").read_text() for figure in report.figures}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    report = make_report()
    return render(report, pictures_of(report, tmp_path_factory.mktemp("figures")))


def one_table(*cells: Cell | None, stands_for: str | None = None) -> Report:
    """A report with one row of a single table."""
    group = Group("News", stands_for, tuple(f"m{number}" for number in range(len(cells))))
    table = Table("table1", "Table 1", "", ("Model",), (group,), (Row(("PV-DM",), cells),), ())
    return replace(make_report(), tables=(table,), figures=())


def cells_of(report: Report) -> list[tuple[str, str]]:
    """Class and text of the cells of its first table."""
    return [
        (known.get("class", ""), said) for tag, known, said in Page(render(report, {})).tables[0][-1] if tag == "td"
    ]


def test_every_element_is_closed_and_every_id_is_its_own(page: str) -> None:
    ids = Page(page).of("id")
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert len(ids) > 20


def test_every_link_and_reference_leads_somewhere_on_the_page(page: str) -> None:
    parsed = Page(page)
    ids = set(parsed.of("id"))
    links = [*parsed.of("href"), *parsed.of("xlink:href")]
    assert links
    assert all(link[0] == "#" and link[1:] in ids for link in links)
    assert set(re.findall(r"url\(#(.*?)\)", page)) <= ids
    assert {part for said in parsed.of("aria-labelledby") for part in said.split()} <= ids


def test_the_page_needs_nothing_but_itself(page: str) -> None:
    tags = {tag for tag, _ in Page(page).elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "image"}
    assert "@import" not in page
    assert "@font-face" not in page
    # Addresses are there only as names of what SVG is.
    assert set(re.findall(r"https?://[\w./]+", page)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_every_text_and_number_of_the_report_is_on_the_page(page: str) -> None:
    report, parsed = make_report(), Page(page)
    told = parsed.text
    wanted = [report.title, report.command, report.parabit, *report.remarks, "2 h 14 min", "0, 1, 2", "2026-11-15"]
    wanted += [*report.machine, *report.machine.values(), *report.versions, *report.versions.values()]
    for table in report.tables:
        wanted += [table.title, table.caption, *table.label_heads, *table.below]
        wanted += [f"stands in for {group.stands_for}" for group in table.groups if group.stands_for]
        for row, group, metric, cell in table.cells():
            wanted += [*row.labels, group.title, metric, cell.command, cell.note]
            wanted += [] if cell.mean is None else [f"{cell.mean:.3f}".lstrip("0")]
            wanted += [] if cell.spread is None else [f"±{cell.spread:.3f}".replace("0.", ".")]
            wanted += [] if cell.paper is None else [f"{cell.paper:.2f}".lstrip("0")]
            if cell.command and cell.mean is not None:
                assert any(cell.command in title for title in parsed.of("title"))
    for figure in report.figures:
        wanted += [figure.title, figure.caption]
    wanted += ["Binary PV-DBOW", "TF-IDF", "75.0", "61.0", "sci.crypt", "comp.graphics"]
    for facts in report.corpora:
        numbers = (facts.training_documents, facts.test_documents, facts.words, facts.features, facts.queries,
                   facts.skipped, facts.unlabelled)  # fmt: skip
        wanted += [facts.title, facts.relevance, facts.note, *(f"{n:,}" for n in numbers if n is not None)]
    wanted += ["paper, 128 bits", "epochs", "31", '["a", "the"]', "null", "41.25", "0.4217"]
    assert [text for text in wanted if text not in told] == []


def test_each_figure_is_there_with_words_for_those_who_do_not_see_it(page: str) -> None:
    parsed = Page(page)
    drawn = [known for tag, known in parsed.elements if tag == "svg"]
    assert [known["data-figure"] for known in drawn] == ["figure4", "figure5", "figure7"]
    assert all(known["role"] == "img" for known in drawn)
    assert "Curves: Binary PV-DBOW, PV-DBOW, TF-IDF." in parsed.text
    assert "3 points of 3 labels." in parsed.text


def test_tables_have_captions_and_heads_with_a_scope(page: str) -> None:
    parsed = Page(page)
    tags = [tag for tag, _ in parsed.elements]
    assert tags.count("caption") == tags.count("table")
    assert all("scope" in known for tag, known in parsed.elements if tag == "th")


def test_every_row_of_a_table_is_as_wide_as_the_others(page: str) -> None:
    for table in Page(page).tables:
        widths: Counter[int] = Counter()
        for number, row in enumerate(table):
            for _, known, _ in row:
                for below in range(int(known.get("rowspan", 1))):
                    widths[number + below] += int(known.get("colspan", 1))
        assert set(widths) == set(range(len(table)))
        assert len(set(widths.values())) == 1


def test_text_from_data_is_text_and_nothing_else(tmp_path: Path) -> None:
    evil = "<script>alert('&amp;')</script>\"><b x='"
    report = make_report(quick=True, word=evil)
    parsed = Page(render(report, pictures_of(report, tmp_path)))
    tags = {tag for tag, _ in parsed.elements}
    assert "script" not in tags
    assert not any("x" in known for tag, known in parsed.elements if tag == "b")
    assert f"The paper, rerun{evil}" in parsed.text
    assert parsed.text.count(evil) > 30


def test_the_summary_counts_the_cells(page: str) -> None:
    told = Page(page).text
    # .4218 to .40, then .4481 to .45, then .7287 to .75; two without the paper's, one not run, four on a stand-in.
    assert "Of 3 figures" in told
    assert "above in 1, equal in 1 (to the two decimals that the paper gives) and below in 1." in told
    assert "Not run: 1." in told
    assert "but not compared: 4." in told
    assert "Without a counterpart in the paper: 2." in told


def test_the_quick_version_says_so_before_anything_else() -> None:
    quick, whole = (Page(render(make_report(quick=quick), {})).text for quick in (True, False))
    assert 0 < quick.index("quick version") < quick.index("Of 3 figures")
    assert "quick version" not in whole


def test_a_sign_says_what_the_colour_says() -> None:
    shown = cells_of(one_table(Cell(0.3, 0.35, 0.01, 3), Cell(0.3, 0.25, 0.01, 3), Cell(0.3, 0.301, 0.01, 3)))
    assert [said for name, said in shown if "difference" in name] == ["+.05", "−.05", ".00"]
    page = render(one_table(Cell(0.3, 0.35, 0.01, 3), Cell(0.3, 0.25, 0.01, 3)), {})
    assert '<span class="above">+.05</span>' in page
    assert '<span class="below">−.05</span>' in page


def test_a_stand_in_is_shown_beside_the_paper_and_not_compared() -> None:
    report = one_table(Cell(0.3, 0.35, 0.01, 3), stands_for="RCV1")
    assert [said for _, said in cells_of(report)] == [".30", ".350±.010"]
    page = render(report, {})
    assert "stands in for RCV1" in page
    assert '<span class="other">.30</span>' in page
    assert "+.05" not in page


def test_what_was_not_run_has_no_sense_or_no_counterpart_is_shown_as_such() -> None:
    shown = [said for _, said in cells_of(one_table(Cell(0.3, None, None, 0), None, Cell(None, 0.4, None, 3)))]
    assert shown == [".30", "not run", "", "", "–", ".400", ""]
    # Where the paper has no figure at all, its columns would be empty.
    assert [said for _, said in cells_of(one_table(Cell(None, 0.4, None, 3)))] == [".400"]


def test_a_note_is_said_once_under_the_table_and_fewer_seeds_are_a_note() -> None:
    noted = Cell(0.3, 0.4, None, 1, note="Stopped early.")
    page = render(one_table(noted, noted), {})
    assert page.count("<li id=") == 2
    assert Page(page).text.count("Stopped early.") == 1
    assert "1 seed, not 3." in page
    assert cells_of(one_table(noted))[1][1] == ".4001,2"
    assert page.count('href="#table1.note2"') == 2


def test_a_command_is_listed_once_with_the_cells_that_it_gives(page: str) -> None:
    told = Page(page).text
    assert (
        "parabit reproduce table1 --bits 128 128, PV-DBOW, no: 20 Newsgroups; 128, PV-DBOW, yes: 20 Newsgroups (MAP)"
        in told
    )


def test_labels_that_rows_share_stand_once(page: str) -> None:
    rows = Page(page).tables[0]
    labels = [[said for tag, _, said in row if tag == "th"] for row in rows[3:]]
    assert labels == [["128", "PV-DBOW", "no"], ["yes"], ["32", "default", "no"]]


def test_the_same_ids_in_two_pictures_do_not_meet() -> None:
    page = render(make_report(), dict.fromkeys(("figure4", "figure5", "figure7"), SVG))
    ids = Page(page).of("id")
    assert len(ids) == len(set(ids))
    assert 'clip-path="url(#figure5.a)" id="figure5.b"' in page


def test_a_figure_without_a_picture_is_told_in_numbers_and_a_broken_one_is_an_error() -> None:
    assert Page(render(make_report(), {})).text.count("This figure was not drawn.") == 3
    with pytest.raises(EvaluationError, match="picture of figure5 is no SVG.*draw it again"):
        render(make_report(), {"figure5": "<svg"})


def test_a_report_of_nothing_is_still_a_page() -> None:
    empty = Report("Nothing", "parabit reproduce", False, "0.1.0", "2026-11-15", 0.25, (), {})
    told = Page(render(empty, {})).text
    assert "Of 0 figures" in told
    assert "0.2 s" in told

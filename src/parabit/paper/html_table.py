"""A table of the report as HTML: for each metric the paper's figure, ours, and the difference."""

from collections.abc import Iterator
from itertools import groupby, takewhile
from operator import itemgetter

from parabit.paper.markup import element, share, text
from parabit.paper.report import Cell, Group, Row, Table

_HEADS = {"paper": "paper", "ours": "ours", "difference": "diff."}


def render_table(table: Table, seeds: int) -> str:
    """The table in a box of its own to scroll in, with notes, the sentences under it and its commands.

    `seeds` is how many the run was asked for: a figure of fewer says so in a note.

    Example:
        >>> row = Row(("PV-DM",), (Cell(0.41, 0.4303, 0.0052, seeds=3),))
        >>> table = Table("table1", "Table 1", "Retrieval.", ("Model",), (Group("News", None, ("MAP",)),), (row,), ())
        >>> page = render_table(table, seeds=3)
        >>> [figure in page for figure in (".41", ".430", "±.005", "+.02")]
        [True, True, True, True]
    """
    writer = _Writer(table, seeds)
    grid = element("table", element("caption", text(table.caption)), writer.head(), *writer.bodies(), class_="figures")
    parts = [
        element(
            "div",
            grid,
            class_="box wide" if len(table.columns) > 6 else "box",
            role="region",
            aria_label=table.title,
            tabindex=0,  # so that the arrow keys scroll it
        )
    ]
    if writer.notes:
        notes = (element("li", text(note), id=writer.anchor(note)) for note in writer.notes)
        parts.append(element("ol", *notes, class_="notes"))
    parts += [element("p", text(sentence), class_="below") for sentence in table.below]
    parts.append(_commands(table))
    return "".join(parts)


class _Writer:
    """What the rows of one table share."""

    def __init__(self, table: Table, seeds: int) -> None:
        self.table = table
        self.seeds = seeds
        self.notes = list(dict.fromkeys(note for *_, cell in table.cells() for note in self.notes_of(cell)))
        self.kinds = [self._kinds(group) for group, _ in table.columns]
        self.styles = _label_styles(table)

    def _kinds(self, group: Group) -> list[str]:
        """The columns of a metric: nothing is set beside a paper that is silent, nor compared across corpora."""
        if not any(cell.paper is not None for _, of, _, cell in self.table.cells() if of == group):
            return ["ours"]
        return ["paper", "ours"] if group.stands_for else ["paper", "ours", "difference"]

    def notes_of(self, cell: Cell) -> list[str]:
        """What is to be said about a cell under the table."""
        fewer = cell.mean is not None and cell.seeds < self.seeds
        notes = [cell.note, f"{_seeds(cell.seeds)}, not {self.seeds}." if fewer else ""]
        return [note for note in notes if note]

    def anchor(self, note: str) -> str:
        """The id of a note: a name has no point in it, so that no id of another part is the same."""
        return f"{self.table.name}.note{self.notes.index(note) + 1}"

    def head(self) -> str:
        """Three rows: corpora; metrics; the paper's, ours and the difference."""
        corpora = "".join(
            element("th", text(head), scope="col", rowspan=3, class_="label", style=style)
            for head, style in zip(self.table.label_heads, self.styles, strict=True)
        )
        metrics = kinds = ""
        column = 0
        for group in self.table.groups:
            title = text(group.title)
            if group.stands_for:
                title += " " + element("small", text(f"stands in for {group.stands_for}"))
            width = sum(map(len, self.kinds[column : column + len(group.metrics)]))
            corpora += element("th", title, scope="colgroup", colspan=width, class_="corpus first")
            for number, metric in enumerate(group.metrics):
                names = _borders(number, self.kinds[column])
                metrics += element(
                    "th", text(metric), scope="colgroup", colspan=len(names), class_=names[self.kinds[column][0]]
                )
                for kind, name in names.items():
                    other = kind == "paper" and group.stands_for
                    said = f"the paper's figure on {group.stands_for}" if other else None
                    kinds += element("th", _HEADS[kind], scope="col", class_=name or None, title=said)
                column += 1
        return element("thead", *(element("tr", row) for row in (corpora, metrics, kinds)))

    def bodies(self) -> Iterator[str]:
        """A table body for the rows of each first label; one for all where a row has no other label."""
        shared = 1 if len(self.table.label_heads) > 1 else 0
        for _, same in groupby(self.table.rows, key=lambda row: row.labels[:shared]):
            rows = list(same)
            yield element("tbody", *(self._row(rows, number) for number in range(len(rows))))

    def _row(self, rows: list[Row], number: int) -> str:
        row, line = rows[number], ""
        for place, label in enumerate(row.labels):
            spans = _spans(rows, number, place)
            if spans:
                line += element(
                    "th",
                    text(label),
                    scope="rowgroup" if place == 0 and spans > 1 else "row",
                    rowspan=spans if spans > 1 else None,
                    class_="label",
                    style=self.styles[place],
                )
        for column, cell in enumerate(row.cells):
            group, metric = self.table.columns[column]
            names = _borders(group.metrics.index(metric), self.kinds[column])
            if cell is None:
                line += element("td", colspan=len(names), class_=next(iter(names.values())))
            else:
                line += self._cell(cell, group, names)
        return element("tr", line)

    def _cell(self, cell: Cell, group: Group, names: dict[str, str]) -> str:
        said = [_seeds(cell.seeds) if cell.mean is not None else "", cell.command]
        title = "\n".join(part for part in said if part) or None
        shown = {"paper": self._paper(cell, group), "ours": self._ours(cell), "difference": _difference(cell)}
        return "".join(
            element("td", shown[kind], class_=f"{kind} {name}".strip(), title=title if kind == "ours" else None)
            for kind, name in names.items()
        )

    def _paper(self, cell: Cell, group: Group) -> str:
        figure = "–" if cell.paper is None else share(cell.paper, 2)
        return element("span", figure, class_="other") if group.stands_for else figure

    def _ours(self, cell: Cell) -> str:
        links = [
            element("a", str(self.notes.index(note) + 1), href=f"#{self.anchor(note)}") for note in self.notes_of(cell)
        ]
        marks = element("sup", ",".join(links)) if links else ""
        if cell.mean is None:
            return element("span", "not run", class_="missing") + marks
        # The spread's place is kept where there is none, so that means stand below each other.
        spread = "" if cell.spread is None else f"±{share(cell.spread, 3)}"
        return element("b", share(cell.mean, 3)) + element("small", spread) + marks


def _borders(number: int, kinds: list[str]) -> dict[str, str]:
    """The class of each of a metric's columns: a corpus begins with a line, and its next metric with a gap."""
    first, *rest = kinds
    return {first: "next" if number else "first"} | dict.fromkeys(rest, "")


def _difference(cell: Cell) -> str:
    if cell.difference is None:
        return ""
    # What rounds to no difference has no sign.
    figure = share(0, 2) if cell.standing == "equal" else share(cell.difference, 2, signed=True)
    return element("span", figure, class_=cell.standing)


def _spans(rows: list[Row], number: int, place: int) -> int:
    """How many rows a label stands for: those below that share it and all to its left; 0 where one above says it."""
    labels = rows[number].labels
    if place == len(labels) - 1:  # the last label tells one row from the next
        return 1

    def same(row: Row) -> bool:
        return row.labels[: place + 1] == labels[: place + 1]

    if number and same(rows[number - 1]):
        return 0
    return 1 + sum(1 for _ in takewhile(same, rows[number + 1 :]))


def _label_styles(table: Table) -> list[str]:
    """How wide each label column is, and how far from the left it stays when the table is scrolled.

    Both are given twice, for wide screens and for phones, where labels break between words.
    """
    styles, left, narrow_left = [], 0.0, 0.0
    for place, head in enumerate(table.label_heads):
        labels = [row.labels[place] for row in table.rows]
        words = [word for label in (head, *labels) for word in label.split()]
        # A letter takes some 0.6 em in the widest of fonts; 1 em is the column's padding.
        longest = max((len(label) for label in labels), default=0)
        narrow = 0.62 * min(12, max(map(len, words), default=1)) + 1
        width = max(narrow, 0.6 * min(24, longest) + 1)
        styles.append(f"--w:{width:.1f}em;--l:{left:.1f}em;--nw:{narrow:.1f}em;--nl:{narrow_left:.1f}em")
        left, narrow_left = left + width, narrow_left + narrow
    return styles


def _commands(table: Table) -> str:
    """Each command once, with the cells that it gives."""
    given: dict[str, dict[tuple[str, Group], list[str]]] = {}
    for row, group, metric, cell in table.cells():
        if cell.command:
            cells = given.setdefault(cell.command, {})
            cells.setdefault((", ".join(row.labels), group), []).append(metric)
    if not given:
        return ""
    items = ""
    for command, cells in given.items():
        said = []
        for labels, places in groupby(cells, key=itemgetter(0)):
            # All metrics of a corpus need no names.
            corpora = (
                group.title
                if len(cells[labels, group]) == len(group.metrics)
                else f"{group.title} ({', '.join(cells[labels, group])})"
                for _, group in places
            )
            said.append(f"{labels}: {', '.join(corpora)}")
        items += element("dt", element("code", text(command))) + element("dd", text("; ".join(said)))
    return element("details", element("summary", "Commands"), element("dl", items, class_="commands"))


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"mean of {count} seeds"

"""A report whose figures are made up, with one of everything that a report can have."""

from parabit.paper.report import (
    Cell,
    CorpusFacts,
    Curve,
    CurveFigure,
    Group,
    PointsFigure,
    Report,
    Row,
    Table,
)

COMMAND = "parabit reproduce table1 --bits {}"


def make_report(quick: bool = False, word: str = "") -> Report:
    """The report; `word` is put into every text that data can bring."""
    news = Group(f"20 Newsgroups{word}", None, (f"MAP{word}", "NDCG@10"))
    reuters = Group(f"Reuters-21578{word}", f"RCV1{word}", ("MAP", "NDCG@10"))
    rows = (
        Row(("128", f"PV-DBOW{word}", "no"), (
            Cell(0.40, 0.4218, 0.0061, 3, command=COMMAND.format(128) + word),
            Cell(0.75, 0.7287, 0.0023, 3, command=COMMAND.format(128) + word),
            Cell(0.25, 0.3114, 0.0042, 3),
            Cell(0.79, 0.8011, 0.0013, 3),
        )),
        Row(("128", f"PV-DBOW{word}", "yes"), (
            Cell(0.45, 0.4481, None, 1, note=f"Stopped early.{word}", command=COMMAND.format(128)),
            Cell(0.75, None, None, 0),
            Cell(0.27, None, None, 0),
            None,
        )),
        Row(("32", "default", "no"), (
            Cell(None, 0.4309, 0.0088, 3, command=COMMAND.format(32)),
            Cell(None, 0.6497, 0.0039, 3),
            Cell(0.26, 0.2633, 0.0071, 3),
            Cell(None, 0.6666, 0.0007, 3),
        )),
    )  # fmt: skip
    heads = ("Code size", f"Model{word}", "With bigrams")
    table = Table(
        "table1", f"Table 1{word}", f"Retrieval.{word}", heads, (news, reuters), rows, (f"Below because.{word}",)
    )
    recall = (0.0, 0.002, 0.01, 0.1, 1.0)
    curves = (
        Curve(f"Binary PV-DBOW{word}", "binary", recall, (0.8, 0.8, 0.75, 0.61, 0.05)),
        Curve("PV-DBOW", "real", recall, (0.85, 0.84, 0.79, 0.64, 0.06)),
        Curve("TF-IDF", "baseline", recall[1:4], (0.8, 0.7, 0.33)),
    )
    labels = ("sci.crypt", "comp.graphics", f"other{word}")
    return Report(
        title=f"The paper, rerun{word}",
        command=f"parabit reproduce all -o report{word}",
        quick=quick,
        parabit="0.1.0",
        generated="2026-11-15T14:03:00+00:00",
        seconds=8047.3,
        seeds=(0, 1, 2),
        machine={f"processor{word}": f"2 cores{word}"},
        versions={f"torch{word}": f"2.13.0{word}"},
        parameters=((f"paper, 128 bits{word}", {f"epochs{word}": 31, "stop": ["a", f"the{word}"], "dim": None}),),
        remarks=(f"RCV1 is not here.{word}",),
        corpora=(
            CorpusFacts("20newsgroups", f"20 Newsgroups{word}", None, 11_314, 7_532, 101_631, 1_042_117,
                        f"The same newsgroup.{word}", 7_529, 3, 17, f"By date.{word}"),
            CorpusFacts("reuters21578", "Reuters-21578", f"RCV1{word}", 9_603, 3_299, None, None,
                        "Topics in common.", None, None, None),
        ),
        tables=(table,),
        figures=(
            CurveFigure("figure4", f"Figure 4{word}", f"Curves.{word}", curves),
            CurveFigure("figure5", "Figure 5", "The same again.", curves),
            PointsFigure("figure7", f"Figure 7{word}", f"Codes.{word}", (0.0, 1.5, -2.0), (2.0, 0.5, 1.0), labels),
        ),
        runs=[{"table": f"table1{word}", f"seed{word}": 0, "seconds": 41.25}, {"table": "table1", "map": 0.4217}],
    )  # fmt: skip

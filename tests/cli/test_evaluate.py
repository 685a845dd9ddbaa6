"""`parabit evaluate`: its figures are those of the library."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import answer, run

from made_up_collections import lay_out
from parabit import ParagraphVectors, open_corpus
from parabit.evaluation import evaluate_codes, evaluate_vectors
from parabit.evaluation.relevance import Labelled, labelled
from topics import Topics

TRAINED = 100  # the first so many texts; the next are evaluated
TESTED = 80
NAMES = ("tin", "wool", "tea", "rope")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, topics: Topics) -> Path:
    """A folder with a model of codes, one of vectors, and one of both."""
    folder = tmp_path_factory.mktemp("models")
    for name, bits, dim in (("codes", 16, None), ("vectors", None, 12), ("both", 16, 20)):
        ParagraphVectors(bits, dim=dim).fit(topics.texts[:TRAINED]).save(folder / name)
    return folder


def labels_of(place: int, topics: Topics) -> tuple[str, ...]:
    """One label each; every fourth text has two, every tenth none."""
    if place % 10 == 0:
        return ()
    name = NAMES[topics.labels[place]]
    return (name, "goods") if place % 4 == 0 else (name,)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, topics: Topics, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with two labelled corpora."""
    for name, start, end in (("train", 0, TRAINED), ("test", TRAINED, TRAINED + TESTED)):
        lines = [
            json.dumps(
                {"id": place, "text": topics.texts[place], "labels": labels_of(place, topics)}
            )
            for place in range(start, end)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("codes", ()),
        ("codes", ("--relevance", "overlap")),
        ("codes", ("--searched", "train.jsonl")),
        ("codes", ("--least", "17")),
        ("vectors", ()),
        ("both", ()),
        ("both", ("--rank", "cosine", "--searched", "train.jsonl")),
    ],
)
def test_the_figures_are_the_librarys(name: str, options: tuple[str, ...], models: Path) -> None:
    found = answer("evaluate", models / name, "test.jsonl", *options)
    rank = "cosine" if name == "vectors" or "cosine" in options else "hamming"
    model = ParagraphVectors.load(models / name)

    def part(corpus: str) -> tuple[Any, Labelled]:
        some = labelled(open_corpus(corpus), corpus, 17 if "--least" in options else 1)
        inferred = model.infer([document.text for document in some.documents])
        return inferred.codes if rank == "hamming" else inferred.vectors, some

    codes_or_vectors, tested = part("test.jsonl")
    others, trained = part("train.jsonl")
    evaluate: Any = evaluate_codes if rank == "hamming" else evaluate_vectors
    searched = (others, trained.labels) if "--searched" in options else None
    relevance = "overlap" if "overlap" in options else "shared"
    scores = evaluate(codes_or_vectors, tested.labels, relevance=relevance, searched=searched)
    assert found.pop("seconds") > 0
    assert found.pop("curve") == {
        name: [*values] for name, values in scores.curve._asdict().items()
    }
    assert found == {
        "model": str(models / name), "corpus": "test.jsonl", "searched": "train.jsonl" if searched else None,
        "rank": rank, "relevance": relevance, "documents": len(tested.labels), "unlabelled": tested.unlabelled,
        "skipped": 0, "reading": {"skipped": {}, "places": [], "notes": []}, "map": scores.map, "ndcg@10": scores.ndcg,
        "precision@100": scores.precision, "queries": scores.queries, "queries_skipped": scores.skipped,
    }  # fmt: skip


def test_a_data_set_has_the_relevance_that_the_paper_gives_it(data: Path, models: Path) -> None:
    lay_out(data, "reuters21578")
    found = answer("evaluate", models / "codes", "reuters21578/test")
    assert (found["relevance"], found["documents"], found["unlabelled"]) == ("overlap", 32, 8)


def test_one_query_and_documents_without_known_words_are_evaluated(
    here: Path, models: Path, topics: Topics
) -> None:
    (here / "one.jsonl").write_text(json.dumps({"text": topics.texts[0], "label": "tin"}))
    found = answer("evaluate", models / "codes", "one.jsonl", "--searched", "train.jsonl")
    assert (found["documents"], found["queries"]) == (1, 1)
    (here / "strange.jsonl").write_text(
        '{"text": "unheard of", "label": "tin"}\n{"text": "", "label": "tin"}'
    )
    for name in ("codes", "vectors"):
        assert answer("evaluate", models / name, "strange.jsonl")["map"] == 1.0


def test_people_are_found_in_words_what_was_left_out(here: Path, models: Path) -> None:
    lines = (here / "test.jsonl").read_text().splitlines()
    (here / "more.jsonl").write_text(
        "\n".join([*lines, "{bad", '{"text": "badoki", "label": "nobody else\'s"}'])
    )
    result = run("evaluate", models / "codes", "more.jsonl")
    assert (result.exit_code, result.stderr) == (0, "")
    found = answer("evaluate", models / "codes", "more.jsonl")
    assert (found["queries_skipped"], found["reading"]["skipped"]) == (1, {"not valid JSON": 1})
    for line in (
        f"{models / 'codes'} on more.jsonl, by hamming",
        f"  MAP            {found['map']:.4f}",
        f"  NDCG@10        {found['ndcg@10']:.4f}",
        f"  precision@100  {found['precision@100']:.4f}",
        f"  {found['queries']} queries; two documents are relevant",
        "  1 queries skipped: no relevant document",
        f"  {found['unlabelled']} documents skipped: no label",
        "  1 skipped: 1 not valid JSON",
    ):
        assert line in result.stdout


def test_the_plot_goes_where_it_is_asked_to_and_nothing_else_is_written(
    here: Path, models: Path
) -> None:
    (here / "plots").mkdir()
    for name, start in (("plots/plot.svg", b"<?xml"), ("plots/plot.png", b"\x89PNG")):
        assert answer("evaluate", models / "codes", "test.jsonl", "--plot", name)["plot"] == name
        assert (here / name).read_bytes().startswith(start)
    assert {path.name for path in here.iterdir()} == {"plots", "train.jsonl", "test.jsonl"}

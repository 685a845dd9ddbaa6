"""`parabit evaluate`: its figures are those of the library, and what is wrong is told before the work."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from made_up_collections import lay_out
from parabit import ParagraphVectors
from parabit.cli.app import app
from parabit.evaluation import Scores, evaluate_codes, evaluate_filtered, evaluate_vectors
from parabit.model import TextEncoder
from topics import Topics

TRAINED = 100  # the first so many texts; the next are evaluated
TESTED = 80
NAMES = ("tin", "wool", "tea", "rope")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def figures(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    told: dict[str, Any] = json.loads(result.stdout)
    return told


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


@pytest.fixture
def here(tmp_path: Path, topics: Topics, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with two labelled corpora."""
    for name, start, end in (("train", 0, TRAINED), ("test", TRAINED, TRAINED + TESTED)):
        lines = [
            json.dumps({"id": place, "text": topics.texts[place], "labels": labels_of(place, topics)})
            for place in range(start, end)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def part(topics: Topics, start: int = TRAINED, end: int = TRAINED + TESTED) -> tuple[list[str], list[tuple[str, ...]]]:
    """The texts that have labels, and these."""
    places = [place for place in range(start, end) if labels_of(place, topics)]
    return [topics.texts[place] for place in places], [labels_of(place, topics) for place in places]


def check(told: dict[str, Any], scores: Scores) -> None:
    assert (told["map"], told["ndcg@10"], told["precision@100"]) == (scores.map, scores.ndcg, scores.precision)
    assert (told["queries"], told["skipped"]) == (scores.queries, scores.skipped)
    assert {name: tuple(values) for name, values in told["curve"].items()} == scores.curve._asdict()


def test_the_figures_are_those_of_the_models_codes(here: Path, models: Path, topics: Topics) -> None:
    told = figures(models / "codes", "test.jsonl")
    texts, labels = part(topics)
    check(told, evaluate_codes(ParagraphVectors.load(models / "codes").transform(texts), labels))
    assert told.pop("seconds") > 0
    for name in ("map", "ndcg@10", "precision@100", "curve", "queries", "skipped"):
        told.pop(name)
    assert told == {
        "model": str(models / "codes"),
        "corpus": "test.jsonl",
        "searched": None,
        "rank": "hamming",
        "relevance": "shared",
        "documents": len(labels),
        "unlabelled": TESTED - len(labels),
        "reading": {"skipped": {}, "places": [], "notes": []},
    }


def test_relevance_can_be_by_degrees(here: Path, models: Path, topics: Topics) -> None:
    told = figures(models / "codes", "test.jsonl", "--relevance", "overlap")
    texts, labels = part(topics)
    scores = evaluate_codes(ParagraphVectors.load(models / "codes").transform(texts), labels, relevance="overlap")
    check(told, scores)
    assert told["relevance"] == "overlap"
    assert told["map"] != figures(models / "codes", "test.jsonl")["map"]


def test_a_data_set_has_the_relevance_that_the_paper_gives_it(data: Path, models: Path) -> None:
    lay_out(data, "reuters21578")
    told = figures(models / "codes", "reuters21578/test")
    assert (told["relevance"], told["documents"], told["unlabelled"]) == ("overlap", 32, 8)


def test_another_collection_can_be_searched(here: Path, models: Path, topics: Topics) -> None:
    told = figures(models / "codes", "test.jsonl", "--searched", "train.jsonl")
    (texts, labels), (others, other_labels) = part(topics), part(topics, 0, TRAINED)
    model = ParagraphVectors.load(models / "codes")
    check(told, evaluate_codes(model.transform(texts), labels, searched=(model.transform(others), other_labels)))
    assert told["searched"] == "train.jsonl"


def test_a_single_document_can_search_others(here: Path, models: Path, topics: Topics) -> None:
    (here / "one.jsonl").write_text(json.dumps({"text": topics.texts[0], "label": "tin"}))
    told = figures(models / "codes", "one.jsonl", "--searched", "train.jsonl")
    assert (told["documents"], told["queries"]) == (1, 1)


@pytest.mark.parametrize("options", [(), ("--rank", "cosine")])
def test_a_real_valued_model_ranks_by_cosine(
    options: tuple[str, ...], here: Path, models: Path, topics: Topics
) -> None:
    told = figures(models / "vectors", "test.jsonl", *options)
    texts, labels = part(topics)
    check(told, evaluate_vectors(ParagraphVectors.load(models / "vectors").transform(texts), labels))
    assert told["rank"] == "cosine"


def test_a_model_of_both_ranks_by_either(here: Path, models: Path, topics: Topics) -> None:
    texts, labels = part(topics)
    inferred = ParagraphVectors.load(models / "both").infer(texts)
    assert inferred.codes is not None
    check(figures(models / "both", "test.jsonl"), evaluate_codes(inferred.codes, labels))
    by_vector = figures(models / "both", "test.jsonl", "--rank", "cosine")
    check(by_vector, evaluate_vectors(inferred.vectors, labels))
    (others, other_labels) = part(topics, 0, TRAINED)
    searched = (ParagraphVectors.load(models / "both").infer(others).vectors, other_labels)
    told = figures(models / "both", "test.jsonl", "--rank", "cosine", "--searched", "train.jsonl")
    check(told, evaluate_vectors(inferred.vectors, labels, searched=searched))


def test_vectors_rank_inside_a_radius_of_codes(here: Path, models: Path, topics: Topics) -> None:
    told = figures(models / "both", "test.jsonl", "--radius", "3", "-k", "5")
    texts, labels = part(topics)
    inferred = ParagraphVectors.load(models / "both").infer(texts)
    assert inferred.codes is not None
    inside = evaluate_filtered(inferred.codes, inferred.vectors, labels, 3, k=5)
    assert told["radius"] == 3
    assert (told["radius_ndcg@5"], told["radius_strict_ndcg@5"]) == (inside.ndcg, inside.strict_ndcg)
    assert (told["radius_retrieved"], told["radius_queries"], told["radius_empty"]) == (
        inside.retrieved,
        inside.queries,
        inside.empty,
    )
    assert told["ndcg@5"] == evaluate_codes(inferred.codes, labels, k=5).ndcg
    assert "NDCG@10 of real vectors within 3 bits: " in run(models / "both", "test.jsonl", "--radius", "3").stdout


def test_labels_of_few_documents_can_be_left_out(here: Path, models: Path, topics: Topics) -> None:
    texts, labels = part(topics)
    counts = {name: sum(name in mine for mine in labels) for name in (*NAMES, "goods")}
    least = min(counts[name] for name in NAMES) + 1
    told = figures(models / "codes", "test.jsonl", "--least", least)
    kept = [tuple(label for label in mine if counts[label] >= least) for mine in labels]
    assert told["documents"] == sum(map(bool, kept)) < len(labels)
    assert told["unlabelled"] == TESTED - told["documents"]
    chosen = [text for text, mine in zip(texts, kept, strict=True) if mine]
    codes = ParagraphVectors.load(models / "codes").transform(chosen)
    check(told, evaluate_codes(codes, [mine for mine in kept if mine]))


def test_people_are_told_in_words_what_was_left_out(here: Path, models: Path) -> None:
    lines = (here / "test.jsonl").read_text().splitlines()
    (here / "more.jsonl").write_text("\n".join([*lines, "{bad", '{"text": "badoki", "label": "nobody else\'s"}']))
    result = run(models / "codes", "more.jsonl")
    assert (result.exit_code, result.stderr) == (0, "")
    told = figures(models / "codes", "more.jsonl")
    assert (told["skipped"], told["reading"]["skipped"]) == (1, {"not valid JSON": 1})
    first, *rest = result.stdout.splitlines()
    assert first == f"{models / 'codes'} on more.jsonl, by hamming"
    said = "\n".join(rest)
    for line in (
        f"  MAP            {told['map']:.4f}",
        f"  NDCG@10        {told['ndcg@10']:.4f}",
        f"  precision@100  {told['precision@100']:.4f}",
        f"  {told['queries']} queries; two documents are relevant",
        "  1 queries skipped: no relevant document",
        f"  {told['unlabelled']} documents skipped: no label",
        "  1 skipped: 1 not valid JSON",
    ):
        assert line in said


@pytest.mark.parametrize(("name", "start"), [("plot.svg", b"<?xml"), ("plot.png", b"\x89PNG")])
def test_the_plot_goes_where_it_is_asked_to(name: str, start: bytes, here: Path, models: Path) -> None:
    (here / "plots").mkdir()
    told = figures(models / "codes", "test.jsonl", "--plot", f"plots/{name}")
    assert told["plot"] == f"plots/{name}"
    assert (here / "plots" / name).read_bytes().startswith(start)
    assert {path.name for path in here.iterdir()} == {"plots", "train.jsonl", "test.jsonl"}


def test_no_file_is_written_unasked(here: Path, models: Path) -> None:
    assert "plot" not in figures(models / "codes", "test.jsonl")
    assert {path.name for path in here.iterdir()} == {"train.jsonl", "test.jsonl"}


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is told must be told before documents are encoded."""
    monkeypatch.setattr(TextEncoder, "infer", lambda *_: pytest.fail("it encoded first"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{codes}", "bare.jsonl"), "no document of bare.jsonl has a label, and labels say which documents belong"),
        (("{codes}", "test.jsonl", "--searched", "bare.jsonl"), "no document of bare.jsonl has a label"),
        (("{codes}", "test.jsonl", "--least", "79"), "no label of test.jsonl has 79 documents; the most"),
        (("{both}", "test.jsonl", "--radius", "2", "--searched", "train.jsonl"), "--radius with --searched; within"),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_what_is_wrong_is_explained_before_the_work(
    arguments: tuple[str, ...], words: str, here: Path, models: Path
) -> None:
    (here / "bare.jsonl").write_text('{"text": "badoki"}\n{"text": "melupa"}\n')
    result = run(*(argument.format(**{path.name: path for path in models.iterdir()}) for argument in arguments))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert words in result.stderr


@pytest.mark.usefixtures("no_work")
def test_a_plot_that_is_asked_for_and_cannot_be_drawn_is_told_before_the_work(
    here: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(models / "codes", "test.jsonl", "--plot", "plot.svg")
    assert result.exit_code == 1
    assert result.stderr == "parabit: matplotlib is not installed; pip install 'parabit[plot]'\n"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['{"text": "badoki", "label": "tin"}'], "too few: 1 queries for 1 documents; give more documents"),
        (
            ['{"text": "badoki", "label": "tin"}', '{"text": "melupa", "label": "tea"}'],
            "no two documents share a label, so no query can find another; check the labels",
        ),
    ],
)
def test_documents_of_which_none_can_find_another_are_told(
    lines: list[str], words: str, here: Path, models: Path
) -> None:
    (here / "few.jsonl").write_text("\n".join(lines))
    result = run(models / "codes", "few.jsonl")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"parabit: {words}\n"
    assert not list(here.glob("*.svg"))


def test_documents_without_a_word_that_the_model_knows_are_evaluated_too(here: Path, models: Path) -> None:
    lines = ['{"text": "unheard of", "label": "tin"}', '{"text": "", "label": "tin"}']
    (here / "strange.jsonl").write_text("\n".join(lines))
    assert figures(models / "codes", "strange.jsonl")["map"] == 1.0
    assert figures(models / "vectors", "strange.jsonl")["map"] == 1.0


def test_standard_input_is_a_corpus(here: Path, models: Path) -> None:
    arguments = ["evaluate", str(models / "codes"), "-", "--json"]
    result = CliRunner().invoke(app, arguments, input=(here / "test.jsonl").read_text())
    assert (result.exit_code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert told["corpus"] == "-"
    assert told["map"] == figures(models / "codes", "test.jsonl")["map"]

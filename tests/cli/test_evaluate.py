"""`parabit evaluate`: its figures are those of the library, and what is wrong is found before the work."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import answer, run

from made_up_collections import lay_out
from parabit import ParagraphVectors
from parabit.evaluation import Scores, evaluate_codes, evaluate_vectors
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


def check(found: dict[str, Any], scores: Scores) -> None:
    assert (found["map"], found["ndcg@10"], found["precision@100"]) == (scores.map, scores.ndcg, scores.precision)
    assert (found["queries"], found["queries_skipped"]) == (scores.queries, scores.skipped)
    assert {name: tuple(values) for name, values in found["curve"].items()} == scores.curve._asdict()


def test_the_figures_are_those_of_the_models_codes(here: Path, models: Path, topics: Topics) -> None:
    found = answer("evaluate", models / "codes", "test.jsonl")
    texts, labels = part(topics)
    check(found, evaluate_codes(ParagraphVectors.load(models / "codes").transform(texts), labels))
    assert found.pop("seconds") > 0
    for name in ("map", "ndcg@10", "precision@100", "curve", "queries", "queries_skipped"):
        found.pop(name)
    assert found == {
        "model": str(models / "codes"),
        "corpus": "test.jsonl",
        "searched": None,
        "rank": "hamming",
        "relevance": "shared",
        "documents": len(labels),
        "unlabelled": TESTED - len(labels),
        "skipped": 0,
        "reading": {"skipped": {}, "places": [], "notes": []},
    }


def test_relevance_can_be_by_degrees(here: Path, models: Path, topics: Topics) -> None:
    found = answer("evaluate", models / "codes", "test.jsonl", "--relevance", "overlap")
    texts, labels = part(topics)
    scores = evaluate_codes(ParagraphVectors.load(models / "codes").transform(texts), labels, relevance="overlap")
    check(found, scores)
    assert found["relevance"] == "overlap"
    assert found["map"] != answer("evaluate", models / "codes", "test.jsonl")["map"]


def test_a_data_set_has_the_relevance_that_the_paper_gives_it(data: Path, models: Path) -> None:
    lay_out(data, "reuters21578")
    found = answer("evaluate", models / "codes", "reuters21578/test")
    assert (found["relevance"], found["documents"], found["unlabelled"]) == ("overlap", 32, 8)


def test_another_collection_can_be_searched(here: Path, models: Path, topics: Topics) -> None:
    found = answer("evaluate", models / "codes", "test.jsonl", "--searched", "train.jsonl")
    (texts, labels), (others, other_labels) = part(topics), part(topics, 0, TRAINED)
    model = ParagraphVectors.load(models / "codes")
    check(found, evaluate_codes(model.transform(texts), labels, searched=(model.transform(others), other_labels)))
    assert found["searched"] == "train.jsonl"


def test_a_single_document_can_search_others(here: Path, models: Path, topics: Topics) -> None:
    (here / "one.jsonl").write_text(json.dumps({"text": topics.texts[0], "label": "tin"}))
    found = answer("evaluate", models / "codes", "one.jsonl", "--searched", "train.jsonl")
    assert (found["documents"], found["queries"]) == (1, 1)


@pytest.mark.parametrize("options", [(), ("--rank", "cosine")])
def test_a_real_valued_model_ranks_by_cosine(
    options: tuple[str, ...], here: Path, models: Path, topics: Topics
) -> None:
    found = answer("evaluate", models / "vectors", "test.jsonl", *options)
    texts, labels = part(topics)
    check(found, evaluate_vectors(ParagraphVectors.load(models / "vectors").transform(texts), labels))
    assert found["rank"] == "cosine"


def test_a_model_of_both_ranks_by_either(here: Path, models: Path, topics: Topics) -> None:
    texts, labels = part(topics)
    inferred = ParagraphVectors.load(models / "both").infer(texts)
    assert inferred.codes is not None
    check(answer("evaluate", models / "both", "test.jsonl"), evaluate_codes(inferred.codes, labels))
    by_vector = answer("evaluate", models / "both", "test.jsonl", "--rank", "cosine")
    check(by_vector, evaluate_vectors(inferred.vectors, labels))
    (others, other_labels) = part(topics, 0, TRAINED)
    searched = (ParagraphVectors.load(models / "both").infer(others).vectors, other_labels)
    found = answer("evaluate", models / "both", "test.jsonl", "--rank", "cosine", "--searched", "train.jsonl")
    check(found, evaluate_vectors(inferred.vectors, labels, searched=searched))


def test_labels_of_few_documents_can_be_left_out(here: Path, models: Path, topics: Topics) -> None:
    texts, labels = part(topics)
    counts = {name: sum(name in mine for mine in labels) for name in (*NAMES, "goods")}
    least = min(counts[name] for name in NAMES) + 1
    found = answer("evaluate", models / "codes", "test.jsonl", "--least", least)
    kept = [tuple(label for label in mine if counts[label] >= least) for mine in labels]
    assert found["documents"] == sum(map(bool, kept)) < len(labels)
    assert found["unlabelled"] == TESTED - found["documents"]
    chosen = [text for text, mine in zip(texts, kept, strict=True) if mine]
    codes = ParagraphVectors.load(models / "codes").transform(chosen)
    check(found, evaluate_codes(codes, [mine for mine in kept if mine]))


def test_people_are_found_in_words_what_was_left_out(here: Path, models: Path) -> None:
    lines = (here / "test.jsonl").read_text().splitlines()
    (here / "more.jsonl").write_text("\n".join([*lines, "{bad", '{"text": "badoki", "label": "nobody else\'s"}']))
    result = run("evaluate", models / "codes", "more.jsonl")
    assert (result.exit_code, result.stderr) == (0, "")
    found = answer("evaluate", models / "codes", "more.jsonl")
    assert (found["queries_skipped"], found["reading"]["skipped"]) == (1, {"not valid JSON": 1})
    first, *rest = result.stdout.splitlines()
    assert first == f"{models / 'codes'} on more.jsonl, by hamming"
    said = "\n".join(rest)
    for line in (
        f"  MAP            {found['map']:.4f}",
        f"  NDCG@10        {found['ndcg@10']:.4f}",
        f"  precision@100  {found['precision@100']:.4f}",
        f"  {found['queries']} queries; two documents are relevant",
        "  1 queries skipped: no relevant document",
        f"  {found['unlabelled']} documents skipped: no label",
        "  1 skipped: 1 not valid JSON",
    ):
        assert line in said


@pytest.mark.parametrize(("name", "start"), [("plot.svg", b"<?xml"), ("plot.png", b"\x89PNG")])
def test_the_plot_goes_where_it_is_asked_to(name: str, start: bytes, here: Path, models: Path) -> None:
    (here / "plots").mkdir()
    found = answer("evaluate", models / "codes", "test.jsonl", "--plot", f"plots/{name}")
    assert found["plot"] == f"plots/{name}"
    assert (here / "plots" / name).read_bytes().startswith(start)
    assert {path.name for path in here.iterdir()} == {"plots", "train.jsonl", "test.jsonl"}


def test_no_file_is_written_unasked(here: Path, models: Path) -> None:
    assert "plot" not in answer("evaluate", models / "codes", "test.jsonl")
    assert {path.name for path in here.iterdir()} == {"train.jsonl", "test.jsonl"}


def test_documents_without_a_word_that_the_model_knows_are_evaluated_too(here: Path, models: Path) -> None:
    lines = ['{"text": "unheard of", "label": "tin"}', '{"text": "", "label": "tin"}']
    (here / "strange.jsonl").write_text("\n".join(lines))
    assert answer("evaluate", models / "codes", "strange.jsonl")["map"] == 1.0
    assert answer("evaluate", models / "vectors", "strange.jsonl")["map"] == 1.0


def test_standard_input_is_a_corpus(here: Path, models: Path) -> None:
    found = answer("evaluate", models / "codes", "-", stdin=(here / "test.jsonl").read_text())
    assert found["corpus"] == "-"
    assert found["map"] == answer("evaluate", models / "codes", "test.jsonl")["map"]

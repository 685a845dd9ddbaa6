"""What runs are given is what the collections hold, and nothing else decides it."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_up_collections import ARTICLES, GROUPS, POSTS, STORIES, all_texts, lay_out, story_topics, write_posts
from parabit.corpus import open_corpus
from parabit.errors import EvaluationError
from parabit.paper.corpora import (
    PaperCorpus,
    Part,
    Prepared,
    paper_corpora,
    prepare,
    read_facts,
    read_prepared,
    sample_documents,
)
from parabit.text import Bags, Tokenizer, Vocabulary, VocabularyRule, count_bags, make_bags

NEWS, _, REUTERS, WIKIPEDIA = paper_corpora(["enwiki"])


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder that no test changes."""
    folder = tmp_path_factory.mktemp("data")
    lay_out(folder, "20newsgroups", "reuters21578", "enwiki")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARABIT_DATA", str(folder))
        yield folder


def prepared(
    folder: Path, corpus: PaperCorpus = NEWS, bigrams: bool = False, others: tuple[PaperCorpus, ...] = ()
) -> Prepared:
    path = folder / "arrays" / "some.npz"
    prepare(path, corpus, bigrams, others)
    return read_prepared(path)


def vocabulary_of(corpus: PaperCorpus, bigrams: bool) -> tuple[Vocabulary, Bags]:
    """The words of the paper: of letters from a to z."""
    rule = VocabularyRule(Tokenizer.paper(), bigrams=bigrams, min_count=corpus.min_count)
    return count_bags(open_corpus(f"{corpus.name}/train"), rule)


def names_of(part: Part, data: Prepared) -> list[tuple[str, ...]]:
    return [tuple(data.facts["labels"][number] for number in mine) for mine in part.labels]


def check_same(part: Part, bags: Bags, order: bool) -> None:
    documents = part.documents
    pairs: list[tuple[Any, Any]] = [
        (documents.features, bags.features),
        (documents.counts, bags.counts),
        (documents.feature_offsets, bags.feature_offsets),
        *([(documents.tokens, bags.tokens), (documents.token_offsets, bags.token_offsets)] if order else []),
    ]
    for ours, true in pairs:
        assert np.array_equal(ours, true)
        assert ours.dtype == true.dtype
    assert len(documents) == len(part.labels) == len(bags)


@pytest.mark.parametrize("bigrams", [False, True])
@pytest.mark.parametrize("corpus", [NEWS, REUTERS, WIKIPEDIA], ids=lambda corpus: corpus.name)
def test_the_arrays_are_the_collections_bags_and_labels(corpus: PaperCorpus, bigrams: bool, tmp_path: Path) -> None:
    found = prepared(tmp_path, corpus, bigrams)
    vocabulary, bags = vocabulary_of(corpus, bigrams)
    check_same(found.training, bags, order=not bigrams)
    assert names_of(found.training, found) == [document.labels for document in open_corpus(f"{corpus.name}/train")]
    labelled = [document for document in open_corpus(f"{corpus.name}/test") if document.labels]
    check_same(found.tests[corpus.name], make_bags([one.text for one in labelled], vocabulary), order=not bigrams)
    assert names_of(found.tests[corpus.name], found) == [document.labels for document in labelled]
    assert np.array_equal(found.counts, vocabulary.counts)
    assert (found.facts["words"], found.facts["features"]) == (len(vocabulary.words), len(vocabulary))
    assert (len(found.training.documents.tokens) == 0) == bigrams  # the order of words is kept without bigrams
    assert read_facts(tmp_path / "arrays" / "some.npz") == found.facts


def test_test_documents_without_a_label_are_left_out_and_counted(tmp_path: Path) -> None:
    found = prepared(tmp_path, REUTERS)
    without = sum(not story_topics(number, 0) for number in range(STORIES["test"]))
    assert without > 0
    assert found.facts["tests"]["reuters21578"] == {
        "documents": STORIES["test"] - without,
        "relevance": "overlap",
    }
    assert all(found.tests["reuters21578"].labels)
    # Training needs no labels.
    assert len(found.training.labels) == found.facts["training_documents"] == STORIES["train"]
    assert not all(found.training.labels)


def test_a_cap_takes_the_same_documents_every_time_in_their_order(tmp_path: Path) -> None:
    few = NEWS.small(20, 15)
    once, again = (prepared(tmp_path, few) for _ in range(2))
    assert (len(once.training.labels), len(once.tests["20newsgroups"].labels)) == (20, 15)
    assert once.facts == again.facts  # with the fingerprint
    whole = list(NEWS.open("train"))
    taken = list(sample_documents(whole, 20))
    assert taken == [document for document in whole if document in taken]
    assert names_of(once.training, once) == [document.labels for document in taken]


def test_test_documents_of_other_collections_are_in_the_words_that_were_trained_on(tmp_path: Path) -> None:
    found = prepared(tmp_path, WIKIPEDIA, bigrams=True, others=(NEWS, REUTERS))
    assert list(found.tests) == list(found.facts["tests"]) == ["enwiki", "20newsgroups", "reuters21578"]
    vocabulary, _ = vocabulary_of(WIKIPEDIA, True)
    for corpus in (NEWS, REUTERS):
        documents = [document for document in open_corpus(f"{corpus.name}/test") if document.labels]
        bags = make_bags([document.text for document in documents], vocabulary)
        check_same(found.tests[corpus.name], bags, order=False)
        assert names_of(found.tests[corpus.name], found) == [document.labels for document in documents]
        assert found.facts["tests"][corpus.name]["relevance"] == corpus.relevance


def test_a_collection_whose_test_documents_have_no_labels_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    articles = [{"title": f"number {number}", "text": "tin kettle, rope", "categories": []} for number in range(20)]
    sample = tmp_path / "arxiv" / "arxiv-sample.jsonl.gz"
    sample.parent.mkdir()
    sample.write_bytes(gzip.compress("\n".join(map(json.dumps, articles)).encode()))
    monkeypatch.setenv("PARABIT_DATA", str(tmp_path))
    with pytest.raises(EvaluationError, match="no test document of arxiv has a label"):
        prepared(tmp_path, PaperCorpus("arxiv", "arXiv sample", "RCV1", 1))
    assert not (tmp_path / "arrays").exists()


def test_the_sample_of_wikipedia_is_tested_by_common_categories_alone(tmp_path: Path) -> None:
    found = prepared(tmp_path, WIKIPEDIA)
    tested = names_of(found.tests["enwiki"], found)
    assert len(tested) + found.facts["training_documents"] == ARTICLES
    assert {label for mine in tested for label in mine} == {"Harbours", "Mountains"}
    assert set(GROUPS).isdisjoint(found.facts["labels"])


@pytest.mark.parametrize(
    ("present", "names"),
    [
        ((), {"reuters21578": "RCV1"}),
        (
            ("enwiki", "arxiv"),
            {"reuters21578": "RCV1", "arxiv": "RCV1", "enwiki": "English Wikipedia"},
        ),
        (("rcv1", "enwiki", "arxiv"), {"rcv1": "", "enwiki": "English Wikipedia"}),
        (("rcv1", "wikipedia", "enwiki"), {"rcv1": "", "wikipedia": ""}),
    ],
)
def test_what_is_missing_has_a_stand_in_that_says_for_what(present: tuple[str, ...], names: dict[str, str]) -> None:
    news, headers_kept, *corpora = paper_corpora(present)
    assert (news.headers, headers_kept.headers) == (False, True)
    assert {corpus.name: corpus.collection if corpus.stand_in else "" for corpus in corpora} == names
    assert all(corpus.collection == corpus.title for corpus in corpora if not corpus.stand_in)


@pytest.mark.parametrize("change", ["train/3", "test/7", "label", "nothing"])
def test_another_word_or_label_is_another_fingerprint(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = prepared(tmp_path).facts["fingerprint"]
    texts, changed = all_texts(), {}
    if change == "label":
        texts.labels[POSTS["train"]] = (texts.labels[POSTS["train"]] + 1) % 4
    elif change != "nothing":
        split, _, number = change.partition("/")
        words = texts.texts[int(number) + (POSTS["train"] if split == "test" else 0)].split()
        changed[change] = " ".join([*words[1:], words[1]])
    write_posts(tmp_path / "data" / "20newsgroups", texts, changed)
    monkeypatch.setenv("PARABIT_DATA", str(tmp_path / "data"))
    assert (prepared(tmp_path).facts["fingerprint"] == before) == (change == "nothing")

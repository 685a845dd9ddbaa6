"""What runs are given is what the collections hold, and nothing else decides it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from made_up_collections import POSTS, all_texts, lay_out, write_posts, write_sample
from parabit.corpus import open_corpus
from parabit.errors import EvaluationError
from parabit.evaluation.relevance import relevance_of
from parabit.paper.corpora import (
    PaperCorpus,
    Part,
    Prepared,
    paper_corpora,
    prepare,
    read_prepared,
    sample_documents,
)
from parabit.text import Bags, Tokenizer, VocabularyRule, count_bags, make_bags

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
    folder: Path,
    corpus: PaperCorpus = NEWS,
    bigrams: bool = False,
    others: tuple[PaperCorpus, ...] = (),
) -> Prepared:
    path = folder / "arrays" / "some.npz"
    prepare(path, corpus, bigrams, others)
    return read_prepared(path)


def names_of(part: Part, data: Prepared) -> list[tuple[str, ...]]:
    return [tuple(data.facts["labels"][number] for number in mine) for mine in part.labels]


def check_same(part: Part, bags: Bags, order: bool) -> None:
    for name in (
        "features",
        "counts",
        "feature_offsets",
        *(("tokens", "token_offsets") if order else ()),
    ):
        ours, true = getattr(part.documents, name), getattr(bags, name)
        assert np.array_equal(ours, true)
        assert ours.dtype == true.dtype
    assert len(part.documents) == len(part.labels) == len(bags)


@pytest.mark.parametrize(
    ("corpus", "bigrams", "others"),
    [(NEWS, False, ()), (NEWS, True, ()), (REUTERS, False, ()), (WIKIPEDIA, True, (NEWS, REUTERS))],
    ids=["news", "news with bigrams", "newswire", "articles, tested on all"],
)
def test_the_arrays_are_the_collections_bags_and_labels(
    corpus: PaperCorpus, bigrams: bool, others: tuple[PaperCorpus, ...], tmp_path: Path
) -> None:
    found = prepared(tmp_path, corpus, bigrams, others)
    rule = VocabularyRule(Tokenizer.paper(), bigrams=bigrams, min_count=corpus.min_count)
    vocabulary, bags = count_bags(open_corpus(f"{corpus.name}/train"), rule)
    check_same(found.training, bags, order=not bigrams)
    assert names_of(found.training, found) == [
        document.labels for document in open_corpus(f"{corpus.name}/train")
    ]
    assert (
        len(found.training.labels) == found.facts["training_documents"]
    )  # of which some newswire has no label
    assert (
        list(found.tests) == list(found.facts["tests"]) == [each.name for each in (corpus, *others)]
    )
    for tested in (corpus, *others):  # in the words that were trained on
        labelled = [document for document in open_corpus(f"{tested.name}/test") if document.labels]
        check_same(
            found.tests[tested.name],
            make_bags([one.text for one in labelled], vocabulary),
            order=not bigrams,
        )
        assert names_of(found.tests[tested.name], found) == [
            document.labels for document in labelled
        ]
        facts = {"documents": len(labelled), "relevance": relevance_of(tested.name)}
        assert found.facts["tests"][tested.name] == facts
    assert np.array_equal(found.counts, vocabulary.counts)
    assert (found.facts["words"], found.facts["features"]) == (
        len(vocabulary.words),
        len(vocabulary),
    )
    assert (
        len(found.training.documents.tokens) == 0
    ) == bigrams  # the order of words is kept without bigrams


def test_a_cap_takes_the_same_documents_every_time_in_their_order(tmp_path: Path) -> None:
    few = replace(NEWS, most_trained=20, most_tested=15)
    once, again = (prepared(tmp_path, few) for _ in range(2))
    assert (len(once.training.labels), len(once.tests["20newsgroups"].labels)) == (20, 15)
    assert once.facts == again.facts  # with the fingerprint
    whole = list(open_corpus("20newsgroups/train"))
    taken = list(sample_documents(whole, 20))
    assert taken == [document for document in whole if document in taken]
    assert names_of(once.training, once) == [document.labels for document in taken]


def test_a_collection_without_labels_for_testing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    articles = [
        {"title": f"number {number}", "text": "tin kettle, rope", "categories": []}
        for number in range(20)
    ]
    write_sample(tmp_path / "arxiv", articles)
    monkeypatch.setenv("PARABIT_DATA", str(tmp_path))
    with pytest.raises(EvaluationError, match="no test document of arxiv has a label"):
        prepared(tmp_path, PaperCorpus("arxiv", "arXiv sample", "RCV1", 1))
    assert not (tmp_path / "arrays").exists()


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
def test_what_is_missing_has_a_stand_in_that_says_for_what(
    present: tuple[str, ...], names: dict[str, str]
) -> None:
    news, headers_kept, *corpora = paper_corpora(present)
    assert (news.headers, headers_kept.headers) == (False, True)
    assert {
        corpus.name: corpus.collection if corpus.stand_in else "" for corpus in corpora
    } == names
    assert all(corpus.collection == corpus.title for corpus in corpora if not corpus.stand_in)


def test_another_word_or_label_is_another_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARABIT_DATA", str(tmp_path / "data"))

    def fingerprint(label: int = 0, place: int | None = None) -> str:
        texts = all_texts()
        texts.labels[POSTS["train"]] = label
        if place is not None:
            texts.texts[place] = texts.texts[place].partition(" ")[2]
        write_posts(tmp_path / "data" / "20newsgroups", texts)
        found: str = prepared(tmp_path).facts["fingerprint"]
        return found

    prints = [
        fingerprint(),
        fingerprint(label=1),
        fingerprint(place=3),
        fingerprint(place=POSTS["train"] + 7),
    ]
    assert len(set(prints)) == 4
    assert fingerprint() == prints[0]

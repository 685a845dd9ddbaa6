"""A run's figures are those of the library on the same documents: no second way of training and scoring."""

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from made_up_collections import GROUPS, POSTS, lay_out
from parabit.baselines.peers import BM25, LSA, IterativeQuantization, RandomHyperplanes, SentenceEncoder, TfIdf
from parabit.codes import pack
from parabit.corpus import Document, as_corpus, open_corpus
from parabit.evaluation import (
    Relevance,
    ScoreRanking,
    Scores,
    asymmetric_ranking,
    evaluate,
    evaluate_codes,
    evaluate_filtered,
    evaluate_vectors,
)
from parabit.model import closed_form, learn_closed_form
from parabit.networks import NetworkEncoder, config, train
from parabit.networks.config import Recipe
from parabit.paper import corpora
from parabit.paper.corpora import PaperCorpus, paper_corpora
from parabit.paper.jobs import JOBS, PICTURED, QUICK_EPOCHS, RADII, Job, Network, Run
from parabit.paper.runs import perform
from parabit.paper.work import Work
from parabit.text import Tokenizer, Vocabulary, VocabularyRule, build_vocabulary, count_bags, make_bags

CORPORA = paper_corpora(["enwiki"])
NEWS, REUTERS, WIKIPEDIA = CORPORA
SEED = 3

Perform = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Made-up collections, and recipes that are done in a moment."""
    folder = tmp_path_factory.mktemp("data")
    lay_out(folder, "20newsgroups", "reuters21578", "enwiki")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARABIT_DATA", str(folder))
        patch.setattr(config, "_paper_values", partial(hasty, config._paper_values))
        for what, epochs in (("dbow", 2), ("dm", 2), ("peers", 20)):
            patch.setitem(QUICK_EPOCHS, what, epochs)
        yield


def hasty(full: Callable[..., Recipe], *shape: Any) -> Recipe:
    return replace(full(*shape), inference_rounds=4, samples=64)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    return Work(tmp_path_factory.mktemp("work"), CORPORA)


@pytest.fixture
def performed(work: Work) -> Perform:
    """The results of a job; each is run once."""

    def results(job: Job, corpus: PaperCorpus = NEWS) -> dict[str, Any]:
        return _performed(work, job, corpus)["results"]

    return results


@cache
def _performed(work: Work, job: Job, corpus: PaperCorpus) -> dict[str, Any]:
    work.prepare(corpus, job.bigrams)
    run = Run(job, corpus, SEED, quick=True)
    return perform(run, work.data(run), device="cpu")


def queries_of(corpus: PaperCorpus) -> list[Document]:
    return [document for document in open_corpus(f"{corpus.name}/test") if document.labels]


class Model(NamedTuple):
    """A network trained on texts, without the arrays that runs go through."""

    vocabulary: Vocabulary
    encoder: NetworkEncoder
    embeddings: NDArray[np.float32]

    def vectors(self, documents: list[Document]) -> NDArray[np.float32]:
        return self.encoder.embed(make_bags([document.text for document in documents], self.vocabulary))

    def codes(self, documents: list[Document]) -> NDArray[np.uint8]:
        return pack(self.encoder.activations(self.vectors(documents)) > 0)


@cache
def model(network: Network, corpus: PaperCorpus = NEWS) -> Model:
    """The same network, trained on the texts themselves."""
    texts = [document.text for document in open_corpus(f"{corpus.name}/train")]
    rule = VocabularyRule(Tokenizer.paper(), bigrams=network.bigrams, min_count=corpus.min_count)
    vocabulary = build_vocabulary(texts, rule)
    documents = make_bags(texts, vocabulary)
    recipe = network.recipe(quick=True)
    trained = train(documents, vocabulary.counts, network.shape, recipe, seed=SEED, device="cpu")
    encoder = NetworkEncoder(trained.network, vocabulary.counts, recipe, SEED)
    return Model(vocabulary, encoder, trained.embeddings.numpy())


def labels(corpus: PaperCorpus) -> list[tuple[str, ...]]:
    return [document.labels for document in queries_of(corpus)]


def check(told: dict[str, Any], true: Scores) -> None:
    assert told["map"] == round(true.map, 4)
    assert told["ndcg@10"] == round(true.ndcg, 4)
    assert told["precision@100"] == round(true.precision, 4)
    assert (told["queries"], told["skipped"]) == (true.queries, true.skipped)
    assert told["recall"] == [round(value, 5) for value in true.curve.recall]
    assert told["precision"] == [round(value, 5) for value in true.curve.precision]


@pytest.mark.parametrize("corpus", [NEWS, REUTERS], ids=lambda corpus: corpus.name)
@pytest.mark.parametrize(
    "network",
    [Network(bits=16), Network(bits=8, architecture="dm")],
    ids=["dbow", "dm"],
)
def test_the_scores_of_codes_are_those_of_the_librarys_model(
    network: Network, corpus: PaperCorpus, performed: Perform
) -> None:
    told = performed(Job("some codes", (network,)), corpus)
    true = model(network, corpus)
    codes = true.codes(queries_of(corpus))
    assert told.keys() == {"codes"}
    check(told["codes"], evaluate_codes(codes, labels(corpus), relevance=corpus.relevance))
    # The hashing literature's protocol: training documents, those with labels, are searched.
    trained = [document.labels for document in open_corpus(f"{corpus.name}/train")]
    labelled = [place for place, mine in enumerate(trained) if mine]
    codes_of_trained = pack(true.encoder.activations(true.embeddings) > 0)
    searched = (codes_of_trained[labelled], [trained[place] for place in labelled])
    scores = evaluate_codes(codes, labels(corpus), relevance=corpus.relevance, searched=searched)
    assert told["codes"]["training_precision@100"] == round(scores.precision, 4)


@pytest.mark.parametrize("network", [Network(dim=12, bigrams=True), Network(dim=8, architecture="dm")])
def test_the_scores_of_vectors_are_those_of_the_librarys_model(network: Network, performed: Perform) -> None:
    told = performed(Job("some vectors", (network,)))
    assert told.keys() == {"vectors"}
    check(told["vectors"], evaluate_vectors(model(network).vectors(queries_of(NEWS)), labels(NEWS)))


def test_a_run_is_the_same_twice_and_another_seed_is_another_run(work: Work) -> None:
    job = Job("some codes", (Network(bits=16),))
    work.prepare(NEWS, job.bigrams)
    once, again, other = (
        perform(Run(job, NEWS, seed, quick=True), work.data(Run(job, NEWS, 0)), device="cpu") for seed in (0, 0, 1)
    )
    for result in (once, again, other):
        assert result.pop("seconds") >= 0
    assert once == again
    assert once["results"] != other["results"]
    assert (once["job"], once["corpus"], once["device"]) == ("some codes", "20newsgroups", "cpu")
    assert once["identity"] == Run(job, NEWS, 0, quick=True).identity(work.data(Run(job, NEWS, 0)).fingerprint)


def test_table_2_hashes_the_vectors_of_the_network_that_it_scores(performed: Perform) -> None:
    job = JOBS["pv-dbow-32-bigrams"]
    told = performed(job)
    assert told.keys() == {"vectors", "hyperplanes", "itq"}
    true = model(job.networks[0])
    vectors = true.vectors(queries_of(NEWS))
    check(told["vectors"], evaluate_vectors(vectors, labels(NEWS)))
    for name, method in (("hyperplanes", RandomHyperplanes), ("itq", IterativeQuantization)):
        codes = method(32, seed=SEED).fit(true.embeddings).transform(vectors)
        check(told[name], evaluate_codes(codes, labels(NEWS)))


def test_only_the_network_of_table_2_is_hashed(performed: Perform) -> None:
    assert performed(Job("other vectors", (Network(dim=12, bigrams=True),))).keys() == {"vectors"}


def test_table_4_selects_by_code_and_ranks_by_vector(performed: Perform) -> None:
    job = JOBS["real-binary-28"]
    told = performed(job)
    true = model(job.networks[0])
    codes, vectors = true.codes(queries_of(NEWS)), true.vectors(queries_of(NEWS))
    check(told["codes"], evaluate_codes(codes, labels(NEWS)))
    check(told["vectors"], evaluate_vectors(vectors, labels(NEWS)))
    for radius in RADII[28]:
        scores = evaluate_filtered(codes, vectors, labels(NEWS), radius)
        part = told[f"radius-28-{radius}"]
        assert part["ndcg@10"] == round(scores.ndcg, 4)
        assert part["strict_ndcg@10"] == round(scores.strict_ndcg, 4)
        assert (part["queries"], part["empty"], part["skipped"]) == (scores.queries, scores.empty, scores.skipped)


def test_table_4s_other_variant_takes_codes_and_vectors_of_networks_of_their_own(performed: Perform) -> None:
    told = performed(JOBS["separate"])
    *binary, real = JOBS["separate"].networks
    vectors = model(real).vectors(queries_of(NEWS))
    check(told["vectors"], evaluate_vectors(vectors, labels(NEWS)))
    for network in binary:
        codes = model(network).codes(queries_of(NEWS))
        for radius in RADII[network.bits or 0]:
            scores = evaluate_filtered(codes, vectors, labels(NEWS), radius)
            assert told[f"radius-{network.bits}-{radius}"]["ndcg@10"] == round(scores.ndcg, 4)


def test_a_network_of_wikipedia_is_scored_on_the_other_collections(performed: Perform) -> None:
    told = performed(JOBS["transfer"], WIKIPEDIA)
    assert list(told) == ["20newsgroups", "reuters21578"]
    [network] = JOBS["transfer"].networks
    for corpus in (NEWS, REUTERS):
        codes = model(network, WIKIPEDIA).codes(queries_of(corpus))
        check(told[corpus.name], evaluate_codes(codes, labels(corpus), relevance=corpus.relevance))


def points(picture: dict[str, Any]) -> list[tuple[bytes, str]]:
    codes = np.frombuffer(base64.b64decode(picture["codes"]), dtype=np.uint8).reshape(-1, picture["bytes"])
    return sorted((code.tobytes(), label) for code, label in zip(codes, picture["labels"], strict=True))


def test_the_picture_has_the_codes_of_documents_of_the_papers_newsgroups(performed: Perform) -> None:
    picture = performed(JOBS[PICTURED])["picture"]
    codes = model(JOBS[PICTURED].networks[0]).codes(queries_of(NEWS))
    shown = set(NEWS.picture) & set(GROUPS)
    assert shown
    wanted = [(code.tobytes(), mine[0]) for code, mine in zip(codes, labels(NEWS), strict=True) if mine[0] in shown]
    assert len(wanted) < POSTS["test"]
    assert points(picture) == sorted(wanted)


def test_elsewhere_it_has_documents_that_have_one_of_the_five_commonest_labels_and_no_other(
    performed: Perform,
) -> None:
    picture = performed(JOBS[PICTURED], REUTERS)["picture"]
    codes = model(JOBS[PICTURED].networks[0], REUTERS).codes(queries_of(REUTERS))
    wanted = [  # of four labels all are common, so that a document of two is at two places at once
        (code.tobytes(), mine[0]) for code, mine in zip(codes, labels(REUTERS), strict=True) if len(mine) == 1
    ]
    assert points(picture) == sorted(wanted)


def test_a_picture_of_very_many_documents_has_some_of_them(performed: Perform, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = points(performed(JOBS[PICTURED])["picture"])
    monkeypatch.setattr("parabit.paper.runs._MOST_POINTS", 7)
    _performed.cache_clear()
    some = points(performed(JOBS[PICTURED])["picture"])
    _performed.cache_clear()
    assert len(some) == 7
    assert all(point in everything for point in some)


@cache
def counts(corpus: PaperCorpus) -> tuple[csr_array, csr_array]:
    """The counts of training and of test documents."""
    rule = VocabularyRule(Tokenizer.paper(), min_count=corpus.min_count)
    vocabulary, bags = count_bags(open_corpus(f"{corpus.name}/train"), rule)
    asked = make_bags([document.text for document in queries_of(corpus)], vocabulary)
    return bags.matrix(len(vocabulary)), asked.matrix(len(vocabulary))


def test_words_that_rank_alone_are_scored_over_the_same_words(performed: Perform) -> None:
    trained, asked = counts(REUTERS)
    rows = TfIdf().fit(trained).transform(asked)
    check(performed(JOBS["tf-idf"], REUTERS)["vectors"], evaluate_vectors(rows, labels(REUTERS), relevance="overlap"))
    index = BM25().fit(asked)
    ranking = ScoreRanking(lambda block: index.scores(asked[block]), asked.shape[0], asked.shape[0], itself=True)
    check(performed(JOBS["bm25"], REUTERS)["vectors"], evaluate(ranking, Relevance(labels(REUTERS), "overlap")))


def test_lsa_is_scored_as_vectors_and_as_codes_of_two_kinds(performed: Perform) -> None:
    told = performed(Job("small lsa", baseline="lsa", size=16))
    trained, asked = counts(NEWS)
    lsa = LSA(16, seed=SEED).fit(trained)
    known, vectors = lsa.transform(trained), lsa.transform(asked)
    check(told["vectors"], evaluate_vectors(vectors, labels(NEWS)))
    train_labels = [document.labels for document in open_corpus("20newsgroups/train")]
    for name, method in (("hyperplanes", RandomHyperplanes), ("itq", IterativeQuantization)):
        hashing = method(16, seed=SEED).fit(known)
        codes = hashing.transform(vectors)
        check(told[name], evaluate_codes(codes, labels(NEWS)))
        searched = evaluate_codes(codes, labels(NEWS), searched=(hashing.transform(known), train_labels))
        assert told[name]["training_precision@100"] == round(searched.precision, 4)


def test_the_closed_form_is_the_librarys_default_model(performed: Perform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parabit.model.learning._MANY_DOCUMENTS", 2)  # from which words of one document are dropped
    few = NEWS.small(40, POSTS["test"])
    told = performed(Job("small closed form", baseline="closed-form", size=32), few)
    trained = corpora._some(open_corpus("20newsgroups/train"), 40)
    rule = VocabularyRule(Tokenizer.paper())
    encoder = learn_closed_form(as_corpus(trained), bits=32, rule=rule, seed=SEED)
    assert len(encoder.vocabulary) < len(build_vocabulary(trained, rule))
    known, asked = encoder.infer(trained), encoder.infer(queries_of(NEWS))
    assert told.keys() == {"codes", "asymmetric"}
    check(told["codes"], evaluate_codes(asked.codes, labels(NEWS)))
    searched = evaluate_codes(asked.codes, labels(NEWS), searched=(known.codes, [one.labels for one in trained]))
    assert told["codes"]["training_precision@100"] == round(searched.precision, 4)
    ranking = asymmetric_ranking(asked.activations, asked.codes)
    check(told["asymmetric"], evaluate(ranking, Relevance(labels(NEWS), "shared")))


def test_the_closed_form_learns_from_no_more_documents_than_the_library(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = []
    real = closed_form.learn

    def learn(rows: csr_array, *rest: Any) -> closed_form.Solution:
        learned.append(rows.shape[0])
        return real(rows, *rest)

    monkeypatch.setattr("parabit.model.learning.learn", learn)
    monkeypatch.setattr("parabit.model.learning.SAMPLE", 50)
    told = _performed(work, Job("sampled closed form", baseline="closed-form", size=16), NEWS)["results"]
    assert learned == [50]
    assert told["codes"]["map"] > 1.5 * chance()


def chance() -> float:
    """The precision of documents in any order."""
    same = evaluate_codes(np.zeros((POSTS["test"], 1), dtype=np.uint8), labels(NEWS))
    return same.map


def test_semantic_hashing_finds_the_topics(performed: Perform, monkeypatch: pytest.MonkeyPatch) -> None:
    from parabit.baselines import semantic_hashing

    quick = partial(semantic_hashing.SemanticHashing, hidden=(30,), epochs=20)
    monkeypatch.setattr(semantic_hashing, "SemanticHashing", quick)
    told = performed(Job("small codes", baseline=JOBS["semantic-hashing-32"].baseline, size=16))
    assert told["codes"]["map"] > 1.5 * chance()
    assert 0 < told["codes"]["training_precision@100"] <= 1
    assert told["codes"]["queries"] == POSTS["test"]


def test_doc2vec_is_scored_where_gensim_is(performed: Perform) -> None:
    pytest.importorskip("gensim")
    told = performed(Job("small doc2vec", baseline="doc2vec", size=8))
    assert told.keys() == {"vectors"}
    assert told["vectors"]["map"] > chance()
    assert told["vectors"]["queries"] == POSTS["test"]


def test_a_pretrained_encoder_reads_the_texts_of_the_test_documents(
    performed: Perform, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vectors(self: SentenceEncoder, texts: list[str]) -> NDArray[np.float32]:
        assert texts == [document.text for document in queries_of(REUTERS)]
        return np.array([[len(text), text.count("a") + 1] for text in texts], dtype=np.float32)

    monkeypatch.setattr(SentenceEncoder, "transform", vectors)
    true = vectors(SentenceEncoder(), [document.text for document in queries_of(REUTERS)])
    told = performed(JOBS["sentences"], REUTERS)["vectors"]
    check(told, evaluate_vectors(true, labels(REUTERS), relevance="overlap"))


def test_of_very_many_queries_some_search_the_training_documents(
    performed: Perform, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Network(bits=16)
    monkeypatch.setattr("parabit.paper.runs._MOST_QUERIES", 10)
    told = performed(Job("few queries", (network,)))["codes"]
    all_queries = performed(Job("some codes", (network,)))["codes"]
    assert told["queries"] == POSTS["test"]
    assert {name: told[name] for name in ("map", "ndcg@10")} == {name: all_queries[name] for name in ("map", "ndcg@10")}
    assert 0 < told["training_precision@100"] <= 1

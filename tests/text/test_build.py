import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import counted, pairs, words_of

from parabit.corpus import Corpus, Document, open_corpus
from parabit.errors import BagsError, CorpusError, ParabitError, VocabularyError
from parabit.progress import Progress
from parabit.text import Bags, Tokenizer, Vocabulary, VocabularyRule, build_bags, build_vocabulary, counting, write_bags

TOKENIZER = Tokenizer(pattern="[a-z]+", min_length=1, stop_words=frozenset({"stop"}))
TEXTS = ["a b a b c", "", "b stop c!", "stop", "a", "x y z a b"]

texts_of_few_words = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "dd", "stop"]), max_size=12).map(" ".join), min_size=1, max_size=12
).filter(lambda texts: any(set(text.split()) - {"stop"} for text in texts))


def named_counts(vocabulary: Vocabulary) -> dict[str, tuple[int, int]]:
    rows = zip(vocabulary.names, vocabulary.counts.tolist(), vocabulary.document_frequencies.tolist(), strict=True)
    return {name: (count, documents) for name, count, documents in rows}


@given(texts_of_few_words, st.integers(1, 3), st.integers(1, 3))
def test_counts_are_those_of_plain_counting(texts: list[str], least: int, least_bigrams: int) -> None:
    rule = VocabularyRule(TOKENIZER, bigrams=True, min_count=least, min_bigram_count=least_bigrams)
    words = [words_of(text, TOKENIZER) for text in texts]
    counts, documents = counted(words)
    kept = {word for word, count in counts.items() if " " not in word and count >= least}
    kept |= {
        pair
        for pair, count in counts.items()
        if " " in pair and count >= least_bigrams and kept.issuperset(pair.split())
    }
    if not kept:
        with pytest.raises(VocabularyError, match=f"no word occurs {least} times"):
            build_vocabulary(texts, rule)
        return
    vocabulary = build_vocabulary(texts, rule)
    assert named_counts(vocabulary) == {name: (counts[name], documents[name]) for name in kept}
    assert vocabulary.documents == len(texts)
    assert vocabulary.tokens == sum(map(len, words))
    known = sum(count for name, count in counts.items() if name in kept and " " not in name)
    assert vocabulary.coverage == pytest.approx(known / vocabulary.tokens)


@given(texts_of_few_words, st.integers(1, 12))
def test_a_maximum_size_keeps_the_most_frequent(texts: list[str], size: int) -> None:
    everything = build_vocabulary(texts, VocabularyRule(TOKENIZER, bigrams=True))
    kept = build_vocabulary(texts, VocabularyRule(TOKENIZER, bigrams=True, max_size=size))
    assert len(kept) == min(size, len(everything))
    counts = sorted(everything.counts.tolist(), reverse=True)
    assert sorted(kept.counts.tolist(), reverse=True) == counts[:size]
    assert named_counts(kept).items() <= named_counts(everything).items()


def bags_by_name(bags: Bags, vocabulary: Vocabulary) -> list[tuple[list[str], dict[str, int]]]:
    """Each document's words in order, and its counts."""
    documents = []
    for place in range(len(bags)):
        tokens = bags.tokens[bags.token_offsets[place] : bags.token_offsets[place + 1]]
        entries = slice(bags.feature_offsets[place], bags.feature_offsets[place + 1])
        features = vocabulary.names.gather(bags.features[entries]).to_list()
        counts = dict(zip(features, bags.counts[entries].tolist(), strict=True))
        documents.append((vocabulary.words.gather(tokens).to_list(), counts))
    return documents


def expected_bags(texts: list[str], vocabulary: Vocabulary) -> list[tuple[list[str], dict[str, int]]]:
    known = set(vocabulary.names)
    rows = []
    for text in texts:
        words = words_of(text, TOKENIZER)
        features = [name for name in [*words, *pairs(words)] if name in known]
        rows.append(([word for word in words if word in known], dict(Counter(features))))
    return rows


@given(texts_of_few_words, st.integers(1, 2), st.booleans())
def test_bags_hold_the_text_and_its_counts(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], least: int, bigrams: bool
) -> None:
    folder = tmp_path_factory.mktemp("bags")
    rule = VocabularyRule(TOKENIZER, bigrams=bigrams, min_bigram_count=least)
    vocabulary, bags = build_bags(texts, folder / "a", rule)
    assert vocabulary == build_vocabulary(texts, rule)
    assert bags_by_name(bags, vocabulary) == expected_bags(texts, vocabulary)
    assert bags.ids.to_list() == [str(place) for place in range(len(texts))]
    # With the vocabulary given, the same arrays in another way.
    again = write_bags(texts, vocabulary, folder / "b")
    assert {path.name: path.read_bytes() for path in again.folder.iterdir() if path.suffix == ".npy"} == {
        path.name: path.read_bytes() for path in bags.folder.iterdir() if path.suffix == ".npy"
    }
    # The matrix says the same, whole and in part.
    whole = bags.matrix().toarray()
    assert whole.shape == (len(texts), len(vocabulary))
    assert whole.sum(axis=0).tolist() == vocabulary.counts.tolist()
    for part in (slice(1, 3), slice(-2, None), slice(5, 99), slice(2, 1)):
        assert (bags.matrix(part.start, part.stop).toarray() == whole[part]).all()


def test_batches_and_parts_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus of many batches, merged in many parts, gives what one batch gives."""
    rng = np.random.default_rng(0)
    texts = [
        " ".join(f"w{'abcdefghij'[d]}{'klmno'[e]}" for d, e in rng.integers((10, 5), size=(30, 2))) for _ in range(300)
    ]
    rule = VocabularyRule(bigrams=True, min_bigram_count=3)
    vocabulary, bags = build_bags(texts, tmp_path / "a", rule)
    monkeypatch.setattr(counting, "MERGED_AT_ONCE", 500)
    monkeypatch.setattr(Corpus.batches, "__defaults__", (700, 7))
    told: list[Progress] = []
    parted, parted_bags = build_bags(texts, tmp_path / "b", rule, report=told.append)
    assert parted.fingerprint == vocabulary.fingerprint
    for name in ("tokens", "token_offsets", "features", "counts", "feature_offsets"):
        assert (getattr(parted_bags, name) == getattr(bags, name)).all()
    assert parted_bags.ids.to_list() == bags.ids.to_list()
    stages = [progress.stage for progress in told]
    assert sorted(set(stages), key=stages.index) == ["reading", "counting bigrams", "making bags"]
    assert [progress.share for progress in told if progress.stage == "making bags"][-1] == 1.0
    assert stages.count("reading") > 30


def test_unknown_words_break_bigrams_and_stop_words_do_not(tmp_path: Path) -> None:
    vocabulary = build_vocabulary(["a b", "b a"], VocabularyRule(TOKENIZER, bigrams=True))
    bags = write_bags(["a stop b", "a unknown b"], vocabulary, tmp_path / "bags")
    assert bags_by_name(bags, vocabulary) == [(["a", "b"], {"a": 1, "b": 1, "a b": 1}), (["a", "b"], {"a": 1, "b": 1})]


def test_a_long_document_is_not_cut(tmp_path: Path) -> None:
    words = 3_000_000
    vocabulary, bags = build_bags(["short text", "long " * words], tmp_path / "bags")
    assert vocabulary.tokens == words + 2
    assert bags.token_offsets.tolist() == [0, 2, words + 2]
    assert bags.counts.max() == words


def test_ids_labels_and_order_come_from_the_documents(tmp_path: Path) -> None:
    documents = [Document(f"id {place}", "word", ("label",)) for place in (3, 1, 2)]
    assert build_bags(documents, tmp_path / "bags")[1].ids.to_list() == ["id 3", "id 1", "id 2"]


def test_the_papers_vocabulary_is_met(real: Callable[[str], str]) -> None:
    rule = VocabularyRule(Tokenizer(pattern="[a-z]+"), bigrams=True)
    vocabulary = build_vocabulary(open_corpus(real("20newsgroups-raw/train")), rule)
    assert (vocabulary.documents, len(vocabulary.words), len(vocabulary.bigrams)) == (11_314, 88_164, 948_781)


# Corpora that cannot be counted.


def test_a_corpus_without_documents_is_told() -> None:
    with pytest.raises(VocabularyError, match="the corpus has no documents"):
        build_vocabulary([])


def test_a_corpus_without_words_is_told() -> None:
    with pytest.raises(VocabularyError, match="not one word in 2 documents; words match .* 2 to 15 characters"):
        build_vocabulary(["123 the", "of"])


def test_a_corpus_without_a_known_word_is_told(tmp_path: Path) -> None:
    vocabulary = build_vocabulary(["hubble"])
    with pytest.raises(VocabularyError, match="no document has a word of the vocabulary"):
        write_bags(["goalie", ""], vocabulary, tmp_path / "bags")
    assert list(tmp_path.iterdir()) == []


def test_ids_that_occur_twice_are_told(tmp_path: Path) -> None:
    documents = [Document("x", "one"), Document("y", "two"), Document("x", "three")]
    for build in (lambda: build_vocabulary(documents), lambda: build_bags(documents, tmp_path / "bags")):
        with pytest.raises(CorpusError, match="'x': numbers 0 and 2"):
            build()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["min_count", "min_bigram_count", "max_size"])
def test_a_rule_that_cannot_be_is_told(name: str) -> None:
    with pytest.raises(VocabularyError, match=f"{name} is 0"):
        VocabularyRule(**{name: 0})  # type: ignore[arg-type]


# Keeping and opening.


@pytest.fixture
def built(tmp_path: Path) -> tuple[Vocabulary, Bags]:
    return build_bags(TEXTS, tmp_path / "bags", VocabularyRule(TOKENIZER, bigrams=True))


def test_a_vocabulary_survives_its_file(built: tuple[Vocabulary, Bags], tmp_path: Path) -> None:
    vocabulary, _ = built
    vocabulary.save(tmp_path / "v.parquet")
    loaded = Vocabulary.load(tmp_path / "v.parquet")
    assert loaded == vocabulary
    assert loaded.names.to_list() == vocabulary.names.to_list()
    assert (loaded.bigrams == vocabulary.bigrams).all()
    assert loaded.tokenizer == vocabulary.tokenizer
    # A rule without bigrams, too: a column of nothing must keep its type.
    words = build_vocabulary(TEXTS, VocabularyRule(TOKENIZER))
    words.save(tmp_path / "v.parquet")
    assert Vocabulary.load(tmp_path / "v.parquet") == words


def test_fingerprints_tell_vocabularies_apart() -> None:
    rules = [
        VocabularyRule(TOKENIZER),
        VocabularyRule(TOKENIZER, bigrams=True),
        VocabularyRule(TOKENIZER, min_count=2),
        VocabularyRule(Tokenizer(pattern="[a-z]+", min_length=1, stop_words=frozenset())),
    ]
    prints = {build_vocabulary(TEXTS, rule).fingerprint for rule in rules}
    prints.add(build_vocabulary([*TEXTS, "a"], rules[0]).fingerprint)
    assert len(prints) == 5
    assert build_vocabulary(TEXTS, rules[0]).fingerprint in prints


@pytest.mark.parametrize("content", [b"", b"PAR1 but not whole PAR1", b"text"])
def test_a_damaged_vocabulary_file_is_told(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "v.parquet"
    with pytest.raises(VocabularyError, match="no vocabulary at"):
        Vocabulary.load(path)
    path.write_bytes(content)
    with pytest.raises(VocabularyError, match="is not a whole vocabulary file"):
        Vocabulary.load(path)


def test_a_table_that_is_no_vocabulary_is_told(tmp_path: Path) -> None:
    import polars as pl

    pl.DataFrame({"feature": ["a"]}).write_parquet(tmp_path / "v.parquet")
    with pytest.raises(VocabularyError, match="is not a whole vocabulary file"):
        Vocabulary.load(tmp_path / "v.parquet")


def test_a_newer_format_is_told(
    built: tuple[Vocabulary, Bags], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabulary, bags = built
    monkeypatch.setattr("parabit.text.vocabulary.FORMAT", 99)
    vocabulary.save(tmp_path / "v.parquet")
    monkeypatch.undo()
    with pytest.raises(VocabularyError, match="has format 99, this version of parabit reads up to 1; upgrade"):
        Vocabulary.load(tmp_path / "v.parquet")
    manifest = bags.folder / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    with pytest.raises(BagsError, match="has format 99.*upgrade"):
        Bags.open(bags.folder)


def test_bags_know_their_vocabulary(built: tuple[Vocabulary, Bags]) -> None:
    vocabulary, bags = built
    assert Bags.open(bags.folder, vocabulary).vocabulary_fingerprint == vocabulary.fingerprint
    with pytest.raises(BagsError, match="made with another vocabulary"):
        Bags.open(bags.folder, build_vocabulary(["hubble"]))


def test_bags_are_mapped_not_read(built: tuple[Vocabulary, Bags]) -> None:
    bags = Bags.open(built[1].folder)
    assert isinstance(bags.tokens, np.memmap)
    assert isinstance(bags.counts, np.memmap)


@pytest.mark.parametrize("name", ["tokens.npy", "token_offsets.npy", "features.npy", "counts.npy", "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "empty", "junk"])
def test_damaged_bags_are_told(name: str, damage: str, built: tuple[Vocabulary, Bags]) -> None:
    path = built[1].folder / name
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes({"truncated": content[:-5], "empty": b"", "junk": b"junk" * 50}[damage])
    with pytest.raises(BagsError, match=r"damaged|no bags in|not the array"):
        Bags.open(built[1].folder)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        '{"format": 1}',
        '{"format": 1, "features": "x", "vocabulary": "", "arrays": {}}',
        '{"format": 1, "arrays": []}',
        '{"format": "x"}',
    ],
)
def test_a_manifest_that_is_none_is_told(content: str, built: tuple[Vocabulary, Bags]) -> None:
    (built[1].folder / "manifest.json").write_text(content)
    with pytest.raises(BagsError, match=r"manifest\.json is (damaged|not that of bags)"):
        Bags.open(built[1].folder)


def test_damaged_ids_are_told(built: tuple[Vocabulary, Bags]) -> None:
    bags = Bags.open(built[1].folder)
    (bags.folder / "ids.parquet").write_bytes(b"junk")
    with pytest.raises(BagsError, match=r"ids\.parquet is damaged"):
        _ = bags.ids


def test_an_old_folder_is_replaced_only_when_asked(built: tuple[Vocabulary, Bags], tmp_path: Path) -> None:
    folder = built[1].folder
    with pytest.raises(ParabitError, match="is there already"):
        build_bags(["new text"], folder)
    assert Bags.open(folder, built[0])  # still the old one
    with pytest.raises(CorpusError):
        build_bags([None], folder, overwrite=True)  # type: ignore[list-item]
    assert Bags.open(folder, built[0])  # still
    vocabulary, bags = build_bags(["new text"], folder, overwrite=True)
    assert len(bags) == 1
    assert Bags.open(folder, vocabulary)
    assert [path.name for path in tmp_path.iterdir()] == ["bags"]


def test_only_bags_are_overwritten(tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "precious.txt").write_text("hubble")
    (tmp_path / "file").write_text("precious")
    bags = build_bags(TEXTS, tmp_path / "bags")[1].folder
    (bags / "thesis.txt").write_text("written by hand")
    for path in (papers, tmp_path / "file", bags):
        with pytest.raises(ParabitError, match="is there and is something else; nothing was touched"):
            build_bags(TEXTS, path, overwrite=True)
    assert (papers / "precious.txt").read_text() == "hubble"
    assert (tmp_path / "file").read_text() == "precious"
    assert (bags / "thesis.txt").read_text() == "written by hand"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bags", "file", "papers"]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ParabitError, match="there is no folder .* to write bags in; make it first"):
        build_bags(TEXTS, tmp_path / "no" / "bags")

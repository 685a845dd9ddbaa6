"""The word index is derived from the store: whatever becomes of it, it holds the documents of the store."""

import errno
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st
from index_models import TEXTS, binary, documents, real_binary

from parabit import Document, Index, ParabitError, open_corpus
from parabit.index.store.manifest import writer_lock
from parabit.index.words import Words
from parabit.progress import Progress
from parabit.text.languages import LANGUAGES

ANIMALS = [
    "The zebra runs.",
    "A giraffe and a zebra",
    "Okapis run, okapis eat",
    "Bees fly",
    "Ants do not",
]


def found(words: Words, word: str) -> set[int]:
    query = tantivy.Query.term_query(words.schema, "text", words.stems(word)[0][1])
    return set(words.reader.search(query, 100)[0].tolist())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index of 30 documents and five about animals."""
    animals = [Document(f"a{place}", text) for place, text in enumerate(ANIMALS)]
    Index.build([*documents(0, 30), *animals], tmp_path / "a.index", model=binary()).close()
    return tmp_path / "a.index"


def ids(index: Index, text: str) -> set[Any]:
    return set(index.search(text, k=100, rank="words").ids[0])


def words_folder(folder: Path) -> Path:
    [found] = folder.glob("words-*")
    return found


def as_killed(index: Index, folder: Path) -> Path:
    """A copy of what a kill would leave at this moment."""
    shutil.copytree(index.folder, folder, ignore=shutil.ignore_patterns("lock", ".tmp*"))
    (folder / "lock").touch()
    return folder


@contextmanager
def without_commits(index: Index) -> Iterator[None]:
    """Changes whose words are not committed, as if the process were killed before that."""
    index._words.commit = lambda: None  # type: ignore[method-assign]
    yield
    del index._words.commit


@pytest.mark.parametrize("listed", [True, False])
def test_files_of_a_commit_that_was_killed_do_not_matter(folder: Path, listed: bool) -> None:
    segment = next(path.stem for path in words_folder(folder).glob("*.idx"))
    left = [
        f"{segment}.{number}.del" for number in range(200)
    ]  # of deletions, whichever number they get
    for name in left:
        (words_folder(folder) / name).write_bytes(b"half")
    if listed:
        managed = words_folder(folder) / ".managed.json"
        managed.write_text(json.dumps([*json.loads(managed.read_text()), *left]))
    with Index.open(folder, write=True) as index:
        with without_commits(index):
            index.delete("a0")
            killed = as_killed(index, folder.with_name("killed.index"))
        with (
            nullcontext()
            if listed
            else pytest.raises(ParabitError, match="cannot be written.*deleted as asked")
        ):
            index._words.commit()
        assert ids(index, "zebra") == {"a1"}
        index.add([Document("new", "a new zebra")])
        assert ids(index, "zebra") == {"a1", "new"}
    with Index.open(killed, write=True) as index:
        assert ids(index, "zebra") == {"a1"}


@pytest.mark.parametrize("damage", [None, "*.term", "all"])
def test_a_reader_that_may_not_write_says_what_is_missing(
    folder: Path, tmp_path: Path, damage: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parabit.index.index._PATIENCE", 1)
    with Index.open(folder, write=True) as index, without_commits(index):
        index.add([Document("new", f"a quagga {TEXTS[150]}"), Document("newer", "a quagga")])
        left = as_killed(index, tmp_path / "killed.index")
    if damage == "all":
        shutil.rmtree(words_folder(left))
    elif damage is not None:
        for path in words_folder(left).glob(damage):
            path.write_text("{}")
    before = {path: path.read_bytes() for path in left.rglob("*") if path.is_file()}
    with writer_lock(left), Index.open(left) as reader:  # as if this process might not write
        hits = reader.search(f"quagga {TEXTS[150]}", k=20)
        notes = hits.notes[0]
        assert "new" in hits.ids[0]  # by its code
        assert not any(note.startswith("no document has") for note in notes)
        if damage is None:
            behind = "the words of 2 documents are not indexed yet; they are found by code alone"
            assert notes == [behind]
            unknown = "no document whose words are indexed has quagga"
            assert reader.search("quagga").notes == [[unknown, behind]]
            with pytest.raises(ParabitError, match="is being written by process"):
                reader.verify()  # whether they stay behind is not known yet
        else:
            assert "cannot be searched" in notes[0]
    after = {path: path.read_bytes() for path in left.rglob("*") if path.is_file()}
    changed = {path.name for path in after if before.get(path) != after[path]}
    assert changed <= {"lock"}  # which says who holds it
    with Index.open(left) as reader:  # it may
        assert set(reader.search("quagga", rank="words").ids[0]) == {"new", "newer"}
        assert reader.search("quagga").notes == [[]]
        reader.verify()


def test_a_full_disk_while_words_are_built_again_leaves_what_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    [terms] = words_folder(folder).glob("*.term")
    content = terms.read_bytes()
    terms.write_text("{}")
    with monkeypatch.context() as patch:
        patch.setattr(Words, "add", full)
        for write in (False, True):
            with Index.open(folder, write=write) as index:
                hits = index.search(TEXTS[3])
                assert hits.ids[0][0] == "d3"
                assert "No space left on device" in hits.notes[0][0]
    assert [path.name for path in folder.glob("words-*")] == [terms.parent.name]
    terms.write_bytes(content)
    with Index.open(folder) as index:
        assert ids(index, "zebra") == {"a0", "a1"}


def test_what_killed_writers_left_among_the_words_is_removed(folder: Path) -> None:
    for name in (".tmpAb12Cd", ".parabit.json.0123abcd.partial"):
        (words_folder(folder) / name).write_text("half")
    with Index.open(folder, write=True) as index:
        assert ids(index, "zebra") == {"a0", "a1"}
    assert not list(words_folder(folder).glob(".tmp*"))
    assert not list(words_folder(folder).glob("*.partial"))


def test_a_word_index_that_is_gone_is_built_again_and_tells_how_far_it_is(folder: Path) -> None:
    words_folder(folder).rename(folder.parent / "gone")
    told: list[Progress] = []
    with Index.open(folder, write=True, report=told.append) as index:
        assert ids(index, "zebra") == {"a0", "a1"}
    assert (told[-1].stage, told[-1].done, told[-1].share) == ("indexing words", 35, 1.0)


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize(
    ("added", "deleted", "expected"),
    [
        ({"a2": "a new zebra", "a1": "no more"}, [], {"a0", "a2"}),
        ({}, ["a4", "a1"], {"a0"}),  # the last document among them
        (
            {"new": "a new zebra", "newer": "a zebra", "d3": "zebra"},
            ["new", "a1", "d4"],
            {"a0", "newer", "d3"},
        ),
    ],
)
def test_changes_whose_words_were_lost_are_caught_up(
    folder: Path,
    tmp_path: Path,
    added: dict[str, str],
    deleted: list[str],
    expected: set[str],
    write: bool,
) -> None:
    with Index.open(folder, write=True) as index, Index.open(folder) as reader:
        assert ids(reader, "zebra") == {"a0", "a1"}
        with without_commits(index):
            if added:
                index.put([Document(identity, text) for identity, text in added.items()])
            if deleted:
                index.delete(deleted)
            left = as_killed(index, tmp_path / "killed.index")
        index._words.commit()
        assert ids(index, "zebra") == expected  # the writer itself knows all
        assert reader.refresh()
        assert ids(reader, "zebra") == expected
    with Index.open(left, write=write) as index:
        assert ids(index, "zebra") == expected
    with Index.open(left) as index:  # and it lasts
        assert index._words._is_current(Words.open(words_folder(left)).reader)


def test_a_reader_sees_words_as_soon_as_a_change_is_done(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("an old zebra")
    Index.build(open_corpus(tmp_path / "notes"), tmp_path / "a.index", model=binary()).close()
    with (
        Index.open(tmp_path / "a.index", write=True) as writer,
        Index.open(tmp_path / "a.index") as reader,
    ):
        assert ids(reader, "zebra") == {"a.txt"}
        (tmp_path / "notes" / "b.txt").write_text("a new zebra")
        for change, expected in (
            (partial(writer.add, [Document("new", "a new zebra")]), {"a.txt", "new"}),
            (partial(writer.put, [Document("new", "no horse")]), {"a.txt"}),
            (writer.sync, {"a.txt", "b.txt"}),
            (partial(writer.delete, "a.txt"), {"b.txt"}),
        ):
            change()
            assert reader.refresh()
            assert ids(reader, "zebra") == ids(writer, "zebra") == expected


def test_beside_a_writer_a_word_index_that_is_damaged_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parabit.index.word_index._PATIENCE", 2)
    with Index.open(folder, write=True):
        (words_folder(folder) / "meta.json").write_text("{}")  # of which there is a copy
        with Index.open(folder) as reader:
            assert ids(reader, "zebra") == {"a0", "a1"}
        [terms] = words_folder(folder).glob("*.term")
        terms.unlink()  # the writer has it open
        terms.write_bytes(b"damaged")
        with Index.open(folder) as reader:
            problem = "the words of .* cannot be searched: .* is being written by process"
            for query, rank in (("zebra", "words"), ("+zebra", None)):
                with pytest.raises(ParabitError, match=problem):
                    reader.search(query, rank=rank)
            hits = reader.search(TEXTS[3])  # codes answer alone, and it says so
            assert (hits.rank, hits.ids[0][0]) == ("asymmetric", "d3")
            [note] = hits.notes[0]
            assert re.fullmatch(f"{problem}.*; documents are ranked by code alone", note)
            assert reader.search(TEXTS[3], rank="hamming").ids[0][0] == "d3"


def test_damage_that_is_found_only_while_searching_is_explained(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parabit.index.words._SMALL", 0)
    [positions] = words_folder(folder).glob("*.pos")
    positions.write_bytes(positions.with_suffix(".fieldnorm").read_bytes())
    with (
        Index.open(folder) as index,
        pytest.raises(ParabitError, match="is damaged; remove .*words-"),
    ):
        index.search('"zebra runs"')
    shutil.rmtree(words_folder(folder))
    with Index.open(folder) as index:
        assert ids(index, '"zebra runs"') == {"a0"}


def test_an_index_that_cannot_be_written_can_be_read_and_finds_words(folder: Path) -> None:
    with Index.open(folder, write=True) as index:
        index.add([Document("new", "a new zebra")])
    script = (
        "import os, sys, filelock, importlib.readers; from parabit import Index\n"
        "with Index.open(sys.argv[1]) as index: index.search('zebra')\n"  # imports what others may not read
        "if not os.getuid(): os.setgid(65534); os.setuid(65534)\n"  # root may write everywhere
        "assert not os.access(sys.argv[1], os.W_OK)\n"
        "with Index.open(sys.argv[1]) as index: print(sorted(index.search('zebra', rank='words').ids[0]))\n"
        "Index.open(sys.argv[1], write=True)"
    )
    with TemporaryDirectory() as place:  # the folders above tmp_path are closed to others
        Path(place).chmod(0o755)
        copy = shutil.copytree(folder, Path(place) / "a.index")
        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        done = subprocess.run(
            [sys.executable, "-Bc", script, copy], capture_output=True, text=True, check=False
        )
        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o755)
    assert done.stdout == "['a0', 'a1', 'new']\n", done.stderr
    assert "cannot be written: Permission denied; search it as it is" in done.stderr


def test_an_index_never_has_the_words_of_one_that_it_replaced(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.index"
    with Index.open(folder, write=True) as index:
        index.save(copy)
        with Index.open(copy, write=True) as other:
            other.add(
                [Document("other", "an armadillo")]
            )  # with the serial number that the next one gets here, too
        index.add([Document("mine", "an anteater")])
        index.save(copy, overwrite=True)
    with Index.open(copy) as other, Index.open(copy) as asked_before:
        assert (ids(other, "armadillo"), ids(other, "anteater")) == (set(), {"mine"})
        ids(asked_before, "zebra")
        animal = Document("b", f"an armadillo {TEXTS[3]}")
        Index.build([animal], copy, model=real_binary(), overwrite=True).close()
        assert ids(asked_before, "anteater") == {"mine"}  # it goes on with what it had opened
        assert other.refresh()
        assert asked_before.refresh()
        for reader in (other, asked_before):
            assert (ids(reader, "armadillo"), ids(reader, "anteater"), reader.bits) == (
                {"b"},
                set(),
                12,
            )
            assert (
                reader.search(TEXTS[3]).codes.tolist()
                == real_binary().transform([TEXTS[3]]).tolist()
            )
            assert reader.search(TEXTS[3], rank="hamming").ids == [["b"]]
    assert len(list(copy.glob("words-*"))) == 1


def test_a_reader_whose_index_was_replaced_before_it_read_the_words_searches_the_new_one(
    folder: Path,
) -> None:
    with Index.open(folder, model=binary()) as reader:
        Index.build([Document("b", "an armadillo")], folder, model=binary(), overwrite=True).close()
        assert ids(reader, "zebra") == set()
        assert ids(reader, "armadillo") == {"b"}
    assert len(list(folder.glob("words-*"))) == 1


@pytest.mark.parametrize("options", [{"text": False}, {"words": False}])
def test_an_index_without_words_is_searched_by_code(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    with Index.build(documents(0, 9), tmp_path / "a.index", model=binary(), **options) as index:
        assert (index.has_words, index.best_rank, index.ranks) == (
            False,
            "asymmetric",
            ("hamming", "asymmetric"),
        )
        assert (index.info()["language"], index.info()["words_bytes"]) == (None, 0)
        assert index.info()["keeps"] == (["text"] if "words" in options else [])
        assert {(hit.text == "", "place" in hit.fields) for hit in index.search(TEXTS[0])[0]} == {
            ("text" in options, True)
        }
        assert not list(index.folder.glob("words-*"))
        assert index.search(TEXTS[0])[0][0].why.words == {}
        index.add(documents(9, 12))
        assert len(index.search(TEXTS[0], k=20).ids[0]) == 12


def test_words_are_stemmed_by_language_and_accents_folded_if_the_model_folds_them(
    tmp_path: Path,
) -> None:
    texts = ["zwei Häuser", "mein Haus", "two houses", "a house", "un café", "un cafe"]
    for language, fold_accents, query, expected in (
        ("de", False, "Häusern", {0, 1}),
        ("en", False, "housing", {2, 3}),
        ("en", False, "Häusern", set()),
        (None, False, "houses", {2}),
        (None, False, "housing", set()),
        (None, False, "café", {4}),
        (None, True, "café", {4, 5}),
    ):
        folder = tmp_path / f"{language}-{fold_accents}-{query}"
        words = Words.create(folder, language, fold_accents=fold_accents)
        words.add(range(len(texts)), texts)
        words.commit()
        assert found(Words.open(words.folder), query) == expected, (language, query)
    for options, problem in (
        ({"language": "xx"}, "no stemmer for the language 'xx'"),
        ({"text": False, "words": True}, "words are found in texts"),
    ):
        with pytest.raises(ParabitError, match=problem):
            Index.build(documents(0, 9), model=binary(), **options)


def test_stop_words_are_those_of_the_language() -> None:
    with Index.build(
        ["una battaglia", "un treno francese", "of a train"], model=binary(), language="it"
    ) as index:
        for query, words in (
            ("le battaglie dei francesi", {"battagl", "frances"}),
            ("treni of", {"tren", "of"}),
        ):
            searched = index.search(query).word_queries[0]
            assert (set(searched.words), searched.unknown) == (words, ())
    with Index.build(
        ["ο στρατός", "και ο πόλεμος"], model=binary(), language="el"
    ) as index:  # which has no list
        assert index.search("ο πόλεμος", k=1, rank="words").ids == [["1"]]


@given(text=st.text(), language=st.sampled_from([None, *LANGUAGES]))
def test_every_word_has_one_stem(
    text: str, language: str | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    words = Words.create(tmp_path_factory.mktemp("stems") / "words", language)
    assert [token for token, _ in words.stems(text)] == words.tokenizer.words(text)


def test_every_token_of_a_text_can_be_found() -> None:
    queries = {
        "c++": "a book on C++", "C": "plain C", "486": "an old 486 computer", "the 486": "an old 486 computer",
        "東京": "東京タワー", "京都": "京都大学", "Straßen": "die Straßen",
        "café": "un café crème", "CAFÉ": "un café crème",
        "the": "the end", "to be or not to be": "to be or not to be",  # stop words, as nothing else is asked for
    }  # fmt: skip
    with Index.build(list(dict.fromkeys(queries.values())), model=binary()) as index:
        for query, text in queries.items():
            best = index.search(query, rank="words")
            assert best.known.tolist() == [True]
            assert best[0][0].text == text
            assert index.search(query).ids[0][:1] == best.ids[0][:1]


def test_a_title_is_searched_unless_the_text_begins_with_it() -> None:
    texts = [
        Document("a", "It runs.", fields={"title": "Zebra"}),
        Document("b", "Zebra\nIt runs.", fields={"title": "Zebra"}),
    ]
    with Index.build(texts, model=binary()) as index:
        assert ids(index, "zebra") == {"a", "b"}
        assert [hit.title for hit in index.search("zebra")[0]] == ["Zebra", "Zebra"]
        assert (opened := index._words.open()) is not None
        assert opened.reader.documents == 2


def test_a_filter_that_lets_many_through_finds_as_many_as_are_asked_for() -> None:
    texts = [f"zebra {'zebra ' * (place % 7)}" for place in range(6000)]
    many = [
        Document(str(place), text, fields={"low": place % 7 < 5})
        for place, text in enumerate(texts)
    ]
    with Index.build(many, model=binary(), words=True) as index:
        everything = [
            int(identity) % 7 for identity in index.search("zebra", k=6000, rank="words").ids[0]
        ]
        for low in (
            True,
            False,
        ):  # more than are named one by one in a query and none among the best, and fewer
            some = index.search("zebra", k=1000, rank="words", where={"low": low}).ids[0]
            expected = [copies for copies in everything if (copies < 5) == low][:1000]
            assert [int(identity) % 7 for identity in some] == expected

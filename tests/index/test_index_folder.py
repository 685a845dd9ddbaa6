"""An index in its folder: what is built comes back, and what does not belong together is refused."""

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_models import TEXTS, UNKNOWN, binary, documents, queries, real_binary
from sklearn.exceptions import NotFittedError

from parabit import Document, ParabitError, ParagraphVectors
from parabit.choices import RANKS
from parabit.index import Hits, Index
from parabit.model import save_model
from parabit.progress import Progress

QUERIES = queries(5)


def answers(hits: Hits) -> list[Any]:
    """All that hits say."""
    return [*hits, hits.known.tolist(), [scores.tobytes() for scores in hits.scores]]


def of_everything(index: Index) -> list[Any]:
    return [answers(index.search(QUERIES, k=7, rank=rank)) for rank in RANKS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a.index"


def test_documents_that_the_model_does_not_know_are_found_by_their_words_or_left_out() -> None:
    texts = [TEXTS[0], UNKNOWN, TEXTS[1], " !? ", TEXTS[2]]
    index = Index.build(texts, model=binary())
    assert (len(index), index.left_out) == (4, 1)
    assert index.add([Document("a", UNKNOWN), Document("b", ""), Document("c", TEXTS[3])]) == 2
    assert (len(index), index.left_out) == (6, 1)
    assert set(index.search(UNKNOWN).ids[0]) == {"1", "a"}
    assert (index.add(documents(9, 10)), index.left_out) == (1, 0)
    without = Index.build(texts, model=binary(), words=False)
    assert (len(without), without.left_out) == (3, 2)
    assert without.put([Document("0", UNKNOWN), Document("a", UNKNOWN)]).removed == 1
    assert (len(without), without.left_out) == (2, 2)


@pytest.mark.parametrize(
    "how", ["closed", "compacted", "saved", "saved over itself", "saved by a reader"]
)
def test_nothing_changes_when_an_index_is_written_again(folder: Path, how: str) -> None:
    index = Index.build(documents(0, 60), folder, model=binary(), vectors=True)
    index.add(documents(60, 80))
    index.delete(["d3", "d70"])
    expected, place = of_everything(index), folder
    left = [document for document in documents(0, 80) if document.id not in ("d3", "d70")]
    copied = of_everything(
        Index.build(left, model=binary(), vectors=True)
    )  # BM25 still counts what the other deleted
    if how == "compacted":
        index.compact()
    elif how == "saved over itself":
        index.save(folder, overwrite=True)
    elif how != "closed":
        place = folder.with_name("copy.index")
        if how == "saved by a reader":
            index.close()
            index = Index.open(folder)
        index.save(place)
    assert of_everything(index) == expected
    index.close()
    with Index.open(place) as again:
        assert of_everything(again) == (expected if place == folder else copied)
        waiting = again.info()["to_merge"]
        assert (waiting["added"], waiting["deleted"]) == ((20, 2) if how == "closed" else (0, 0))
        again.verify()
        assert again.model is not binary()  # but the one in the folder
    with Index.open(place, model=binary()) as again:
        assert again.model is binary().encoder_
        assert of_everything(again) == (expected if place == folder else copied)


def test_hits_are_read_after_what_became_of_the_index(folder: Path) -> None:
    index = Index.build(documents(0, 30), folder, model=binary())
    before, waiting = index.search(QUERIES, k=5), index.search(QUERIES, k=5)
    expected = list(before)
    index.delete([identity for ids in before.ids for identity in set(ids[:1])][:1])
    index.compact()
    index.close()
    assert (len(waiting), waiting[-1], list(waiting)) == (5, expected[-1], expected)
    scratch = Index.build(documents(0, 30), model=binary()).search(QUERIES, k=5)
    gc.collect()
    assert list(scratch) == expected


@pytest.mark.parametrize("closed", [True, False])
def test_an_index_without_a_folder_is_gone_with_the_object(closed: bool) -> None:
    index = Index.build(documents(0, 5), model=binary())
    place = index.folder
    assert place.is_dir()
    if closed:
        index.close()
    else:
        del index
        gc.collect()
    assert not place.parent.exists()


def test_a_build_that_fails_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    twice = [*documents(0, 5), *documents(2, 3)]
    for place in (None, folder):
        with pytest.raises(ParabitError, match="the id 'd2': document 2 and document 5"):
            Index.build(twice, place, model=binary())
        with pytest.raises(ParabitError, match="two documents have the id 7: numbers 0 and 1"):
            Index.of_codes(np.zeros((2, 1), dtype=np.uint8), 8, place, ids=[7, 7])
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_overwritten_only_if_asked_for_and_nobody_writes_it(
    folder: Path, tmp_path: Path
) -> None:
    with (
        Index.build(documents(0, 9), folder, model=binary()) as index,
        Index.open(folder) as reader,
    ):
        other = Index.of_codes(np.zeros((3, 1), dtype=np.uint8), 8)
        for act in (
            lambda: Index.build(documents(0, 5), folder, model=binary()),
            lambda: other.save(folder),
        ):
            with pytest.raises(ParabitError, match="exists already"):
                act()
        for act in (
            lambda: Index.build(documents(0, 5), folder, model=binary(), overwrite=True),
            lambda: Index.open(folder, write=True),
        ):
            with pytest.raises(
                ParabitError, match=f"is being written by process {os.getpid()}; wait until"
            ):
                act()
        index.add(documents(9, 12))
        index.close()
        with pytest.raises(
            ParabitError, match="open for reading"
        ):  # it knows nothing of the last three
            reader.save(folder, overwrite=True)
    assert len(Index.open(folder)) == 12
    other.save(folder, overwrite=True)
    with Index.open(folder) as index:
        assert (len(index), index.bits) == (3, 8)
    (folder / "manifest.json").write_text("{")  # a damaged index can be replaced
    other.save(folder, overwrite=True)
    (tmp_path / "letters").mkdir()
    for stranger in (tmp_path / "letters" / "dear.txt", folder / "dear.txt"):
        stranger.write_text("Dear")
        with pytest.raises(ParabitError, match="is something else; nothing was changed"):
            Index.build(documents(0, 5), stranger.parent, model=binary(), overwrite=True)
        assert stranger.read_text() == "Dear"
    Index.open(folder).verify()


def test_a_file_that_is_missing_or_has_a_flipped_byte_is_an_error_or_makes_no_difference(
    tmp_path: Path,
) -> None:
    """The files of the store and the model are checked, and a word index that is damaged is built again."""
    whole = tmp_path / "whole"
    with Index.build(documents(0, 30), whole, model=binary(), vectors=True) as index:
        index.add(documents(30, 40))
        expected = of_everything(index)
    rng, errors, same = np.random.default_rng(0), set[str](), set[str]()
    for path in sorted(
        path.relative_to(whole)
        for path in whole.rglob("*")
        if path.stat().st_size and path.is_file()
    ):
        for flip in range(5 if "words" in str(path) else 3):
            folder = tmp_path / "-".join([*path.parts, str(flip)])
            shutil.copytree(whole, folder)
            content = bytearray((folder / path).read_bytes())
            content[rng.integers(len(content))] ^= 1 << rng.integers(8)
            (folder / path).write_bytes(content)
            if flip == 2:
                (folder / path).unlink()
            try:
                with Index.open(folder, write=bool(flip % 2)) as index:
                    assert of_everything(index) == expected, path
                    index.verify()
                same.add(path.parts[0].partition("-")[0])
            except ParabitError as problem:
                assert problem.hint  # noqa: PT017
                errors.add(path.parts[0].partition("-")[0])
            shutil.rmtree(folder, ignore_errors=True)  # tantivy may still be tidying up there
    assert errors >= {"generation", "model", "manifest.json", "log"}
    assert "words" in same - errors


def test_another_model_is_refused_and_the_right_to_write_given_back(folder: Path) -> None:
    Index.build(documents(0, 9), folder, model=binary()).close()
    with pytest.raises(ParabitError, match="was made with another model") as refused:
        Index.open(folder, write=True, model=real_binary())
    Index.open(folder, write=True).close()
    assert refused.value.hint
    codes = Index.of_codes(binary().transform(TEXTS[:3]), 20)
    with pytest.raises(ParabitError, match="was made with another model"):
        Index.open(codes.folder, model=binary())


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: save_model(real_binary().encoder_, kept, overwrite=True, locked=False),
        shutil.rmtree,
    ],
)
def test_a_kept_model_that_is_not_the_one_is_refused(
    folder: Path, damage: Callable[[Path], object]
) -> None:
    Index.build(documents(0, 9), folder, model=binary()).close()
    damage(next(folder.glob("model-*")))
    with Index.open(folder) as index:
        for use in (lambda: index.search(QUERIES), index.verify):
            with pytest.raises(ParabitError, match="model"):
                use()
        assert len(index.search(binary().transform(QUERIES)).ids) == 5  # the codes are whole
    Index.build(documents(0, 9), folder, model=binary(), overwrite=True).close()
    with Index.open(folder) as index:
        index.verify()


def test_what_is_added_during_a_search_does_not_disturb_it() -> None:
    index = Index.build(documents(0, 9), model=binary())
    index.add(documents(9, 12))

    class Meanwhile(list[str]):
        def __iter__(self) -> Iterator[str]:
            if len(index) == 12:
                index.add(documents(12, 40))
            return super().__iter__()

    hits = index.search(Meanwhile(QUERIES), k=50, where={"odd": [True, False]})
    assert [len(ids) for ids in hits.ids] == [12] * 5
    assert len(index) == 40


@pytest.mark.filterwarnings("ignore:fewer documents")
def test_without_a_model_one_is_learned_from_the_documents() -> None:
    texts, told = documents(0, 40), list[Progress]()
    learned, given = (
        Index.build(texts, report=told.append),
        Index.build(texts, model=ParagraphVectors().fit(texts)),
    )
    assert told[-1].done == 40
    learned.duplicates(report=told.append)
    assert (told[-1].done, told[-1].share) == (40, 1.0)
    assert learned.model.fingerprint == given.model.fingerprint
    assert learned.search([texts[3].text], k=5).ids == given.search([texts[3].text], k=5).ids
    with pytest.raises(NotFittedError):
        Index.build(texts, model=ParagraphVectors(16))

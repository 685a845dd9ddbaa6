"""After a sync an index is what it would be if it were built from its files as they are now."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, BinaryIO
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from index_models import TEXTS, UNKNOWN, binary

from parabit import Document, Index, open_corpus
from parabit.corpus import as_corpus
from parabit.corpus.sources import Source
from parabit.errors import IndexFolderError, ParabitError, UnknownOriginError
from parabit.index.corpus_files import Files, replace_files
from parabit.index.documents import batches_of
from parabit.index.store import Store
from parabit.index.sync import Synced
from parabit.index.word_index import WordIndex
from parabit.progress import Progress

PLACES = [
    folder + name
    for folder in ("", "a/", "a/b/", "c/")
    for name in ("one.txt", "two.txt", "three.md")
]
RECORDS = ["r.jsonl", "a/s.jsonl"]
some_place, some_text = st.sampled_from(PLACES), st.sampled_from([*TEXTS[:12], UNKNOWN, ""])
some_id = st.sampled_from([f"id{number}" for number in range(8)])
a_while = 1_700_000_000_123_456_789  # nanoseconds: files look old, so that nothing is read twice to be sure


def build(folder: Path, index: Path | None = None, **options: Any) -> Index:
    return Index.build(open_corpus(folder), index, model=binary(), **options)


def content(index: Index) -> dict[Any, tuple[bytes, dict[str, Any]]]:
    view = index._store.snapshot()
    rows = view.sample(10**6)
    codes = [code.tobytes() for code in view.codes(rows)]
    return dict(zip(view.ids_of(rows), zip(codes, view.fields_of(rows), strict=True), strict=True))


def put(root: Path, files: dict[str, str], moment: int = 0) -> None:
    for place, text in files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text)
        os.utime(root / place, ns=(a_while, a_while + moment))


@contextmanager
def files_read() -> Iterator[list[str]]:
    """The files that are opened meanwhile."""
    names, opened = list[str](), Source._open_raw

    def noted(source: Source) -> BinaryIO:
        names.append(source.id)
        return opened(source)

    with mock.patch.object(Source, "_open_raw", noted):
        yield names


def counts(done: Synced) -> tuple[int, ...]:
    return len(done.added), len(done.replaced), len(done.renamed), len(done.deleted), done.unchanged


class SyncMachine(RuleBasedStateMachine):
    """Random things happen to files; now and then the index is synced, and is what it would be if it were new."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(mkdtemp())
        self.root = self.home / "files"
        self.moment = 0
        self.records: dict[
            str, tuple[str, dict[str, Any]]
        ] = {}  # by id, with the file that each is in
        put(self.root, {"zero.txt": TEXTS[20]})
        self.index = build(self.root, words=False)

    def teardown(self) -> None:
        self.index.close()
        shutil.rmtree(self.home)

    def write(self, place: str, text: str) -> None:
        self.moment += 1
        put(self.root, {place: text}, self.moment)

    @property
    def there(self) -> list[str]:
        return [place for place in PLACES if (self.root / place).exists()]

    @rule(place=some_place, text=some_text)
    def create_or_edit(self, place: str, text: str) -> None:
        self.write(place, text)

    @precondition(lambda self: self.there)
    @rule(data=st.data(), to=st.sampled_from([None, "touched", *PLACES]))
    def delete_touch_or_move(self, data: st.DataObject, to: str | None) -> None:
        place = self.root / data.draw(st.sampled_from(self.there))
        if to is None:
            place.unlink()
        elif to == "touched":
            self.write(str(place.relative_to(self.root)), place.read_text())
        else:
            (self.root / to).parent.mkdir(parents=True, exist_ok=True)
            place.rename(self.root / to)

    @rule(
        file=st.sampled_from([None, *RECORDS]),
        identity=some_id,
        text=some_text,
        year=st.integers(1990, 1992),
    )
    def write_move_or_delete_record(
        self, file: str | None, identity: str, text: str, year: int
    ) -> None:
        self.records.pop(identity, None)
        if file is not None:
            self.records[identity] = file, {"id": identity, "text": text, "year": year}
        for name in RECORDS:
            self.write(
                name,
                "".join(
                    f"{json.dumps(record)}\n" for of, record in self.records.values() if of == name
                ),
            )

    @rule()
    def compact(self) -> None:
        self.index.compact()

    @rule()
    def sync(self) -> None:
        planned = self.index.sync(dry_run=True)
        done = self.index.sync()
        assert {*done.added} <= {*planned.added}  # but for those with nothing to be found by
        assert (done.replaced, done.renamed, done.deleted) == (
            planned.replaced,
            planned.renamed,
            planned.deleted,
        )
        with build(self.root, words=False) as fresh:
            assert content(self.index) == content(fresh)
        with files_read() as names:
            again = self.index.sync()
        assert again.changed == 0
        assert names == []


TestSync = SyncMachine.TestCase
TestSync.settings = settings(max_examples=25, stateful_step_count=30)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "a/one.txt": TEXTS[0],
        "two.txt": TEXTS[1],
        "b.jsonl": json.dumps({"id": "r", "text": TEXTS[2]}),
    }
    put(tmp_path / "files", files)
    return tmp_path / "files"


def test_only_what_changed_is_read_and_encoded(root: Path, tmp_path: Path) -> None:
    with build(root, tmp_path / "x.index") as index:
        with files_read() as names:
            assert counts(index.sync()) == (0, 0, 0, 0, 3)
        assert names == []
        put(
            root,
            {
                "b.jsonl": json.dumps({"id": "r", "text": TEXTS[2], "year": 1993}),
                "new.txt": TEXTS[3],
            },
            1,
        )
        (root / "a/one.txt").rename(root / "renamed.txt")
        with (
            files_read() as names,
            mock.patch("parabit.index.writing.batches_of", wraps=batches_of) as encode,
        ):
            done = index.sync()
            encoded = [document.id for document in encode.call_args.args[1]]
        assert counts(done) == (1, 1, 1, 0, 1)
        assert done.renamed == [("a/one.txt", "renamed.txt")]
        assert {*names} == {"b.jsonl", "new.txt", "renamed.txt"}
        assert {*encoded} == {"r", "new.txt", "renamed.txt"}
        assert index.search([TEXTS[0]], k=1).ids == [["renamed.txt"]]
        with build(root) as fresh:
            assert content(index) == content(fresh)
    with Index.open(tmp_path / "x.index", write=True) as index:
        assert counts(index.sync()) == (0, 0, 0, 0, 4)


def test_what_came_from_elsewhere_or_was_deleted_by_hand_stays_so(root: Path) -> None:
    with build(root) as index:
        index.add([Document("from elsewhere", TEXTS[5])])
        index.delete(["two.txt"])
        put(root, {"a/one.txt": TEXTS[6]}, 1)
        assert counts(index.sync()) == (0, 1, 0, 0, 2)
        assert {*content(index)} == {"a/one.txt", "r", "from elsewhere"}
        put(root, {"two.txt": TEXTS[7]}, 1)
        index.sync()
        assert "two.txt" in content(index)


def test_a_table_of_files_that_is_damaged_or_missing_is_an_error(root: Path) -> None:
    with build(root) as index:
        [table] = index.folder.glob("files-*")
        content = table.read_bytes()
        for changed in (b"damaged", content[:-1], content[:50] + b"?" + content[51:], None):
            table.write_bytes(changed or b"")
            if changed is None:
                table.unlink()
            for ask in (index.sync, index.verify):
                with pytest.raises(IndexFolderError, match=f"{table} is (damaged|missing)"):
                    ask()
        table.write_bytes(content)
        index.verify()
        put(root, {"two.txt": TEXTS[6]}, 1)
        assert counts(index.sync()) == (0, 1, 0, 0, 2)
        index.verify()


def test_an_index_that_is_saved_or_among_its_files_knows_them(root: Path, tmp_path: Path) -> None:
    with build(root, root / "x.index") as index:
        index.save(tmp_path / "saved.index")
    for name in ("files/x.index", "saved.index"):
        with Index.open(tmp_path / name, write=True) as index, files_read() as names:
            assert index.sync().deleted == []
        assert names == []


def test_an_index_that_was_moved_or_copied_reads_no_files_until_they_are_named(
    root: Path, tmp_path: Path
) -> None:
    build(root, root / "x.index").close()
    root.rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "copied")
    for name in ("moved", "copied"):
        (tmp_path / name / "two.txt").unlink()
        with Index.open(tmp_path / name / "x.index", write=True) as index, files_read() as names:
            with pytest.raises(UnknownOriginError, match="was moved or copied") as refused:
                index.sync()
            # They seem to have been moved with the index.
            assert refused.value.paths == [str(tmp_path / name)]
            assert len(index) == 3
            assert index.sync(refused.value.paths).deleted == ["two.txt"]
            put(tmp_path / name, {"two.txt": TEXTS[7]}, 1)
            assert index.sync().added == ["two.txt"]  # it is at home there now
            assert {*names} == {"two.txt"}  # the others are known


def test_a_file_that_cannot_be_read_keeps_its_documents(root: Path) -> None:
    with build(root) as index:
        before = content(index)
        put(root, {"b.jsonl": "\0\1\2", "new.txt": "\0\1\2"}, 1)
        (root / "two.txt").unlink()
        (root / "two.txt").symlink_to(root / "nowhere")
        listed = os.scandir
        refused = mock.patch(
            "os.scandir",
            lambda path: listed(path / "nothing" if str(path).endswith("/a") else path),
        )
        with refused:
            done = index.sync()
        assert dict(done.kept) == {
            "a/one.txt": "not there any more", "two.txt": "broken link", "b.jsonl": "binary file",
        }  # fmt: skip
        assert content(index) == before
        put(root, {"b.jsonl": ""}, 2)
        (root / "two.txt").unlink()
        with files_read() as names:
            assert counts(index.sync()) == (0, 0, 0, 2, 1)
        assert "new.txt" not in names  # it has no documents to keep


def test_a_missing_or_empty_corpus_deletes_nothing_unless_asked_to(root: Path) -> None:
    with build(root) as index:
        moved = root.rename(root.parent / "moved")
        for problem in ("no such file or folder", "no files in"):
            with pytest.raises(
                ParabitError, match=f"{problem}.*nothing was changed.*--allow-empty"
            ):
                index.sync()
            root.mkdir(exist_ok=True)
        put(root, {"picture.png": "\0"})
        with pytest.raises(ParabitError, match="no document is left in .*--allow-empty"):
            index.sync()
        assert len(index) == 3
        with files_read() as names:
            assert counts(index.sync(moved)) == (0, 0, 0, 0, 3)
        assert names == []  # it has the same files
        (moved / "two.txt").unlink()
        put(root, {"three.txt": TEXTS[3]})
        done = index.sync([moved, root])
        assert (done.added, done.deleted) == (["three.txt"], ["two.txt"])
        shutil.rmtree(root)
        with pytest.raises(ParabitError, match="no such file"):
            index.sync()
        assert index.sync(allow_empty=True).deleted == ["three.txt"]  # the other folder is there
        shutil.rmtree(moved)
        assert len(index.sync(allow_empty=True).deleted) == 2


def test_an_index_that_knows_no_files_learns_of_them(root: Path, tmp_path: Path) -> None:
    with Index.build(
        [Document("mine", TEXTS[5]), Document("two.txt", "old")], tmp_path / "x", model=binary()
    ) as index:
        with pytest.raises(ParabitError, match="does not know its corpus.*standard input"):
            index.sync()
        with pytest.raises(ParabitError, match="synced with files and folders"):
            index.sync(as_corpus(TEXTS[:2]))
        assert counts(index.sync(root)) == (2, 1, 0, 0, 0)
        (root / "two.txt").unlink()
        assert index.sync().deleted == ["two.txt"]
        assert {*content(index)} == {"mine", "a/one.txt", "r"}


@pytest.mark.parametrize(("file", "records"), [("b.jsonl", "rr"), ("c.jsonl", "r")])
def test_two_documents_with_one_id_are_refused(root: Path, file: str, records: str) -> None:
    with build(root) as index:
        before = content(index)
        put(
            root,
            {file: "".join(json.dumps({"id": name, "text": TEXTS[3]}) + "\n" for name in records)},
            1,
        )
        with pytest.raises(
            ParabitError, match=f"two documents have the id 'r': in b.jsonl and in {file}"
        ):
            index.sync()
        assert content(index) == before


def test_added_paths_below_the_root_have_the_ids_they_have_there(root: Path) -> None:
    with build(root) as index:
        put(root, {"a/new.txt": TEXTS[3]})
        with pytest.raises(ParabitError, match="'a/one.txt' is in the index already"):
            index.add(open_corpus(root / "a"))
        assert index.add(open_corpus(root / "a/new.txt")) == 1
        assert "a/new.txt" in content(index)
        with files_read() as names:
            assert index.sync().changed == 0
        assert names == []
        put(root, {"b.jsonl": json.dumps({"id": "other", "text": TEXTS[4]})}, 1)
        assert index.put(open_corpus(root / "b.jsonl")).added == 1
        assert counts(index.sync()) == (0, 0, 0, 1, 4)  # the record that the file has no more


class Killed(BaseException):
    pass


def test_an_index_is_there_with_its_words_and_its_files_or_not_at_all(
    root: Path, tmp_path: Path
) -> None:
    def killed_at(stage: str) -> Callable[[Progress], None]:
        def report(progress: Progress) -> None:
            if progress.stage == stage:
                raise Killed

        return report

    folder = tmp_path / "x.index"
    for stage in ("encoding", "indexing words"):
        with pytest.raises(Killed):
            build(root, folder, report=killed_at(stage))
        assert not folder.exists()
    build(root, folder).close()
    (root / "two.txt").rename(root / "renamed.txt")
    (root / "a/one.txt").unlink()
    put(root, {"new.txt": TEXTS[9]})
    for stage in ("encoding", "indexing words"):
        with pytest.raises(Killed):
            build(root, folder, overwrite=True, report=killed_at(stage))
        with Index.open(folder) as index:
            index.verify()
            assert {*content(index)} == {"two.txt", "a/one.txt", "r"}
    with Index.open(folder, write=True) as index:  # it knows which files it has
        assert counts(index.sync()) == (1, 0, 1, 1, 1)
        assert index.sync().changed == 0
        assert {*content(index)} == {"renamed.txt", "new.txt", "r"}


@pytest.mark.parametrize("moment", range(5))
def test_killed_at_any_step_the_next_sync_repairs_it(
    root: Path, tmp_path: Path, moment: int
) -> None:
    steps = iter(range(100))

    def stopping(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            if next(steps) == moment:
                raise Killed
            return function(*arguments, **options)

        return run

    (root / "two.txt").unlink()
    index = build(root, tmp_path / "x.index", words=False)
    put(root, {"new.txt": TEXTS[3], "b.jsonl": json.dumps({"id": "r2", "text": TEXTS[5]})})
    (root / "a/one.txt").rename(root / "renamed.txt")
    with (
        mock.patch("parabit.index.sync.replace_files", stopping(replace_files)),
        mock.patch.object(WordIndex, "put", stopping(WordIndex.put)),  # deletions too
        suppress(Killed)
        if moment == 4
        else pytest.raises(Killed) as killed,  # there are four steps
    ):
        index.sync()
    if killed is not None:
        number = [0, 0, 3, 3][moment]
        assert getattr(killed.value, "__notes__", []) == (
            [f"{number} documents are in the index and stay; the same command goes on"]
            if number
            else []
        )
        left = index.sync(dry_run=True)
        assert not index.has(left.added).any()
        assert index.has(left.replaced).all()
    index.close()
    (root / "new.txt").unlink()  # what was half written may be gone by the time
    with Index.open(tmp_path / "x.index", write=True) as index, build(root, words=False) as fresh:
        index.sync()
        assert content(index) == content(fresh)
        assert index.sync().changed == 0


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_sync(root: Path) -> None:
    with build(root) as index:
        put(root, {"new.txt": TEXTS[3]})

        def meddling(store: Store, files: Files, **changes: Any) -> None:
            replace_files(store, files, **changes)
            put(root, {"new.txt": TEXTS[4]}, 1)

        with mock.patch("parabit.index.sync.replace_files", meddling):
            done = index.sync()
        assert [reason for _, reason in done.kept] == ["changed while it was read: sync again"]
        index.sync()
        with build(root) as fresh:
            assert content(index) == content(fresh)


def test_it_says_when_the_model_should_be_learned_again(tmp_path: Path) -> None:
    root = tmp_path / "files"
    put(root, {f"{place}.txt": text for place, text in enumerate(TEXTS[:40])})
    with build(root, words=False) as index:
        put(root, {"more.txt": TEXTS[50]})
        assert index.sync().retrain == ""
        put(root, {f"new{place}.txt": f"{UNKNOWN} {TEXTS[place][:20]}" for place in range(40)})
        assert "does not know" in index.sync().retrain
        put(root, {f"more{place}.txt": text for place, text in enumerate([*TEXTS, *TEXTS])})
        assert "learned from 300 documents" in index.sync().retrain


def test_retraining_changes_codes_in_one_step_and_nothing_else(root: Path, tmp_path: Path) -> None:
    put(root, {f"more{place}.txt": text for place, text in enumerate([*TEXTS[:60], UNKNOWN])})
    with (
        build(root, tmp_path / "x.index", vectors=True) as index,
        Index.open(tmp_path / "x.index") as reader,
        Index.open(tmp_path / "x.index") as late,
    ):
        before, old = content(index), reader.model.fingerprint
        index.delete(["more7.txt"])
        with pytest.raises(Killed), mock.patch("parabit.index.retrain.halves", side_effect=Killed):
            index.retrain()
        assert {*content(index)} == {*before} - {"more7.txt"}
        assert len({path.name for path in index.folder.glob("model-*")}) == 1
        index.retrain(bits=32, sample=50, seed=3)
        assert content(reader) == before  # what it has open
        assert reader.search([TEXTS[3]], k=1).ids == [["more3.txt"]]
        assert late.like(
            "more3.txt", k=1
        ).known.all()  # it had not loaded the old model, and takes the new one
        assert (late.bits, late.search([TEXTS[3]], k=1).ids) == (32, [["more3.txt"]])
        reader.refresh()
        assert reader.model.fingerprint == index.model.fingerprint != old
        parameters = index.model.config["parameters"]
        assert (index.bits, parameters["sample"], parameters["random_state"]) == (32, 50, 3)
        for one in (index, reader):
            assert one.search([TEXTS[3], UNKNOWN], k=1).ids == [["more3.txt"], ["more60.txt"]]
            assert one.search([TEXTS[3]], k=1, rank="cosine").ids == [["more3.txt"]]
            one.verify()
        stored = index.stored(["more3.txt"])[0]
        assert stored.code.tolist() == index.search(stored.text).codes[0].tolist()
        assert index.sync().changed == 0
    with Index.open(tmp_path / "x.index", write=True) as index:
        assert index.bits == 32
        index.add([Document("later", TEXTS[70])])

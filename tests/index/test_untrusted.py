"""An index that somebody else has made: it cannot reach a file outside its folder, and nothing in it is believed."""

import gzip
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_models import TEXTS, binary

from parabit import Document, Index, ParabitError, open_corpus
from parabit.corpus import ReadOptions
from parabit.errors import IndexFolderError, UnknownOriginError
from parabit.index.store import manifest as manifests

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of the user's, beside the index."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "diary.txt").write_text("Nobody else may read this.")
    return folder


@pytest.fixture
def index(tmp_path: Path, victim: Path) -> Path:
    """An index of files that is at home, with a log."""
    (tmp_path / "notes" / "space").mkdir(parents=True)
    for number, text in enumerate(TEXTS[:12]):
        folder = tmp_path / "notes" / ("space" if number > 8 else "")
        (folder / f"{number}.txt").write_text(text)
    folder = tmp_path / "foreign.index"
    with Index.build(open_corpus(tmp_path / "notes"), folder, model=binary()) as built:
        built.add([Document("added", TEXTS[20])])
    return folder


def change_manifest(folder: Path, change: Change) -> None:
    """Change a manifest as an attacker does, with a digest that fits."""
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    del content["digest"]
    change(content)
    path.write_text(json.dumps({**content, "digest": manifests._digest(content)}))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def use(folder: Path) -> None:
    """Everything that people do with an index that they were given."""
    with Index.open(folder) as opened:
        opened.search(TEXTS[3])
        opened.search("nothing like this")
        opened.info()
        opened.verify()
    with Index.open(folder, write=True) as opened:
        opened.add([Document("mine", TEXTS[30])])
        opened.delete(["mine"])
        opened.compact()


COUNT = 12  # documents in the generation

NAMES = ["../victim", "/etc", "..", ".", "", "victim/diary.txt", "a\0b", "words-../../x", None, 7]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["words.folder", "files.name", "model", "generation"])
def test_no_name_in_a_manifest_leads_outside(
    index: Path, victim: Path, place: str, name: Any
) -> None:
    def change(content: dict[str, Any]) -> None:
        *parents, key = place.split(".")
        for parent in parents:
            content = content[parent]
        content[key] = name

    before = contents(victim)
    change_manifest(index, change)
    with pytest.raises(ParabitError, match="it must be|no model in|is missing|kept both"):
        use(index)
    assert contents(victim) == before


@pytest.mark.skipif(os.name == "nt", reason="links are for administrators there")
@pytest.mark.parametrize(
    "name", ["lock", "log-*", "generation-*", "model-*", "files-*", "manifest.json"]
)
def test_links_are_not_followed(index: Path, victim: Path, name: str) -> None:
    [path] = index.glob(name)
    copied = victim / "copied"
    shutil.move(path, copied)
    path.symlink_to(copied)
    before = contents(victim)
    with pytest.raises(ParabitError, match="link"):
        use(index)
    assert contents(victim) == before


@pytest.mark.skipif(os.name == "nt", reason="links are for administrators there")
def test_words_behind_a_link_are_built_again_in_the_index(index: Path, victim: Path) -> None:
    [words] = index.glob("words-*")
    shutil.move(words, victim / "words")
    words.symlink_to(victim / "words")
    before = contents(victim)
    use(index)
    assert contents(victim) == before
    with Index.open(index) as opened:
        assert opened.search(TEXTS[3], rank="words").ids[0][0] == "3.txt"


@pytest.mark.skipif(os.name == "nt", reason="links are for administrators there")
def test_a_link_in_a_folder_of_an_index_is_not_followed(index: Path, victim: Path) -> None:
    for folder in ("generation-*", "words-*"):
        [inner] = index.glob(folder)
        (inner / "more").symlink_to(victim / "diary.txt")
    [codes] = index.glob("generation-*/codes.npy")
    shutil.move(codes, victim / "codes.npy")
    codes.symlink_to(victim / "codes.npy")
    before = contents(victim)
    with pytest.raises(IndexFolderError, match="codes.npy is a link"):
        use(index)
    assert contents(victim) == before


def test_what_a_foreign_index_says_about_its_files_is_not_followed(
    index: Path, victim: Path, tmp_path: Path
) -> None:
    def name_the_victim(content: dict[str, Any]) -> None:
        content["corpus"]["paths"] = [str(victim)]
        content["home"]["path"] = str(tmp_path / "unpacked")  # which the attacker has guessed

    change_manifest(index, name_the_victim)
    shutil.copytree(index, tmp_path / "unpacked")
    with Index.open(tmp_path / "unpacked", write=True) as opened:
        with pytest.raises(UnknownOriginError, match="nothing was read"):
            opened.sync()
        # To name a file below that folder does not make it one of the corpus.
        opened.add(open_corpus(victim / "diary.txt"))
        assert opened.has(["diary.txt"]).all()
    with pytest.raises(UnknownOriginError), Index.open(tmp_path / "unpacked") as opened:
        opened.sync(dry_run=True)


def test_nothing_is_removed_that_this_library_has_not_made(index: Path) -> None:
    mine = {
        "generation-7/thesis.txt": "all my work",
        "model-mine/config.json": "{}",
        "model-8/notes/a.txt": "more work",
        "words-12345678/poem.txt": "roses",
        "log-archive": "an old log",
        ".model-3.backup": "a backup",
    }
    for name, text in mine.items():
        (index / name).parent.mkdir(parents=True, exist_ok=True)
        (index / name).write_text(text)
    with Index.open(index, write=True) as opened:
        opened.add([Document("more", TEXTS[31])])
        opened.compact()
        opened.retrain(bits=8)
    assert {name: (index / name).read_text() for name in mine} == mine
    with pytest.raises(ParabitError, match="exists and is something else"):
        Index.build(["a text"] * 20, index, model=binary(), overwrite=True)


def rewrite_array(folder: Path, name: str, array: np.ndarray) -> None:
    """Replace an array as an attacker does, with a checksum and a shape that fit."""
    [path] = folder.glob(f"generation-*/{name}.npy")
    np.save(path, array)

    def change(content: dict[str, Any]) -> None:
        checksum = zlib.crc32(np.ascontiguousarray(array).data)
        content["arrays"][name] = [array.dtype.str, list(array.shape), checksum]

    change_manifest(folder, change)


def test_arrays_have_the_shapes_that_the_numbers_of_documents_and_bits_ask_for(index: Path) -> None:
    arrays: dict[str, np.ndarray] = {
        "codes": np.zeros((COUNT, 1 << 16), np.uint8),  # which a search would read far beyond
        "serials": np.zeros(COUNT + 1, np.uint64),
        "ids.offsets": np.zeros(COUNT, np.int64),
        "ids.rows": np.zeros(COUNT, np.float64),
        "fields.values": np.zeros(5000, np.float64),
        "derived.hashing.bits": np.zeros((1 << 10, 64), np.int32),
        "another": np.zeros(3, np.uint8),
    }
    for name, array in arrays.items():
        copy = index.with_name(f"{name}.index")
        shutil.copytree(index, copy)
        if not list(copy.glob(f"generation-*/{name}.npy")):
            [generation] = copy.glob("generation-*")
            np.save(generation / f"{name}.npy", array)
        rewrite_array(copy, name, array)
        with pytest.raises(IndexFolderError, match="does not fit|two lengths"):
            use(copy)


@pytest.mark.parametrize("name", ["ids.offsets", "records.offsets", "ids.rows", "fields.rows"])
def test_numbers_that_lead_out_of_an_array_are_errors(index: Path, name: str) -> None:
    [path] = index.glob(f"generation-*/{name}.npy")
    numbers = np.load(path)
    for wrong in (numbers + 10**12, numbers - 10**12, numbers[::-1] * 10**9 + 5):
        rewrite_array(index, name, np.ascontiguousarray(wrong))

        def ask_for_all() -> None:
            with Index.open(index) as opened:
                opened.search(TEXTS[3], where={"labels": "space"})
                opened.stored([f"{number}.txt" for number in range(9)])

        with pytest.raises(IndexFolderError, match="is damaged"):
            ask_for_all()


def test_an_id_that_is_none_is_an_error(index: Path) -> None:
    [path] = index.glob("generation-*/ids.npy")
    letters = np.load(path)
    for wrong in (b"i", b"x", b"\xff", b"\0"):
        rewrite_array(index, "ids", np.full(len(letters), wrong[0], np.uint8))
        with (
            Index.open(index) as opened,
            pytest.raises(IndexFolderError, match="the id of a document is damaged"),
        ):
            opened.search(TEXTS[3]).ids  # noqa: B018


def test_a_file_that_is_cut_off_while_it_is_open_is_an_error(index: Path) -> None:
    with Index.open(index) as opened:
        opened.search(TEXTS[3])
        [path] = index.glob("generation-*/records.npy")
        os.truncate(path, 100)
        for ask in (lambda: opened.search(TEXTS[3]), lambda: opened.stored(["3.txt"])):
            with pytest.raises(IndexFolderError, match="was cut off while it was open"):
                ask()


def test_the_words_of_another_index_are_not_taken_for_its_own(tmp_path: Path) -> None:
    for name, word in (("one", "zebra"), ("other", "okapi")):
        texts = [Document(str(number), f"{word} {text}") for number, text in enumerate(TEXTS[:9])]
        Index.build(texts, tmp_path / name, model=binary()).close()
    [words] = (tmp_path / "one").glob("words-*")
    [others] = (tmp_path / "other").glob("words-*")
    shutil.rmtree(words)
    shutil.copytree(others, words)
    with Index.open(tmp_path / "one") as opened:
        opened.verify()
        assert len(opened.search("zebra", rank="words").ids[0]) == 9
        assert opened.search("okapi", rank="words").ids == [[]]


def test_what_could_not_be_read_again_is_not_written(index: Path, tmp_path: Path) -> None:
    before = (index / "manifest.json").read_bytes()
    with Index.open(index, write=True) as opened, pytest.raises(IndexFolderError, match="bits is"):
        opened._store.change_manifest(bits=1 << 20)
    assert (index / "manifest.json").read_bytes() == before
    with pytest.raises(IndexFolderError, match="bits is 65,?544"):
        Index.of_codes(np.zeros((1, 8193), np.uint8), 65544, tmp_path / "wide.index")
    assert not (tmp_path / "wide.index").exists()


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_folders_whose_names_are_no_text_are_synced(index: Path, tmp_path: Path) -> None:
    folder = Path(os.fsdecode(bytes(tmp_path) + b"/odd\xff"))
    folder.mkdir()
    (folder / "a.txt").write_text(TEXTS[40])
    with Index.open(index, write=True) as opened:
        assert opened.sync(folder).added == ["a.txt"]
    with Index.open(index, write=True) as opened:
        assert opened.has(["a.txt"]).all()
        assert opened.sync().unchanged == 1
        assert opened.info()["corpus"] == [str(folder)]
    options = ReadOptions(exclude=("x\udcff*",))
    with Index.build(open_corpus(folder, options), tmp_path / "b.index", model=binary()) as built:
        assert built.sync().changed == 0


def test_high_numbers_of_a_users_folders_do_not_matter(index: Path) -> None:
    (index / "generation-999999999999").mkdir()
    (index / "generation-999999999999" / "thesis.txt").write_text("all my work")
    for _ in range(2):
        with Index.open(index, write=True) as opened:
            opened.compact()
    with Index.open(index) as opened:
        opened.verify()
    assert (index / "generation-999999999999" / "thesis.txt").exists()


def test_a_table_of_files_that_becomes_huge_is_damage(index: Path) -> None:
    [path] = index.glob("files-*")
    table = gzip.compress(b'{"' + b"a" * 300_000_000 + b'": ["", {}]}', compresslevel=1)
    path.write_bytes(table)

    def change(content: dict[str, Any]) -> None:
        content["files"]["checksum"] = hashlib.sha256(table).hexdigest()

    change_manifest(index, change)
    with Index.open(index) as opened, pytest.raises(IndexFolderError, match="than the documents"):
        opened.verify()


def test_records_that_overlap_are_damage(index: Path) -> None:
    [path] = index.glob("generation-*/records.offsets.npy")
    offsets = np.load(path)
    overlapping = np.where(np.arange(len(offsets)) % 2, offsets[-1], 0)
    rewrite_array(index, "records.offsets", overlapping)
    with pytest.raises(IndexFolderError, match="records.offsets.npy is damaged"):
        Index.open(index)


@pytest.mark.skipif(not hasattr(os, "truncate"), reason="no sparse files")
def test_a_log_that_is_a_huge_hole_is_not_read(index: Path) -> None:
    [log] = index.glob("log-*")
    os.truncate(log, 1 << 40)
    with Index.open(index) as opened:
        assert opened.has(["added"]).all()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(NAMES),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children),
    max_leaves=4,
)


@settings(max_examples=150)
@given(data=st.data())
def test_a_manifest_with_any_value_changed_opens_or_is_an_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "mutated.index"
    if not folder.exists():
        Index.build(TEXTS[:9], folder, model=binary()).close()
        shutil.copy(folder / "manifest.json", folder.with_suffix(".json"))
    shutil.copy(folder.with_suffix(".json"), folder / "manifest.json")

    def change(content: dict[str, Any]) -> None:
        inner: Any = content
        while True:
            key = data.draw(st.sampled_from(sorted(inner)))
            if not isinstance(inner[key], dict) or not inner[key] or data.draw(st.booleans()):
                break
            inner = inner[key]
        if data.draw(st.booleans()):
            inner[key] = data.draw(json_values)
        else:
            del inner[key]

    change_manifest(folder, change)
    try:
        with Index.open(folder) as opened:
            opened.search(TEXTS[2])
            opened.verify()
    except ParabitError as problem:
        assert problem.hint  # noqa: PT017

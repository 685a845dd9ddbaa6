"""What nobody may lose on a Milvus server: what is others', and an index when an interrupt or a slip comes upon it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from index_models import binary, documents
from milvus_fixtures import CODES, LONG

from milvus_server import Running
from parabit import Index
from parabit.errors import IndexFolderError
from parabit.index import Milvus, labels, pairing
from parabit.index.labels import labels_of
from parabit.index.milvus import home as home_module
from parabit.index.milvus import making
from parabit.index.milvus.server import Server
from parabit.index.milvus.view import Fetched

pytest_plugins = ("milvus_fixtures",)
pytestmark = [pytest.mark.scale]


def stop(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def somebodys(asked: Server, name: str) -> None:
    """Make a collection that is not of an index, with a document in it."""
    schema = asked.schema("holiday pictures")
    schema.add_field("id", asked.types.VARCHAR, is_primary=True, max_length=99)
    schema.add_field("text", asked.types.VARCHAR, max_length=65_535)
    schema.add_field("code", asked.types.BINARY_VECTOR, dim=8)
    indexes = asked.index_params()
    indexes.add_index("code", index_type="BIN_FLAT", metric_type="HAMMING")
    asked.ask("create_collection", name, schema=schema, index_params=indexes)
    asked.ask("upsert", name, [{"id": "beach", "text": "sand", "code": b"\0"}])


def is_untouched(asked: Server, name: str) -> bool:
    rows = asked.ask("query", name, filter='id != ""', output_fields=["id"], consistency_level="Strong")
    return [row["id"] for row in rows] == ["beach"]


def test_a_collection_of_somebody_else_is_neither_written_nor_dropped(
    server: Running, asked: Server, tmp_path: Path
) -> None:
    place = Milvus(server.uri, collection="shared")
    somebodys(asked, "shared_more")
    with pytest.raises(IndexFolderError, match="has a collection 'shared_more' already; give another name"):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=place)
    assert not asked.ask("has_collection", "shared")
    asked.ask("drop_collection", "shared_more")
    with Index.of_codes(CODES, 8, tmp_path / "m", milvus=place) as index:
        somebodys(asked, "shared_more")  # later than the index, which had no need of it yet
        with pytest.raises(IndexFolderError, match="a collection 'shared_more' that is not of this index; what is too"):
            index.add_codes(CODES[:1], ["long"], LONG)
        index.add_codes(CODES[:1], ["short"])
        index.delete([0])
        index.compact()
        assert len(index) == 6
    Index.of_codes(CODES, 8, tmp_path / "m", overwrite=True).close()
    assert not asked.ask("has_collection", "shared")
    assert is_untouched(asked, "shared_more")
    asked.ask("drop_collection", "shared_more")


def test_a_collection_that_has_taken_the_name_of_an_index_stays(server: Running, asked: Server, tmp_path: Path) -> None:
    Index.of_codes(CODES, 8, tmp_path / "m", milvus=Milvus(server.uri, collection="retaken")).close()
    asked.ask("drop_collection", "retaken")
    somebodys(asked, "retaken")
    Index.of_codes(CODES, 8, tmp_path / "m", overwrite=True).close()
    assert is_untouched(asked, "retaken")
    asked.ask("drop_collection", "retaken")


def test_an_index_and_what_is_too_long_for_it_go_together(server: Running, asked: Server, tmp_path: Path) -> None:
    place = Milvus(server.uri, collection="whole")
    with Index.of_codes(CODES[:1], 8, tmp_path / "m", fields=LONG, milvus=place) as index:
        assert index.stored([0])[0].text == LONG[0]["text"]
    assert asked.ask("has_collection", "whole_more")
    Index.of_codes(CODES, 8, tmp_path / "m", overwrite=True).close()
    assert not asked.ask("has_collection", "whole")
    assert not asked.ask("has_collection", "whole_more")


def test_what_cannot_be_made_is_not_left(
    server: Running, asked: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pymilvus = pytest.importorskip("pymilvus")
    place = Milvus(server.uri, collection="unmade")

    def made() -> list[str]:
        return sorted(name for name in asked.ask("list_collections") if name.startswith("unmade"))

    with monkeypatch.context() as patch:
        patch.setattr(pymilvus.MilvusClient, "load_collection", stop)
        with pytest.raises(KeyboardInterrupt):
            Index.of_codes(CODES, 8, tmp_path / "m", milvus=place)
    assert (made(), list(tmp_path.iterdir())) == ([], [])
    with Index.of_codes(CODES, 8, tmp_path / "m", milvus=place) as index:
        with monkeypatch.context() as patch:
            patch.setattr(pymilvus.MilvusClient, "load_collection", stop)
            with pytest.raises(KeyboardInterrupt):
                index.add_codes(CODES[:1], ["long"], LONG)
        assert made() == ["unmade"]
        index.add_codes(CODES[:1], ["long"], LONG)
        assert (made(), index.stored(["long"])[0].text) == (["unmade", "unmade_more"], LONG[0]["text"])


def _clearing_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "remove_leftovers", stop)


def _just_written(monkeypatch: pytest.MonkeyPatch) -> None:
    write = making.write_manifest
    monkeypatch.setattr(making, "write_manifest", lambda *given: (write(*given), stop()))


@pytest.mark.parametrize("interrupted", [_clearing_away, _just_written])
def test_an_interrupt_after_the_new_index_is_in_force_leaves_it(
    server: Running,
    asked: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    interrupted: Callable[[pytest.MonkeyPatch], None],
) -> None:
    folder = tmp_path / "m"
    Index.of_codes(CODES[:2], 8, folder).close()
    interrupted(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        Index.of_codes(CODES, 8, folder, milvus=Milvus(server.uri), overwrite=True)
    monkeypatch.undo()
    with Index.open(folder) as index:
        assert len(index) == 6
        assert index.search(CODES[:1], radius=0).ids == [[0]]


def test_a_copy_over_another_index_drops_its_collection_and_never_its_own(
    server: Running, asked: Server, tmp_path: Path
) -> None:
    for name, codes in (("saved", CODES), ("replaced", CODES[:2])):
        Index.of_codes(codes, 8, tmp_path / name, milvus=Milvus(server.uri, collection=name)).close()
    with Index.open(tmp_path / "saved") as index:
        index.save(tmp_path / "replaced", overwrite=True)
        assert not asked.ask("has_collection", "replaced")
        shutil.copytree(tmp_path / "saved", tmp_path / "copy")
        index.save(tmp_path / "copy", overwrite=True)
        assert len(index.search(CODES, radius=0).ids) == 6
        with Index.open(tmp_path / "replaced") as one, Index.open(tmp_path / "copy") as other:
            assert (len(one), len(other), one.info()["backends"]) == (6, 6, ["flat"])
    with Index.open(tmp_path / "saved") as index:
        assert len(index) == 6


def test_what_goes_through_all_documents_keeps_a_block_of_them(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    fetch = Fetched._fetch

    def noted(self: Fetched, *given: Any) -> Any:
        read = fetch(self, *given)
        kept.append(max(len(self._keys), len(self._rows), *map(len, read.values())))
        return read

    with Index.build(binary(), documents(0, 60), tmp_path / "m", milvus=Milvus(server.uri)) as index:
        expected = {pair for some in index.pairs(1) for pair in zip(some.first, some.second, strict=True)}
        monkeypatch.setattr(home_module, "_AT_ONCE", 7)
        monkeypatch.setattr(pairing, "_AT_ONCE", 7)
        monkeypatch.setattr(Fetched, "_fetch", noted)
        index.verify()
        index.save(tmp_path / "copy")
        assert 0 < max(kept) <= 7
        kept.clear()
        assert {pair for some in index.pairs(1) for pair in zip(some.first, some.second, strict=True)} == expected
        assert 0 < max(kept) <= 7
        with Index.open(tmp_path / "copy") as copy:
            assert [one.text for one in copy.stored(["d0", "d59"])] == [one.text for one in index.stored(["d0", "d59"])]
            assert len(copy) == 60


def test_labels_are_counted_of_what_is_there_and_not_of_what_was(server: Running, tmp_path: Path) -> None:
    fields = [{"labels": ["even" if row % 2 == 0 else "odd"]} for row in range(6)]
    with (
        Index.of_codes(CODES[:0], 8, tmp_path / "m", milvus=Milvus(server.uri)) as index,
        Index.open(tmp_path / "m") as reader,
    ):
        assert len(reader) == 0
        index.add_codes(CODES, [*range(6)], fields)
        assert reader.labels() == labels.Labels({"even": 3, "odd": 3}, complete=True)  # the count is still 0
        assert (reader.refresh(), len(reader)) == (True, 6)
        index.delete([0, 2, 4, 5])
        assert reader.labels() == labels.Labels({"odd": 2}, complete=True)
        assert labels_of(reader._home.view(), 9, looked_at=3).complete is False  # one in two, as far as it knows


def test_a_damaged_manifest_does_not_lead_in_a_circle(server: Running, asked: Server, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    place = Milvus(server.uri, collection="circle")
    Index.of_codes(CODES, 8, folder, milvus=place).close()
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "bits": 12}))
    for milvus in (None, Milvus(server.uri)):
        with pytest.raises(
            IndexFolderError, match="cannot be replaced: .*is damaged; restore it.* or remove the folder first, which"
        ):
            Index.of_codes(CODES, 8, folder, milvus=milvus, overwrite=True)
    assert asked.ask("has_collection", "circle")
    shutil.rmtree(folder)
    Index.of_codes(CODES, 8, folder, milvus=Milvus(server.uri), overwrite=True).close()
    with Index.open(folder) as index:
        assert len(index) == 6

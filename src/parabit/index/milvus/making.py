"""Making an index on a Milvus server: a collection that counts when it is whole, as its folder is written last."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from parabit.errors import CodesError, IndexFolderError
from parabit.index.milvus.collection import Collection
from parabit.index.milvus.entities import NUMBER, id_in, key_of
from parabit.index.milvus.home import MilvusHome
from parabit.index.milvus.manifest import Manifest, is_on_milvus, read_manifest, write_manifest
from parabit.index.milvus.place import MOST_BITS, Milvus
from parabit.index.milvus.server import Server
from parabit.index.store import Batch, Kind
from parabit.index.store.folder import is_index, model_folder, remove_leftovers
from parabit.index.store.ids import id_bytes, need_distinct
from parabit.index.store.lock import LOCK, WriterLock
from parabit.index.unique import SeenIds
from parabit.progress import Progress, Report
from parabit.storage import need_room_for_folder, whole_folder

SaveModel = Callable[[Path], None]


def create_on_milvus(
    folder: Path | str | None,
    place: Milvus,
    bits: int,
    batches: Iterable[Batch],
    fingerprint: str,
    meta: Mapping[str, Any],
    kinds: Mapping[str, Kind],
    save_model: SaveModel | None,
    overwrite: bool,
    report: Report,
) -> MilvusHome:
    """Make an index of documents on a server; its folder is there when all are in, and not before."""
    place.check()
    if folder is None:
        raise IndexFolderError("an index on Milvus needs a folder, for its model", hint="give one")
    if bits > MOST_BITS:
        raise CodesError(f"Milvus takes codes of {MOST_BITS:,} bits at most, found {bits:,}", hint="train with fewer")
    folder = Path(folder)
    need_room_for_folder(folder, is_index if overwrite else None)
    name = place.collection or _free_name(folder)
    manifest = Manifest(replace(place, collection=name), bits, fingerprint, dict(meta), dict(kinds))
    with ExitStack() as stack:
        lock = stack.enter_context(WriterLock(folder)) if overwrite and is_index(folder) else None
        stack.enter_context(dropping_old(folder, overwrite))
        server = Server(place.uri)
        stack.callback(server.close)
        collection = Collection.create(server, name, manifest.place, bits, kinds, manifest.about())
        try:
            home, seen, given = MilvusHome(folder, manifest, collection, write=True), SeenIds(), 0
            for batch in batches:
                suspects = seen.add([key_of(identity) for identity in batch.ids])
                again = map(id_in, collection.read(list(suspects), [NUMBER], "session"))
                need_distinct([id_bytes(identity) for identity in (*batch.ids, *again)])
                home.append_new(batch)
                given += len(batch.ids)
            if (there := collection.count(level="strong")) != given:
                raise IndexFolderError(
                    f"the Milvus server at {place.uri} was given {given:,} documents and has {there:,}",
                    hint="its log may say why",
                )
            report(Progress("indexing", 0, "documents", None))
            collection.settle()
            if lock is not None:
                if save_model and not model_folder(folder, fingerprint).exists():
                    save_model(model_folder(folder, fingerprint))
                write_manifest(folder, manifest)
            else:
                with whole_folder(folder, durable=True) as partial:
                    (partial / LOCK).touch()
                    if save_model:
                        save_model(model_folder(partial, fingerprint))
                    write_manifest(partial, manifest)
        except BaseException:
            if not _counts(folder, manifest):  # an interrupt may come when the folder has just been written
                with suppress(IndexFolderError):  # what went wrong before is what is told
                    collection.drop()
            raise
        if lock is not None:
            remove_leftovers(folder, -1, fingerprint)  # of an embedded index, all
    return MilvusHome.open(folder, write=True)


@contextmanager
def dropping_old(folder: Path | str, overwrite: bool, saved: Path | None = None) -> Iterator[None]:
    """Drop the collection of the index that was in a folder, once another is there; its server must be there first.

    `saved` is the folder of the index that takes its place, if that is copied: its own collection stays.
    """
    if not (overwrite and is_on_milvus(folder)):
        yield
        return
    old = _replaceable(Path(folder))
    is_copy = saved is not None and is_on_milvus(saved) and read_manifest(saved).collection == old.collection
    try:
        server = Server(old.place.uri)
    except IndexFolderError as problem:
        raise IndexFolderError(
            f"the index in {folder} cannot be replaced: {problem.problem}",
            hint=f"see to the server, or remove the folder first, which leaves the collection {old.collection!r} there",
        ) from problem
    try:
        yield
        collection = Collection(server, old.collection, old.place, old.bits)
        if not is_copy and collection.is_of(old.about()):  # and not somebody else's by now
            collection.drop()
    finally:
        server.close()


def _replaceable(folder: Path) -> Manifest:
    try:
        return read_manifest(folder)
    except IndexFolderError as problem:
        raise IndexFolderError(
            f"the index in {folder} cannot be replaced: {problem.problem}",
            hint="restore it from a copy, or remove the folder first, which leaves its collection on the server",
        ) from problem


def _counts(folder: Path, manifest: Manifest) -> bool:
    """Whether a folder says that an index is where the manifest has it."""
    try:
        return read_manifest(folder).place == manifest.place
    except IndexFolderError:
        return False


def _free_name(folder: Path) -> str:
    """A name for a collection that tells whose it is, and that no other has."""
    return f"parabit_{re.sub(r'[^A-Za-z0-9]+', '_', folder.name)[:80]}_{token_hex(4)}"

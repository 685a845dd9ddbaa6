"""The store: where an index keeps its documents, opened in milliseconds whatever their number."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from logging import getLogger
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from parabit.codes import check_codes
from parabit.errors import IndexFolderError
from parabit.index.search import Derive, derive_with
from parabit.index.store.arrays import packed, unpacked
from parabit.index.store.generation import Recode, remove_generation, write_generation
from parabit.index.store.lock import LOCK, WriterLock
from parabit.index.store.log import Log
from parabit.index.store.manifest import (
    Manifest,
    bytes_in,
    is_index,
    log_file,
    next_generation,
    read_manifest,
    remove,
    remove_leftovers,
    write_manifest,
)
from parabit.index.store.schema import TEXT, Batch, Id, Kind, Schema, need_distinct
from parabit.index.store.snapshot import DELETED, Snapshot
from parabit.progress import Report, silent
from parabit.storage import copy_folder, whole_folder

SaveModel = Callable[[Path], None]

# The log is merged when it has so many bytes or changes, or a quarter of the generation's: opening stays fast, and
# a document is copied a few times at most however large the index becomes.
_MERGED_BYTES, _MERGED_CHANGES, _MERGED_SHARE = 4 << 20, 20_000, 4

_logger = getLogger(__name__)


class Store:
    """Codes, ids, fields and extra arrays of documents in a folder; one process writes it, any number read it."""

    keeps_words = False  # the word index is beside it

    def __init__(self, folder: Path, snapshot: Snapshot, log: Log, lock: WriterLock | None) -> None:
        self.folder = folder
        self._snapshot: Snapshot | None = snapshot
        self._log = log
        self._lock = lock

    @staticmethod
    def create(
        folder: Path | str,
        bits: int,
        batches: Iterable[Batch],
        fingerprint: str = "",
        meta: Mapping[str, Any] | None = None,
        extra: Mapping[str, Kind] | None = None,
        save_model: SaveModel | None = None,
        overwrite: bool = False,
        report: Report = silent,
    ) -> None:
        """Make an index of documents; under its name it is complete or not there.

        Rows are in the order of the documents. `fingerprint` is that of the model, `meta` whatever the caller wants to
        find again, as JSON; `meta["backend"]` names the back end that is built beside the codes. `save_model` writes
        the model to the folder it is given. With `overwrite` an index of that name is replaced, in one step, and
        nothing but an index.
        """
        check_codes(np.zeros((1, -(-bits // 8) or 1), dtype=np.uint8), bits)
        manifest = Manifest(bits, fingerprint, dict(meta or {}), dict(extra or {}))
        Schema(bits, manifest.extra)  # what cannot be kept should be known before a folder is made
        _write(Path(folder), manifest, batches, save_model, overwrite, report)

    @classmethod
    def open(cls, folder: Path | str, write: bool = False) -> Self:
        """Open an index, in a time that does not depend on its size but on that of its log.

        Indexes below 64 MB are checked completely, the files of others for their size and header; `verify` checks all.
        """
        folder = Path(folder)
        if not write:
            return cls(folder, *_open(folder, write=False), None)
        read_manifest(folder)  # a folder that is not ours should not get a lock file
        lock = WriterLock(folder)
        try:
            snapshot, log = _open(folder, write=True)
            log.cut()
            remove_leftovers(folder, snapshot.manifest)
        except BaseException:
            lock.close()
            raise
        return cls(folder, snapshot, log, lock)

    def close(self) -> None:
        """Give the right to write back. Snapshots that were taken stay valid."""
        self._snapshot = None
        self._log.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def snapshot(self) -> Snapshot:
        """The documents as they are now."""
        if self._snapshot is None:
            raise IndexFolderError(f"{self.folder} was closed", hint="open it again")
        return self._snapshot

    @property
    def bits(self) -> int:
        """How many bits a code has."""
        return self.snapshot().bits

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model that made the codes."""
        return self.snapshot().manifest.fingerprint

    @property
    def model_folder(self) -> Path:
        """Where that model is, if it was kept."""
        return self.folder / (self.snapshot().manifest.model or "model")

    @property
    def meta(self) -> dict[str, Any]:
        """What the caller wanted to find again."""
        return self.snapshot().manifest.meta

    @property
    def extra(self) -> dict[str, Kind]:
        """The extra arrays, by name."""
        return self.snapshot().manifest.extra

    def put(self, batch: Batch | None, delete: Sequence[Id] = ()) -> int:
        """Add documents, in place of those that have their ids, and delete others; returns how many were replaced.

        It is one step: nobody sees half of it, and all of it is on the disk when this returns, or none is. Ids to
        delete that no document has are ignored. A log that has grown long is merged then.
        """
        self._need_writer()
        snapshot = self.snapshot()
        ids = [] if batch is None else list(batch.ids)
        need_distinct([*ids, *delete])
        arrays = {}
        if batch is not None:
            arrays = Schema(self.bits, self.extra).arrays_of(batch, snapshot.last_serial + 1)
        rows = snapshot.rows_of([*ids, *delete])
        deleted = rows[rows >= 0]
        if ids or len(deleted):
            record = {DELETED: deleted, **(arrays if ids else {})}
            self._log.append(packed(record))
            self._snapshot = snapshot.after([record])
            self._merge_long_log()
        return int((rows[: len(ids)] >= 0).sum())

    def change_meta(self, **changes: Any) -> None:
        """Change what the caller wants to find again."""
        self._need_writer()
        snapshot = self.snapshot()
        manifest = replace(snapshot.manifest, meta={**snapshot.manifest.meta, **changes})
        write_manifest(self.folder, manifest)
        snapshot.manifest = manifest

    def compact(self, report: Report = silent) -> None:
        """Write the documents as a new generation, in the order of their rows, with an empty log.

        Everything is verified on the way. Rows get new numbers; whoever has the old generation open keeps it until
        `refresh`.
        """
        snapshot = self.snapshot()
        self._write_again(snapshot.manifest, report)

    def recode(
        self,
        bits: int,
        fingerprint: str,
        extra: Mapping[str, Kind],
        recode: Recode,
        save_model: SaveModel,
        report: Report = silent,
    ) -> None:
        """Give the documents the codes and extra arrays of another model, in one step, as `compact` writes them.

        All else stays, serial numbers among it, so that a word index stays valid.
        """
        manifest = replace(self.snapshot().manifest, bits=bits, fingerprint=fingerprint, extra=dict(extra))
        self._write_again(manifest, report, recode, save_model)

    def _write_again(
        self, manifest: Manifest, report: Report, recode: Recode | None = None, save_model: SaveModel | None = None
    ) -> None:
        self._need_writer()
        snapshot, log = self.snapshot(), self._log
        old = snapshot.manifest
        new = replace(manifest, generation=old.generation + 1, last_serial=snapshot.last_serial)
        try:
            new = _with_model(self.folder, new, save_model)
            new = write_generation(self.folder, new, snapshot, _derive(new, report), recode)
            write_manifest(self.folder, new)
            self._snapshot, self._log = _open(self.folder, write=True)
        except BaseException:
            if read_manifest(self.folder).token == old.token:
                remove_generation(self.folder, new.generation)
                remove_leftovers(self.folder, old)
            else:  # the new one counts already, so nothing may go to the old log any more
                self.close()
            raise
        log.close()
        remove_leftovers(self.folder, new)

    def save(
        self, folder: Path | str, overwrite: bool = False, report: Report = silent, meta: dict[str, Any] | None = None
    ) -> None:
        """Write the documents to another folder, as `compact` writes them to this one."""
        snapshot = self.snapshot()
        meta = snapshot.manifest.meta if meta is None else meta
        manifest = replace(snapshot.manifest, meta=meta, last_serial=snapshot.last_serial, model="", generation=1)
        save = partial(copy_folder, self.model_folder) if self.model_folder.is_dir() else None
        _write(Path(folder), manifest, snapshot, save, overwrite, report)

    def refresh(self) -> bool:
        """See what another process has written since; returns whether there was anything. A writer knows it all."""
        snapshot = self.snapshot()
        if self._lock is not None:
            return False
        if read_manifest(self.folder).token == snapshot.manifest.token:
            records = self._log.read()
            if records:
                self._snapshot = snapshot.after([unpacked(record) for record in records])
            return bool(records)
        log = self._log
        self._snapshot, self._log = _open(self.folder, write=False)
        log.close()
        return True

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The right to write files beside the store; a reader has it if nobody writes."""
        if self._lock is not None:
            yield
            return
        with WriterLock(self.folder):
            self.refresh()
            yield

    def verify(self) -> None:
        """Read every byte and raise if one is not what was written; the log was checked when it was read."""
        self.snapshot().base.arrays.verify()

    def about(self) -> dict[str, Any]:
        """What the index is, what it keeps, and what is left to be merged; for JSON."""
        snapshot = self.snapshot()
        manifest, derived = snapshot.manifest, snapshot.base.derived
        return {
            "folder": str(self.folder),
            "documents": snapshot.documents,
            "bits": manifest.bits,
            "bytes_a_code": -(-manifest.bits // 8),
            "bytes_a_document": {
                name: np.dtype(kind.dtype).itemsize * (kind.width or 1) for name, kind in manifest.extra.items()
            },
            "bytes": bytes_in(self.folder),
            "model_bytes": bytes_in(self.model_folder),
            "backends": ["flat", *sorted({name.partition(".")[0] for name in derived})],
            "keeps": sorted([*manifest.extra, *([TEXT] if manifest.meta["text"] else [])]),
            "fields": [name for name in snapshot.field_names if name != TEXT],
            "fingerprint": manifest.fingerprint,
            "to_merge": {
                "added": snapshot.added,
                "deleted": snapshot.rows - snapshot.documents,
                "bytes": self._log.size,
            },
        }

    def _need_writer(self) -> None:
        if self._snapshot is not None and self._lock is None:
            raise IndexFolderError(f"{self.folder} is open for reading", hint="open it with write=True")

    def _merge_long_log(self) -> None:
        snapshot = self.snapshot()
        base, changes = snapshot.base, snapshot.added + snapshot.rows - snapshot.documents
        short = self._log.size <= max(_MERGED_BYTES, base.arrays.size // _MERGED_SHARE)
        few = changes <= max(_MERGED_CHANGES, base.documents // _MERGED_SHARE)
        if short and few:
            return
        try:
            self.compact()
        except (OSError, IndexFolderError) as problem:
            if self._snapshot is None:
                raise
            # What was written is in the log, and stays.
            _logger.warning("the log of %s could not be merged: %s", self.folder, problem)


def _open(folder: Path, write: bool) -> tuple[Snapshot, Log]:
    """Open what the manifest names; a writer may put another generation in its place at any moment."""
    while True:
        manifest = read_manifest(folder)
        try:
            log = Log(log_file(folder, manifest.generation), manifest.token, write)
            try:
                snapshot = Snapshot.open(folder, manifest)
                return snapshot.after([unpacked(record) for record in log.read()]), log
            except BaseException:
                log.close()
                raise
        except FileNotFoundError as problem:
            if read_manifest(folder).token == manifest.token:
                raise IndexFolderError(
                    f"{problem.filename} is missing", hint="restore it from a copy, or build the index again"
                ) from problem


def _write(
    folder: Path,
    manifest: Manifest,
    documents: Iterable[Batch] | Snapshot,
    save_model: SaveModel | None,
    overwrite: bool,
    report: Report,
) -> None:
    derive = _derive(manifest, report)
    if overwrite and is_index(folder):
        # As a new generation, not as a new folder: then a kill at any moment leaves the old index or the new one.
        with WriterLock(folder):
            manifest = replace(manifest, generation=next_generation(folder))
            manifest = _with_model(folder, manifest, save_model)
            manifest = write_generation(folder, manifest, documents, derive)
            write_manifest(folder, manifest)
            remove_leftovers(folder, manifest)
        return
    with whole_folder(folder, is_index if overwrite else None, durable=True) as new:
        (new / LOCK).touch()
        manifest = _with_model(new, manifest, save_model)
        write_manifest(new, write_generation(new, manifest, documents, derive))


def _with_model(folder: Path, manifest: Manifest, save_model: SaveModel | None) -> Manifest:
    """Save the model in a folder that no generation before had, as that of an old one may be damaged."""
    if save_model is None:
        return manifest
    manifest = replace(manifest, model=f"model-{manifest.generation}")
    remove(folder / manifest.model)  # what a killed writer has left
    save_model(folder / manifest.model)
    return manifest


def _derive(manifest: Manifest, report: Report) -> Derive:
    return derive_with(manifest.meta.get("backend", "flat"), manifest.bits, report)

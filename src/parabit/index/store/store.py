"""The store: where an index keeps its documents, opened in milliseconds whatever their number."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from logging import getLogger
from pathlib import Path
from threading import RLock
from typing import Any

from parabit.codes import bytes_per_code
from parabit.errors import IndexDamagedError, IndexFolderError
from parabit.index.store.damage import REMEDY, damaged, read_twice
from parabit.index.store.generation import (
    DERIVED,
    Complete,
    Generation,
    Recode,
    SaveModel,
    write_generation,
)
from parabit.index.store.log import Log
from parabit.index.store.manifest import (
    LOCK,
    Manifest,
    bytes_in,
    is_index,
    read_manifest,
    remove_leftovers,
    write_manifest,
    writer_lock,
)
from parabit.index.store.schema import (
    TEXT,
    Batch,
    Change,
    Id,
    columns_of,
    need_distinct,
    pack,
    unpack,
)
from parabit.index.store.snapshot import Snapshot, Tail
from parabit.progress import Report, silent
from parabit.storage import copy_folder, whole_folder

# The log is merged when it has so many bytes or changes, or a sixteenth of the generation's:
# opening stays fast, and what is copied for each new document is some others, however large the
# index becomes.
_MERGED_BYTES, _MERGED_CHANGES, _MERGED_SHARE = 4 << 20, 20_000, 16

_logger = getLogger(__name__)


class BaseStore(ABC):
    """A folder with a manifest, a model and a lock, wherever the documents are."""

    # Whether words are searched with the documents, or by a word index beside the store.
    keeps_words = False

    def __init__(
        self, folder: Path | str, write: bool = False, manifest: Manifest | None = None
    ) -> None:
        """Open an index; `manifest` is what was just read, if it was."""
        self.folder = Path(folder)
        self.writes = write
        # Before the lock: a folder that is not ours should not get a lock file.
        self.manifest = manifest or read_manifest(self.folder)
        self.changing = RLock()  # held by the one thread that changes or refreshes what is open
        self._held = ExitStack()  # what is given back at the end
        if write:
            self._held.enter_context(writer_lock(self.folder))

    @abstractmethod
    def snapshot(self) -> Any:
        """The documents as they are now."""

    def close(self) -> None:
        """Release the lock, and let go of everything that is open. Snapshots that were taken stay
        valid.
        """
        self._held.close()

    @property
    def model_folder(self) -> Path:
        """Where the model that made the codes is, if it was kept."""
        return self.folder / (self.manifest.model or "model")

    def model_saver(self) -> SaveModel | None:
        """What writes the model to another folder; None if there is none."""
        return (
            partial(copy_folder, self.model_folder, locked=False)
            if self.model_folder.is_dir()
            else None
        )

    def change_manifest(self, **changes: Any) -> None:
        """Change parts of the manifest, in one durable step; for the one who holds the lock."""
        with self.changing:
            manifest = replace(self.manifest, **changes)
            write_manifest(self.folder, manifest)
            self.manifest = manifest

    def need_writer(self) -> None:
        """Raise if the store is open for reading only."""
        if not self.writes:
            raise IndexFolderError(
                f"{self.folder} is open for reading", hint="open it with write=True"
            )

    def about(self) -> dict[str, Any]:
        """What the index is and what it keeps; for JSON."""
        snapshot = self.snapshot()
        derived = {name.split(".")[1] for name in self.manifest.arrays if name.startswith(DERIVED)}
        return {
            "folder": str(self.folder),
            "documents": snapshot.documents,
            "bits": self.manifest.bits,
            "bytes_a_code": bytes_per_code(self.manifest.bits),
            "bytes": bytes_in(self.folder),
            "model_bytes": bytes_in(self.model_folder),
            "backends": ["flat", *sorted(derived)],
            "fields": [name for name in snapshot.field_names if name != TEXT],
            "fingerprint": self.manifest.fingerprint,
            "to_merge": {"added": 0, "deleted": 0, "bytes": 0},
        }


class Store(BaseStore):
    """Codes, ids, fields and vectors of documents in a folder; one process writes it, any number
    read it.

    It opens in a time that does not depend on its size but on that of its log. Indexes below 64 MB
    are checked completely then, the files of others for their size and header; `verify` checks all.

    Threads may share it. What changes or refreshes it is done by one thread at a time; a snapshot
    that another thread has taken stays valid and does not change.
    """

    def __init__(
        self, folder: Path | str, write: bool = False, manifest: Manifest | None = None
    ) -> None:
        super().__init__(folder, write, manifest)
        with self._held:
            self._snapshot: Snapshot | None
            # Before the lock was taken, another writer may have changed what a writer has read.
            newest = None if write else self.manifest
            self._snapshot, self._log = _open(self.folder, write, newest)
            self.manifest = self._snapshot.manifest
            if write:
                self._log.cut()
                remove_leftovers(self.folder)
            self._held = self._held.pop_all()

    @staticmethod
    def create(
        folder: Path,
        manifest: Manifest,
        documents: Iterable[Batch] | Snapshot,
        save_model: SaveModel | None = None,
        overwrite: bool = False,
        report: Report = silent,
        complete: Complete | None = None,
    ) -> None:
        """Make an index of documents, which are its rows in their order; under its name it is
        complete or not there.

        `save_model` writes the model to the folder it is given. `complete` adds what else belongs
        to the index, such as its words, before anybody sees it. With `overwrite` an index of that
        name is replaced, in one step, and nothing but an index.
        """
        write = partial(
            write_generation,
            manifest=manifest,
            documents=documents,
            report=report,
            save_model=save_model,
            complete=complete,
            final_folder=folder,
        )
        if overwrite and is_index(folder):
            # As a new generation, not as a new folder: then a kill at any moment leaves the old
            # index or the new one.
            with writer_lock(folder):
                write(folder)
        else:
            with whole_folder(folder, is_index if overwrite else None) as new:
                (new / LOCK).touch()
                write(new)

    def close(self) -> None:
        with self.changing:
            self._snapshot = None
            self._log.close()
            super().close()

    def snapshot(self) -> Snapshot:
        snapshot = self._current()
        snapshot.base.check_lengths()
        return snapshot

    def _current(self) -> Snapshot:
        snapshot = self._snapshot
        if snapshot is None:
            raise IndexFolderError(f"{self.folder} was closed", hint="open it again")
        return snapshot

    def put(self, batch: Batch | None, delete: Sequence[Id] = ()) -> int:
        """Add documents, in place of those that have their ids, and delete others; returns how many
        were replaced.

        It is one step: nobody sees half of it, and all of it is on the disk when this returns, or
        none is. Ids to delete that no document has are ignored. A log that has grown long is merged
        then.
        """
        with self.changing:
            snapshot = self._current()
            self.need_writer()
            ids = [] if batch is None else list(batch.ids)
            need_distinct([*ids, *delete])
            first_serial = snapshot.last_serial + 1
            added = columns_of(batch, self.manifest.bits, self.manifest.dim, first_serial)
            rows = snapshot.rows_of([*ids, *delete])
            change = Change(rows[rows >= 0], added)
            if ids or len(change.deleted):
                self._log.append(pack(change))
                self._snapshot = snapshot.after([change])
                self._merge_long_log()
            return int((rows[: len(ids)] >= 0).sum())

    def compact(
        self,
        report: Report = silent,
        recode: Recode | None = None,
        save_model: SaveModel | None = None,
        **model: Any,
    ) -> None:
        """Write the documents as a new generation, in the order of their rows, with an empty log.

        Everything is verified on the way. Rows get new numbers; readers keep the old generation
        until they `refresh`. With `recode`, documents get the codes and vectors of another model,
        whose `bits`, `dim` and `fingerprint` are given, in the same step; all else stays, serial
        numbers among it, so that a word index stays valid.
        """
        with self.changing:
            snapshot = self._current()
            self.need_writer()
            manifest = replace(self.manifest, **model)
            try:
                write_generation(self.folder, manifest, snapshot, report, save_model, recode)
                self._show(*_open(self.folder, write=True))
            except BaseException:
                if read_manifest(self.folder).token != self.manifest.token:
                    self.close()  # the new generation is current, so nothing may go to the old log
                raise

    def _show(self, snapshot: Snapshot, log: Log) -> None:
        """Have other threads see another generation, its manifest first."""
        self.manifest = snapshot.manifest
        self._snapshot = snapshot
        self._log = log

    def save(
        self,
        folder: Path,
        manifest: Manifest,
        overwrite: bool = False,
        report: Report = silent,
        complete: Complete | None = None,
    ) -> None:
        """Write the documents to another folder, as `compact` writes them to this one."""
        snapshot, model = self.snapshot(), self.model_saver()
        self.create(folder, manifest, snapshot, model, overwrite, report, complete)

    def refresh(self) -> bool:
        """See what another process has written since; returns whether there was anything. A writer
        knows it all.
        """
        self._current()  # an error if it was closed
        if self.writes:
            return False
        with self.changing:
            snapshot = self._current()
            manifest = read_manifest(self.folder)
            if manifest.token == self.manifest.token:
                changes = _changes_in(self._log, manifest)
                self.manifest = manifest
                if changes:
                    self._snapshot = snapshot.after(changes)
                return bool(changes)
            self._show(*_open(self.folder, write=False))
            return True

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The right to write files beside the store; a reader has it if nobody writes."""
        with self.changing, nullcontext() if self.writes else writer_lock(self.folder):
            self.refresh()
            yield

    def verify(self) -> None:
        """Read every byte and raise if one is not what was written; the log was checked when it was
        read.
        """
        read_twice(self.snapshot().base.verify)

    def about(self) -> dict[str, Any]:
        snapshot = self.snapshot()
        to_merge = {
            "added": snapshot.added,
            "deleted": snapshot.rows - snapshot.documents,
            "bytes": self._log.size,
        }
        return {**super().about(), "to_merge": to_merge}

    def _merge_long_log(self) -> None:
        snapshot = self._current()
        base, changes = snapshot.base, snapshot.added + snapshot.rows - snapshot.documents
        short = self._log.size <= max(_MERGED_BYTES, base.size // _MERGED_SHARE)
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


def open_snapshot(folder: Path, manifest: Manifest) -> Snapshot:
    """The documents of a generation that was just written, and that no manifest in the folder may
    name yet.
    """
    return Snapshot(manifest, Generation(folder, manifest), Tail(manifest.kinds))


def _open(folder: Path, write: bool, manifest: Manifest | None = None) -> tuple[Snapshot, Log]:
    return read_twice(lambda: _open_current(folder, write, manifest))


def _open_current(
    folder: Path, write: bool, manifest: Manifest | None = None
) -> tuple[Snapshot, Log]:
    """Open what the manifest names; a writer may put another generation in its place at any moment."""
    while True:
        manifest = manifest or read_manifest(folder)
        try:
            log = Log(folder / manifest.log, manifest.token, write)  # closed when it is forgotten
            changes = _changes_in(log, manifest)
            return open_snapshot(folder, manifest).after(changes), log
        except (IndexDamagedError, FileNotFoundError) as problem:
            newest = read_manifest(folder)
            if newest.token != manifest.token:
                manifest = newest
                continue
            if isinstance(problem, FileNotFoundError):
                raise IndexDamagedError(f"{problem.filename} is missing", REMEDY) from problem
            raise
        except PermissionError as problem:
            reason = f"{problem.filename} cannot be read: {problem.strerror}"
            raise IndexFolderError(reason, hint="change its permissions") from problem


def _changes_in(log: Log, manifest: Manifest) -> list[Change]:
    """The changes that a log has and that were not read before."""
    try:
        return [unpack(record, manifest.kinds) for record in log.read()]
    except ValueError as problem:
        if isinstance(problem, IndexFolderError):
            raise
        raise damaged(log.path, str(problem)) from problem

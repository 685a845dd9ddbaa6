"""The log: what was done to an index after its generation was written, a record each.

    64 bytes   a name and the token of the generation, with their checksum; two places for the acknowledged length
    records    20 bytes (a mark, the length and the checksum of what follows, the checksum of these), and the content

A record is acknowledged when it is on the disk. After that the new length goes to one of the two
places in turn, without waiting for the disk. So what lies before the acknowledged length must be
whole, or the log is damaged: also its last record, which would otherwise pass for one that a crash
cut short. What lies after it counts if it is whole.
"""

import os
import struct
import zlib
from io import BufferedReader, FileIO
from pathlib import Path
from weakref import finalize

from parabit.errors import IndexDamagedError, IndexFolderError
from parabit.index.store.damage import REMEDY, damaged, open_regular, read_twice
from parabit.storage import sync

_NAME = b"parabit log\n"
_HEAD = struct.Struct("<12s16sI")  # the name, the token, checksum
_PLACES = (32, 48)
_PLACE = struct.Struct("<QI")  # acknowledged length, checksum
_START = 64
_RECORD = struct.Struct("<4sQII")  # mark, length, checksum of the content, checksum of these
_MARK = b"rec\n"
_BUFFER = 1 << 20  # bytes that are read at a time
_LONGEST_RECORD = 1 << 31  # bytes; what is added at once is held in memory several times


def new_log(path: Path, token: str) -> None:
    """Write an empty log, to the disk."""
    head = _sealed(_HEAD, _NAME, token.encode())
    place = _sealed(_PLACE, _START)
    path.write_bytes(head.ljust(_PLACES[0], b"\0") + 2 * place.ljust(16, b"\0"))
    sync(path)


class Log:
    """A log that is read as it grows and, by one writer, written; one thread at a time may use it."""

    def __init__(self, path: Path, token: str, write: bool = False) -> None:
        self.path = path
        self._file = open_regular(path, write)
        self.close = finalize(self, self._file.close)  # an index that is forgotten is closed, too
        self._end = _START
        self._broken = False
        if self._read_at(0, _HEAD.size) != _sealed(_HEAD, _NAME, token.encode()):
            self.close()
            raise IndexDamagedError(f"{path} is damaged or belongs to another index", hint=REMEDY)

    @property
    def size(self) -> int:
        """How many bytes of records were read or written."""
        return self._end - _START

    def read(self) -> list[bytes]:
        """The records after those that were read before. Half a record at the end is left out: it
        may be under way.
        """
        return read_twice(self._read)

    def _read(self) -> list[bytes]:
        # First the acknowledged length: the file only grows, so it holds that much when it is read
        # next.
        acknowledged = max(self._lengths())
        if not acknowledged:
            raise damaged(self.path, "both places for its length are")
        records = []
        end = self._end
        self._file.seek(end)
        reader = BufferedReader(self._file, _BUFFER)
        try:
            while (record := _next_record(reader)) is not None:
                records.append(record)
                end += _RECORD.size + len(record)
        finally:
            reader.detach()  # the file stays open
        if end < acknowledged:
            raise damaged(self.path, f"at byte {end}")
        self._end = end
        return records

    def _read_at(self, place: int, size: int) -> bytes:
        self._file.seek(place)
        return self._file.read(size) or b""

    def _write_at(self, place: int, content: bytes | memoryview) -> int:
        self._file.seek(place)
        return self._file.write(content) or 0

    def cut(self) -> None:
        """Remove half a record that a crash left at the end; for a writer that has read all."""
        if os.fstat(self._file.fileno()).st_size > self._end:
            self._file.truncate(self._end)
        self._acknowledge()

    def append(self, record: bytes) -> None:
        """Add a record; it is on the disk when this returns. A full disk is an OSError, and nothing
        was added.
        """
        if self._broken:
            raise IndexFolderError(
                f"{self.path} could not be written before", hint="open the index again"
            )
        if len(record) > _LONGEST_RECORD:
            raise IndexFolderError(
                f"{len(record):,} bytes are added at once, at most {_LONGEST_RECORD:,} can be",
                hint="add fewer documents at a time",
            )
        head = struct.pack("<4sQI", _MARK, len(record), zlib.crc32(record))
        content = memoryview(head + zlib.crc32(head).to_bytes(4, "little") + record)
        end = self._end + len(content)
        self._broken = True
        try:
            while content:
                content = content[self._write_at(end - len(content), content) :]
            os.fsync(self._file.fileno())
        except BaseException:
            # Half a record can be taken back. Of a whole one that did not reach the disk for sure,
            # readers may know already: it is for the next opening to say what became of it.
            if content:
                self._file.truncate(self._end)
                self._broken = False
            raise
        self._broken = False
        self._end = end
        self._acknowledge()

    def _acknowledge(self) -> None:
        # To the lower one, or one that is not valid: a crash may spoil what is being written.
        first, second = self._lengths()
        self._write_at(_PLACES[0 if first <= second else 1], _sealed(_PLACE, self._end))

    def _lengths(self) -> list[int]:
        """The acknowledged length in each of the two places; 0 if it is not valid."""
        head = self._read_at(0, _START).ljust(_START, b"\0")
        lengths = []
        for place in _PLACES:
            length, _ = _PLACE.unpack_from(head, place)
            lengths.append(length if head.startswith(_sealed(_PLACE, length), place) else 0)
        return lengths


def _next_record(reader: "BufferedReader[FileIO]") -> bytes | None:
    """The record that is next, or None if it is not whole."""
    head = reader.read(_RECORD.size)
    if len(head) < _RECORD.size:
        return None
    mark, length, checksum, head_checksum = _RECORD.unpack(head)
    if mark != _MARK or zlib.crc32(head[:-4]) != head_checksum or length > _LONGEST_RECORD:
        return None
    record = reader.read(length)
    is_whole = len(record) == length and zlib.crc32(record) == checksum
    return record if is_whole else None


def _sealed(form: struct.Struct, *values: bytes | int) -> bytes:
    """Some values and their checksum, which is the last of the form."""
    content = form.pack(*values, 0)[:-4]
    return content + zlib.crc32(content).to_bytes(4, "little")

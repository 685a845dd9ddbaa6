"""Fetching a data set's file from its official place: checked, resumed where it broke off, never half there."""

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from parabit.errors import DownloadError
from parabit.progress import Progress, Report, silent

try:
    import fcntl
except ImportError:  # Windows has no flock; two downloads at once then end in a wrong checksum, never in a wrong file
    fcntl = None  # type: ignore[assignment]

_BLOCK = 1 << 18
_ATTEMPTS = 3
_TIMEOUT = 30.0


@dataclass(frozen=True)
class Download:
    """A file that may be fetched: the places to try in order, its SHA-256, and its name below the data folder."""

    urls: tuple[str, ...]
    sha256: str
    path: str


def fetch(download: Download, data: Path, report: Report = silent) -> Path:
    """Fetch a file into the data folder and return its path.

    What arrives is kept as `NAME.part` until it is whole and its checksum right; a later call goes on from there.
    """
    target = data / download.path
    part = target.with_name(target.name + ".part")
    failures = []
    with _only_one(part) as file:
        if _checksum(file) == download.sha256:  # it came whole, and was stopped before it had its name
            part.replace(target)
            return target
        for url in download.urls:
            try:
                _fetch_checked(url, file, download.sha256, target.name, report)
                part.replace(target)
                return target
            except DownloadError as problem:
                failures.append(str(problem))
    raise DownloadError("; ".join(failures), hint=f"try again, or put the file at {target} yourself")


class _TransferError(Exception):
    """A transfer that did not come to its end; another try may do better unless the server refused."""

    def __init__(self, reason: str, refused: bool = False) -> None:
        super().__init__(reason)
        self.refused = refused


def _fetch_checked(url: str, file: BinaryIO, checksum: str, name: str, report: Report) -> None:
    """Bring the file to its whole length, going on from what is there; then compare the checksum."""
    resumed = file.seek(0, os.SEEK_END) > 0
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _transfer(url, file, name, report)
            break
        except _TransferError as problem:
            if problem.refused or attempt == _ATTEMPTS:
                raise DownloadError(f"{url} could not be fetched: {problem}") from problem
    found = _checksum(file)
    if found == checksum:
        return
    file.truncate(0)
    if resumed:  # the kept part may have been of another file: once more from the start
        _fetch_checked(url, file, checksum, name, report)
        return
    raise DownloadError(f"{url} has the SHA-256 {found}, not {checksum}: the file there is damaged or another one")


def _transfer(url: str, file: BinaryIO, name: str, report: Report) -> None:
    have = file.seek(0, os.SEEK_END)
    for block, start, total in _blocks(url, have):
        if start < have:  # the server sends the whole file
            file.truncate(0)
            have = file.seek(0)
        file.write(block)  # outside of what counts as the network's fault: a full disk is told as such
        have += len(block)
        report(Progress(f"downloading {name}", have, "bytes", have / total if total else None))
    file.flush()


def _blocks(url: str, have: int) -> Iterator[tuple[bytes, int, int | None]]:
    """What a server sends from a place on: blocks, each with its place in the file, and the whole length if known."""
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            at = have if response.status == http.HTTPStatus.PARTIAL_CONTENT else 0
            length = response.headers.get("Content-Length")
            total = at + int(length) if length and length.isdigit() else None
            while block := response.read(_BLOCK):
                yield block, at, total
                at += len(block)
    except urllib.error.HTTPError as problem:
        if problem.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            yield b"", 0, None  # what is there is longer than the file: begin anew
            raise _TransferError("the file there is shorter than what was kept of it") from problem
        raise _TransferError(str(problem.reason), refused=True) from problem
    except (OSError, http.client.HTTPException) as problem:
        raise _TransferError(str(getattr(problem, "reason", "") or problem)) from problem
    # http.client gives what came before a lost connection as if it were all.
    if total is not None and at < total:
        raise _TransferError(f"the connection broke off {total - at} bytes before the end")


def _checksum(file: BinaryIO) -> str:
    digest = sha256()
    file.seek(0)
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


@contextmanager
def _only_one(part: Path) -> Iterator[BinaryIO]:
    """Open the partial file for this process alone."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        opened = part.open("a+b")
    except OSError as problem:
        raise DownloadError(
            f"{part.name} cannot be written to {part.parent}: {problem.strerror}",
            hint="set PARABIT_DATA to a folder that may be written",
        ) from problem
    with opened as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as problem:
                raise DownloadError(
                    f"{part.name} is being downloaded by another process", hint="wait for it"
                ) from problem
        yield file

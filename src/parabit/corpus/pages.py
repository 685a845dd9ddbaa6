"""The bytes of files that are one page. Parser processes start fast because this needs few other modules."""

import codecs
import errno
import os
import re
import stat

from parabit.corpus.limits import ReadLimits, over_limit
from parabit.errors import UnreadableError

READABLE = "text, Markdown, HTML, PDF, JSON, JSON lines, CSV, TSV and Parquet"
# The longer ones first: one of UTF-32 begins like one of UTF-16.
WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
START = 8192  # bytes that show what a file is
GUESSED = "decoded as Windows-1252"
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# How files begin that `sources` decompresses, and few others.
_MAY_BE_COMPRESSED = re.compile(rb"\x1f\x8b|BZh|\x28\xb5\x2f\xfd|.\x2a\x4d\x18", re.S)


def open_file(path: str, flags: int) -> int:
    """Open a file, and nothing else that may have come to its place: a pipe could be waited for without end."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file any more")


def page_content(path: str, limits: ReadLimits) -> bytes:
    """The bytes of a file that is a page, decompressed.

    Args:
        path: The file.
        limits: What it may cost.

    Raises:
        UnreadableError: if it is not there, damaged, or over a limit.
    """
    try:
        with open(path, "rb", buffering=0, opener=open_file) as stream:
            content = _read(stream.fileno(), limits.document_bytes + 1)
    except OSError:
        return _decompressed(path, limits)  # which says what is wrong
    if _MAY_BE_COMPRESSED.match(content):
        return _decompressed(path, limits)
    check_size(content, "", limits)
    return content


def _read(descriptor: int, most: int) -> bytes:
    """The bytes of a file, up to a number of them."""
    # Not all that may be read: Python would set aside the memory for it.
    size = max(os.fstat(descriptor).st_size, START)
    pieces: list[bytes] = []
    bytes_left = most
    while bytes_left > 0:
        piece = os.read(descriptor, min(bytes_left, size))
        if not piece:
            break
        pieces.append(piece)
        bytes_left -= len(piece)
    return b"".join(pieces)


def _decompressed(path: str, limits: ReadLimits) -> bytes:
    from parabit.corpus.sources import Source  # here: few files need it

    with Source(path).open(limits) as stream:
        content = stream.read(limits.document_bytes + 1)
    check_size(content, "", limits)
    return content


def check_size(content: bytes, name: str, limits: ReadLimits) -> None:
    """Raise UnreadableError for a document that is too large."""
    if len(content) > limits.document_bytes:
        what = f"more than {limits.document_mb} MB in one document"
        raise over_limit(name, what, limits, "document_mb")


def check_page(content: bytes, encoding: str | None) -> None:
    """Raise UnreadableError if the bytes of a page are none, or none of text."""
    start = content[:START]
    check_text(start, "", encoding or encoding_at(start, ""))


def check_text(start: bytes, name: str, encoding: str | None) -> None:
    """Raise if the first bytes of a file are none of text, which has no zero bytes, unless in UTF-16 or UTF-32."""
    if b"\0" in start and not is_wide(encoding):
        raise UnreadableError(name, "binary file", f"parabit reads {READABLE}")


def encoding_at(start: bytes, name: str) -> str | None:
    """The encoding that the first bytes of a file say, if they do."""
    if not start:
        raise UnreadableError(name, "empty file")
    for mark, encoding in WIDE_MARKS.items():
        if start.startswith(mark):
            return encoding
    return None


def is_wide(encoding: str | None) -> bool:
    """Whether a letter of an encoding has more than one byte."""
    return encoding is not None and codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def decoded_page(content: bytes, encoding: str | None) -> tuple[str, str]:
    """The text of a page that does not name its encoding, and a note if the encoding was guessed."""
    encoding = encoding or encoding_at(content[:START], "")
    text, note = decoded(content, "", encoding)
    return text.removeprefix("\ufeff"), note


def decoded(
    raw: bytes, name: str, encoding: str | None, line: int | None = None
) -> tuple[str, str]:
    """The text that bytes stand for, and a note if the encoding was guessed.

    Args:
        raw: The bytes.
        name: The file, for messages.
        encoding: None where UTF-8 is tried first and then Windows-1252.
        line: The line of the file, if they are one.

    Raises:
        UnreadableError: if the encoding does not fit.
    """
    try:
        return raw.decode(encoding or "utf-8"), ""
    except UnicodeDecodeError as problem:
        reason = f"not valid {encoding}: byte 0x{raw[problem.start]:02x} at {problem.start}"
    except UnicodeError as problem:  # some encodings raise no more than this
        reason = f"not valid {encoding}: {problem}"
    if encoding is None:
        start = raw[:START]
        if len(_CONTROLS.findall(start)) * 100 > len(start):
            raise UnreadableError(name, "binary file", f"parabit reads {READABLE}", line)
        try:
            return raw.decode("cp1252"), GUESSED
        except UnicodeDecodeError:
            reason = "unknown encoding: neither UTF-8 nor Windows-1252"
    raise UnreadableError(
        name, reason, "name the encoding with --encoding, for example latin-1", line
    )

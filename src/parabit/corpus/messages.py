"""What goes through the pipes between a process and the parser processes that it started."""

import json
import struct
from typing import Any, BinaryIO, NamedTuple

NUMBER_LENGTH = 8  # bytes of the number of the file that a parser process works on
_LENGTHS = struct.Struct("<QQ")


class Message(NamedTuple):
    """Something small as JSON, and bytes such as the text of a page."""

    header: dict[str, Any]
    content: bytes = b""


def send(stream: BinaryIO, message: Message) -> None:
    """Write a message; the stream is not flushed."""
    header = json.dumps(message.header).encode()
    stream.write(_LENGTHS.pack(len(header), len(message.content)))
    stream.write(header)
    stream.write(message.content)


def receive(stream: BinaryIO) -> Message | None:
    """Read a message; None at the end of the stream."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_length, content_length = _LENGTHS.unpack(lengths)
    header = stream.read(header_length)
    content = stream.read(content_length)
    if len(header) < header_length or len(content) < content_length:
        return None
    return Message(json.loads(header), content)

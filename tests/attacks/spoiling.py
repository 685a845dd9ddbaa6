"""Changes to files that an attacker, or a bad disk, could make; with checksums made right again if wanted."""

import copy
import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
# Never a path above the folder that the attacks stay in: what they hit must be ours.
BAD_NAMES = (
    "../victim",
    "../bashrc",
    "..",
    ".",
    "",
    "./",
    "victim/../../victim",
    "words-0\0",
    "generation-1/../../victim",
    "lock",
    MANIFEST,
    "x" * 5000,
    "\ud800",
    "words-zz\n",
)
BAD_NUMBERS = (
    0,
    -1,
    1,
    2,
    7,
    127,
    128,
    255,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    1 << 64,
    10**400,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
)
BAD_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    "",
    "x",
    [],
    {},
    [[]],
    [None],
    {"a": 1},
    0,
    -1,
    1e300,
)

DEEP = "a hundred thousand lists in lists"  # what `as_json` writes for it
_DEEPEST = 40  # of the places that are changed


def places_in(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value: a container, and the key or the position in it."""
    if depth == _DEEPEST:
        return
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return
    for key, inner in list(items):
        yield value, key
        yield from places_in(inner, depth + 1)


def mutated_json(content: Any, rng: random.Random, names: tuple[str, ...] = BAD_NAMES) -> Any:
    """A JSON value with one to three changes: names, numbers, types, keys, lengths, depth."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(places_in(content))
        if not places:
            return rng.choice(BAD_VALUES)
        container, key = rng.choice(places)
        _change_place(container, key, rng, names)
    return content


def _change_place(container: Any, key: Any, rng: random.Random, names: tuple[str, ...]) -> None:
    value = container[key]
    kind = rng.random()
    if kind < 0.1:
        del container[key]
    elif kind < 0.2:
        container[key] = rng.choice(BAD_VALUES)
    elif kind < 0.25:
        container[key] = rng.choice((_nested(10), _nested(300), DEEP))
    elif kind < 0.3 and isinstance(container, dict):
        container[f"{key}{rng.choice(('x', ' ', '/..'))}"] = container.pop(key)
    elif isinstance(value, bool):
        container[key] = not value
    elif isinstance(value, int | float):
        near = (value + 1, value - 1, value * 2, value * 8, value * 1000, -value)
        container[key] = rng.choice(near if rng.random() < 0.5 else BAD_NUMBERS)
    elif isinstance(value, str):
        container[key] = rng.choice((*names, value + "x", value[:-1], value * 2, value.upper()))
    elif isinstance(value, list):
        container[key] = rng.choice((value * 2, value[:-1], value[::-1], [value], [*value, 1]))
    elif isinstance(value, dict):
        container[key] = rng.choice(({}, {**value, "more": 1}, [value], {"": value}))
    else:
        container[key] = rng.choice(BAD_VALUES)


def _nested(depth: int) -> Any:
    value: Any = 1
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


def as_json(content: Any) -> str:
    """JSON, in which a mark stands for what Python's own writer of JSON is not deep enough for."""
    return json.dumps(content, indent=2).replace(json.dumps(DEEP), "[" * 100_000 + "]" * 100_000)


def mutated_bytes(content: bytes, rng: random.Random) -> bytes:
    """Bytes with one to four changes."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        size = len(changed)
        start = rng.randrange(size + 1)
        kind = rng.randrange(8)
        if kind <= 2 and size:
            changed[start % size] ^= 1 << rng.randrange(8)
        elif kind == 3:
            del changed[start : start + rng.choice((1, 4, 64, 4096))]
        elif kind == 4:
            changed[start:start] = rng.randbytes(rng.choice((1, 4, 64)))
        elif kind == 5:
            number = rng.choice((0, 1, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1))
            wide = struct.pack("<Q", number)[: rng.choice((1, 2, 4, 8))]
            changed[start : start + len(wide)] = wide
        elif kind == 6:
            changed[start:start] = changed[start : start + rng.choice((16, 256))]
        else:
            del changed[start:]
    return bytes(changed)


def write_manifest(index: Path, content: dict[str, Any]) -> None:
    """Write a manifest with the digest that fits it: anybody can compute that, it has no key."""
    content = {name: value for name, value in content.items() if name != "digest"}
    digest = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (index / MANIFEST).write_text(as_json({**content, "digest": digest}) + "\n")


def read_manifest(index: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((index / MANIFEST).read_text())
    return content


def replace_sealed(index: Path, path: Path, content: bytes) -> None:
    """Write another content to a file of an index, with its checksums and sizes in the manifest made right."""
    old = path.read_bytes()
    path.write_bytes(content)
    manifest = read_manifest(index)
    known = {digest(old): digest(content) for digest in _DIGESTS}
    for container, key in list(places_in(manifest)):
        value = container[key]
        if isinstance(value, str | int) and not isinstance(value, bool) and value in known:
            container[key] = known[value]
    write_manifest(index, manifest)


def _crc_of_rows(content: bytes) -> int:
    """The checksum of an array's rows, without the header of its `.npy` file."""
    start = header_size(content)
    return zlib.crc32(content[start:])


def header_size(npy: bytes) -> int:
    """Where the rows of a `.npy` file begin; 0 if it is none."""
    if npy[:8] != b"\x93NUMPY\x01\x00" or len(npy) < 10:
        return 0
    return 10 + int.from_bytes(npy[8:10], "little")


def _hex_digest(content: bytes) -> str:
    return sha256(content).hexdigest()


_DIGESTS: tuple[Callable[[bytes], int | str], ...] = (_crc_of_rows, zlib.crc32, _hex_digest)

_RECORD = struct.Struct(
    "<4sQII"
)  # of a log: mark, length, checksum of the content, checksum of these
_LOG_HEAD = 64
_LENGTH = struct.Struct("<QI")  # the acknowledged length and its checksum, at bytes 32 and 48


def mutated_log(content: bytes, rng: random.Random) -> bytes:
    """A log with another record, and all checksums right."""
    records = []
    start = _LOG_HEAD
    while start + _RECORD.size <= len(content):
        _, length, _, _ = _RECORD.unpack_from(content, start)
        records.append(content[start + _RECORD.size : start + _RECORD.size + length])
        start += _RECORD.size + length
    if not records:
        raise ValueError("the log has no records that could be changed")
    chosen = rng.randrange(len(records))
    records[chosen] = mutated_bytes(records[chosen], rng)
    if rng.random() < 0.2:
        records.append(records[rng.randrange(len(records))])
    body = b"".join(_record(record) for record in records)
    end = _LOG_HEAD + len(body)
    if rng.random() < 0.1:
        end = rng.choice((0, _LOG_HEAD, end - 1, end + 1, 1 << 62))
    length = struct.pack("<Q", end)
    place = length + struct.pack("<I", zlib.crc32(length))
    return content[:32] + 2 * place.ljust(16, b"\0") + body


def _record(content: bytes) -> bytes:
    head = struct.pack("<4sQI", b"rec\n", len(content), zlib.crc32(content))
    return head + struct.pack("<I", zlib.crc32(head)) + content


def mutated_safetensors(content: bytes, rng: random.Random) -> bytes:
    """A file of tensors whose header is wrong, or whose numbers are."""
    size = int.from_bytes(content[:8], "little")
    if rng.random() < 0.6:
        header = mutated_json(json.loads(content[8 : 8 + size]), rng)
        written = as_json(header).encode()
        length = len(written) if rng.random() < 0.9 else rng.choice((0, 1 << 20, 1 << 62))
        return length.to_bytes(8, "little") + written + content[8 + size :]
    body = bytearray(content[8 + size :])
    for _ in range(3):
        place = rng.randrange(max(1, len(body) - 8))
        body[place : place + 4] = rng.choice(
            (b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\xff\xff\xff\xff")
        )
    return content[: 8 + size] + bytes(body)

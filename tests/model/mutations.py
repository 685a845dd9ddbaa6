"""Models as a stranger could send them: each loads or is refused, whatever was done to its files.

A program of its own, so that its memory can be limited: it takes the folder of a model, a seed and
how often each kind of file is mutated, and prints what became of them as JSON.
"""

import json
import random
import resource
import shutil
import struct
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from parabit.errors import ModelError, VocabularyError
from parabit.model import load_model, save_model
from parabit.model.estimator import ParagraphVectors
from parabit.text import Vocabulary

MEMORY = 1 << 30  # bytes that the process may take beyond what it has before the first mutation

TEXTS = [
    "hockey telescope orbit",
    "",
    "ice ice ice",
    "Éa b c",
] * 12  # more than are answered one by one
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 16, 17, 255, 256, 65_536, 65_537, 2**31, 2**63, -(2**63), 10**30, 10**400,
    0.5, -0.0, 1e-300, 1e300, float("nan"), float("inf"), "", "a", "../../etc/passwd", "/etc/passwd", "a/b", "\x1b[2J",
    "\ud800", "\0", "x" * 100_000, [], {}, [[]], [1], [-1], [16], [8, 8], ["a"], {"a": 1}, {"..": {}}, "closed-form",
    "network", "dm", "dbow", "(", "(a{999}){999}", "(?s).*", "\\b", "$^",
]  # fmt: skip


WRITTEN = {  # marks, and what stands in a file instead of them
    "@nested": "[" * 500 + "]" * 500,
    "@deep": "[" * 20_000 + "]" * 20_000,
    "@deep objects": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "@digits": "9" * 5_000,
    "@exponent": "1e999999",
    "@nothing": "",
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each value in a JSON object."""
    ways = [path] if path else []
    if isinstance(value, dict):
        for name in value:
            ways += places(value[name], (*path, name))
    elif isinstance(value, list) and value:
        ways += places(value[0], (*path, 0))
    return ways


def change_object(content: dict[str, Any], rng: random.Random) -> None:
    """Change one thing in a JSON object: a value, a name, or that it is there."""
    *way, last = rng.choice(places(content))
    owner: Any = content
    for step in way:
        owner = owner[step]
    match rng.randrange(6):
        case 0:
            del owner[last]
        case 1:
            owner["../x" if isinstance(owner, dict) else last] = deepcopy(rng.choice(VALUES))
        case 2:
            owner[last] = rng.choice(list(WRITTEN))
        case _:
            owner[last] = deepcopy(rng.choice(VALUES))


def dump(value: Any) -> bytes:
    """JSON, with what Python's own writer does not write in place of marks."""
    written = json.dumps(value)
    for mark, text in WRITTEN.items():
        written = written.replace(json.dumps(mark), text)
    return written.encode()


def mutated_config(content: bytes, rng: random.Random) -> bytes:
    config = json.loads(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        change_object(config, rng)
    return dump(config)


def mutated_arrays(content: bytes, rng: random.Random) -> bytes:
    """Other bytes, other lengths, or another header of a safetensors file."""
    kind = rng.randrange(6)
    changed = bytearray(content)
    length = struct.unpack("<Q", content[:8])[0]
    if kind == 0:
        for _ in range(rng.choice([1, 4, 50])):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed)
    if kind == 1:
        return bytes(changed[: rng.randrange(len(changed))])
    if kind == 2:
        changed[:8] = struct.pack("<Q", rng.choice([0, 1, length - 1, length + 1, 2**31, 2**63]))
        return bytes(changed)
    if kind == 3:  # numbers: of the type that arrays have, as large as can be
        start = 8 + length + 4 * rng.randrange((len(changed) - 8 - length) // 4)
        changed[start : start + 4] = struct.pack("<I", rng.choice([2**31 - 1, 2**31, 2**32 - 1, 0]))
        nothing_but = struct.pack("<f", rng.choice([float("nan"), float("inf"), -1.0, 1e30]))
        if rng.random() < 0.5:
            changed[start : start + 4] = nothing_but
        return bytes(changed)
    header = json.loads(content[8 : 8 + length])
    if kind == 4 and "__metadata__" in header:
        summary = json.loads(header["__metadata__"]["vocabulary"])
        change_object(summary, rng)
        header["__metadata__"]["vocabulary"] = dump(summary).decode()
    else:
        change_object(header, rng)
    head = dump(header)
    return struct.pack("<Q", len(head)) + head + content[8 + length :]


def seal(folder: Path) -> None:
    """Make the config say that this is its vocabulary, as who sends a model can: digests have no key."""
    with suppress(VocabularyError):
        vocabulary = Vocabulary.load(folder / "vocabulary.safetensors")
        config = json.loads((folder / "config.json").read_bytes())
        config["vocabulary"] = vocabulary.fingerprint
        (folder / "config.json").write_text(json.dumps(config))


def use(folder: Path) -> None:
    """All that can be done with a model."""
    model = load_model(folder, "cpu")
    model.infer(TEXTS[:3])
    model.infer(TEXTS)
    model.coverage(TEXTS)
    model.word_shares(TEXTS[0])
    assert model.fingerprint
    ParagraphVectors.load(folder, "cpu").transform(TEXTS[:2])
    save_model(model, folder.with_name("again"))
    shutil.rmtree(folder.with_name("again"))


def outcome(folder: Path) -> str:
    try:
        use(folder)
    except ModelError:
        return "refused"
    except BaseException as problem:
        line = traceback.extract_tb(problem.__traceback__)[-1]
        return f"{type(problem).__name__}: {problem} at {line.filename}:{line.lineno}"
    return "works"


def main(folder: Path, seed: int, count: int) -> None:
    rng = random.Random(seed)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message="[0-9]+ of [0-9]+ texts have no word")
    use(folder)  # so that what is imported on first use is there
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    ways: dict[str, Callable[[bytes, random.Random], bytes]] = {
        "config.json": mutated_config,
        "model.safetensors": mutated_arrays,
        "vocabulary.safetensors": mutated_arrays,
    }
    contents = {name: (folder / name).read_bytes() for name in ways}
    outcomes: dict[str, Counter[str]] = {}
    for name, mutate in ways.items():
        outcomes[name] = Counter()
        for _ in range(count):
            (folder / name).write_bytes(mutate(contents[name], rng))
            if name == "vocabulary.safetensors":
                seal(folder)
            outcomes[name][outcome(folder)] += 1
            for each, content in contents.items():
                (folder / each).write_bytes(content)
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

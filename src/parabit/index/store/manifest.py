"""The folder of an index: its manifest, the one file that says which of the others count, and its
lock.

A manifest may come from a stranger. `read_manifest` checks each value once: names are plain names
of the forms that this library gives, so nothing outside the folder can be named, and the arrays
have the types and shapes that the numbers of documents and bits ask for. What is removed from a
folder is only what has a name and a content of these forms, too.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from parabit import __version__
from parabit.choices import BACKENDS
from parabit.codes import bytes_per_code
from parabit.errors import IndexDamagedError, IndexFolderError, LockedError, folder_like
from parabit.index.store.damage import (
    REMEDY,
    damaged,
    need_folder,
    read_twice,
)
from parabit.index.store.schema import CODES, SERIALS, VECTORS
from parabit.model import is_model
from parabit.storage import is_regular, whole_file
from parabit.text.languages import LANGUAGES
from parabit.untrusted import (
    FLAG,
    OBJECT,
    Rule,
    UnexpectedError,
    check_object,
    list_of,
    one_of,
    optional,
    parse_object,
    read_regular,
    shown,
    text,
    whole,
)

Form: TypeAlias = tuple[str, list[int], int]  # of an array: its type, its shape, and its CRC-32

FORMAT = 1
MANIFEST, LOCK = "manifest.json", "lock"
MAP = "map.safetensors"  # drawn for the search page; nothing in the index depends on it

# A manifest has a few kilobytes, and more only if the documents have many thousand fields. In
# memory its JSON may take seventy times as much.
_LONGEST_MANIFEST = 4 << 20  # bytes
MOST_BITS = 1 << 16
_MOST_DIMENSIONS = 1 << 16
_MOST_DOCUMENTS = 1 << 40
_LONGEST_PATH = 4096  # characters, as on Linux
# What the manifest has as it is, in JSON and in Python.
_PLAIN = (
    "bits",
    "fingerprint",
    "dim",
    "backend",
    "keeps_text",
    "model",
    "generation",
    "token",
    "lineage",
    "documents",
    "last_serial",
)

_NUMBER = r"(\d{1,12})"  # of a generation
_HEX = "[0-9a-f]{8}"
WORDS_FORM = f"words-{_HEX}"
FILES_FORM = rf"files-{_HEX}\.json\.gz"
_SHA256 = "[0-9a-f]{64}"
# What tantivy calls the files of a word index, and what it leaves if it is killed.
_SEGMENT_FILE = r"[0-9a-f]{32}\.(?:fast|fieldnorm|idx|pos|store|term|\d+\.del)"
_TANTIVY_FILE = rf"meta\.json|\.managed\.json|\.tantivy-\w+\.lock|\.tmp\w+|{_SEGMENT_FILE}"


class _Made(NamedTuple):
    """Something that this library makes in the folder of an index."""

    name: re.Pattern[str]
    content: re.Pattern[str] | None = None  # the names of the files in a folder; None for a file


_MADE = [
    _Made(re.compile(f"generation-{_NUMBER}"), re.compile(r"[a-z]+(\.[a-z]+)*\.npy")),
    _Made(re.compile(f"log-{_NUMBER}")),
    _Made(
        re.compile(rf"model-{_NUMBER}|\.model-{_NUMBER}\.{_HEX}\.partial"),
        re.compile(r"config\.json|(model|vocabulary)\.safetensors|README\.md"),
    ),
    _Made(re.compile(rf"\.model-{_NUMBER}\.{_HEX}\.lock")),
    _Made(
        re.compile(WORDS_FORM),
        re.compile(rf"parabit\.json|\.parabit\.json\.{_HEX}\.partial|{_TANTIVY_FILE}"),
    ),
    _Made(re.compile(FILES_FORM)),
    _Made(re.compile(rf"\.({re.escape(MANIFEST)}|{FILES_FORM})\.{_HEX}\.partial")),
]
_ALWAYS = re.compile(rf"{re.escape(MANIFEST)}|{LOCK}|{re.escape(MAP)}")
_MAP_LEFTOVER = re.compile(rf"\.{re.escape(MAP)}\.{_HEX}\.(partial|lock)")


@dataclass(frozen=True)
class WordSettings:
    """How the words of an index are kept."""

    language: str | None  # whose words are stemmed; None does not stem
    fold_accents: bool
    folder: str  # of the word index; empty if an engine searches words


@dataclass(frozen=True)
class Home:
    """Where an index was made: its path, and the number that the file system gave its folder.

    A copy has another number, wherever it lies, and so has what somebody else has sent: they can
    write any path into it, but do not know the number of the folder that it is unpacked to. What an
    index says about places outside its folder is followed only at its home.
    """

    path: str
    inode: int


@dataclass(frozen=True)
class CorpusSettings:
    """Which files an index was made of, and how they are read."""

    paths: tuple[str, ...]  # absolute, or addresses
    options: Mapping[str, Any]  # of `ReadOptions`


@dataclass(frozen=True)
class FileTable:
    """The table of files that an index was made of."""

    name: str
    checksum: str  # SHA-256 of its bytes


@dataclass(frozen=True)
class Engine:
    """Where documents are kept if not in the folder."""

    name: str
    uri: str
    collection: str


@dataclass(frozen=True)
class Manifest:
    """What an index is, and which generation of it is current."""

    bits: int
    fingerprint: str = ""  # of the model that made the codes
    dim: int = 0  # of the vectors that are kept; 0 if none are
    backend: str = "flat"  # that is built beside the codes
    keeps_text: bool = True
    home: Home | None = None  # where a user of this machine made the index
    words: WordSettings | None = None  # None if no words are kept
    corpus: CorpusSettings | None = None  # None if it was not made of files
    files: FileTable | None = None
    engine: Engine | None = None
    model: str = ""  # the folder of the model, if it is kept
    generation: int = 1
    token: str = ""  # new for each generation, and in its log too, so that two cannot be mixed
    lineage: str = ""  # new for each index, and in its word index too, so that two cannot be mixed
    documents: int = 0  # of the generation
    last_serial: int = 0  # that a document was given; none is given twice, even after a deletion
    field_names: tuple[str, ...] = ()
    arrays: Mapping[str, Form] = field(default_factory=dict)

    @property
    def kinds(self) -> dict[str, np.dtype[Any]]:
        """The arrays that documents have a row in, in a generation, in the log and in memory."""
        kinds = {
            CODES: np.dtype(("u1", (bytes_per_code(self.bits),))),
            SERIALS: np.dtype("<u8"),
        }
        if self.dim:
            kinds[VECTORS] = np.dtype(("<f2", (self.dim,)))
        return kinds

    @property
    def folder(self) -> str:
        """The name of the folder with the arrays of the generation."""
        return f"generation-{self.generation}"

    @property
    def log(self) -> str:
        return f"log-{self.generation}"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make the index what the manifest says, in one durable step."""
    content = {"format": FORMAT, "parabit": __version__, **asdict(manifest)}
    # As it will be read: JSON makes lists of tuples, and the reader computes the digest of those.
    content = json.loads(json.dumps(content))
    text = json.dumps({**content, "digest": _digest(content)}, indent=2) + "\n"
    try:  # what could not be read again must not replace what can
        if len(text) > _LONGEST_MANIFEST:
            raise UnexpectedError(f"it would have more than {_LONGEST_MANIFEST:,} bytes")
        _checked(parse_object(json.dumps(content), has_paths=True))
    except UnexpectedError as problem:
        raise IndexFolderError(
            f"{folder / MANIFEST} cannot be written: {problem}", hint="nothing was changed"
        ) from problem
    with whole_file(folder / MANIFEST, durable=True, locked=False) as partial:
        partial.write_text(text)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index; anything wrong with it is an IndexFolderError."""
    return read_twice(lambda: _read_manifest(folder))


def _read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        content = parse_object(read_regular(path, _LONGEST_MANIFEST), has_paths=True)
        version = content.get("format")
        if not isinstance(version, int):
            raise UnexpectedError("it has no format")
        if version > FORMAT:
            raise _newer(folder, version)
        if content.pop("digest", "") != _digest(content):
            raise UnexpectedError("its digest does not fit")
        return _checked(content)
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise _no_index(folder) from problem
    except PermissionError as problem:
        raise IndexFolderError(
            f"{path} cannot be read: {problem.strerror}", hint="change its permissions"
        ) from problem
    except IndexFolderError:
        raise
    except (OSError, UnexpectedError) as problem:
        raise IndexDamagedError(
            f"{path} is damaged, or not that of an index: {problem}", hint=REMEDY
        ) from problem


def _newer(folder: Path, version: int) -> IndexFolderError:
    problem = f"{folder} has format {version}, this version of parabit reads up to {FORMAT}"
    return IndexFolderError(problem, hint="upgrade parabit")


def _no_index(folder: Path) -> IndexFolderError:
    if is_model(folder):
        return IndexFolderError(
            f"{folder} is a model, not an index",
            hint=f"index documents with `parabit index CORPUS -o INDEX --model {folder}`",
        )
    if is_regular(folder / LOCK):
        return IndexFolderError(f"{folder / MANIFEST} is missing", hint=REMEDY)
    hint = folder_like(folder) or "make one with `parabit index CORPUS -o FOLDER`"
    return IndexFolderError(f"no index in {folder}", hint)


def _formed(form: str, name: str) -> Rule:
    """A string that has the form of a regular expression."""
    pattern = re.compile(form)
    return Rule(lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None, name)


_SHAPE = list_of(whole())
_CHECKSUM = whole(0, (1 << 32) - 1)


def _is_form(value: Any) -> bool:
    """Whether something is the type, the shape and the checksum of an array; which, is for
    `Generation` to say.
    """
    if not isinstance(value, list) or len(value) != 3:
        return False
    kind, shape, checksum = value
    return isinstance(kind, str) and _SHAPE.holds(shape) and _CHECKSUM.holds(checksum)


_PATH = Rule(
    lambda value: isinstance(value, str) and 0 < len(value) <= _LONGEST_PATH and "\0" not in value,
    f"a path of at most {_LONGEST_PATH:,} characters",
)
_ANY_STRING = Rule(lambda value: isinstance(value, str), "a string")
_TOKEN = _formed("[0-9a-f]{16}", "16 hexadecimal digits")
_WORDS_RULES = {
    "language": optional(one_of(LANGUAGES)),
    "fold_accents": FLAG,
    "folder": _formed(f"({WORDS_FORM})?", "the name of a folder such as words-12ab34cd"),
}
_HOME_RULES = {"path": _PATH, "inode": whole(0, 1 << 64)}
# `ReadOptions`, which is made of the options, checks them.
_CORPUS_RULES = {"paths": list_of(_PATH), "options": OBJECT}
_FILES_RULES = {
    "name": _formed(FILES_FORM, "the name of a file such as files-12ab34cd.json.gz"),
    "checksum": _formed(_SHA256, "a SHA-256 checksum"),
}
_ENGINE_RULES = {"name": text(100), "uri": _ANY_STRING, "collection": _formed(r"\w+", "a name")}
_RULES = {
    "format": whole(1, FORMAT),
    "parabit": text(100),
    "bits": whole(1, MOST_BITS),
    "fingerprint": _formed(f"({_SHA256})?", "a digest"),
    "dim": whole(0, _MOST_DIMENSIONS),
    "backend": one_of(BACKENDS),
    "keeps_text": FLAG,
    "home": optional(OBJECT),
    "words": optional(OBJECT),
    "corpus": optional(OBJECT),
    "files": optional(OBJECT),
    "engine": optional(OBJECT),
    "model": _formed(f"(model-{_NUMBER})?", "the name of a folder such as model-1"),
    "generation": whole(1, 10**12 - 1),
    "token": _TOKEN,
    "lineage": _TOKEN,
    "documents": whole(0, _MOST_DOCUMENTS),
    "last_serial": whole(),
    "field_names": list_of(_ANY_STRING),
    "arrays": OBJECT,
}


def _checked(content: dict[str, Any]) -> Manifest:
    """The manifest that JSON describes; an UnexpectedError names a value that cannot be one."""
    check_object(content, _RULES)
    for name, rules in (
        ("home", _HOME_RULES),
        ("words", _WORDS_RULES),
        ("corpus", _CORPUS_RULES),
        ("files", _FILES_RULES),
        ("engine", _ENGINE_RULES),
    ):
        if content[name] is not None:
            check_object(content[name], rules, name)
    for name, form in content["arrays"].items():
        if not _is_form(form):
            raise UnexpectedError(f"arrays.{shown(name)} has no type, shape and checksum")
    words, corpus, engine = content["words"], content["corpus"], content["engine"]
    if words is not None and bool(words["folder"]) == (engine is not None):
        raise UnexpectedError("words are kept both in the folder and elsewhere, or nowhere")
    settings = {name: content[name] for name in _PLAIN}
    return Manifest(
        **settings,
        home=None if content["home"] is None else Home(**content["home"]),
        words=None if words is None else WordSettings(**words),
        corpus=None
        if corpus is None
        else CorpusSettings(tuple(corpus["paths"]), corpus["options"]),
        files=None if content["files"] is None else FileTable(**content["files"]),
        engine=None if engine is None else Engine(**engine),
        field_names=tuple(content["field_names"]),
        arrays={name: tuple(form) for name, form in content["arrays"].items()},
    )


def trust(folder: Path) -> None:
    """Make the folder that an index is in its home, so that what it says about other places is
    followed.
    """
    with writer_lock(folder):
        manifest = replace(read_manifest(folder), home=home_of(folder))
        if not is_at_home(manifest, folder):
            raise IndexFolderError(
                f"{folder} belongs to another user, who can change what it says",
                hint="copy it to a folder of your own",
            )
        write_manifest(folder, manifest)


def home_of(folder: Path, final_folder: Path | None = None) -> Home:
    """Where an index is, or will be when it is complete, and which folder that is."""
    return Home(os.path.realpath(final_folder or folder), folder.stat().st_ino)


def is_at_home(manifest: Manifest, folder: Path) -> bool:
    """Whether an index is in the folder that it was made in, and that folder belongs to this user."""
    try:
        is_same = manifest.home == home_of(folder)
        owner = folder.stat().st_uid
    except OSError:
        return False
    return is_same and (not hasattr(os, "geteuid") or owner == os.geteuid())


def is_index(folder: Path) -> bool:
    """Whether a folder holds an index, damaged or not, and nothing else that would be lost with it."""
    try:
        need_folder(folder)
        paths = list(folder.iterdir())
    except (OSError, IndexFolderError):
        return False
    if not {MANIFEST, LOCK} <= {path.name for path in paths}:
        return False
    return all(_is_known(path) for path in paths)


def _is_known(path: Path) -> bool:
    if _ALWAYS.fullmatch(path.name) or _MAP_LEFTOVER.fullmatch(path.name):
        return is_regular(path)
    return _is_made(path)


def _is_made(path: Path) -> bool:
    """Whether this library has made a file or folder of an index: by its name, type and content."""
    for made in _MADE:
        if made.name.fullmatch(path.name):
            return is_regular(path) if made.content is None else _holds(path, made.content)
    return False


def _holds(folder: Path, content: re.Pattern[str]) -> bool:
    """Whether a folder holds only files, and all of them have such names."""
    try:
        need_folder(folder)
        paths = list(folder.iterdir())
    except (OSError, IndexFolderError):
        return False
    return all(content.fullmatch(path.name) and is_regular(path) for path in paths)


def next_generation(folder: Path, current: int) -> int:
    """The next number that no generation, log or model in the folder has, not even half a one."""
    taken = set()
    for path in folder.iterdir():
        numbered = re.fullmatch(rf"\.?(?:generation|log|model)-{_NUMBER}(?:\..*)?", path.name)
        if numbered:
            taken.add(int(numbered[1]))
    number = current
    while number in taken:
        number += 1
    return number


def remove_leftovers(folder: Path) -> None:
    """Remove what old generations and killed writers have left; for the one who holds the lock.

    Nothing is removed that this library has not made: a file or folder of a user's in the index
    stays, and so does a folder that holds one.
    """
    manifest = read_manifest(folder)
    current = {manifest.folder, manifest.log, manifest.model}
    if manifest.words is not None:
        current.add(manifest.words.folder)
    if manifest.files is not None:
        current.add(manifest.files.name)
    for path in folder.iterdir():
        if path.name not in current:
            remove_made(path)


def remove_made(path: Path) -> None:
    """Remove a file or folder of an index as far as possible: Windows keeps what is in use.

    What this library has not made stays.
    """
    if not _is_made(path):
        return
    with suppress(OSError):
        if is_regular(path):
            path.unlink()
            return
        for file in path.iterdir():
            file.unlink()
        path.rmdir()


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """The right to change an index, in all processes of the machine.

    It is given back at the latest when the process ends.
    """
    from filelock import FileLock, Timeout  # here: reading needs no lock

    path = folder / LOCK
    if os.path.lexists(path) and not is_regular(path):  # opening it would empty what it points to
        raise damaged(path, "it is a link or no plain file")
    # The file is part of the index, so it stays; any thread may close the index.
    lock = FileLock(path, timeout=0, thread_local=False, preserve_lock_file=True)
    try:
        held = lock.acquire()
    except Timeout as problem:
        holder = b"unknown"
        with suppress(OSError), path.open("rb", buffering=0) as file:
            file.seek(1)  # Windows lets nobody read the first byte of a locked file
            holder = file.read(20).strip() or holder
        raise LockedError(
            f"{folder} is being written by process {holder.decode('ascii', 'replace')}",
            hint="wait until it is done",
        ) from problem
    except OSError as problem:
        raise IndexFolderError(
            f"{folder} cannot be written: {problem.strerror}",
            hint="search it as it is, or change its permissions",
        ) from problem
    with held:
        with suppress(OSError), path.open("r+b", buffering=0) as file:
            file.seek(1)
            file.write(f"{os.getpid():<20}\n".encode())
        yield


def bytes_in(folder: Path) -> int:
    """How much room a folder takes; a writer may remove files and folders meanwhile."""
    size = 0
    for inner, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                about = Path(inner, name).lstat()
                size += about.st_size if stat.S_ISREG(about.st_mode) else 0
    return size


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

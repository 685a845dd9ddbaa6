"""Corpora from files: which files a path stands for, and the documents in them."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from heapq import heappop, heappush
from itertools import chain
from pathlib import Path
from typing import Any, cast

from parabit.corpus.datasets import DATASETS, open_dataset
from parabit.corpus.document import Corpus, Document, Skipped, Tally, as_corpus
from parabit.corpus.pages import READABLE
from parabit.corpus.readers import PagesAhead, ReadOptions, format_of, read
from parabit.corpus.sources import (
    STANDARD_INPUT,
    NoFilesError,
    PipeSource,
    Source,
    SourceCorpus,
    in_utf_8,
    is_address,
    is_endless_device,
    remote_sources,
    why,
)
from parabit.errors import CorpusError, UnreadableError, did_you_mean
from parabit.progress import Report, silent

_ARCHIVE = re.compile(
    r"\.(?:tar\.\w+|tar|tgz|tbz2?|txz|tzst|zip|7z|rar|xz|lzma|lz4|cab|iso|jar|war|whl|egg|apk|deb|rpm|dmg)$",
    re.I,
)
# Not documents of anybody's: tools keep them. Spark leaves marks beside its shards.
_OTHERS = frozenset(("node_modules", "__pycache__", "_SUCCESS", "_metadata", "_common_metadata"))
# An index and a model have these; people keep them beside their documents.
INDEX_FILES, _MODEL_FILES = (
    {"manifest.json", "lock"},
    {"model.safetensors", "vocabulary.safetensors"},
)

_LINKED = "link to a folder that is read already"


class FileCorpus(SourceCorpus):
    """The documents of files: text, Markdown, HTML and PDF files are one each, others have one per record."""

    def __init__(
        self,
        sources: Sequence[Source],
        options: ReadOptions,
        name: str | None = None,
        unread: Sequence[Skipped] = (),
        single: bool = False,
        roots: Sequence[str] = (),
    ) -> None:
        super().__init__(sources)
        self.roots = (
            roots  # the paths and addresses that were given; none for a pipe and for a shard
        )
        self.options = options
        self._name = name  # None for a shard of another corpus, which may be empty
        self.unread = unread  # files that were found and cannot be read, as their names already say
        self._single = single  # one file was asked for: that it cannot be read is an error

    @property
    def place(self) -> str:
        line = self.source.line
        return self.source.id if line is None else f"{self.source.id}:{line}"

    def shards(self, but: Collection[str] = ()) -> list["FileCorpus"]:
        """Each file as a corpus of its own, which may be empty, for other processes; those in `but` are left out."""
        return [FileCorpus([one], self.options) for one in self.sources if one.id not in but]

    def __iter__(self) -> Iterator[Document]:
        skipped = self.skipped = Tally(self.unread)
        notes = self.notes = Tally()
        read_any, hint = False, ""
        pages = PagesAhead(self.sources, self.options)
        for source in self._each_source():
            source.note = ""
            for found in read(source, self.options, pages):
                if isinstance(found, Document):
                    read_any = True
                    yield found
                elif self.options.strict or (found.line is None and self._single):
                    raise found
                else:
                    hint = hint or found.hint
                    skipped.add(
                        source.id if found.line is None else f"{source.id}:{found.line}",
                        found.reason,
                    )
            if source.note:
                notes.add(source.id, source.note)
        if not read_any and self._name is not None:
            raise _nothing(self._name, skipped, hint)


def open_corpus(
    name: str | Path | Sequence[str | Path] | Iterable[Document | Mapping[str, Any]],
    options: ReadOptions | None = None,
    report: Report = silent,
) -> Corpus:
    """Open a corpus: a data set and split, a path or several, an address such as s3://…, or `-` for standard input.

    A data set's name comes before a path; write `./20newsgroups` for a folder that has such a name. Ids of documents
    are paths below the folder that was given. If two of several folders have the same path in them, the names of the
    folders come before all ids. Documents and dictionaries that are already in Python are taken as they are.

    Example:
        >>> corpus = open_corpus("docstrings")
        >>> next(iter(corpus)) == next(iter(corpus))
        True
    """
    names = [name] if isinstance(name, str | Path) else name
    if not (isinstance(names, Sequence) and all(isinstance(one, str | Path) for one in names)):
        return as_corpus(cast(Iterable[Document], name))
    options = options or ReadOptions()
    if not names:
        raise CorpusError("no path was given", hint="give a file or a folder")
    for one in names:
        if isinstance(one, str) and one.partition("/")[0] in DATASETS:
            if len(names) > 1:
                raise CorpusError(
                    f"{one} is a data set", hint=f"read it alone, or write ./{one} for a path"
                )
            defaults = ReadOptions()
            if replace(options, strict=False, limits=defaults.limits) != defaults:
                hint = f"options such as --format and --text-field are for files; write ./{one} for a path"
                raise CorpusError(f"{one} is a data set and read in its own way", hint)
            return open_dataset(one, report)
    return _open_files(cast(Sequence[str | Path], names), options)


def _open_files(paths: Sequence[str | Path], options: ReadOptions) -> FileCorpus:
    name = ", ".join(map(str, paths))
    unread: list[Skipped] = []
    try:
        found = [_files_of(path, options, unread) for path in paths]
    except PermissionError as problem:
        raise UnreadableError(str(problem.filename), "no permission") from problem
    if len(paths) > 1:
        if any(isinstance(source, PipeSource) for source in chain.from_iterable(found)):
            raise CorpusError("standard input or a pipe beside other paths", hint="read it alone")
        _set_apart(paths, found)
    ids = [source.id for source in found[0]]
    single = (
        len(paths) == 1 and ids == [in_utf_8(Path(paths[0]).name)] and not Path(paths[0]).is_dir()
    )
    misfits = {
        source: _misfit(source, None if single else options.format)
        for source in chain.from_iterable(found)
    }
    sources = [source for source, reason in misfits.items() if not reason]
    unread += [Skipped(source.id, reason) for source, reason in misfits.items() if reason]
    unread.sort()
    lost = [one for one in unread if one.reason != _LINKED]
    if not sources and not lost and (options.include or options.exclude):
        raise NoFilesError(f"no files in {name}", hint="no file matches --include and --exclude")
    if lost and (options.strict or single):
        raise UnreadableError(
            *lost[0], hint="unpack it first" if lost[0].reason == "archive" else ""
        )
    if not sources:
        raise _nothing(name, Tally(unread), f"parabit reads {READABLE}")
    roots = [] if isinstance(sources[0], PipeSource) else [os.fspath(path) for path in paths]
    return FileCorpus(sources, options, name, unread, single, roots)


def _files_of(path: str | Path, options: ReadOptions, unread: list[Skipped]) -> list[Source]:
    """The files that a path stands for, in the order of their ids."""
    if is_address(path):
        remote = remote_sources(str(path))
        shown = remote if len(remote) == 1 else [one for one in remote if _is_shown(one.id)]
        sources: list[Source] = [one for one in shown if _is_chosen(one.id, options)]
    elif Path(path).is_dir():
        sources = list(_walk(Path(path), options, unread))
    elif Path(path).is_file():
        sources = (
            [Source(path, id=in_utf_8(Path(path).name))]
            if _is_chosen(Path(path).name, options)
            else []
        )
    elif str(path) == "-" or Path(path).exists():
        if str(path) not in STANDARD_INPUT and is_endless_device(Path(path).stat()):
            raise UnreadableError(str(path), "not a file: a device", "give a file or a folder")
        return [PipeSource(Path(path))]
    else:
        hint = did_you_mean(
            str(path), [name + split for name in DATASETS for split in ("", "/train", "/test")]
        )
        raise NoFilesError(
            f"no such file or folder: {path}",
            hint or "`parabit datasets` lists the data sets by name",
        )
    if not sources and not unread and not (options.include or options.exclude):
        raise NoFilesError(f"no files in {path}", hint="hidden files do not count")
    return sorted(sources, key=lambda source: source.id.split("/"))


def _walk(root: Path, options: ReadOptions, unread: list[Skipped]) -> Iterator[Source]:
    """All files below a folder. Each folder is entered once, and by its own path before those of links to it."""
    entered: set[tuple[int, int]] = set()
    waiting = [(False, "", root)]
    while waiting:
        _, below, folder = heappop(waiting)
        try:
            about = folder.stat()
            with os.scandir(folder) as listed:
                entries = list(listed)
        except OSError as problem:
            unread.append(Skipped(in_utf_8(below) or "./", why(problem)))
            continue
        if (about.st_dev, about.st_ino) in entered:
            unread.append(Skipped(in_utf_8(below), _LINKED))
            continue
        entered.add((about.st_dev, about.st_ino))
        names = {entry.name for entry in entries}
        if names >= INDEX_FILES or names >= _MODEL_FILES:
            continue
        for entry in entries:
            id = in_utf_8(below + entry.name)
            kind = _kind_of(entry)
            if not _is_shown(entry.name) or not _is_chosen(id, options, kind != "folder"):
                continue
            if kind == "folder":
                heappush(waiting, (entry.is_symlink(), f"{below}{entry.name}/", Path(entry.path)))
            elif kind == "file":
                yield Source(entry.path, id=id, label=in_utf_8(below.rstrip("/")))
            else:
                unread.append(Skipped(id, kind))


def _kind_of(entry: "os.DirEntry[str]") -> str:
    try:
        kind = "folder" if entry.is_dir() else "file" if entry.is_file() else "not a file"
    except OSError:  # links that lead round in a circle
        kind = "not a file"
    return "broken link" if kind == "not a file" and entry.is_symlink() else kind


def _is_shown(path: str) -> bool:
    """Whether no part of a path is hidden, or belongs to a tool."""
    return not any(part.startswith(".") or part in _OTHERS for part in path.split("/"))


def _is_chosen(path: str, options: ReadOptions, is_file: bool = True) -> bool:
    """Whether the patterns choose a file, or let a folder be read."""
    parts = path.split("/")
    if (
        is_file
        and options.include
        and not any(_matches(parts, _pattern(glob)) for glob in options.include)
    ):
        return False
    return not any(_matches(parts, _pattern(glob, "**")) for glob in options.exclude)


@cache
def _pattern(glob: str, *below: str) -> Sequence[str]:
    """The parts of a pattern. One without a slash matches the name in any folder."""
    parts = glob.removeprefix("./").rstrip("/").split("/")
    return (*(() if len(parts) > 1 else ("**",)), *parts, *below)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a pattern stands for all parts of a path; `**` stands for any number of them."""
    # The numbers of first parts that the pattern up to here can stand for.
    lengths = {0}
    for glob in pattern:
        if glob == "**":
            lengths = set(range(min(lengths), len(parts) + 1))
        else:
            lengths = {
                length + 1
                for length in lengths
                if length < len(parts) and fnmatchcase(parts[length], glob)
            }
        if not lengths:
            return False
    return len(parts) in lengths


def _set_apart(paths: Sequence[str | Path], found: list[list[Source]]) -> None:
    """Keep each file of several paths once; if two have the same id, put the names of the paths before all ids."""
    seen: set[Any] = set()
    for sources in found:
        sources[:] = [source for source in sources if source.place not in seen]
        seen.update(source.place for source in sources)
    ids = [source.id for source in chain.from_iterable(found)]
    if len({*ids}) < len(ids):
        roots = [Path(path) if is_address(path) else Path(path).resolve() for path in paths]
        roots = [root.parent if root.is_file() else root for root in roots]
        names = [
            root.name if len({*roots}) == len({root.name for root in roots}) else str(root)
            for root in roots
        ]
        for name, sources in zip(names, found, strict=True):
            for source in sources:
                source.id = f"{in_utf_8(name)}/{source.id}"


def _misfit(source: Source, format: str | None) -> str | None:
    """Why a file of this name is not read."""
    if _ARCHIVE.search(source.id):
        return "archive"
    known = format_of(source.id)
    fits = format is None or known in (None, "text", format) or {known, format} == {"json", "jsonl"}
    return None if fits else f"another format: {known}"


def _nothing(name: str, skipped: Tally, hint: str) -> NoFilesError:
    first = next(iter(skipped))
    reasons = f"{len(skipped):,} skipped ({skipped}), the first is {first.place}: {first.reason}"
    return NoFilesError(f"no documents in {name}: {reasons}", hint=hint)

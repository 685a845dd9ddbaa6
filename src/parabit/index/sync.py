"""Bringing an index up to date with its corpus: what is new is added, what changed replaced, what
is gone deleted.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parabit.corpus import Corpus, Document, ReadOptions, open_corpus
from parabit.corpus.document import Skipped, Tally
from parabit.corpus.files import FileCorpus
from parabit.corpus.sources import NoFilesError, may_pass
from parabit.errors import CorpusError, UnknownOriginError
from parabit.index.corpus_files import (
    TEXT_DIGEST,
    Files,
    NotedCorpus,
    digest_of,
    paths_beside,
    read_files,
    remembered_options,
    replace_files,
    settings_of,
    unsure,
    versions_of,
)
from parabit.index.documents import stored_fields
from parabit.index.retrain import retrain_reason
from parabit.index.store import CorpusSettings
from parabit.index.store.manifest import home_of, is_at_home
from parabit.index.store.schema import TEXT
from parabit.index.writing import Written, noted_progress, put_encoded, there
from parabit.progress import Progress, Report

if TYPE_CHECKING:
    from parabit.index.index import Index

_AT_ONCE = 2048  # documents that are written together
_EMPTY = ("empty file", "no text", "no records")  # such a file has been read, and has no documents
_BROKEN_LINK = "broken link"
_CHANGED = "changed while it was read: sync again"


@dataclass
class Synced:
    """What a sync did, or would do: the ids of documents, and how many did not change."""

    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)  # old and new id
    deleted: list[str] = field(default_factory=list)
    unchanged: int = 0
    left_out: int = 0  # documents with nothing to be found by
    kept: list[Skipped] = field(
        default_factory=list
    )  # files that cannot be read now; their documents stay
    skipped: Tally = field(default_factory=Tally)  # other files and records that cannot be read
    notes: Tally = field(default_factory=Tally)
    retrain: str = ""  # why the model should be learned again
    roots: list[str] = field(default_factory=list)  # the files and folders

    @property
    def changed(self) -> int:
        return len(self.added) + len(self.replaced) + len(self.renamed) + len(self.deleted)


def sync(index: "Index", given: Any, dry_run: bool, allow_empty: bool, report: Report) -> Synced:
    """Bring an index up to date; see `Index.sync`."""
    store = index._store
    settings = store.manifest.corpus
    corpus = _corpus_of(index, given, settings, allow_empty)
    result = Synced(roots=list(corpus.roots))
    known = read_files(store.folder, store.manifest)
    # Files that stay as they were known, and those that were read, as they are now and as they were
    # known.
    stay, after = _read_changed(corpus, known, result, report)
    before = {name: file for name, file in known.items() if name not in stay}
    _compare(index, stay, before, after, result)
    final = stay | after
    if result.deleted and not allow_empty and not any(file.documents for file in final.values()):
        raise _all_gone(index, f"no document is left in {', '.join(result.roots)}")
    if given is not None and corpus.roots:
        settings = settings_of(corpus)
    if dry_run or settings is None:
        return result
    learned = {"corpus": settings, "home": home_of(store.folder)}
    is_new = settings != store.manifest.corpus or learned["home"] != store.manifest.home
    with noted_progress("the same command goes on") as written:
        if result.changed:
            replace_files(store, stay | unsure(before, after), **learned)
            final |= unsure(_write(index, corpus, after, result, written, report))
        if result.changed or final != known or is_new:
            replace_files(store, final, **learned)
    if result.changed:
        result.retrain = retrain_reason(index)
    return result


def _corpus_of(
    index: "Index", given: Any, settings: CorpusSettings | None, allow_empty: bool
) -> FileCorpus:
    if given is None and settings is None:
        raise CorpusError(
            f"{index.folder} does not know its corpus: it was made of standard input, a data set or Python objects",
            hint="name a folder or files to sync with, or add and delete documents by `parabit add` and `delete`",
        )
    corpus = given
    if not isinstance(given, Corpus):
        options = None if settings is None else remembered_options(settings)
        if given is not None:
            paths = [str(given)] if isinstance(given, str | Path) else [*map(str, given)]
        else:
            assert settings is not None
            manifest = index._store.manifest
            if not is_at_home(manifest, index.folder):
                paths = paths_beside(settings, manifest.home, index.folder)
                raise UnknownOriginError(index.folder, paths)
            paths = list(settings.paths)
        if allow_empty:
            paths = [path for path in paths if _has_files(path, options)]
            if not paths:
                return FileCorpus([], ReadOptions())
        try:
            corpus = open_corpus(paths, options)
        except NoFilesError as problem:
            raise _all_gone(index, problem.problem) from problem
    if not isinstance(corpus, FileCorpus) or not corpus.roots:
        raise CorpusError(
            "an index is synced with files and folders",
            hint="add other documents with `parabit add`",
        )
    return corpus


def _has_files(path: str | Path, options: ReadOptions | None) -> bool:
    try:
        return bool(open_corpus([path], options))
    except NoFilesError:
        return False


def _all_gone(index: "Index", problem: str) -> CorpusError:
    return CorpusError(
        f"{problem}; nothing was changed",
        hint=f"is it on a disk that is not there? To delete what is gone of the {len(index):,} documents all the same, "
        "add --allow-empty",
    )


def _read_changed(
    corpus: FileCorpus, known: Files, result: Synced, report: Report
) -> tuple[Files, Files]:
    """Compare the files with those of the last sync: those that did not change, and the others as
    they are now.
    """
    versions = versions_of(corpus)
    stay = {
        name: file
        for name, file in known.items()
        if file.version and file.version == versions.get(name)
    }
    after: Files = {}
    result.skipped = Tally(corpus.unread)
    result.kept = _out_of_reach(corpus, [name for name in known if name not in versions])
    shards = corpus.shards(but=stay)
    for done, shard in enumerate(shards):
        report(Progress("reading files", done, "files", done / len(shards)))
        name, ids, noted = shard.sources[0].id, set[str](), NotedCorpus(shard)
        for document in noted:
            if document.id in ids:
                raise _twice(document.id, name, name)
            ids.add(document.id)
        after |= noted.files
        for place, reason in shard.notes:
            result.notes.add(place, reason)
        for place, reason in shard.skipped:
            if (
                place == name
                and name in known
                and known[name].documents
                and not reason.startswith(_EMPTY)
            ):
                result.kept.append(Skipped(place, reason))
            else:
                result.skipped.add(place, reason)
    for name, _ in result.kept:
        stay[name] = known[name]._replace(version="")
        after.pop(name, None)
    return stay, after


def _twice(identity: str, one: str, other: str) -> CorpusError:
    return CorpusError(
        f"two documents have the id {identity!r}: in {one} and in {other}; nothing was changed",
        hint="rename one, or name records by path and line with --id-field ''",
    )


def _out_of_reach(corpus: FileCorpus, missing: Sequence[str]) -> list[Skipped]:
    """Files that are not seen now, but may be there: in a folder that cannot be listed, or behind a
    broken link.
    """
    folders = {
        place: reason for place, reason in corpus.unread if place.endswith("/") and may_pass(reason)
    }
    links = {place for place, reason in corpus.unread if reason == _BROKEN_LINK}
    # Places that were not read are below their root; which one that is, is not known if there are
    # several.
    anywhere = next(iter(folders.values()), "") if len(corpus.roots) > 1 else folders.get("./", "")
    kept = []
    for file in missing:
        reason = anywhere or next(
            (folders[folder] for folder in folders if file.startswith(folder)), ""
        )
        if reason or file in links:
            kept.append(Skipped(file, reason or _BROKEN_LINK))
    return kept


def _in_store(index: "Index", ids: Sequence[str]) -> dict[str, str]:
    """The digests of some documents of an index, as far as its texts tell."""
    digests = dict[str, str]()
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        for identity, stored in zip(some, index.stored(some), strict=True):
            digests[identity] = (
                digest_of({**stored.fields, TEXT: stored.text}) if index.keeps_text else ""
            )
    return digests


def _compare(index: "Index", stay: Files, before: Files, after: Files, result: Synced) -> None:
    owner = dict[str, str]()
    for name, file in (stay | after).items():
        for identity in file.documents:
            if owner.setdefault(identity, name) != name:
                raise _twice(identity, owner[identity], name)
    old, now = _digests(before), _digests(after)
    changed = [identity for identity, digest in now.items() if digest != old.get(identity)]
    held = dict.fromkeys(there(index, changed))
    for identity in changed:
        if identity not in held:
            old.pop(identity, None)  # the file had it, but the index does not
    old |= _in_store(index, [identity for identity in held if not old.get(identity)])
    gone: dict[
        str, list[str]
    ] = {}  # the ids of documents that are not in the files any more, by their texts
    for identity in there(index, [identity for identity in old if identity not in owner]):
        gone.setdefault(old[identity][:TEXT_DIGEST] or identity, []).append(identity)
    for identity, digest in now.items():
        if digest == old.get(identity):
            result.unchanged += 1
        elif identity in old:
            result.replaced.append(identity)
        elif same := gone.get(digest[:TEXT_DIGEST]):
            result.renamed.append((same.pop(0), identity))
        else:
            result.added.append(identity)
    result.unchanged += sum(len(file.documents) for file in stay.values())
    result.deleted = [identity for ids in gone.values() for identity in ids]


def _digests(files: Files) -> dict[str, str]:
    return {
        identity: digest for file in files.values() for identity, digest in file.documents.items()
    }


def _write(
    index: "Index",
    corpus: FileCorpus,
    files: Files,
    result: Synced,
    written: Written,
    report: Report,
) -> Files:
    """Change the documents of the index; returns the files that have changed in the meantime."""
    ids = [*result.added, *result.replaced, *(new for _, new in result.renamed)]
    documents = _Chosen(corpus, files, set(ids))
    put_encoded(index, documents, written, report)
    replaced = [old for old, new in result.renamed if new not in documents.waiting]
    index.delete(there(index, [*result.deleted, *replaced]))
    result.left_out, result.added = written.left_out, there(index, result.added)
    changed = {
        name: file
        for name, file in files.items()
        if not documents.waiting.keys().isdisjoint(file.documents)
    }
    result.kept += [Skipped(name, _CHANGED) for name in changed]
    return changed


class _Chosen(Corpus):
    """Some documents of a corpus, if they are still what they were; `waiting` are those that were
    not read yet.
    """

    def __init__(self, corpus: FileCorpus, files: Files, ids: Collection[str]) -> None:
        self.waiting = {
            identity: digest for identity, digest in _digests(files).items() if identity in ids
        }
        self._digests = dict(self.waiting)
        chosen = {
            name
            for name, file in files.items()
            if not self.waiting.keys().isdisjoint(file.documents)
        }
        self._corpus = FileCorpus(
            [one for one in corpus.sources if one.id in chosen], corpus.options
        )

    def __iter__(self) -> Iterator[Document]:
        for document in self._corpus:
            if self._digests.get(document.id) == digest_of(stored_fields(document, text=True)):
                self.waiting.pop(document.id, None)
                yield document

    @property
    def share_read(self) -> float | None:
        return self._corpus.share_read

"""Bringing an index up to date with its corpus: what is new is added, what changed replaced, what is gone deleted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from parabit.corpus import Corpus, Document, Skipped, Tally, open_corpus
from parabit.corpus.files import FileCorpus
from parabit.corpus.sources import NoFilesError, may_pass
from parabit.errors import CorpusError, IndexFolderError
from parabit.index.corpus_files import (
    Files,
    Notes,
    digests,
    forget_versions,
    memory_of,
    open_remembered,
    remembered_options,
    remembered_paths,
    version_table,
    versions_of,
)
from parabit.index.documents import Kept, batches_of, stored_fields
from parabit.index.store import VECTORS, Batch, Snapshot, Store
from parabit.progress import Progress, Report

if TYPE_CHECKING:
    from parabit.index.index import Index

_AT_ONCE = 2048  # documents that are written together
_EMPTY = ("empty file", "no text", "no records")  # such a file has been read, and has no documents
_BROKEN_LINK = "broken link"
_CHANGED = "changed while it was read: sync again"
# Advice to retrain: see `retrain_reason`.
_GROWTH, _UNKNOWN, _LOOKED_AT = 1.5, 0.15, 1000


@dataclass
class Synced:
    """What a sync did, or would do: the ids of documents, and how many did not change."""

    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)  # old and new id
    deleted: list[str] = field(default_factory=list)
    unchanged: int = 0
    left_out: int = 0  # documents with nothing to be found by
    kept: list[Skipped] = field(default_factory=list)  # files that cannot be read now; their documents stay
    skipped: Tally = field(default_factory=Tally)  # other files and records that cannot be read
    notes: Tally = field(default_factory=Tally)
    retrain: str = ""  # why the model should be learned again
    roots: list[str] = field(default_factory=list)  # the files and folders

    @property
    def changed(self) -> int:
        """How many documents changed."""
        return len(self.added) + len(self.replaced) + len(self.renamed) + len(self.deleted)


@dataclass
class _Plan:
    """What is to be done."""

    corpus: FileCorpus | None  # None if nothing is left of it
    stay: Files  # files that were not read, and their documents
    before: Files  # the other files of the last sync, and their documents
    after: Files  # the files that were read, and their documents
    reuse: dict[str, str]  # ids of new or changed documents, and of old ones with the same text
    result: Synced


def sync(index: "Index", given: Any, dry_run: bool, allow_empty: bool, report: Report) -> Synced:
    """Bring an index up to date; see `Index.sync`."""
    memory: dict[str, Any] | None = index._store.meta.get("corpus")
    corpus = _corpus_of(index, given, memory, allow_empty)
    plan = _plan(index, corpus, memory, report)
    plan.result.roots = list(corpus.roots) if corpus else []
    if not allow_empty and plan.result.deleted and not len(plan.stay.documents) + len(plan.after.documents):
        raise _all_gone(index, f"no document is left in {', '.join(plan.result.roots)}")
    if dry_run:
        return plan.result
    if given is not None and corpus is not None:
        new = memory_of(corpus, index.folder, memory["files"] if memory else None)
        if memory is None:  # from now on a missing table means that all documents are the corpus'
            plan.before.unsure().write(index.folder / new["files"])
        index._store.change_meta(corpus=new)
        memory = new
    if memory is not None:
        _apply(index, plan, index.folder / memory["files"], report)
    if plan.result.changed:
        plan.result.retrain = retrain_reason(index)
    return plan.result


def _corpus_of(index: "Index", given: Any, memory: Mapping[str, Any] | None, allow_empty: bool) -> FileCorpus | None:
    """The corpus to compare with; None if it is empty, and may be."""
    if given is None and memory is None:
        raise CorpusError(
            f"{index.folder} does not know its corpus: it was made of standard input, a data set or Python objects",
            hint="name a folder or files to sync with, or add and delete documents by `parabit add` and `delete`",
        )
    try:
        if given is None and memory is not None:
            return open_remembered(memory, index.folder)
        corpus = given
        if not isinstance(given, Corpus):
            options = (remembered_options(memory), memory["format"]) if memory else ()
            corpus = open_corpus(given, *options)
    except NoFilesError as problem:
        if not allow_empty:
            raise _all_gone(index, problem.problem) from problem
        paths = [given] if isinstance(given, str | Path) else given or remembered_paths(memory or {}, index.folder)
        return _corpus_of(index, left, memory, True) if (left := [path for path in paths if _is_there(path)]) else None
    if not isinstance(corpus, FileCorpus) or not corpus.roots:
        raise CorpusError("an index is synced with files and folders", hint="add other documents with `parabit add`")
    return corpus


def _is_there(path: str | Path) -> bool:
    try:
        return bool(open_corpus([path]))
    except NoFilesError:
        return False


def _all_gone(index: "Index", problem: str) -> CorpusError:
    return CorpusError(
        f"{problem}; nothing was changed",
        hint=f"is it on a disk that is not there? To delete what is gone of the {len(index):,} documents all the same, "
        "add --allow-empty",
    )


def _plan(index: "Index", corpus: FileCorpus | None, memory: Mapping[str, Any] | None, report: Report) -> _Plan:
    """Compare the files with those of the last sync, and read what may have changed."""
    old = Files.read(index.folder / memory["files"]) if memory else None
    known = dict(old.versions.iter_rows()) if old else {}
    versions = versions_of(corpus) if corpus else {}
    result, notes = Synced(), Notes()
    stay = {file for file, version in versions.items() if version and known.get(file) == version}
    shards = corpus.shards(but=stay) if corpus else []
    if corpus is not None:
        result.skipped = Tally(corpus.unread)
        result.kept = _out_of_reach(corpus, [file for file in known if file not in versions])
    for done, shard in enumerate(shards):
        report(Progress("reading files", done, "files", done / len(shards)))
        file = shard.sources[0].id
        for document in shard:
            notes.add(file, document)
        for place, reason in shard.notes:
            result.notes.add(place, reason)
        for place, reason in shard.skipped:
            if place == file and file in known and not reason.startswith(_EMPTY):
                result.kept.append(Skipped(place, reason))
            else:
                result.skipped.add(place, reason)
            if place == file and may_pass(reason):
                versions[file] = ""
    kept = {place for place, _ in result.kept}
    staying = stay | kept
    read = notes.table().filter(~pl.col("file").is_in(kept))
    after = Files(version_table({file: versions[file] for file in versions if file not in staying}), read)
    if old is None:
        before = _of_store(index, None if memory else read["id"])
        return _compared(index, _Plan(corpus, before.without(before.versions["file"]), before, after, {}, result))
    rest = old.without([file for file in known if file not in staying])
    rest = Files(forget_versions(rest.versions, kept), rest.documents)
    return _compared(index, _Plan(corpus, rest, old.without(staying), after, {}, result))


def _out_of_reach(corpus: FileCorpus, missing: Sequence[str]) -> list[Skipped]:
    """Files that are not seen now, but may be there: in a folder that cannot be listed, or behind a broken link."""
    folders = {place: reason for place, reason in corpus.unread if place.endswith("/") and may_pass(reason)}
    links = {place for place, reason in corpus.unread if reason == _BROKEN_LINK}
    # Places that were not read are below their root; which one that is, is not known if there are several.
    anywhere = next(iter(folders.values()), "") if len(corpus.roots) > 1 else folders.get("./", "")
    kept = []
    for file in missing:
        reason = anywhere or next((folders[folder] for folder in folders if file.startswith(folder)), "")
        if reason or file in links:
            kept.append(Skipped(file, reason or _BROKEN_LINK))
    return kept


def _of_store(index: "Index", ids: pl.Series | None) -> Files:
    """The documents that the index holds, all or those with some ids, if nothing else is remembered of them."""
    view, notes = index._store.snapshot(), Notes()
    if ids is None and not isinstance(index._store, Store):  # too many to ask for
        raise IndexFolderError(f"the list of files in {index.folder} is missing or damaged", hint="build it again")
    rows = (
        view.rows_of(ids.to_list())
        if ids is not None
        else np.concatenate([np.zeros(0, np.int64), *view.blocks(_AT_ONCE)])
    )
    rows = rows[rows >= 0]
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        for identity, fields in zip(view.ids_of(some), view.fields_of(some), strict=True):
            if isinstance(identity, str):  # those of files are
                notes.add_digests("", identity, digests(fields) if index.keeps_text else (None, None))
    return Files(version_table({"": ""}), notes.table())


def _compared(index: "Index", plan: _Plan) -> _Plan:
    """Fill in what there is to do."""
    before, after, result = plan.before.documents, plan.after.documents, plan.result
    _need_unique(pl.concat([plan.stay.documents, after]))
    same = (pl.col("text") == pl.col("text_old")) & (pl.col("rest") == pl.col("rest_old"))
    both = after.join(before, on="id", how="left", suffix="_old", maintain_order="left").with_columns(
        there=pl.col("file_old").is_not_null(), same=same.fill_null(value=False)
    )
    added, changed = both.filter(~pl.col("there")), both.filter("there", ~pl.col("same"))
    deleted = before.join(after, on="id", how="anti", maintain_order="left")
    nth = pl.int_range(pl.len()).over("text")  # of several with one text, the first is the first's new name
    pairs = added.select("id", "text", nth=nth).join(
        deleted.select("text", old="id", nth=nth), on=["text", "nth"], maintain_order="left"
    )
    renames = list(zip(pairs["old"], pairs["id"], strict=True))
    there = set(_there(index, pairs["old"].to_list()))
    result.renamed = [(old, new) for old, new in renames if old in there]
    new = {new for _, new in result.renamed}
    old = {old for old, _ in result.renamed}
    result.added = [identity for identity in added["id"] if identity not in new]
    result.deleted = [identity for identity in deleted["id"] if identity not in old]
    result.replaced = changed["id"].to_list()
    result.unchanged = len(plan.stay.documents) + int(both["same"].sum())
    plan.reuse = {new: old for old, new in result.renamed}
    recoded = changed.filter(pl.col("text") == pl.col("text_old"))["id"].to_list()
    plan.reuse |= {identity: identity for identity in _there(index, recoded)}
    return plan


def _need_unique(documents: pl.DataFrame) -> None:
    again = documents.filter(pl.col("id").is_duplicated()).head(1)
    for identity in again["id"]:
        files = documents.filter(pl.col("id") == identity)["file"].to_list()
        raise CorpusError(
            f"two documents have the id {identity!r}: in {files[0]} and in {files[1]}; nothing was changed",
            hint="rename one, or name records by path and line with --id-field ''",
        )


def _apply(index: "Index", plan: _Plan, table: Path, report: Report) -> None:
    result, after = plan.result, plan.after
    if result.changed:
        plan.stay.with_others(plan.before.unsure()).with_others(after.unsure()).write(table)
        lost = _write(index, plan, report) if plan.corpus else set()
        index.delete(_there(index, result.deleted))
        if lost:
            files = after.documents.filter(pl.col("id").is_in(lost))["file"].unique().to_list()
            result.kept += [Skipped(file, _CHANGED) for file in sorted(files)]
            others = set(after.versions["file"]) - set(files)
            after = after.without(files).with_others(after.without(list(others)).unsure())
    elif not (len(after.versions) or len(plan.before.versions) or result.kept):
        return
    final = plan.stay.with_others(after)
    if result.changed or not _same(final, Files.read(table)):
        final.write(table)


def _same(one: Files, other: Files | None) -> bool:
    return other is not None and all(a.equals(b) for a, b in zip(one, other, strict=True))


def _write(index: "Index", plan: _Plan, report: Report) -> set[str]:
    """Put new and changed documents in the index; the ids of those that are not as they were a moment ago."""
    result, before = plan.result, index._store.snapshot()
    wanted = {*result.added, *result.replaced, *plan.reuse}
    digests = plan.after.documents.filter(pl.col("id").is_in(wanted))
    assert plan.corpus is not None
    kept = Kept(index.keeps_text, index.has_words, VECTORS in index._store.extra)
    encoded = _Chosen(plan.corpus, digests.filter(~pl.col("id").is_in(plan.reuse.keys())))
    without: set[str] = set()
    if encoded.left:
        for batch in batches_of(index.model, encoded, kept, report):
            without.update(kept.without)
            index._put(batch, _there(index, kept.without))
    result.left_out = kept.left_out
    result.added = [identity for identity in result.added if identity not in without]
    reused = _Chosen(plan.corpus, digests.filter(pl.col("id").is_in(plan.reuse.keys())))
    for documents in reused.batches(documents=_AT_ONCE):
        _reuse(index, before, documents, plan.reuse)
    return encoded.left | reused.left


def _reuse(index: "Index", before: Snapshot, documents: list[Document], reuse: Mapping[str, str]) -> None:
    """Put documents in the index whose texts it has already encoded, under these names or others."""
    ids = [document.id for document in documents]
    old = [reuse[identity] for identity in ids]
    rows = before.rows_of(old)
    extra = {VECTORS: before.vectors(rows)} if VECTORS in index._store.extra else {}
    fields = [stored_fields(document, index.keeps_text) for document in documents]
    index._put(Batch(ids, before.codes(rows), fields, extra), [one for one in old if one not in set(ids)])


def _there(index: "Index", ids: Sequence[str]) -> list[str]:
    """Those of some ids that the index has."""
    return [identity for identity, there in zip(ids, index.has(ids).tolist(), strict=True) if there]


class _Chosen(Corpus):
    """Some documents of a corpus, as long as they are what they were; `left` are those that were not read yet."""

    def __init__(self, corpus: FileCorpus, documents: pl.DataFrame) -> None:
        files = set(documents["file"])
        self._corpus = FileCorpus([one for one in corpus.sources if one.id in files], corpus.options, corpus.format)
        self._wanted = {identity: (text, rest) for _, identity, text, rest in documents.iter_rows()}
        self.left = set(self._wanted)

    def __iter__(self) -> Iterator[Document]:
        for document in self._corpus:
            if self._wanted.get(document.id) == digests(stored_fields(document, text=True)):
                self.left.discard(document.id)
                yield document

    @property
    def share_read(self) -> float | None:
        return self._corpus.share_read


def retrain_reason(index: "Index") -> str:
    """Why the model of an index should be learned again; empty if there is no reason.

    Either it was learned from fewer documents than a model profits from, and the index has half as many again; or it
    does not know more than 15% of the words in a sample of the documents. On four collections (posts, news, docstrings,
    abstracts) it was 4 to 7% of the documents that a model was learned from, 8 to 12% of others of the same collection,
    and 19 to 67% of those of another one.
    """
    from parabit.model.learning import SAMPLE  # here: it imports scipy

    documents, training = len(index), index.model.config["training"]
    if training["documents"] < SAMPLE and documents > _GROWTH * training["documents"]:
        return f"the model was learned from {training['documents']:,} documents, and there are {documents:,} now"
    if not index.keeps_text or not documents or not isinstance(index._store, Store):
        return ""
    view = index._store.snapshot()
    texts = [fields["text"] for fields in view.fields_of(view.sample(_LOOKED_AT))]
    unknown = 1 - float(np.mean(index.model.coverage(texts)))
    return f"the model does not know {unknown:.0%} of the words in the documents" if unknown > _UNKNOWN else ""

"""Making an index of documents, opening it, and writing documents to it."""

import shutil
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from logging import getLogger
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from parabit.corpus import Corpus, Texts, as_corpus
from parabit.corpus.document import CheckedCorpus
from parabit.corpus.files import FileCorpus
from parabit.errors import CodesError, IndexDamagedError, IndexFolderError, ParabitError
from parabit.index.code_search import check_backend
from parabit.index.corpus_files import (
    NotedCorpus,
    note_below,
    read_files,
    settings_of,
    write_files,
)
from parabit.index.documents import batches_of
from parabit.index.store import Batch, Manifest, Store, WordSettings
from parabit.index.store.damage import need_folder
from parabit.index.store.generation import Complete
from parabit.index.store.manifest import is_at_home, read_manifest
from parabit.index.store.schema import SameIdError
from parabit.index.word_index import build_words
from parabit.model import TextEncoder, load_model, save_model
from parabit.progress import Progress, Report
from parabit.text.languages import check_language

if TYPE_CHECKING:
    from parabit.index.index import Index
    from parabit.model import ParagraphVectors


_logger = getLogger(__name__)


@dataclass
class Written:
    """What became of documents."""

    added: int = 0
    replaced: int = 0
    removed: int = 0  # whose new text has nothing to be found by
    left_out: int = 0  # that have nothing to be found by; those removed among them
    skipped: int = 0  # that cannot be read or stored; `Index.skipped` names them


def build(
    kind: type["Index"],
    documents: Texts,
    folder: Path | str | None,
    model: "ParagraphVectors | TextEncoder | None",
    keeps: set[str],
    language: str | None,
    backend: str,
    engine: Any,
    overwrite: bool,
    report: Report,
) -> "Index":
    """An index of documents that keeps some of text, words and vectors; see `Index.build`."""
    check_backend(backend)
    check_language(language)
    if "words" in keeps and "text" not in keeps:
        raise ParabitError(
            "words are found in texts, which text=False does not keep", hint="leave out one of both"
        )
    corpus = storable(documents)
    if model is None:
        from parabit.model import ParagraphVectors

        model = ParagraphVectors().fit(corpus, report=report)
    encoder = encoder_of(model)
    if encoder.bits is None:
        raise CodesError("a real-valued model has no codes to index", hint="train one with bits")
    noted = NotedCorpus(corpus) if isinstance(corpus, FileCorpus) and corpus.roots else None
    left_out = list[str]()
    batches = batches_of(encoder, noted or corpus, keeps, left_out, report)
    manifest = Manifest(
        bits=encoder.bits,
        fingerprint=encoder.fingerprint,
        dim=encoder.dim if "vectors" in keeps else 0,
        backend=backend,
        keeps_text="text" in keeps,
    )
    accents = encoder.vocabulary.tokenizer.fold_accents
    if "words" in keeps and engine is not None:  # which searches them, too
        manifest = replace(manifest, words=WordSettings(language, accents, ""))

    def complete(new_folder: Path, manifest: Manifest) -> Manifest:
        """Add the words and the table of files; all documents were read by now."""
        if "words" in keeps and engine is None:
            manifest = build_words(new_folder, manifest, language, accents, report)
        if noted is not None:
            table = write_files(new_folder, noted.files)
            manifest = replace(manifest, corpus=settings_of(noted.corpus), files=table)
        return manifest

    try:
        index = create(
            kind, folder, encoder, manifest, batches, engine, overwrite, report, complete
        )
    except SameIdError as problem:
        raise _same_id(str(problem.identity), corpus) from problem
    index.left_out = len(left_out)
    index.skipped = corpus.skipped
    _warn_of_skipped(corpus)
    return index


def storable(documents: Texts) -> Corpus:
    """A corpus of documents that can be stored. One of files already skips the others, and says in
    which line.
    """
    corpus = as_corpus(documents)
    return corpus if isinstance(corpus, FileCorpus) else CheckedCorpus(corpus)


def _warn_of_skipped(corpus: Corpus) -> None:
    """Log what was skipped or replaced, of documents from Python; who reads files has a corpus that
    says it.
    """
    if not isinstance(corpus, CheckedCorpus):
        return
    for done, tally in (("skipped", corpus.skipped), ("changed", corpus.notes)):
        if tally:
            first = next(iter(tally))
            documents = "1 document" if len(tally) == 1 else f"{len(tally):,} documents"
            _logger.warning(
                "%s %s; the first is %s: %s", documents, done, first.place, first.reason
            )


def create(
    kind: type["Index"],
    folder: Path | str | None,
    model: TextEncoder | None,
    manifest: Manifest,
    batches: Iterable[Batch],
    engine: Any,
    overwrite: bool,
    report: Report,
    complete: Complete | None = None,
) -> "Index":
    """An index of documents; without a folder, it is in a temporary one."""
    save_it = None if model is None else partial(save_model, model, locked=False)
    with ExitStack() as scratch:
        if folder is None:
            if engine is not None:
                raise IndexFolderError(
                    "an index that an engine keeps needs a folder for its model", hint="give one"
                )
            folder = Path(mkdtemp(prefix="parabit-"), "index")
            scratch.callback(shutil.rmtree, folder.parent, ignore_errors=True)
        maker = engine or Store
        maker.create(Path(folder), manifest, batches, save_it, overwrite, report, complete)
        index = kind.open(folder, write=True, model=model, report=report)
        # At the latest when nobody has it any more.
        index._remove = weakref.finalize(index, scratch.pop_all().close)
    return index


def open_store(folder: Path | str, write: bool) -> Store:
    """The store of an index: its folder, or what the engine that the manifest names has opened."""
    manifest = read_manifest(Path(folder))
    engine = manifest.engine
    if engine is None:
        return Store(folder, write, manifest)
    if engine.name != "milvus":
        raise IndexFolderError(
            f"the documents of {folder} are kept by {engine.name!r}, an engine that this version does not have",
            hint="open it with the version that made it",
        )
    # By its name: engines build on the index, and most indexes need none.
    store: Store = import_module("parabit.engines.milvus").MilvusStore(folder, write)
    return store


def encoder_of(model: "ParagraphVectors | TextEncoder") -> TextEncoder:
    """What encodes texts, of a model in either form."""
    if isinstance(model, TextEncoder):
        return model
    from parabit.model import ParagraphVectors  # an estimator has imported it already
    from parabit.model.scikit_learn import check_fitted

    if not isinstance(model, ParagraphVectors):
        raise ParabitError(
            f"the model is of type {type(model).__name__}",
            hint="give a ParagraphVectors that is fitted, or what parabit.model.load_model returns",
        )
    check_fitted(model)
    encoder: TextEncoder = model.encoder_
    return encoder


def kept_model(store: Store) -> TextEncoder:
    """The model that an index keeps."""
    if not store.manifest.fingerprint:
        raise IndexFolderError(
            "this index was made of codes and knows no texts", hint="search it with codes"
        )
    need_folder(store.model_folder)
    model = load_model(store.model_folder)
    if model.fingerprint != store.manifest.fingerprint:
        raise IndexFolderError(
            f"{store.model_folder} is not the model of the index", hint="restore it from a copy"
        )
    return model


def save(index: "Index", folder: Path, overwrite: bool, report: Report) -> None:
    """Write an index to another folder; see `Index.save`."""
    try:
        files = read_files(index.folder, index._store.manifest)
    except IndexDamagedError:  # unless another process has written a newer one
        index.refresh()
        files = read_files(index.folder, index._store.manifest)
    old = index._store.manifest
    manifest = replace(old, model="", engine=None, words=None, files=None)
    if not is_at_home(old, index.folder):  # nobody has agreed to what it says about its files
        manifest = replace(manifest, corpus=None)

    def complete(new_folder: Path, manifest: Manifest) -> Manifest:
        if old.words is not None:
            language, accents = old.words.language, old.words.fold_accents
            manifest = build_words(new_folder, manifest, language, accents, report)
        if manifest.corpus is not None:
            manifest = replace(manifest, files=write_files(new_folder, files))
        return manifest

    index._store.save(folder, manifest, overwrite, report, complete)


def write(index: "Index", documents: Any, new: bool, report: Report) -> Written:
    """Encode documents and put them in an index, batch by batch; with `new`, their ids must not be
    there.
    """
    _ = index.model  # first: an index of codes takes no texts
    store = index._store
    given = storable(documents)
    files = note_below(given, store.manifest, index.folder)
    corpus = files or given
    _check_ids(index, corpus, new, report)
    if files is not None:
        files.note(store, sure=False)
    with noted_progress("go on with --update") as written:
        put_encoded(index, corpus, written, report)
        index._words.commit()
    if files is not None:
        files.note(store, sure=True)
    index.left_out = written.left_out
    index.skipped = given.skipped
    written.skipped = len(given.skipped)
    _warn_of_skipped(given)
    return written


@contextmanager
def noted_progress(how: str) -> Iterator[Written]:
    """An error or an interrupt says how many documents were written, and how the work goes on."""
    written = Written()
    try:
        yield written
    except BaseException as stop:
        if done := written.added + written.replaced:
            stop.add_note(f"{done:,} documents are in the index and stay; {how}")
        raise


def put_encoded(index: "Index", corpus: Corpus, written: Written, report: Report) -> None:
    """Encode documents and put them in an index, batch by batch; `written` counts what became of
    them until now.
    """
    left_out = list[str]()
    for batch in batches_of(index.model, corpus, index.keeps, left_out, report):
        gone = there(index, left_out[written.left_out :])
        written.left_out = len(left_out)
        replaced = index._words.put(batch, gone)
        written.replaced += replaced
        written.added += len(batch.ids) - replaced
        written.removed += len(gone)


def there(index: "Index", ids: Sequence[str]) -> list[str]:
    """Those of some ids that an index has."""
    return [identity for identity, has in zip(ids, index.has(ids).tolist(), strict=True) if has]


def _check_ids(index: "Index", corpus: Corpus, new: bool, report: Report) -> None:
    """Read a corpus and raise if an id is there twice, or in the index, before the first document
    goes in.
    """
    numbers: dict[str, int] = {}
    for batch in corpus.batches():
        for number, document in enumerate(batch, len(numbers)):
            if numbers.setdefault(document.id, number) != number:
                raise _same_id(document.id, corpus)
        if new and (old := there(index, [document.id for document in batch])):
            raise IndexFolderError(
                f"the id {old[0]!r} is in the index already",
                hint="nothing was changed; replace it with --update, or give a new id",
            )
        report(Progress("checking", len(numbers), "documents", corpus.share_read))


def _same_id(identity: str, corpus: Corpus) -> SameIdError:
    """The error for two documents with one id: where they are is found by reading the corpus once
    more.
    """
    places: list[str] = []
    for document in corpus:
        if document.id == identity:
            places.append(corpus.place)
        if len(places) == 2:
            break
    return SameIdError(identity, " and ".join(places))

"""Making an index of documents, opening it, and writing documents to it."""

import shutil
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from parabit.corpus import Corpus, Texts, as_corpus
from parabit.corpus.files import FileCorpus
from parabit.errors import CodesError, IndexFolderError, ParabitError
from parabit.index.code_search import check_backend
from parabit.index.corpus_files import NotedCorpus, memory_of, note_below, write_files
from parabit.index.documents import batches_of
from parabit.index.store import Batch, Manifest, Store
from parabit.index.store.manifest import read_manifest
from parabit.index.store.schema import same_id
from parabit.index.words import check_language
from parabit.model import TextEncoder, load_model, save_model
from parabit.progress import Progress, Report
from parabit.storage import whole_file

if TYPE_CHECKING:
    from parabit.index.index import Index
    from parabit.model import ParagraphVectors


@dataclass
class Written:
    """What became of documents."""

    added: int = 0
    replaced: int = 0
    removed: int = 0  # whose new text has nothing to be found by
    left_out: int = 0  # that have nothing to be found by; those removed among them


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
    corpus = as_corpus(documents)
    if model is None:
        from parabit.model import ParagraphVectors

        model = ParagraphVectors().fit(corpus, report=report)
    encoder = encoder_of(model)
    if encoder.bits is None:
        raise CodesError("a real-valued model has no codes to index", hint="train one with bits")
    meta: dict[str, Any] = {"backend": backend, "text": "text" in keeps, "words": None}
    files = None
    if isinstance(corpus, FileCorpus) and corpus.roots:
        files, meta["corpus"] = NotedCorpus(corpus), memory_of(corpus, folder)
    if "words" in keeps:
        accents = encoder.vocabulary.tokenizer.fold_accents
        folder_of_words = f"words-{token_hex(4)}"  # a name that no other index has had
        meta["words"] = {"language": language, "fold_accents": accents, "folder": folder_of_words}
    left_out = list[str]()
    batches = batches_of(encoder, files or corpus, keeps, left_out, report)
    manifest = Manifest(
        encoder.bits, encoder.fingerprint, meta, encoder.dim if "vectors" in keeps else 0
    )
    index = create(kind, folder, encoder, manifest, batches, engine, overwrite, report)
    index.left_out = len(left_out)
    if files is not None:
        write_files(index.folder / meta["corpus"]["files"], files.files)
    return index


def create(
    kind: type["Index"],
    folder: Path | str | None,
    model: TextEncoder | None,
    manifest: Manifest,
    batches: Iterable[Batch],
    engine: Any,
    overwrite: bool,
    report: Report,
) -> "Index":
    """An index of documents; without a folder, it is in a temporary one."""
    save_it = None if model is None else partial(save_model, model)
    with ExitStack() as scratch:
        if folder is None:
            if engine is not None:
                raise IndexFolderError(
                    "an index that an engine keeps needs a folder for its model", hint="give one"
                )
            folder = Path(mkdtemp(prefix="parabit-"), "index")
            scratch.callback(shutil.rmtree, folder.parent, ignore_errors=True)
        (engine or Store).create(Path(folder), manifest, batches, save_it, overwrite, report)
        index = kind.open(folder, write=True, model=model, report=report)
        index._remove = weakref.finalize(
            index, scratch.pop_all().close
        )  # at the latest when nobody has it any more
    return index


def open_store(folder: Path | str, write: bool) -> Store:
    """The store of an index: its folder, or what the engine that the manifest names has opened."""
    engine = read_manifest(Path(folder)).engine
    if not engine:
        return Store(folder, write)
    if engine["name"] != "milvus":
        raise IndexFolderError(
            f"the documents of {folder} are kept by {engine['name']!r}, an engine that this version does not have",
            hint="open it with the version that made it",
        )
    # By its name: engines build on the index, and most indexes need none.
    store: Store = import_module("parabit.engines.milvus").MilvusStore(folder, write)
    return store


def encoder_of(model: "ParagraphVectors | TextEncoder") -> TextEncoder:
    """What encodes texts, of a model in either form."""
    if isinstance(model, TextEncoder):
        return model
    from parabit.model.scikit_learn import check_fitted  # an estimator has imported it already

    check_fitted(model)
    encoder: TextEncoder = model.encoder_
    return encoder


def kept_model(store: Store) -> TextEncoder:
    """The model that an index keeps."""
    if not store.manifest.fingerprint:
        raise IndexFolderError(
            "this index was made of codes and knows no texts", hint="search it with codes"
        )
    model = load_model(store.model_folder)
    if model.fingerprint != store.manifest.fingerprint:
        raise IndexFolderError(
            f"{store.model_folder} is not the model of the index", hint="restore it from a copy"
        )
    return model


def save(index: "Index", folder: Path, overwrite: bool, report: Report) -> None:
    """Write an index to another folder; see `Index.save`."""
    meta = dict(index._store.manifest.meta)
    memory = meta.get("corpus")
    if memory is not None:
        meta["corpus"] = {**memory, "index": None}  # the files do not move with it
    if index.has_words:
        meta["words"] = {**meta["words"], "folder": f"words-{token_hex(4)}"}
    index._store.save(folder, meta, overwrite, report)
    if memory is not None and (index.folder / memory["files"]).is_file():
        with whole_file(folder / memory["files"], durable=True) as partial_file:
            shutil.copyfile(index.folder / memory["files"], partial_file)
    if index.has_words:
        type(index).open(folder, write=True, report=report).close()


def write(index: "Index", documents: Any, new: bool, report: Report) -> Written:
    """Encode documents and put them in an index, batch by batch; with `new`, their ids must not be there."""
    _ = index.model  # first: an index of codes takes no texts
    corpus, memory = as_corpus(documents), index._store.manifest.meta.get("corpus", {})
    files = note_below(corpus, memory, index.folder)
    corpus = files or corpus
    _check_ids(index, corpus, new, report)
    if files is not None:
        files.note(index.folder / memory["files"], sure=False)
    with noted_progress("go on with --update") as written:
        put_encoded(index, corpus, written, report)
        index._words.commit()
    if files is not None:
        files.note(index.folder / memory["files"], sure=True)
    index.left_out = written.left_out
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
    """Encode documents and put them in an index, batch by batch; `written` counts what became of them until now."""
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
    """Read a corpus and raise if an id is there twice, or in the index, before the first document goes in."""
    numbers: dict[str, int] = {}
    for batch in corpus.batches():
        for number, document in enumerate(batch, len(numbers)):
            if numbers.setdefault(document.id, number) != number:
                raise same_id(document.id, numbers[document.id], number)
        if new and (old := there(index, [document.id for document in batch])):
            raise IndexFolderError(
                f"the id {old[0]!r} is in the index already",
                hint="nothing was changed; replace it with --update, or give a new id",
            )
        report(Progress("checking", len(numbers), "documents", corpus.share_read))

"""The index: documents by their codes and words, kept safely."""

import secrets
import shutil
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from parabit.choices import RANKS
from parabit.codes import check_codes
from parabit.corpus import Corpus, Document, as_corpus
from parabit.errors import CodesError, IndexFolderError, ParabitError, QueryError
from parabit.index.build import (
    Ids,
    Kept,
    Written,
    batch_of_codes,
    batches_of,
    check_ids,
    says_what_stays,
)
from parabit.index.filters import Condition, Where, conditions, mask_of
from parabit.index.hits import Hits
from parabit.index.labels import Labels, labels_of
from parabit.index.map import Map, draw
from parabit.index.pairing import Pairs, pairs_within
from parabit.index.query import (
    Parsed,
    Queries,
    WordQuery,
    asked_codes,
    checked_k,
    checked_radius,
    matching_tokens,
    parse,
    with_vectors,
    word_query,
)
from parabit.index.ranking import CANDIDATES, Ranked, join_ranked, need_for, rank_by_code, rank_by_words
from parabit.index.results import Found
from parabit.index.search import check_backend
from parabit.index.store import MAP, VECTORS, Batch, Id, Kind, Snapshot, Store, backend_of
from parabit.index.stored import Stored, ids_of_written, rows_with, stored_with
from parabit.index.words import RowWords, Words, catch_up, check_language, searchable
from parabit.model import TextEncoder, load_model, save_model
from parabit.model.encoder import joined
from parabit.progress import Report, silent
from parabit.text.bags import FEW, make_bags

if TYPE_CHECKING:
    from parabit.model import ParagraphVectors

_RANKED = 1000  # that are ranked by more than their distance, where no radius is given
_COMMIT_DOCUMENTS, _COMMIT_SECONDS = 1000, 1.0  # after which new words are committed, for others to see
_PATIENCE = 40  # looks at a word index that is being written, 0.05 s apart

Texts = Corpus | Iterable[str | Document]


class Engine(Protocol):
    """Keeps documents elsewhere than in a folder; what it opens again offers what `Store` and `Snapshot` offer."""

    def create(self, folder: Path | str, bits: int, batches: Iterable[Batch], *arguments: Any, **options: Any) -> None:
        """Make an index, as `Store.create` does."""


class Index:
    """Documents by their codes and words: search, ranking, changes and files that are safe to keep, in one place.

    Example:
        >>> from parabit import ParagraphVectors
        >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired the telescope.", "Goalies like ice."]
        >>> index = Index.build(ParagraphVectors(bits=16).fit(texts * 6), texts)
        >>> hits = index.search(["telescopes in orbit"], k=2)[0]
        >>> hits[0].title, sorted(hits[0].why.words)
        ('The telescope was repaired in orbit.', ['orbit', 'telescop'])
        >>> index.delete(["2"])
        >>> len(index)
        2
    """

    left_out = 0  # documents that were to be added and have nothing to be found by

    def __init__(self, store: Store, model: TextEncoder | None = None, scratch: Path | None = None) -> None:
        self._store, self._model = store, model
        self._words: Words | None = None
        self._committed, self._since = time.monotonic(), 0
        # Without a folder of its own the index is gone when nobody has it any more.
        self._remove = None if scratch is None else weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        if model is not None and model.fingerprint != store.fingerprint:
            store.close()
            raise IndexFolderError(
                f"{store.folder} was made with another model", hint="give the model it was made with, or build it again"
            )

    # Making and opening

    @classmethod
    def build(
        cls,
        model: "ParagraphVectors | TextEncoder",
        documents: Texts,
        folder: Path | str | None = None,
        *,
        text: bool = True,
        words: bool | None = None,
        language: str | None = "en",
        vectors: bool = False,
        backend: str = "auto",
        engine: Engine | None = None,
        overwrite: bool = False,
        report: Report = silent,
    ) -> "Index":
        """Encode documents and index them, in a folder or, without one, for as long as the index lives.

        Fields and labels are always kept; `text` keeps what a hit shows. `words` makes the texts searchable by their
        words, stemmed by `language` (None does not stem); without it an index takes 16 bytes per document, and the
        ranks words and hybrid are missing. Words need the texts, so `text=False` leaves them out, too. `vectors` keeps
        what the rank cosine needs (2 bytes per dimension). `backend` is built beside the codes: `"auto"` takes the
        exact one that pays at this size. An `engine` of `parabit.engines` keeps and searches documents elsewhere, and
        the folder has the model. Documents with nothing to be found by are left out, and counted in `left_out`.
        """
        model = encoder_of(model)
        if model.bits is None:
            raise CodesError("a real-valued model has no codes to index", hint="train one with bits")
        check_backend(backend)
        check_language(language)
        if words and not text:
            raise ParabitError("words are found in texts, which text=False does not keep", hint="leave out one of both")
        words = text if words is None else words
        kept = Kept(text, words, vectors)
        batches = batches_of(model, as_corpus(documents), kept, report)
        meta: dict[str, Any] = {"backend": backend, "text": text, "words": None}
        if words:
            meta["words"] = {"language": language, "fold_accents": model.vocabulary.tokenizer.fold_accents}
        meta = _meta(meta)
        index = cls._create(folder, model.bits, batches, kept.kinds(model), meta, report, model, overwrite, engine)
        index.left_out = kept.left_out
        return index

    @classmethod
    def of_codes(
        cls,
        codes: NDArray[np.uint8],
        bits: int,
        folder: Path | str | None = None,
        *,
        ids: Sequence[Id] | None = None,
        fields: Sequence[Mapping[str, Any]] | None = None,
        vectors: NDArray[np.floating] | None = None,
        backend: str = "auto",
        engine: Engine | None = None,
        overwrite: bool = False,
        report: Report = silent,
    ) -> "Index":
        """Index codes from anywhere; ids are the positions if none are given. Queries are codes then, too.

        Vectors are kept at length 1 in half precision, which is enough to rank by.

        Example:
            >>> index = Index.of_codes(np.array([[0], [1], [7]], dtype=np.uint8), bits=8)
            >>> index.search(np.array([[3]], dtype=np.uint8), radius=1).ids
            [[1, 2]]
        """
        check_codes(codes, bits)
        check_backend(backend)
        batches = batch_of_codes(codes, ids, fields, vectors)
        kinds = {} if vectors is None else {VECTORS: Kind("<f2", vectors.shape[-1])}
        meta = {"backend": backend, "text": False, "words": None}
        return cls._create(folder, bits, batches, kinds, meta, report, None, overwrite, engine)

    @classmethod
    def _create(
        cls,
        folder: Path | str | None,
        bits: int,
        batches: Iterable[Batch],
        kinds: Mapping[str, Kind],
        meta: Mapping[str, Any],
        report: Report,
        model: TextEncoder | None,
        overwrite: bool,
        engine: Engine | None,
    ) -> "Index":
        scratch = None
        if folder is None:
            if engine is not None:
                raise IndexFolderError("an index that an engine keeps needs a folder for its model", hint="give one")
            scratch = Path(mkdtemp(prefix="parabit-"))
            folder = scratch / "index"
        try:
            (engine or Store).create(
                folder,
                bits,
                batches,
                fingerprint="" if model is None else model.fingerprint,
                meta=meta,
                extra=kinds,
                save_model=None if model is None else lambda place: save_model(model, place),
                overwrite=overwrite,
                report=report,
            )
            index = cls(open_store(folder, write=True), model, scratch)
            index._open_words(report)
            return index
        except BaseException:
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
            raise

    @classmethod
    def open(
        cls,
        folder: Path | str,
        write: bool = False,
        model: "ParagraphVectors | TextEncoder | None" = None,
        report: Report = silent,
    ) -> Self:
        """Open an index, in milliseconds; its model is read when a text is first searched for, or taken from here.

        One process at a time may open it with `write`; any number read it, and `refresh` shows them what was written.
        If its word index is behind or damaged, as after a crash, it is brought up to date.
        """
        index = cls(open_store(folder, write), None if model is None else encoder_of(model))
        if write:
            try:
                index._open_words(report)
            except BaseException:
                index.close()
                raise
        return index

    def close(self) -> None:
        """Give back the right to write; an index without a folder is gone."""
        try:
            self._commit_words()
        finally:
            self._words = None
            self._store.close()
            if self._remove is not None:
                self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def save(self, folder: Path | str, overwrite: bool = False, report: Report = silent) -> None:
        """Write the index to a folder, compacted; this one stays where it is. Over itself, it is compacted in place."""
        if overwrite and Path(folder).resolve() == self.folder.resolve():
            self.compact(report)
            return
        self._store.save(folder, overwrite, report, _meta(self._store.meta))
        if self.has_words:
            Index.open(folder, write=True, report=report).close()

    # What it is

    @property
    def folder(self) -> Path:
        """Where the index is kept."""
        return self._store.folder

    @property
    def bits(self) -> int:
        """How many bits a code has."""
        return self._store.bits

    def __len__(self) -> int:
        return self._store.snapshot().documents

    def __repr__(self) -> str:
        return f"<Index {str(self.folder)!r}: {len(self):,} documents, {self.bits} bits>"

    @property
    def model(self) -> TextEncoder:
        """The model that encodes documents and queries."""
        if self._model is None:
            self._model = self._kept_model()
        return self._model

    def _kept_model(self) -> TextEncoder:
        folder = self._store.model_folder
        if not self._store.fingerprint:
            raise IndexFolderError("this index was made of codes and knows no texts", hint="search it with codes")
        model = load_model(folder)
        if model.fingerprint != self._store.fingerprint:
            raise IndexFolderError(f"{folder} is not the model of the index", hint="restore it from a copy")
        return model

    @property
    def has_words(self) -> bool:
        """Whether texts can be found by their words."""
        return self._store.meta["words"] is not None

    @property
    def best_rank(self) -> str:
        """The rank that finds most for a text, of those that this index can do."""
        return "hybrid" if self.has_words else "asymmetric"

    @property
    def ranks(self) -> tuple[str, ...]:
        """The ranks that this index can do for a text, or for a code if it knows no texts."""
        if not self.knows_texts:
            return ("hamming",)
        missing = {"cosine"} if VECTORS not in self._store.extra else set()
        return tuple(rank for rank in RANKS if rank not in missing | (set() if self.has_words else {"words", "hybrid"}))

    @property
    def fields(self) -> list[str]:
        """The names of the fields that documents have, but for their text."""
        return [name for name in self._store.snapshot().field_names if name != "text"]

    @property
    def knows_texts(self) -> bool:
        """Whether it has a model, so that texts can be searched for."""
        return bool(self._store.fingerprint)

    @property
    def keeps_text(self) -> bool:
        """Whether the texts of the documents were kept."""
        return bool(self._store.meta["text"])

    def stored(self, ids: Sequence[Id]) -> list[Stored]:
        """The documents with these ids, as they are kept: id, code, text and fields."""
        return stored_with(self._store.snapshot(), ids)

    def labels(self, most: int = 500) -> Labels:
        """The most frequent labels and how many documents have each."""
        return labels_of(self._store.snapshot(), most)

    def has(self, ids: Sequence[Id]) -> NDArray[np.bool_]:
        """Whether there is a document with each of these ids."""
        return self._store.snapshot().rows_of(ids) >= 0

    def ids_of(self, written: Sequence[str]) -> list[Id]:
        """Ids as people write them: 7 is the string, or else the number if a document has that."""
        return ids_of_written(self._store.snapshot(), written)

    def info(self) -> dict[str, Any]:
        """What the index is and what it keeps."""
        about = self._store.about()
        words = self._store.meta["words"]
        about["language"] = words and words["language"]
        about["keeps"] = sorted([*about["keeps"], *(["words"] if words else [])])
        about["words_bytes"] = (
            sum(path.stat().st_size for path in (self.folder / words["folder"]).glob("*")) if words else 0
        )
        return about

    # Searching

    def search(
        self,
        queries: Texts | NDArray[np.uint8],
        k: int | None = None,
        radius: int | None = None,
        rank: str | None = None,
        *,
        where: Where | None = None,
        candidates: int | None = None,
        query_vectors: NDArray[np.floating] | None = None,
        backend: str = "auto",
    ) -> Hits:
        """The documents that fit each query best, of texts or of codes.

        The k best (10 if neither is given), all within a Hamming `radius`, or the k best of these. By default a text is
        ranked by words and code together (`rank="hybrid"`), by code alone if the index keeps no words; see
        `parabit.index.ranking`. A text of one line may have operators: "a phrase", +must, -not, word*, field:value.
        `where` lets through the documents with a value, or a range of values, in a field, as in
        `where={"labels": "sci.space", "year": (1990, 1995)}`; see `parabit.index.filters`. `candidates` is how many of
        the nearest by code are ranked by more than their distance. `backend` is for those who want to choose what
        `auto` chooses by measurements.
        """
        view = self._store.snapshot()  # before the queries are read, which may take as long as they like
        if isinstance(queries, np.ndarray):
            asked, parsed = asked_codes(queries, self.bits), None
        else:
            corpus = as_corpus([queries] if isinstance(queries, str) else queries)
            texts = [document.text for document in corpus]
            parsed = [_parsed(text, view) for text in texts]
            asked = self._encoded([one.text for one in parsed])
        if query_vectors is not None:
            kinds = self._store.extra
            asked = with_vectors(asked, query_vectors, kinds[VECTORS].width if VECTORS in kinds else None)
        return self._find(view, asked, parsed, k, radius, rank, conditions(where), candidates, backend)

    def like(
        self,
        ids: Id | Sequence[Id],
        k: int | None = None,
        radius: int | None = None,
        rank: str | None = None,
        *,
        where: Where | None = None,
        candidates: int | None = None,
        backend: str = "auto",
    ) -> Hits:
        """The documents most like each of some that are in the index, which are not among their own hits.

        A document's text is the query if it was kept, else its code.

        Example:
            >>> from parabit import ParagraphVectors
            >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired it.", "Goalies like ice."]
            >>> index = Index.build(ParagraphVectors(bits=16).fit(texts * 6), texts)
            >>> index.like("0").ids[0][0]
            '1'
        """
        view = self._store.snapshot()
        rows = rows_with(view, [ids] if isinstance(ids, str | int) else ids)
        parsed = None
        if self.keeps_text and self.knows_texts:
            parsed = [Parsed(searchable(fields)) for fields in view.fields_of(rows)]
            asked = self._encoded([one.text for one in parsed])
        else:
            asked = asked_codes(view.codes(rows), self.bits)
        return self._find(view, asked, parsed, k, radius, rank, conditions(where), candidates, backend, rows)

    def _encoded(self, texts: Sequence[str]) -> Queries:
        if 0 < len(texts) <= FEW:  # the fastest way, for queries
            bags = make_bags(list(texts), self.model.vocabulary)
            codes, activations, vectors = self.model.infer_bags(bags)
            assert codes is not None
            return Queries(codes, bags.feature_lengths > 0, activations, vectors)
        parts = list(self.model.infer_each(as_corpus(texts)))
        codes, activations, vectors = joined([part.inferred for part in parts], self.model.bits, self.model.dim)
        assert codes is not None
        known = np.concatenate([np.zeros(0, dtype=np.bool_), *(part.known for part in parts)])
        return Queries(codes, known, activations, vectors)

    def _find(
        self,
        view: Snapshot,
        asked: Queries,
        parsed: Sequence[Parsed] | None,
        k: int | None,
        radius: int | None,
        rank: str | None,
        where: Sequence[Condition],
        candidates: int | None,
        backend: str,
        but: NDArray[np.int64] | None = None,
    ) -> Hits:
        """What a search finds; `but` is a row for each query that is not to be found."""
        k = 10 if k is None and radius is None else None if k is None else checked_k(k)
        radius = None if radius is None else checked_radius(radius)
        check_backend(backend)
        rank = rank or (self.best_rank if parsed is not None else "hamming")
        need_for(rank, asked, VECTORS in self._store.extra, self.has_words)
        words = None
        if parsed is not None and self.has_words:
            try:
                words = self._row_words(view)
            except IndexFolderError:
                if rank in ("hybrid", "words"):
                    raise
        notes: list[list[str]] = [[] for _ in asked.codes]
        if words is not None and parsed is not None:
            asked, notes = _with_words(asked, parsed, words)
        # Queries with the same filter are answered together; most have none of their own.
        filters = [one.fields for one in parsed or ()]
        groups = (
            [slice(0, len(asked.codes))] if len(set(filters)) < 2 else [slice(n, n + 1) for n in range(len(filters))]
        )
        parts = []
        for group in groups:
            own = _own_conditions(filters[group.start]) if filters else ()
            conditioned = (*where, *own)
            allowed = mask_of(view, conditioned) if conditioned else None
            mine, not_me = asked.part(group.start, group.stop), None if but is None else but[group]
            if rank in ("hybrid", "words"):
                assert words is not None
                among = words if allowed is None else words.among(allowed)
                parts.append(_rank_with_words(rank, mine, view, among, k, radius, candidates, allowed, backend, not_me))
            else:
                most = k if rank == "hamming" else _to_rank(k, radius, candidates)
                found = _near(view, mine, most, radius, allowed, backend, not_me)
                parts.append(rank_by_code(rank, mine, found, view, k))
        ranked = parts[0] if len(parts) == 1 else join_ranked(parts)
        tokenizer = None if parsed is None else self.model.vocabulary.tokenizer  # codes are searched without the model
        return Hits(ranked, asked, view, words, notes, tokenizer)

    def matching(self, query: str, text: str) -> set[str]:
        """The words of a text that match a query, as they are written there; none if the index keeps no words."""
        if not self.has_words:
            return set()
        view = self._store.snapshot()
        words = self._row_words(view)
        return matching_tokens(word_query(_parsed(query, view), words), words, text)

    def pairs(self, radius: int, report: Report = silent, *, backend: str = "auto") -> Iterator[Pairs]:
        """All pairs of documents within a Hamming radius of each other, block by block.

        Example:
            >>> index = Index.of_codes(np.array([[0], [1], [7]], dtype=np.uint8), bits=8)
            >>> [(pairs.first, pairs.second) for pairs in index.pairs(radius=1)]
            [([0], [1])]
        """
        check_backend(backend)
        return pairs_within(self._store.snapshot(), checked_radius(radius), report, backend)

    # Changing

    def add(self, documents: Texts, report: Report = silent) -> int:
        """Encode and add documents with new ids; how many were added. Those of a batch are all on the disk, or none."""
        return self._write(documents, "new", report).added

    def update(self, documents: Texts, report: Report = silent) -> int:
        """Put documents in the place of those with their ids; how many."""
        return self._write(documents, "there", report).replaced

    def put(self, documents: Texts, report: Report = silent) -> Written:
        """Update the documents whose ids are there, and add the others; how many of each.

        Example:
            >>> from parabit import ParagraphVectors
            >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired it.", "Goalies like ice."]
            >>> index = Index.build(ParagraphVectors(bits=16).fit(texts * 6), texts[:2])
            >>> index.put(texts)
            Written(added=1, replaced=2, removed=0, left_out=0)
        """
        return self._write(documents, "any", report)

    def add_codes(
        self,
        codes: NDArray[np.uint8],
        ids: Sequence[Id],
        fields: Sequence[Mapping[str, Any]] | None = None,
        vectors: NDArray[np.floating] | None = None,
    ) -> None:
        """Add codes from anywhere, to an index that was made of codes.

        Example:
            >>> index = Index.of_codes(np.array([[0], [1]], dtype=np.uint8), bits=8)
            >>> index.add_codes(np.array([[7]], dtype=np.uint8), ids=[2])
            >>> len(index)
            3
        """
        self._need("new", ids)
        for batch in batch_of_codes(codes, ids, fields, vectors, at_once=max(1, len(codes))):
            self._store.put(batch)

    def update_codes(
        self,
        codes: NDArray[np.uint8],
        ids: Sequence[Id],
        fields: Sequence[Mapping[str, Any]] | None = None,
        vectors: NDArray[np.floating] | None = None,
    ) -> None:
        """Put codes, and their fields, in the place of those with their ids, in an index that was made of codes.

        Example:
            >>> index = Index.of_codes(np.array([[0], [1]], dtype=np.uint8), bits=8)
            >>> index.update_codes(np.array([[7]], dtype=np.uint8), ids=[0])
            >>> index.search(np.array([[7]], dtype=np.uint8), radius=0).ids
            [[0]]
        """
        self._need("there", ids)
        for batch in batch_of_codes(codes, ids, fields, vectors, at_once=max(1, len(codes))):
            self._store.put(batch)

    def delete(self, ids: Id | Sequence[Id]) -> None:
        """Delete documents; all of them are gone when this returns, or none is."""
        ids = [ids] if isinstance(ids, str | int) else list(ids)
        self._need("there", ids)
        serials = self._serials(ids)
        self._store.put(None, ids)
        if self._words is not None:
            self._words.delete(serials)
            self._commit_now_and_then(len(serials))

    def _write(self, documents: Texts, ids: Ids, report: Report) -> Written:
        """Encode documents and put them in the index, batch by batch."""
        corpus, store, model = as_corpus(documents), self._store, self.model
        check_ids(corpus, lambda some: self._need(ids, some), report)
        kept = Kept(self.keeps_text, self.has_words, VECTORS in store.extra)
        written = Written()
        with says_what_stays(written):
            for batch in batches_of(model, corpus, kept, report):
                gone = [id for id, there in zip(kept.without, self.has(kept.without), strict=True) if there]
                replaced = self._put(batch, gone)
                written.replaced += replaced
                written.added += len(batch.ids) - replaced
                written.removed += len(gone)
                written.left_out = kept.left_out
        self.left_out = written.left_out
        return written

    def _put(self, batch: Batch, gone: Sequence[Id]) -> int:
        old, last = self._serials([*batch.ids, *gone]), 0 if self._words is None else self._store.snapshot().last_serial
        replaced = self._store.put(batch, gone)
        if self._words is not None:
            self._words.delete(old)
            texts = [searchable(fields) for fields in batch.fields or ()]
            self._words.add(range(last + 1, last + 1 + len(texts)), texts)
            self._commit_now_and_then(len(texts))
        return replaced

    def _need(self, allowed: Ids, ids: Sequence[Id]) -> None:
        """Raise if an id must not be there, or must be and is not."""
        there = self.has(ids)
        if allowed == "new" and there.any():
            raise IndexFolderError(
                f"the id {ids[int(np.argmax(there))]!r} is in the index already",
                hint="nothing was changed; replace it with --update, or give a new id",
            )
        if allowed == "there" and not there.all():
            raise IndexFolderError(
                f"there is no document with the id {ids[int(np.argmin(there))]!r}", hint="nothing was changed"
            )

    def _serials(self, ids: Sequence[Id]) -> list[int]:
        if self._words is None:
            return []
        view = self._store.snapshot()
        rows = view.rows_of(ids)
        serials: list[int] = view.serials[rows[rows >= 0]].tolist()
        return serials

    def _commit_now_and_then(self, changed: int) -> None:
        """Commit words for other processes to see; what a crash loses of them is caught up on opening."""
        assert self._words is not None
        self._since += changed
        if self._since >= _COMMIT_DOCUMENTS or time.monotonic() - self._committed > _COMMIT_SECONDS:
            self._commit_words()
            self._committed, self._since = time.monotonic(), 0

    def _commit_words(self) -> None:
        try:
            if self._words is not None:
                self._words.commit()
        except IndexFolderError:
            self._words = None  # the next search catches up
            raise

    def compact(self, report: Report = silent) -> None:
        """Merge what was added and deleted; opening and searching are then as fast as if it had been built so."""
        self._store.compact(report)

    def refresh(self) -> bool:
        """See what another process has written since; whether there was anything."""
        made_with, words = self._store.fingerprint, self._store.meta["words"]
        changed = self._store.refresh()
        if self._store.fingerprint != made_with:  # another index was written over this one
            self._model = None
        if self._store.meta["words"] != words:
            self._words = None
        elif self._words is not None and not self._words.pending and not self._is_current(self._words):
            self._words.reload()  # which may come later than the documents themselves
            if not self._is_current(self._words):
                self._words = None  # whoever wrote may have been killed: the next search sees to it
        return changed

    def verify(self) -> None:
        """Read every byte, of the model and the words too, and raise if one is not what was written."""
        self._store.verify()
        if self._store.fingerprint:
            self._kept_model()
        if (words := self._open_words()) is not None:
            words.verify()

    def _row_words(self, snapshot: Snapshot) -> RowWords:
        """The words of a snapshot's documents."""
        words, store = self._open_words(), cast(Any, self._store)  # an engine searches words itself
        return RowWords(words, snapshot) if words is not None else store.words(snapshot)

    def _open_words(self, report: Report = silent) -> Words | None:
        """The word index, up to date as far as this process may see to it; None if there is none beside the store."""
        meta = self._store.meta["words"]
        if meta is None or self._store.keeps_words or self._words is not None:
            self._commit_words()
            return self._words
        folder = self.folder / meta["folder"]
        words = None
        with suppress(IndexFolderError):
            words = Words.open(folder)
            if self._is_current(words):
                self._words = words
                return words
        try:
            with self._store.writing():  # a reader borrows the right to write, if nobody has it
                if self._store.meta["words"] != meta:
                    self._model = None
                    raise IndexFolderError("another index was written over it meanwhile", hint="search again")
                snapshot = self._store.snapshot()
                try:
                    words = Words.open(folder)
                    catch_up(words, snapshot, report)
                except IndexFolderError:  # there is none yet, or it is damaged
                    words = None
                if words is None:
                    words = Words.create(folder, meta["language"], meta["fold_accents"])
                    catch_up(words, snapshot, report)
        except IndexFolderError as problem:
            words = words or self._words_beside_a_writer(meta)
            if words is None:
                raise IndexFolderError(
                    f"the words of {self.folder} cannot be searched: {problem.problem}",
                    hint="try again later, or search with rank asymmetric",
                ) from problem
        self._words = words
        return words

    def _words_beside_a_writer(self, meta: Mapping[str, Any]) -> Words | None:
        """The word index that another process commits at this moment, so that its files do not fit yet."""
        for _ in range(_PATIENCE):
            if self._store.meta["words"] != meta:
                return None
            with suppress(IndexFolderError):
                return Words.open(self.folder / meta["folder"])
            time.sleep(0.05)
        return None

    def _is_current(self, words: Words) -> bool:
        # Of an update that was lost, the new document is missing and the old one is still there: their number is right.
        view = self._store.snapshot()
        alive = view.serials if view.alive is None else view.serials[view.alive]
        return words.documents == len(alive) and words.last_serial == (int(alive[-1]) if len(alive) else 0)

    # The map

    def map(self) -> Map | None:
        """The map that was drawn of the index, unless too much has changed since."""
        kept = Map.load(self.folder / MAP)
        return None if kept is None or kept.is_worn(self._store.snapshot()) else kept

    def draw_map(self, report: Report = silent) -> Map:
        """Draw the map of the documents, which takes a minute or two for 20,000 points."""
        return draw(self._store.snapshot(), report)

    def keep_map(self, drawn: Map) -> None:
        """Keep a map in the folder, for those who look at the index; it is no part of it and may be removed."""
        drawn.save(self.folder / MAP)


def open_store(folder: Path | str, write: bool) -> Store:
    """The store of an index: its folder, or what the engine that the manifest names has opened."""
    backend = backend_of(Path(folder))
    if not backend:
        return Store.open(folder, write)
    try:
        engine = import_module(f"parabit.engines.{backend}")
    except ModuleNotFoundError as problem:
        raise IndexFolderError(
            f"{folder} is kept by {backend}, which is unknown here", hint="upgrade parabit"
        ) from problem
    store: Store = engine.open_store(folder, write)
    return store


def encoder_of(model: "ParagraphVectors | TextEncoder") -> TextEncoder:
    """What encodes texts, of a model in either form."""
    if isinstance(model, TextEncoder):
        return model
    from sklearn.utils.validation import check_is_fitted  # who has an estimator has it imported already

    check_is_fitted(model, "encoder_")
    encoder: TextEncoder = model.encoder_
    return encoder


def _meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What an index that is made wants to find again; a folder for its words that no other index has had."""
    words = meta["words"] and {**meta["words"], "folder": f"words-{secrets.token_hex(4)}"}
    return {**meta, "words": words}


def _parsed(text: str, view: Snapshot) -> Parsed:
    """A query of the search box taken apart; `field:value` that no document can match for its form are plain words."""
    parsed = parse(text, [name for name in view.field_names if name != "text"])
    try:
        mask_of(view, _own_conditions(parsed.fields))
    except QueryError:
        words = [parsed.text, *(f"{name} {value}" for name, value in parsed.fields)]
        return replace(parsed, text=" ".join(words), fields=())
    return parsed


def _own_conditions(fields: Sequence[tuple[str, str]]) -> tuple[Condition, ...]:
    return conditions([f"{name}={value}" for name, value in fields])


def _with_words(asked: Queries, parsed: Sequence[Parsed], words: RowWords) -> tuple[Queries, list[list[str]]]:
    """Queries with what is searched for in the words of documents, and what is to be said about it."""
    found: list[WordQuery] = []
    notes: list[list[str]] = []
    for one in parsed:
        query = word_query(one, words, words.nearest_word)
        said = [f"searched for {right} instead of {wrong}" for wrong, right in query.corrected.items()]
        if query.unknown:
            said.append(f"no document has {', '.join(query.unknown)}")
        if (query.must or query.any_of) and not len(words.best(query, 1)[0]):
            query = query.relaxed()
            said.append("no document has all that is required, so it was searched for as plain words")
        found.append(query)
        notes.append(said)
    return asked._replace(words=found), notes


def _rank_with_words(
    rank: str,
    asked: Queries,
    view: Snapshot,
    words: RowWords,
    k: int | None,
    radius: int | None,
    candidates: int | None,
    allowed: NDArray[np.bool_] | None,
    backend: str,
    but: NDArray[np.int64] | None,
) -> Ranked:
    extra = 0 if but is None else 1
    if radius is not None:  # all that is near gets both scores
        near = _near(view, asked, _to_rank(k, radius, candidates), radius, allowed, backend, but)
        return rank_by_words(rank, asked, near, view, words, None).first(k)
    assert k is not None
    most = max(candidates or CANDIDATES, k)
    by_code = _near(view, asked, most, None, allowed, backend, but) if rank == "hybrid" else None
    ranked = rank_by_words(rank, asked, by_code, view, words, k + extra)
    return ranked if but is None else ranked.first(k, but)


def _near(
    view: Snapshot,
    asked: Queries,
    most: int | None,
    radius: int | None,
    allowed: NDArray[np.bool_] | None,
    backend: str,
    but: NDArray[np.int64] | None,
) -> Found:
    """The nearest by code: without the document that a query is, and nothing for a query of which no word is known."""
    found = view.find(asked.codes, most if most is None or but is None else most + 1, radius, allowed, backend)
    if but is not None:
        found = found.keep(found.rows != but[found.queries]).first(most)
    return found if asked.known.all() else found.keep(asked.known[found.queries])


def _to_rank(k: int | None, radius: int | None, candidates: int | None) -> int | None:
    """How many of the nearest are ranked by more than their distance; None for all inside the radius."""
    if candidates is None and radius is None:
        candidates = _RANKED
    return None if candidates is None else max(candidates, k or 0)

"""The index: documents by their codes, searched exactly, kept safely."""

import shutil
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from parabit.codes import check_codes
from parabit.corpus import Corpus, Document, as_corpus
from parabit.encoding import ParagraphVectors
from parabit.errors import CodesError, IndexFolderError
from parabit.index.about import about
from parabit.index.asking import asked_codes, asked_texts, checked_k, checked_radius, with_vectors
from parabit.index.documents import Kept, batch_of_codes, batches_of
from parabit.index.filtering import Where, ids_of_written, masks_of
from parabit.index.hits import Hits
from parabit.index.pairing import Pairs, pairs_within
from parabit.index.ranking import Queries, best_rank, need_for, ranked, score
from parabit.index.reading import VECTORS, WORDS, Reading
from parabit.index.searching import Searcher, check_backend, derive_with
from parabit.index.store import Batch, Id, Kind, State, Store
from parabit.index.writing import Ids, Written, write
from parabit.progress import Report, silent

CANDIDATES = 1000  # that are ranked by more than their distance, where no radius is given

Texts = Corpus | Iterable[str | Document]


class Index:
    """Documents by their codes: exact search, ranking, deletion and files that are safe to keep, in one place.

    Example:
        >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired the telescope.", "Goalies like ice."]
        >>> model = ParagraphVectors(bits=16, epochs=3).fit(texts)
        >>> index = Index.build(model, texts)
        >>> hits = index.search(["a telescope in orbit"], k=2)
        >>> len(hits.ids[0]), hits[0][0].text in texts
        (2, True)
        >>> index.delete(["2"])
        >>> len(index)
        2
    """

    def __init__(self, store: Store, model: ParagraphVectors | None = None, scratch: Path | None = None) -> None:
        self._store, self._model = store, model
        # Without a folder of its own the index is gone when nobody has it any more.
        self._remove = None if scratch is None else weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        if model is not None and model.fingerprint_ != store.fingerprint:
            store.close()
            raise IndexFolderError(
                f"{store.folder} was made with another model", hint="give the model it was made with, or build it anew"
            )

    @classmethod
    def build(
        cls,
        model: ParagraphVectors,
        documents: Texts,
        folder: Path | str | None = None,
        *,
        text: bool = True,
        words: bool = True,
        vectors: bool = False,
        backend: str = "auto",
        overwrite: bool = False,
        report: Report = silent,
    ) -> "Index":
        """Encode documents and index them, in a folder or, without one, for as long as the index lives.

        Fields and labels are always kept; `text` keeps what a hit shows, `words` what the ranks tfidf and hybrid need
        (6 bytes a word), `vectors` what cosine needs (2 bytes a dimension). `backend` is built beside the codes:
        `"auto"` takes the exact one that pays at this size, `"lists"` is the approximate one. Documents without a word
        that the model knows are left out, and counted in `left_out`.
        """
        check_is_fitted(model, "vocabulary_")
        if model.bits is None:
            raise CodesError("a real-valued model has no codes to index", hint="train one with bits")
        check_backend(backend)
        kept = Kept(text, words, vectors)
        batches = batches_of(model, as_corpus(documents), kept, report)
        meta = {"backend": backend, "text": text, "mode": model.mode_}
        index = cls._create(
            folder, model.bits, batches, kept.kinds(model), meta, backend, report, model, overwrite=overwrite
        )
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
        overwrite: bool = False,
        report: Report = silent,
    ) -> "Index":
        """Index codes from anywhere; ids are the positions where none are given. Queries are codes then, too.

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
        meta = {"backend": backend, "text": False}
        return cls._create(folder, bits, batches, kinds, meta, backend, report, overwrite=overwrite)

    @classmethod
    def _create(
        cls,
        folder: Path | str | None,
        bits: int,
        batches: Iterable[Batch],
        kinds: Mapping[str, Kind],
        meta: Mapping[str, Any],
        backend: str,
        report: Report,
        model: ParagraphVectors | None = None,
        overwrite: bool = False,
    ) -> "Index":
        scratch = None
        if folder is None:
            scratch = Path(mkdtemp(prefix="parabit-"))
            folder = scratch / "index"
        try:
            Store.create(
                folder,
                bits,
                batches,
                fingerprint="" if model is None else model.fingerprint_,
                meta=meta,
                extra=kinds,
                derive=derive_with(backend, bits, report),
                save_model=None if model is None else lambda place: model.save(place, slim=True),
                overwrite=overwrite,
            )
            return cls(Store.open(folder, write=True), model, scratch)
        except BaseException:
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
            raise

    @classmethod
    def open(cls, folder: Path | str, write: bool = False, model: ParagraphVectors | None = None) -> "Index":
        """Open an index, in milliseconds; its model is read when a text is first asked for, or taken from here.

        One process at a time may open it with `write`; any number read it, and `refresh` shows them what was written.
        """
        return cls(Store.open(folder, write), model)

    _opened: tuple[State, Searcher] | None = None
    left_out = 0  # documents that were to be added and have no word that the model knows

    @property
    def folder(self) -> Path:
        """Where the index is kept."""
        return self._store.folder

    @property
    def bits(self) -> int:
        """How many bits a code has."""
        return self._store.bits

    def __len__(self) -> int:
        return self._store.documents

    @property
    def model(self) -> ParagraphVectors:
        """The model that encodes documents and queries."""
        if self._model is None:
            self._model = self._kept_model()
        return self._model

    def _kept_model(self) -> ParagraphVectors:
        folder = self._store.model_folder
        if not self._store.fingerprint:
            raise IndexFolderError("this index was made of codes and knows no texts", hint="search it with codes")
        model = ParagraphVectors.load(folder)
        if model.fingerprint_ != self._store.fingerprint:
            raise IndexFolderError(f"{folder} is not the model of the index", hint="restore it from a copy")
        return model

    @property
    def best_rank(self) -> str:
        """The rank that finds most for a text, of those that this index can do."""
        return best_rank(WORDS in self._store.extra)

    def search(
        self,
        queries: Texts | NDArray[np.uint8],
        k: int | None = None,
        radius: int | None = None,
        rank: str = "hamming",
        *,
        where: Where | None = None,
        candidates: int = CANDIDATES,
        query_vectors: NDArray[np.floating] | None = None,
        backend: str = "auto",
    ) -> Hits:
        """The documents nearest to each query, of texts or of codes.

        The k nearest (10 where neither is said), all within a Hamming `radius`, or the k best of these. Any `rank` but
        hamming orders by more than the distance what is inside the radius, or else the `candidates` nearest: see
        `parabit.index.ranking.score`. `where` lets through the documents that have a value, or one of several, in each
        field named, as in `where={"labels": "sci.space"}`; the field `id` is the document's. `backend` is for those who
        want to choose what `auto` chooses by measurements.
        """
        if k is None and radius is None:
            k = 10
        k = None if k is None else checked_k(k)
        radius = None if radius is None else checked_radius(radius)
        check_backend(backend)
        state = self._store.state
        segments = state.segments
        asked = self._asked(queries, query_vectors)
        need_for(rank, asked, VECTORS in self._store.extra, WORDS in self._store.extra)
        masks = masks_of(state, segments, where) if where else None
        most = k if rank == "hamming" else None
        if radius is None:
            assert k is not None
            most = k if rank == "hamming" else max(candidates, k)
        found = self._searcher(state).search(segments, asked.codes, most, radius, masks, backend)
        if not asked.known.all():
            found = found.keep(asked.known[found.queries])
        scores = score(rank, asked, found, Reading(segments), self.bits)
        if rank != "hamming":
            found, scores = ranked(found, scores, k)
        return Hits(found, scores, asked, state)

    def pairs(self, radius: int, report: Report = silent, *, backend: str = "auto") -> Iterator[Pairs]:
        """All pairs of documents within a Hamming radius of each other, block by block: duplicates and nearly so.

        An index with lists, which are approximate, gives the pairs that these find, and all with `backend="flat"`.

        Example:
            >>> index = Index.of_codes(np.array([[0], [1], [7]], dtype=np.uint8), bits=8)
            >>> [(pairs.first, pairs.second) for pairs in index.pairs(radius=1)]
            [([0], [1])]
        """
        check_backend(backend)
        state = self._store.state
        return pairs_within(state, self._searcher(state), checked_radius(radius), report, backend)

    def add(self, documents: Texts, report: Report = silent) -> int:
        """Encode and add documents with new ids; how many were added. Those of a batch are all on the disk, or none."""
        return self._write(documents, "new", report).added

    def update(self, documents: Texts, report: Report = silent) -> int:
        """Put documents in the place of those with their ids; how many. One without a known word leaves none there."""
        return self._write(documents, "there", report).replaced

    def put(self, documents: Texts, report: Report = silent) -> Written:
        """Update the documents whose ids are there, and add the others; how many of each.

        Example:
            >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired it.", "Goalies like ice."]
            >>> index = Index.build(ParagraphVectors(bits=16, epochs=3).fit(texts), texts[:2])
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
        for batch in batch_of_codes(codes, ids, fields, vectors, at_once=max(1, len(codes))):
            self._store.append(batch)

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
        for batch in batch_of_codes(codes, ids, fields, vectors, at_once=max(1, len(codes))):
            self._store.update(batch)

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete documents; all of them are gone when this returns, or none is."""
        if isinstance(ids, str):
            raise IndexFolderError("ids are a list, and a single string was given", hint="put it in a list")
        self._store.delete(list(ids))

    def ids_of(self, written: Sequence[str]) -> list[Id]:
        """Ids as people write them: 7 is the string, or else the number where a document has that."""
        return ids_of_written(self._store.state, written)

    def _write(self, documents: Texts, ids: Ids, report: Report) -> Written:
        written = write(self._store, self.model, as_corpus(documents), ids, report)
        self.left_out = written.left_out
        return written

    def compact(self, report: Report = silent) -> None:
        """Merge what was added and deleted; opening is then as fast, and searching, as if it had been built so."""
        self._store.compact(derive_with(self._store.meta["backend"], self.bits, report))

    def save(self, folder: Path | str, overwrite: bool = False, report: Report = silent) -> None:
        """Write the index to a folder, compacted; this one stays where it is. Over itself, it is compacted in place."""
        if overwrite and Path(folder).resolve() == self.folder.resolve():
            self.compact(report)
            return
        self._store.save(folder, derive_with(self._store.meta["backend"], self.bits, report), overwrite=overwrite)

    def refresh(self) -> bool:
        """See what another process has written since; whether there was anything."""
        made_with = self._store.fingerprint
        changed = self._store.refresh()
        if self._store.fingerprint != made_with:  # another index was written over this one
            self._model = None
        return changed

    def verify(self) -> None:
        """Read every byte, of the model too, and raise if one is not what was written."""
        self._store.verify()
        if self._store.fingerprint:
            self._kept_model()

    def close(self) -> None:
        """Give back the right to write; an index without a folder is gone."""
        self._store.close()
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> "Index":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def info(self) -> dict[str, Any]:
        """What the index is and what it keeps."""
        return about(self._store)

    def _searcher(self, state: State) -> Searcher:
        """What was opened of a generation, for as long as it is that of the index."""
        if self._opened is None or self._opened[0] is not state:
            self._opened = (state, Searcher(self.bits))
        return self._opened[1]

    def _asked(self, queries: Texts | NDArray[np.uint8], vectors: NDArray[np.floating] | None) -> Queries:
        extra = self._store.extra
        if isinstance(queries, np.ndarray):
            asked = asked_codes(queries, self.bits)
        else:
            corpus = as_corpus([queries] if isinstance(queries, str) else queries)
            asked = asked_texts(corpus, self.model, self._store.meta["mode"], WORDS in extra)
        if vectors is None:
            return asked
        return with_vectors(asked, vectors, extra[VECTORS].width if VECTORS in extra else None)

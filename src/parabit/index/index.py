"""The index: documents by their codes, searched exactly, kept safely."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes
from parabit.corpus import Corpus, Document, as_corpus
from parabit.errors import CodesError, IndexFolderError
from parabit.index.asking import asked_codes, asked_texts, checked_k, checked_radius, with_vectors
from parabit.index.documents import Kept, batch_of_codes, batches_of
from parabit.index.filtering import Where
from parabit.index.hits import Hits
from parabit.index.kept import KeptIndex, encoder_of
from parabit.index.pairing import Pairs, pairs_within
from parabit.index.ranking import READS, Queries, need_for, ranked, score
from parabit.index.reading import VECTORS, WORDS
from parabit.index.search import check_backend
from parabit.index.store import Id, Kind
from parabit.index.stored import rows_with
from parabit.index.view import View
from parabit.index.writing import Ids, Written, write
from parabit.model import TextEncoder
from parabit.progress import Report, silent

if TYPE_CHECKING:
    from parabit.model import ParagraphVectors

CANDIDATES = 1000  # that are ranked by more than their distance, where no radius is given

Texts = Corpus | Iterable[str | Document]


class Index(KeptIndex):
    """Documents by their codes: exact search, ranking, deletion and files that are safe to keep, in one place.

    Example:
        >>> from parabit import ParagraphVectors
        >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired the telescope.", "Goalies like ice."]
        >>> model = ParagraphVectors(bits=16).fit(texts * 6)
        >>> index = Index.build(model, texts)
        >>> hits = index.search(["a telescope in orbit"], k=2)
        >>> len(hits.ids[0]), hits[0][0].text in texts
        (2, True)
        >>> index.delete(["2"])
        >>> len(index)
        2
    """

    left_out = 0  # documents that were to be added and have no word that the model knows

    @classmethod
    def build(
        cls,
        model: "ParagraphVectors | TextEncoder",
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
        `"auto"` takes the one that pays at this size. Documents without a word that the model knows are left out, and
        counted in `left_out`.
        """
        model = encoder_of(model)
        if model.bits is None:
            raise CodesError("a real-valued model has no codes to index", hint="train one with bits")
        check_backend(backend)
        kept = Kept(text, words, vectors)
        batches = batches_of(model, as_corpus(documents), kept, report)
        meta = {"backend": backend, "text": text}
        index = cls._create(folder, model.bits, batches, kept.kinds(model), meta, backend, report, model, overwrite)
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
        return cls._create(folder, bits, batches, kinds, meta, backend, report, None, overwrite)

    def search(
        self,
        queries: Texts | NDArray[np.uint8],
        k: int | None = None,
        radius: int | None = None,
        rank: str = "hamming",
        *,
        where: Where | None = None,
        candidates: int | None = None,
        query_vectors: NDArray[np.floating] | None = None,
        backend: str = "auto",
    ) -> Hits:
        """The documents nearest to each query, of texts or of codes.

        The k nearest (10 where neither is said), all within a Hamming `radius`, or the k best of these. Any `rank` but
        hamming orders by more than the distance: the `candidates` nearest, by default 1,000, or all that are inside the
        radius; see `parabit.index.ranking.score`. `where` lets through the documents that have a value, or one of
        several, in each field named, as in `where={"labels": "sci.space"}`; the field `id` is the document's. `backend`
        is for those who want to choose what `auto` chooses by measurements.
        """
        view = self._home.view()  # before the queries are read, which may take as long as they like
        asked = self._asked(queries, query_vectors)
        return self._find(view, asked, k, radius, rank, where, candidates, backend)

    def like(
        self,
        ids: Sequence[Id],
        k: int | None = None,
        radius: int | None = None,
        rank: str | None = None,
        *,
        where: Where | None = None,
        candidates: int | None = None,
        backend: str = "auto",
    ) -> Hits:
        """The documents most like each of some that are in the index, which are not among their own hits.

        A document's text is the query where it was kept, and by default the best rank then; else it is its code.

        Example:
            >>> from parabit import ParagraphVectors
            >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired it.", "Goalies like ice."]
            >>> index = Index.build(ParagraphVectors(bits=16).fit(texts * 6), texts)
            >>> sorted(index.like(["0"]).ids[0])
            ['1', '2']
        """
        view = self._home.view()
        rows = rows_with(view, ids)
        if self.keeps_text and self.knows_texts:
            asked = self._asked([fields.get("text", "") for fields in view.fields_of(rows)], None)
            rank = rank or self.best_rank
        else:
            asked = asked_codes(view.codes(rows), self.bits)
            rank = rank or "hamming"
        return self._find(view, asked, k, radius, rank, where, candidates, backend, rows)

    def _find(
        self,
        view: View,
        asked: Queries,
        k: int | None,
        radius: int | None,
        rank: str,
        where: Where | None,
        candidates: int | None,
        backend: str,
        but: NDArray[np.int64] | None = None,
    ) -> Hits:
        """What a search finds; `but` is a row for each query that is not to be found."""
        if k is None and radius is None:
            k = 10
        k = None if k is None else checked_k(k)
        radius = None if radius is None else checked_radius(radius)
        check_backend(backend)
        need_for(rank, asked, VECTORS in self._home.extra, WORDS in self._home.extra)
        most = k if rank == "hamming" else _to_rank(k, radius, candidates)
        asked_for = None if most is None else most + (but is not None)
        found = view.find(asked.codes, asked_for, radius, where, backend, READS[rank])
        if but is not None:
            found = found.keep(found.rows != but[found.queries]).first(most)
        if not asked.known.all():
            found = found.keep(asked.known[found.queries])
        scores = score(rank, asked, found, view, self.bits)
        if rank != "hamming":
            found, scores = ranked(found, scores, k)
        vocabulary = None if asked.words is None else self.model.vocabulary
        return Hits(found, scores, asked, view, vocabulary, view.notes(backend))

    def pairs(self, radius: int, report: Report = silent, *, backend: str = "auto") -> Iterator[Pairs]:
        """All pairs of documents within a Hamming radius of each other, block by block: duplicates and nearly so.

        Example:
            >>> index = Index.of_codes(np.array([[0], [1], [7]], dtype=np.uint8), bits=8)
            >>> [(pairs.first, pairs.second) for pairs in index.pairs(radius=1)]
            [([0], [1])]
        """
        check_backend(backend)
        return pairs_within(self._home.view(), checked_radius(radius), report, backend)

    def add(self, documents: Texts, report: Report = silent) -> int:
        """Encode and add documents with new ids; how many were added.

        Those of a batch are all on the disk, or none is.
        """
        return self._write(documents, "new", report).added

    def update(self, documents: Texts, report: Report = silent) -> int:
        """Put documents in the place of those with their ids; how many. One without a known word leaves none there."""
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
        for batch in batch_of_codes(codes, ids, fields, vectors, at_once=max(1, len(codes))):
            self._home.append(batch)

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
            self._home.update(batch)

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete documents; all of them are gone when this returns, or none is."""
        if isinstance(ids, str):
            raise IndexFolderError("ids are a list, and a single string was given", hint="put it in a list")
        self._home.delete(list(ids))

    def _write(self, documents: Texts, ids: Ids, report: Report) -> Written:
        written = write(self._home, self.model, as_corpus(documents), ids, report)
        self.left_out = written.left_out
        return written

    def _asked(self, queries: Texts | NDArray[np.uint8], vectors: NDArray[np.floating] | None) -> Queries:
        extra = self._home.extra
        if isinstance(queries, np.ndarray):
            asked = asked_codes(queries, self.bits)
        else:
            corpus = as_corpus([queries] if isinstance(queries, str) else queries)
            asked = asked_texts(corpus, self.model)
        if vectors is None:
            return asked
        return with_vectors(asked, vectors, extra[VECTORS].width if VECTORS in extra else None)


def _to_rank(k: int | None, radius: int | None, candidates: int | None) -> int | None:
    """How many of the nearest are ranked by more than their distance; None for all inside the radius."""
    if candidates is None and radius is None:
        candidates = CANDIDATES
    return None if candidates is None else max(candidates, k or 0)

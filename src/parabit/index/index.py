"""The index: documents by their codes and words, kept safely."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from parabit.choices import Keep
from parabit.codes import check_codes
from parabit.corpus import Corpus, Texts, as_corpus
from parabit.errors import CodesError, IndexFolderError, ParabitError
from parabit.index.documents import (
    Kept,
    Written,
    batch_of_codes,
    batches_of,
    rows_with,
)
from parabit.index.duplicates import SHARED, Group, duplicates_of
from parabit.index.filters import Where, conditions
from parabit.index.hits import Hits
from parabit.index.open_index import Engine, OpenIndex, encoder_of, learned_from, with_own_words
from parabit.index.query import (
    Parsed,
    Queries,
    asked_codes,
    checked_k,
    checked_radius,
    matching_tokens,
    with_vectors,
    word_query,
)
from parabit.index.ranking import Allowed, Request, need_for, parsed_queries, retrieve, with_words
from parabit.index.retrain import retrain
from parabit.index.search import check_backend
from parabit.index.store import VECTORS, Id, Kind, Snapshot
from parabit.index.word_index import searchable
from parabit.index.words import check_language
from parabit.model import TextEncoder
from parabit.model.encoder import joined
from parabit.progress import Report, silent
from parabit.text.bags import FEW, make_bags

if TYPE_CHECKING:
    from parabit.index.sync import Synced
    from parabit.model import ParagraphVectors


class Index(OpenIndex):
    """Documents by their codes and words: search, ranking, changes and files that are safe to keep, in one place.

    Example:
        >>> from parabit import ParagraphVectors
        >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired the telescope.", "Goalies like ice."]
        >>> index = Index.build(texts, model=ParagraphVectors(bits=16).fit(texts * 6))
        >>> hits = index.search(["telescopes in orbit"], k=2)[0]
        >>> hits[0].title, sorted(hits[0].why.words)
        ('The telescope was repaired in orbit.', ['orbit', 'telescop'])
        >>> index.delete(["2"])
        >>> len(index)
        2
    """

    @classmethod
    def build(
        cls,
        documents: Texts,
        folder: Path | str | None = None,
        *,
        model: "ParagraphVectors | TextEncoder | None" = None,
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

        Without a `model`, one of 128 bits is learned from the documents. Fields and labels are always kept; `text`
        keeps what a hit shows. `words` makes the texts searchable by their words, stemmed by `language` (None does not
        stem); without it an index takes 16 bytes per document, and the ranks words and hybrid are missing. Words need
        the texts, so `text=False` leaves them out, too. `vectors` keeps what the rank cosine needs (2 bytes per
        dimension). `backend` is built beside the codes: `"auto"` takes the exact one that pays at this size. An
        `engine` of `parabit.engines` keeps and searches documents elsewhere, and the folder has the model. Documents
        with nothing to be found by are left out, and counted in `left_out`.
        """
        check_backend(backend)
        check_language(language)
        if words and not text:
            raise ParabitError("words are found in texts, which text=False does not keep", hint="leave out one of both")
        documents = as_corpus(documents)
        model = learned_from(documents, report) if model is None else encoder_of(model)
        if model.bits is None:
            raise CodesError("a real-valued model has no codes to index", hint="train one with bits")
        words = text if words is None else words
        kept = Kept(text, words, vectors)
        from parabit.index.corpus_files import note_files  # here: it needs polars, and a search does not

        files = note_files(documents, folder)
        batches = batches_of(model, files or documents, kept, report)
        meta: dict[str, Any] = {"backend": backend, "text": text, "words": None}
        if files is not None:
            meta["corpus"] = files.memory
        if words:
            meta["words"] = {"language": language, "fold_accents": model.vocabulary.tokenizer.fold_accents}
        meta = with_own_words(meta)
        index = cls._create(folder, model.bits, batches, kept.kinds(model), meta, report, model, overwrite, engine)
        index.left_out = kept.left_out
        if files is not None:
            files.files().write(index.folder / files.memory["files"])
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
        filters = conditions(where)
        if isinstance(queries, np.ndarray):
            asked, given = asked_codes(queries, self.bits), None
            allowed = [Allowed(only := view.select(filters) if filters else None, only)] * len(queries)
        else:
            texts = [queries] if isinstance(queries, str) else [document.text for document in as_corpus(queries)]
            given, allowed = parsed_queries(view, self.fields, texts, filters)
            asked = self._encoded([one.text for one in given])
        if query_vectors is not None:
            kinds = self._store.extra
            asked = with_vectors(asked, query_vectors, kinds[VECTORS].width if VECTORS in kinds else None)
        return self._find(view, asked, given, allowed, k, radius, rank, candidates, backend)

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
            >>> index = Index.build(texts, model=ParagraphVectors(bits=16).fit(texts * 6))
            >>> index.like("0").ids[0][0]
            '1'
        """
        view = self._store.snapshot()
        rows = rows_with(view, [ids] if isinstance(ids, str | int) else ids)
        only = view.select(filters) if (filters := conditions(where)) else None
        given = None
        if self.keeps_text and self.knows_texts:
            given = [Parsed(searchable(fields)) for fields in view.fields_of(rows)]
            asked = self._encoded([one.text for one in given])
        else:
            asked = asked_codes(view.codes(rows), self.bits)
        allowed = [Allowed(only, only)] * len(rows)
        return self._find(view, asked, given, allowed, k, radius, rank, candidates, backend, rows)

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
        given: Sequence[Parsed] | None,
        allowed: list[Allowed],
        k: int | None,
        radius: int | None,
        rank: str | None,
        candidates: int | None,
        backend: str,
        but: NDArray[np.int64] | None = None,
    ) -> Hits:
        """What a search finds; `but` is a row for each query that is not to be found."""
        k = 10 if k is None and radius is None else None if k is None else checked_k(k)
        radius = None if radius is None else checked_radius(radius)
        check_backend(backend)
        rank = rank or (self.best_rank if given is not None else "hamming")
        need_for(rank, asked, VECTORS in self._store.extra, self.has_words)
        words = None
        if given is not None and self.has_words:
            words = partial(self._words.of, view)
            if rank in ("hybrid", "words") or any(one.restricts for one in given):
                searched = words()
                asked, allowed = with_words(asked, given, searched, allowed)
                ranked = retrieve(view, asked, Request(k, radius, rank, candidates, backend), allowed, searched, but)
                return Hits(ranked, asked, view, given, allowed, words, self.model.vocabulary.tokenizer)
        ranked = retrieve(view, asked, Request(k, radius, rank, candidates, backend), allowed, None, but)
        tokenizer = None if given is None else self.model.vocabulary.tokenizer  # codes are searched without the model
        return Hits(ranked, asked, view, given, allowed, words, tokenizer)

    def matching(self, query: str, text: str) -> set[str]:
        """The words of a text that match a query, as they are written there; none if the index keeps no words."""
        if not self.has_words:
            return set()
        view = self._store.snapshot()
        words, [[one], _] = self._words.of(view), parsed_queries(view, self.fields, [query], ())
        return matching_tokens(word_query(one, words), words, text)

    def duplicates(
        self, keep: Keep = "first", *, shared: float = SHARED, date: str = "date", report: Report = silent
    ) -> list[Group]:
        """Groups of near-duplicates: documents that share at least half of their words with the one that is kept.

        `keep` says which: the first in the index, the longest, or the newest by a field `date`. `shared` is the share
        of common words from which two documents are near-duplicates. A group is a document that is kept and its
        copies, each with the share of common words and the number of bits in which the codes differ.

        Example:
            >>> from parabit import ParagraphVectors
            >>> texts = ["The telescope was repaired.", "Goalies like ice.", "The telescope is repaired."]
            >>> index = Index.build(texts, model=ParagraphVectors(bits=16).fit(texts * 6))
            >>> [group.ids for group in index.duplicates()]
            [['0', '2']]
        """
        if not self.keeps_text:
            raise ParabitError(
                "near-duplicates are found by their texts, which this index does not keep",
                hint="build it with them, or give the corpus",
            )
        return duplicates_of(self._store.snapshot(), keep, shared, date, report)

    # Changing

    def add(self, documents: Texts, report: Report = silent) -> int:
        """Encode and add documents with new ids; how many were added. Those of a batch are all on the disk, or none."""
        return self._write(documents, report, new=True).added

    def put(self, documents: Texts, report: Report = silent) -> Written:
        """Update the documents whose ids are there, and add the others; how many of each.

        Example:
            >>> from parabit import ParagraphVectors
            >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired it.", "Goalies like ice."]
            >>> index = Index.build(texts[:2], model=ParagraphVectors(bits=16).fit(texts * 6))
            >>> index.put(texts)
            Written(added=1, replaced=2, removed=0, left_out=0)
        """
        return self._write(documents, report)

    def sync(
        self,
        corpus: Corpus | str | Path | Sequence[str | Path] | None = None,
        *,
        dry_run: bool = False,
        allow_empty: bool = False,
        report: Report = silent,
    ) -> "Synced":
        """Bring the index up to date with the files it was made of, or with others, which it then remembers.

        Adds what is new, replaces what changed, deletes what is gone, and gives renamed documents their new ids. Files
        with the size and time that they had are not read. Documents that did not come from these files stay, as do
        those of files that cannot be read now. A corpus that is missing or empty is an error, unless `allow_empty`.
        `dry_run` only finds out what there is to do.

        Example:
            >>> from pathlib import Path
            >>> from tempfile import mkdtemp
            >>> from parabit import ParagraphVectors, open_corpus
            >>> folder = Path(mkdtemp())
            >>> texts = {"hubble": "The telescope was repaired in orbit.", "ice": "Goalies like ice."}
            >>> written = [(folder / f"{name}.txt").write_text(text) for name, text in texts.items()]
            >>> model = ParagraphVectors(bits=16).fit([*texts.values()] * 8)
            >>> index = Index.build(open_corpus(folder), model=model)
            >>> _ = (folder / "ice.txt").rename(folder / "goalies.txt")
            >>> index.sync().renamed
            [('ice.txt', 'goalies.txt')]
        """
        from parabit.index.sync import sync

        try:
            return sync(self, corpus, dry_run, allow_empty, report)
        finally:
            self._words.commit()

    def retrain(
        self, *, bits: int | None = None, sample: int | None = None, seed: int | None = None, report: Report = silent
    ) -> None:
        """Learn a new model from the documents of the index, and encode them again.

        The model is learned as the old one was, unless `bits`, `sample` or `seed` are given. The index changes in one
        step when all is done: who reads it sees the old one until `refresh`, and an interrupt leaves the old one.

        Example:
            >>> index = Index.build(["The telescope was repaired in orbit.", "Goalies like ice."] * 70)
            >>> index.retrain(bits=32)
            >>> index.bits
            32
        """
        retrain(self, bits, sample, seed, report)

    def put_codes(
        self,
        codes: NDArray[np.uint8],
        ids: Sequence[Id],
        fields: Sequence[Mapping[str, Any]] | None = None,
        vectors: NDArray[np.floating] | None = None,
    ) -> int:
        """Put codes from anywhere into an index that was made of codes, in one step; how many had ids that were there.

        Example:
            >>> index = Index.of_codes(np.array([[0], [1]], dtype=np.uint8), bits=8)
            >>> index.put_codes(np.array([[7], [3]], dtype=np.uint8), ids=[1, 2])
            1
            >>> len(index)
            3
        """
        batches = batch_of_codes(codes, ids, fields, vectors, at_once=max(1, len(codes)))
        return sum(self._store.put(batch) for batch in batches)

    def delete(self, ids: Id | Sequence[Id]) -> None:
        """Delete documents; all of them are gone when this returns, or none is."""
        ids = [ids] if isinstance(ids, str | int) else list(ids)
        there = self.has(ids)
        if not there.all():
            raise IndexFolderError(
                f"there is no document with the id {ids[int(np.argmin(there))]!r}", hint="nothing was changed"
            )
        serials = self._words.serials_of(ids)
        self._store.put(None, ids)
        self._words.change(serials)
        self._words.commit()

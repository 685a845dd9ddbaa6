"""What every index is: a home of documents, the model that made their codes, and a folder that both are kept in."""

import shutil
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from parabit.choices import RANKS
from parabit.errors import IndexFolderError
from parabit.index.embedded import Embedded
from parabit.index.labels import Labels, labels_of
from parabit.index.map import Map, draw
from parabit.index.ranking import best_rank
from parabit.index.reading import VECTORS, WORDS
from parabit.index.search import derive_with
from parabit.index.store import MAP, Batch, Id, Kind
from parabit.index.stored import Stored, ids_of_written, stored_with
from parabit.index.view import Home
from parabit.model import TextEncoder, load_model, save_model
from parabit.progress import Report, silent

if TYPE_CHECKING:
    from parabit.model import ParagraphVectors


class KeptIndex:
    """An index as files and what is read from them; `Index` searches and writes."""

    def __init__(self, home: Home, model: TextEncoder | None = None, scratch: Path | None = None) -> None:
        self._home, self._model = home, model
        # Without a folder of its own the index is gone when nobody has it any more.
        self._remove = None if scratch is None else weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        if model is not None and model.fingerprint != home.fingerprint:
            home.close()
            raise IndexFolderError(
                f"{home.folder} was made with another model", hint="give the model it was made with, or build it anew"
            )

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
        model: TextEncoder | None = None,
        overwrite: bool = False,
    ) -> Self:
        save = None if model is None else lambda place: save_model(model, place)
        fingerprint = "" if model is None else model.fingerprint
        scratch = None
        if folder is None:
            scratch = Path(mkdtemp(prefix="parabit-"))
            folder = scratch / "index"
        try:
            Embedded.create(
                folder,
                bits,
                batches,
                fingerprint=fingerprint,
                meta=meta,
                extra=kinds,
                derive=derive_with(backend, bits, report),
                save_model=save,
                overwrite=overwrite,
            )
            return cls(Embedded.open(folder, write=True), model, scratch)
        except BaseException:
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
            raise

    @classmethod
    def open(
        cls, folder: Path | str, write: bool = False, model: "ParagraphVectors | TextEncoder | None" = None
    ) -> Self:
        """Open an index, in milliseconds; its model is read when a text is first asked for, or taken from here.

        One process at a time may open it with `write`; any number read it, and `refresh` shows them what was written.
        """
        return cls(Embedded.open(folder, write), None if model is None else encoder_of(model))

    @property
    def folder(self) -> Path:
        """Where the index is kept."""
        return self._home.folder

    @property
    def bits(self) -> int:
        """How many bits a code has."""
        return self._home.bits

    def __len__(self) -> int:
        return self._home.documents

    @property
    def model(self) -> TextEncoder:
        """The model that encodes documents and queries."""
        if self._model is None:
            self._model = self._kept_model()
        return self._model

    def _kept_model(self) -> TextEncoder:
        folder = self._home.model_folder
        if not self._home.fingerprint:
            raise IndexFolderError("this index was made of codes and knows no texts", hint="search it with codes")
        model = load_model(folder)
        if model.fingerprint != self._home.fingerprint:
            raise IndexFolderError(f"{folder} is not the model of the index", hint="restore it from a copy")
        return model

    @property
    def best_rank(self) -> str:
        """The rank that finds most for a text, of those that this index can do."""
        return best_rank(WORDS in self._home.extra)

    @property
    def ranks(self) -> tuple[str, ...]:
        """The ranks that this index can do for a text, or for a code where it knows no texts."""
        if not self.knows_texts:
            return ("hamming",)
        extra = self._home.extra
        lacking = {"cosine"} if VECTORS not in extra else set()
        return tuple(rank for rank in RANKS if rank not in lacking | (set() if WORDS in extra else {"tfidf", "hybrid"}))

    @property
    def fields(self) -> list[str]:
        """The names of the fields that documents have, but for their text."""
        return [name for name in self._home.field_names if name != "text"]

    @property
    def knows_texts(self) -> bool:
        """Whether it has a model, so that texts can be asked with."""
        return bool(self._home.fingerprint)

    @property
    def keeps_text(self) -> bool:
        """Whether the texts of the documents were kept."""
        return bool(self._home.meta["text"])

    def stored(self, ids: Sequence[Id]) -> list[Stored]:
        """The documents with these ids, as they are kept: id, code, text and fields."""
        return stored_with(self._home.view(), ids)

    def labels(self, most: int = 500) -> Labels:
        """The most frequent labels and how many documents have each."""
        return labels_of(self._home.view(), most)

    def has(self, ids: Sequence[Id]) -> NDArray[np.bool_]:
        """Whether there is a document with each of these ids."""
        return self._home.rows_of(ids) >= 0

    def map(self) -> Map | None:
        """The map that was drawn of the index, unless too much has changed since."""
        kept = Map.load(self.folder / MAP)
        return None if kept is None or kept.is_worn(self._home.view()) else kept

    def draw_map(self, report: Report = silent) -> Map:
        """Draw the map of the documents, which takes a minute or two for 20,000 points."""
        return draw(self._home.view(), report)

    def keep_map(self, drawn: Map) -> None:
        """Keep a map in the folder, for those who look at the index; it is no part of it and may be removed."""
        drawn.save(self.folder / MAP)

    def ids_of(self, written: Sequence[str]) -> list[Id]:
        """Ids as people write them: 7 is the string, or else the number where a document has that."""
        return ids_of_written(self._home.view(), written)

    def compact(self, report: Report = silent) -> None:
        """Merge what was added and deleted; opening is then as fast, and searching, as if it had been built so."""
        self._home.merge(report)

    def save(self, folder: Path | str, overwrite: bool = False, report: Report = silent) -> None:
        """Write the index to a folder, compacted; this one stays where it is. Over itself, it is compacted in place."""
        if overwrite and Path(folder).resolve() == self.folder.resolve():
            self.compact(report)
            return
        self._home.copy_to(folder, overwrite, report)

    def refresh(self) -> bool:
        """See what another process has written since; whether there was anything."""
        made_with = self._home.fingerprint
        changed = self._home.refresh()
        if self._home.fingerprint != made_with:  # another index was written over this one
            self._model = None
        return changed

    def verify(self) -> None:
        """Read every byte, of the model too, and raise if one is not what was written."""
        self._home.verify()
        if self._home.fingerprint:
            self._kept_model()

    def close(self) -> None:
        """Give back the right to write; an index without a folder is gone."""
        self._home.close()
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def info(self) -> dict[str, Any]:
        """What the index is and what it keeps."""
        return self._home.about()


def encoder_of(model: "ParagraphVectors | TextEncoder") -> TextEncoder:
    """What encodes texts, of a model in either form."""
    if isinstance(model, TextEncoder):
        return model
    from sklearn.utils.validation import check_is_fitted  # who has an estimator has it imported already

    check_is_fitted(model, "encoder_")
    encoder: TextEncoder = model.encoder_
    return encoder

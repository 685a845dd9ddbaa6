"""The codes of a corpus of any size as a file: `.npy` or `.parquet`."""

import json
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from parabit import __version__
from parabit.corpus import as_corpus
from parabit.errors import ParabitError
from parabit.model.encoder import InferredBatch
from parabit.model.estimator import ParagraphVectors
from parabit.model.parts import WHOLE, Parts, Remaining, checksum, has_parts, is_parts_folder, read_part
from parabit.progress import Progress, Report, silent
from parabit.storage import need_room_for_file, plain_disk_errors, whole_file
from parabit.text.build import Documents as Texts

SUFFIXES = (".npy", ".parquet")
_ROW_GROUP = 16_384  # documents; with those of polars' choice, vectors took twice the memory
META = "parabit"  # the key of what a Parquet file tells of itself


class Encoded(NamedTuple):
    """What was written."""

    documents: int
    without_words: int  # of them, those of whose words the model knows none; their codes are zeros
    resumed: int  # of them, those that an earlier run had encoded
    mode: str
    bytes: int  # a document's, without its id


def encode_to_file(
    model: ParagraphVectors,
    texts: Texts,
    output: Path | str,
    *,
    mode: str | None = None,
    vectors: bool = False,
    name: str = "",
    resume: bool = False,
    overwrite: bool = False,
    told: Mapping[str, Any] | None = None,
    report: Report = silent,
) -> Encoded:
    """Write the codes of texts, in their order, to a file; memory does not grow with their number.

    `.npy` holds an array: (documents, bytes) uint8, or (documents, dim) float32 of a real-valued model. `.parquet` has
    the columns `id`, `code` (binary) and, with `vectors` or of a real-valued model, `vector`; what it was made with
    stands under the key `parabit` of its metadata, as JSON, and what else is to be `told` there.

    What is done is kept in a folder beside the output, `work_folder_of(output)`, until all is; after any end the same
    call with `resume` goes on from there. `name` is the corpus', so that another one is refused. An old file of codes
    is replaced only with `overwrite`, anything else never.

    Example:
        >>> import tempfile
        >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired the telescope.", "Goalies like ice."]
        >>> model = ParagraphVectors(bits=16, epochs=3).fit(texts)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     encoded = encode_to_file(model, texts, Path(folder, "codes.npy"))
        ...     codes = np.load(Path(folder, "codes.npy"))
        >>> encoded.documents, codes.shape, np.array_equal(codes, model.transform(texts))
        (3, (3, 2), True)
    """
    output, corpus = Path(output), as_corpus(texts)
    need_room_for_codes(output, resume, overwrite)
    columns = columns_of(model, output, vectors)
    mode, shape = mode or model.mode_, model.shape_
    about = {"parabit": __version__, "model": model.fingerprint_, "bits": shape.bits, "dim": shape.dim, "mode": mode}
    identity = {**about, "corpus": name, "columns": list(columns)}
    schema = {"id": pl.String(), "text": pl.UInt32(), "known": pl.Boolean()}
    schema |= {column: kind for column, (kind, _) in columns.items()}
    parts = Parts(work_folder_of(output), identity, schema, resume)
    resumed = parts.documents
    rest = Remaining(corpus, parts, report) if resumed else corpus
    try:
        with closing(model.infer_each(rest, report, mode)) as batches:
            for batch in batches:
                parts.add(_rows(batch, columns))
        parts.save()
        without_words = sum(int((~read_part(path, ["known"])["known"]).sum()) for path in parts.paths)
        parts.begin()  # where there was no document
        with whole_file(parts.folder / WHOLE, durable=True) as partial:
            if output.suffix == ".npy":
                [(column, (_, width))] = columns.items()
                _write_array(partial, parts, column, width, report)
            else:
                counts = {"documents": parts.documents, "without_words": without_words, "skipped": corpus.skipped}
                _write_table(partial, parts, list(columns), {**about, **counts, **(told or {})})
        (parts.folder / WHOLE).replace(output)
    except BaseException:
        with suppress(OSError, ParabitError):  # of a full disk, which may be why we are here
            parts.save()
        parts.tidy()
        raise
    parts.remove()
    return Encoded(parts.documents, without_words, resumed, mode, sum(width for _, width in columns.values()))


def need_room_for_codes(output: Path, resume: bool = False, overwrite: bool = False) -> None:
    """Raise if codes could not be written to a file of this name; to ask before long work."""
    if output.suffix not in SUFFIXES:
        raise ParabitError(f"{output} ends neither in {' nor in '.join(SUFFIXES)}", hint="give one of these endings")
    there = output.exists() or output.is_symlink()
    if there and not overwrite:
        raise ParabitError(f"{output} is there already", hint="choose another name, or replace it with --overwrite")
    need_room_for_file(output)
    if there and not is_codes(output):
        raise ParabitError(f"{output} is there and holds no codes", hint="nothing was touched; choose another name")
    folder = work_folder_of(output)
    if not folder.exists() and not folder.is_symlink():
        if resume:
            raise ParabitError(f"there is no unfinished encoding in {folder}", hint="leave out --resume to start one")
    elif not is_parts_folder(folder):
        raise ParabitError(f"{folder} is there and is something else", hint="nothing was touched; choose another name")
    elif has_parts(folder) and not resume and not overwrite:
        raise ParabitError(
            f"an unfinished encoding is in {folder}", hint="go on with --resume, or start anew with --overwrite"
        )


def work_folder_of(output: Path) -> Path:
    """Where an encoding keeps what it has done, until all is.

    Example:
        >>> work_folder_of(Path("news.parquet")).name
        'news.parquet.encoding'
    """
    return output.with_name(f"{output.name}.encoding")


def is_codes(path: Path) -> bool:
    """Whether a file is one that an encoding wrote, so that no data of anybody's are lost with it."""
    try:
        if path.suffix == ".parquet":
            return META in pl.read_parquet_metadata(path)
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return False
    return array.ndim == 2 and array.dtype in (np.uint8, np.float32)


_Columns = dict[str, tuple[pl.DataType, int]]  # what is written of a document: its type, and its bytes


def columns_of(model: ParagraphVectors, output: Path, vectors: bool) -> _Columns:
    """What is written of a document to a file of this name."""
    bits, dim = model.shape_.bits, model.shape_.dim
    code: _Columns = {} if bits is None else {"code": (pl.Binary(), -(-bits // 8))}
    vector: _Columns = {"vector": (pl.Array(pl.Float32, dim), 4 * dim)}
    if vectors and code and output.suffix == ".npy":
        raise ParabitError("an .npy file cannot hold both codes and vectors", hint="write to a .parquet file")
    return code | vector if vectors or not code else code


def _rows(batch: InferredBatch, columns: _Columns) -> pl.DataFrame:
    codes, vectors = batch.inferred
    rows = [
        pl.Series("id", [document.id for document in batch.documents], pl.String),
        pl.Series("text", [checksum(document.text) for document in batch.documents], pl.UInt32),
        pl.Series("known", batch.known, pl.Boolean),
    ]
    if "code" in columns and codes is not None:
        kind, width = columns["code"]
        rows.append(pl.Series("code", np.ascontiguousarray(codes).view(f"V{width}")[:, 0].tolist(), kind))
    if "vector" in columns:
        rows.append(pl.Series("vector", vectors, columns["vector"][0]))
    return pl.DataFrame(rows)


def _write_array(path: Path, parts: Parts, column: str, width: int, report: Report) -> None:
    dtype: np.dtype[Any] = np.dtype(np.uint8 if column == "code" else np.float32)
    shape = (parts.documents, width // dtype.itemsize)
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    done = 0
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts.paths:
            rows = read_part(part, [column])[column]
            file.write(b"".join(rows) if column == "code" else np.ascontiguousarray(rows.to_numpy()).data)
            done += len(rows)
            report(Progress("writing", done, "documents", done / parts.documents))


def _write_table(path: Path, parts: Parts, columns: list[str], about: Mapping[str, Any]) -> None:
    told = {META: json.dumps(about)}
    with plain_disk_errors():
        if parts.paths:
            rows = pl.scan_parquet(parts.paths, glob=False).select("id", *columns)
            rows.sink_parquet(path, metadata=told, row_group_size=_ROW_GROUP)
        else:
            parts.nothing.select("id", *columns).write_parquet(path, metadata=told)

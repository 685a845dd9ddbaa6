"""The codes of a corpus of any size as a file: `.npy` or `.parquet`."""

import json
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from parabit import __version__
from parabit.characters import without_halves
from parabit.corpus import Corpus, Texts, as_corpus
from parabit.errors import ParabitError
from parabit.model.encoder import InferredBatches, TextEncoder
from parabit.progress import Report, silent
from parabit.storage import (
    ArrayWriter,
    is_regular,
    need_new,
    need_room,
    parts_folder,
    plain_disk_errors,
    whole_file,
)

SUFFIXES = (".npy", ".parquet")
META = "parabit"  # the key of the metadata in a Parquet file
_ROW_GROUP = 16_384  # documents; with those that polars chooses, vectors took twice the memory


class EncodedFile(NamedTuple):
    """What was written."""

    documents: int
    without_words: int  # documents without a known word; their codes are zeros
    bytes: int  # per document, without its id


def encode_to_file(
    model: TextEncoder,
    texts: Texts,
    output: Path | str,
    *,
    vectors: bool = False,
    overwrite: bool = False,
    about: Mapping[str, Any] | None = None,
    report: Report = silent,
) -> EncodedFile:
    """Write the codes of texts, in their order, to a file; memory does not grow with their number.

    `.npy` holds an array: (documents, bytes) uint8, or (documents, dim) float32 of a real-valued model. `.parquet` has
    the columns `id`, `code` (binary) and, with `vectors` or of a real-valued model, `vector`; its metadata has a JSON
    object under the key `parabit`, with what is `about` it. The file appears when it is complete. An old file of codes
    is replaced only with `overwrite`, anything else never.

    Example:
        >>> from parabit import ParagraphVectors
        >>> texts = ["telescope in orbit", "the telescope of Hubble", "hockey on ice", "ice hockey goalies"] * 5
        >>> model = ParagraphVectors(bits=16).fit(texts)
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     encoded = encode_to_file(model.encoder_, texts, Path(folder, "codes.npy"))
        ...     codes = np.load(Path(folder, "codes.npy"))
        >>> encoded.documents, codes.shape, np.array_equal(codes, model.transform(texts))
        (20, (20, 2), True)
    """
    output, corpus = Path(output), as_corpus(texts)
    if output.suffix not in SUFFIXES:
        raise ParabitError(
            f"{output} ends neither in {' nor in '.join(SUFFIXES)}",
            hint="give one of these endings",
        )
    need_new(output, overwrite)
    need_room(output)
    if os.path.lexists(output) and not is_codes(output):
        raise ParabitError(
            f"{output} exists and is not a file of codes",
            hint="nothing was changed; use another name",
        )
    widths = widths_of(model, vectors)
    if output.suffix == ".npy" and len(widths) > 1:
        raise ParabitError(
            "an .npy file cannot hold both codes and vectors", hint="write to a .parquet file"
        )
    with (
        whole_file(output, durable=True) as partial,
        closing(model.infer_each(corpus, report)) as batches,
    ):
        if output.suffix == ".npy":
            documents, unknown = _write_array(partial, batches, widths)
        else:
            made_with = {
                "parabit": __version__,
                "model": model.fingerprint,
                "bits": model.bits,
                "dim": model.dim,
            }
            documents, unknown = _write_table(
                partial, batches, widths, corpus, {**made_with, **(about or {})}
            )
    return EncodedFile(documents, unknown, sum(widths.values()))


def is_codes(path: Path) -> bool:
    """Whether a file was written by encoding, so that replacing it loses nobody's data."""
    if not is_regular(path):
        return False
    try:
        if path.suffix == ".parquet":
            return META in pl.read_parquet_metadata(path)
        array = np.lib.format.open_memmap(path, mode="r")
    except (Exception, pl.exceptions.PanicException):
        return False  # whatever a reader says about a file that was not written by encoding
    return array.ndim == 2 and array.dtype in (np.uint8, np.float32)


def widths_of(model: TextEncoder, vectors: bool) -> dict[str, int]:
    """The columns of a file of codes beside the id, and the bytes of each per document."""
    widths = {} if model.bits is None else {"code": -(-model.bits // 8)}
    return widths | {"vector": 4 * model.dim} if vectors or not widths else widths


def _write_array(path: Path, batches: InferredBatches, widths: dict[str, int]) -> tuple[int, int]:
    [(column, width)] = widths.items()
    dtype = np.dtype(np.uint8 if column == "code" else np.float32)
    unknown = 0
    with ArrayWriter(path, dtype, (width // dtype.itemsize,)) as writer:
        for _, inferred in batches:
            writer.append(inferred.vectors if inferred.codes is None else inferred.codes)
            unknown += int(np.count_nonzero(~inferred.known))
    return writer.length, unknown


def _write_table(
    path: Path,
    batches: InferredBatches,
    widths: dict[str, int],
    corpus: Corpus,
    about: dict[str, Any],
) -> tuple[int, int]:
    """Write batch by batch to small files, then those as one: a Parquet file cannot grow."""
    vector = pl.Array(pl.Float32, widths.get("vector", 0) // 4)
    schema = {
        "id": pl.String(),
        **{name: pl.Binary() if name == "code" else vector for name in widths},
    }
    documents = unknown = 0
    with parts_folder(path) as folder, plain_disk_errors():
        parts = [Path(folder, "0.parquet")]
        pl.DataFrame(schema=schema).write_parquet(parts[0])  # there may be no documents
        for read, inferred in batches:
            parts.append(Path(folder, f"{len(parts)}.parquet"))
            rows: dict[str, Any] = {
                "id": [without_halves(document.id) for document in read],
                "vector": inferred.vectors,
            }
            if inferred.codes is not None:
                rows["code"] = inferred.codes.view(f"V{widths['code']}")[:, 0].tolist()
            pl.DataFrame({name: rows[name] for name in schema}, schema=schema).write_parquet(
                parts[-1]
            )
            documents += len(read)
            unknown += int(np.count_nonzero(~inferred.known))
        about |= {"documents": documents, "without_words": unknown, "skipped": len(corpus.skipped)}
        table = pl.scan_parquet(parts, glob=False)
        table.sink_parquet(path, metadata={META: json.dumps(about)}, row_group_size=_ROW_GROUP)
    return documents, unknown

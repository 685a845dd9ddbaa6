"""Codes for documents batch by batch, on all cores and in constant memory."""

from collections.abc import Callable, Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.codes import pack
from parabit.corpus import Corpus, Document
from parabit.model.linear_encoder import LinearEncoder, steady_product
from parabit.parallel import ordered_map
from parabit.progress import Progress, Report
from parabit.ragged import row_offsets
from parabit.text import BatchBags, Vocabulary, batch_bags

AT_ONCE = 2048  # documents, so that progress is told every second or so


class Inferred(NamedTuple):
    """What a model says of documents."""

    codes: NDArray[np.uint8] | None  # (documents, bytes) packed bits; None from a real-valued model
    vectors: NDArray[np.float32]  # (documents, dim) embeddings


class InferredBatch(NamedTuple):
    """Some documents of a corpus, in its order, and what a model says of them."""

    documents: list[Document]
    inferred: Inferred
    known: NDArray[np.bool_]  # (documents,) whether the model knows any of its words; it says zeros where not
    bags: BatchBags


InferredBatches = Generator[InferredBatch, None, None]


class Encoder(NamedTuple):
    """How embeddings are inferred, and bits made of them."""

    embed: Callable[[BatchBags], NDArray[np.float32]]
    bits: Callable[[NDArray[np.float32]], NDArray[np.bool_]] | None  # None in a real-valued model
    threads: int | None  # that may work on batches side by side; None for all cores


def fast_encoder(linear: LinearEncoder, projection: NDArray[np.float32] | None, binary: bool) -> Encoder:
    """The encoder that needs no torch: one sparse product."""

    def embed(bags: BatchBags) -> NDArray[np.float32]:
        return linear.embed(bags.features, bags.counts, row_offsets(bags.feature_lengths))

    return Encoder(embed, (lambda embedded: layer_of(embedded, projection) > 0) if binary else None, threads=None)


def layer_of(embedded: NDArray[np.float32], projection: NDArray[np.float32] | None) -> NDArray[np.float32]:
    """The layer before the sigmoid: (documents, bits)."""
    return embedded if projection is None else steady_product(embedded, projection)


def infer_batches(corpus: Corpus, vocabulary: Vocabulary, encoder: Encoder, report: Report) -> InferredBatches:
    """Encode a corpus of any size; what a document gets does not depend on its batch."""

    def read(documents: list[Document]) -> tuple[list[Document], BatchBags]:
        tokens = vocabulary.tokenizer.tokenize([document.text for document in documents])
        return documents, batch_bags(tokens, vocabulary)

    def infer(batch: tuple[list[Document], BatchBags]) -> InferredBatch:
        documents, bags = batch
        vectors = encoder.embed(bags)
        codes = None if encoder.bits is None else pack(encoder.bits(vectors))
        return InferredBatch(documents, Inferred(codes, vectors), bags.feature_lengths > 0, bags)

    batches = corpus.batches(documents=AT_ONCE)
    if encoder.threads is None:
        parts = ordered_map(lambda documents: infer(read(documents)), batches)
    else:  # torch has threads of its own; only the next batch's text is cut meanwhile
        parts = map(infer, ordered_map(read, batches, encoder.threads))
    done = 0
    for part in parts:
        yield part
        done += len(part.documents)
        report(Progress("encoding", done, "documents", corpus.share_read))

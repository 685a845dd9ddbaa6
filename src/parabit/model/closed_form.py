"""The closed form: binary paragraph vectors in a few exact steps, without a network.

PV-DBOW says that a document with code s (+1 or -1 per bit) has word w with probability

    p(w | s) ~ exp(s . u_w + b_w)

and a network learns codes and word vectors together by gradient descent. With one side fixed, the other has a
simple solution:

- **Words, given codes.** One Newton step on the likelihood from u = 0, with a Gaussian prior, gives u_w as the mean
  code of the documents that contain w, shrunk towards zero if w is rare. Its inverse hyperbolic tangent is the log odds
  of the word between documents with a bit and documents without it, and works a little better.
- **Codes, given words.** The same step for a document gives a code that is linear in the sum of its words' vectors.

So all that is needed is a good start, and one pass:

    Z = LSA of the TF-IDF rows X, at length 1               (documents, 192)
    A = graph of each document and its 10 nearest           (documents, documents)
    Y <- (1 - a) Z + a A Y                                  documents move towards their neighbours
    S = rotated principal components of Y                   (documents, bits), the codes before rounding
    U = atanh(X' sign(S) / (column sums of X + prior))      (words, bits)
    M = ridge regression of S on X U                        (bits, bits)
    D = ridge regression of S on X itself                   (words, bits)
    code = sign(x (U M + D / 2) + offset)                   of any document with the TF-IDF row x

The neighbours are found twice: among the LSA vectors, then among the activations learned from the first. The last line
is also the encoder: one matrix, so a code costs one sparse product.

A code has levels. The first mixes all components, partly whitened. Each of the others is a short code of its own,
learned from as many leading components as it has bits, so that the main topics have bits that nothing else disturbs.

How the constants were chosen: `benchmarks/choices.py`.
"""

import warnings
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from threadpoolctl import threadpool_limits

from parabit.corpus import Corpus
from parabit.errors import TrainingError
from parabit.model.encoder import Tensors, TextEncoder, config_of, quantized
from parabit.parallel import ordered_map
from parabit.progress import Progress, Report, silent
from parabit.text import VocabularyRule, count_bags
from parabit.text.bags import inverse_frequencies, tf_idf_rows

Matrix = NDArray[np.float32]

SAMPLE = 50_000  # documents; learning from more changes nothing (docs/models.md)
LARGEST = 1024  # bits or numbers of the closed form
_SAMPLED_CHARACTERS = 500_000_000  # at most, in all, so that long documents fit in memory
_MANY_DOCUMENTS = 1_000  # from which words of a single document are dropped: they would double the model for nothing
DIMENSIONS = 192  # of the LSA
_NEIGHBOUR_BITS = 128  # of the activations among which neighbours are found again
_SHARE, _COARSE_SHARE = (
    0.5,
    0.7,
)  # of the neighbours in where a document moves; more for the short levels
_COARSE = 32  # bits up to which a level is short
_WHITENED, _MOST_WHITENING = (
    130,
    0.5,
)  # the first level is whitened with the power of bits / 130, at most 0.5
_PRIOR = 1.0  # on a word, relative to the median column sum
_RIDGE = 1e-2  # of M, relative to the mean square
_DIRECT_RIDGE, _DIRECT_ROUNDS, _DIRECT_WEIGHT = 1.0, 4, 0.5
_ROTATED, _ROTATION_ROUNDS = 4096, 30  # documents that a rotation is found from, and steps
NEIGHBOURS = 10
_BLOCK, _WORDS_BLOCK = (
    2048,
    128,
)  # documents whose candidates are found, and compared by words, at a time
_STEPS = 8  # of diffusion
_POWER_STEPS, _OVERSAMPLING = 3, 10  # of the LSA
_LEAST_VARIANCE = 1e-6  # of a component, relative to the largest; less is rounding noise


def learn_closed_form(
    corpus: Corpus,
    bits: int | None = 128,
    dim: int | None = None,
    levels: Sequence[int] | None = None,
    rule: VocabularyRule | None = None,
    sample: int | None = SAMPLE,
    seed: int = 0,
    report: Report = silent,
) -> TextEncoder:
    """Learn a model from a random sample of a corpus, in seconds."""
    codes = choose_levels(bits, dim, levels)
    texts, documents = draw_sample(corpus, sample, seed, report)
    vocabulary, bags = count_bags(texts, rule, report)
    known = int(np.count_nonzero(bags.feature_lengths))
    size = max(map(sum, codes))
    if known < size:
        effect = "the codes tell these documents apart, but learn little about subjects"
        warnings.warn(f"fewer documents ({known}) than bits ({size}): {effect}", stacklevel=3)
    kept, _, tensors = learn_from_counts(bags.matrix(len(vocabulary)), codes, seed, report)
    vocabulary = vocabulary.without_features(~kept)
    name = f"{'paragraph' if bits is None else 'binary paragraph'} vectors in closed form"
    sizes = {"bits": bits, "dim": dim or bits, "levels": list(codes[-1])}
    return TextEncoder(
        vocabulary, config_of("closed-form", name, sizes, vocabulary, documents), tensors
    )


def draw_sample(
    corpus: Corpus, size: int | None, seed: int = 0, report: Report = silent
) -> tuple[list[str], int]:
    """Texts drawn at random in one pass, in the order of the corpus, and how many documents it has.

    Every document has the same chance; a size of None takes all. Fewer are drawn if their texts together would be
    longer than 500 million characters.
    """
    rng = np.random.default_rng(seed)
    kept: list[tuple[float, int, str]] = []  # a heap with the largest key, negated, on top
    characters, number, highest = 0, 0, 1.0
    for number, document in enumerate(corpus, start=1):
        key = rng.random()
        if key < highest:
            heappush(kept, (-key, number, document.text))
            characters += len(document.text)
            while len(kept) > 1 and (
                (size is not None and len(kept) > size) or characters > _SAMPLED_CHARACTERS
            ):
                top, _, text = heappop(kept)
                highest, characters = -top, characters - len(text)
        if number % 10_000 == 0:
            report(Progress("reading", number, "documents", corpus.share_read))
    return [text for _, _, text in sorted(kept, key=lambda entry: entry[1])], number


def choose_levels(bits: Any, dim: Any, levels: Sequence[int] | None) -> list[tuple[int, ...]]:
    """The levels of the closed form's codes, by rule or as given; those of a vector beside the code come first."""
    for name, value, lowest in (("bits", bits, 8), ("dim", dim, 1)):
        if value is not None and not (type(value) is int and lowest <= value <= LARGEST):
            raise TrainingError(
                f"{name} is {value!r}",
                hint=f"it must be a whole number from {lowest} to {LARGEST:,}",
            )
    codes = [default_levels(size) for size in (dim, bits) if size is not None]
    if not codes:
        raise TrainingError(
            "neither bits nor dim is given",
            hint="bits=128 learns codes, dim=128 real-valued vectors",
        )
    if levels is not None:
        size = sum(codes[-1])
        if (
            not all(isinstance(level, int) and level >= 1 for level in levels)
            or sum(levels) != size
        ):
            hint = f"give whole numbers, at least 1, that add up to {size}"
            raise TrainingError(f"levels {list(levels)} for a size of {size}", hint)
        codes[-1] = tuple(levels)
    return codes


def default_levels(size: int) -> tuple[int, ...]:
    """The sizes of the levels of a code, finest first."""
    shares = (5, 3, 2, 1) if size >= 64 else (5, 1) if size >= 24 else ()
    coarse = [round(size * share / 32) for share in shares]
    return (size - sum(coarse), *coarse)


def learn_from_counts(
    counts: csr_array, codes: Sequence[Sequence[int]], seed: int = 0, report: Report = silent
) -> tuple[NDArray[np.bool_], NDArray[np.float32], Tensors]:
    """Learn from how often each document has each word, (documents, words): the kept words, their idf, the encoder.

    Of many documents, words that only one of them has are dropped: nothing can be learned about them.
    """
    documents = counts.shape[0]
    frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
    kept = frequencies >= (
        2 if documents >= _MANY_DOCUMENTS and frequencies.max(initial=0) > 1 else 1
    )
    counts = counts[:, np.flatnonzero(kept)]
    idf = inverse_frequencies(frequencies[kept], documents)
    return kept, idf, quantized(*learn(tf_idf_rows(counts, idf), codes, seed, report))


def learn(
    rows: csr_array, codes: Sequence[Sequence[int]], seed: int = 0, report: Report = silent
) -> tuple[Matrix, Matrix]:
    """Learn an encoder of documents from their TF-IDF rows, each of length 1: (documents, words).

    The activations of a row x are x @ matrix + offset, with the matrix (words, columns) and the offset (columns,).
    `codes` are the levels of each code that the encoder gives, one after the other in its columns. The same seed gives
    the same encoder, bit for bit, on any number of cores of one kind of processor.
    """
    rng = np.random.default_rng(seed)
    columns = sum(sum(levels) for levels in codes)
    rows = rows[np.diff(rows.indptr) > 0]
    by_word = rows.T.tocsr()
    # BLAS on several threads adds in another order, and the model would depend on the number of cores.
    with threadpool_limits(1):
        targets = _targets(rows, by_word, codes, rng, report) if rows.shape[0] > 1 else None
        if (
            targets is None
        ):  # one document, or all the same: nothing to tell apart, so words get random directions
            matrix = rng.standard_normal((rows.shape[1], columns), dtype=np.float32)
            return matrix, np.zeros(columns, dtype=np.float32)
        report(Progress("learning the encoder", 4, "steps", 4 / 5))
        return _encoder(rows, by_word, targets)


def _targets(
    rows: csr_array,
    by_word: csr_array,
    codes: Sequence[Sequence[int]],
    rng: np.random.Generator,
    report: Report,
) -> list[Matrix] | None:
    """The codes that documents should have, before rounding, level by level; None if all documents are the same."""
    report(Progress("latent semantic analysis", 0, "steps", 0.0))
    start = unit(lsa(rows, by_word, DIMENSIONS, rng))  # Z: (documents, dimensions)
    report(Progress("finding neighbours", 1, "steps", 1 / 5))
    neighbours = nearest(start, rows)
    first = _components(diffuse(start, neighbours, _SHARE))
    if not first.size:
        return None
    wanted = _rotated(first, min(_NEIGHBOUR_BITS, first.shape[1]), rng)
    report(Progress("finding neighbours again", 2, "steps", 2 / 5))
    neighbours = nearest(rows @ _word_vectors(by_word, wanted), rows)
    report(Progress("rotating", 3, "steps", 3 / 5))
    fine, coarse = (
        _components(diffuse(start, neighbours, share)) for share in (_SHARE, _COARSE_SHARE)
    )
    if not (fine.size and coarse.size):
        return None
    targets = []
    for number, size in ((number, size) for levels in codes for number, size in enumerate(levels)):
        if (
            number == 0
        ):  # partly whitened, so that its bits are for details; the short levels have the main topics
            mixed = fine / fine.std(axis=0) ** min(size / _WHITENED, _MOST_WHITENING)
        else:  # of the strongest components alone, each document at the same distance from the centre
            directions = unit((coarse if size <= _COARSE else fine)[:, :size])
            mixed = directions - directions.mean(axis=0)
        targets.append(_rotated(mixed, size, rng))
    return targets


def _components(vectors: Matrix) -> Matrix:
    """The principal components of vectors, strongest first: (documents, components); those without variance go."""
    centred = vectors - vectors.mean(axis=0)
    variances, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    kept = variances[::-1] > max(
        _LEAST_VARIANCE * variances[-1], _LEAST_VARIANCE * len(vectors) * 1e-3
    )
    return np.asarray(centred @ directions[:, ::-1][:, kept].astype(np.float32))


def _rotated(components: Matrix, size: int, rng: np.random.Generator) -> Matrix:
    """Components rotated so that signs lose little, at standard deviation 1: (documents, size)."""
    some = components[rng.permutation(len(components))[:_ROTATED]]
    blocks = -(
        -size // components.shape[1]
    )  # of more bits than components: each a rotation of the same components
    sizes = [size // blocks + (number < size % blocks) for number in range(blocks)]
    rotations = [quantizing_rotation(some, bits, rng, _ROTATION_ROUNDS) for bits in sizes]
    signs = rng.choice(
        np.array([-1, 1], dtype=np.float32), size
    )  # so that few components do not give codes of zeros
    rotated = components @ (np.concatenate(rotations, axis=1) * signs)
    return np.asarray(rotated / max(float(rotated.std()), 1e-9))


def quantizing_rotation(
    vectors: NDArray[np.floating], bits: int | None = None, seed: Any = 0, rounds: int = 50
) -> NDArray[Any]:
    """The rotation of centred vectors after which rounding to signs loses little.

    From a random rotation R on, two steps alternate: the signs B of the rotated vectors V R, and the rotation that
    brings V nearest to B, by the singular value decomposition of V' B. Neither can make the error |V - B R'| larger
    (Y. Gong and S. Lazebnik, "Iterative quantization: a Procrustean approach to learning binary codes", CVPR 2011; 50
    rounds are theirs). With fewer `bits` than dimensions R has orthonormal columns, and every bit mixes all dimensions.
    """
    dim, one = vectors.shape[1], vectors.dtype.type(1)
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, bits or dim)))
    rotation = rotation.astype(vectors.dtype, copy=False)
    for _ in range(rounds):
        signs = np.where(vectors @ rotation > 0, one, -one)  # B
        left, _, right = np.linalg.svd(vectors.T @ signs, full_matrices=False)
        rotation = left @ right
    return rotation


def _word_vectors(by_word: csr_array, targets: Matrix) -> Matrix:
    """U, one Newton step from zero: the log odds of each word between the documents with a bit and without it."""
    sums = by_word.sum(axis=1)  # (words,)
    prior = _PRIOR * np.median(sums[sums > 0])
    means = (by_word @ np.where(targets > 0, np.float32(1), np.float32(-1))) / (sums + prior)[
        :, None
    ]
    return np.arctanh(np.clip(means, -0.99, 0.99), dtype=np.float32)


def _encoder(rows: csr_array, by_word: csr_array, targets: list[Matrix]) -> tuple[Matrix, Matrix]:
    """Both ways from words to codes added up: through the word vectors, and straight from the rows."""
    wanted = np.concatenate(targets, axis=1)  # S: (documents, columns)
    words = _word_vectors(by_word, wanted)  # U: (words, columns)
    summed = rows @ words  # (documents, columns)
    centre = summed.mean(axis=0)
    direct = by_word @ _ridge_weights(rows, by_word, wanted)  # D: (words, columns)
    fitted = rows @ direct
    offset = np.zeros(wanted.shape[1], dtype=np.float32)
    ends = np.cumsum([target.shape[1] for target in targets]).tolist()
    for level in map(slice, [0, *ends], ends):
        centred = summed[:, level] - centre[level]
        mapping = _small_ridge(centred, wanted[:, level])  # M: (bits, bits)
        mapping /= max(float((centred @ mapping).std()), 1e-9)
        words[:, level] = words[:, level] @ mapping
        offset[level] = -centre[level] @ mapping
        direct[:, level] *= _DIRECT_WEIGHT / max(float(fitted[:, level].std()), 1e-9)
    words += direct
    return words, offset


def _small_ridge(features: Matrix, targets: Matrix) -> Matrix:
    """The matrix M with the least |F M - S|^2 + a |M|^2."""
    square = (features.T @ features).astype(np.float64)
    ridge = _RIDGE * np.trace(square) / len(square) + 1e-12
    found: NDArray[np.float64] = np.linalg.solve(
        square + ridge * np.eye(len(square)), features.T @ targets
    )
    return found.astype(np.float32)


def _ridge_weights(rows: csr_array, by_word: csr_array, targets: Matrix) -> Matrix:
    """W with X X' W + a W = S, so that X' W is the ridge regression of S on X: conjugate gradients on all columns."""
    solution, residual = np.zeros_like(targets), targets.copy()
    direction, squares = residual.copy(), (residual**2).sum(axis=0)
    for _ in range(_DIRECT_ROUNDS):
        image = rows @ (by_word @ direction) + _DIRECT_RIDGE * direction
        step = squares / np.maximum((direction * image).sum(axis=0), 1e-12)
        solution += step * direction
        residual -= step * image
        before, squares = squares, (residual**2).sum(axis=0)
        direction = residual + squares / np.maximum(before, 1e-12) * direction
    return solution


def unit(rows: Matrix) -> Matrix:
    """Rows scaled to length 1; a row of zeros stays as it is."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def lsa(rows: csr_array, columns: csr_array, size: int, rng: np.random.Generator) -> Matrix:
    """The documents on the leading singular directions of their rows X, as X V = U S: (documents, size).

    A randomized decomposition (Halko, Martinsson and Tropp 2011) on the side of the documents: a random basis is
    multiplied by X X' a few times, which makes it span the leading directions. `columns` is X transposed.
    """
    size = min(size, *rows.shape)
    wide = min(size + _OVERSAMPLING, *rows.shape)
    basis = rng.standard_normal((rows.shape[0], wide), dtype=np.float32)
    for _ in range(_POWER_STEPS):
        basis = _orthogonal(rows @ (columns @ basis))  # (documents, wide)
    basis, _ = np.linalg.qr(basis)
    image = columns @ basis  # (words, wide)
    squares, directions = np.linalg.eigh((image.T @ image).astype(np.float64))
    strongest = directions[:, ::-1][:, :size] * np.sqrt(np.maximum(squares[::-1][:size], 0))
    return np.asarray(basis @ strongest.astype(np.float32))


def _orthogonal(basis: Matrix) -> Matrix:
    """A basis of the same space, orthonormal up to rounding: six times faster than QR, and close enough on the way."""
    squares, directions = np.linalg.eigh((basis.T @ basis).astype(np.float64))
    scales = 1 / np.sqrt(np.maximum(squares, 1e-10 * squares[-1]) + 1e-30)
    return np.asarray(basis @ (directions * scales).astype(np.float32))


def nearest(vectors: Matrix, rows: csr_array) -> NDArray[np.int64]:
    """The nearest other documents of each, by the cosine of their vectors plus that of their words: (documents, 10).

    Candidates are the nearest by vectors alone, three times as many as wanted. `rows` have length 1.
    """
    vectors = np.ascontiguousarray(unit(vectors), dtype=np.float32)
    documents = len(vectors)
    candidates = min(3 * NEIGHBOURS, documents - 1)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)

    def find(start: int) -> NDArray[np.int64]:
        faiss.omp_set_num_threads(1)  # of this thread: blocks run side by side, each on one core
        own = np.arange(start, min(start + _BLOCK, documents))
        cosines, found = index.search(vectors[own], candidates + 1)  # (block, candidates + 1)
        # A document is its own nearest, unless it has copies; one candidate goes in any case.
        cosines[found == own[:, None]] = -np.inf
        for part in range(0, len(own), _WORDS_BLOCK):
            here = slice(part, part + _WORDS_BLOCK)
            cosines[here] += _word_cosines(rows, own[here], found[here])
        best = np.argsort(-cosines, axis=1, kind="stable")[:, : min(NEIGHBOURS, documents - 1)]
        return np.take_along_axis(found, best, axis=1)

    return np.concatenate(list(ordered_map(find, range(0, documents, _BLOCK))))


def _word_cosines(rows: csr_array, own: NDArray[np.int64], others: NDArray[np.int64]) -> Matrix:
    """The products of documents' rows with those of some others: (own, others of each). No row may be empty."""
    entries = rows[others.ravel()]
    shared = np.empty(
        len(entries.data), dtype=np.float32
    )  # the document's weight of each word of the others
    spread = np.zeros(rows.shape[1], dtype=np.float32)
    for document, (start, end) in zip(
        own, pairwise(entries.indptr[:: others.shape[1]].tolist()), strict=True
    ):
        mine = slice(rows.indptr[document], rows.indptr[document + 1])
        spread[rows.indices[mine]] = rows.data[mine]
        np.take(
            spread, entries.indices[start:end], out=shared[start:end], mode="clip"
        )  # else it goes through a copy
        spread[rows.indices[mine]] = 0
    shared *= entries.data
    products: Matrix = np.add.reduceat(shared, entries.indptr[:-1])
    return products.reshape(others.shape)


def diffuse(vectors: Matrix, neighbours: NDArray[np.int64], share: float) -> Matrix:
    """Vectors moved towards those of their neighbours: Y = (1 - share) Z + share A Y, a few steps from Z on.

    A joins each document with its neighbours, in both directions, and is normalised by their degrees.
    """
    documents, count = neighbours.shape
    one_way = csr_array(
        (
            np.ones(neighbours.size, dtype=np.float32),
            neighbours.ravel(),
            np.arange(documents + 1) * count,
        ),
        shape=(documents, documents),
    )
    both = one_way.maximum(one_way.T)
    scale = diags_array(1 / np.sqrt(np.maximum(both.sum(axis=1), 1)).astype(np.float32))
    adjacency = (scale @ both @ scale).tocsr()
    moved = vectors
    for _ in range(_STEPS):
        moved = np.asarray((1 - share) * vectors + share * (adjacency @ moved), dtype=np.float32)
    return unit(moved)

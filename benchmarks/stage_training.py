"""What stage_costs.py measures of training, in a process that has one core."""

import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from parabit.networks import Documents, distill
from parabit.networks.bags import BagTable
from parabit.networks.exact import statistics_of
from parabit.networks.neighbours import looked_through, nearest_documents
from parabit.networks.recipe import Recipe, preset
from parabit.networks.semantics import semantic_vectors
from parabit.networks.shape import Shape, choose_shape
from parabit.networks.training import Training
from parabit.progress import silent
from parabit.text import Bags, Vocabulary
from stage_text import Texts, fitted, seconds

ASKED = 2048  # documents whose neighbours are found
BATCHES = (1, 4, 16, 64, 256, 1024)  # documents of a worker in a step
SAMPLES = (1024, 4096)  # candidates of the softmax, with words and with bigrams
NEIGHBOURS = 10
_CPU = torch.device("cpu")


def documents_of(bags: Bags) -> Documents:
    """Bags as training reads them."""
    return Documents(bags.features, bags.counts, bags.feature_offsets, bags.tokens, bags.token_offsets)


class Costs:
    """The parts of training, each timed by itself."""

    def __init__(self, texts: Texts, scratch: Path) -> None:
        self.scratch = scratch
        self.documents, self.statistics = documents_of(texts.bags), statistics_of(texts.vocabulary)
        self.everything = np.arange(len(self.documents))
        self.asked = np.sort(np.random.default_rng(0).choice(self.everything, ASKED, replace=False))
        self.entries = len(texts.bags.features) / len(texts.bags)
        self.neighbours = np.zeros((0, 0), dtype=np.int32)  # of those asked

    def all(self) -> dict[str, float]:
        """Every cost, in nanoseconds."""
        return {**self.surroundings(), **self.beginning(), **self.steps(), **self.distilling()}

    def surroundings(self) -> dict[str, float]:
        """Fitting the semantic space, projecting documents into it, and finding neighbours there."""
        candidates = looked_through(self.everything, 0)
        known = np.union1d(self.asked, candidates)
        costs: dict[str, float] = {}
        terms, taken = [], []
        for dim in (256, 128):  # the last one's are kept

            def vectors(chosen: NDArray[np.int64], dim: int = dim) -> Any:
                return semantic_vectors(self.documents, self.statistics, self.everything, chosen, dim, 0, _CPU)

            fitting = seconds(lambda vectors=vectors: vectors(self.asked[:1]), 1)  # type: ignore[misc]
            start = time.process_time()
            found = vectors(known)
            projecting = max(time.process_time() - start - fitting, 0.0)
            start = time.process_time()
            self.neighbours = nearest_documents(
                self.documents, self.statistics, found, self.everything, self.asked, NEIGHBOURS
            )
            pairs = len(self.asked) * len(candidates)
            taken.append(time.process_time() - start)
            terms.append([pairs, pairs * dim])
            fits = min(len(self.everything), 32_768) * (dim + 16)
            costs = {
                "semantic_document_unit": fitting / fits * 1e9,
                "project_entry_unit": projecting / (len(known) * self.entries * dim) * 1e9,
            }
        return costs | fitted(["neighbour_candidate", "neighbour_candidate_unit"], terms, taken)

    def beginning(self) -> dict[str, float]:
        """Embeddings before the first step: at what documents are about, moved towards their neighbours."""
        terms, taken = [], []
        for count in (4096, 16_384):
            some = self.documents.take(self.everything[:count])
            for bits in (64, 128):
                shape = choose_shape(bits=bits)
                training = self._training(shape, preset("default", shape), some)
                start = time.process_time()
                training._start()
                taken.append(time.process_time() - start)
                terms.append([bits**2, count * bits**2])
        return fitted(["turn_unit_unit", "begin_unit_unit"], terms, taken)

    def steps(self) -> dict[str, float]:
        """Steps of several sizes: what grows with documents, words, rows, units and candidates."""
        gradient_terms, gradient, update_terms, update, completion = [], [], [], [], []
        again_terms, again = [], []
        for bits, samples in ((32, SAMPLES[0]), (128, SAMPLES[0]), (128, SAMPLES[1])):
            shape = choose_shape(bits=bits)
            recipe = preset("default", shape, samples=samples, neighbours=0, start="random", warm_up=0)
            training = self._training(shape, recipe, self.documents)
            state, hidden = training._start(), shape.hidden
            completion.append(seconds(training._completion) / hidden)
            assert isinstance(training.table, BagTable)
            for size in BATCHES:
                training.table._recipe = replace(recipe, batch_size=size, fewest_steps=0)
                plan = training.table.plan(training.trained, 0, 0)[: max(5, min(24, 2048 // size))]
                spent = []
                for number in range(len(plan)):
                    rng = training._rng("batch", 0, number)
                    begin = time.process_time()
                    [(touched, batch)] = training.table.prepare(plan[number : number + 1], training.sampler, rng)
                    embedded = state.tables["documents"].values.index_select(0, touched)
                    gradients = training.table.gradients(state.network, embedded, batch, 0, None)
                    middle = time.process_time()
                    training._descend(state, gradients, touched, embedded)
                    end = time.process_time()
                    # As several workers do it, for whom the rows of all are read once more.
                    state.tables["words"].step(gradients.words, recipe.word_rate, gradients.rows)
                    spent.append((middle - begin, end - middle, time.process_time() - end))
                entries, rows = len(batch.weights), len(gradients.rows)
                gradient.append(median(one for one, _, _ in spent))
                gradient_terms.append([1, samples, entries, entries * hidden, size * samples * hidden, rows * hidden])
                update.append(median(two for _, two, _ in spent))
                update_terms.append([1, rows * hidden, size * bits])
                again.append(median(three for _, _, three in spent))
                again_terms.append([rows * hidden])
        step = ["step", "step_sample", "step_entry", "step_entry_unit", "step_candidate_unit", "step_row_unit"]
        return {
            **fitted(step, gradient_terms, gradient),
            **fitted(["update", "update_row_unit", "update_document_unit"], update_terms, update),
            **fitted(["update_all_row_unit"], again_terms, again),
            "completion_unit": median(completion) * 1e9,
        }

    def distilling(self) -> dict[str, float]:
        """The fast encoder, learned from some and from many documents."""
        terms, taken = [], []
        for bits in (32, 128):
            words, embeddings = (
                torch.randn(count, units, generator=torch.Generator().manual_seed(0))
                for count, units in ((len(self.statistics.counts), bits + 1), (len(self.documents), bits))
            )
            for count in (8192, min(65_536, len(self.documents))):
                some = self.documents.take(self.everything[:count])
                mine = embeddings[:count]
                taken.append(
                    seconds(lambda some=some, mine=mine, words=words: distill(some, self.statistics, words, mine))  # type: ignore[misc]
                )
                terms.append([len(some.features) * bits, len(words) * bits])
        return fitted(["distill_entry_unit", "distill_feature_unit"], terms, taken)

    def rows(self, bags: Bags, vocabulary: Vocabulary, samples: int) -> list[list[float]]:
        """How many rows of the word matrix a step touches: [entries, rows] for batches of several sizes.

        Each document comes with one of its neighbours, and with the candidates that are drawn for the softmax.
        """
        documents, statistics = documents_of(bags), statistics_of(vocabulary)
        rng = np.random.default_rng(1)
        chances = statistics.frequencies(idf_power=1.0).astype(float)
        chances /= chances.sum()
        found = []
        for size in BATCHES:
            rounds = []
            for _ in range(max(3, min(50, 1024 // size))):
                chosen = rng.integers(0, len(self.asked), size)
                others = self.neighbours[chosen, rng.integers(0, self.neighbours.shape[1], size)]
                features = documents.take(np.concatenate([self.asked[chosen], others]).astype(np.int64)).features
                drawn = rng.choice(len(chances), samples, p=chances)
                rounds.append((len(features), len(np.union1d(features, drawn))))
            found.append([float(np.mean([entries for entries, _ in rounds])), float(np.mean([r for _, r in rounds]))])
        return found

    def _training(self, shape: Shape, recipe: Recipe, documents: Documents) -> Training:
        return Training(documents, self.statistics, shape, recipe, self.scratch, 0, "cpu", None, silent)

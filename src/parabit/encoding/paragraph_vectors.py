"""The face of the library: a scikit-learn estimator from texts to codes."""

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from parabit import __version__
from parabit.codes import pack
from parabit.corpus import Corpus, as_corpus
from parabit.encoding.batches import (
    AT_ONCE,
    Encoder,
    Inferred,
    InferredBatches,
    fast_encoder,
    infer_batches,
    layer_of,
)
from parabit.encoding.card import write_card
from parabit.encoding.estimator import Estimator, check_fitted, check_mode
from parabit.encoding.model_folder import (
    EMBEDDINGS,
    ENCODER,
    ENCODER_OFFSET,
    config_of,
    fingerprint_of,
    need_tensors,
    parameters_of,
    read_model,
    thawed,
    write_model,
)
from parabit.encoding.work import CountedTexts, Work
from parabit.errors import ModelError, TrainingError
from parabit.extras import need
from parabit.linear_encoder import LinearEncoder
from parabit.networks.config import Recipe, Shape, choose_shape, paper_recipe
from parabit.progress import Report, silent
from parabit.text import LETTERS, Tokenizer, VocabularyRule, batch_bags, read_stop_words
from parabit.text.build import Documents as Texts

if TYPE_CHECKING:
    from parabit.networks.inference import NetworkEncoder


# The parameters that make the network and those of training; the others make the vocabulary.
_SHAPE = ("bits", "dim", "architecture", "window", "two_sided", "word_dim")
_RECIPE = tuple(parameter.name for parameter in fields(Recipe))


class ParagraphVectors(Estimator):
    """Learns short binary codes for texts, or real-valued vectors: the Paragraph Vector models of the paper.

    `bits` alone is Binary PV-DBOW, or Binary PV-DM with `architecture="dm"`; `bits=None` with `dim` the real-valued
    PV-DBOW or PV-DM; `bits` with `dim` Real-Binary PV-DBOW, which gives both a code and a real vector.

    `preset` names a set of all parameters of training; each can be set otherwise, and None takes the preset's value.
    Reference: Grzegorczyk and Kurdziel, Binary Paragraph Vectors, 2017.

    Parameters
    ----------
    bits, dim, architecture : the network, see above.
    window, two_sided, word_dim : of distributed memory: context words on a side (1), on both sides or only before the
        predicted word, and their embedding's size (that of the document's).
    bigrams, min_count, min_bigram_count, max_size : which words and bigrams the vocabulary keeps.
    pattern, lowercase, min_length, max_length, stop_words : what a word is; stop words are `"english"`, `"none"`, a
        file's name or a set.
    preset : `"default"`, the best that is known, or `"paper"`, the paper's recipe.
    epochs ... patience : see `parabit.Recipe`.
    mode : how `transform` infers: `"fast"`, one sparse product that needs no torch; `"exact"`, gradient inference as in
        the paper; None takes fast, and exact with the paper's recipe and with distributed memory.
    seed : the same seed gives the same model on the same machine.
    device : `"cpu"`, `"cuda"`, or `"auto"` for a GPU where there is one.

    Attributes
    ----------
    vocabulary_ : the words and bigrams that the model knows.
    recipe_ : all parameters of training, the preset's filled in.
    history_ : the losses of each epoch.
    embeddings_ : (documents, dim) the training documents' embeddings; None in a slim model.
    codes_ : (documents, bytes) their packed codes; None in a real-valued or slim model.

    Example:
        >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired the telescope.", "Goalies like ice."]
        >>> model = ParagraphVectors(bits=16, epochs=3).fit(texts)
        >>> model.transform(texts).shape, model.transform(texts).dtype
        ((3, 2), dtype('uint8'))
    """

    _fast: LinearEncoder | None = None
    _exact: "NetworkEncoder | None" = None
    _network: dict[str, NDArray[np.float32]]  # the network's parameters by name

    def __init__(
        self,
        bits: int | None = 128,
        *,
        dim: int | None = None,
        architecture: str = "dbow",
        window: int | None = None,
        two_sided: bool = False,
        word_dim: int | None = None,
        bigrams: bool = False,
        min_count: int = 1,
        min_bigram_count: int | None = None,
        max_size: int | None = None,
        pattern: str = LETTERS,
        lowercase: bool = True,
        min_length: int = 2,
        max_length: int = 15,
        stop_words: str | frozenset[str] = "english",
        preset: str = "default",
        epochs: int | None = None,
        batch_size: int | None = None,
        fewest_steps: int | None = None,
        warm_up: int | None = None,
        document_rate: float | None = None,
        word_rate: float | None = None,
        samples: int | None = None,
        sampling_power: float | None = None,
        accumulator_start: float | None = None,
        word_accumulator_start: float | None = None,
        start: str | None = None,
        embedding_start: float | None = None,
        dropout: float | None = None,
        binarization: str | None = None,
        noise: float | None = None,
        slope_growth: float | None = None,
        idf_power: float | None = None,
        length_exponent: float | None = None,
        neighbours: int | None = None,
        neighbour_weight: float | None = None,
        inference_rounds: int | None = None,
        inference_rate: float | None = None,
        validation: float | None = None,
        patience: int | None = None,
        mode: str | None = None,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.bits = bits
        self.dim = dim
        self.architecture = architecture
        self.window = window
        self.two_sided = two_sided
        self.word_dim = word_dim
        self.bigrams = bigrams
        self.min_count = min_count
        self.min_bigram_count = min_bigram_count
        self.max_size = max_size
        self.pattern = pattern
        self.lowercase = lowercase
        self.min_length = min_length
        self.max_length = max_length
        self.stop_words = stop_words
        self.preset = preset
        self.epochs = epochs
        self.batch_size = batch_size
        self.fewest_steps = fewest_steps
        self.warm_up = warm_up
        self.document_rate = document_rate
        self.word_rate = word_rate
        self.samples = samples
        self.sampling_power = sampling_power
        self.accumulator_start = accumulator_start
        self.word_accumulator_start = word_accumulator_start
        self.start = start
        self.embedding_start = embedding_start
        self.dropout = dropout
        self.binarization = binarization
        self.noise = noise
        self.slope_growth = slope_growth
        self.idf_power = idf_power
        self.length_exponent = length_exponent
        self.neighbours = neighbours
        self.neighbour_weight = neighbour_weight
        self.inference_rounds = inference_rounds
        self.inference_rate = inference_rate
        self.validation = validation
        self.patience = patience
        self.mode = mode
        self.seed = seed
        self.device = device

    def fit(
        self,
        X: Texts | CountedTexts,  # noqa: N803
        y: object = None,
        *,
        work: Path | str | None = None,
        resume: bool = True,
        checkpoint_every: float = 60.0,
        report: Report = silent,
    ) -> Self:
        """Train on texts: a list or any re-iterable of strings or `parabit.Document`s, or a `parabit.Corpus`.

        `work` names a folder for what long training keeps: with it, the state is saved every `checkpoint_every` seconds
        and when Ctrl-C is pressed, and training on the same texts with the same parameters goes on from there unless
        `resume` is False. Remove the folder when the model is saved. `y` is not used.
        """
        shape, recipe = self.planned()
        rule = None if isinstance(X, CountedTexts) else self.rule()
        need("torch", "train", ModelError)
        from parabit.encoding.fitting import fit_texts
        from parabit.networks.inference import NetworkEncoder

        kept = None if work is None else Work(Path(work), checkpoint_every, resume)
        identity = {"parabit": __version__, **parameters_of(self)}
        seed = int(self.seed)
        vocabulary, trained, fast = fit_texts(X, rule, shape, recipe, seed, self.device, kept, identity, report)
        self.vocabulary_ = vocabulary
        self.shape_, self.recipe_ = shape, recipe
        self.history_ = [asdict(epoch) for epoch in trained.history]
        self.kept_ = trained.kept
        self.embeddings_: NDArray[np.float32] | None = None
        if fast is not None:  # the first worker, or the only one
            self.embeddings_ = trained.embeddings.numpy(force=True)
        self._exact = NetworkEncoder(trained.network, vocabulary, recipe, seed)
        self._network = self._exact.tensors
        self._fast = fast
        return self

    def fit_transform(self, X: Texts, y: object = None, **options: Any) -> NDArray[Any]:  # noqa: N803
        """Train on texts and give what training found for them.

        `transform` would infer them anew, and differ a little.
        """
        self.fit(X, y, **options)
        trained = self.embeddings_ if self.bits is None else self.codes_
        assert trained is not None
        return trained

    def transform(self, X: Texts, report: Report = silent) -> NDArray[Any]:  # noqa: N803
        """The codes of texts, packed: (texts, bytes) uint8; from a real-valued model their vectors: (texts, dim).

        What a text gets depends on the text, the model and the mode alone.
        """
        inferred = self.infer(X, report)
        return inferred.vectors if inferred.codes is None else inferred.codes

    def infer(self, texts: Texts, report: Report = silent, mode: str | None = None) -> Inferred:
        """Both the codes and the real vectors of texts, in the model's mode or in another.

        A text without a known word gets zeros; `coverage` tells which those are.
        """
        check_fitted(self, "vocabulary_")
        parts = [batch.inferred for batch in self.infer_each(as_corpus(texts), report, mode)]
        nothing = np.zeros((0, self.shape_.dim), dtype=np.float32)
        vectors = np.concatenate([nothing, *(part.vectors for part in parts)])
        codes = [part.codes for part in parts if part.codes is not None]
        if self.shape_.bits is None:
            return Inferred(None, vectors)
        return Inferred(np.concatenate([np.zeros((0, -(-self.shape_.bits // 8)), dtype=np.uint8), *codes]), vectors)

    def infer_each(self, corpus: Corpus, report: Report = silent, mode: str | None = None) -> InferredBatches:
        """The same, batch by batch and with the documents, so that a corpus of any size is encoded in constant memory.

        Example:
            >>> model = ParagraphVectors(bits=8, epochs=1).fit(["telescope in orbit", "telescope on ice"])
            >>> [batch] = model.infer_each(as_corpus(["a telescope", "a goalie"]))
            >>> [document.id for document in batch.documents], batch.known.tolist(), batch.inferred.codes.shape
            (['0', '1'], [True, False], (2, 1))
        """
        check_fitted(self, "vocabulary_")
        return infer_batches(corpus, self.vocabulary_, self._encoder(mode or self.mode_), report)

    @property
    def mode_(self) -> str:
        """How the model infers: `"fast"` or `"exact"`."""
        check_mode(self.mode)
        if self.mode is not None:
            return self.mode
        as_published = self.preset == "paper" or self.shape_.architecture == "dm"
        return "exact" if as_published or self._fast is None else "fast"

    def _encoder(self, mode: str) -> Encoder:
        check_mode(mode)
        binary = self.shape_.bits is not None
        if mode == "exact":
            exact = self._exact_encoder()
            return Encoder(exact.embed, exact.bits if binary else None, threads=1)
        if self._fast is None:
            raise ModelError("this model has no fast encoder", hint="use mode exact, or train the model anew")
        return fast_encoder(self._fast, self._network.get("projection"), binary)

    def _exact_encoder(self) -> "NetworkEncoder":
        """Gradient inference; made when it is first asked for, as it needs torch."""
        if self._exact is None:
            need("torch", "train", ModelError)
            from parabit.networks.inference import NetworkEncoder

            self._exact = NetworkEncoder.of_tensors(
                self._network, self.shape_, self.vocabulary_, self.recipe_, self.seed, self.device
            )
        return self._exact

    def coverage(self, texts: Texts) -> NDArray[np.float64]:
        """The share of each text's words that the model knows; 0 where it knows none, and the code means nothing.

        Example:
            >>> model = ParagraphVectors(bits=8, epochs=1).fit(["telescope in orbit", "telescope on ice"])
            >>> model.coverage(["telescope mirror", "goalie"]).tolist()
            [0.5, 0.0]
        """
        check_fitted(self, "vocabulary_")
        shares = [np.zeros(0)]
        for batch in as_corpus(texts).batches(documents=AT_ONCE):
            tokens = self.vocabulary_.tokenizer.tokenize([document.text for document in batch])
            known = batch_bags(tokens, self.vocabulary_).token_lengths
            shares.append(known / np.maximum(tokens.lengths, 1))
        return np.concatenate(shares)

    @property
    def codes_(self) -> NDArray[np.uint8] | None:
        """The packed codes of the training documents."""
        if self.embeddings_ is None or self.shape_.bits is None:
            return None
        return pack(self.activations(self.embeddings_) > 0)

    def activations(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """What is rounded to the bits of a code, of embeddings that the model inferred: (documents, bits).

        They say how sure each bit is; `parabit.codes.asymmetric_scores` ranks stored codes by a query's.
        """
        return layer_of(vectors, self._network.get("projection"))

    @property
    def fingerprint_(self) -> str:
        """A digest of all that decides what a text gets; models with the same one give the same codes."""
        return fingerprint_of(config_of(self), self._tensors)

    def save(self, folder: Path | str, slim: bool = False, overwrite: bool = False) -> None:
        """Write the model to a folder; `slim` leaves out the training documents' embeddings.

        Only an old model is replaced, and only with `overwrite`; until the new one is whole, it stays.
        """
        check_fitted(self, "vocabulary_")
        tensors = self._tensors
        if not slim:
            if self.embeddings_ is None:
                raise ModelError("this model is slim and has no embeddings to save", hint="save it with slim=True")
            tensors[EMBEDDINGS] = self.embeddings_
        config = config_of(self)
        write_model(Path(folder), config, tensors, self.vocabulary_, write_card(config, slim), overwrite)

    @classmethod
    def load(cls, folder: Path | str, device: str = "auto", slim: bool = False) -> "ParagraphVectors":
        """Read a model that was saved; `slim` leaves out the training documents' embeddings."""
        folder = Path(folder)
        config, tensors, vocabulary = read_model(folder, without=[EMBEDDINGS] if slim else [])
        try:
            model = cls(**thawed(config["parameters"]), device=device)
            model.shape_ = Shape(**config["shape"])
            # A parameter that an older version did not know has the plain value, which changes nothing.
            model.recipe_ = replace(paper_recipe(model.shape_), **config["recipe"])
            need_tensors(folder, tensors, model.shape_, vocabulary)
            model.history_, model.kept_ = config["training"]["history"], config["training"]["kept"]
        except (TypeError, KeyError, TrainingError) as problem:
            raise ModelError(f"{folder}: config.json is not that of a model", hint="train the model anew") from problem
        matrix, offset = tensors.pop(ENCODER, None), tensors.pop(ENCODER_OFFSET, None)
        if matrix is not None and offset is not None:
            model._fast = LinearEncoder(matrix, offset, vocabulary.document_frequencies, vocabulary.documents)
        model.vocabulary_ = vocabulary
        model.embeddings_ = tensors.pop(EMBEDDINGS, None)
        model._network = tensors
        return model

    @property
    def _tensors(self) -> dict[str, NDArray[Any]]:
        """What inference needs, by name."""
        if self._fast is None:
            return dict(self._network)
        return {**self._network, ENCODER: self._fast.matrix, ENCODER_OFFSET: self._fast.offset}

    def planned(self) -> tuple[Shape, Recipe]:
        """The network and the recipe that the parameters ask for; what makes no sense is told."""
        check_mode(self.mode)
        parameters = parameters_of(self)
        shape = choose_shape(**{name: parameters[name] for name in _SHAPE})
        recipe = paper_recipe(shape, bool(self.bigrams), **{name: parameters[name] for name in _RECIPE})
        if type(parameters["seed"]) is not int or self.seed < 0:
            raise TrainingError(f"seed is {self.seed!r}", hint="it must be a whole number, at least 0")
        return shape, recipe

    def rule(self) -> VocabularyRule:
        """What makes the vocabulary."""
        stop = read_stop_words(self.stop_words) if isinstance(self.stop_words, str) else frozenset(self.stop_words)
        tokenizer = Tokenizer(self.pattern, self.lowercase, self.min_length, self.max_length, stop)
        return VocabularyRule(tokenizer, self.bigrams, self.min_count, self.min_bigram_count, self.max_size)

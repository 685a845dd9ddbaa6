"""The scikit-learn estimator: from texts to codes."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from parabit.choices import PRESETS, SOLVERS
from parabit.codes import unpack
from parabit.corpus import Corpus, Document, as_corpus
from parabit.corpus.document import PythonCorpus, is_missing
from parabit.errors import CorpusError, ModelError, ParabitError, TrainingError, did_you_mean, need
from parabit.model.closed_form import SAMPLE, learn_closed_form
from parabit.model.encoder import Inferred, TextEncoder, config_of, load_model, save_model
from parabit.model.scikit_learn import Estimator, check_fitted
from parabit.networks.config import Recipe, Shape, choose_shape, paper_recipe
from parabit.progress import Report, silent
from parabit.storage import CHECKPOINT
from parabit.text import Tokenizer, VocabularyRule, count_bags

Texts = Corpus | Iterable[str | Document | None]
_SHAPE = ("window", "two_sided", "word_dim")  # of network_params; the others are the recipe's


@dataclass(eq=False, repr=False)
class ParagraphVectors(Estimator):
    """Learns short binary codes for texts, or real-valued vectors, without labels.

    Two ways to learn the same kind of model. `solver="closed-form"`, the default, alternates exact steps in numpy and
    takes seconds; it is parabit's own, derived from the likelihood of PV-DBOW. `solver="network"` trains the networks
    of the paper (Grzegorczyk and Kurdziel, "Binary Paragraph Vectors", 2017) by gradient descent and needs torch.

    `bits` alone gives codes; `bits=None` with `dim` real-valued vectors; `bits` with `dim` both a code and a vector.

    Parameters
    ----------
    bits : bits per code, from 8 to 1,024; None for real-valued vectors.
    dim : numbers per real-valued vector; None for none.
    levels : bits of each level of the code, finest first; None chooses them by the number of bits. Closed form only.
    solver : `"closed-form"` or `"network"`.
    preset : `"default"`, or `"paper"` for the paper's network and recipe, whatever the solver.
    architecture : of the network: `"dbow"` or `"dm"`.
    network_params : of the network: any field of `parabit.networks.config.Recipe`, and `window`, `two_sided` and
        `word_dim` for dm. A parameter that is missing has the paper's value.
    sample : the closed form learns from this many documents, drawn at random; None takes all.
    tokenizer : what a word is; None takes `Tokenizer()`, or `Tokenizer.paper()` if the preset is `"paper"`.
    bigrams, min_count, min_bigram_count, max_size : which words and bigrams the vocabulary has.
    output : what `transform` returns for codes: `"packed"` bytes or `"bits"` of 0 and 1.
    missing : what to do with None and NaN among the texts: `"error"`, or `"skip"` to learn without them and give them
        the code of a text without known words.
    random_state : the same seed gives the same model.
    device : for networks: `"cpu"`, `"cuda"`, or `"auto"` for a GPU if there is one.

    Attributes
    ----------
    encoder_ : what turns texts into codes, without scikit-learn.
    vocabulary_ : the words and bigrams that the model knows.
    levels_ : bits of each level of the code, finest first.
    embeddings_ : of a network: (documents, dim) what training found for its documents; else None. It is not saved.
    n_unknown_ : how many of the texts that were last transformed have no known word; their codes are zeros.

    Example:
        >>> texts = ["telescope in orbit", "the telescope of Hubble", "hockey on ice", "ice hockey goalies"] * 5
        >>> model = ParagraphVectors(bits=16).fit(texts)
        >>> codes = model.transform(texts)
        >>> codes.shape, codes.dtype
        ((20, 2), dtype('uint8'))
    """

    bits: int | None = 128
    _: KW_ONLY
    dim: int | None = None
    levels: Sequence[int] | None = None
    solver: str = "closed-form"
    preset: str = "default"
    architecture: str = "dbow"
    network_params: Mapping[str, Any] | None = None
    sample: int | None = SAMPLE
    tokenizer: Tokenizer | None = None
    bigrams: bool = False
    min_count: int = 1
    min_bigram_count: int | None = None
    max_size: int | None = None
    output: str = "packed"
    missing: str = "error"
    random_state: Any = 0
    device: str = "auto"

    def fit(
        self,
        X: Texts,  # noqa: N803
        y: object = None,
        *,
        work: Path | str | None = None,
        resume: bool = True,
        checkpoint_every: float = 60.0,
        report: Report = silent,
    ) -> Self:
        """Learn from texts: an iterable of strings or `parabit.Document`s, a pandas or polars Series, or a Corpus.

        They are read once. `y` is not used. `work`, `resume` and `checkpoint_every` are for networks: the state is
        saved in the folder `work` every so many seconds and on Ctrl-C, and training continues from there.
        """
        network, rule, seed = self.network(), self.rule(), self._seed()
        corpus = self._corpus(X)
        parameters = _plain(self.get_params(deep=False)) | {
            "random_state": seed
        }  # what determines the model, as JSON
        del parameters["device"]
        if network is None:
            bits, dim, sample = (parameters[name] for name in ("bits", "dim", "sample"))
            encoder = learn_closed_form(corpus, bits, dim, self.levels, rule, sample, seed, report)
            encoder.config["parameters"] = parameters
            return self._fitted(encoder)
        need("torch", "networks", ModelError)
        from parabit.networks.training import Checkpoints, choose_device, train

        choose_device(
            self.device
        )  # a device that is not there is an error before the corpus is read
        if work is not None:
            check_work_folder(Path(work))
        vocabulary, documents = count_bags(corpus, rule, report)
        checkpoints = None
        if work is not None:
            learned_from = {"corpus": documents.fingerprint, "vocabulary": vocabulary.fingerprint}
            checkpoints = Checkpoints(Path(work), {**parameters, **learned_from}, checkpoint_every)
            if not resume:
                checkpoints.forget()
        trained = train(
            documents, vocabulary.counts, *network, seed=seed, device=self.device, checkpoints=checkpoints,
            report=report,
        )  # fmt: skip
        shape, recipe = network
        sizes = {"bits": shape.bits, "dim": shape.dim, "levels": [shape.code]}
        config = config_of("network", shape.name, sizes, vocabulary, vocabulary.documents)
        config["network"] = {"shape": asdict(shape), "recipe": asdict(recipe), "seed": seed}
        config["training"]["history"] = trained.history
        tensors = {
            name: tensor.numpy(force=True) for name, tensor in trained.network.tensors.items()
        }
        encoder = TextEncoder(
            vocabulary, {**config, "parameters": parameters}, tensors, self.device
        )
        return self._fitted(encoder, trained.embeddings.numpy(force=True))

    def _fitted(self, encoder: TextEncoder, embeddings: NDArray[np.float32] | None = None) -> Self:
        self.encoder_, self.embeddings_ = encoder, embeddings
        self.vocabulary_, self.levels_ = encoder.vocabulary, tuple(encoder.config["levels"])
        return self

    def transform(self, X: Texts, report: Report = silent) -> NDArray[Any]:  # noqa: N803
        """The codes of texts: (texts, bytes) packed or (texts, bits); of a real-valued model (texts, dim) float32.

        A code depends on the text and the model alone.
        """
        inferred = self.infer(X, report)
        if inferred.codes is None:
            return inferred.vectors
        return (
            unpack(inferred.codes, self.encoder_.bits or 0)
            if self.output == "bits"
            else inferred.codes
        )

    def infer(self, X: Texts, report: Report = silent) -> Inferred:  # noqa: N803
        """Codes, their activations and vectors of texts, together."""
        check_fitted(self)
        if self.output not in ("packed", "bits"):
            raise TrainingError(f"output is {self.output!r}", hint="it must be packed or bits")
        inferred = self.encoder_.infer(self._corpus(X), report)
        self.n_unknown_ = int(np.count_nonzero(~inferred.known))
        if self.n_unknown_:
            texts = f"{self.n_unknown_} of {len(inferred.vectors)} texts"
            warnings.warn(
                f"{texts} have no word that the model knows; their codes are zeros", stacklevel=3
            )
        return inferred

    @property
    def _n_features_out(self) -> int:
        """Columns of what `transform` returns, for get_feature_names_out."""
        bits = self.encoder_.bits
        if bits is None:
            return self.encoder_.dim
        return bits if self.output == "bits" else -(-bits // 8)

    def save(self, folder: Path | str, overwrite: bool = False) -> None:
        """Write the model to a folder; only an old model is replaced, and only with `overwrite`."""
        check_fitted(self)
        save_model(self.encoder_, Path(folder), overwrite)

    @classmethod
    def load(cls, folder: Path | str, device: str = "auto") -> "ParagraphVectors":
        """Read a model that was saved."""
        encoder = load_model(Path(folder), device)
        parameters = dict(encoder.config.get("parameters", {}))
        if parameters.get("tokenizer") is not None:
            parameters["tokenizer"] = Tokenizer.from_config(parameters["tokenizer"])
        return cls(**parameters, device=device)._fitted(encoder)

    def network(self) -> tuple[Shape, Recipe] | None:
        """The network that the parameters ask for, or None for the closed form; invalid combinations are refused."""
        for name, value, known in (
            ("solver", self.solver, SOLVERS),
            ("preset", self.preset, PRESETS),
        ):
            if value not in known:
                hint = did_you_mean(str(value), known) or f"there are {' and '.join(known)}"
                raise TrainingError(f"no {name} {value!r}", hint=hint)
        if self.missing not in ("error", "skip"):
            raise TrainingError(f"missing is {self.missing!r}", hint="it must be error or skip")
        if self.solver == "closed-form" and self.preset == "default":
            if self.architecture != "dbow" or self.network_params:
                what = (
                    "network_params"
                    if self.network_params
                    else f"architecture {self.architecture!r}"
                )
                raise TrainingError(f"{what} with the closed form", hint='use solver="network"')
            return None
        if self.levels is not None:
            raise TrainingError(
                "levels with a network", hint="only the closed form's codes have levels"
            )
        options = _plain(self.network_params or {})
        of_shape = {name: options.pop(name) for name in _SHAPE if name in options}
        shape = choose_shape(_plain(self.bits), _plain(self.dim), self.architecture, **of_shape)
        return shape, paper_recipe(shape, bool(self.bigrams), **options)

    def rule(self) -> VocabularyRule:
        """What the vocabulary is made of."""
        tokenizer = self.tokenizer or (Tokenizer.paper() if self.preset == "paper" else Tokenizer())
        return VocabularyRule(
            tokenizer, self.bigrams, self.min_count, self.min_bigram_count, self.max_size
        )

    def _seed(self) -> int:
        if self.random_state is None:
            return int(np.random.default_rng().integers(2**31))
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31))
        seed = _plain(self.random_state)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise TrainingError(
                f"random_state is {self.random_state!r}",
                hint="it must be a whole number, at least 0",
            )
        return seed

    def _corpus(self, texts: Texts) -> Corpus:
        """Texts in any form as a corpus that can be read once."""
        if isinstance(texts, np.ndarray) and texts.ndim != 1:
            raise CorpusError(
                f"texts have shape {texts.shape}",
                hint="give a one-dimensional array, such as X[:, 0]",
            )
        given: Any = texts
        corpus = PythonCorpus(given) if isinstance(given, Iterator) else as_corpus(given)
        if self.missing == "skip" and isinstance(corpus, PythonCorpus):
            return PythonCorpus(["" if is_missing(text) else text for text in given])
        return corpus


def check_work_folder(work: Path) -> None:
    """Raise unless a folder holds checkpoints and nothing else, or does not exist yet."""
    names = [path.name.lstrip(".") for path in work.iterdir()] if work.is_dir() else [""]
    if work.exists() and not all(name.startswith(CHECKPOINT) for name in names):
        raise ParabitError(
            f"{work} exists and is not a training folder",
            hint="nothing was changed; use another name",
        )


def _plain(value: Any) -> Any:
    """A parameter as JSON keeps it; numpy's numbers, as from a grid of parameters, are Python's."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Tokenizer):
        return value.config
    return value.item() if isinstance(value, np.number | np.bool_) else value

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from made_up import as_bags, make_counts
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from parabit.baselines.peers import BM25, LSA, Doc2Vec, IterativeQuantization, RandomHyperplanes, SentenceEncoder, TfIdf
from parabit.baselines.semantic_hashing import SemanticHashing
from parabit.errors import BaselineError, TrainingError

MADE = make_counts(20).counts
VECTORS = np.random.default_rng(0).standard_normal((30, 20))
SMALL: dict[str, Any] = {"hidden": (4,), "epochs": 1, "device": "cpu"}

WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: IterativeQuantization(0).fit(VECTORS), ValueError, "bits == 0, must be >= 1"),
    (lambda: IterativeQuantization(21).fit(VECTORS), ValueError, "bits == 21, must be <= 20"),
    (lambda: IterativeQuantization(8).fit(VECTORS).transform(VECTORS[:, :19]), ValueError, "X has 19 features"),
    (lambda: RandomHyperplanes(8).fit(VECTORS[0]), ValueError, "1D array"),
    (lambda: RandomHyperplanes(8).fit(np.where(VECTORS > 0, VECTORS, np.nan)), ValueError, "NaN"),
    (lambda: TfIdf().fit(csr_array((3, 4))), BaselineError, "nothing to fit on: no word in 3 documents"),
    (lambda: TfIdf().fit(-MADE), ValueError, "Negative values"),
    (lambda: TfIdf().transform(MADE), NotFittedError, "not fitted"),
    (lambda: BM25().fit(MADE).scores(MADE[:, :9]), ValueError, "X has 9 features"),
    (lambda: LSA(dim=21).fit(MADE), ValueError, "dim == 21, must be"),
    (lambda: Doc2Vec(dim=4).transform(as_bags(MADE)), NotFittedError, "not fitted"),
    (lambda: Doc2Vec(dim=4).fit(as_bags(MADE, order=False)), BaselineError, "no words in order in 20 documents"),
    (lambda: SentenceEncoder().transform("text"), BaselineError, "found one string; give it as [text]"),
    (
        lambda: SentenceEncoder("nobody/x").transform(["a"]),
        BaselineError,
        "'nobody/x' cannot be loaded: nobody/x is not",
    ),
    (lambda: SemanticHashing(8).transform(MADE), BaselineError, "it was fitted on 0; fit it first"),
    (lambda: SemanticHashing(8, **SMALL).fit(MADE).transform(MADE[:, :9]), BaselineError, "counts of 9 words, but"),
    (lambda: SemanticHashing(8, device="abacus").fit(MADE), TrainingError, "no device 'abacus'"),
]


@pytest.mark.parametrize(("call", "kind", "words"), WRONG)
def test_wrong_input_is_explained(
    call: Callable[[], object], kind: type[Exception], words: str, sentences: type
) -> None:
    pytest.importorskip("gensim")
    with pytest.raises(kind, match=re.escape(words)):
        call()


@pytest.mark.parametrize(
    ("library", "extra", "call"),
    [
        ("bm25s", "baselines", lambda: BM25().fit(MADE)),
        ("gensim.models.doc2vec", "baselines", lambda: Doc2Vec(dim=4).fit(as_bags(MADE))),
        ("sentence_transformers", "sentences", lambda: SentenceEncoder().transform(["a"])),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    library: str, extra: str, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    name = library.partition(".")[0]
    with pytest.raises(BaselineError, match=re.escape(f"{name} is not installed; pip install 'parabit[{extra}]'")):
        call()


def test_semantic_hashing_needs_torch_numpy_and_scipy_alone() -> None:
    names = ("sklearn", "polars", "safetensors", "bm25s", "gensim", "typer", "rich")
    block = f"import sys; sys.modules.update(dict.fromkeys({names}))"
    use = "from parabit.baselines.semantic_hashing import SemanticHashing; SemanticHashing(8)"
    assert subprocess.run([sys.executable, "-c", f"{block}; {use}"], check=False).returncode == 0

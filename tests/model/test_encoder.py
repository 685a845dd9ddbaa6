"""Texts to codes: the same alone and in any batch, whatever learned them."""

from typing import Any

import numpy as np
import pytest

from parabit import ParagraphVectors
from parabit.corpus import as_corpus
from parabit.model import Inferred, TextEncoder, learn_closed_form
from parabit.text.bags import FEW
from topics import make_topics

NETWORK: dict[str, Any] = {"solver": "network", "device": "cpu"}
QUICK = {"epochs": 2, "samples": 64, "inference_rounds": 3}
WIDE = {"window": 2, "two_sided": True, "word_dim": 7}
MODELS: dict[str, dict[str, Any]] = {
    "codes": {"bits": 20},
    "bigrams": {"bits": 64, "bigrams": True},
    "vectors": {"bits": None, "dim": 21},
    "both": {"bits": 12, "dim": 40},
    "network": {"bits": 16, **NETWORK, "network_params": QUICK},
    "network, both": {"bits": 12, "dim": 40, **NETWORK, "network_params": QUICK},
    "network, both, 5 bits": {"bits": 5, "dim": 10, **NETWORK, "network_params": QUICK},
    "network, vectors": {"bits": None, "dim": 21, **NETWORK, "network_params": QUICK},
    "network, dm": {"bits": 16, "architecture": "dm", **NETWORK, "network_params": QUICK},
    "network, dm, wide": {"bits": 9, "architecture": "dm", **NETWORK, "network_params": QUICK | WIDE},
}
TOPICS = make_topics(300)
WORDS = " ".join(TOPICS.texts).split()


@pytest.fixture(scope="module", params=MODELS)
def encoder(request: pytest.FixtureRequest) -> TextEncoder:
    return ParagraphVectors(**MODELS[request.param]).fit(TOPICS.texts).encoder_


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Texts of all kinds: seen and new, long and short, empty, unknown, not ASCII, and some twice."""
    long = [" ".join(WORDS[start : start + size]) for start, size in ((0, 1024), (50, 1025), (7, 3000))]
    short = [WORDS[0], f"{WORDS[1]} {WORDS[1]}", " ".join(reversed(WORDS[:30])), f"Éa {WORDS[3].upper()} ça"]
    return [*TOPICS.texts[:250], *long, *short, "", "qqqq xxxx", "...", *TOPICS.texts[:20]]


def rows(inferred: Inferred, chosen: Any) -> list[bytes]:
    return [b"" if part is None else part[chosen].tobytes() for part in inferred]


def test_a_code_is_the_same_alone_in_any_batch_and_in_any_order(encoder: TextEncoder, texts: list[str]) -> None:
    rng = np.random.default_rng(1)
    together = encoder.infer(texts)
    subsets = [[place] for place in (0, 17, 250, 251, 252, 253, 255, 256, 257)]
    subsets += [rng.choice(len(texts), size, replace=False).tolist() for size in (2, FEW, FEW + 1, 200)]
    subsets.append(list(range(len(texts)))[::-1])
    for chosen in subsets:
        assert rows(encoder.infer([texts[place] for place in chosen]), slice(None)) == rows(together, chosen)


def test_batches_do_not_show(topic_encoder: TextEncoder, texts: list[str]) -> None:
    texts = [" ".join(WORDS) * 40, *texts]  # the first is longer than a batch
    places = [0, *np.random.default_rng(2).integers(len(texts), size=5000)]
    alone = [rows(topic_encoder.infer([text]), slice(None)) for text in texts]
    together = topic_encoder.infer([texts[place] for place in places])
    assert [rows(together, place) for place in range(len(places))] == [alone[place] for place in places]


@pytest.fixture(scope="module")
def topic_encoder() -> TextEncoder:
    return learn_closed_form(as_corpus(TOPICS.texts), 20)


def test_a_text_without_a_known_word_gets_zeros_and_no_texts_nothing(encoder: TextEncoder) -> None:
    strange = ["", "qqqq xxxx", "!!! ...", "\n"]
    for given_texts in (strange, [TOPICS.texts[0], *strange]):
        assert not any(any(part) for part in rows(encoder.infer(given_texts), slice(-4, None)))
    nothing = encoder.infer([])
    assert nothing.vectors.shape == (0, encoder.dim)
    assert nothing.codes is None or nothing.codes.shape == (0, -(-(encoder.bits or 0) // 8))


def test_coverage_is_the_share_of_known_words(topic_encoder: TextEncoder) -> None:
    known = TOPICS.texts[0].split()
    texts = [known[0], f"{known[0]} qqqq", f"{known[0]} {known[0]} qqqq xxxx", "qqqq", ""]
    assert topic_encoder.coverage(texts).tolist() == [1.0, 0.5, 0.5, 0.0, 0.0]


def test_a_fingerprint_tells_models_apart() -> None:
    def fingerprint(count: int = 300, bits: int = 16, **others: Any) -> str:
        return learn_closed_form(as_corpus(TOPICS.texts[:count]), bits, **others).fingerprint

    prints = {fingerprint(), fingerprint(200), fingerprint(bits=24), fingerprint(seed=1), fingerprint(dim=20)}
    assert len(prints | {fingerprint(levels=[12, 4])}) == 6
    assert fingerprint() in prints

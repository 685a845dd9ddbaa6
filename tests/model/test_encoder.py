"""Models of every kind: a code is the same alone and in any batch, and after the model was saved and loaded."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from parabit import ParagraphVectors, Tokenizer, __version__
from parabit.corpus import as_corpus
from parabit.errors import ModelError, ParabitError
from parabit.model import Inferred, TextEncoder, is_model, learn_closed_form, load_model
from parabit.text.bags import FEW
from topics import make_topics

NETWORK: dict[str, Any] = {"solver": "network"}
QUICK = {"epochs": 2, "samples": 64, "inference_rounds": 3}
WIDE = {"window": 2, "two_sided": True, "word_dim": 7}
MODELS: dict[str, dict[str, Any]] = {
    "codes": {"bits": 20},
    "bigrams": {"bits": 64, "bigrams": True, "min_count": 2, "random_state": 5},
    "vectors": {"bits": None, "dim": 21},
    "both": {
        "bits": 12,
        "dim": 40,
        "levels": (9, 3),
        "tokenizer": Tokenizer(stop_words=frozenset({"und", "oder"})),
    },
    "network": {"bits": 16, **NETWORK, "network_params": QUICK},
    "network, both": {"bits": 12, "dim": 40, **NETWORK, "network_params": QUICK},
    "network, both, 5 bits": {"bits": 5, "dim": 10, **NETWORK, "network_params": QUICK},
    "network, vectors": {"bits": None, "dim": 21, "preset": "paper", "network_params": QUICK},
    "network, dm": {"bits": 16, "architecture": "dm", **NETWORK, "network_params": QUICK},
    "network, dm, wide": {
        "bits": 9,
        "architecture": "dm",
        **NETWORK,
        "network_params": QUICK | WIDE,
    },
}
TOPICS = make_topics(300)
WORDS = " ".join(TOPICS.texts).split()


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> ParagraphVectors:
    return ParagraphVectors(**MODELS[request.param], device="cpu").fit(TOPICS.texts)


@pytest.fixture
def encoder(model: ParagraphVectors) -> TextEncoder:
    return model.encoder_


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Texts of all kinds: seen and new, long and short, empty, unknown, not ASCII, and some twice."""
    long = [
        " ".join(WORDS[start : start + size]) for start, size in ((0, 1024), (50, 1025), (7, 3000))
    ]
    short = [
        WORDS[0],
        f"{WORDS[1]} {WORDS[1]}",
        " ".join(reversed(WORDS[:30])),
        f"Éa {WORDS[3].upper()} ça",
    ]
    return [*TOPICS.texts[:250], *long, *short, "", "qqqq xxxx", "...", *TOPICS.texts[:20]]


def rows(inferred: Inferred, chosen: Any) -> list[bytes]:
    return [b"" if part is None else part[chosen].tobytes() for part in inferred]


def test_a_code_is_the_same_alone_in_any_batch_and_in_any_order(
    encoder: TextEncoder, texts: list[str]
) -> None:
    rng = np.random.default_rng(1)
    together = encoder.infer(texts)
    subsets = [[place] for place in (0, 17, 250, 251, 252, 253, 255, 256, 257)]
    subsets += [
        rng.choice(len(texts), size, replace=False).tolist() for size in (2, FEW, FEW + 1, 200)
    ]
    subsets.append(list(range(len(texts)))[::-1])
    for chosen in subsets:
        assert rows(encoder.infer([texts[place] for place in chosen]), slice(None)) == rows(
            together, chosen
        )


def test_batches_do_not_show(topic_encoder: TextEncoder, texts: list[str]) -> None:
    texts = [" ".join(WORDS) * 40, *texts]  # the first is longer than a batch
    places = [0, *np.random.default_rng(2).integers(len(texts), size=5000)]
    alone = [rows(topic_encoder.infer([text]), slice(None)) for text in texts]
    together = topic_encoder.infer([texts[place] for place in places])
    assert [rows(together, place) for place in range(len(places))] == [
        alone[place] for place in places
    ]


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

    prints = {
        fingerprint(),
        fingerprint(200),
        fingerprint(bits=24),
        fingerprint(seed=1),
        fingerprint(dim=20),
    }
    assert len(prints | {fingerprint(levels=[12, 4])}) == 6
    assert fingerprint() in prints


FILES = ["README.md", "config.json", "model.safetensors", "vocabulary.safetensors"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def small() -> ParagraphVectors:
    return ParagraphVectors(16).fit(TOPICS.texts)


@pytest.fixture
def saved(small: ParagraphVectors, tmp_path: Path) -> Path:
    small.save(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_saved_and_loaded_is_the_same(model: ParagraphVectors, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = ParagraphVectors.load(tmp_path / "model", device="cpu")
    assert loaded.transform(TOPICS.texts).tobytes() == model.transform(TOPICS.texts).tobytes()
    assert loaded.encoder_.fingerprint == model.encoder_.fingerprint
    asked = model.get_params() | {"levels": None if model.levels is None else list(model.levels)}
    assert loaded.get_params() == asked
    assert loaded.levels_ == model.levels_
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "model")


def test_a_folder_has_these_files_and_says_what_it_is(saved: Path) -> None:
    assert [path.name for path in sorted(saved.iterdir())] == FILES
    config = json.loads((saved / "config.json").read_text())
    assert (config["format"], config["parabit"], config["solver"]) == (
        1,
        __version__,
        "closed-form",
    )
    assert (config["bits"], config["levels"]) == (16, [16])
    assert "device" not in config["parameters"]
    card = (saved / "README.md").read_text()
    assert card.startswith("# Binary paragraph vectors in closed form, 16 bits per document\n")
    assert "| documents | 300, learned from 300 |" in card
    assert is_model(saved)


Harm = Callable[[bytes], bytes]


def config_with(**changes: Any) -> Harm:
    return lambda content: json.dumps({**json.loads(content), **changes}).encode()


def tensors_with(name: str, change: Callable[[Any], Any]) -> Harm:
    def harm(content: bytes) -> bytes:
        tensors = load(content)
        return save({**tensors, name: np.ascontiguousarray(change(tensors.get(name)))})

    return harm


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


DAMAGED, NOT_ONE = (
    "{folder}/config.json is damaged",
    "the files in {folder} are not those of one model",
)


@pytest.mark.parametrize(
    ("name", "harm", "words"),
    [
        (
            "config.json",
            None,
            "no model in {folder}; make one with `parabit train CORPUS -o FOLDER`",
        ),
        *(
            ("config.json", content, DAMAGED)
            for content in (b"", b"{", b"[]", b"7", b'{"format": 1}')
        ),
        ("config.json", half, DAMAGED),
        ("config.json", config_with(solver="network"), DAMAGED),
        ("config.json", config_with(bits=24, levels=[24]), NOT_ONE),
        (
            "config.json",
            config_with(format=2),
            "{folder} was made by a newer version of parabit; upgrade parabit",
        ),
        *(
            (f"{name}.safetensors", harm, f"{{folder}}/{name}.safetensors is damaged")
            for name in ("model", "vocabulary")
            for harm in (None, b"no tensors", half)
        ),
        ("model.safetensors", tensors_with("weights", lambda weights: weights[:-1]), NOT_ONE),
        ("model.safetensors", tensors_with("offset", lambda offset: offset[None]), NOT_ONE),
        ("model.safetensors", tensors_with("more", lambda _: np.zeros(3)), NOT_ONE),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(
    saved: Path, name: str, harm: bytes | Harm | None, words: str
) -> None:
    path = saved / name
    content = path.read_bytes()
    path.unlink()
    if harm is not None:
        path.write_bytes(harm if isinstance(harm, bytes) else harm(content))
    with pytest.raises(ModelError) as refused:
        load_model(saved)
    assert str(refused.value).startswith(words.format(folder=saved))


def test_files_of_two_models_do_not_make_a_third(saved: Path, tmp_path: Path) -> None:
    ParagraphVectors(16).fit(TOPICS.texts[:100]).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "vocabulary.safetensors", saved)
    with pytest.raises(ModelError, match="are not those of one model"):
        load_model(saved)


@pytest.mark.parametrize(
    "kind", ["file", "empty folder", "folder of mine", "model with notes", "link"]
)
def test_what_is_no_model_is_never_replaced(
    kind: str, saved: Path, small: ParagraphVectors
) -> None:
    place = saved.with_name("place")
    if kind == "link":
        place.symlink_to("nowhere")
    elif kind == "model with notes":
        shutil.copytree(saved, place)
    elif kind != "file":
        place.mkdir()
    mine = {
        "file": place,
        "folder of mine": place / "config.json",
        "model with notes": place / "notes.txt",
    }.get(kind)
    if mine is not None:
        mine.write_text('{"mine": true}')
    for overwrite in (False, True):
        with pytest.raises(ParabitError, match="place exists"):
            small.save(place, overwrite=overwrite)
    assert place.is_symlink() == (kind == "link")
    assert mine is None or mine.read_text() == '{"mine": true}'
    assert {path.name for path in saved.parent.iterdir()} == {"model", "place"}

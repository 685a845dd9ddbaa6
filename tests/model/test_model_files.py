"""A model is data from a stranger: it loads, or one error says what is wrong with it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from parabit import ParagraphVectors, Tokenizer
from parabit.errors import ModelError, ParabitError, VocabularyError
from parabit.model import is_model, load_model
from parabit.model.code_files import is_codes
from parabit.model.config import _PARAMETERS
from parabit.text import Vocabulary
from parabit.text.bags import FORMAT
from topics import make_topics

TOPICS = make_topics(200)
QUICK = {"epochs": 1, "samples": 64, "inference_rounds": 2}
MUTATIONS = 70  # per file and model; the seed changes nothing but which they are


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of models, to be copied."""
    home = tmp_path_factory.mktemp("models")
    closed = ParagraphVectors(16, bigrams=True).fit(TOPICS.texts)
    closed.save(home / "closed")
    wide = {"window": 2, "two_sided": True, "word_dim": 7}
    for name, options in {
        "network": {"bits": 12, "dim": 40, "network_params": QUICK},
        "dm": {"bits": 9, "architecture": "dm", "network_params": QUICK | wide},
    }.items():
        network = ParagraphVectors(**options, solver="network", device="cpu")  # type: ignore[arg-type]
        network.fit(TOPICS.texts).save(home / name)
    return home


@pytest.fixture
def saved(models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(models / "closed", tmp_path / "model"))


@pytest.fixture
def network(models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(models / "network", tmp_path / "network"))


def change_config(folder: Path, *way: str, value: Any) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    owner = config
    for name in way[:-1]:
        owner = owner[name]
    owner[way[-1]] = value
    path.write_text(json.dumps(config))


def tree(folder: Path) -> dict[Path, bytes | None]:
    """All that is in a folder."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("name", ["closed", "network", "dm"])
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory so")
def test_whatever_a_stranger_changes_it_is_a_model_error_or_works(
    name: str, models: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(models / name, tmp_path / "model"))
    program = Path(__file__).with_name("mutations.py")
    command = [sys.executable, str(program), str(folder), "7", str(MUTATIONS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = json.loads(done.stdout)
    for file, counts in outcomes.items():
        assert set(counts) <= {"refused", "works"}, file
        assert sum(counts.values()) == MUTATIONS
        assert counts["refused"] > MUTATIONS // 4
    assert {path.name for path in tmp_path.iterdir()} == {"model"}


@pytest.mark.parametrize(
    ("way", "value", "words"),
    [
        (("bits",), 0, "bits is 0, it must be a whole number, at least 1"),
        (("bits",), 10**30, "bits is a very large number"),
        (("bits",), True, "bits is True"),
        (("bits",), "16", "bits is '16'"),
        (("dim",), None, "dim is None"),
        (("levels",), [8, 9], "levels add up to 17, not to 16"),
        (("levels",), [[16]], "levels is a list of 1"),
        (("solver",), "../x", "solver is '../x', it must be one of closed-form, network"),
        (("name",), "a\x1b[2J", "name is "),
        (("training",), [], "training is a list of 0, it must be an object"),
        (("training", "documents"), -1, "training.documents is -1"),
        (("training", "history"), [{"loss": "low"}], "training.history.loss is 'low'"),
        (("training", "more"), 1, "training.'more' is not known"),
        (
            ("parameters", "tokenizer", "min_length"),
            0,
            "parameters.tokenizer: this is no tokenizer",
        ),
        (("parameters", "device"), "cpu", "parameters.'device' is not known"),
        (("vocabulary",), "0" * 63, "vocabulary is "),
        (("format",), "1", "format is '1'"),
        (("surprise",), {}, "'surprise' is not known"),
    ],
)
def test_what_is_wrong_in_a_config_is_named_with_what_it_must_be(
    way: tuple[str, ...], value: Any, words: str, saved: Path
) -> None:
    if way[1:2] == ("tokenizer",):
        change_config(saved, "parameters", "tokenizer", value=Tokenizer().config)
        load_model(saved)
    change_config(saved, *way, value=value)
    before = tree(saved.parent)
    with pytest.raises(ModelError) as refused:
        load_model(saved)
    assert str(refused.value).startswith(f"{saved / 'config.json'} is damaged: {words}")
    assert tree(saved.parent) == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[" * 100_000, "it is nested too deeply"),
        ('{"bits": NaN}', "NaN is not a number"),
        ('{"bits": 1e999}', "'1e999' is too large a number"),
        ('{"name": "\\ud800"}', "it is not JSON"),
        ('{"bits": ' + "9" * 5000 + "}", "it is not JSON"),
        (" " * (9 << 20) + "{}", "it is larger than 8,388,608 bytes"),
        ("{}", "format is missing"),
    ],
    ids=["deep", "NaN", "infinite", "surrogate", "digits", "large", "empty"],
)
def test_a_config_that_is_not_plain_json_is_refused(content: str, words: str, saved: Path) -> None:
    (saved / "config.json").write_text(content)
    with pytest.raises(ModelError) as refused:
        load_model(saved)
    assert f"config.json is damaged: {words}" in str(refused.value)
    assert not is_model(saved)


@pytest.mark.parametrize(
    ("way", "value", "words"),
    [
        (("shape", "bits"), 13, "network.shape is not that of these bits and dim"),
        (("shape", "dim"), 10**9, "network.shape: dim is 1000000000"),
        (("shape", "window"), 10**12, "network.shape: a window with architecture dbow"),
        (("shape", "projected"), False, "network.shape: 12 bits and dim 40"),
        (("shape", "rows"), 1, "network.shape.'rows' is not known"),
        (("recipe", "samples"), 10**12, "network.recipe: samples is 1000000000000"),
        (("recipe", "inference_rounds"), 10**9, "network.recipe: inference_rounds is"),
        (("recipe", "document_rate"), 10**30, "network.recipe: document_rate is"),
        (("recipe", "epochs"), "many", "network.recipe: epochs is 'many'"),
        (("recipe", "min_occurrences"), 10**6, "no word occurs 1,000,000 times"),
        (("seed",), -1, "network.seed is -1"),
    ],
)
def test_what_is_wrong_with_a_network_is_named_before_anything_is_allocated(
    way: tuple[str, ...], value: Any, words: str, network: Path
) -> None:
    change_config(network, "network", *way, value=value)
    with pytest.raises(ModelError) as refused:
        load_model(network)
    assert str(refused.value).startswith(f"{network / 'config.json'} is damaged: {words}")


def test_samples_of_all_rounds_together_are_bounded(network: Path) -> None:
    change_config(network, "network", "recipe", "samples", value=1 << 17)
    change_config(network, "network", "recipe", "inference_rounds", value=10_000)
    with pytest.raises(ModelError, match="131,072 samples in 10,000 inference_rounds"):
        load_model(network)


@pytest.mark.parametrize("file", ["config.json", "vocabulary.safetensors"])
def test_a_newer_version_is_said_to_be_one(
    file: str, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if file == "config.json":
        change_config(saved, "format", value=FORMAT + 1)
        change_config(saved, "what_comes_then", value={})
    else:
        with monkeypatch.context() as newer:
            newer.setattr("parabit.text.bags.FORMAT", FORMAT + 1)
            content = Vocabulary.load(saved / file).to_bytes()
        (saved / file).write_bytes(content)
    with pytest.raises(ModelError, match="was made by a newer version of parabit; upgrade parabit"):
        load_model(saved)


def change_tensors(folder: Path, name: str, change: Callable[[Any], Any]) -> None:
    path = folder / "model.safetensors"
    tensors = load(path.read_bytes())
    path.write_bytes(save({**tensors, name: np.ascontiguousarray(change(tensors[name]))}))


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("scales", lambda scales: scales * np.float32(np.nan), "scales has numbers from nan"),
        ("scales", lambda scales: scales - 9, "scales has numbers from -"),
        ("scales", lambda scales: scales + np.float32(np.inf), "scales has numbers from inf"),
        ("offset", lambda offset: offset + np.float32(1e30), "offset has numbers from 1e+30"),
        ("weights", lambda weights: weights.astype(np.int32), "are not those of one model"),
        ("scales", lambda scales: scales.astype(np.float64), "are not those of one model"),
    ],
)
def test_numbers_that_cannot_be_summed_and_other_types_are_refused(
    name: str, change: Callable[[Any], Any], words: str, saved: Path
) -> None:
    change_tensors(saved, name, change)
    with pytest.raises(ModelError, match=re.escape(words)):
        load_model(saved)


def test_shapes_are_compared_before_tensors_are_read(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_tensors(saved, "weights", lambda weights: np.zeros((4096, 4096), np.int8))

    def read(*_: object, **__: object) -> None:
        pytest.fail("tensors were read")

    monkeypatch.setattr("parabit.model.encoder._check_numbers", read)
    with pytest.raises(ModelError, match="are not those of one model"):
        load_model(saved)


def vocabulary_with(path: Path, summary: dict[str, Any] | None = None, **arrays: Any) -> None:
    """Write a vocabulary file with some of its arrays replaced."""
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    about = json.loads(header["__metadata__"]["vocabulary"]) | (summary or {})
    path.write_bytes(save({**load(content), **arrays}, {"vocabulary": json.dumps(about)}))


@pytest.mark.parametrize(
    ("summary", "arrays", "words"),
    [
        ({}, {"words": np.frombuffer(b"\xff\n" * 3, np.uint8)}, ""),
        ({}, {"words": np.frombuffer(b"a\nb\nb\n", np.uint8)}, ": a word is there twice"),
        ({}, {"words": np.frombuffer(b"a\nb\nc", np.uint8)}, ": there are 2 words"),
        ({}, {"words": np.zeros(3, np.float32)}, ": words has the type F32"),
        ({}, {"bigrams": np.array([[0, 3]], np.int32)}, ": bigrams has numbers from 0 to 3"),
        ({}, {"bigrams": np.array([[-1, 0]], np.int32)}, ": bigrams has numbers from -1"),
        ({}, {"bigrams": np.array([[0, 1, 2]], np.int32)}, ": its arrays do not have the sizes"),
        ({}, {"counts": np.array([1, 1, 1, -1], np.int32)}, ": counts has numbers from -1"),
        ({}, {"counts": np.array([1, 1, 1, 99], np.int32)}, ": counts has numbers from 1 to 99"),
        ({}, {"counts": np.array([1, 1, 1], np.int32)}, ": its arrays do not have the sizes"),
        ({}, {"document_frequencies": np.array([1, 1, 1, 9], np.int32)}, ": document_frequencies"),
        ({"documents": -1}, {}, ": documents is -1"),
        ({"tokens": 1e3}, {}, ": tokens is 1000.0"),
        ({"tokenizer": {}}, {}, ": this is no tokenizer: tokenizer.pattern is missing"),
        ({"more": 1}, {}, ": 'more' is not known"),
    ],
)
def test_a_vocabulary_that_would_be_read_beyond_its_ends_is_refused(
    summary: dict[str, Any], arrays: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "v"
    numbers = np.array([2, 1, 1, 1], np.int64)
    bigrams = np.array([[0, 1]], np.int32)
    Vocabulary(Tokenizer(min_length=1), ["a", "b", "c"], bigrams, numbers, numbers, 3, 4).save(path)
    assert Vocabulary.load(path).names == ["a", "b", "c", "a b"]
    vocabulary_with(path, summary, **arrays)
    with pytest.raises(VocabularyError) as refused:
        Vocabulary.load(path)
    assert str(refused.value).startswith(f"{path} is not a whole vocabulary file{words}")


@pytest.mark.parametrize("tokenizer", ["(", "(a{999}){999}", "a" * 100, 7])
def test_a_pattern_in_a_file_is_no_way_in(tokenizer: Any, saved: Path) -> None:
    path = saved / "vocabulary.safetensors"
    vocabulary_with(path, {"tokenizer": Tokenizer().config | {"pattern": tokenizer}})
    if tokenizer == "a" * 100:
        change_config(saved, "vocabulary", value=Vocabulary.load(path).fingerprint)
        assert not load_model(saved).infer(["hockey"]).known.any()
    else:
        with pytest.raises(ModelError, match=r"vocabulary.safetensors is damaged: .*pattern"):
            load_model(saved)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocabulary.safetensors"])
@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_is_no_regular_file_is_not_opened(name: str, kind: str, saved: Path) -> None:
    path = saved / name
    original = path.rename(saved.parent / name)
    if kind == "link":
        path.symlink_to(original)
    elif kind == "folder":
        path.mkdir()
    elif hasattr(os, "mkfifo"):
        os.mkfifo(path)  # who opens it waits for ever
    else:
        pytest.skip("there are no pipes")
    with pytest.raises(ModelError, match=f"{name} is damaged: it is not a regular file"):
        load_model(saved)
    assert not is_model(saved)


@pytest.mark.parametrize("kind", ["folder", "link", "config of something else"])
def test_a_folder_with_anything_of_a_users_is_not_replaced(kind: str, saved: Path) -> None:
    model = ParagraphVectors.load(saved)
    mine = saved.parent / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    (saved / "README.md").unlink()
    if kind == "folder":
        mine.rename(saved / "README.md")
    elif kind == "link":
        (saved / "README.md").symlink_to(mine)
    else:
        for path in saved.iterdir():
            path.unlink()
        (saved / "config.json").write_text('{"solver": "conjugate gradients"}')
    before = tree(saved.parent)
    with pytest.raises(ParabitError, match="exists and is something else; nothing was changed"):
        model.save(saved, overwrite=True)
    assert tree(saved.parent) == before


def test_opening_a_model_changes_nothing_around_it(saved: Path) -> None:
    """Neither does saving, nor training: a folder of a user's may be called as old folders were."""
    mine = saved.parent / ".model.old"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    before = tree(saved.parent)
    load_model(saved)
    assert tree(saved.parent) == before
    model = ParagraphVectors.load(saved)
    model.save(saved, overwrite=True)
    assert (mine / "notes.txt").read_text() == "mine"
    shutil.rmtree(saved)
    with pytest.raises(ModelError, match="no model in"):
        load_model(saved)
    model.save(saved)
    assert (mine / "notes.txt").read_text() == "mine"


def test_a_model_that_a_killed_writer_set_aside_is_read_where_it_is(saved: Path) -> None:
    same = load_model(saved).fingerprint
    aside = saved.rename(saved.with_name(".model.0123abcd.old"))
    before = tree(saved.parent)
    assert load_model(saved).fingerprint == same
    assert tree(saved.parent) == before
    shutil.copytree(aside, saved.with_name(".model.76543210.old"))
    with pytest.raises(ModelError, match="no model in"):  # which of the two is not known
        load_model(saved)


def test_what_is_written_can_be_read(saved: Path) -> None:
    model = ParagraphVectors.load(saved)
    model.encoder_.config["name"] = "\n"
    with pytest.raises(ModelError, match="this model cannot be saved: name is "):
        model.save(saved.with_name("other"))
    model.encoder_.config["name"] = "mine"
    model.encoder_.config["parameters"]["tokenizer"] = Tokenizer().config | {
        "stop_words": [f"word{number}" for number in range(1_000_000)]
    }
    with pytest.raises(ModelError, match="very many stop words"):
        model.save(saved.with_name("other"))
    assert {path.name for path in saved.parent.iterdir()} == {"model"}


@pytest.mark.parametrize("dim", [16, 20])
def test_a_vector_as_long_as_the_code_can_be_loaded(dim: int, tmp_path: Path) -> None:
    model = ParagraphVectors(16, dim=dim).fit(TOPICS.texts)
    model.save(tmp_path / "model")
    loaded = ParagraphVectors.load(tmp_path / "model").infer(TOPICS.texts[:5])
    assert loaded.vectors.tobytes() == model.infer(TOPICS.texts[:5]).vectors.tobytes()


def test_parameters_are_those_of_the_estimator() -> None:
    names = {field.name for field in fields(ParagraphVectors)} - {"_", "device"}
    assert set(_PARAMETERS) == names


def test_what_is_no_file_of_codes_is_none_whatever_it_is(tmp_path: Path) -> None:
    def header(text: str) -> bytes:
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()

    codes = "{'descr': '|u1', 'fortran_order': False, 'shape': (%s)}"
    contents = [
        b"",
        b"\x93NUMPY",
        b"PK\x03\x04" + b"\0" * 99,
        header("(" * 9000),
        header("-" * 9000),
    ]
    contents += [
        header(codes % shape) for shape in ("10**9, 2", "1000000000, 16", "-1, -1", "True")
    ]
    contents += [header("{'descr': '|O', 'fortran_order': False, 'shape': (1, 1)}") + b"\x80."]
    for content in contents:
        for name in ("codes.npy", "codes.parquet"):
            (tmp_path / name).write_bytes(content)
            assert not is_codes(tmp_path / name)
    np.save(tmp_path / "codes.npy", np.zeros((3, 2), np.uint8))
    assert is_codes(tmp_path / "codes.npy")
    (tmp_path / "link.npy").symlink_to("codes.npy")
    assert not is_codes(tmp_path / "link.npy")

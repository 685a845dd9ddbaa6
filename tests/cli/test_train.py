import json
import subprocess
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from parabit import ParagraphVectors, Recipe
from parabit.cli.app import app
from parabit.networks.config import choose_shape, paper_recipe
from topics import Topics

QUICK = ("--bits", "16", "--epochs", "2", "--samples", "64", "--inference-rounds", "3", "--device", "cpu")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["train", *map(str, arguments)])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is told must be told before the work."""

    def fit(*_: object, **__: object) -> None:
        pytest.fail("it trained first")

    monkeypatch.setattr("parabit.model.fitting.train", fit)


def unfinished(here: Path) -> Path:
    """What a kill before the first checkpoint leaves."""
    folder = here / "model.training"
    (folder / "scratch").mkdir(parents=True)
    (folder / "scratch" / "documents.f32").write_bytes(b"half")
    return folder


def test_a_model_is_trained_saved_and_told_as_json(here: Path, topics: Topics) -> None:
    result = run("news.jsonl", "-o", "model", *QUICK, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert told.pop("seconds") > 0
    history = told.pop("history")
    assert told == {
        "corpus": "news.jsonl",
        "model": "model",
        "documents": 300,
        "words": len(set(" ".join(topics.texts).split())),
        "bigrams": 0,
        "bits": 16,
        "dim": 16,
        "epochs": 2,
        "kept": told["kept"],
        "loss": history[told["kept"] - 1]["loss"],
        "completion": history[told["kept"] - 1]["completion"],
        "skipped": 0,
    }
    assert len(history) == 2
    assert ParagraphVectors.load("model").transform(topics.texts[:2]).shape == (2, 2)
    assert {path.name for path in here.iterdir()} == {"news.jsonl", "model"}  # and nothing of the work is left


def test_the_command_reads_standard_input_and_makes_the_librarys_model_to_the_byte(
    parabit: Callable[..., subprocess.CompletedProcess[str]], here: Path, lines: str, topics: Topics
) -> None:
    result = parabit("train", "-", "-o", "model", *QUICK, "--json", stdin=lines)
    assert (result.returncode, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert (told["corpus"], told["documents"]) == ("-", 300)
    model = ParagraphVectors(16, epochs=2, samples=64, inference_rounds=3, device="cpu").fit(topics.texts)
    model.save(here / "same")
    assert contents(here / "model") == contents(here / "same")
    # What another process trained infers here as what was trained here.
    loaded = ParagraphVectors.load(here / "model", device="cpu")
    assert loaded.infer(topics.texts).vectors.tobytes() == model.infer(topics.texts).vectors.tobytes()


def test_people_are_told_in_words(here: Path) -> None:
    result = run("news.jsonl", "-o", "model", *QUICK, "--dim", "20")
    assert result.exit_code == 0
    assert result.stdout.startswith("model: Real-Binary PV-DBOW, 16 bits a document\n")
    assert "300 documents, 200 words, 0 bigrams, 2 epochs in " in result.stdout
    assert "loss a word: " in result.stdout
    assert " in document completion, after epoch " in result.stdout


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ((), "Binary PV-DBOW"),
        (("--bigrams", "--min-count", "2"), "Binary PV-DBOW"),
        (("--dim", "24"), "Real-Binary PV-DBOW"),
        (("--bits", "none", "--dim", "12"), "PV-DBOW"),
        (("--architecture", "dm", "--window", "2", "--two-sided", "--word-dim", "4"), "Binary PV-DM"),
        (("--architecture", "dm", "--bits", "none", "--dim", "12"), "PV-DM"),
        (("--preset", "paper", "--binarization", "straight-through", "--slope-growth", "0.1"), "Binary PV-DBOW"),
    ],
)
def test_every_network_can_be_trained(options: tuple[str, ...], name: str, here: Path) -> None:
    result = run("news.jsonl", "-o", "model", *QUICK, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"model: {name}, " in result.stdout


def test_every_option_of_the_recipe_arrives(here: Path) -> None:
    other: dict[str, Any] = {"start": "random", "binarization": "straight-through-sigmoid"}
    usual = paper_recipe(choose_shape(16))
    for parameter in fields(Recipe):
        value = getattr(usual, parameter.name)
        if parameter.type is float:
            other[parameter.name] = value / 2 if value else 0.25
        elif parameter.type is int:
            other[parameter.name] = 3
    options = [text for name, value in other.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    network = ("--bits", "8", "--dim", "10", "--seed", "9", "--device", "cpu")
    words = ("--bigrams", "--min-count", "2", "--min-bigram-count", "3", "--max-size", "150", "--min-length", "3")
    words += ("--max-length", "9", "--stop-words", "none", "--pattern", "[a-z]+")
    result = run("news.jsonl", "-o", "model", *network, *words, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    config = json.loads((here / "model" / "config.json").read_text())
    assert config["recipe"] == other
    expected = {"bits": 8, "dim": 10, "seed": 9, "bigrams": True, "min_count": 2, "min_bigram_count": 3}
    expected |= {"max_size": 150, "min_length": 3, "max_length": 9, "stop_words": "none", "pattern": "[a-z]+"}
    assert expected.items() <= config["parameters"].items()


def test_a_slim_model_is_saved_slim(here: Path) -> None:
    assert run("news.jsonl", "-o", "model", *QUICK, "--slim").exit_code == 0
    assert ParagraphVectors.load("model").embeddings_ is None


def test_an_old_model_is_replaced_only_if_asked_for(here: Path) -> None:
    assert run("news.jsonl", "-o", "model", *QUICK).exit_code == 0
    before = contents(here / "model")
    result = run("news.jsonl", "-o", "model", *QUICK, "--seed", "5")
    assert result.exit_code == 1
    assert result.stderr == "parabit: model is there already; choose another name, or replace it with --overwrite\n"
    assert contents(here / "model") == before
    assert run("news.jsonl", "-o", "model", *QUICK, "--seed", "5", "--overwrite").exit_code == 0
    assert contents(here / "model") != before
    assert {path.name for path in here.iterdir()} == {"news.jsonl", "model"}


@pytest.mark.usefixtures("no_training")
def test_an_unfinished_training_is_told_and_not_lost(here: Path) -> None:
    folder = unfinished(here)
    result = run("news.jsonl", "-o", "model", *QUICK)
    assert result.exit_code == 1
    assert result.stderr == (
        "parabit: an unfinished training is in model.training; go on with --resume, or start anew with --overwrite\n"
    )
    assert (folder / "scratch" / "documents.f32").exists()


@pytest.mark.parametrize("option", ["--resume", "--overwrite"])
def test_an_unfinished_training_can_be_resumed_or_forgotten(option: str, here: Path) -> None:
    unfinished(here)
    assert run("news.jsonl", "-o", "model", *QUICK, option).exit_code == 0
    assert {path.name for path in here.iterdir()} == {"news.jsonl", "model"}


@pytest.mark.usefixtures("no_training")
def test_there_must_be_something_to_resume(here: Path) -> None:
    result = run("news.jsonl", "-o", "model", *QUICK, "--resume")
    assert result.exit_code == 1
    assert result.stderr == (
        "parabit: there is no unfinished training in model.training; leave out --resume to start one\n"
    )


@pytest.mark.parametrize("option", [(), ("--resume",), ("--overwrite",)])
@pytest.mark.usefixtures("no_training")
def test_a_folder_of_somebodys_is_not_taken_for_an_unfinished_training(option: tuple[str, ...], here: Path) -> None:
    folder = unfinished(here)
    (folder / "thesis.txt").write_text("mine")
    result = run("news.jsonl", "-o", "model", *QUICK, *option)
    assert result.exit_code == 1
    assert "model.training is there and is something else; nothing was touched" in result.stderr
    assert (folder / "thesis.txt").read_text() == "mine"
    assert (folder / "scratch" / "documents.f32").exists()


def test_a_typing_error_does_not_cost_an_unfinished_training(here: Path) -> None:
    folder = unfinished(here)
    for corpus, epochs in (("no-such-file.jsonl", "2"), ("news.jsonl", "0")):
        assert run(corpus, "-o", "model", *QUICK, "--epochs", epochs, "--overwrite").exit_code == 1
        assert (folder / "scratch" / "documents.f32").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--bits", "0"), 1, "parabit: bits is 0; it must be a whole number, at least 1"),
        (("--bits", "-3"), 1, "parabit: bits is -3; it must be a whole number, at least 1"),
        (("--bits", "abc"), 1, "parabit: bits is 'abc'; it must be a whole number, at least 1, or none"),
        (("--bits", "1.5"), 1, "parabit: bits is '1.5'; it must be a whole number"),
        (("--bits", "none"), 1, "parabit: neither bits nor dim is given"),
        (("--dim", "8"), 1, "parabit: dim 8 is less than bits 16"),
        (("--dim", "0"), 1, "parabit: dim is 0; it must be a whole number"),
        (("--dim", "many"), 2, "--dim"),
        (("--window", "2"), 1, "parabit: window with architecture dbow; it is an option of dm"),
        (("--architecture", "cbow"), 1, "parabit: no architecture 'cbow'; did you mean dbow? There are dbow, dm"),
        (("--architecture", "dm", "--bigrams"), 1, "parabit: bigrams with architecture dm; it reads words in their"),
        (("--architecture", "dm", "--neighbours", "5"), 1, "parabit: neighbours with architecture dm; it is an option"),
        (("--architecture", "dm", "--dim", "20"), 1, "parabit: dim and bits with architecture dm"),
        (("--preset", "best"), 1, "parabit: no preset 'best'; there are default, paper"),
        (("--device", "tpu"), 1, "parabit: no device 'tpu'; there are cpu, cuda and auto"),
        (("--binarization", "sign"), 1, "parabit: binarization is 'sign'; it must be one of rounding, noise"),
        (("--slope-growth", "0.1"), 1, "parabit: slope annealing with binarization 'rounding'"),
        (("--epochs", "0"), 1, "parabit: epochs is 0; it must be a whole number, at least 1"),
        (("--epochs", "few"), 2, "--epochs"),
        (("--dropout", "1"), 1, "parabit: dropout is 1.0; it must be a share, at least 0 and below 1"),
        (("--word-rate", "nan"), 1, "parabit: word_rate is nan; it must be a number above 0"),
        (("--seed", "-1"), 1, "parabit: seed is -1; it must be a whole number, at least 0"),
        (("--seed", "x"), 2, "--seed"),
        (("--checkpoint-every", "-1"), 2, "--checkpoint-every"),
        (("--min-count", "99999"), 1, "parabit: no word occurs 99999 times"),
        (("--text-field", "body"), 1, "no field 'body'"),
        (("--resume",), 1, "there is no unfinished training in model.training"),
        (("-o", "no/such/folder/model"), 1, "parabit: there is no folder no/such/folder to write model in"),
        (("-o", "news.jsonl"), 1, "parabit: news.jsonl is there already"),
        (
            ("-o", "news.jsonl", "--overwrite"),
            1,
            "parabit: news.jsonl is there and is something else; nothing",
        ),
        (("-o", ".", "--overwrite"), 1, "is there and is something else"),
        (("-o", "link"), 1, "parabit: link is there"),
        (("-o", "link", "--overwrite"), 1, "parabit: link is there"),
        (("-o", "n" * 245), 1, "File name too long"),
        (("-o", "n" * 300), 1, "File name too long"),
        (("--no-such-option",), 2, "No such option"),
    ],
)
@pytest.mark.usefixtures("no_training")
def test_what_is_wrong_is_told_before_training_in_a_line_and_by_the_exit_code(
    arguments: tuple[str, ...], code: int, words: str, here: Path
) -> None:
    (here / "link").symlink_to("nowhere")
    before = {path.name for path in here.iterdir()}
    result = run("news.jsonl", "-o", "model", *QUICK, *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    if code == 1:
        assert result.stderr.count("\n") == 1
    assert {path.name for path in here.iterdir()} == before


def test_a_corpus_of_one_document_is_told(here: Path) -> None:
    (here / "one.txt").write_text("a telescope in orbit")
    result = run("one.txt", "-o", "model", *QUICK)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("parabit: a corpus of 1 document; codes are learned from what tells documents ")
    assert not (here / "model.training").exists()


@pytest.mark.parametrize("moment", ["parabit.model.fitting.build_bags", "parabit.model.persistence.save_file"])
def test_an_interrupt_outside_of_training_says_in_whole_sentences_that_one_can_go_on(
    moment: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = here / "model.training"

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("parabit.networks.checkpoint.Checkpoints.load", lambda self: None)
    (folder / "checkpoint-000000000001").mkdir(parents=True)
    monkeypatch.setattr(moment, stop)
    result = run("news.jsonl", "-o", "model", *QUICK, "--resume")
    assert result.exit_code == 130
    assert result.stderr.startswith("parabit: interrupted")
    assert result.stderr.endswith("go on with the same command and --resume\n")
    assert [path.name for path in folder.iterdir()] == ["checkpoint-000000000001"]

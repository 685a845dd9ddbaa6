"""`parabit train`: models by the closed form and by networks, and what is wrong explained before the work."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import answer, names, run

from parabit import ParagraphVectors
from parabit.networks.config import Recipe, choose_shape, paper_recipe
from topics import Topics

Run = Callable[..., subprocess.CompletedProcess[str]]

NETWORK: tuple[str, ...] = ("--solver", "network", "--bits", "16", "--device", "cpu")
NETWORK += ("--set", "epochs=2", "--set", "samples=64", "--set", "inference_rounds=3")


def config_of(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return config


def test_the_closed_form_is_the_default_and_all_is_in_the_json(here: Path, topics: Topics) -> None:
    summary = answer("train", "news.jsonl", "-o", "model")
    assert summary.pop("seconds") > 0
    assert summary == {
        "corpus": "news.jsonl", "model": "model", "documents": 300, "sampled": 300, "bigrams": 0,
        "words": len(set(" ".join(topics.texts).split())), "solver": "closed-form",
        "name": "binary paragraph vectors in closed form", "size": "128 bits", "bits": 128, "dim": 128,
        "levels": [84, 20, 12, 8, 4], "skipped": 0, "reading": {"skipped": {}, "places": [], "notes": []},
    }  # fmt: skip
    assert names(here) == {"news.jsonl", "model"}


def test_standard_input_makes_the_librarys_model(
    parabit: Run, tmp_path: Path, lines: str, topics: Topics
) -> None:
    result = parabit("train", "-", "-o", "model", "--bits", "16", stdin=lines)
    assert (result.returncode, result.stderr) == (0, "")
    ParagraphVectors(16).fit(topics.texts).save(tmp_path / "same")
    config, same = config_of(tmp_path / "model"), config_of(tmp_path / "same")
    assert (
        config["parameters"].pop("tokenizer") is not None
    )  # the command line writes out what a word is
    same["parameters"].pop("tokenizer")
    assert config == same
    for name in ("model.safetensors", "vocabulary.safetensors", "README.md"):
        assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "same" / name).read_bytes()


def test_people_get_a_summary_in_words(here: Path) -> None:
    with (here / "news.jsonl").open("a") as file:
        file.write("bad\n")
    result = run(
        "train", "news.jsonl", "-o", "model", "--bits", "16", "--sample", "100", "--min-count", "1"
    )
    first, second, _, third = result.stdout.splitlines()
    assert first == "model: binary paragraph vectors in closed form, 16 bits per document"
    assert second == "  1 skipped: 1 not valid JSON"
    assert third.startswith("  300 documents (learned from 100), 200 words, ")
    result = run("train", "news.jsonl", "-o", "network", *NETWORK, "--dim", "20")
    assert result.stderr == ""
    assert result.stdout.startswith("network: Real-Binary PV-DBOW, 16 bits per document\n")
    assert "\n  2 epochs, loss per word " in result.stdout
    summary = answer("train", "news.jsonl", "-o", "network", *NETWORK, "--overwrite")
    assert (summary["solver"], summary["levels"], len(summary["history"])) == ("network", [16], 2)


def test_a_warning_is_one_line_without_a_place_in_the_source(parabit: Run) -> None:
    result = parabit(
        "train", "-", "-o", "model", "--bits", "8", stdin="space telescope\nice hockey\n"
    )
    assert result.returncode == 0
    assert result.stderr.startswith("parabit: warning: fewer documents (2) than bits (8): ")
    assert result.stderr.count("\n") == 1


def test_the_preset_is_the_papers_recipe_and_set_changes_any_part(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived: list[Recipe] = []

    def train(
        documents: object, counts: object, shape: object, recipe: Recipe, **_: object
    ) -> None:
        arrived.append(recipe)
        raise KeyboardInterrupt

    monkeypatch.setattr("parabit.networks.training.train", train)
    assert (
        run("train", "news.jsonl", "-o", "model", "--preset", "paper", "--bits", "16").exit_code
        == 130
    )
    changes: dict[str, Any] = {"epochs": 3, "dropout": 0.25, "row_rates": True, "noise": 2.5}
    changes["binarization"] = "straight-through-sigmoid"
    settings = [
        text
        for name, value in changes.items()
        for text in ("--set", f"{name}={str(value).lower()}")
    ]
    assert (
        run(
            "train", "news.jsonl", "-o", "model", "--solver", "network", "--bits", "16", *settings
        ).exit_code
        == 130
    )
    usual = paper_recipe(choose_shape(16))
    assert arrived == [usual, replace(usual, **changes)]


def test_an_unfinished_training_is_not_lost_by_accident(here: Path) -> None:
    unfinished = here / "model.training" / "checkpoint-000000000001"
    unfinished.mkdir(parents=True)
    result = run("train", "news.jsonl", "-o", "model", *NETWORK)
    assert result.exit_code == 1
    assert (
        "an interrupted training is in model.training; continue it with --resume, or start over"
        in result.stderr
    )
    for corpus, epochs in (("no-such-file.jsonl", "2"), ("news.jsonl", "0")):
        assert (
            run(
                "train", corpus, "-o", "model", *NETWORK, "--set", f"epochs={epochs}", "--overwrite"
            ).exit_code
            == 1
        )
    thesis = unfinished.parent / "thesis.txt"
    thesis.write_text("mine")
    for option in ((), ("--resume",), ("--overwrite",)):
        result = run(
            "train", "no-such-file.jsonl", "-o", "model", *NETWORK, *option
        )  # which it does not come to
        assert result.exit_code == 1
        assert (
            "model.training exists and is not a training folder; nothing was changed"
            in result.stderr
        )
    assert (thesis.read_text(), unfinished.exists()) == ("mine", True)
    thesis.unlink()
    assert run("train", "news.jsonl", "-o", "model", *NETWORK, "--overwrite").exit_code == 0
    assert names(here) == {"news.jsonl", "model"}


def test_every_option_of_the_model_and_its_vocabulary_arrives(here: Path) -> None:
    given = "--bits 16 --levels 12+4 --sample 100 --seed 5 --bigrams --min-count 2 --min-bigram-count 3 --max-size 150"
    options = [
        *given.split(),
        "--min-length",
        "3",
        "--max-length",
        "9",
        "--stop-words",
        "none",
        "--pattern",
        "[a-z]+",
    ]
    assert run("train", "news.jsonl", "-o", "model", *options).exit_code == 0
    config, expected = (
        config_of(here / "model"),
        {"bits": 16, "sample": 100, "random_state": 5, "bigrams": True},
    )
    expected |= {"min_count": 2, "min_bigram_count": 3, "max_size": 150}
    assert expected.items() <= config["parameters"].items()
    assert (config["levels"], config["training"]["sampled"]) == ([12, 4], 100)
    tokenizer = ParagraphVectors.load(here / "model").vocabulary_.tokenizer
    assert (tokenizer.min_length, tokenizer.max_length, tokenizer.pattern) == (3, 9, "[a-z]+")
    assert not tokenizer.stop_words
    assert run("train", "news.jsonl", "-o", "all", "--bits", "16", "--sample", "0").exit_code == 0
    assert config_of(here / "all")["parameters"]["sample"] is None
    for kind, name in (
        (("--bits", "none", "--dim", "12"), "paragraph vectors in closed form, 12 numbers"),
        ((*NETWORK, "--bits", "none", "--dim", "12", "--bigrams"), "PV-DBOW, 12 numbers"),
        ((*NETWORK, "--architecture", "dm", "--set", "two_sided=true"), "Binary PV-DM, 16 bits"),
    ):
        result = run("train", "news.jsonl", "-o", "model", "--overwrite", *kind)
        assert (result.stdout.partition(" per document\n")[0], result.stderr) == (
            f"model: {name}",
            "",
        )

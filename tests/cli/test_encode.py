"""`parabit encode`: the codes of a corpus as a file that is complete or not there."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from caught_at_work import INTERRUPTED, expected, interrupting, signalled, stopped
from commands import answer, run

from parabit import Document, ParagraphVectors
from parabit.corpus import as_corpus
from parabit.model import encode_to_file, load_model
from topics import Topics
from without_torch import WITHOUT_TORCH

MODELS: dict[str, dict[str, Any]] = {
    "binary": {"bits": 20},
    "with vectors": {"bits": 12, "dim": 24},
    "real-valued": {"bits": None, "dim": 10},
    "network": {"bits": 8, "solver": "network", "network_params": {"epochs": 1, "inference_rounds": 2}},
}


@pytest.fixture(scope="module")
def models(topics: Topics, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The folders of models, by kind."""
    folder = tmp_path_factory.mktemp("models")
    for name, parameters in MODELS.items():
        ParagraphVectors(**parameters, device="cpu").fit(topics.texts).save(folder / name)
    return {name: str(folder / name) for name in MODELS}


@pytest.fixture(scope="module")
def model(models: dict[str, str]) -> str:
    return models["binary"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches of a corpus of 300 documents."""
    monkeypatch.setattr("parabit.model.encoder.AT_ONCE", 40)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def table(path: Path | str) -> pl.DataFrame:
    return pl.read_parquet(path, glob=False)


def bytes_of(codes: pl.Series) -> np.ndarray[Any, Any]:
    return np.frombuffer(b"".join(codes), dtype=np.uint8).reshape(len(codes), -1)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.usefixtures("small")
def test_both_forms_hold_what_the_model_says(kind: str, models: dict[str, str], here: Path, topics: Topics) -> None:
    loaded = load_model(Path(models[kind]))
    inferred = loaded.infer(topics.texts)
    for output in ("codes.npy", "codes.parquet"):
        result = run("encode", models[kind], "news.jsonl", "-o", output)
        assert (result.exit_code, result.stderr) == (0, "")
    array, rows = np.load("codes.npy"), table("codes.parquet")
    assert rows["id"].to_list() == [str(number) for number in range(300)]
    if inferred.codes is None:
        assert (array.dtype, array.shape) == (np.float32, (300, 10))
        assert array.tobytes() == inferred.vectors.tobytes()
        assert rows.columns == ["id", "vector"]
    else:
        assert (array.dtype, array.shape) == (np.uint8, inferred.codes.shape)
        assert array.tobytes() == inferred.codes.tobytes()
        assert rows.schema == {"id": pl.String, "code": pl.Binary}
        assert bytes_of(rows["code"]).tobytes() == inferred.codes.tobytes()
        assert run("encode", models[kind], "news.jsonl", "-o", "both.parquet", "--vectors").exit_code == 0
        rows = table("both.parquet")
        assert bytes_of(rows["code"]).tobytes() == inferred.codes.tobytes()
    assert rows.schema["vector"] == pl.Array(pl.Float32, loaded.dim)
    assert rows["vector"].to_numpy().tobytes() == inferred.vectors.tobytes()
    assert names(here) <= {"news.jsonl", "codes.npy", "codes.parquet", "both.parquet"}


def test_all_is_in_the_json_and_in_the_tables_metadata(model: str, here: Path) -> None:
    with (here / "news.jsonl").open("a") as file:
        file.write('{"id": "strange", "text": "qqqq xxxx"}\n{"id": "empty", "text": ""}\nbad\n')
    summary = answer("encode", model, "news.jsonl", "-o", "codes.parquet")
    assert summary.pop("seconds") > 0
    about = {"documents": 302, "bits": 20, "dim": 20, "skipped": 1, "without_words": 2}
    files = {"model": model, "corpus": "news.jsonl", "output": "codes.parquet"}
    assert summary.pop("reading")["places"][0]["place"] == "news.jsonl:303"
    assert summary == {**files, **about, "bytes": 3, "encoded": 302, "vectors": False}
    metadata = json.loads(pl.read_parquet_metadata("codes.parquet")["parabit"])
    assert about.items() <= metadata.items()
    assert metadata["model"] == load_model(Path(model)).fingerprint
    rows = table("codes.parquet")
    assert rows["id"].to_list()[-2:] == ["strange", "empty"]
    assert rows["code"].to_list()[-2:] == [b"\0\0\0"] * 2


def test_people_get_a_summary_in_words(model: str, here: Path) -> None:
    (here / "two.txt").write_text("qqqq\n" + "xxxx\n")
    first, second, third = run("encode", model, "two.txt", "-o", "codes.npy", "--format", "lines").stdout.splitlines()
    assert first == "codes.npy: 2 documents, 20 bits each, 6 bytes in all"
    assert second.endswith(" documents per second")
    assert third == "  2 documents without known words; their codes are zeros"


def test_standard_input_is_a_corpus(
    parabit: Callable[..., subprocess.CompletedProcess[str]], model: str, lines: str, topics: Topics, tmp_path: Path
) -> None:
    result = parabit("encode", model, "-", "-o", "codes.npy", "--json", stdin=lines)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["documents"] == 300
    assert np.load(tmp_path / "codes.npy").tobytes() == ParagraphVectors.load(model).transform(topics.texts).tobytes()


def test_ids_of_any_kind_come_in_the_corpus_order(model: str, here: Path) -> None:
    ids = ["z", "a", "10", "9", "é ü", "z"]
    (here / "odd.jsonl").write_text("".join(json.dumps({"id": name, "text": "text"}) + "\n" for name in ids))
    assert run("encode", model, "odd.jsonl", "-o", "codes.parquet").exit_code == 0
    assert table("codes.parquet")["id"].to_list() == ids


def test_a_documents_code_does_not_depend_on_its_batch(
    model: str, here: Path, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_model(Path(model))
    alone = b"".join(loaded.infer([text]).codes.tobytes() for text in topics.texts)  # type: ignore[union-attr]
    for size in (7, 64, 300):
        monkeypatch.setattr("parabit.model.encoder.AT_ONCE", size)
        assert run("encode", model, "news.jsonl", "-o", f"{size}.npy").exit_code == 0
        assert np.load(f"{size}.npy").tobytes() == alone


@pytest.mark.parametrize("output", ["codes.npy", "codes.parquet"])
@pytest.mark.parametrize("kind", ["binary", "real-valued"])
def test_no_documents_make_an_empty_file(output: str, kind: str, models: dict[str, str], tmp_path: Path) -> None:
    assert encode_to_file(load_model(Path(models[kind])), [], tmp_path / output).documents == 0
    if output == "codes.npy":
        assert np.load(tmp_path / output).shape == ((0, 3) if kind == "binary" else (0, 10))
    else:
        assert table(tmp_path / output).shape == (0, 2)
    assert names(tmp_path) == {output}


@pytest.mark.usefixtures("small")
def test_the_library_encodes_documents_too(model: str, topics: Topics, tmp_path: Path) -> None:
    documents = as_corpus([Document(id=f"d{number}", text=text) for number, text in enumerate(topics.texts)])
    encoded = encode_to_file(load_model(Path(model)), documents, tmp_path / "codes.parquet")
    assert encoded == (300, 0, 3)
    assert table(tmp_path / "codes.parquet")["id"].to_list() == [f"d{number}" for number in range(300)]


def test_the_closed_form_encodes_without_torch_and_a_network_says_what_to_install(
    models: dict[str, str], here: Path
) -> None:
    program = f"{WITHOUT_TORCH}\nfrom parabit.cli import main\nmain()"
    for kind, ended in (
        ("binary", (0, "")),
        ("network", (1, "parabit: torch is not installed; pip install 'parabit[networks]'\n")),
    ):
        command = [sys.executable, "-c", program, "encode", models[kind], "news.jsonl", "-o", f"{kind}.npy"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr) == ended
    assert names(here) == {"news.jsonl", "binary.npy"}


@pytest.mark.parametrize("output", ["codes.npy", "codes.parquet"])
@pytest.mark.usefixtures("small")
def test_an_interrupt_leaves_the_old_file_or_none(
    output: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("parabit.cli.command.progress", interrupting("encoding"))  # after the first batch
        result = run("encode", models["binary"], "news.jsonl", "-o", output)
        assert (result.exit_code, result.stdout, result.stderr) == (130, "", INTERRUPTED)
        assert names(here) == {"news.jsonl"}
    assert run("encode", models["binary"], "news.jsonl", "-o", output).exit_code == 0
    before = (here / output).read_bytes()
    monkeypatch.setattr("parabit.cli.command.progress", interrupting("encoding"))
    assert run("encode", models["with vectors"], "news.jsonl", "-o", output, "--overwrite").exit_code == 130
    assert (here / output).read_bytes() == before
    assert names(here) == {"news.jsonl", output}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_reads_or_writes_leaves_nothing(number: signal.Signals, model: str, tmp_path: Path) -> None:
    assert stopped(number, tmp_path, "encode", model, "-", "-o", "codes.npy") == expected(number)
    assert names(tmp_path) == set()
    (tmp_path / "corpus.txt").write_text("space telescope\n")
    written = "parabit.storage.sync"  # called with the complete file, before it takes its name
    command = ("encode", model, "corpus.txt", "-o", "codes.parquet")
    result = signalled(number, written, 1, tmp_path, *command)
    assert (result.returncode, result.stderr) == expected(number)
    assert names(tmp_path) == {"corpus.txt"}


@pytest.mark.parametrize("output", ["codes.npy", "codes.parquet"])
def test_old_codes_are_replaced_only_if_asked_for(output: str, models: dict[str, str], here: Path) -> None:
    assert run("encode", models["binary"], "news.jsonl", "-o", output).exit_code == 0
    before = (here / output).read_bytes()
    result = run("encode", models["with vectors"], "news.jsonl", "-o", output)
    assert result.exit_code == 1
    assert result.stderr == f"parabit: {output} exists already; choose another name, or replace it with --overwrite\n"
    assert (here / output).read_bytes() == before
    assert run("encode", models["with vectors"], "news.jsonl", "-o", output, "--overwrite").exit_code == 0
    assert (here / output).read_bytes() != before
    assert names(here) == {"news.jsonl", output}


def test_what_is_no_file_of_codes_is_not_replaced(model: str, here: Path, topics: Topics) -> None:
    pl.DataFrame({"text": topics.texts}).write_parquet("corpus.parquet")
    np.save("numbers.npy", np.arange(5))
    (here / "notes.npy").write_text("mine")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    for output in ("corpus.parquet", "numbers.npy", "notes.npy"):
        result = run("encode", model, "corpus.parquet", "-o", output, "--overwrite")
        assert result.exit_code == 1
        assert result.stderr == (
            f"parabit: {output} exists and is not a file of codes; nothing was changed; use another name\n"
        )
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


@pytest.mark.parametrize("limit", [100, 2_000])
@pytest.mark.parametrize("output", [("codes.npy",), ("codes.parquet", "--vectors")])
def test_a_full_disk_is_explained_and_nothing_half_written_stays(
    limit: int, output: tuple[str, ...], models: dict[str, str], here: Path, lines: str
) -> None:
    """A limit on the size of files stands in for a full disk, as for the other verbs."""
    (here / "news.jsonl").write_text(lines * 3)
    process = subprocess.run(
        [sys.executable, "-m", "parabit", "encode", models["binary"], "news.jsonl", "-o", *output],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert process.returncode == 1
    assert process.stderr.startswith("parabit: no space left on the disk")
    assert process.stderr.count("\n") == 1
    assert names(here) == {"news.jsonl"}

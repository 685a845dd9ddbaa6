"""The codes of a corpus as a file, and what becomes of an encoding that is stopped and resumed."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

from parabit import Document, ParagraphVectors
from parabit.cli.app import app
from parabit.corpus import as_corpus
from parabit.errors import ParabitError
from parabit.model import encode_to_file, files
from topics import Topics
from without_torch import WITHOUT_TORCH

QUICK: dict[str, Any] = {"epochs": 2, "samples": 64, "inference_rounds": 3, "device": "cpu"}
MODELS: dict[str, dict[str, Any]] = {
    "binary": {"bits": 20},
    "real-binary": {"bits": 12, "dim": 24},
    "real-valued": {"bits": None, "dim": 10},
}


@pytest.fixture(scope="module")
def models(topics: Topics, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The folders of models, by kind."""
    folder = tmp_path_factory.mktemp("models")
    for name, parameters in MODELS.items():
        ParagraphVectors(**QUICK, **parameters).fit(topics.texts).save(folder / name)
    return {name: str(folder / name) for name in MODELS}


@pytest.fixture(scope="module")
def model(models: dict[str, str]) -> str:
    return models["binary"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches and parts of a corpus of 300 documents."""
    monkeypatch.setattr("parabit.model.encoder.AT_ONCE", 16)
    monkeypatch.setattr("parabit.model.parts.ROWS", 50)


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["encode", *map(str, arguments)], input=stdin)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def table(path: Path | str) -> pl.DataFrame:
    return pl.read_parquet(path, glob=False)


def bytes_of(codes: pl.Series) -> np.ndarray[Any, Any]:
    return np.frombuffer(b"".join(codes), dtype=np.uint8).reshape(len(codes), -1)


def stop_after(batches: int, monkeypatch: pytest.MonkeyPatch, how: type[BaseException] = KeyboardInterrupt) -> None:
    """Stop the next encoding when so many batches are kept."""
    rows, done = files._rows, 0

    def stop(*arguments: Any) -> pl.DataFrame:
        nonlocal done
        done += 1
        if done > batches:
            monkeypatch.setattr("parabit.model.code_files._rows", rows)
            raise how
        return rows(*arguments)

    monkeypatch.setattr("parabit.model.code_files._rows", stop)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("mode", ["fast", "exact"])
@pytest.mark.usefixtures("small")
def test_both_forms_hold_what_the_model_says(
    kind: str, mode: str, models: dict[str, str], here: Path, topics: Topics
) -> None:
    loaded = ParagraphVectors.load(models[kind], device="cpu")
    codes, vectors = loaded.infer(topics.texts, mode=mode)
    for output in ("codes.npy", "codes.parquet"):
        result = run(models[kind], "news.jsonl", "-o", output, "--mode", mode)
        assert (result.exit_code, result.stderr) == (0, "")
    array, rows = np.load("codes.npy"), table("codes.parquet")
    assert rows["id"].to_list() == [str(number) for number in range(300)]
    if codes is None:
        assert (array.dtype, array.shape) == (np.float32, (300, 10))
        assert array.tobytes() == vectors.tobytes()
        assert rows.columns == ["id", "vector"]
    else:
        assert (array.dtype, array.shape) == (np.uint8, codes.shape)
        assert array.tobytes() == codes.tobytes()
        assert rows.schema == {"id": pl.String, "code": pl.Binary}
        assert bytes_of(rows["code"]).tobytes() == codes.tobytes()
        assert run(models[kind], "news.jsonl", "-o", "both.parquet", "--mode", mode, "--vectors").exit_code == 0
        rows = table("both.parquet")
        assert bytes_of(rows["code"]).tobytes() == codes.tobytes()
    assert rows.schema["vector"] == pl.Array(pl.Float32, loaded.shape_.dim)
    assert rows["vector"].to_numpy().tobytes() == vectors.tobytes()
    assert not [name for name in names(here) if "encoding" in name or name.startswith(".")]


def test_all_is_told_as_json_and_in_the_tables_metadata(model: str, here: Path) -> None:
    with (here / "news.jsonl").open("a") as file:
        file.write('{"id": "strange", "text": "qqqq xxxx"}\n{"id": "empty", "text": ""}\nbad\n')
    result = run(model, "news.jsonl", "-o", "codes.parquet", "--skip-bad", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert told.pop("seconds") > 0
    assert told.pop("documents_per_second") > 0
    about = {"documents": 302, "bits": 20, "dim": 20, "mode": "fast"}
    assert told == {
        "model": model, "corpus": "news.jsonl", "output": "codes.parquet", **about, "bytes": 3, "skipped": 1,
        "without_words": 2, "resumed": 0,
    }  # fmt: skip
    kept = json.loads(pl.read_parquet_metadata("codes.parquet")["parabit"])
    assert {**about, "skipped": 1, "without_words": 2}.items() <= kept.items()
    assert kept["model"] == ParagraphVectors.load(model).fingerprint_
    rows = table("codes.parquet")
    assert rows["id"].to_list()[-2:] == ["strange", "empty"]
    assert rows["code"].to_list()[-2:] == [b"\0\0\0"] * 2


def test_people_are_told_in_words(model: str, here: Path) -> None:
    (here / "two.txt").write_text("qqqq\n" + "xxxx\n")
    result = run(model, "two.txt", "-o", "codes.npy", "--format", "lines")
    lines = result.stdout.splitlines()
    assert lines[0] == "codes.npy: 2 documents, each 20 bits, 3 bytes, mode fast"
    assert lines[1].endswith(" documents a second")
    assert lines[2] == "  2 without a word that the model knows; their codes are zeros"
    assert (run(model, "two.txt", "-o", "more.npy", "--format", "lines", "--quiet").exit_code, len(lines)) == (0, 3)


def test_the_fingerprint_of_a_model_is_that_of_what_it_says(topics: Topics, tmp_path: Path) -> None:
    one = ParagraphVectors(8, **QUICK).fit(topics.texts)
    one.save(tmp_path / "slim", slim=True)
    assert ParagraphVectors.load(tmp_path / "slim").fingerprint_ == one.fingerprint_
    other = ParagraphVectors(8, **QUICK, seed=1).fit(topics.texts)
    assert other.fingerprint_ != one.fingerprint_


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
    assert run(model, "odd.jsonl", "-o", "codes.parquet").exit_code == 0
    assert table("codes.parquet")["id"].to_list() == ids


@pytest.mark.parametrize("sizes", [(7, 50), (16, 64), (300, 300), (300, 100), (1000, 1000)])
def test_a_documents_code_does_not_depend_on_batches_and_parts(
    sizes: tuple[int, int], model: str, here: Path, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parabit.model.encoder.AT_ONCE", sizes[0])
    monkeypatch.setattr("parabit.model.parts.ROWS", sizes[1])
    assert run(model, "news.jsonl", "-o", "codes.npy").exit_code == 0
    assert run(model, "news.jsonl", "-o", "codes.parquet").exit_code == 0
    loaded = ParagraphVectors.load(model)
    alone = np.concatenate([loaded.transform([text]) for text in topics.texts])
    assert np.load("codes.npy").tobytes() == alone.tobytes()
    assert bytes_of(table("codes.parquet")["code"]).tobytes() == alone.tobytes()


@pytest.mark.parametrize("output", ["codes.npy", "codes.parquet"])
@pytest.mark.parametrize("kind", ["binary", "real-valued"])
def test_no_documents_make_an_empty_file(output: str, kind: str, models: dict[str, str], tmp_path: Path) -> None:
    loaded = ParagraphVectors.load(models[kind])
    assert encode_to_file(loaded, [], tmp_path / output).documents == 0
    if output == "codes.npy":
        expected = (0, 3) if kind == "binary" else (0, 10)
        assert np.load(tmp_path / output).shape == expected
    else:
        assert table(tmp_path / output).shape == (0, 2)
    assert names(tmp_path) == {output}


@pytest.mark.usefixtures("small")
def test_the_library_encodes_documents_too(model: str, topics: Topics, tmp_path: Path) -> None:
    documents = as_corpus([Document(id=f"d{number}", text=text) for number, text in enumerate(topics.texts)])
    loaded = ParagraphVectors.load(model)
    encoded = encode_to_file(loaded, documents, tmp_path / "codes.parquet", mode="fast")
    assert encoded == (300, 0, 0, "fast", 3)
    assert table(tmp_path / "codes.parquet")["id"].to_list()[:2] == ["d0", "d1"]
    batches = list(loaded.infer_each(documents))
    assert [document.id for batch in batches for document in batch.documents] == [f"d{n}" for n in range(300)]


NO_TORCH = (
    WITHOUT_TORCH
    + """from parabit.cli import main
main()
"""
)


@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_the_fast_mode_needs_no_torch_and_the_other_says_what_to_install(
    mode: str, model: str, here: Path, topics: Topics
) -> None:
    command = [sys.executable, "-c", NO_TORCH, "encode", model, "news.jsonl", "-o", "codes.npy", "--mode", mode]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if mode == "fast":
        assert (result.returncode, result.stderr) == (0, "")
        assert np.load("codes.npy").tobytes() == ParagraphVectors.load(model).transform(topics.texts).tobytes()
    else:
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith("parabit: torch is not installed; ")
        assert names(here) == {"news.jsonl"}


@pytest.mark.parametrize("batches", [1, 3, 4, 10, 18])
@pytest.mark.parametrize("output", ["codes.npy", "codes.parquet"])
@pytest.mark.usefixtures("small")
def test_stopped_and_resumed_the_file_is_the_same_to_the_byte(
    output: str, batches: int, model: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = f"whole{Path(output).suffix}"
    assert run(model, "news.jsonl", "-o", whole).exit_code == 0
    for moment in (batches, 2):  # and stopped once more
        stop_after(moment, monkeypatch)
        resume = ["--resume"] if (here / f"{output}.encoding").exists() else []
        result = run(model, "news.jsonl", "-o", output, *resume)
        if result.exit_code == 0:  # there was less left than that
            break
        assert (result.exit_code, result.stdout) == (130, "")
        assert result.stderr == (
            f"parabit: interrupted; what is done is kept in {output}.encoding; go on with the same command and "
            "--resume\n"
        )
        assert names(here) == {"news.jsonl", whole, f"{output}.encoding"}
        again = run(model, "news.jsonl", "-o", output)
        assert (again.exit_code, again.stderr) == (
            1,
            f"parabit: an unfinished encoding is in {output}.encoding; go on with --resume, or start anew with "
            "--overwrite\n",
        )
    if not (here / output).exists():
        result = run(model, "news.jsonl", "-o", output, "--resume", "--json")
        assert (result.exit_code, result.stderr) == (0, "")
        assert json.loads(result.stdout)["documents"] == 300
    assert (here / output).read_bytes() == (here / whole).read_bytes()
    assert names(here) == {"news.jsonl", whole, output}


# The process gets a signal when it has done seven of nineteen batches; parts of 50 documents are saved as they grow.
SIGNALLED = """
import os, sys
from parabit.model import batches, files, parts
batches.AT_ONCE, parts.ROWS, parts.EVERY = 16, 50, 0.0
rows, number, left = files._rows, int(sys.argv.pop(1)), [7]

def signalled(*arguments):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), number)
    return rows(*arguments)

files._rows = signalled
from parabit.cli import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.usefixtures("small")
def test_after_a_signal_it_goes_on_from_what_was_done(number: signal.Signals, model: str, here: Path) -> None:
    command = [sys.executable, "-c", SIGNALLED, str(int(number)), "encode", model, "news.jsonl", "-o", "codes.parquet"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if number == signal.SIGKILL:
        assert (result.returncode, result.stderr) == (-number, "")
    else:
        assert result.returncode == 128 + number
        assert "what is done is kept in codes.parquet.encoding; go on with the same command and" in result.stderr
        assert result.stderr.count("\n") == 1
    assert names(here) == {"news.jsonl", "codes.parquet.encoding"}
    result = run(model, "news.jsonl", "-o", "codes.parquet", "--resume")
    assert "96 of them were done before" in result.stdout
    assert run(model, "news.jsonl", "-o", "whole.parquet").exit_code == 0
    assert (here / "codes.parquet").read_bytes() == (here / "whole.parquet").read_bytes()


def test_an_interrupt_before_anything_is_done_leaves_nothing(
    model: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(0, monkeypatch)
    result = run(model, "news.jsonl", "-o", "codes.npy")
    assert (result.exit_code, result.stderr) == (130, "parabit: interrupted; nothing half-written was left\n")
    assert names(here) == {"news.jsonl"}


@pytest.fixture
def unfinished(model: str, here: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an encoding that was stopped after 160 of 300 documents."""
    stop_after(10, monkeypatch)
    assert run(model, "news.jsonl", "-o", "codes.npy").exit_code == 130
    return here / "codes.npy.encoding"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:100], "it ends after 100 documents, and 160 are encoded"),
        (lambda rows: rows[1:], "document 0, from 0, was '0' and is '1'"),
        (
            lambda rows: [*rows[:140], rows[140].replace('"text": "', '"text": "also '), *rows[141:]],
            "document 140, from 0, '140', has another text",
        ),
    ],
)
def test_a_corpus_that_has_changed_is_told(
    change: Callable[[list[str]], list[str]], words: str, unfinished: Path, model: str, here: Path, lines: str
) -> None:
    before = contents(unfinished)
    (here / "news.jsonl").write_text("".join(change(lines.splitlines(keepends=True))))
    result = run(model, "news.jsonl", "-o", "codes.npy", "--resume")
    assert result.exit_code == 1
    assert result.stderr == f"parabit: the corpus has changed: {words}; start anew with --overwrite\n"
    assert contents(unfinished) == before
    assert run(model, "news.jsonl", "-o", "codes.npy", "--overwrite").exit_code == 0
    assert names(here) == {"news.jsonl", "codes.npy"}


def test_what_comes_after_may_change_and_grow(unfinished: Path, model: str, here: Path, lines: str) -> None:
    (here / "news.jsonl").write_text(lines + '{"id": "new", "text": "qqqq"}\n')
    assert run(model, "news.jsonl", "-o", "codes.npy", "--resume").exit_code == 0
    assert len(np.load("codes.npy")) == 301


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("binary", ("--mode", "exact"), "mode 'fast' there, 'exact' here"),
        ("real-binary", (), "bits 20 there, 12 here; dim 20 there, 24 here; model '"),
    ],
)
def test_an_unfinished_encoding_of_another_kind_is_told(
    kind: str, options: tuple[str, ...], words: str, unfinished: Path, models: dict[str, str]
) -> None:
    before = contents(unfinished)
    result = run(models[kind], "news.jsonl", "-o", "codes.npy", "--resume", *options)
    assert result.exit_code == 1
    assert result.stderr.startswith("parabit: codes.npy.encoding is of another encoding: ")
    assert words in result.stderr
    assert result.stderr.endswith("; give the same model, corpus and options, or start anew with --overwrite\n")
    assert contents(unfinished) == before


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "about.json").write_text("{"), "about.json is damaged"),
        (lambda folder: (folder / "about.json").write_text("[]"), "about.json is damaged"),
        (lambda folder: (folder / "part-00000001.parquet").write_bytes(b"PAR1"), "part-00000001.parquet is damaged"),
        (lambda folder: (folder / "part-00000001.parquet").unlink(), "do not follow on each other"),
        (
            lambda folder: shutil.copy(folder / "part-00000003.parquet", folder / "part-00000001.parquet"),
            "do not follow on each other",
        ),
    ],
)
def test_a_damaged_state_is_told(damage: Callable[[Path], object], words: str, unfinished: Path, model: str) -> None:
    damage(unfinished)
    result = run(model, "news.jsonl", "-o", "codes.npy", "--resume")
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stderr.endswith("; start anew with --overwrite\n")
    assert run(model, "news.jsonl", "-o", "codes.npy", "--overwrite").exit_code == 0


def test_what_a_kill_left_half_written_is_cleared_away(unfinished: Path, model: str, here: Path) -> None:
    for name in (".part-00000004.parquet.x.partial", ".whole.y.partial", "whole"):
        (unfinished / name).write_bytes(b"half")
    assert run(model, "news.jsonl", "-o", "codes.npy", "--resume").exit_code == 0
    assert names(here) == {"news.jsonl", "codes.npy"}


@pytest.mark.parametrize("option", [(), ("--resume",), ("--overwrite",)])
def test_a_folder_of_somebodys_is_not_touched(option: tuple[str, ...], unfinished: Path, model: str) -> None:
    (unfinished / "thesis.txt").write_text("mine")
    before = contents(unfinished)
    result = run(model, "news.jsonl", "-o", "codes.npy", *option)
    assert result.exit_code == 1
    assert "codes.npy.encoding is there and is something else; nothing was touched" in result.stderr
    assert contents(unfinished) == before


def test_a_typing_error_does_not_cost_an_unfinished_encoding(unfinished: Path, model: str) -> None:
    before = contents(unfinished)
    for corpus, options in (
        ("no.jsonl", ()),
        ("news.jsonl", ("--text-field", "body")),
        ("news.jsonl", ("--mode", "x")),
    ):
        assert run(model, corpus, "-o", "codes.npy", "--overwrite", *options).exit_code == 1
        assert contents(unfinished) == before


@pytest.mark.parametrize("output", ["codes.npy", "codes.parquet"])
def test_old_codes_are_replaced_only_if_asked_for(
    output: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(models["binary"], "news.jsonl", "-o", output).exit_code == 0
    before = (here / output).read_bytes()
    result = run(models["real-binary"], "news.jsonl", "-o", output)
    assert result.exit_code == 1
    assert result.stderr == f"parabit: {output} is there already; choose another name, or replace it with --overwrite\n"
    monkeypatch.setattr("parabit.model.encoder.AT_ONCE", 16)
    stop_after(5, monkeypatch)
    assert run(models["real-binary"], "news.jsonl", "-o", output, "--overwrite").exit_code == 130
    assert (here / output).read_bytes() == before  # until the new one is whole
    result = run(models["real-binary"], "news.jsonl", "-o", output, "--overwrite", "--resume")
    assert "80 of them were done before" in result.stdout
    assert (here / output).read_bytes() != before
    assert names(here) == {"news.jsonl", output}


def test_what_is_no_file_of_codes_is_not_replaced(model: str, here: Path, topics: Topics) -> None:
    pl.DataFrame({"text": topics.texts}).write_parquet("corpus.parquet")
    np.save("numbers.npy", np.arange(5))
    (here / "notes.npy").write_text("mine")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    for output in ("corpus.parquet", "numbers.npy", "notes.npy"):
        result = run(model, "corpus.parquet", "-o", output, "--overwrite")
        assert result.exit_code == 1
        assert (
            result.stderr
            == f"parabit: {output} is there and holds no codes; nothing was touched; choose another name\n"
        )
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("{model}", "news.jsonl", "-o", "codes.txt"), 1, "parabit: codes.txt ends neither in .npy nor in .parquet"),
        (("{model}", "news.jsonl", "-o", "codes"), 1, "parabit: codes ends neither in .npy nor in .parquet"),
        (("{model}", "news.jsonl"), 2, "--output"),
        (("{model}", "-o", "codes.npy"), 2, "CORPUS"),
        (
            ("{model}", "news.jsonl", "-o", "codes.npy", "--vectors"),
            1,
            "cannot hold both codes and vectors; write to a",
        ),
        (("{model}", "news.jsonl", "-o", "codes.npy", "--mode", "slow"), 1, "no mode 'slow'; there are fast, exact"),
        (("{model}", "news.jsonl", "-o", "no/such/codes.npy"), 1, "there is no folder no/such to write codes.npy in"),
        (("{model}", "news.jsonl", "-o", "folder.npy"), 1, "parabit: folder.npy is there already"),
        (("{model}", "news.jsonl", "-o", "folder.npy", "--overwrite"), 1, "folder.npy is there and is no file"),
        (("{model}", "news.jsonl", "-o", "link.npy"), 1, "parabit: link.npy is there already"),
        (
            ("{model}", "news.jsonl", "-o", "link.npy", "--overwrite"),
            1,
            "parabit: link.npy is there and holds no codes",
        ),
        (("{model}", "news.jsonl", "-o", "n" * 245 + ".npy"), 1, "File name too long"),
        (("{model}", "news.jsonl", "-o", "codes.npy", "--resume"), 1, "there is no unfinished encoding in codes.npy."),
        (("{model}", "news.jsonl", "-o", "codes.npy", "--text-field", "body"), 1, "no field 'body'"),
        (("{model}", "no.jsonl", "-o", "codes.npy"), 1, "no.jsonl"),
        (("{model}", "empty.jsonl", "-o", "codes.npy"), 1, "parabit: no documents in empty.jsonl; the file is empty"),
        (("no-model", "news.jsonl", "-o", "codes.npy"), 1, "parabit: no model in no-model; make one with"),
        (("news.jsonl", "news.jsonl", "-o", "codes.npy"), 1, "parabit: no model in news.jsonl; make one with"),
    ],
)
def test_what_is_wrong_is_told_in_a_line_and_nothing_is_left(
    arguments: tuple[str, ...], code: int, words: str, model: str, here: Path
) -> None:
    (here / "folder.npy").mkdir()
    (here / "link.npy").symlink_to("nowhere")
    (here / "empty.jsonl").write_text("")
    before = names(here)
    result = run(*(argument.format(model=model) for argument in arguments))
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr
    if code == 1:
        assert result.stderr.count("\n") == 1
    assert names(here) == before


def test_a_model_without_a_fast_encoder_says_so(model: str, here: Path, tmp_path: Path) -> None:
    loaded = ParagraphVectors.load(model)
    loaded._fast = None
    with pytest.raises(ParabitError, match="this model has no fast encoder; use mode exact"):
        encode_to_file(loaded, ["text"], tmp_path / "codes.npy", mode="fast")
    assert names(here) == {"news.jsonl"}


@pytest.mark.parametrize("limit", [100, 2_000])
@pytest.mark.parametrize("output", [("codes.npy",), ("codes.parquet", "--vectors")])
def test_a_full_disk_is_told_and_nothing_half_written_stays(
    limit: int, output: tuple[str, ...], model: str, here: Path
) -> None:
    """A limit on the size of files stands in for a full disk, as for the other verbs."""
    process = subprocess.run(
        [sys.executable, "-m", "parabit", "encode", model, "news.jsonl", "-o", *output],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert process.returncode == 1
    assert process.stderr.startswith("parabit: no room left on the disk")
    assert process.stderr.count("\n") == 1
    assert names(here) == {"news.jsonl"}


@pytest.mark.parametrize("output", ["codes.npy", "codes.parquet"])
def test_a_disk_that_is_full_at_the_end_costs_nothing_that_was_done(
    output: str, model: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *_: object) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("parabit.model.code_files._write_array", full)
        patched.setattr("parabit.model.code_files._write_table", full)
        result = run(model, "news.jsonl", "-o", output)
    assert result.exit_code == 1
    assert result.stderr.startswith("parabit: no room left on the disk")
    assert names(here) == {"news.jsonl", f"{output}.encoding"}
    assert names(here / f"{output}.encoding") == {"about.json", "part-00000000.parquet"}
    assert "300 of them were done before" in run(model, "news.jsonl", "-o", output, "--resume").stdout
    assert names(here) == {"news.jsonl", output}

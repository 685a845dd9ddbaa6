"""`parabit encode`: the codes of a corpus as a file that is complete or not there."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import polars as pl
import pytest
from commands import answer, names, run

from parabit import ParagraphVectors
from parabit.model import encode_to_file, load_model
from topics import Topics

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


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches of a corpus of 300 documents."""
    monkeypatch.setattr("parabit.model.encoder.AT_ONCE", 40)


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


def test_all_is_in_the_json_and_in_the_tables_metadata(topic_model: Path, here: Path) -> None:
    with (here / "news.jsonl").open("a") as file:
        file.write('{"id": "strange", "text": "qqqq xxxx"}\n{"id": "empty", "text": ""}\nbad\n')
    summary = answer("encode", topic_model, "news.jsonl", "-o", "codes.parquet")
    assert summary.pop("seconds") > 0
    about = {"documents": 302, "bits": 20, "dim": 20, "skipped": 1, "without_words": 2}
    files = {"model": str(topic_model), "corpus": "news.jsonl", "output": "codes.parquet"}
    assert summary.pop("reading")["places"][0]["place"] == "news.jsonl:303"
    assert summary == {**files, **about, "bytes": 3, "encoded": 302, "vectors": False}
    metadata = json.loads(pl.read_parquet_metadata("codes.parquet")["parabit"])
    assert about.items() <= metadata.items()
    assert metadata["model"] == load_model(topic_model).fingerprint
    rows = table("codes.parquet")
    assert rows["id"].to_list()[-2:] == ["strange", "empty"]
    assert rows["code"].to_list()[-2:] == [b"\0\0\0"] * 2


def test_people_get_a_summary_in_words(topic_model: Path, here: Path) -> None:
    (here / "two.txt").write_text("qqqq\n" + "xxxx\n")
    first, second, third = run(
        "encode", topic_model, "two.txt", "-o", "codes.npy", "--format", "lines"
    ).stdout.splitlines()
    assert first == "codes.npy: 2 documents, 20 bits each, 6 bytes in all"
    assert second.endswith(" documents per second")
    assert third == "  2 documents without known words; their codes are zeros"


def test_ids_of_any_kind_come_in_the_corpus_order(topic_model: Path, here: Path) -> None:
    ids = ["z", "a", "10", "9", "é ü", "z"]
    (here / "odd.jsonl").write_text("".join(json.dumps({"id": name, "text": "text"}) + "\n" for name in ids))
    assert run("encode", topic_model, "odd.jsonl", "-o", "codes.parquet").exit_code == 0
    assert table("codes.parquet")["id"].to_list() == ids


def test_no_documents_make_an_empty_file(models: dict[str, str], tmp_path: Path) -> None:
    for kind, width in (("binary", 3), ("real-valued", 10)):
        for name in ("codes.npy", "codes.parquet"):
            assert encode_to_file(load_model(Path(models[kind])), [], tmp_path / f"{kind} {name}") == (0, 0, ANY)
        assert np.load(tmp_path / f"{kind} codes.npy").shape == (0, width)
        assert table(tmp_path / f"{kind} codes.parquet").shape == (0, 2)


def test_what_is_no_file_of_codes_is_not_replaced(topic_model: Path, here: Path, topics: Topics) -> None:
    pl.DataFrame({"text": topics.texts}).write_parquet("corpus.parquet")
    np.save("numbers.npy", np.arange(5))
    (here / "notes.npy").write_text("mine")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    for output in ("corpus.parquet", "numbers.npy", "notes.npy"):
        result = run("encode", topic_model, "corpus.parquet", "-o", output, "--overwrite")
        assert result.exit_code == 1
        assert result.stderr == (
            f"parabit: {output} exists and is not a file of codes; nothing was changed; use another name\n"
        )
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before

"""`parabit encode`: the codes of a corpus as a file that is complete or not there."""

import json
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import polars as pl
import pytest
from commands import answer, names, run

from parabit import ParagraphVectors
from parabit.model import encode_to_file, load_model
from topics import Topics


def table(path: Path | str) -> pl.DataFrame:
    return pl.read_parquet(path, glob=False)


@pytest.fixture(scope="module")
def real_model(topics: Topics, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model without codes."""
    folder = tmp_path_factory.mktemp("model") / "real"
    ParagraphVectors(None, dim=10).fit(topics.texts).save(folder)
    return folder


def test_columns_and_types_are_as_documented(
    topic_model: Path, real_model: Path, here: Path, topics: Topics
) -> None:
    for model, options, columns in (
        (topic_model, (), ["id", "code"]),
        (topic_model, ("--vectors",), ["id", "code", "vector"]),
        (real_model, (), ["id", "vector"]),
    ):
        result = run("encode", model, "news.jsonl", "-o", "codes.parquet", "--overwrite", *options)
        assert (result.exit_code, result.stderr) == (0, "")
        rows = table("codes.parquet")
        assert rows.columns == columns
        width = 10 if model is real_model else 20
        types = {"id": pl.String(), "code": pl.Binary(), "vector": pl.Array(pl.Float32, width)}
        assert rows.schema == {name: types[name] for name in columns}
    for model, width, kind in ((topic_model, 3, np.uint8), (real_model, 10, np.float32)):
        assert run("encode", model, "news.jsonl", "-o", "codes.npy", "--overwrite").exit_code == 0
        array = np.load("codes.npy")
        assert (array.dtype, array.shape) == (kind, (300, width))
        inferred = load_model(model).infer(topics.texts)
        assert (
            array.tobytes()
            == (inferred.vectors if inferred.codes is None else inferred.codes).tobytes()
        )
    assert names(here) == {"news.jsonl", "codes.npy", "codes.parquet"}


def test_all_is_in_the_json_and_in_the_tables_metadata(topic_model: Path, here: Path) -> None:
    with (here / "news.jsonl").open("a") as file:
        file.write('{"id": "post0", "text": "qqqq xxxx"}\n{"id": "é ü", "text": ""}\nbad\n')
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
    assert rows["id"].to_list() == [
        *(f"post{number}" for number in range(300)),
        "post0",
        "é ü",
    ]  # in their order
    assert rows["code"].to_list()[-2:] == [b"\0\0\0"] * 2


def test_people_get_a_summary_in_words(topic_model: Path, here: Path) -> None:
    (here / "two.txt").write_text("qqqq\n" + "xxxx\n")
    said = run(
        "encode", topic_model, "two.txt", "-o", "codes.npy", "--format", "lines"
    ).stdout.splitlines()
    assert said[0] == "codes.npy: 2 documents, 20 bits each, 6 bytes in all"
    assert said[1].endswith(" documents per second")
    assert said[2:] == ["  2 documents without known words; their codes are zeros"]


def test_no_documents_make_an_empty_file(
    topic_model: Path, real_model: Path, tmp_path: Path
) -> None:
    for model, width in ((topic_model, 3), (real_model, 10)):
        for name in ("codes.npy", "codes.parquet"):
            assert encode_to_file(load_model(model), [], tmp_path / name, overwrite=True) == (
                0,
                0,
                ANY,
            )
        assert np.load(tmp_path / "codes.npy").shape == (0, width)
        assert table(tmp_path / "codes.parquet").shape == (0, 2)

"""`parabit dedupe`: from files or an index to groups, in every form."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from commands import answer, run

from parabit import Document, Index, ParagraphVectors, open_corpus
from parabit.corpus import document
from parabit.index.store import schema

TEXTS = {
    "a": "The Hubble telescope was repaired in orbit by astronauts",
    "b": "Goalies wear masks since a puck broke the nose of one",
    "c": "The Hubble telescope was repaired in orbit by astronauts, again, in 1993",
    "d": "the hubble telescope, was repaired in orbit by astronauts",
    "e": "Goalies wear masks since a puck broke the tooth of one",
    "f": "Nothing like the others",
}


@pytest.fixture
def posts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = Path("posts")
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / f"{name}.txt").write_text(f"{text}\n")
    (folder / "empty.txt").write_text("\n")
    return folder


@pytest.fixture
def index(posts: Path) -> Path:
    documents = list(open_corpus(posts))
    Index.build(
        documents, "posts.index", model=ParagraphVectors(bits=16).fit(documents * 5)
    ).close()
    return Path("posts.index")


def members(found: dict[str, Any]) -> list[list[str]]:
    return [[group["kept"], *(copy["id"] for copy in group["copies"])] for group in found["groups"]]


def test_a_folder_and_its_index_have_the_same_groups(posts: Path, index: Path) -> None:
    of_files, of_index = answer("dedupe", posts), answer("dedupe", index)
    assert (
        members(of_files) == members(of_index) == [["a.txt", "c.txt", "d.txt"], ["b.txt", "e.txt"]]
    )
    assert (of_files["documents"], of_files["copies"]) == (6, 3)
    copies = [copy for group in of_index["groups"] for copy in group["copies"]]
    assert [copy["shared"] for copy in copies] == pytest.approx([9 / 11, 1, 10 / 12], abs=1e-4)
    assert {copy["bits"] for group in of_files["groups"] for copy in group["copies"]} == {None}
    assert copies[1]["bits"] == 0
    assert copies[0]["title"] == TEXTS["c"]


def test_what_is_printed(posts: Path, index: Path) -> None:
    lines = run("dedupe", posts).stdout.splitlines()
    assert lines[0].startswith("posts: 3 of 6 documents are near-duplicates of 2 others; ")
    assert lines[1:4] == [
        f"  a.txt  {TEXTS['a']}",
        "    c.txt  82% of the words",
        "    d.txt  100% of the words",
    ]
    assert "    d.txt  100% of the words, 0 bits" in run("dedupe", index).stdout.splitlines()


def test_ids_to_delete_come_one_per_line(index: Path) -> None:
    assert run("dedupe", index, "--print-delete").stdout == "c.txt\nd.txt\ne.txt\n"
    longest = run("dedupe", index, "--print-delete", "--keep", "longest").stdout.split()
    assert longest == ["a.txt", "d.txt", "b.txt"]
    with Index.open(index, write=True) as opened:
        opened.delete(longest)
    assert answer("dedupe", index)["groups"] == []
    assert run("dedupe", index, "--print-delete").stdout == ""


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index, as older versions made it, of three copies: one's id is those of the other two on two lines."""
    monkeypatch.chdir(tmp_path)
    for module in (document, schema):
        monkeypatch.setattr(module, "check_id", lambda _: None, raising=False)
    documents = [
        Document(identity, TEXTS["a"]) for identity in ("kept", "x\ncontract.txt", "l\u2028f\f")
    ]
    documents += [Document("x", TEXTS["b"]), Document("contract.txt", TEXTS["f"])]
    documents += [Document(" y ", TEXTS["a"])]
    model = ParagraphVectors(bits=16).fit([TEXTS[name] for name in "abf"] * 6)
    Index.build(documents, "odd.index", model=model).close()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    return Path("odd.index")


def test_an_id_with_a_line_break_is_not_mistaken_for_two(odd: Path) -> None:
    lines = run("dedupe", odd, "--print-delete")
    assert (lines.exit_code, lines.stdout) == (1, "")
    assert r"the id 'x\ncontract.txt' is not one line; use --print0" in lines.stderr
    copies = run("dedupe", odd, "--print0").stdout
    assert copies == "x\ncontract.txt\0l\u2028f\f\0 y \0"
    assert run("dedupe", odd, "-0").stdout == copies
    assert answer("delete", odd, "-", "-0", stdin=copies)["deleted"] == 3
    with Index.open(odd) as index:
        assert index.has(["kept", "x", "contract.txt"]).all()
        assert len(index) == 3


def test_ids_on_lines_are_split_at_line_breaks_alone(odd: Path) -> None:
    assert answer("delete", odd, "-", stdin="l\u2028f\f\r\n\n y \n")["deleted"] == 2
    with Index.open(odd) as index:
        assert not index.has(["l\u2028f\f", " y "]).any()
    result = run("delete", odd, "kept", "-0")
    assert (result.exit_code, "--null is for ids on standard input" in result.stderr) == (2, True)


def test_tables_have_all_groups(index: Path) -> None:
    tables: dict[str, Callable[[str], pl.DataFrame]] = {
        "groups.csv": pl.read_csv,
        "groups.tsv": partial(pl.read_csv, separator="\t"),
        "groups.jsonl": pl.read_ndjson,
        "groups.parquet": pl.read_parquet,
    }
    for output, read in tables.items():
        assert f"all groups are in {output}" in run("dedupe", index, "-o", output).stdout
        found = read(output)
        assert found.columns == ["group", "id", "kept", "shared", "bits", "title"]
        assert len(found) == 5
        assert found.row(0) == (1, "a.txt", "a.txt", None, None, TEXTS["a"])
        assert found.row(2) == (1, "d.txt", "a.txt", 1.0, 0, TEXTS["d"])

"""What is wrong is explained in one line, before anything is written."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import contents, run

from made_up_files import as_lines
from parabit import Document, ParagraphVectors, open_corpus
from parabit.index import Index
from parabit.model import load_model

NETWORK = ("--solver", "network", "--bits", "16", "--device", "cpu")
TRAIN = ("train", "posts.jsonl", "-o", "a", "--bits", "16")
ENCODE = ("encode", "news-20", "posts.jsonl", "-o")
EVALUATE = ("evaluate", "news-20", "posts.jsonl")

WRONG: list[tuple[tuple[str, ...], str]] = [
    # names that are nearly right
    (("serach",), "Did you mean 'search'?"),
    (
        ("search", "news.index", "x", "--rank", "hybird"),
        "'--rank': 'hybird' is not one of 'hybrid', 'words'",
    ),
    (("search", "news.index", "x", "-k", "x"), "'-k': it must be a whole number"),
    (
        ("search", "news.index", "-kite apple"),
        "must be a whole number; a query or an id that begins with - needs --",
    ),
    (("search", "news.index", "x", "-k", "0"), "'-k': it must be at least 1"),
    (
        ("search", "news.index", "x", "--where", "label=topic1"),
        "no document has a field 'label'; did you mean labels?",
    ),
    (("search", "new.index", "x"), "no index in new.index; did you mean news.index?"),
    (("index", "posts.jsonl", "--model", "new-20", "-o", "a"), "did you mean news-20?"),
    (("train", "20newsgroup/train", "-o", "a"), "did you mean 20newsgroups/train?"),
    # reading
    (
        ("vocabulary", "posts.jsonl", "--format", "word"),
        "no such format: word; the formats are text, lines",
    ),
    (
        ("vocabulary", "posts.jsonl", "-o", "no/such/v.csv"),
        "there is no folder no/such to write v.csv in",
    ),
    (
        ("vocabulary", "posts.jsonl", "-o", "v"),
        "v ends in none of .csv, .tsv, .jsonl, .parquet; give one of these",
    ),
    (("vocabulary", "posts.jsonl", "--pattern", "("), "error: unclosed group; try"),
    (
        ("dedupe", "news.index", "posts.jsonl"),
        "news.index is an index, and more is named beside it",
    ),
    # learning
    ((*TRAIN, "--bits", "7"), "parabit: bits is 7; it must be a whole number from 8 to 1,024"),
    (
        ("index", "posts.jsonl", "-o", "a", "--bits", "7"),
        "parabit: bits is 7; it must be a whole number from 8 to",
    ),
    ((*TRAIN, "--bits", "abc"), "--bits abc; write it as 128, or none"),
    ((*TRAIN, "--levels", "8,8"), "--levels 8,8; write it as 96+24+8"),
    ((*TRAIN, "--set", "epochs=2"), "--set is for networks; add --solver network"),
    (
        (*TRAIN, "--resume"),
        "no interrupted training: the closed form takes seconds and keeps nothing",
    ),
    ((*TRAIN, *NETWORK, "--resume"), "there is no interrupted training: nothing is in a.training"),
    (
        (*TRAIN, *NETWORK, "--set", "epochs"),
        "--set epochs; write it as name=value, such as --set epochs=20",
    ),
    # encoding and measuring
    (
        ("encode", "posts.jsonl", "posts.jsonl", "-o", "a.npy"),
        "no model in posts.jsonl; make one with",
    ),
    ((*ENCODE, "folder.npy", "--overwrite"), "folder.npy is not a file"),
    ((*ENCODE, "mine.npy", "--overwrite"), "mine.npy exists and is not a file of codes"),
    ((*ENCODE, "link.npy", "--overwrite"), "link.npy exists and is not a file of codes"),
    ((*ENCODE, f"{'n' * 245}.npy"), "File name too long"),
    ((*ENCODE, "a.npy", "--workers", "2"), "--workers is for a cluster; add --engine"),
    ((*EVALUATE, "--plot", "a.pdf"), "a.pdf ends in none of .svg, .png"),
    (
        ("evaluate", "real", "posts.jsonl", "--rank", "hamming"),
        "this model has no codes to rank by",
    ),
    (
        ("reproduce", "table3", "--job", "transfer", "--corpus", "20newsgroups", "--quick"),
        "there is nothing to run",
    ),
    (("reproduce", "table2", "--job", "bm25"), "no job 'bm25' in table2"),
    (("reproduce", "table2", "--corpus", "moon"), "no collection 'moon' here"),
    (("reproduce", "table2", "--only-report"), "no run is finished"),
    (
        ("reproduce", "table2", "--quick", "--corpus", "20newsgroups", "-o", "posts.jsonl"),
        "Not a directory",
    ),
    # indexing
    (
        ("index", "posts.jsonl", "--model", "news-20", "-o", "a", "--bits", "64"),
        "--bits is for learning a model, and",
    ),
    (
        ("index", "posts.jsonl", "--model", "news.index", "-o", "a"),
        "news.index is an index, not a model; its model is",
    ),
    # searching
    (("search", "news.index"), "give either a query or --like"),
    (("search", "news-20", "x"), "is a model, not an index"),
    (("dedupe", "posts.jsonl", "--json", "--print-delete"), "leave out one of them"),
    # changing
    (("delete", "news.index"), "give either ids, or - for standard input, or --where"),
    (("sync", "news.index", "--watch", "--dry-run"), "--watch with --dry-run; choose one"),
    (("sync", "news.index", "--include", "*.md"), "options of reading, but no CORPUS; name it"),
    (
        ("serve", "news.index", "--port", "0", "--token", "two words"),
        "the token is empty, or has characters",
    ),
    (("demo", "--ask", " "), "a question is empty"),
]


@pytest.fixture(scope="module")
def things(
    topic_model: Path, topic_documents: list[Document], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A folder with what commands can be wrong about; it is the current one."""
    folder = tmp_path_factory.mktemp("wrong")
    shutil.copytree(topic_model, folder / "news-20")
    (folder / "posts.jsonl").write_text(as_lines(topic_documents))
    Index.build(
        open_corpus(folder / "posts.jsonl"), folder / "news.index", model=load_model(topic_model)
    ).close()
    ParagraphVectors(None, dim=2).fit(["one text", "another text"]).save(folder / "real")
    (folder / "folder.npy").mkdir()
    (folder / "link.npy").symlink_to("nowhere")
    (folder / "mine.npy").write_text("my data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.delenv("PARABIT_DATA", raising=False)
        yield folder


@pytest.mark.parametrize(
    ("arguments", "words"),
    WRONG,
    ids=lambda part: " ".join(part)[:60] if isinstance(part, tuple) else part[:40],
)
def test_what_is_wrong_is_explained_and_nothing_written(
    arguments: tuple[str, ...], words: str, things: Path
) -> None:
    before = contents(things)
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    if result.exit_code == 1:
        assert result.stderr.startswith("parabit: ")
        assert result.stderr.count("\n") == 1
    assert contents(things) == before


def test_a_traceback_is_there_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARABIT_DEBUG", "1")
    result = run("vocabulary", "no-such-file.jsonl")
    assert (result.exit_code, "Traceback" in result.stderr) == (1, True)


def test_what_nobody_expected_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("odd\nthing")

    monkeypatch.setattr("parabit.cli.command.open_corpus", fail)
    result = run("vocabulary", "x")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith(
        "parabit: unexpected ZeroDivisionError: odd thing; please report it"
    )

"""Folders: which files are read, what their documents are called, and what is said of the others."""

import gzip
import os
import pickle
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from made_up_files import encrypted_pdf, make_pdf
from parabit import Index, ParagraphVectors, ReadOptions, open_corpus
from parabit.corpus.document import Skipped, title_of
from parabit.corpus.files import FileCorpus
from parabit.corpus.sources import Source
from parabit.errors import CorpusError, ParabitError

Write = Callable[[str, str | bytes], Path]


TAR = gzip.compress(tarfile.TarInfo("inside.txt").tobuf() + bytes(1024))

# Files of a folder: their content, and the id, text, label and title of each document in them.
READ: dict[str, tuple[str | bytes, list[tuple[str, str, str, str | None]]]] = {
    "1": ("no ending\nat all", [("1", "no ending\nat all", "", None)]),
    "b/note.md": (
        "# Boats\n\nThey *float*.",
        [("b/note.md", "Boats\n\nThey float.", "b", "Boats")],
    ),
    "c.html": ("<title>Sails</title><p>They pull.", [("c.html", "Sails\nThey pull.", "", "Sails")]),
    "d.pdf": (
        make_pdf("A float-\ning boat", "page two"),
        [("d.pdf", "A floating boat\n\npage two", "", None)],
    ),
    "e/e/mail": (
        "From: a@b.c\r\nSubject: Space\r\n =?utf-8?q?caf=C3=A9?=\r\n\r\nHello.",
        [
            (
                "e/e/mail",
                "From: a@b.c\r\nSubject: Space\r\n =?utf-8?q?caf=C3=A9?=\r\n\r\nHello.",
                "e/e",
                "Space café",
            )
        ],
    ),
    "f.txt.gz": (gzip.compress(b"Ropes"), [("f.txt.gz", "Ropes", "", None)]),
    "g.jsonl": (
        '{"id": "g1", "text": "record", "title": "T"}\nnot JSON\n{"text": "unnamed"}',
        [("g1", "record", "", "T"), ("g.jsonl:3", "unnamed", "", None)],
    ),
    "h.csv": ("text,label\nrow,x\n", [("h.csv:2", "row", "x", None)]),
    "i.json": ('[\n{"text": "in an array"}]', [("i.json:1", "in an array", "", None)]),
    "j.txt": ("čaj".encode("utf-16"), [("j.txt", "čaj", "", None)]),
    "k.txt": ("café".encode("cp1252"), [("k.txt", "café", "", None)]),
}
UNREAD: dict[str, tuple[str | bytes, str]] = {
    "backup.tar.gz": (TAR, "archive"),
    "backup.zip": (b"PK\5\6" + bytes(18), "archive"),
    "empty.txt": ("", "empty file"),
    "no/permission.txt": ("secret", "no permission"),
    "package.json:1": ('{"name": "x"}', "no text field"),
    "picture.png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary file"),
    "tarball.gz": (TAR, "binary file"),
}
SILENT = {
    "node_modules/x.txt": "x",
    ".git/config": "x",
    ".hidden.txt": "x",
    "__pycache__/x.txt": "x",
    "_SUCCESS": "",
}


@pytest.fixture
def mixed(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with some of everything."""
    contents = {name: content for name, (content, _) in (*READ.items(), *UNREAD.items())}
    for name, content in {**contents, **SILENT}.items():
        write(f"mixed/{name.partition(':')[0]}", content)
    folder = tmp_path / "mixed"
    (folder / "broken").symlink_to(tmp_path / "nowhere")
    (folder / "loop").symlink_to(folder)
    (folder / "self").symlink_to("self")
    opened, scan = os.open, os.scandir
    (folder / "locked").mkdir()

    def denied(path: Any, flags: int) -> int:  # as root may read everything
        if str(path).endswith("permission.txt"):
            raise PermissionError(13, "Permission denied")
        return opened(path, flags)

    def unlisted(
        path: Any,
    ) -> Any:  # a number where a folder that nobody needs any more is removed meanwhile
        if str(path).endswith("/locked"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr("parabit.corpus.sources.os.open", denied)
    monkeypatch.setattr(os, "scandir", unlisted)
    return folder


def skipped_of(corpus: Any) -> dict[str, str]:
    return {place: reason.partition(":")[0] for place, reason in corpus.skipped}


def test_a_mixed_folder_gives_exactly_these_documents_and_names_the_rest(mixed: Path) -> None:
    corpus = open_corpus(mixed)
    for _ in range(2):
        found = [(d.id, d.text, *(d.labels or ("",)), d.title) for d in corpus]
        assert found == [document for _, documents in READ.values() for document in documents]
        assert skipped_of(corpus) == {
            **{name: reason for name, (_, reason) in UNREAD.items()}, "g.jsonl:2": "not valid JSON",
            "broken": "broken link", "self": "broken link", "locked/": "no permission",
            "loop/": "link to a folder that is read already",
        }  # fmt: skip
        assert [*corpus.notes] == [Skipped("k.txt", "decoded as Windows-1252")]
    assert corpus.share_read == 1
    with pytest.raises(CorpusError, match=r"backup\.tar\.gz: archive"):
        open_corpus(mixed, ReadOptions(strict=True))
    with pytest.raises(CorpusError, match="line 2: not valid JSON"):
        list(
            open_corpus(mixed, ReadOptions(strict=True, include=("*.jsonl",), exclude=("locked",)))
        )


def test_links_are_read_once_whatever_the_order(
    mixed: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mixed / "a-link").symlink_to(mixed / "e")  # the folder itself comes first
    write("real/1.txt", "linked")
    for name in ("link", "again"):
        (mixed / name).symlink_to(mixed.parent / "real")
    (mixed.parent / "real" / "back").symlink_to(mixed)
    before = open_corpus(mixed)
    documents, skipped, scan = list(before), list(before.skipped), os.scandir

    @contextmanager
    def reversed_scan(folder: Path) -> Iterator[Any]:
        with scan(folder) as entries:
            yield iter(sorted(entries, key=lambda entry: entry.name, reverse=True))

    monkeypatch.setattr(os, "scandir", reversed_scan)
    after = open_corpus(mixed)
    assert (list(after), list(after.skipped)) == (documents, skipped)
    assert [document.id for document in documents if document.text == "linked"] == ["again/1.txt"]
    twice = {
        place for place, reason in skipped if reason == "link to a folder that is read already"
    }
    assert twice == {"a-link/", "link/", "again/back/", "loop/"}


def test_record_files_with_the_same_ids_are_one_corpus_by_path_and_line(
    write: Write, tmp_path: Path
) -> None:
    write("docs/b.csv", "id,text\n1,goalie\n")
    folder = write("docs/a.jsonl", '{"id": 1, "text": "Hubble"}\n{"id": 2, "text": "orbit"}').parent
    model = ParagraphVectors(8).fit(["Hubble orbit", "goalie"] * 5)
    with pytest.raises(ParabitError, match="two documents have the id '1'.*--id-field ''"):
        Index.build(open_corpus(folder), tmp_path / "index", model=model)
    corpus = open_corpus(folder, ReadOptions(id_field=""))
    assert [(d.id, d.fields["id"]) for d in corpus] == [
        ("a.jsonl:1", 1),
        ("a.jsonl:2", 2),
        ("b.csv:2", "1"),
    ]
    assert len(Index.build(corpus, tmp_path / "index", model=model)) == 3


@pytest.mark.parametrize("name", READ)
def test_a_file_means_the_same_alone_and_in_a_folder(name: str, mixed: Path) -> None:
    alone = [(d.id, d.text, d.title) for d in open_corpus(mixed / name)]
    parent = f"{Path(name).parent}/" if "/" in name else ""
    assert alone == [(id.removeprefix(parent), text, title) for id, text, _, title in READ[name][1]]


def test_shards_hold_what_the_whole_holds(mixed: Path) -> None:
    corpus = open_corpus(mixed)
    assert isinstance(corpus, FileCorpus)
    whole = list(corpus)
    shards = pickle.loads(pickle.dumps(corpus.shards()))
    assert [document for shard in shards for document in shard] == whole
    in_shards = {place for shard in shards for place in skipped_of(shard)}
    by_their_names = {"broken", "self", "loop/", "locked/", "backup.zip", "backup.tar.gz"}
    assert in_shards == skipped_of(corpus).keys() - by_their_names


def test_files_are_chosen_by_patterns(write: Write) -> None:
    for name in ("a.txt", "d.md", "sub/b.txt", "sub/deep/c.txt", "sub/deep/d.md"):
        folder = write(f"docs/{name}", "text").parents[name.count("/")]
    for include, exclude, expected in (
        (("*.txt",), (), ["a.txt", "sub/b.txt", "sub/deep/c.txt"]),
        (("sub/*.txt",), (), ["sub/b.txt"]),
        (("./sub/**",), (), ["sub/b.txt", "sub/deep/c.txt", "sub/deep/d.md"]),
        (("**/*.md",), (), ["d.md", "sub/deep/d.md"]),
        (("sub/**/d*",), (), ["sub/deep/d.md"]),
        (("[ab].txt", "sub/*/d.md"), (), ["a.txt", "sub/b.txt", "sub/deep/d.md"]),
        (("?.txt",), ("[!a]*",), ["a.txt"]),
        ((), ("sub",), ["a.txt", "d.md"]),
        ((), ("deep/",), ["a.txt", "d.md", "sub/b.txt"]),
        (("*.md",), ("sub/deep/**",), ["d.md"]),
    ):
        corpus = open_corpus(folder, ReadOptions(include=include, exclude=exclude))
        assert ([d.id for d in corpus], len(corpus.skipped)) == (expected, 0), (include, exclude)
    (folder / "loop").symlink_to(folder)
    with pytest.raises(CorpusError, match="no file matches --include and --exclude"):
        open_corpus(folder, ReadOptions(include=("*.rst",)))


def test_several_paths_are_one_corpus(write: Write, tmp_path: Path) -> None:
    for name in (
        "x/docs/a.txt",
        "x/docs/sub/b.txt",
        "y/notes/a.txt",
        "y/notes/c.txt",
        "y/docs/a.txt",
        "z.txt",
    ):
        write(name, name)

    def ids(*names: str) -> list[str]:
        return [document.id for document in open_corpus([tmp_path / name for name in names])]

    assert ids("x/docs/sub", "z.txt") == ["b.txt", "z.txt"]
    assert ids("x/docs", "y/notes") == [
        "docs/a.txt",
        "docs/sub/b.txt",
        "notes/a.txt",
        "notes/c.txt",
    ]
    assert ids("x/docs/a.txt", "y/notes/a.txt") == ["docs/a.txt", "notes/a.txt"]
    assert ids("x/docs", "x/docs/a.txt") == ["a.txt", "sub/b.txt"]  # each file once
    assert ids("x/docs", "y/docs") == [
        f"{tmp_path}/{name}" for name in ("x/docs/a.txt", "x/docs/sub/b.txt", "y/docs/a.txt")
    ]
    for name, words in (("docstrings", "is a data set; read it alone"), ("-", "read it alone")):
        with pytest.raises(CorpusError, match=words):
            open_corpus([name, str(tmp_path)])


def test_a_format_reads_files_of_that_name_and_text_files(write: Write) -> None:
    for name, content in (
        ("a.csv", "text\nx"),
        ("b.txt", "text\ny"),
        ("c", "text\nz"),
        ("d.jsonl", '{"text": "w"}'),
    ):
        folder = write(f"docs/{name}", content).parent
    for format, texts, skipped in (
        ("csv", ["x", "y", "z"], {"d.jsonl": "another format"}),
        (
            "lines",
            ["text", "y", "text", "z"],
            {"a.csv": "another format", "d.jsonl": "another format"},
        ),
    ):
        corpus = open_corpus(folder, ReadOptions(format=format))
        assert ([d.text for d in corpus], skipped_of(corpus)) == (texts, skipped)
    assert [d.text for d in open_corpus(write("page", "<p>Boats"), ReadOptions(format="html"))] == [
        "Boats"
    ]


def test_a_folder_with_nothing_to_read_says_why(write: Write, tmp_path: Path) -> None:
    folder = write("pictures/a.png", b"\x89PNG\0").parent
    write("pictures/b.zip", b"PK")
    with pytest.raises(
        CorpusError, match=r"in .*pictures: 2 skipped \(1 archive, 1 binary file\), the first"
    ):
        list(open_corpus(folder))
    with pytest.raises(
        CorpusError,
        match=r"no documents in .*: 1 skipped \(1 archive\).*; parabit reads text, Mark",
    ):
        open_corpus(folder, ReadOptions(include=("*.zip",)))
    write("hidden/.git/config", "text")
    with pytest.raises(CorpusError, match="no files in .*hidden files do not count"):
        open_corpus(tmp_path / "hidden")


def test_a_name_that_is_not_utf_8_is_written_out(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("text")
    pl.DataFrame({"text": ["row"]}).write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.parquet").rename(tmp_path / os.fsdecode(b"caf\xe9.parquet"))
    assert [(d.id, d.text) for d in open_corpus(tmp_path)] == [
        ("caf\\xe9.parquet:1", "row"), ("caf\\xe9.txt", "text"),
    ]  # fmt: skip


def test_two_names_never_become_one_id(tmp_path: Path) -> None:
    names = [
        b"caf\xe9.txt",
        rb"caf\xe9.txt",
        rb"caf\\xe9.txt",
        b"caf\\\xe9.txt",
        rb"a\b.txt",
        "é.txt".encode(),
    ]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    ids = [document.id for document in open_corpus(tmp_path)]
    assert len(ids) == len({*ids}) == len(names)
    assert {r"caf\xe9.txt", r"caf\\xe9.txt", r"a\\b.txt", "é.txt"} <= {*ids}


def test_patterns_take_no_time_however_many_stars_they_have(write: Write) -> None:
    # No clock: with a step for each way to split the path this would take hours.
    name = "/".join(["a"] * 40 + ["b.txt"])
    folder = write(f"docs/{name}", "text").parents[40]
    options = ReadOptions(
        exclude=("**/a/" * 15 + "c",), include=("**/*a*a*a*a*c", "**/" * 20 + "*.txt")
    )
    assert [document.id for document in open_corpus(folder, options)] == [name]


def test_a_device_is_no_corpus() -> None:
    with pytest.raises(CorpusError, match="/dev/zero: not a file: a device"):
        open_corpus("/dev/zero")
    with Path("/dev/zero").open("rb") as zeros:
        completed = subprocess.run(
            [sys.executable, "-c", "from parabit import open_corpus; list(open_corpus('-'))"],
            stdin=zeros, capture_output=True, check=False,
        )  # fmt: skip
    assert b"standard input: not a file: a device" in completed.stderr


def test_a_pipe_that_took_the_place_of_a_file_is_not_waited_for(
    write: Write, tmp_path: Path
) -> None:
    write("docs/good.txt", "good")
    paths = [write(f"docs/{name}", "text") for name in ("a.txt", "b.md", "c.jsonl")]
    corpus = open_corpus(tmp_path / "docs")
    for path in paths:
        path.unlink()
        os.mkfifo(path)
    assert [document.id for document in corpus] == ["good.txt"]
    assert [*corpus.skipped] == [
        Skipped(path.name, "cannot be read: it is no file any more") for path in paths
    ]


def test_pdfs_are_read_by_an_extra_and_in_silence(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [d.text for d in open_corpus(write("f.pdf", encrypted_pdf("")))] == [
        "a secret about boats"
    ]
    # pypdf logs what it finds odd, and what nobody listens to Python prints.
    path = write("docs/f.pdf", make_pdf("boats float").replace(b"startxref\n", b"startxref\n9"))
    program = f"from parabit import open_corpus; print(next(iter(open_corpus({str(path)!r}))).text)"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (completed.stdout, completed.stderr) == (b"boats float\n", b"")
    monkeypatch.setitem(sys.modules, "pypdf", None)  # as if it were not installed
    with pytest.raises(CorpusError, match=r"pypdf is not installed: run pip install '.\[pdf\]'"):
        list(open_corpus(path))
    write("docs/good.md", "good")
    corpus = open_corpus(path.parent)
    assert [d.id for d in corpus] == ["good.md"]
    assert [*corpus.skipped] == [
        Skipped(
            "f.pdf", "pypdf is not installed: run pip install '.[pdf]' in a copy of the repository"
        )
    ]


def test_titles_fall_back_to_the_first_line(write: Write) -> None:
    long = "word " * 20
    for text, title in (
        ("\n  two  words \nmore", "two words"),
        (long * 2, f"{long[:-1]}…"),
        ("x" * 200, "x" * 100 + "…"),
    ):
        [document] = open_corpus(write("a.txt", text))
        assert (document.title, title_of(document)) == (None, title)


def test_a_folder_of_many_files_opens_in_linear_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No clock: a step that looks through a list for each file would take minutes.
    sources = [Source(tmp_path / f"{number}.json", id=f"{number}.json") for number in range(50_000)]
    monkeypatch.setattr("parabit.corpus.files._walk", lambda *_: reversed(sources))
    corpus = open_corpus(tmp_path)
    assert isinstance(corpus, FileCorpus)
    assert len(corpus.sources) == 50_000

"""Files that are a document each: Markdown, HTML and PDF, alone and in folders."""

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from made_up_files import encrypted_pdf, make_pdf
from parabit import ReadOptions, open_corpus
from parabit.errors import CorpusError

Write = Callable[[str, str | bytes], Path]

FILES: dict[str, tuple[str | bytes, str]] = {
    "a.md": ("# Boats\n\nThey *float*.", "Boats\n\nThey float."),
    "b.markdown": ("[Oars](https://example.com)", "Oars"),
    "c.html": ("<title>Sails</title><p>They&nbsp;pull.", "Sails\nThey pull."),
    "d.HTM": ("<p>Masts", "Masts"),
    "e.xhtml": ('<?xml version="1.0"?><html><body><p>Keels</p></body></html>', "Keels"),
    "f.pdf": (make_pdf("A float-\ning boat", "page two"), "A floating boat\n\npage two"),
    "g.html.gz": (gzip.compress(b"<p>Ropes"), "Ropes"),
    "h.txt": ("*plain* <b>text</b>\nof two lines", "*plain* <b>text</b>\nof two lines"),
}


def test_a_folder_may_mix_documents_of_all_kinds(write: Write, tmp_path: Path) -> None:
    for name, (content, _) in FILES.items():
        write(f"docs/{name}", content)
        write(f"docs/deep/er/{name}", content)
    write("docs/.hidden.html", "<p>hidden")
    corpus = open_corpus(tmp_path / "docs")
    found = {document.id: (document.text, document.labels) for document in corpus}
    expected = {name: (text, ()) for name, (_, text) in FILES.items()}
    assert found == expected | {f"deep/er/{name}": (text, ("deep/er",)) for name, (_, text) in FILES.items()}
    assert list(corpus) == list(corpus)
    assert corpus.share_read == 1


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith(".txt")])
def test_a_single_file_is_one_document_and_its_name_the_id(name: str, write: Write) -> None:
    content, text = FILES[name]
    [document] = open_corpus(write(f"docs/{name}", content))
    assert (document.id, document.text, document.labels) == (name, text, ())


def test_the_format_can_be_named(write: Write, tmp_path: Path) -> None:
    [document] = open_corpus(write("page", "<p>Boats"), format="html")
    assert (document.id, document.text) == ("page", "Boats")
    for name, (content, _) in FILES.items():
        write(f"docs/{name}", content)
    write("docs/records.jsonl", '{"text": "a"}')
    chosen = open_corpus(tmp_path / "docs", format="html")
    assert [document.id for document in chosen] == ["c.html", "d.HTM", "e.xhtml", "g.html.gz"]
    with pytest.raises(CorpusError, match=r"several kinds, such as records\.jsonl and h\.txt"):
        open_corpus(tmp_path / "docs")
    with pytest.raises(CorpusError, match="no pdf file in .*leave --format out"):
        open_corpus(write("pages/a.html", "<p>x").parent, format="pdf")


def test_a_page_may_come_from_standard_input() -> None:
    program = "from parabit import open_corpus; print(list(open_corpus('-', format='html')))"
    told = subprocess.run([sys.executable, "-c", program], input=b"<p>Boats", capture_output=True, check=True).stdout
    assert told == b"[Document(id='0', text='Boats', labels=(), fields={})]\n"


def test_a_page_knows_its_encoding_and_others_can_be_told(write: Write) -> None:
    assert [d.text for d in open_corpus(write("a.html", "<meta charset=koi8-r><p>чай".encode("koi8-r")))] == ["чай"]
    assert [d.text for d in open_corpus(write("b.html", "<p>чай".encode("utf-16")))] == ["чай"]
    latin = ReadOptions(encoding="latin-1")
    assert [d.text for d in open_corpus(write("c.html", "<p>thé".encode("latin-1")), latin)] == ["thé"]
    assert [d.text for d in open_corpus(write("d.md", "*thé*".encode("latin-1")), latin)] == ["thé"]
    with pytest.raises(CorpusError, match=r"e\.md: not valid utf-8"):
        list(open_corpus(write("e.md", "*thé*".encode("latin-1"))))


def test_a_pdf_that_matplotlib_draws_is_read(tmp_path: Path) -> None:
    """Compressed, with fonts of its own."""
    from matplotlib.figure import Figure

    figure = Figure()
    figure.text(0.1, 0.5, "The boat floats on the river")
    figure.savefig(tmp_path / "drawn.pdf")
    [document] = open_corpus(tmp_path / "drawn.pdf")
    assert " ".join(document.text.split()) == "The boat floats on the river"


PDF = make_pdf("boats float")
BAD: dict[str, tuple[str, bytes, str]] = {
    "encrypted": ("f.pdf", encrypted_pdf("password"), r"f\.pdf is encrypted; save it without a password"),
    "cut off": ("f.pdf", PDF[: len(PDF) // 2], r"f\.pdf is not a whole PDF file: .*; download or export it again"),
    "no PDF": ("f.pdf", b"just text", r"f\.pdf is not a whole PDF file"),
    "empty": ("f.pdf", b"", r"f\.pdf is not a whole PDF file"),
    "pictures": ("f.pdf", make_pdf("", ""), r"no text in .*f\.pdf, on none of its 2 pages"),
    "binary page": (
        "f.html",
        b"\0\1\2" * 99,
        r"f\.html is a binary file, not text; parabit reads text, Markdown, HTML",
    ),
    "binary Markdown": ("f.md", b"\0\1\2" * 99, r"f\.md is a binary file"),
    "PDF in disguise": ("f.txt", PDF + b"\0", r"f\.txt is a binary file, not text; give it the ending \.pdf"),
    "damaged gzip": ("f.html.gz", gzip.compress(b"<p>text" * 99)[:-9], "is damaged or cut off"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_told_alone_and_skipped_in_a_folder(case: str, write: Write) -> None:
    name, content, words = BAD[case]
    path = write(f"docs/{name}", content)
    with pytest.raises(CorpusError, match=f"(?s){words}"):
        list(open_corpus(path))
    write("docs/good.md", "good")
    with pytest.raises(CorpusError, match=f"(?s){words}"):
        list(open_corpus(path.parent))
    corpus = open_corpus(path.parent, ReadOptions(skip_bad=True))
    assert [document.id for document in corpus] == ["good.md"]
    assert corpus.skipped == 1


def test_a_pdf_that_is_locked_against_changes_alone_can_be_read(write: Write) -> None:
    assert [d.text for d in open_corpus(write("f.pdf", encrypted_pdf("")))] == ["a secret about boats"]


def test_odd_pdfs_write_nothing_on_the_terminal(write: Write) -> None:
    """pypdf logs what it finds odd, and what nobody listens to Python prints."""
    path = write("f.pdf", PDF.replace(b"startxref\n", b"startxref\n9"))
    program = f"from parabit import open_corpus; print(next(iter(open_corpus({str(path)!r}))).text)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (told.stdout, told.stderr) == (b"boats float\n", b"")


def test_without_the_library_the_extra_is_named_even_where_bad_files_are_skipped(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("docs/f.pdf", PDF)
    write("docs/good.md", "good")
    monkeypatch.setitem(sys.modules, "pypdf", None)  # as if it were not installed
    for name, options in ((path, ReadOptions()), (path.parent, ReadOptions(skip_bad=True))):
        with pytest.raises(CorpusError, match=r"pypdf is not installed; pip install 'parabit\[pdf\]'"):
            list(open_corpus(name, options))
    write("others/good.md", "good")
    assert len(list(open_corpus(path.parent.parent / "others"))) == 1


def test_a_folder_without_text_is_told_as_such(write: Write, tmp_path: Path) -> None:
    folder = write("pictures/a.png", b"\x89PNG\0").parent
    write("pictures/b.png", b"\x89PNG\0")
    for options in (ReadOptions(), ReadOptions(skip_bad=True)):
        with pytest.raises(CorpusError, match=r"no text in .*pictures: 2 files, all binary; parabit reads text, Markd"):
            list(open_corpus(folder, options))
    write("pictures/c.pdf", b"broken")
    with pytest.raises(CorpusError, match=r"no documents in .*pictures; none of its 3 files can be read"):
        list(open_corpus(folder, ReadOptions(skip_bad=True)))
    with pytest.raises(CorpusError, match=r"a\.png is a binary file"):
        list(open_corpus(folder))
    (tmp_path / "hidden").mkdir()
    write("hidden/.git/config", "text")
    with pytest.raises(CorpusError, match="no files in the folder .*hidden files do not count"):
        open_corpus(tmp_path / "hidden")


def test_documents_have_no_fields(write: Write) -> None:
    with pytest.raises(CorpusError, match="have no fields"):
        open_corpus(write("a.md", "text"), ReadOptions(text_fields=("body",)))

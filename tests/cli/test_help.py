"""What the command line tells of itself: help, versions, completion, and the names that were nearly right."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text
from typer.testing import CliRunner, Result

from parabit import Document, __version__
from parabit.cli.app import VERBS as LISTED
from parabit.cli.app import app, load_verb
from parabit.cli.command import _folded
from parabit.cli.options import MaxLength, MinLength
from parabit.cli.reproduce import WHAT
from parabit.paper.reproduce import ALL, EXPERIMENTS
from parabit.text import Tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]

VERBS = {name: load_verb(name) for verbs in LISTED.values() for name in verbs}
GROUPS = ["Learn", "Search", "Keep", "Measure", "Look around"]


def run(*arguments: str | Path, columns: int = 80, **environment: str) -> Result:
    environment |= {"COLUMNS": str(columns)}
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment, prog_name="parabit")


def words_of(told: str) -> set[str]:
    return set(re.sub(r"[╭╮╰╯│─\\]", " ", told).split())


def examples_of(told: str) -> list[list[str]]:
    """The commands after parabit in the lines that stand in below "Examples:"."""
    lines = told.partition("Examples:")[2].partition("╭")[0].splitlines()
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("     ")]
    found = []
    for command in commands:
        if "parabit" not in command:
            continue
        words = command[command.index("parabit") + 1 :]
        stop = next((place for place, word in enumerate(words) if word in ("|", "<", ">")), len(words))
        found.append(words[:stop])
    return found


def test_the_help_lists_a_verb_by_the_first_line_of_its_own_help() -> None:
    for verbs in LISTED.values():
        for name, summary in verbs.items():
            assert (VERBS[name].help or "").replace("\\[", "[").split("\n")[0] == summary


def test_help_has_every_verb_in_a_group_and_examples() -> None:
    told = run("--help").stdout
    assert [line for line in re.findall("╭─ ([A-Z][a-z ]+[a-z]) ─", told) if line != "Options"] == GROUPS
    listed = re.findall(r"^│ ([a-z]+)  ", told, flags=re.MULTILINE)
    assert sorted(listed) == sorted(VERBS)
    assert {words[0] for words in examples_of(told)} >= {"demo", "train", "index", "search"}


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_examples_are_commands_that_there_are(verb: str) -> None:
    told = run(*([verb] if verb else []), "--help", columns=200).stdout
    examples = examples_of(told)
    assert examples
    for name, *words in examples:
        if "--help" not in words:
            VERBS[name].make_context(name, words)  # raises for an option that there is not


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_fits_the_terminal_and_breaks_no_word(verb: str) -> None:
    asked = [*([verb] if verb else []), "--help"]
    wide = words_of(run(*asked, columns=200).stdout)
    for columns in (60, 80):
        told = run(*asked, columns=columns).stdout
        assert max(map(cell_len, told.splitlines())) <= columns
        assert columns < 80 or words_of(told) <= wide  # names of options are longer than a column of a narrow one


def test_an_option_without_a_value_is_shown_without_one() -> None:
    assert "<bool>" not in run("train", "--help").stdout
    assert "<int>" in run("train", "--help").stdout


def test_what_help_writes_out_is_what_there_is() -> None:
    lengths = [option.__metadata__[0].show_default for option in (MinLength, MaxLength)]
    assert lengths == [str(Tokenizer().min_length), str(Tokenizer().max_length)]
    assert [*WHAT] == [*EXPERIMENTS, ALL]


def test_versions_are_told_of_what_matters() -> None:
    lines = run("--version").stdout.splitlines()
    assert lines[0] == f"parabit {__version__}"
    versions = dict(line.split(" ", 1) for line in lines)
    assert versions["Python"] == sys.version.split()[0]
    for name in ("numpy", "polars", "scipy", "faiss-cpu", "scikit-learn"):
        assert re.match(r"\d+\.\d+", versions[name])
    assert re.match(
        r"\d.*, (CUDA \d|without CUDA)|not installed; pip install 'parabit\[networks\]'$", versions["torch"]
    )
    assert "fastapi" in versions


def test_help_and_versions_import_no_large_library() -> None:
    code = """import sys
from parabit.cli.app import app
app(["--version"], standalone_mode=False)
print({"numpy", "polars", "scipy", "sklearn", "torch", "faiss", "fastapi", "pydantic"} & sys.modules.keys())
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.stdout.splitlines()[-1], result.stderr) == ("set()", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("serach",), "Did you mean 'search'?"),
        (("search", "news.index", "x", "--rnak", "hybrid"), "--rank"),
        (("search", "news.index", "x", "--rank", "hybird"), "no rank 'hybird'; did you mean hybrid?"),
        (("search", "news.index", "x", "--backend", "table"), "no back end 'table'; did you mean tables?"),
        (("search", "news.index", "x", "--where", "label=topic1"), "no field 'label'; did you mean labels?"),
        (("search", "new.index", "x"), "no index in new.index; did you mean news.index?"),
        (("info", "{here}/news.idx"), "no index in {here}/news.idx; did you mean {here}/news.index?"),
        (("add", "news.indx", "posts.jsonl"), "did you mean news.index?"),
        (("index", "new-20", "posts.jsonl", "-o", "a"), "did you mean news-20?"),
        (("index", "news-20", "posts.jsonl", "-o", "a", "--backend", "mulit"), "did you mean multi?"),
        (("encode", "news20", "posts.jsonl", "-o", "a.npy"), "did you mean news-20?"),
        (("evaluate", "news-20", "posts.jsonl", "--rank", "cosin"), "no order 'cosin'; did you mean cosine?"),
        (("evaluate", "news-20", "posts.jsonl", "--relevance", "share"), "did you mean shared?"),
        (("train", "posts.jsonl", "-o", "a", "--preset", "papr"), "no preset 'papr'; did you mean paper?"),
        (("train", "posts.jsonl", "-o", "a", "--solver", "netwrk"), "no solver 'netwrk'; did you mean network?"),
        (("train", "posts.jsonl", "-o", "a", "--architecture", "dbo"), "did you mean dbow?"),
        (("train", "20newsgroup/train", "-o", "a"), "did you mean 20newsgroups/train?"),
        (("vocabulary", "docstrings/tain"), "docstrings has no split 'tain'; its splits are train and test"),
        (("reproduce", "tabel1"), "no experiment 'tabel1'; did you mean table1?"),
    ],
)
def test_of_a_name_that_is_nearly_right_the_right_one_is_told(
    arguments: tuple[str, ...], words: str, news: Path, topic_model: Path, lines_file: Path
) -> None:
    here = Path.cwd()
    shutil.copytree(topic_model, "news-20")
    before = sorted(path.name for path in here.iterdir())
    result = run(*(argument.format(here=here) for argument in arguments))
    assert result.exit_code in (1, 2)
    assert words.format(here=here) in result.stderr
    assert result.stdout == ""
    assert sorted(path.name for path in here.iterdir()) == before


def completed(*words: str) -> list[str]:
    result = run(
        _PARABIT_COMPLETE="complete_bash", COMP_WORDS=shlex.join(["parabit", *words]), COMP_CWORD=str(len(words))
    )
    assert result.exit_code == 0
    return result.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("sea",), ["search"]),
        (("search", "a.index", "x", "--ra"), ["--radius", "--rank"]),
        (("search", "a.index", "x", "--rank", "h"), ["hybrid", "hamming"]),
        (("index", "a", "b", "--backend", "t"), ["tables"]),
        (("train", "a", "--preset", ""), ["default", "paper"]),
        (("train", "a", "--architecture", ""), ["dbow", "dm"]),
        (("train", "a", "--device", "c"), ["cpu", "cuda"]),
        (("train", "a", "--format", "j"), ["jsonl", "json"]),
        (("train", "reuters21578/"), ["reuters21578/train", "reuters21578/test"]),
        (("train", "2"), ["20newsgroups", "20newsgroups/train", "20newsgroups/test", *["2"] * 4]),
        (("evaluate", "a", "b", "--searched", "rc"), ["rcv1", "rcv1/train", "rcv1/test"]),
        (("train", "a", "--solver", ""), ["closed-form", "network"]),
        (("reproduce", "f"), ["figures"]),
        (("train", "pap"), []),  # the shell's own completion of paths
        (("search", "pap"), []),
    ],
)
def test_the_shell_is_told_what_may_come_next(
    words: tuple[str, ...], offered: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("2024.jsonl").touch()
    Path("papers").mkdir()
    told = completed(*words)
    assert len(told) == len(offered)
    assert all(name.startswith(start) for name, start in zip(told, offered, strict=True))
    assert ("2024.jsonl" in told) == (words == ("train", "2"))


def test_a_real_shell_completes(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    command = tmp_path / "parabit"
    command.write_text(f"#!{sys.executable}\nfrom parabit.cli import main\nmain()\n")
    command.chmod(0o755)
    script = """eval "$(parabit --show-completion)"
    COMP_WORDS=(parabit search a.index x --rank hyb) COMP_CWORD=5
    _parabit_completion parabit
    echo "${COMPREPLY[@]}"
    """
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env={**os.environ, "PATH": path}, check=False
    )
    assert (result.stdout, result.stderr) == ("hybrid\n", "")


def test_lines_are_folded_between_words() -> None:
    line = Text("  a path, /a/folder/that/is/longer/than/a/line, and what follows it    0.5")
    folded = _folded(line, 20).plain.split("\n")
    assert folded == ["  a path,", "    /a/folder/that/is/longer/than/a/line,", "    and what follows", "    it    0.5"]
    assert _folded(line, 100).plain == line.plain


def test_colours_are_for_terminals_and_those_who_force_them(parabit: Run) -> None:
    green = "\x1b[32m"
    assert "\x1b" not in run("datasets").stdout
    assert green in parabit("datasets", FORCE_COLOR="1").stdout
    assert green not in parabit("datasets", FORCE_COLOR="1", NO_COLOR="1").stdout


@pytest.mark.parametrize("verb", [["datasets"], ["search", "news.index", "a word that nobody has ever heard of"]])
def test_a_terminal_gets_lines_that_fit(verb: list[str], news: Path) -> None:
    pty, termios, fcntl = (pytest.importorskip(name) for name in ("pty", "termios", "fcntl"))
    columns = 60
    ours, theirs = pty.openpty()
    size = (50).to_bytes(2, sys.byteorder) + columns.to_bytes(2, sys.byteorder) + bytes(4)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "parabit", *verb]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm"})
    os.close(theirs)
    drawn = b""
    try:
        while block := os.read(ours, 65536):
            drawn += block
    except OSError:  # the terminal's end, as Linux tells it
        pass
    process.wait()
    os.close(ours)
    lines = re.sub(r"\x1b\[[\d;]*m", "", drawn.decode()).splitlines()
    assert len(lines) > 1
    assert all(cell_len(line) <= columns or " " not in line.strip() for line in lines)


def test_a_pipe_gets_the_whole_text_of_a_document(
    news: Path, topic_documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    [text] = {document.text for document in topic_documents if document.id == "post7"}
    told = CliRunner().invoke(app, ["search", "news.index", text, "-k", "1"]).stdout.splitlines()
    assert len(text) > 160
    assert told[2].split(maxsplit=6)[4:] == ["post7", told[2].split()[5], text]

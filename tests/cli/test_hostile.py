"""Documents, names and arguments that would act on a terminal do not, whatever the command."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import answer, run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such names of files")

ESCAPES = "\x1b[2J\x1b]0;pwned\x07[bold]\r\u202e\u2066\x9b31m\x7f"
# All that a line may not have: control characters, other line ends, and marks that turn the direction.
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
DOCS = f"docs{ESCAPES}"
INDEX = f"a{ESCAPES}.index"
MODEL = f"m{ESCAPES}"
MISSING = f"missing{ESCAPES}"
TEXT = f"The telescope was repaired{ESCAPES} in orbit by astronauts. "


def records() -> Iterator[dict[str, object]]:
    for number in range(140):  # more than a model has bits
        yield {
            "id": f"record {number}",
            "text": TEXT + f"number{number}" + ("\ud83d" if number == 7 else ""),
            "title": f"Title {ESCAPES} {number}",
            "labels": [f"label{ESCAPES}", "a"],
            f"field{ESCAPES}": f"value{ESCAPES}",
            "year": 1990 + number,
        }
    yield {"id": f"x{ESCAPES}", "text": TEXT}
    yield {f"body{ESCAPES}": TEXT}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The current folder, with documents, an index of them and a model, all under names that act on a terminal."""
    folder = tmp_path_factory.mktemp("hostile")
    inside = folder / DOCS / f"inside{ESCAPES}"
    inside.mkdir(parents=True)
    for name in (f"a{ESCAPES}.txt", "b\nc.txt", "c.txt", "[bold]d.txt", "e" * 200 + ".txt"):
        (inside / name).write_text(TEXT * 3)
    (folder / DOCS / f"empty{ESCAPES}.txt").touch()
    lines = [json.dumps(record) for record in records()]
    (folder / DOCS / f"r{ESCAPES}.jsonl").write_text("\n".join([*lines, f"no JSON {ESCAPES}"]))
    (folder / DOCS / f"s{ESCAPES}.csv").write_text(f"text,text\n{ESCAPES}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        assert run("index", DOCS, "-o", INDEX, "--bits", "16").exit_code == 0
        assert run("train", DOCS, "-o", MODEL, "--bits", "16").exit_code == 0
        yield folder


RIGHT: list[tuple[str, ...]] = [
    ("index", DOCS, "-o", f"b{ESCAPES}.index", "--bits", "16"),
    ("index", DOCS, "-o", f"c{ESCAPES}.index", "--model", MODEL),
    ("train", DOCS, "-o", f"n{ESCAPES}", "--bits", "16"),
    ("encode", MODEL, DOCS, "-o", f"codes{ESCAPES}.npy"),
    ("encode", MODEL, DOCS, "-o", f"codes{ESCAPES}.parquet"),
    ("evaluate", MODEL, DOCS),
    ("vocabulary", DOCS),
    ("vocabulary", DOCS, "--pattern", r"\S+", "--max-length", "100"),
    ("demo", DOCS, "--ask", f"telescope{ESCAPES}"),
    ("search", INDEX, f"telescope{ESCAPES}"),
    ("search", INDEX, "telescope", "--full", "--explain", "-k", "40"),
    ("search", INDEX, "telescope", "--where", f"field{ESCAPES}=value{ESCAPES}"),
    ("search", INDEX, f"telescope -{ESCAPES} +number3 title:{ESCAPES}"),
    ("search", INDEX, "telescope", "--json"),
    ("search", INDEX, "--like", "record 3", "--explain"),
    ("dedupe", DOCS),
    ("dedupe", INDEX),
    ("dedupe", INDEX, "-o", f"groups{ESCAPES}.csv"),
    ("info", INDEX, "--verify"),
    ("sync", INDEX, "--dry-run"),
    ("compact", INDEX),
    ("add", INDEX, DOCS, "--update"),
    ("delete", INDEX, "--where", f"labels=none{ESCAPES}"),
    ("datasets",),
]
WRONG: list[tuple[str, ...]] = [
    (f"verb{ESCAPES}",),
    ("search", INDEX, "telescope", f"--{ESCAPES}"),
    ("search", INDEX, "telescope", "-k", ESCAPES),
    ("search", INDEX, "telescope", "--rank", ESCAPES),
    ("search", INDEX, "telescope", ESCAPES),
    ("search", INDEX, "telescope", "--where", f"none{ESCAPES}=1"),
    ("search", INDEX, "telescope", "--where", ESCAPES),
    ("search", INDEX, "--like", MISSING),
    ("search", MISSING, "telescope"),
    ("delete", INDEX, MISSING),
    ("delete", INDEX, "--where", f"none{ESCAPES}=1"),
    ("add", INDEX, DOCS),
    ("add", INDEX, MISSING),
    ("add", INDEX, f"{DOCS}/s{ESCAPES}.csv"),
    ("add", INDEX, DOCS, "--strict", "--update"),
    ("index", DOCS, "-o", INDEX),
    ("index", DOCS, "-o", f"{MISSING}/x"),
    ("index", DOCS, "-o", "d.index", "--language", ESCAPES),
    ("index", DOCS, "-o", "d.index", "--text-field", f"none{ESCAPES}", "--include", "*.jsonl"),
    ("index", DOCS, "-o", "d.index", "--model", MISSING),
    ("train", DOCS, "-o", "n", "--bits", ESCAPES),
    ("train", DOCS, "-o", "n", "--solver", "network", "--set", ESCAPES),
    ("vocabulary", DOCS, "-o", f"v{ESCAPES}"),
    ("vocabulary", DOCS, "--pattern", f"({ESCAPES}"),
    ("vocabulary", DOCS, "--format", ESCAPES),
    ("vocabulary", DOCS, "--encoding", ESCAPES),
    ("evaluate", MODEL, MISSING),
    ("encode", MISSING, DOCS, "-o", "x.npy"),
    ("dedupe", DOCS, "--keep", ESCAPES),
    ("dedupe", DOCS, "--keep", "newest", "--date-field", ESCAPES),
    ("sync", INDEX, MISSING),
    ("serve", INDEX, "--port", "0", "--token", ESCAPES),
    ("info", MISSING),
]


@pytest.mark.parametrize("arguments", RIGHT, ids=lambda arguments: ascii(" ".join(arguments))[:40])
def test_what_is_printed_does_not_act_on_a_terminal(
    arguments: tuple[str, ...], hostile: Path
) -> None:
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    assert result.stdout
    assert ACTING.findall(result.stdout + result.stderr) == []


@pytest.mark.parametrize("arguments", WRONG, ids=lambda arguments: ascii(" ".join(arguments))[:40])
def test_errors_do_not_act_on_a_terminal(arguments: tuple[str, ...], hostile: Path) -> None:
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert "please report it" not in result.stderr
    assert ACTING.findall(result.stdout + result.stderr) == []
    is_repeated = not {"-k", "--token"} & set(arguments)
    if is_repeated and ESCAPES in arguments[-1]:
        assert r"\x1b[2J" in result.stderr


def test_names_that_were_written_out_can_be_used_and_are_no_markup(hostile: Path) -> None:
    shown = run("search", INDEX, "telescope", "-k", "200").stdout
    assert "[bold]" in shown
    assert r"\x1b[2J" in shown
    hits = answer("search", INDEX, "telescope", "-k", "200")["hits"]
    written = [hit["id"] for hit in hits if hit["id"].endswith(r"/b\nc.txt")]
    assert len(written) == 1
    assert answer("delete", INDEX, written[0])["deleted"] == 1
    left = [hit["id"] for hit in answer("search", INDEX, "telescope", "-k", "200")["hits"]]
    assert len(left) == len(hits) - 1
    assert written[0].replace(r"b\nc", "c") in left


def test_what_cannot_be_named_is_skipped_by_line_and_half_a_pair_is_replaced(hostile: Path) -> None:
    done = answer("index", DOCS, "-o", "e.index", "--model", MODEL)
    skipped = {place["place"].rpartition(".")[2]: place for place in done["reading"]["places"]}
    assert skipped["jsonl:141"]["reason"].startswith(r"control character in the id: 'x\x1b[2J")
    assert [note["reason"] for note in done["reading"]["notes"]] == [
        "half of a surrogate pair, replaced by U+FFFD"
    ]
    assert done["documents"] == 145

"""What the command line says about itself: help, versions and completion."""

import re
import shlex
import sys

import pytest
from commands import run

from parabit import __version__
from parabit.cli.app import VERBS as LISTED
from parabit.cli.app import load_verb

VERBS = [name for verbs in LISTED.values() for name in verbs]


def help_of(verb: str, *options: str) -> list[str]:
    result = run(*verb.split(), *(options or ["--help"]))
    assert result.exit_code == 0
    return result.stdout.splitlines()


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_fits_a_screen_and_has_an_example_that_parses(verb: str) -> None:
    lines = help_of(verb)
    assert lines == help_of(verb, "-h")
    assert lines[0].startswith(f"Usage: parabit {verb}")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    start = lines.index("Examples:" if "Examples:" in lines else "Example:") + 1
    examples = lines[start : lines.index("", start)]
    assert examples
    for example in examples:
        name, *arguments = shlex.split(example.rpartition("parabit ")[2])
        stop = next(
            (place for place, word in enumerate(arguments) if word in ("|", "<")), len(arguments)
        )
        if "--help" not in arguments and name in VERBS:
            load_verb(name).make_context(
                name, arguments[:stop]
            )  # raises for an option that does not exist
    more = " ".join(lines).partition("More options, explained by --help-all:")[2]
    explained = "\n".join(help_of(verb, "--help-all")) if more else ""
    for option in re.findall(r"--[\w-]+", more):
        assert re.search(rf"^  {option} ", explained, re.MULTILINE), option
    for option in (
        ["--json", "--quiet"] if verb not in ("", "mcp") else []
    ):  # which speaks JSON of its own
        assert any(option in line for line in lines)


def test_a_default_that_is_no_value_is_shown_in_words() -> None:
    assert any(
        line.startswith("  --bits N ") and line.endswith("[default: as before]")
        for line in help_of("retrain")
    )


def test_versions_are_shown_of_what_matters() -> None:
    versions = dict(line.split(" ", 1) for line in run("--version").stdout.splitlines())
    assert (versions["parabit"], versions["Python"]) == (__version__, sys.version.split()[0])
    assert all(
        re.match(r"\d+\.\d+", versions[name])
        for name in ("numpy", "polars", "scipy", "scikit-learn")
    )
    assert re.match(r"\d|not installed$", versions["torch"])


def test_the_shell_completes_names() -> None:
    for words, offered in (
        (["sea"], {"search"}),
        (["search", "a.index", "x", "--ra"], {"--radius", "--rank"}),
        (["search", "a.index", "x", "--rank", "h"], {"hybrid", "hamming"}),
        (["train", "a", "--format", "j"], {"jsonl", "json"}),
        (["train", "pap"], set()),  # the shell's own completion of paths
    ):
        asked = shlex.join(["parabit", *words])
        result = run(
            _PARABIT_COMPLETE="complete_bash", COMP_WORDS=asked, COMP_CWORD=str(len(words))
        )
        assert (result.exit_code, set(result.stdout.split())) == (0, offered)

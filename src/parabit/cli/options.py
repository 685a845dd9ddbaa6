"""What verbs that read a corpus share: options of reading and of words, and how they report what was skipped."""

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.command import completing, say
from parabit.corpus import FORMATS, Corpus, ReadOptions
from parabit.corpus.datasets import DATASETS, SPLITS

if TYPE_CHECKING:
    from parabit.text import Tokenizer


def complete_corpus(incomplete: str) -> list[str]:
    """Data sets, with and without their splits, that begin like this, and paths that do.

    Where no data set does, the shell completes paths by itself, and better: it knows what a folder is.
    """
    named = [
        name
        for dataset in DATASETS
        for name in (dataset, *(f"{dataset}/{split}" for split in SPLITS))
        if name.startswith(incomplete)
    ]
    if not named:
        return []
    folder, _, start = incomplete.rpartition("/")
    try:
        there = sorted(path.name for path in Path(folder or ".").iterdir() if path.name.startswith(start))
    except OSError:
        there = []
    return named + [f"{folder}/{name}" if folder else name for name in there if not name.startswith(".")]


_CORPUS = (
    "A file or folder, a data set and split (20newsgroups/train), an address such as s3://…, or - for standard input."
)
CorpusName = Annotated[
    str, typer.Argument(metavar="CORPUS", help=_CORPUS, show_default=False, autocompletion=complete_corpus)
]
CorpusNames = Annotated[
    list[str],
    typer.Argument(
        metavar="CORPUS...",
        help=f"{_CORPUS} Several files and folders are read as one corpus.",
        show_default=False,
        autocompletion=complete_corpus,
    ),
]
_SHOWN = 10  # of the skipped files and records, on a terminal
_PANEL, _WORDS = "Reading the corpus", "The vocabulary"


def _option(kind: Any, *names: str, **how: Any) -> Any:
    return Annotated[kind, typer.Option(*names, rich_help_panel=_PANEL, **how)]


_OPTIONS: dict[str, tuple[Any, Any]] = {  # the type of each option, and its default
    "text_field": (
        _option(list[str] | None, metavar="FIELD", help="The field with the text; several are joined. Default: text."),
        None,
    ),
    "id_field": (
        _option(
            str | None,
            metavar="FIELD",
            help="The field with the id. Default: id. Without one, or if empty: path and line.",
        ),
        None,
    ),
    "label_field": (
        _option(str | None, metavar="FIELD", help="The field with the label or labels. Default: labels or label."),
        None,
    ),
    "format": (
        _option(
            str | None,
            metavar="FORMAT",
            help=f"{', '.join(FORMATS)}. Default: by the file's name; lines reads text files as one document per line. "
            "In a folder, files whose names say another format are skipped.",
            autocompletion=completing(FORMATS),
        ),
        None,
    ),
    "encoding": (
        _option(
            str | None,
            metavar="ENCODING",
            help="Of text files. Default: UTF-8, UTF-16 or UTF-32 by their first bytes, or else Windows-1252.",
        ),
        None,
    ),
    "no_quotes": (_option(bool, "--no-quotes", help="In CSV and TSV a quote is a character like any other."), False),
    "include": (
        _option(
            list[str] | None,
            metavar="GLOB",
            help="Read only files whose path in the folder, or whose name, matches; repeatable. ** matches folders.",
        ),
        None,
    ),
    "exclude": (
        _option(list[str] | None, metavar="GLOB", help="Leave out files and folders that match; repeatable."),
        None,
    ),
    "strict": (
        _option(bool, "--strict", help="Stop at the first file or record that cannot be read, instead of skipping it."),
        False,
    ),
}


def reads_corpus(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of reading a corpus, in place of its parameters `options` and `format`."""
    own = [
        parameter
        for parameter in inspect.signature(function, eval_str=True).parameters.values()
        if parameter.name not in ("options", "format")
    ]
    end = [parameter.name for parameter in own].index("json")
    added = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
        for name, (kind, default) in _OPTIONS.items()
    ]
    parameters = [*own[:end], *added, *own[end:]]

    @functools.wraps(function)
    def run(**given: Any) -> None:
        options = ReadOptions(
            text_fields=tuple(given.pop("text_field") or ("text",)),
            id_field=given.pop("id_field"),
            label_field=given.pop("label_field"),
            encoding=given.pop("encoding"),
            quotes=not given.pop("no_quotes"),
            include=tuple(given.pop("include") or ()),
            exclude=tuple(given.pop("exclude") or ()),
            strict=given.pop("strict"),
        )
        function(options=options, **given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


Bigrams = Annotated[
    bool, typer.Option("--bigrams", help="Take pairs of neighbouring words too.", rich_help_panel=_WORDS)
]
MinCount = Annotated[
    int, typer.Option(min=1, help="Words and bigrams that occur less often are left out.", rich_help_panel=_WORDS)
]
MinBigramCount = Annotated[
    int | None,
    typer.Option(min=1, help="The same for bigrams alone.", show_default="--min-count", rich_help_panel=_WORDS),
]
MaxSize = Annotated[
    int | None,
    typer.Option(min=1, help="Keep only so many of the most frequent.", show_default="all", rich_help_panel=_WORDS),
]
Pattern = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="What a word looks like, in lower case.",
        show_default="words, numbers, c++, c#, f#, .net",
        rich_help_panel=_WORDS,
    ),
]
FoldAccents = Annotated[
    bool, typer.Option("--fold-accents", help="Remove accents: é becomes e.", rich_help_panel=_WORDS)
]
# The defaults are written out here because importing the tokenizer takes half a second; a test compares them.
MinLength = Annotated[
    int | None,
    typer.Option(min=1, help="Shorter words are left out, in characters.", show_default="2", rich_help_panel=_WORDS),
]
MaxLength = Annotated[
    int | None, typer.Option(min=1, help="Longer words are left out.", show_default="15", rich_help_panel=_WORDS)
]
StopWords = Annotated[
    str,
    typer.Option(
        metavar="english|none|FILE",
        help="Words to leave out; a file has one per line.",
        rich_help_panel=_WORDS,
        autocompletion=completing(["english", "none"]),
    ),
]


def make_tokenizer(
    pattern: str | None,
    fold_accents: bool,
    min_length: int | None,
    max_length: int | None,
    stop_words: str,
    paper: bool = False,
) -> "Tokenizer":
    """The tokenizer of these options; without any, the default one or the paper's."""
    from parabit.text import Tokenizer, read_stop_words

    given = {"pattern": pattern, "min_length": min_length, "max_length": max_length}
    base = Tokenizer.paper() if paper else Tokenizer()
    changes = {name: value for name, value in given.items() if value is not None}
    return replace(base, fold_accents=fold_accents, stop_words=read_stop_words(stop_words), **changes)  # type: ignore[arg-type]


def name_of(names: list[str]) -> str:
    """One or several corpora for people."""
    return " ".join(names)


def reading_of(*corpora: Corpus) -> dict[str, Any]:
    """What was skipped while reading, by reason and by name, and what else to know about it, for --json."""
    return {
        "skipped": {
            reason: sum(corpus.skipped.counts[reason] for corpus in corpora)
            for reason in dict.fromkeys(reason for corpus in corpora for reason in corpus.skipped.counts)
        },
        "places": _listed(place for corpus in corpora for place in corpus.skipped),
        "notes": _listed(place for corpus in corpora for place in corpus.notes),
    }


def _listed(places: Iterable[Any]) -> list[dict[str, str]]:
    return [place._asdict() for place in places]


def say_skipped(reading: dict[str, Any]) -> None:
    """The same for people, with only the first few by name."""
    counts, places = reading["skipped"], reading["places"]
    if total := sum(counts.values()):
        reasons = sorted(counts.items(), key=lambda one: -one[1])
        say(f"  {total:,} skipped: {escape(', '.join(f'{count:,} {reason}' for reason, count in reasons))}")
        for one in places[:_SHOWN]:
            say(f"    {escape(one['place'])}: {escape(one['reason'])}")
        if total > _SHOWN:
            say(f"    and {total - _SHOWN:,} more; --json lists them")
    kinds = [one["reason"] for one in reading["notes"]]
    for kind in dict.fromkeys(kinds):
        first = next(one["place"] for one in reading["notes"] if one["reason"] == kind)
        others = f" and {kinds.count(kind) - 1:,} more" if kinds.count(kind) > 1 else ""
        say(f"  {escape(kind)}: {escape(first)}{others}")

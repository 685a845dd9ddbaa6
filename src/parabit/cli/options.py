"""Options that several verbs share; the help of a verb only names those of reading and of words."""

import functools
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parabit.cli.app import COLLAPSED
from parabit.corpus import FORMATS, Corpus, ReadOptions, open_corpus

if TYPE_CHECKING:
    from parabit.progress import Report


def option(help: str, *words: str, panel: str | None = None, **how: Any) -> Any:
    """An option with its help, its names if they do not follow from the parameter, and what stands for its value."""
    names = [word for word in words if word.startswith("-")]
    metavar = next((word for word in words if word not in names), "N")
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, **how)


def argument(help: str, metavar: str, **how: Any) -> Any:
    """An argument with its help, and what stands for its value."""
    return typer.Argument(help=help, metavar=metavar, **how)


_CORPUS = "A file, a folder, a data set (20newsgroups/train), an address (s3://…), or - for standard input"
_FORMAT = (
    f"One of {', '.join(FORMATS)}. Default: by the file's name. lines reads one document per line. In a folder, files "
    "with names of another format are skipped."
)
CorpusName = Annotated[str, argument(f"{_CORPUS}.", "CORPUS")]
CorpusNames = Annotated[list[str], argument(f"{_CORPUS}; repeatable.", "CORPUS")]
IndexFolder = Annotated[Path, argument("The folder of an index.", "INDEX")]
Overwrite = Annotated[bool, option("Replace what has this name.", "--overwrite")]
Table = Annotated[Path | None, option("A table as .csv, .tsv, .jsonl or .parquet.", "--output", "-o", "FILE")]
Counting = Callable[..., dict[str, Any]]  # the parameters of a vocabulary, by default or as in the paper

_read = functools.partial(option, show_default=False, panel=f"{COLLAPSED}: reading")
_word = functools.partial(option, show_default=False, panel=f"{COLLAPSED}: words")


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.meta["--help-all"] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


@dataclass
class Reading:
    """How corpora are read, and those that were."""

    options: ReadOptions = field(default_factory=ReadOptions)
    format: str | None = None
    corpora: list[Corpus] = field(default_factory=list, compare=False)

    def open(self, corpus: str | list[str], report: "Report") -> Corpus:
        """A corpus, read like this."""
        import_module("polars")  # all that read need it, and it has reads go on after Ctrl-C, which is undone here:
        if hasattr(signal, "siginterrupt"):  # a pipe that brings nothing would never be left
            signal.siginterrupt(signal.SIGINT, True)
        self.corpora.append(open_corpus(corpus, self.options, self.format, report))
        return self.corpora[-1]


def reading(
    text_field: Annotated[list[str] | None, _read("Field with the text; repeatable. Default: text.", "FIELD")] = None,
    id_field: Annotated[str | None, _read("Field with the id. Default: id, or path and line.", "FIELD")] = None,
    label_field: Annotated[str | None, _read("Field with labels. Default: labels or label.", "FIELD")] = None,
    format: Annotated[str | None, _read(_FORMAT, "FORMAT", autocompletion=lambda: list(FORMATS))] = None,
    encoding: Annotated[str | None, _read("Default: by the first bytes, or UTF-8 or Windows-1252.", "ENCODING")] = None,
    no_quotes: Annotated[bool, _read("Quotes in CSV and TSV are ordinary characters.", "--no-quotes")] = False,
    include: Annotated[list[str] | None, _read("Read only what matches, such as *.md; repeatable.", "GLOB")] = None,
    exclude: Annotated[list[str] | None, _read("Skip files and folders that match; repeatable.", "GLOB")] = None,
    strict: Annotated[bool, _read("Stop at what cannot be read, instead of skipping it.", "--strict")] = False,
    help_all: Annotated[bool, option("Show all options.", "--help-all", is_eager=True, callback=_show_all)] = False,
) -> Reading:
    """The options of reading a corpus."""
    options = ReadOptions(
        text_fields=tuple(text_field or ("text",)), id_field=id_field, label_field=label_field, encoding=encoding,
        quotes=not no_quotes, include=tuple(include or ()), exclude=tuple(exclude or ()), strict=strict,
    )  # fmt: skip
    return Reading(options, format)


def counting(
    bigrams: Annotated[bool, _word("Count pairs of neighbouring words too.", "--bigrams")] = False,
    min_count: Annotated[int, _word("Drop words and bigrams that occur less often. Default: 1.", min=1)] = 1,
    min_bigram_count: Annotated[int | None, _word("The same for bigrams alone. Default: --min-count.", min=1)] = None,
    max_size: Annotated[int | None, _word("Keep only this many of the most frequent. Default: all.", min=1)] = None,
    pattern: Annotated[
        str | None, _word("A word, in lower case. Default: words, numbers, c++, .net, …", "REGEX")
    ] = None,
    fold_accents: Annotated[bool, _word("Remove accents: é becomes e.", "--fold-accents")] = False,
    min_length: Annotated[int | None, _word("Drop shorter words. Default: 2 characters.", min=1)] = None,
    max_length: Annotated[int | None, _word("Drop longer words. Default: 15 characters.", min=1)] = None,
    stop_words: Annotated[str, _word("Words to drop: english, none, or a file of them.", "NAME|FILE")] = "english",
) -> Counting:
    """The options of a vocabulary."""

    def parameters(paper: bool = False) -> dict[str, Any]:
        from parabit.text import Tokenizer, read_stop_words

        given: dict[str, Any] = {"pattern": pattern, "min_length": min_length, "max_length": max_length}
        changes = {name: value for name, value in given.items() if value is not None}
        changes |= {"fold_accents": fold_accents, "stop_words": read_stop_words(stop_words)}
        tokenizer = replace(Tokenizer.paper() if paper else Tokenizer(), **changes)
        counts = {"min_count": min_count, "min_bigram_count": min_bigram_count, "max_size": max_size}
        return {"tokenizer": tokenizer, "bigrams": bigrams, **counts}

    return parameters


# Parameters of verbs, and the functions whose parameters are the options that they stand for.
SHARED: dict[str, Callable[..., Any]] = {"reading": reading, "counting": counting}

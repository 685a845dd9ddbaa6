"""Options that several verbs share; the help of a verb only names those of reading, of words and of clusters."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from parabit.cli.app import COLLAPSED
from parabit.corpus import FORMATS, ReadOptions
from parabit.corpus.datasets import DATASETS, SPLITS
from parabit.errors import ParabitError

if TYPE_CHECKING:
    from parabit.text import Tokenizer

Function = Callable[..., None]

IndexFolder = Annotated[Path, typer.Argument(metavar="INDEX", help="The folder of an index.")]
ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a model.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what has this name.")]
Device = Literal["auto", "cpu", "cuda"]


def complete_corpus(incomplete: str) -> list[str]:
    """Data sets, with and without their splits, that begin like this, and paths that do.

    If no data set does, the shell completes paths by itself, and better: it knows what a folder is.
    """
    names = [name for dataset in DATASETS for name in (dataset, *(f"{dataset}/{split}" for split in SPLITS))]
    named = [name for name in names if name.startswith(incomplete)]
    if not named:
        return []
    folder, _, start = incomplete.rpartition("/")
    try:
        there = sorted(path.name for path in Path(folder or ".").iterdir() if path.name.startswith(start))
    except OSError:
        there = []
    return named + [f"{folder}/{name}" if folder else name for name in there if not name.startswith(".")]


_CORPUS = "A file, a folder, a data set (20newsgroups/train), an address (s3://…), or - for standard input"
CorpusName = Annotated[str, typer.Argument(metavar="CORPUS", help=f"{_CORPUS}.", autocompletion=complete_corpus)]
CorpusNames = Annotated[
    list[str],
    typer.Argument(metavar="CORPUS", help=f"{_CORPUS}; several are read as one.", autocompletion=complete_corpus),
]


def shared(
    names: Sequence[str], added: Mapping[str, tuple[Any, Any]], make: Callable[..., Any]
) -> Callable[[Function], Function]:
    """A decorator that gives a verb options (each a type and a default) in place of the parameters called `names`.

    `make` turns the values of the options into those parameters. The options stand before --json.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.name not in names]
        place = [parameter.name for parameter in own].index("json")
        new = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
            for name, (kind, default) in added.items()
        ]
        parameters = [*own[:place], *new, *own[place:]]

        @functools.wraps(function)
        def run(**given: Any) -> None:
            values = {name: given.pop(name) for name in added}
            function(**given, **make(**values))

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _option(panel: str, kind: Any, help: str, *names: str, **how: Any) -> Any:
    how.setdefault("show_default", False)
    return Annotated[kind, typer.Option(*names, help=help, rich_help_panel=f"{COLLAPSED}: {panel}", **how)]


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.meta["--help-all"] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


_HELP_ALL = Annotated[bool, typer.Option("--help-all", is_eager=True, callback=_show_all, help="Show all options.")]
_reading = functools.partial(_option, "reading")
_READING: dict[str, tuple[Any, Any]] = {
    "text_field": (
        _reading(list[str] | None, "The field with the text; several are joined. Default: text.", metavar="FIELD"),
        None,
    ),
    "id_field": (
        _reading(str | None, "The field with the id. Default: id. Without one: path and line.", metavar="FIELD"),
        None,
    ),
    "label_field": (
        _reading(str | None, "The field with the label or labels. Default: labels or label.", metavar="FIELD"),
        None,
    ),
    "format": (
        _reading(
            Literal.__getitem__(FORMATS) | None,  # type: ignore[operator]
            f"One of {', '.join(FORMATS)}. Default: by the file's name. lines reads one document per line. In a "
            "folder, files with names of another format are skipped.",
            metavar="FORMAT",
        ),
        None,
    ),
    "encoding": (
        _reading(
            str | None,
            "Of text files. Default: by their first bytes, or else UTF-8 or Windows-1252.",
            metavar="ENCODING",
        ),
        None,
    ),
    "no_quotes": (_reading(bool, "Quotes in CSV and TSV are ordinary characters.", "--no-quotes"), False),
    "include": (
        _reading(
            list[str] | None,
            "Read only files whose name, or path in the folder, matches; repeatable. ** matches folders.",
            metavar="GLOB",
        ),
        None,
    ),
    "exclude": (_reading(list[str] | None, "Skip files and folders that match; repeatable.", metavar="GLOB"), None),
    "strict": (_reading(bool, "Stop at what cannot be read, instead of skipping it.", "--strict"), False),
    "help_all": (_HELP_ALL, False),
}


def _read_options(format: str | None, help_all: bool, **given: Any) -> dict[str, Any]:
    options = ReadOptions(
        text_fields=tuple(given["text_field"] or ("text",)),
        id_field=given["id_field"],
        label_field=given["label_field"],
        encoding=given["encoding"],
        quotes=not given["no_quotes"],
        include=tuple(given["include"] or ()),
        exclude=tuple(given["exclude"] or ()),
        strict=given["strict"],
    )
    return {"options": options, "format": format}


# Gives a verb the options of reading a corpus, in place of its parameters `options` and `format`.
reads_corpus = shared(("options", "format"), _READING, _read_options)

_words = functools.partial(_option, "words")
_WORDS: dict[str, tuple[Any, Any]] = {
    "bigrams": (_words(bool, "Count pairs of neighbouring words too.", "--bigrams"), False),
    "min_count": (_words(int, "Drop words and bigrams that occur less often.", min=1, show_default=True), 1),
    "min_bigram_count": (_words(int | None, "The same for bigrams alone. Default: --min-count.", min=1), None),
    "max_size": (_words(int | None, "Keep only this many of the most frequent. Default: all.", min=1), None),
    "pattern": (
        _words(
            str | None,
            "What a word looks like, in lower case. Default: words, numbers, c++, c#, f#, .net.",
            metavar="REGEX",
        ),
        None,
    ),
    "fold_accents": (_words(bool, "Remove accents: é becomes e.", "--fold-accents"), False),
    "min_length": (_words(int | None, "Drop shorter words. Default: 2 characters.", min=1), None),
    "max_length": (_words(int | None, "Drop longer words. Default: 15 characters.", min=1), None),
    "stop_words": (
        _words(
            str,
            "Words to drop: english, none, or a file with one per line.",
            metavar="NAME|FILE",
            autocompletion=lambda: ["english", "none"],
            show_default=True,
        ),
        "english",
    ),
}


def _word_options(
    pattern: str | None,
    fold_accents: bool,
    min_length: int | None,
    max_length: int | None,
    stop_words: str,
    **counts: Any,
) -> dict[str, Any]:
    def tokenizer(paper: bool = False) -> "Tokenizer":
        from parabit.text import Tokenizer, read_stop_words

        given = {"pattern": pattern, "min_length": min_length, "max_length": max_length}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        base = Tokenizer.paper() if paper else Tokenizer()
        return replace(base, fold_accents=fold_accents, stop_words=read_stop_words(stop_words), **changes)

    return {"tokenizer": tokenizer, "counts": counts}


# Gives a verb the options of a vocabulary, in place of its parameters `tokenizer`, a function that makes the tokenizer
# (the default one or the paper's, changed as asked), and `counts`, the other parameters of a vocabulary.
counts_words = shared(("tokenizer", "counts"), _WORDS, _word_options)

_cluster = functools.partial(_option, "a cluster")
_CLUSTER: dict[str, tuple[Any, Any]] = {
    "engine": (
        _cluster(
            Literal["local", "ray"],
            "Work on this machine, or on a Ray cluster whose nodes all see the corpus.",
            show_default=True,
        ),
        "local",
    ),
    "address": (
        _cluster(
            str | None,
            "HOST:PORT of the cluster's head, or auto on one of its nodes. Default: RAY_ADDRESS, or a cluster of this "
            "machine alone, until the end.",
            metavar="ADDRESS",
        ),
        None,
    ),
    "workers": (_cluster(int | None, "Processes that load the model. Default: one per core.", min=1), None),
    "worker_cores": (_cluster(int | None, "Cores of each worker. Default: 1.", min=1), None),
}


def _cluster_options(engine: str, **given: Any) -> dict[str, Any]:
    unused = [name for name, value in given.items() if value is not None and engine != "ray"]
    if unused:
        raise ParabitError(f"--{unused[0].replace('_', '-')} is for a cluster", hint="add --engine ray")
    return {"cluster": given if engine == "ray" else None}


# Gives a verb the options of a cluster, in place of its parameter `cluster`: None, or the options of one.
may_use_cluster = shared(("cluster",), _CLUSTER, _cluster_options)

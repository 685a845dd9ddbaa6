"""`parabit demo`, `datasets` and `vocabulary`: what can be tried at once, what can be read, and its words."""

import shutil
import sys
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated

import parabit
from parabit.cli.command import (
    Corpora,
    Counting,
    Overwrite,
    Reading,
    Result,
    Table,
    argument,
    option,
    verb,
)
from parabit.cli.index import build_index, show_index
from parabit.cli.output import (
    check_file,
    counted,
    escape,
    headline,
    nearness,
    say,
    say_skipped,
    write_table,
)
from parabit.corpus import as_corpus
from parabit.corpus.datasets import DATASETS, SPLITS, cache_folder, data_folder, find_dataset
from parabit.errors import ParabitError
from parabit.progress import Report

QUESTIONS = (
    "shortest path between two nodes of a graph",
    "solve a sparse linear system",
    "send an e-mail message",
)
_HITS, _SHOWN = 4, ("id", "title", "distance", "score")
_WORDS, _BIGRAMS = 8, 5  # that are shown


def _show_demo(result: Result) -> None:
    if not result["kept"]:
        show_index(result)
    for question in result["questions"]:
        say(f"\n[bold underline]{escape(question['query'])}[/bold underline]")
        for place, hit in enumerate(question["hits"], 1):
            say(f"{place:>2}. [bold]{escape(hit['title'])}[/bold]")
            say(
                f"    {escape(hit['id'])}  [dim]{nearness(hit['score'], hit['distance'], result['bits'])}[/dim]"
            )
    say(f"\nSearch page: [bold]parabit serve {escape(result['index'])}[/bold]")
    say("Your own documents: [bold]parabit demo PATH[/bold]; your own question: --ask TEXT")


@verb(_show_demo)
def demo(
    path: Annotated[
        str | None, argument("Your documents. Default: those of installed packages.", "PATH")
    ] = None,
    ask: Annotated[list[str] | None, option("What to look for; repeatable.", "TEXT")] = None,
    *,
    reading: Reading,
    report: Report,
) -> Result:
    """Index a collection and answer questions, in less than a minute.

    Without PATH it reads the documentation of the installed Python packages; nothing is downloaded, and no package is
    imported. The index is kept in your cache folder.

    Examples:
        parabit demo --ask "parse a date from a string"
        parabit demo ~/papers
    """
    if ask is not None and not all(text.strip() for text in ask):
        raise ParabitError("a question is empty", hint="give --ask a text")
    folder = _folder(path)
    result: Result = {
        "index": str(folder),
        "corpus": path or "docstrings",
        "kept": path is None and folder.exists(),
    }
    if not result["kept"]:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Kept in memory: to parse all packages takes longer than everything else.
        documents = as_corpus(list(reading.open(path or "docstrings", report)))
        result |= build_index(documents, folder, report, None, {}, overwrite=True)
        for other in folder.parent.glob("docstrings-*.index") if path is None else ():
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
    queries = ask or (list(QUESTIONS) if path is None else result["examples"])
    with parabit.Index.open(folder) as index:
        result["bits"], found = index.bits, index.search(queries, _HITS)
        shown = [[{name: getattr(hit, name) for name in _SHOWN} for hit in hits] for hits in found]
    return {
        **result,
        "questions": [
            {"query": query, "hits": hits} for query, hits in zip(queries, shown, strict=True)
        ],
    }


def _folder(path: str | None) -> Path:
    """Where the index of some documents is kept; that of the packages changes its name with their versions."""
    if path is None:
        name, parts = (
            "docstrings",
            [sys.prefix, *sorted(f"{one.name} {one.version}" for one in distributions())],
        )
    else:
        name, parts = "documents", [str(Path(path).absolute())]
    digest = sha256(
        "\n".join([parabit.__version__, *parts]).encode("utf-8", "surrogateescape")
    ).hexdigest()[:12]
    return cache_folder() / "demo" / f"{name}-{digest}.index"


def _show_datasets(result: Result) -> None:
    from rich.table import Table as Grid

    say(f"Data sets in {escape(result['folder'])}")
    grid = Grid.grid(padding=(0, 2))
    for row in result["datasets"]:
        state = "[green]here[/green]" if row["here"] else "missing"
        about = f"{row['about']} ({row['licence']})" + ("" if row["here"] else f"; {row['needs']}")
        grid.add_row(f"[bold]{row['name']}[/bold]", state, escape(about))
    say(grid, fold=True)


@verb(_show_datasets)
def datasets() -> Result:
    """List the data sets that can be read by name.

    They are kept in the folder PARABIT_DATA, by default the user's cache folder. Read one as a corpus with its split,
    such as 20newsgroups/train, or all of it by its bare name.

    Examples:
        parabit datasets
        PARABIT_DATA=~/corpora parabit datasets --json
    """
    rows = [
        {
            "name": name,
            "splits": list(SPLITS),
            "about": dataset.about,
            "licence": dataset.licence,
            "here": bool(dataset.found(data_folder())) or not dataset.files,
            "needs": f"downloaded on first use, from {dataset.urls[0]}"
            if dataset.urls
            else dataset.obtain,
        }
        for name, dataset in ((name, find_dataset(name)) for name in DATASETS)
    ]
    return {"folder": str(data_folder()), "datasets": rows}


def _show_words(result: Result) -> None:
    headline(
        result["corpus"], f"{counted(result['documents'], 'document')} in {result['seconds']:.1f} s"
    )
    say_skipped(result)
    say(
        f"  {counted(result['tokens'], 'token')}, {result['tokens'] / result['documents']:,.0f} per document"
    )
    say(f"  {counted(result['words'], 'word')}, which cover {result['coverage']:.1%} of the tokens")
    say(f"    most frequent: {escape(', '.join(result['frequent_words']))}")
    if result["bigrams"]:
        say(f"  {counted(result['bigrams'], 'bigram')}")
        say(f"    most frequent: {escape(', '.join(result['frequent_bigrams']))}")


@verb(_show_words)
def vocabulary(
    corpus: Corpora,
    output: Table = None,
    overwrite: Overwrite = False,
    *,
    reading: Reading,
    counting: Counting,
    report: Report,
) -> Result:
    """Count the words of a corpus.

    Words are runs of letters and digits in lower case, of 2 to 15 characters, without English stop words. Of more than
    2 million words or 5 million bigrams, the rarest are dropped while counting.

    Examples:
        parabit vocabulary 20newsgroups/train --bigrams --min-count 5
        zcat notes.txt.gz | parabit vocabulary - --stop-words none --json
    """
    from parabit.text import VocabularyRule, build_vocabulary

    rule = VocabularyRule(**counting())
    check_file(output, overwrite)
    built = build_vocabulary(reading.open(corpus, report), rule, report)
    if output is not None:
        write_table(built.table(), output)
    words = len(built.words)
    return {
        **{
            name: getattr(built, name)
            for name in ("documents", "tokens", "coverage", "fingerprint")
        },
        "words": words,
        "bigrams": len(built.bigrams),
        "frequent_words": built.words[:_WORDS],
        "frequent_bigrams": [
            built.name(feature) for feature in range(words, len(built))[:_BIGRAMS]
        ],
    }

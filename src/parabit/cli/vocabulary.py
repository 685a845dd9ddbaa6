"""`parabit vocabulary`: what words a corpus has."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, progress, say, verb
from parabit.cli.options import CorpusNames, Overwrite, counts_words, reads_corpus
from parabit.cli.output import check_table, reading_of, say_skipped, write_table
from parabit.corpus import ReadOptions, open_corpus

if TYPE_CHECKING:
    from parabit.text import Tokenizer


@verb
@reads_corpus
@counts_words
def vocabulary(
    corpus: CorpusNames,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write a table: .csv, .tsv, .jsonl or .parquet."),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
    tokenizer: "Callable[[], Tokenizer]",
    counts: dict[str, Any],
) -> None:
    """Count the words of a corpus.

    Words are runs of letters and digits in lower case, of 2 to 15 characters, without English stop words. Of more than
    2 million words or 5 million bigrams, the rarest are dropped while counting.

    Examples:
        parabit vocabulary 20newsgroups/train --bigrams --min-count 5
        zcat notes.txt.gz | parabit vocabulary - --stop-words none --json
    """
    from parabit.text import VocabularyRule, build_vocabulary

    rule = VocabularyRule(tokenizer=tokenizer(), **counts)
    if output is not None:
        check_table(output, overwrite)
    start = time.perf_counter()
    with progress(quiet or json) as report:
        documents = open_corpus(corpus, options, format, report)
        built = build_vocabulary(documents, rule, report)
        if output is not None:
            write_table(built.table(), output)
    seconds = time.perf_counter() - start
    result: dict[str, Any] = {
        "corpus": " ".join(corpus),
        "documents": built.documents,
        "tokens": built.tokens,
        "words": len(built.words),
        "bigrams": len(built.bigrams),
        "coverage": built.coverage,
        "skipped": len(documents.skipped),
        "seconds": round(seconds, 3),
        "fingerprint": built.fingerprint,
        "reading": reading_of(documents),
    }
    if json:
        print_json(result)
        return
    rate = built.documents / seconds
    say(
        f"[bold]{escape(' '.join(corpus))}[/bold]: {built.documents:,} documents in {seconds:.1f} s "
        f"({rate:,.0f} per second)"
    )
    say_skipped(result["reading"])
    say(f"  {built.tokens:,} tokens, {built.tokens / built.documents:,.0f} per document")
    say(f"  {len(built.words):,} words, which cover {built.coverage:.1%} of the tokens")
    say(f"    most frequent: {escape(', '.join(built.words[:8]))}")
    if len(built.bigrams):
        say(f"  {len(built.bigrams):,} bigrams")
        first = range(len(built.words), len(built))[:5]
        say(f"    most frequent: {escape(', '.join(map(built.name, first)))}")

"""`parabit vocabulary`: what words a corpus has."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, progress, say, verb
from parabit.cli.options import (
    Bigrams,
    CorpusNames,
    FoldAccents,
    MaxLength,
    MaxSize,
    MinBigramCount,
    MinCount,
    MinLength,
    Pattern,
    StopWords,
    make_tokenizer,
    name_of,
    reading_of,
    reads_corpus,
    say_skipped,
)
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import ParabitError

if TYPE_CHECKING:
    from parabit.text import Vocabulary


@verb
@reads_corpus
def vocabulary(
    corpus: CorpusNames,
    bigrams: Bigrams = False,
    min_count: MinCount = 1,
    min_bigram_count: MinBigramCount = None,
    max_size: MaxSize = None,
    pattern: Pattern = None,
    fold_accents: FoldAccents = False,
    min_length: MinLength = None,
    max_length: MaxLength = None,
    stop_words: StopWords = "english",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the vocabulary as Parquet.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an old vocabulary file.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Count the words of a corpus, and its bigrams, and show how much of the text they cover.

    Words are runs of letters and digits in lower case, of 2 to 15 characters, without English stop words; each of these
    can be set. Of more than 2 million words or 5 million bigrams, the rarest are dropped while counting. Examples:

        parabit vocabulary 20newsgroups/train --bigrams --min-count 5

        parabit vocabulary articles.csv --text-field body -o words.parquet

        zcat notes.txt.gz | parabit vocabulary - --stop-words none --json
    """
    from parabit.text import VocabularyRule, build_vocabulary

    rule = VocabularyRule(
        tokenizer=make_tokenizer(pattern, fold_accents, min_length, max_length, stop_words),
        bigrams=bigrams,
        min_count=min_count,
        min_bigram_count=min_bigram_count,
        max_size=max_size,
    )
    if output is not None:
        _check_output(output, overwrite)
    start = time.perf_counter()
    with progress(quiet or json) as report:
        documents = open_corpus(corpus, options, format, report)
        built = build_vocabulary(documents, rule, report)
        if output is not None:
            built.save(output)
    result = summary(built, len(documents.skipped), time.perf_counter() - start)
    result["reading"] = reading_of(documents)
    if json:
        print_json({"corpus": name_of(corpus), **result})
    else:
        show(name_of(corpus), built, result)


def summary(built: "Vocabulary", skipped: int, seconds: float) -> dict[str, Any]:
    """The figures of a vocabulary."""
    return {
        "documents": built.documents,
        "tokens": built.tokens,
        "words": len(built.words),
        "bigrams": len(built.bigrams),
        "coverage": built.coverage,
        "skipped": skipped,
        "seconds": round(seconds, 3),
        "fingerprint": built.fingerprint,
    }


def show(name: str, built: "Vocabulary", result: dict[str, Any]) -> None:
    """The same for people, with the most frequent words."""
    seconds, rate = result["seconds"], built.documents / result["seconds"]
    say(f"[bold]{escape(name)}[/bold]: {built.documents:,} documents in {seconds:.1f} s ({rate:,.0f} per second)")
    say_skipped(result["reading"])
    say(f"  {built.tokens:,} tokens, {built.tokens / built.documents:,.0f} per document")
    say(f"  {len(built.words):,} words, which cover {built.coverage:.1%} of the tokens")
    say(f"    most frequent: {escape(', '.join(built.words.head(8)))}")
    if len(built.bigrams):
        say(f"  {len(built.bigrams):,} bigrams")
        say(f"    most frequent: {escape(', '.join(built.names.slice(len(built.words), 5)))}")


def _check_output(output: Path, overwrite: bool) -> None:
    """Find out before the work, not after, that its result could not be saved."""
    from parabit.storage import need_room_for_file
    from parabit.text import is_vocabulary

    need_room_for_file(output)
    if output.exists() and not overwrite:
        raise ParabitError(f"{output} exists already", hint="choose another name, or replace it with --overwrite")
    if output.exists() and not is_vocabulary(output):
        raise ParabitError(f"{output} exists and is not a vocabulary", hint="nothing was changed; use another name")

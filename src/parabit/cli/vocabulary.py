"""`parabit vocabulary`: what words a corpus has."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.corpus_options import (
    CorpusName,
    Encoding,
    Format,
    IdField,
    LabelField,
    NoQuotes,
    SkipBad,
    TextField,
    read_options,
)
from parabit.cli.frame import Json, Quiet, print_json, progress, say, verb
from parabit.cli.vocabulary_options import (
    LETTERS,
    Bigrams,
    MaxLength,
    MaxSize,
    MinBigramCount,
    MinCount,
    MinLength,
    Pattern,
    StopWords,
)
from parabit.corpus import Corpus, open_corpus
from parabit.errors import ParabitError
from parabit.progress import Report

if TYPE_CHECKING:
    from parabit.text import Vocabulary, VocabularyRule


@verb
def vocabulary(
    corpus: CorpusName,
    bigrams: Bigrams = False,
    min_count: MinCount = 1,
    min_bigram_count: MinBigramCount = None,
    max_size: MaxSize = None,
    pattern: Pattern = LETTERS,
    min_length: MinLength = 2,
    max_length: MaxLength = 15,
    stop_words: StopWords = "english",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the vocabulary as Parquet.")
    ] = None,
    bags: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Save the corpus as arrays of word and bigram ids.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an old vocabulary file or bags folder.")
    ] = False,
    text_field: TextField = None,
    id_field: IdField = None,
    label_field: LabelField = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    no_quotes: NoQuotes = False,
    skip_bad: SkipBad = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count the words of a corpus, and its bigrams, and tell how much of the text they cover.

    Words are runs of letters in lower case, of 2 to 15 characters, without English stop words; each of these can be
    set. Examples:

        parabit vocabulary 20newsgroups/train --bigrams --min-count 5

        parabit vocabulary articles.csv --text-field body -o words.parquet

        zcat notes.txt.gz | parabit vocabulary - --stop-words none --json
    """
    from parabit.text import Tokenizer, VocabularyRule, read_stop_words

    rule = VocabularyRule(
        tokenizer=Tokenizer(pattern, True, min_length, max_length, read_stop_words(stop_words)),
        bigrams=bigrams,
        min_count=min_count,
        min_bigram_count=min_bigram_count,
        max_size=max_size,
    )
    options = read_options(text_field, id_field, label_field, encoding, no_quotes, skip_bad)
    if output is not None:
        _check_output(output, bags, overwrite)
    start = time.perf_counter()
    with progress(quiet or json) as report:
        documents = open_corpus(corpus, options, format, report)
        built = _built(documents, rule, bags, overwrite, report)
        if output is not None:
            built.save(output)
    result = summary(built, documents.skipped, time.perf_counter() - start)
    if json:
        print_json({"corpus": corpus, **result})
    else:
        show(corpus, built, result)


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
    say(f"[bold]{escape(name)}[/bold]: {built.documents:,} documents in {seconds:.1f} s ({rate:,.0f} a second)")
    if result["skipped"]:
        say(f"  {result['skipped']:,} bad records left out")
    say(f"  {built.tokens:,} tokens, {built.tokens / built.documents:,.0f} a document")
    say(f"  {len(built.words):,} words, which cover {built.coverage:.1%} of the tokens")
    say(f"    most frequent: {escape(', '.join(built.words.head(8)))}")
    if len(built.bigrams):
        say(f"  {len(built.bigrams):,} bigrams")
        say(f"    most frequent: {escape(', '.join(built.names.slice(len(built.words), 5)))}")


def _check_output(output: Path, bags: Path | None, overwrite: bool) -> None:
    """Find out before the work, not after, that its result could not be kept."""
    from parabit.storage import need_room_for_file
    from parabit.text import is_vocabulary

    need_room_for_file(output)
    if bags is not None and output.absolute() == bags.absolute():
        raise ParabitError(f"{output} cannot be both a file and a folder", hint="give -o and --bags two names")
    if output.exists() and not overwrite:
        raise ParabitError(f"{output} is there already", hint="choose another name, or replace it with --overwrite")
    if output.exists() and not is_vocabulary(output):
        raise ParabitError(f"{output} is there and is no vocabulary", hint="nothing was touched; choose another name")


def _built(
    documents: Corpus, rule: "VocabularyRule", bags: Path | None, overwrite: bool, report: Report
) -> "Vocabulary":
    from parabit.text import build_bags, build_vocabulary

    if bags is None:
        return build_vocabulary(documents, rule, report)
    return build_bags(documents, bags, rule, overwrite, report)[0]

"""`parabit demo`: the main job on documents that every machine has."""

import time

from parabit.cli.frame import Json, Quiet, print_json, progress, say, verb
from parabit.cli.vocabulary import show, summary
from parabit.corpus import open_corpus
from parabit.text import VocabularyRule, build_vocabulary


@verb
def demo(json: Json = False, quiet: Quiet = False) -> None:
    """Read the documentation of the Python packages installed here, and show what words it is made of.

    Nothing is downloaded, and no package is imported or run.
    """
    start = time.perf_counter()
    with progress(quiet or json) as report:
        documents = open_corpus("docstrings")
        built = build_vocabulary(documents, VocabularyRule(bigrams=True, min_count=5), report)
    result = summary(built, documents, time.perf_counter() - start)
    if json:
        print_json(result)
        return
    show("docstrings", built, result)
    say("\nNext, your own documents: [bold]parabit vocabulary FILE-OR-FOLDER --bigrams[/bold]")

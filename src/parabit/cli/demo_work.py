"""The work of a demo: read, train, index and measure, and keep all of it in a folder that is whole or not there."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from parabit.cli.demo_kept import INDEX, MODEL, Place, is_demo, write_figures
from parabit.corpus import Corpus, Document, as_corpus
from parabit.errors import CorpusError
from parabit.progress import Progress, Report

FEWEST = 10  # documents that anything can be learned from
MOST, MOST_CHARACTERS = 100_000, 300_000_000  # documents that are indexed, in memory meanwhile

_QUESTIONS = 3
_ENDS = re.compile(r"(?<=[.!?])\s+|\n")  # of sentences
_FEWEST_WORDS, _FEWEST_LETTERS = 3, 16  # of words that are long enough to tell something
_LONGEST_QUESTION = 80
_PLAIN = 0.9  # of its characters are letters and spaces: no code, no address


class Seconds(dict[str, float]):
    """How long each stage of the work took."""

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Measure a stage."""
        start = time.perf_counter()
        yield
        self[stage] = round(time.perf_counter() - start, 3)


def make(corpus: Corpus, name: str, bits: int, place: Place, report: Report) -> dict[str, Any]:
    """Do all the work of a demo and keep it; what is told of it."""
    from parabit.cli.demo_figures import measure
    from parabit.index import Index
    from parabit.model import learn_closed_form, save_model
    from parabit.storage import whole_folder

    place.prepare()
    seconds = Seconds()
    with whole_folder(place.folder, replaces=is_demo) as folder:
        with seconds.of("reading"):
            documents, count = spread_over(corpus, report)
        if len(documents) < FEWEST:
            raise CorpusError(
                f"{name} has {len(documents)} documents, and codes are learned from {FEWEST} or more",
                hint="give a folder with more of them, or --format lines for one document per line",
            )
        with seconds.of("training"):
            model = learn_closed_form(as_corpus(documents), bits, report=report)
            save_model(model, folder / MODEL)
        with seconds.of("indexing"), Index.build(documents, folder / INDEX, model=model, report=report) as index:
            indexed, size = len(index), index.info()["bytes"]
        with seconds.of("measuring"):
            measured = measure(model, documents, name, report)
        figures = {
            "documents": indexed,
            "left_out": len(documents) - indexed,
            "found": count,
            "skipped": len(corpus.skipped),
            "characters": sum(len(document.text) for document in documents),
            "labels": len({label for document in documents for label in document.labels[:1]}),
            "sampled": model.config["training"]["sampled"],
            "bits": bits,
            "bytes_a_document": -(-bits // 8),
            "bytes": size,
            "seconds": seconds,
            "figures": measured,
            "questions": questions_of(documents),
        }
        write_figures(folder, figures)
    place.forget_others()
    return figures


def spread_over(corpus: Corpus, report: Report, most: int = MOST) -> tuple[list[Document], int]:
    """The documents of a corpus, or as many as fit, evenly spread over it; and how many there are.

    Example:
        >>> from parabit.corpus import as_corpus
        >>> documents, count = spread_over(as_corpus([f"text {number}" for number in range(10)]), print, most=4)
        >>> [document.id for document in documents], count
        (['0', '4', '8'], 10)
    """
    kept: list[Document] = []
    step, count, size = 1, 0, 0
    for document in corpus:
        if count % step == 0:
            kept.append(document)
            size += len(document.text)
            if len(kept) > most or size > MOST_CHARACTERS:  # every other one is enough, of those to come as well
                kept = kept[::2]
                step, size = step * 2, sum(len(one.text) for one in kept)
        count += 1
        if count % 500 == 0:
            report(Progress("reading documents", count, "documents", corpus.share_read))
    return kept, count


def questions_of(documents: list[Document]) -> list[dict[str, str]]:
    r"""Questions from a collection itself: how a few documents begin, spread over it.

    Example:
        >>> texts = ["# Moon\n\nThe moon goes around the earth. It is far.", "no", "Boats float on a wide river"]
        >>> [question["query"] for question in questions_of([Document(str(at), text) for at, text in enumerate(texts)])]
        ['The moon goes around the earth', 'Boats float on a wide river']
    """
    questions: list[dict[str, str]] = []
    asked: set[str] = set()
    for part in range(_QUESTIONS):
        start, end = (len(documents) * at // _QUESTIONS for at in (part, part + 1))
        middle = (start + end) // 2
        for document in (*documents[middle:end], *documents[start:middle]):
            query = next(_sentences(document.text), "")
            if query and query not in asked:
                asked.add(query)
                questions.append({"query": query, "from": document.id})
                break
    return questions


def _sentences(text: str) -> Iterator[str]:
    """Sentences of the beginning of a text that could be a question, cut after whole words where they are long."""
    for found in _ENDS.split(text[:2000]):
        sentence = " ".join(found.split()).strip("#*>-=~_|:;,.!? ")
        if len(sentence) > _LONGEST_QUESTION:
            sentence = sentence[:_LONGEST_QUESTION].rpartition(" ")[0]
        words = [word for word in sentence.split() if len(word) > 3 and word.isalpha()]
        plain = sum(char.isalpha() or char == " " for char in sentence)
        tells = len(words) >= _FEWEST_WORDS and sum(map(len, words)) >= _FEWEST_LETTERS
        if tells and sentence[0].isalpha() and plain >= _PLAIN * len(sentence):
            yield sentence

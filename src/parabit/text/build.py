"""From a corpus to its vocabulary and bags; the text is read once."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from parabit.corpus import Corpus, Document, as_corpus
from parabit.corpus.unique import UniqueIds
from parabit.errors import VocabularyError
from parabit.parallel import ordered_map
from parabit.progress import Progress, Report, silent
from parabit.storage import whole_folder
from parabit.text.bags import Bags, BagsWriter, BatchBags, batch_bags, is_bags
from parabit.text.choosing import need_tokens, of_words, with_bigrams
from parabit.text.counting import VocabularyRule, count_bigrams, count_words
from parabit.text.spool import TokenSpool
from parabit.text.vocabulary import Vocabulary

Documents = Corpus | Iterable[str | Document]
Result = TypeVar("Result")


def build_vocabulary(documents: Documents, rule: VocabularyRule | None = None, report: Report = silent) -> Vocabulary:
    """Count the words, and by the rule the bigrams, of a corpus.

    Memory does not grow with the corpus, but with the vocabulary; 4 bytes a token are needed on disk meanwhile.

    Example:
        >>> vocabulary = build_vocabulary(["hubble space telescope", "space telescope"], VocabularyRule(bigrams=True))
        >>> vocabulary.names.to_list()
        ['space', 'telescope', 'hubble', 'space telescope', 'hubble space']
    """
    rule = rule or VocabularyRule()
    with TokenSpool() as spool:
        for _, tokens in _worked(documents, rule.tokenizer.tokenize, report):
            spool.append(tokens)
        return _counted(spool, rule, report, lambda bags: None)


def count_bags(
    documents: Documents, rule: VocabularyRule | None = None, report: Report = silent
) -> tuple[Vocabulary, BatchBags]:
    """Count a corpus's vocabulary and keep its bags in memory, reading the text only once.

    Example:
        >>> vocabulary, bags = count_bags(["hubble space telescope", "space telescope"])
        >>> len(vocabulary), bags.feature_lengths.tolist()
        (3, [3, 2])
    """
    rule, parts = rule or VocabularyRule(), list[BatchBags]()
    with TokenSpool() as spool:
        for _, tokens in _worked(documents, rule.tokenizer.tokenize, report):
            spool.append(tokens)
        vocabulary = _counted(spool, rule, report, parts.append)
    return vocabulary, BatchBags(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def build_bags(
    documents: Documents,
    folder: Path | str,
    rule: VocabularyRule | None = None,
    overwrite: bool = False,
    report: Report = silent,
) -> tuple[Vocabulary, Bags]:
    """Count a corpus's vocabulary and write its bags, reading the text only once."""
    rule, folder = rule or VocabularyRule(), Path(folder)
    with (
        whole_folder(folder, is_bags if overwrite else None) as partial,
        BagsWriter(partial) as writer,
        TokenSpool(beside=partial) as spool,
    ):
        for ids, tokens in _worked(documents, rule.tokenizer.tokenize, report):
            writer.append_ids(ids)
            spool.append(tokens)
        vocabulary = _counted(spool, rule, report, writer.append)
        writer.finish(vocabulary)
    return vocabulary, Bags.open(folder, vocabulary)


def write_bags(
    documents: Documents, vocabulary: Vocabulary, folder: Path | str, overwrite: bool = False, report: Report = silent
) -> Bags:
    """Write the bags of a corpus with a vocabulary that is there already."""
    folder = Path(folder)
    known = 0

    def in_bags(texts: list[str]) -> BatchBags:
        return batch_bags(vocabulary.tokenizer.tokenize(texts), vocabulary)

    with whole_folder(folder, is_bags if overwrite else None) as partial, BagsWriter(partial) as writer:
        for ids, bags in _worked(documents, in_bags, report):
            writer.append_ids(ids)
            writer.append(bags)
            known += len(bags.tokens)
        if not known:
            raise VocabularyError(
                "no document has a word of the vocabulary", hint="are both of one language and subject?"
            )
        writer.finish(vocabulary)
    return Bags.open(folder, vocabulary)


def _batches(corpus: Corpus, report: Report) -> Iterator[tuple[list[str], list[str]]]:
    """The ids and texts of a corpus in batches, with progress told and ids watched."""
    seen = UniqueIds(corpus)
    done = 0
    for batch in corpus.batches():
        share = corpus.share_read  # before the ids are checked: that may read the corpus again
        ids = [document.id for document in batch]
        seen.add(ids)
        done += len(batch)
        report(Progress("reading", done, "documents", share))
        yield ids, [document.text for document in batch]


def _worked(
    documents: Documents, work: Callable[[list[str]], Result], report: Report
) -> Iterator[tuple[list[str], Result]]:
    """What becomes of each batch of texts, worked on all cores, with the ids of its documents."""
    return ordered_map(lambda batch: (batch[0], work(batch[1])), _batches(as_corpus(documents), report))


def _counted(spool: TokenSpool, rule: VocabularyRule, report: Report, take: Callable[[BatchBags], None]) -> Vocabulary:
    """The vocabulary of the tokens put aside; their bags are handed on as they are made."""
    need_tokens(spool.documents, spool.tokens, rule)
    vocabulary = of_words(count_words(spool, rule), rule, spool.documents, spool.tokens)
    if rule.bigrams:
        step = _steps("counting bigrams", spool.batches, report)
        bigrams = count_bigrams(spool, vocabulary.word_ids, vocabulary.counts, rule.least_bigrams, step)
        vocabulary = with_bigrams(vocabulary, bigrams, rule)
    frequencies = np.zeros(len(vocabulary), dtype=np.int64)
    step = _steps("making bags", spool.batches, report)
    for bags in ordered_map(lambda tokens: batch_bags(tokens, vocabulary), spool):
        np.add.at(frequencies, bags.features, 1)  # a feature stands once a document
        take(bags)
        step()
    return replace(vocabulary, document_frequencies=frequencies)


def _steps(stage: str, total: int, report: Report) -> Callable[[], None]:
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        report(Progress(stage, done, "batches", done / total))

    return step

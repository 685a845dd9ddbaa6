"""What an index holds, seen from outside, compared with what it may hold."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from isolation import Ending, Limits, isolated
from world import State, text_of, word_of

_NOT_FOUND = re.compile(r"no documents? ha(s|ve)")


@dataclass(frozen=True)
class Observation:
    """The documents of an index, and how each is found."""

    texts: dict[str, str]  # by id
    found_by_word: dict[int, list[str]]  # the ids that the word of each number finds
    notes: dict[int, list[str]]  # what was said about each of these searches
    found_by_code: dict[str, bool]  # whether each document is found by the code of its text
    says_no_words: bool = False  # words cannot be searched, which every answer says


def observe(folder: Path, numbers: Sequence[int], write: bool, user: int | None = None) -> Ending:
    """Look at an index in a process of its own, perhaps as another user; the value is an Observation."""
    return isolated(partial(_observation_of, folder, numbers, write), Limits(user=user))


def _observation_of(folder: Path, numbers: Sequence[int], write: bool) -> Observation:
    from parabit import Index
    from parabit.errors import WordsMissingError

    words = [word_of(number) for number in numbers]
    with Index.open(folder, write=write) as index:
        # Words first: a reader must not have caught up by something else that it did.
        says_no_words = False
        try:
            by_word = index.search(words, k=5, rank="words")
        except WordsMissingError:  # a reader that cannot build them answers by code, and says so
            by_word = index.search(words, k=5)
            says_no_words = all("cannot be searched" in notes[0] for notes in by_word.notes)
        stored = index.stored(index.ids_where({}))
        texts = {str(document.id): document.text for document in stored}
        near = index.search([*texts.values()], radius=0, rank="hamming") if texts else None
        codes = [] if near is None else near.ids
        return Observation(
            texts,
            {
                number: [*map(str, ids)]
                for number, ids in zip(numbers, by_word.ids, strict=True)
                if ids
            },
            {
                number: [*notes]
                for number, notes in zip(numbers, by_word.notes, strict=True)
                if notes
            },
            {identity: identity in ids for identity, ids in zip(texts, codes, strict=True)},
            says_no_words,
        )


def state_of(observation: Observation, numbers: Iterable[int]) -> State:
    """The documents as numbers; -1 for a text that nobody has written."""
    number_by_text = {text_of(number): number for number in numbers}
    return {
        identity: number_by_text.get(text.strip(), -1)
        for identity, text in observation.texts.items()
    }


def not_allowed(
    state: State,
    before: State | None,
    after: State | None,
    whole: bool,
    renamed: Sequence[tuple[str, str]] = (),
) -> list[str]:
    """What is wrong with the documents: they must be those before a step or those after it.

    Unless it is `whole`, each document may be either. One that was renamed must be there by one of its names; it may
    be there by both, as what is new comes before what is old goes.
    """
    allowed = [one for one in (before, after) if one is not None]
    if state in allowed:
        return []
    if whole or before is None or after is None:
        nearest = min(allowed, key=lambda one: len(one.items() ^ state.items()))
        return [f"between before and after: {_few(nearest.items() ^ state.items())}"]
    problems = [
        f"{identity} is {state.get(identity)}"
        for identity in sorted(before.keys() | after.keys() | state.keys())
        if state.get(identity) not in (before.get(identity), after.get(identity))
    ]
    for old, new in renamed:
        if old in before and new in after and old not in state and new not in state:
            problems.append(f"{old} was renamed to {new}, and neither is there")
    return problems


def not_found(observation: Observation, state: State, may_be_behind: bool) -> list[str]:
    """What is wrong with searches: each document is found by its word and its code, and nothing else is.

    What `may_be_behind`, as a reader that cannot catch up, may miss a document if it says that something is missing.
    """
    problems = [
        f"{identity} is not found by the code of its text"
        for identity, found_by_code in observation.found_by_code.items()
        if not found_by_code
    ]
    if observation.says_no_words and may_be_behind:
        return problems
    wanted: dict[int, set[str]] = {}
    for identity, number in state.items():
        wanted.setdefault(number, set()).add(identity)
    for number, identities in wanted.items():
        found = observation.found_by_word.get(number, [])
        if set(found) == identities:
            continue
        identity = " and ".join(sorted(identities))
        notes = observation.notes.get(number, [])
        denied = [note for note in notes if _NOT_FOUND.search(note)]
        if denied:
            problems.append(f"{identity} is there, but: {denied[0]}")
        elif set(found) - identities or not may_be_behind or not notes:
            problems.append(f"the word of {identity} finds {found or 'nothing'}, notes {notes}")
    for number, found in observation.found_by_word.items():
        if number not in wanted:
            problems.append(f"a word that no document has finds {found}")
    return problems


def _few(items: Iterable[object]) -> str:
    listed = [str(item) for item in items]
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return ", ".join(sorted(listed)[:5]) + more

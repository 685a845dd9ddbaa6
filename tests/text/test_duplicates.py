"""Near-duplicates are what a comparison of all with all finds, in groups around what is kept."""

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from parabit import Document, ParabitError
from parabit.text import Group, copies_among, duplicates, find_duplicates

WORDS = [f"w{number}" for number in range(3000)]
FREQUENCIES = [1 / (1 + number) for number in range(len(WORDS))]


def edited(words: list[str], share: float, rng: random.Random) -> list[str]:
    """Words of which a share is replaced, or goes, or gets a neighbour."""
    edits: dict[str, Callable[[str], list[str]]] = {
        "replace": lambda word: [rng.choice(WORDS)],
        "delete": lambda word: [],
        "insert": lambda word: [word, "new"],
    }
    return [
        part
        for word in words
        for part in (edits[rng.choice([*edits])](word) if rng.random() < share else [word])
    ]


def collection(seed: int, length: int, documents: int = 120) -> list[str]:
    rng = random.Random(seed)
    texts = [
        rng.choices(WORDS, FREQUENCIES, k=rng.randint(1, 2 * length)) for _ in range(documents)
    ]
    texts += [
        edited(rng.choice(texts), rng.choice([0, 0.1, 0.3, 0.5]), rng) for _ in range(documents)
    ]
    rng.shuffle(texts)
    return [" ".join(words) for words in texts]


def by_comparing_all(texts: list[str], shared: float = 0.5) -> dict[int, dict[int, Any]]:
    """What is kept, and the share of common words of each copy of it."""
    sets = [frozenset(text.split()) for text in texts]
    different = set(sets) - {frozenset()}
    frequencies = Counter(word for words in different for word in words)
    weights = {
        word: math.log((len(different) + 1000) / max(2, count))
        for word, count in frequencies.items()
    }

    def share(one: frozenset[str], other: frozenset[str]) -> float:
        common, both = one & other, one | other
        by_weight = sum(map(weights.__getitem__, common)) / sum(map(weights.__getitem__, both))
        return len(common) / len(both) if by_weight >= duplicates._BY_WEIGHT * shared else 0.0

    kept: list[int] = []
    copies: list[int] = []
    for place, words in enumerate(sets):
        if words:
            is_copy = any(share(sets[first], words) >= shared for first in kept)
            (copies if is_copy else kept).append(place)
    groups: dict[int, dict[int, Any]] = {}
    for copy in copies:
        # What is kept is the first of its group; documents with the same words stay together.
        earlier = [first for first in kept if first <= sets.index(sets[copy])]
        best = max(earlier, key=lambda first: (share(sets[first], sets[copy]), -first))
        groups.setdefault(best, {})[copy] = pytest.approx(share(sets[best], sets[copy]), abs=1e-4)
    return groups


def ids_of(group: Group) -> list[Any]:
    return [group.kept, *(copy.id for copy in group.copies)]


def as_shares(groups: list[Group]) -> dict[int, dict[int, float]]:
    return {
        int(group.kept): {int(copy.id): copy.shared for copy in group.copies} for group in groups
    }


@pytest.mark.parametrize("length", [3, 6, 60])
@pytest.mark.parametrize("shared", [0.3, 0.5, 0.9])
def test_groups_are_those_of_a_comparison_of_all_with_all(length: int, shared: float) -> None:
    for seed in range(3):
        texts = collection(seed, length)
        assert as_shares(find_duplicates(texts, shared=shared)) == by_comparing_all(texts, shared)


def test_small_blocks_and_rare_words_alone_find_the_same_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = collection(0, 60)
    groups = find_duplicates(texts)
    for limit, value in (("_AT_ONCE", 50), ("_WORK", 8000)):
        with monkeypatch.context() as patch:
            patch.setattr(duplicates, limit, value)
            assert find_duplicates(texts) == groups


def test_thousands_of_copies_are_one_group_and_documents_without_words_are_none() -> None:
    texts = ["Hubble, repaired in orbit."] * 20_000 + ["", "...", " ", "Repaired in orbit: HUBBLE"]
    [group] = find_duplicates(texts)
    assert (group.kept, len(group.copies), {copy.shared for copy in group.copies}) == (
        "0",
        20_000,
        {1.0},
    )
    assert group.copies[-1].id == "20003"
    assert find_duplicates([]) == find_duplicates(["", ""]) == find_duplicates(["one"]) == []


def test_a_chain_is_cut_so_that_every_copy_is_like_what_is_kept() -> None:
    chain = ["a b c d e f", "c d e f g h", "e f g h i j", "g h i j k l"]
    assert [ids_of(group) for group in find_duplicates(chain)] == [["0", "1"], ["2", "3"]]


def test_what_is_kept_is_the_first_the_longest_or_the_newest() -> None:
    dates: list[dict[str, Any]] = [{"date": "1993-05-01"}, {"date": "2001-01-01"}, {}]
    texts = [
        "the telescope is in orbit",
        "the telescope is in orbit now",
        "the telescope is in the orbit, far away",
    ]
    documents = [Document(str(n), text, fields=dates[n]) for n, text in enumerate(texts)]
    kept = {
        keep: ids_of(find_duplicates(documents, keep)[0]) for keep in ("first", "longest", "newest")
    }
    assert kept == {"first": ["0", "1", "2"], "longest": ["2", "0", "1"], "newest": ["1", "0", "2"]}


def test_forms_that_differ_in_their_rare_words_are_no_copies() -> None:
    forms = [
        f"the company {name} pays a quarterly dividend on day{name[1:]}" for name in WORDS[:300]
    ]
    assert find_duplicates([*forms, *collection(0, 9)]) == find_duplicates(
        ["-"] * len(forms) + collection(0, 9)
    )


def test_hits_that_are_copies_of_an_earlier_one() -> None:
    assert copies_among(["a b c d", "x y", "a b c", "c d e f", "", "", "y x"]) == [
        0,
        1,
        0,
        3,
        4,
        5,
        1,
    ]
    assert copies_among([]) == []


def test_errors_say_what_to_do() -> None:
    wrong: Any = "last"
    cases: list[tuple[Callable[[], object], str]] = [
        (
            lambda: find_duplicates(["a"], wrong),
            "no way 'last' to choose what to keep; there are first, longest",
        ),
        (lambda: find_duplicates(["a"], shared=0), "a share of 0 of the words; give more than 0"),
        (
            lambda: find_duplicates(["a"], "newest", date="day"),
            "no document has a date in its field 'day'; name",
        ),
    ]
    for call, words in cases:
        with pytest.raises(ParabitError, match=words):
            call()

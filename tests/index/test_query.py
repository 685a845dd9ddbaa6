"""The search box: operators, misspelt and unknown words, and whatever else people type."""

import json
import re
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_models import LEARNT, TEXTS, binary
from numpy.typing import NDArray

from parabit import Document, Index, budget
from parabit.budget import deadline
from parabit.errors import TooSlowError
from parabit.index import matching
from parabit.index import query as queries
from parabit.index.query import MOST_WORDS, Parsed, parse
from parabit.index.store import Snapshot
from parabit.index.word_index import RowWords

DOCUMENTS = [
    Document(
        "space",
        "The space telescope was repaired by astronauts of nasa",
        ("science",),
        {"year": 1993},
    ),
    Document("word", "A telescope in space, repaired at night", ("science",), {"year": 1994}),
    Document(
        "repair", "Repairing a car needs a repairman", ("cars",), {"year": 1993, "note": "old"}
    ),
    Document("hockey", "Goalies of the hockey team like a telescope", ("sport",), {"year": 2001}),
    Document("measure", "They measured the temperature of the ocean", ("science",), {"year": 2001}),
    *(Document(f"t{place}", TEXTS[place]) for place in range(20)),
]


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with Index.build(DOCUMENTS, model=binary()) as index:
        yield index


def found(index: Index, query: str) -> set[str]:
    return {str(identity) for identity in index.search(query, k=100, rank="words").ids[0]}


# Characters that operators are made of, much more often than text has them.
TYPED = st.text(
    st.one_of(st.sampled_from('+-*":\\()~^!&|. \n\tyear'), st.characters(codec="utf-8"))
)


@given(TYPED)
def test_taking_a_query_apart_never_fails(text: str) -> None:
    parsed = parse(text, ["year", "labels"])
    written = " ".join(
        [parsed.text, *parsed.must, *parsed.without, *parsed.prefixes, *sum(parsed.fields, ())]
    )
    assert set(re.findall(r"\w+", written)) == set(
        re.findall(r"\w+", text)
    )  # no word is lost, and none made up


@given(
    st.lists(st.from_regex(r"\w[\w.,;!?'+#/-]*", fullmatch=True), max_size=60),
    st.sampled_from([" ", "  ", "\n"]),
)
def test_text_without_operators_is_kept_as_it_is(words: list[str], between: str) -> None:
    parsed = parse(between.join(words), ["year"])
    assert parsed.text.split() == words
    assert (parsed.must, parsed.without, parsed.prefixes, parsed.fields) == ((), (), (), ())


@settings(max_examples=60)
@given(text=TYPED, rank=st.sampled_from(["hybrid", "words", "hamming"]))
def test_whatever_is_typed_is_searched(index: Index, text: str, rank: str) -> None:
    [hits] = index.search([text], k=3, rank=rank)
    for hit in hits:
        assert "".join(piece.text for piece in hit.snippet).strip("… ")
        assert hit.why.distance == hit.distance
    assert matching(index, text, DOCUMENTS[0].text) <= set(DOCUMENTS[0].text.lower().split())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("telescope", {"space", "word", "hockey"}),
        ('"space telescope"', {"space"}),
        ('"telescopes in space"', {"word"}),  # stemmed; stop words count in a phrase
        ("+space telescope", {"space", "word"}),
        ("telescope -hockey", {"space", "word"}),
        ('telescope -"space telescope"', {"word", "hockey"}),
        ("repairm*", {"repair"}),
        ("repair*", {"space", "word", "repair"}),
        ("measure*", {"measure"}),  # which the index has as measur
        ('+nasa "space telescope" -hockey repair*', {"space"}),
        ("telescope year:1993", {"space"}),
        ("telescope year:1990..1995", {"space", "word"}),
        ("telescope labels:sport", {"hockey"}),
        ("telescope labels:science labels:sport year:2000..", {"hockey"}),
        ("repaired id:word", {"word"}),
        ('car note:"old"', {"repair"}),
    ],
)
def test_operators(index: Index, query: str, expected: set[str]) -> None:
    assert found(index, query) == expected
    hits = index.search(query, k=100)
    assert {identity for identity in hits.ids[0] if not str(identity).startswith("t")} >= expected
    assert hits.notes[0] == []
    if (
        '"' in query or "+" in query or "*" in query or ":" in query
    ):  # what is required is required of near codes too
        assert {str(identity) for identity in hits.ids[0]} == expected


def test_a_minus_before_a_digit_excludes_nothing() -> None:
    for query, text, without in (
        ("-5 degrees", "5 degrees", ()),
        ("between -3.2 and -.5 degrees -hockey", "between 3.2 and .5 degrees", ("hockey",)),
        ('computer -"486"', "computer", ("486",)),
        ("music -mp3", "music", ("mp3",)),
    ):
        assert (parse(query).text, parse(query).without) == (text, without)


NO_OPERATORS = """telescope -|telescope - |- telescope|+ telescope|telescope:|:telescope|te:lescope telescope|"telescope
telescope"|""telescope|*telescope|(telescope OR|telescope AND|telescope~2 ^|text:telescope|year:2010..2000 telescope
labels:1..3 telescope|id:1..2 telescope|year:"" telescope"""


@pytest.mark.parametrize("query", re.split(r"[|\n]", NO_OPERATORS))
def test_what_does_not_parse_is_searched_as_plain_words(index: Index, query: str) -> None:
    assert found(index, query) == {"space", "word", "hockey"}


def test_queries_asked_together_have_their_own_filters(index: Index) -> None:
    asked = ["telescope year:1993", "telescope", "telescope labels:sport", "repaired year:1994"]
    for rank in ("words", "hybrid", "hamming"):
        together = index.search(asked, k=100, rank=rank)
        assert together.ids == [index.search(query, k=100, rank=rank).ids[0] for query in asked]
        assert set(together.ids[2]) <= {"hockey"}
    both = index.search(asked, k=100, rank="words", where={"year": 1993})
    assert [set(ids) for ids in both.ids] == [{"space"}, {"space"}, set(), set()]


def test_words_that_are_misspelt_or_that_no_document_has_are_named(index: Index) -> None:
    hits = index.search("telescpoe hockey qqqqqqqq 98765", k=100, rank="words")
    assert set(hits.ids[0]) == {"space", "word", "hockey"}
    assert hits.word_queries[0].corrected == {"telescpoe": "telescope"}
    assert hits.word_queries[0].unknown == ("qqqqqqqq", "98765")
    assert hits.notes[0] == [
        "searched for telescope instead of telescpoe",
        "no document has qqqqqqqq, 98765",
    ]
    assert any(piece.mark for piece in hits[0][0].snippet)
    assert found(index, "+temperatrue") == {"measure"}  # what is required is corrected, too
    nothing = index.search("qqqqqqqq")
    assert (nothing.ids, nothing.known.tolist(), nothing.notes) == (
        [[]],
        [False],
        [["no document has qqqqqqqq"]],
    )


def test_a_word_that_no_document_has_becomes_one_that_several_have() -> None:
    texts = [
        "a black hole in space",
        "the equation of schrodinger",
        "enclosed by an oak",
        "twice in a town",
        "zzx",
    ]
    with Index.build([*texts * 300, "blackwell", "a chance lepton"], model=binary()) as index:
        for query, right in (
            ("blackhole", "black hole"),  # documents have it as two words
            ("Schrödinger", "schrodinger"),
            ("shcrodinger", "schrodinger"),  # the first letters are swapped
            ("hcrodinger", None),
            ("unclosed", None),  # two letters apart
            ("encloesd", "enclosed"),
            ("tonw", "town"),
            ("tovn", None),  # as well taken for toon or torn
            ("leptom", None),  # only one document has lepton
        ):
            words = index.search(query, k=1, rank="words").word_queries[0]
            assert words.corrected.get(query.lower()) == right, query
            assert words.unknown == (() if right else (query.lower(),))


def test_the_code_is_that_of_the_corrected_words_without_operators(index: Index) -> None:
    known = LEARNT[0].split()[0]
    wrong = known[:2] + known[3] + known[2] + known[4:]
    hits = index.search(
        [known, f"{wrong} -hockey", f"{known} year:1993", f"{known} labels:nope"], k=1
    )
    assert hits.texts == [known, known, known, f"{known} nope"]
    assert (hits.codes == hits.codes[0]).all()
    assert hits.encoded.all()
    nothing = index.search(["labels:science", "hockey"], k=1)
    assert nothing.encoded.tolist() == [False, False]  # the model knows no such word
    assert [[hit.distance for hit in some] for some in nothing] == [[None], [None]]


def test_what_no_document_has_is_not_required(index: Index) -> None:
    for query in (
        "+qqqqqqqq telescope",
        '"telescope nasa"',
        "+nasa +hockey",
        "qqqqqqqq* telescope",
    ):
        hits = index.search(query, k=100, rank="words")
        assert len(hits.ids[0]) >= 2
        assert (
            "no document has all that is required, so it was searched for as plain words"
            in hits.notes[0]
        )


@pytest.mark.parametrize("rank", ["hybrid", "words", "hamming", "asymmetric"])
def test_a_query_that_only_restricts_lists_what_it_lets_through(index: Index, rank: str) -> None:
    everything = [document.id for document in DOCUMENTS]
    for query, expected in (
        ("labels:science", ["space", "word", "measure"]),
        ("labels:science -nasa", ["word", "measure"]),
        ("-telescope", [id for id in everything if id not in ("space", "word", "hockey")]),
        ("id:hockey", ["hockey"]),
        ("labels:science year:1994..", ["word", "measure"]),
    ):
        hits = index.search(query, k=100, rank=rank)
        assert (hits.ids[0], hits.known.tolist()) == (
            expected,
            [True],
        )  # in the order of their addition
        assert index.search(query, k=2, rank=rank).ids[0] == expected[:2]
        assert index.search(query, radius=20, rank=rank).ids == [
            []
        ]  # without words there is no distance
    assert index.search("labels:science", where={"year": 2001}, rank=rank).ids == [["measure"]]


@pytest.mark.parametrize("rank", ["hybrid", "hamming", "asymmetric"])
def test_operators_count_whatever_the_rank(index: Index, rank: str) -> None:
    known = LEARNT[0].split()[0]  # to the model, so that all documents have a distance
    for query, allowed in (
        ("repair +telescope", {"space", "word", "hockey"}),
        ('repair "space telescope"', {"space"}),
        ("telescope repair* year:1993", {"space", "repair"}),
        ("telescope -nasa labels:science", {"word", "measure"}),
    ):
        assert {*index.search(f"{known} {query}", k=100, rank=rank).ids[0]} == allowed


def test_a_long_text_is_searched_by_its_most_distinctive_words(index: Index) -> None:
    text = " ".join(dict.fromkeys(" ".join(LEARNT[:20]).split()))
    hits = index.search(f"{text} -hockey", k=100)  # of so many words, none is an operator
    words = index._words.of(index.snapshot())
    frequencies = words.frequencies(stem for _, stem in words.stems(text))
    taken = hits.word_queries[0].words
    others = [stem for stem, frequency in frequencies.items() if frequency and stem not in taken]
    assert len(taken) == MOST_WORDS
    assert max(frequencies[stem] for stem in taken) <= min(frequencies[stem] for stem in others)
    assert parse("telescope\n-hockey").without == ()
    assert index.search("telescope\n-hockey", k=1, rank="words").ids == [["hockey"]]


def test_a_long_query_in_a_large_collection_drops_frequent_words(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "space telescope repaired astronauts nasa night car hockey goalies temperature ocean"
    with_all = index.search([text])
    searched = with_all.word_queries[0].words.keys()
    frequencies = index._words.of(index.snapshot()).frequencies(searched)
    monkeypatch.setattr(queries, "_LISTED", sum(frequencies.values()) - 1)  # as if they were many
    hits = index.search([text])
    fewer, rest = hits.word_queries[0].words.keys(), hits.word_queries[0].rest.keys()
    assert [frequencies[word] for word in searched - fewer] == [max(frequencies.values())]
    assert rest == searched - fewer  # and decides between the best
    assert hits.ids == with_all.ids
    assert hits.scores[0] == pytest.approx(with_all.scores[0], rel=1e-5)
    short = (
        index.search(["telescope space repaired car hockey goalies ocean"]).word_queries[0].words
    )
    assert searched - fewer <= short.keys()


def test_a_hit_says_why(index: Index) -> None:
    hits = index.search("telescopes nasa", k=3)
    hit = hits[0][0]
    assert (hit.id, hit.title) == ("space", DOCUMENTS[0].text)
    assert list(hit.why.words) == [
        "nasa",
        "telescopes",
    ]  # as the query has them, the rarer word first
    assert [piece.text for piece in hit.snippet if piece.mark] == ["telescope", "nasa"]
    assert json.loads(json.dumps(hit.why._asdict()))["bits"] == 20
    assert matching(index, "repair* telescope", DOCUMENTS[0].text) == {"telescope", "repaired"}
    without = Index.build(DOCUMENTS, model=binary(), words=False)
    assert matching(without, "telescope", DOCUMENTS[0].text) == set()
    [begun] = index.search("repairm*")[0]
    assert begun.why.words == {"repairm*": pytest.approx(1.0)}


def test_stop_words_tell_apart_documents_that_have_the_other_words(index: Index) -> None:
    assert index.search("of the ocean", rank="words").ids[0][0] == "measure"
    [[first, second]] = index.search("telescope was", k=2, rank="words").ids
    assert (first, second) == ("space", "word")  # only one of them has `was` after it
    assert "was" not in index.search("telescope was", rank="words").word_queries[0].words


@pytest.mark.parametrize("rank", ["hybrid", "words"])
def test_a_quotation_finds_its_document(rank: str) -> None:
    others = [
        "Asked in the castle, asked at a play: not to be or be, to play at the play, all asked"
    ] * 60
    quoted = f"{' '.join(TEXTS[:3])} whether to be or not to be is asked at all in the play of the castle"
    with Index.build([*others, quoted], model=binary()) as index:
        for query in (
            "to be or not to be",
            "is asked at all",
            "asked at all, in the play",
            "of the castle",
        ):
            assert index.search(query, rank=rank).ids[0][0] == "60"


def test_a_very_long_word_is_neither_corrected_nor_remembered(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = list[Sequence[str]]()

    def together(self: RowWords, pair: Sequence[str]) -> int:
        pairs.append(pair)
        return 0

    monkeypatch.setattr(RowWords, "together", together)
    for letters in (41, 255, 5000):
        hits = index.search(["x" * letters, f"hockey {'x' * letters}"], k=100, rank="words")
        assert [set(ids) for ids in hits.ids] == [set(), {"hockey"}]
        assert pairs == []
        words = index._words.open()
        assert words is not None
        assert max(map(len, words._stems)) <= 40
    assert hits.notes == [["words of more than 255 letters were left out"]] * 2
    assert hits.word_queries[0].unknown == ()


def test_few_unknown_words_are_corrected(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def nearest_word(self: RowWords, token: str) -> None:
        asked.append(token)

    monkeypatch.setattr(RowWords, "nearest_word", nearest_word)
    words = [f"qq{letter}" for letter in "abcdefghijklmnop"]
    [words_asked] = index.search(" ".join(words), rank="words").word_queries
    assert words_asked.unknown == tuple(words)
    assert asked == words[:8]


def test_a_correction_reads_few_long_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    rows_read = list[int]()
    fields_of = Snapshot.fields_of

    def counted(self: Snapshot, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        rows_read.append(len(rows))
        return fields_of(self, rows)

    with Index.build([f"a telescope {TEXTS[0]}"] * 60, model=binary()) as index:
        monkeypatch.setattr("parabit.index.spelling._MOST_CHARACTERS", 100)
        monkeypatch.setattr(Snapshot, "fields_of", counted)
        [words] = index.search("telescpoe", k=1, rank="words").word_queries
    assert words.corrected == {"telescpoe": "telescope"}
    assert 0 < sum(rows_read) <= 8


@pytest.mark.parametrize(
    "text", ['"a"' * 33, '+"b c"' * 33, "-a" + "a" * 1000, f'"{"a." * 500}"', "a*" * 501]
)
def test_a_query_has_few_operators(text: str) -> None:
    assert parse(text) == Parsed(text)


def test_only_the_beginning_of_a_very_long_text_is_searched(index: Index) -> None:
    text = "hockey " * 20_000
    [notes] = index.search(text + "ocean", k=100, rank="words").notes
    assert notes == ["the words of its first 100,000 characters were searched for"]


def test_a_search_ends_with_its_time(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    steps = list[str]()

    def nearest_word(self: RowWords, token: str) -> None:
        nonlocal now
        steps.append(token)
        now += 6

    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(RowWords, "nearest_word", nearest_word)
    with deadline(10), pytest.raises(TooSlowError, match="longer than a request may"):
        index.search(["qqa qqb qqc qqd qqe", "qqf"])
    assert steps == ["qqa", "qqb"]
    index.search("qqa qqb qqc")  # without a deadline nothing ends
    monkeypatch.setattr("parabit.index.retrieval._READ_TOGETHER", 1)
    hits = index.search("telescope", k=100)
    read = list[Any]()

    def read_slowly() -> None:
        nonlocal now
        for hit in hits.each(0):
            read.append(hit.id)
            now += 6

    with deadline(10), pytest.raises(TooSlowError):
        read_slowly()
    assert read == hits.ids[0][:2]

"""What is asked for: the operators of the search box, and what to search for in the words of
documents.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from parabit.budget import LONGEST_QUERY, check_time

if TYPE_CHECKING:
    from parabit.index.word_index import RowWords

MOST_WORDS = 32  # of a query: longer ones are searched by their most distinctive words, and have no operators
# Of more than 6 words only those are searched for that few documents have, as the time of a search is that of reading
# the lists of documents that have its words; the others decide between the best. Of a million abstracts and 14 words,
# 92% of the first ten stay the same so, and all of the first. Ten thousand documents never come near the limit.
_ALWAYS, _LISTED = 6, 50_000
_MARKED = 200_000  # characters of a text in which words are marked
_SHORT = (
    12  # words of a query, up to which documents that quote it come first, and its stop words count
)
# Characters of a query that may have operators: 32 words, each longer than almost any. Without
# spaces between them, a longer one could have thousands of phrases.
_LONGEST_WITH_OPERATORS = 1_000
# Letters of a word that is searched for. Hashes have up to 128, and no language has longer words;
# what is longer was never a word, and every list of words that is kept in memory could have a
# million of its letters.
LONGEST_WORD = 255
# Unknown words of a query for which a nearest word is looked for: that takes some milliseconds
# each, and a query with more of them is in another language.
_MOST_CORRECTED = 8
_OPERATORS = re.compile(r'[":*]|(?<!\S)[+-]')  # without any, there is nothing to take apart
_PART = re.compile(
    r'(?P<sign>[+-]?)(?:(?P<field>[^\s:"+-][^\s:"]*):)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))'
)


@dataclass(frozen=True)
class Parsed:
    """A query of the search box, taken apart."""

    text: str = ""  # the words that describe what is looked for, without operators
    must: tuple[str, ...] = ()  # words and phrases that documents must have
    without: tuple[str, ...] = ()  # and must not have
    prefixes: tuple[str, ...] = ()  # of which they must have a word that begins so
    fields: tuple[tuple[str, str], ...] = ()  # field:value

    @property
    def lists(self) -> bool:
        """Whether it describes nothing and only restricts, so that all that it lets through is
        listed.
        """
        return not self.text and bool(self.without or self.fields)


def parse(text: str, field_names: Sequence[str] = ()) -> Parsed:
    """Take a query apart: "a phrase", +must, -not, word* and field:value.

    A query of several lines, of more than 32 words or of more than 1,000 characters is a text and
    has no operators. What looks like an operator and is none, as in `a: b` or `a - b`, are plain
    words. So are numbers with a minus sign, as in `-5 degrees`.
    """
    if len(text) > _LONGEST_WITH_OPERATORS or not _OPERATORS.search(text):
        return Parsed(text)
    if "\n" in text.strip() or len(text.split()) > MOST_WORDS:
        return Parsed(text)
    parts = list(_PART.finditer(text))
    if len(parts) > MOST_WORDS:  # without spaces between them
        return Parsed(text)
    words, must, without, prefixes, fields = [], [], [], [], []
    for part in parts:
        sign, name, phrase = part["sign"], part["field"], part["phrase"]
        value = phrase if phrase is not None else part["word"]
        if (
            name
            and not sign
            and value
            and (name == "id" or (name in field_names and name != "text"))
        ):
            fields.append((name, value))
            continue
        if name:  # no such field
            value = part[0].lstrip("+-").replace('"', " ")
        if not re.search(r"\w", value):
            continue
        is_number = phrase is None and re.match(
            r"\.?\d", value
        )  # `-5` is a number, `-"5"` excludes one
        if sign == "-" and not is_number and not text[part.start() - 1 : part.start()].strip():
            without.append(value)
            continue
        if value.endswith("*") and phrase is None:
            value = value.rstrip("*")
            prefixes.append(value)
        elif sign == "+" or phrase is not None:
            must.append(value)
        words.append(value)
    if not (words or fields or without):
        return Parsed(text)
    return Parsed(" ".join(words), tuple(must), tuple(without), tuple(prefixes), tuple(fields))


@dataclass(frozen=True)
class WordQuery:
    """What is searched for in the words of documents. Words are stems, as the index has them."""

    text: str = ""  # without operators, and corrected
    words: dict[str, float] = field(default_factory=dict)  # with how much each counts
    written: dict[str, str] = field(
        default_factory=dict
    )  # what the query has for a word: `telescopes`, or `tele*`
    quotation: tuple[
        str, ...
    ] = ()  # all words in their order, stop words too: a document may have them word for word
    stop_words: tuple[str, ...] = ()  # these decide between the best documents
    rest: dict[str, float] = field(
        default_factory=dict
    )  # and so do words of a long query that many documents have
    must: tuple[tuple[str, ...], ...] = ()  # words and phrases that documents must have
    without: tuple[tuple[str, ...], ...] = ()
    any_of: tuple[tuple[str, ...], ...] = ()  # documents must have one word of each of these
    unknown: tuple[str, ...] = ()  # words that no document has, as they were written
    corrected: dict[str, str] = field(
        default_factory=dict
    )  # words that no document has, and what was searched instead
    is_relaxed: bool = False  # no document has all that was required
    missing: int = 0  # documents whose words are not indexed yet, so that it says nothing of them
    is_cut: bool = False  # only its beginning was searched for
    too_long: int = 0  # words that were left out

    @property
    def finds(self) -> bool:
        """Whether a document can be found by its words."""
        return bool(self.words or self.must or self.any_of)

    @property
    def notes(self) -> list[str]:
        """What was done with the query, in words."""
        notes = [
            f"searched for {right} instead of {wrong}" for wrong, right in self.corrected.items()
        ]
        if self.unknown and self.missing:
            words = ", ".join(self.unknown)
            notes.append(f"no document whose words are indexed has {words}")
        elif self.unknown:
            notes.append(f"no document has {', '.join(self.unknown)}")
        if self.missing:
            count = f"{self.missing:,} document{'s' if self.missing > 1 else ''}"
            notes.append(f"the words of {count} are not indexed yet; they are found by code alone")
        if self.is_relaxed:
            notes.append(
                "no document has all that is required, so it was searched for as plain words"
            )
        if self.is_cut:
            notes.append(f"the words of its first {LONGEST_QUERY:,} characters were searched for")
        if self.too_long:
            notes.append(f"words of more than {LONGEST_WORD} letters were left out")
        return notes


def word_query(parsed: Parsed, lexicon: "RowWords", correct: bool = True) -> WordQuery:
    """What to search for in the words of documents.

    Stop words count only if nothing else is left. A word that no document has is replaced by the
    nearest one that some have. Of a long text the 32 most distinctive words are taken. A word that
    the query has several times counts more. Words of more than 255 letters are left out, and so is
    what follows the first 100,000 characters.
    """
    written_tokens = lexicon.tokenizer.words(parsed.text[:LONGEST_QUERY])
    tokens = [token for token in written_tokens if len(token) <= LONGEST_WORD]
    too_long = len(written_tokens) - len(tokens)
    stop = lexicon.stop_words(tokens)
    places = [place for place, token in enumerate(tokens) if token not in stop] or list(
        range(len(tokens))
    )
    stems = lexicon.stemmed(tokens) if tokens else []
    frequencies = lexicon.frequencies(list(dict.fromkeys(stems[place] for place in places)))
    unknown = list[str]()
    corrected = dict[str, str]()
    corrections_left = _MOST_CORRECTED if correct else 0
    if len(places) <= MOST_WORDS and not all(frequencies.values()):
        begun = {
            token for prefix in parsed.prefixes for token in lexicon.tokenizer.words(prefix)
        }  # may be no words
        for token, stem in dict.fromkeys((tokens[place], stems[place]) for place in places):
            if frequencies[stem] or token in begun:
                continue
            check_time()
            near = None
            # A number is not misspelt; and what documents have that are not indexed yet is not
            # known.
            if corrections_left and token.isalpha() and not lexicon.missing:
                corrections_left -= 1
                near = lexicon.nearest_word(token)
            if near is None:
                unknown.append(token)
            else:
                corrected[token] = near
    if corrected:

        def right(text: str) -> str:
            return " ".join(corrected.get(token, token) for token in lexicon.tokenizer.words(text))

        parsed = replace(parsed, text=right(parsed.text), must=tuple(map(right, parsed.must)))
        return replace(word_query(parsed, lexicon, correct=False), corrected=corrected)
    counts = Counter(stems[place] for place in places)
    weights = {stem: 1 + math.log(count) for stem, count in counts.items() if frequencies[stem]}
    rest = dict[str, float]()
    if len(weights) > _ALWAYS:
        weights, rest = _most_distinctive(weights, frequencies, lexicon.documents)
    is_short = len(tokens) <= _SHORT
    is_quotation = is_short and len(stems) > 1 and not unknown and not too_long
    quotation = tuple(stems) if is_quotation else ()
    stop_words = (
        tuple(stem for stem in dict.fromkeys(stems) if stem not in counts) if is_short else ()
    )
    any_of = tuple(_beginning(lexicon, prefix) for prefix in parsed.prefixes)
    written = dict(zip(reversed(stems), reversed(tokens), strict=True))
    written |= {
        stem: f"{prefix}*"
        for prefix, some in zip(parsed.prefixes, any_of, strict=True)
        for stem in some
    }
    must, without = _phrases(lexicon, parsed.must), _phrases(lexicon, parsed.without)
    return WordQuery(
        parsed.text,
        weights,
        written,
        quotation,
        stop_words,
        rest,
        must,
        without,
        any_of,
        tuple(unknown),
        missing=lexicon.missing,
        is_cut=len(parsed.text) > LONGEST_QUERY,
        too_long=too_long,
    )


def _phrases(lexicon: "RowWords", texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The stems of words and phrases, each once."""
    phrases = (tuple(stem for _, stem in lexicon.stems(text)) for text in texts)
    return tuple(dict.fromkeys(phrase for phrase in phrases if phrase))


def _most_distinctive(
    weights: Mapping[str, float], frequencies: Mapping[str, int], documents: int
) -> tuple[dict[str, float], dict[str, float]]:
    """The words to search for, and those that only decide between the best documents."""
    worth = {
        stem: weight * math.log(1 + documents / frequencies[stem])
        for stem, weight in weights.items()
    }
    chosen, rest, listed = dict[str, float](), dict[str, float](), 0
    for stem in sorted(weights, key=lambda stem: -worth[stem])[:MOST_WORDS]:
        listed += frequencies[stem]
        (chosen if len(chosen) < _ALWAYS or listed <= _LISTED else rest)[stem] = weights[stem]
    return chosen, rest


def matching_tokens(query: WordQuery, lexicon: "RowWords", text: str) -> set[str]:
    """The words of a text that match a query, as they are written there."""
    distinct = dict.fromkeys(lexicon.tokenizer.words(text[:_MARKED]))
    tokens = [token for token in distinct if len(token) <= LONGEST_WORD]
    wanted = {
        *query.words,
        *query.rest,
        *(stem for stems in (*query.must, *query.any_of) for stem in stems),
    }
    return {
        token for token, stem in zip(tokens, lexicon.stemmed(tokens), strict=True) if stem in wanted
    }


def _beginning(lexicon: "RowWords", prefix: str) -> tuple[str, ...]:
    """The words that begin so; the index has stems, so `measure*` must find `measur`, too."""
    check_time()
    for token, stem in lexicon.stems(prefix)[:1]:
        return tuple(dict.fromkeys([stem, *lexicon.starting_with(token)]))
    return (prefix,)

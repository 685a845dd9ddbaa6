"""Words that no document has: what was probably meant."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from parabit.budget import check_time
from parabit.text import Tokenizer

if TYPE_CHECKING:
    from parabit.index.word_index import RowWords
    from parabit.index.words import Stems

# Letters of a word that is corrected. English words have at most 29, German compounds in use 36,
# and a longer run of letters is a sequence, a hash or two cats on a keyboard. The time of a
# correction grows with the square of the length.
LONGEST_CORRECTED = 40
# Characters of texts in which written forms of a word are looked for: 50 articles of 10,000. Of
# longer texts fewer are read, and of the last only a beginning.
_MOST_CHARACTERS = 500_000
_ONE_EDIT, _TWO_EDITS = (
    4,
    10,
)  # letters from which a word is taken for another that differs in one, or in two
_SURE = 6  # letters from which one may stand for another, or stems alone be near: cones and codes, wildly and wind
_WRONG_ENDING = 8  # letters from which stems may be two apart, as a wrong ending is not cut off: encloesd and enclos
_SEVERAL = 5  # documents that must have a word, so that another is taken for it: fewer if there are less than 4,000
_PLAIN = Tokenizer(fold_accents=True)


def nearest_word(words: "RowWords", token: str) -> str | None:
    """What to search for instead of a word that no document has: the word without accents, two
    words that documents have next to each other, or the most frequent word that begins alike and is
    a letter apart, or two. A word of more than 40 letters is not corrected.
    """
    if len(token) > LONGEST_CORRECTED:
        return None
    if plain := plain_form(words, token):
        return plain
    least = min(_SEVERAL, 1 + words.documents // 1000)  # what fewer have may be misspelt, too
    pairs = [[token[:cut], token[cut:]] for cut in range(2, len(token) - 1)]
    split = dict[str, int]()
    for pair in pairs:
        check_time()
        split[" ".join(pair)] = words.together(pair)
    if split and max(split.values()) >= least:
        return max(split, key=lambda pair: split[pair])
    [stem] = words.stemmed([token])
    most = 1 + (len(token) >= _TWO_EDITS)

    def is_near(word: str, forms: Iterable[str]) -> bool:
        if len(stem) >= _SURE and _edits(word, stem, 1) <= 1:
            return True
        if len(token) < _SURE:
            forms = [
                form for form in forms if len(form) != len(token) or sorted(form) == sorted(token)
            ]
        return any(_edits(form, token, most) <= most for form in forms)

    for edits in range(1, 1 + (len(token) >= _ONE_EDIT) + (len(token) >= _WRONG_ENDING)):
        check_time()
        written = written_forms(words, words.texts_near(stem, edits))
        alike = {word: forms for word, forms in written.items() if begin_alike(word, stem)}
        near = words.frequencies(word for word, forms in alike.items() if is_near(word, forms))
        best = max(near, key=lambda word: (near[word], word), default="")
        if best and near[best] >= least:
            return nearest_form(written[best], token)
    return None


def plain_form(stems: "RowWords | Any", token: str) -> str | None:
    """A word without its accents, if documents have it so."""
    [plain] = _PLAIN.words(token)
    return (
        plain
        if plain != token and all(stems.frequencies(stems.stemmed([plain])).values())
        else None
    )


def begin_alike(word: str, other: str) -> bool:
    """Whether two words have the same first letter, but for accents, or the first two swapped."""
    return _PLAIN.words(word[:1]) == _PLAIN.words(other[:1]) or word[:2] == other[1::-1]


def written_forms(stems: "RowWords | Stems", texts: Iterable[str]) -> dict[str, Counter[str]]:
    """The words of texts as they are written, by their stems; of the first 500,000 characters."""
    forms: dict[str, Counter[str]] = {}
    characters_left = _MOST_CHARACTERS
    for text in texts:
        check_time()
        for token, stem in stems.stems(text[:characters_left]):
            forms.setdefault(stem, Counter())[token] += 1
        characters_left -= len(text)
        if characters_left <= 0:
            break
    return forms


def nearest_form(written: Counter[str], token: str) -> str:
    """The form of a word that is most like another one, of equal ones the most frequent."""
    return min(written, key=lambda form: (_edits(form, token, len(token)), -written[form], form))


def _edits(first: str, second: str, most: int) -> int:
    """How many letters must be added, removed, changed or swapped to make one word of another, or
    more than `most`.
    """
    if abs(len(first) - len(second)) > most:
        return most + 1
    before, row = list[int](), list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        older, before, row = before, row, [i]
        for j, other in enumerate(second, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]

"""How the closed form's constants and the words were chosen: codes with one thing changed, on validation documents.

    PARABIT_DATA=FOLDER python benchmarks/choices.py [--only tokens bits constants] [--documents 3000]

Of the TRAINING part of each collection at most so many labelled documents: 60% are learned from, the others query each
other. MAP and NDCG@10, the mean of two seeds, and how the collection fares that loses most against LSA + ITQ with as
many bits. Test documents are not used. Results are kept after each collection; what is there is not measured again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import Stemmer

from common import about, keep, kept, options, run
from parabit import Tokenizer
from parabit.model import closed_form
from parabit.parallel import cores
from quality import Collection, codes_of, collections, lsa_itq, score

SEEDS, BITS, SHORT = (0, 1), 128, 32
SIZES = (16, 24, 32, 48, 64, 96, 128, 192, 256, 512)
RULES = (
    (),
    (4,),
    (5, 1),
    (5, 2),
    (6, 2),
    (6, 2, 1),
    (5, 3, 2, 1),
    (6, 4, 2, 1),
)  # bits of the short levels, in 32
PARTS = ("tokens", "bits", "constants")
LETTERS = r"\p{L}[\p{L}\p{M}]*"
MIXTURES = r"\p{Nd}*\p{L}[\p{L}\p{M}\p{Nd}]*"  # at least one letter
APOSTROPHES = r"[\p{L}\p{Nd}][\p{L}\p{M}\p{Nd}]*(?:['’]\p{L}+)*"
TOKENIZERS = {
    "letters, 2 to 15": Tokenizer(LETTERS, max_length=15),
    "letters and mixtures, 2 to 15": Tokenizer(MIXTURES, max_length=15),
    "with numbers, 2 to 15": Tokenizer(max_length=15),
    "with numbers, 1 to 15": Tokenizer(min_length=1, max_length=15),
    "with numbers, 2 to 25": Tokenizer(max_length=25),
    "with numbers, 2 to 40": Tokenizer(max_length=40),
    "with numbers, 2 to 15, stop words kept": Tokenizer(max_length=15, stop_words=frozenset()),
    "with numbers, 2 to 15, apostrophes in words": Tokenizer(APOSTROPHES, max_length=15),
}
CONSTANTS: dict[str, tuple[Any, ...]] = {  # of parabit/model/closed_form.py, beside what they are
    "DIMENSIONS": (128, 160, 256),
    "nearest": tuple(partial(closed_form.nearest, count=count) for count in (5, 15, 20)),
    "_SHARE": (0.4, 0.6),
    "_COARSE_SHARE": (0.5, 0.8),
    "_STEPS": (4, 16),
    "_MOST_WHITENING": (0.0, 0.25, 0.75),
    "_PRIOR": (0.5, 2.0),
    "_RIDGE": (1e-3, 1e-1),
    "_DIRECT_RIDGE": (0.3, 3.0),
    "_DIRECT_ROUNDS": (2, 8),
    "_DIRECT_WEIGHT": (0.0, 0.25, 1.0),
}


class Variant(NamedTuple):
    """One thing that is tried."""

    question: str
    bits: int
    name: str
    codes: Callable[..., Any]  # of a collection, with a seed
    used: bool = False  # it is what parabit does

    @property
    def key(self) -> str:
        return f"{self.question} {self.bits} {self.name}"


@contextmanager
def changed(name: str, value: Any) -> Iterator[None]:
    """Another constant of the closed form."""
    before = getattr(closed_form, name)
    setattr(closed_form, name, value)
    try:
        yield
    finally:
        setattr(closed_form, name, before)


def with_constant(name: str, value: Any, bits: int) -> Callable[[Collection, int], Any]:
    """The codes with it."""

    def codes(collection: Collection, seed: int) -> Any:
        with changed(name, value):
            return codes_of(collection, bits, seed)

    return codes


def stemmed(collection: Collection, seed: int) -> Any:
    """The codes of stems."""
    words, stems = Tokenizer().content_words, Stemmer.Stemmer("english").stemWords
    train, test = (
        [replace(one, text=" ".join(stems(words(one.text)))) for one in part]
        for part in (collection.train, collection.test)
    )
    return codes_of(collection._replace(train=train, test=test), BITS, seed)


def variants(only: Sequence[str]) -> Iterator[Variant]:
    """All that is tried."""
    if "tokens" in only:
        for name, tokenizer in TOKENIZERS.items():
            yield Variant("tokens", BITS, name, partial(codes_of, bits=BITS, tokenizer=tokenizer))
        yield Variant("tokens", BITS, "stemmed", stemmed)
    for bits in SIZES if "bits" in only else (BITS, SHORT):
        yield Variant("LSA + ITQ", bits, "", partial(lsa_itq, bits=bits))
        for rule in RULES if "bits" in only else [()]:
            short = [size for share in rule if (size := round(bits * share / 32))]
            levels = (
                (bits - sum(short), *short) if "bits" in only else closed_form.default_levels(bits)
            )
            default = levels == closed_form.default_levels(bits)
            name = "+".join(map(str, levels))
            yield Variant(
                "levels", bits, name, partial(codes_of, bits=bits, levels=levels), default
            )
    if "constants" in only:
        for constant, values in CONSTANTS.items():
            for bits in (BITS, SHORT):
                for value in values:
                    shown = str(value.keywords) if isinstance(value, partial) else str(value)
                    yield Variant(constant, bits, shown, with_constant(constant, value, bits))


def validation(collection: Collection, most: int) -> Collection:
    """Parts of the training documents to learn from and to query with."""
    labelled = [document for document in collection.train if document.labels]
    order = np.random.default_rng(0).permutation(len(labelled))[:most]
    learned, held = (
        [labelled[place] for place in part] for part in np.split(order, [int(0.6 * len(order))])
    )
    return Collection(collection.name, learned, held, collection.relevance)


def rows_of(scores: dict[str, dict[str, list[float]]]) -> Iterator[dict[str, Any]]:
    """One row for each variant that all collections have."""
    for variant in {one.key: one for one in variants(PARTS)}.values():
        peer = Variant("LSA + ITQ", variant.bits, "", lsa_itq).key
        if any(not {variant.key, peer} <= row.keys() for row in scores.values()):
            continue
        means = np.array(
            [row[variant.key] for row in scores.values()]
        )  # (collections, MAP and NDCG@10)
        losses = means - np.array([row[peer] for row in scores.values()])
        row = {
            "question": variant.question,
            "bits": variant.bits,
            "variant": variant.name,
            "used": variant.used,
        }
        for place, metric in enumerate(("map", "ndcg@10")):
            row[metric] = round(float(means[:, place].mean()), 4)
            row[f"worst {metric}"] = round(float(losses[:, place].min()), 4)
            row[f"worst {metric} in"] = list(scores)[int(losses[:, place].argmin())]
        yield row


def main() -> None:
    """Measure what has not been measured yet, and print the table."""
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--documents", type=int, default=3_000, help="of a collection, at most")
    given = parser.parse_args()
    before = {} if given.small else kept("choices")
    scores, rows = before.get("collections", {}), before.get("rows", [])
    tried = [one for one in variants(given.only) if not given.small or one.bits == min(SIZES)]
    for whole in collections(["tweets"] if given.small else None):
        collection, row = (
            validation(whole, 1_000 if given.small else given.documents),
            scores.setdefault(whole.name, {}),
        )
        for variant in tried:
            if variant.key not in row:
                found = [score(variant.codes(collection, seed=seed), collection) for seed in SEEDS]
                row[variant.key] = np.mean(found, axis=0).round(4).tolist()
        known = list(rows_of(scores))
        measured = about(
            "numpy", "scipy", "polars", threads=cores(), repetitions=f"{len(SEEDS)} seeds"
        )
        others = [row for row in rows if row["question"] not in {one["question"] for one in known}]
        keep(
            "choices", {"collections": scores, "rows": known + others, "run": measured}, given.small
        )


if __name__ == "__main__":
    run(main)

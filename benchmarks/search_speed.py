"""One text query from text to ids, beside the bare engines that it uses, and what an index takes on disk.

    PARABIT_DATA=FOLDER python benchmarks/search_speed.py [--sizes 7532 1000000]

The test posts of 20 Newsgroups, and a million abstracts (the arXiv sample ten times over, each copy without another
tenth of its words). Queries are 3 to 8 consecutive words of random documents. In turn, per query: a bare faiss scan for
the 200 nearest codes (IndexBinaryFlat, one thread), a bare tantivy search for the best 200 documents with a word of
the query, and each rank of the index. Medians, from a process that does nothing else.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import tantivy

from common import about, abstracts, keep, options, run, write_lines
from parabit import Document, Index, ParagraphVectors, open_corpus
from parabit.parallel import cores

RANKS = ("hamming", "asymmetric", "words", "hybrid")
QUERIES, CANDIDATES, SEED = 300, 200, 0


def documents(count: int) -> Iterator[Document]:
    """Posts, or abstracts with words dropped."""
    if count <= 7532:
        yield from islice(open_corpus("20newsgroups/test"), count)
        return
    yield from abstracts(count)


def queries(count: int) -> list[str]:
    """Words that people may remember of documents."""
    rng, texts = (
        np.random.default_rng(SEED),
        [document.text for document in islice(documents(count), 5000)],
    )
    found: list[str] = []
    while len(found) < QUERIES:
        words, length = texts[int(rng.integers(len(texts)))].split(), int(rng.integers(3, 9))
        if len(words) > length:
            start = int(rng.integers(len(words) - length))
            found.append(" ".join(words[start : start + length]))
    return found


def bare_faiss(index: Index) -> Callable[[str], Any]:
    """A scan of the same codes."""
    import faiss

    view = index._store.snapshot()
    codes = faiss.IndexBinaryFlat(index.bits)
    codes.add(np.ascontiguousarray(view.codes(np.arange(view.rows))))
    faiss.omp_set_num_threads(1)
    asked = np.random.default_rng(SEED).integers(0, 256, (1, index.bits // 8), dtype=np.uint8)
    return lambda _: codes.search(asked, CANDIDATES)


def bare_tantivy(index: Index) -> Callable[[str], Any]:
    """A search of the same word index."""
    words = index._words.open()
    searcher, schema = words.searcher, words.schema

    def search(query: str) -> Any:
        terms = [
            tantivy.Query.term_query(schema, "text", stem, "freq") for _, stem in words.stems(query)
        ]
        either = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        return searcher.search(either, CANDIDATES, count=False).hits

    return search


def measure(count: int) -> dict[str, Any]:
    """Build an index with words and one without, and ask all queries."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "documents.jsonl")
        write_lines(path, documents(count))
        start = time.perf_counter()
        model = ParagraphVectors(random_state=SEED).fit(open_corpus(path))
        learned = time.perf_counter()
        built = Index.build(open_corpus(path), Path(folder, "all.index"), model=model)
        seconds = {"learning": learned - start, "building": time.perf_counter() - learned}
        with Index.build(
            open_corpus(path), Path(folder, "codes.index"), model=model, text=False
        ) as codes:
            alone = codes.info()
        about = built.info()
        asked = queries(count)
        methods: dict[str, Callable[[str], Any]] = {
            "faiss": bare_faiss(built),
            "tantivy": bare_tantivy(built),
        }
        for rank in RANKS:
            methods[rank] = lambda query, rank=rank: built.search([query], k=10, rank=rank).ids
        times: dict[str, list[float]] = {name: [] for name in methods}
        for query in asked:
            for name, method in methods.items():
                begin = time.perf_counter()
                method(query)
                times[name].append(time.perf_counter() - begin)
        built.close()
    medians = {name: round(1e3 * float(np.median(found)), 3) for name, found in times.items()}
    return {
        "documents": about["documents"],
        "ms": medians,
        "hybrid / (faiss + tantivy)": round(
            medians["hybrid"] / (medians["faiss"] + medians["tantivy"]), 2
        ),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "bytes per document": {
            "codes and ids alone": round((alone["bytes"] - alone["model_bytes"]) / count, 1),
            "with texts and words": round((about["bytes"] - about["model_bytes"]) / count, 1),
            "words": round(about["words_bytes"] / count, 1),
        },
    }


def main() -> None:
    """Measure each size, and keep the result."""
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[7532, 1_000_000])
    rows = []
    given = parser.parse_args()
    for size in [500] if given.small else given.sizes:
        rows.append(measure(size))
        print(json.dumps(rows[-1], indent=1), flush=True)
    threads, queried = f"1 for faiss, {cores()} to build", f"{QUERIES} queries, one after the other"
    measured = about("tantivy", "faiss-cpu", "numpy", threads=threads, repetitions=queried)
    keep("search_speed", {"rows": rows, "run": measured}, given.small)


if __name__ == "__main__":
    run(main)

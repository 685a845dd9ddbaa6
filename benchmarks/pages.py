"""Writes the tables of the pages from the result files, so that no figure is typed by hand.

    python benchmarks/pages.py          # write
    python benchmarks/pages.py --check  # only say which pages are out of date

A table stands between `<!-- NAME -->` and `<!-- end of NAME -->`; NAME is a function of this file.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGES = [HERE.parent / "README.md", *sorted((HERE.parent / "docs").rglob("*.md"))]


def _result(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((HERE / "results" / f"{name}.json").read_text())
    return result


def _rows(*rows: tuple[Any, ...]) -> list[str]:
    head, *rest = (f"| {' | '.join(map(str, row))} |" for row in rows)
    return [head, f"|{' --- |' * len(rows[0])}", *rest]


def _pair(scores: dict[str, Any], spread: bool = False) -> str:
    values = []
    for metric in ("map", "ndcg@10"):
        value = scores[metric]
        mean, deviation = value if isinstance(value, list) else (value, None)
        values.append(f"{mean:.3f}".lstrip("0") + (f" ±{deviation:.3f}".replace("0.", ".") if spread else ""))
    return " / ".join(values)


def _quality(bits: str) -> list[str]:
    result = _result("quality")
    before = result["network default of commit fc30e91"]
    rows: list[tuple[Any, ...]] = [("collection", "parabit", "LSA + ITQ", "network default before", "Doc2Vec")]
    for name, row in result["collections"].items():
        if row.keys().isdisjoint({bits}) or len(row[bits]) < 2:
            continue  # not measured yet
        old = _pair(before[name][bits]) if name in before else ""
        peer = _pair(row["Doc2Vec"]) if "Doc2Vec" in row else ""
        rows.append((name, _pair(row[bits]["closed form"], True), _pair(row[bits]["LSA + ITQ"], True), old, peer))
    return _rows(*rows)


def quality_128() -> list[str]:
    """Codes of 128 bits on all collections."""
    return _quality("128")


def quality_32() -> list[str]:
    """Codes of 32 bits on all collections."""
    return _quality("32")


def quality_short() -> list[str]:
    """The best known collections, for the README."""
    collections = _result("quality")["collections"]
    names = [
        name
        for name in ("20 Newsgroups", "Reuters-21578", "arXiv sample", "Wikipedia sample")
        if all(len(collections.get(name, {}).get(bits, ())) == 2 for bits in ("128", "32"))
    ]
    rows: list[tuple[Any, ...]] = [("MAP / NDCG@10", *names)]
    for bits, size in (("128", 16), ("32", 4)):
        for method, title in (("closed form", "parabit"), ("LSA + ITQ", "LSA + ITQ")):
            cells = [_pair(collections[name][bits][method]) for name in names]
            rows.append((f"{title}, {bits} bits ({size} bytes)", *cells))
    if all("Doc2Vec" in collections[name] for name in names):
        rows.append(("Doc2Vec, 128 floats (512 bytes)", *(_pair(collections[name]["Doc2Vec"]) for name in names)))
    return _rows(*rows)


def sizes() -> list[str]:
    """The mean over collections by the number of bits, on validation parts of training data."""
    found = _result("closed_form_choices")["rows"]
    rows: list[tuple[Any, ...]] = [("bits", "bytes", "MAP / NDCG@10", "LSA + ITQ")]
    for row in found:
        if row["question"] == "levels" and row["used"]:
            [peer] = [one for one in found if one["question"] == "LSA + ITQ" and one["bits"] == row["bits"]]
            ours, theirs = (_pair({"map": one["map"], "ndcg@10": one["ndcg10"]}) for one in (row, peer))
            rows.append((row["bits"], row["bits"] // 8, ours, theirs))
    return _rows(*rows)


def text_speed() -> list[str]:
    """Text to bags beside scikit-learn."""
    result = _result("text_speed")
    rates = [(name, f"{rate:,}") for name, rate in result["documents_per_second"].items()]
    ratios = [(name, *ratio.values()) for name, ratio in result["ratios"].items()]
    first, second = ("what", "documents per second"), ("ratio, within a round", "median", "least", "most")
    return [*_rows(first, *rates), "", *_rows(second, *ratios)]


def text_memory() -> list[str]:
    """The memory that counting takes."""
    columns = ("corpus", "documents", "words", "bigrams", "peak_mb", "documents_per_second")
    heads = ("corpus", "documents", "words", "bigrams", "peak memory, MB", "documents per second")
    runs = _result("text_memory")["runs"]
    return _rows(heads, *(tuple(f"{run[c]:,}" if c != "corpus" else run[c] for c in columns) for run in runs))


def token_choices() -> list[str]:
    """Which tokens make the best codes."""
    means = _result("token_choices")["mean"].items()
    return _rows(("tokens", "MAP / NDCG@10"), *((name, _pair(mean)) for name, mean in means))


def learn_speed() -> list[str]:
    """Seconds of the steps of learning, and the ratio to gensim."""
    result = _result("learn_speed")
    rows = [("step", "seconds", "floor"), *((s, r["seconds"], r["floor"] or "") for s, r in result["steps"].items())]
    ratios = ", ".join(str(one["ratio"]) for one in result["rounds"])
    return [*_rows(*rows), "", f"Beside gensim's 20 epochs in the same run: {result['ratio']} of its time ({ratios})."]


def read_folder() -> list[str]:
    """A folder of files of every kind."""
    r = _result("read_folder")
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in r["skipped"].items())
    return _rows(
        ("files", "documents", "skipped", "seconds", "peak memory"),
        (f"{r['files']:,}", f"{r['documents']:,}", skipped, r["seconds"], f"{r['peak_mb']:,} MB"),
    )


def learn_million() -> list[str]:
    """A model of a million documents."""
    r = _result("learn_million")
    return _rows(
        ("documents", "learned from", "reading", "learning", "peak memory", "model"),
        (
            f"{r['documents']:,}", f"{r['sampled']:,}", f"{r['reading_seconds']} s", f"{r['learning_seconds']} s",
            f"{r['peak_mb']:,} MB", f"{r['model_mb']} MB",
        ),
    )  # fmt: skip


def encode_speed() -> list[str]:
    """Documents per second."""
    r = _result("encode_speed")
    return _rows(
        ("documents per second", f"beside commit {r['commit']}", "beside gensim's infer_vector", "one text"),
        (
            f"{r['documents_per_second']:,}", f"{r['ratio_to_commit']} times", f"{r['ratio_to_gensim']:.0f} times",
            f"{r['ms_per_text']:.3f} ms",
        ),
    )  # fmt: skip


def queries() -> list[str]:
    """Real queries and known items by every rank."""
    result = _result("queries")
    if "real queries" not in result:
        raise FileNotFoundError("only the weights were measured")
    methods = ("hybrid", "words", "asymmetric", "hamming", "bm25s", "tantivy")
    rows: list[tuple[Any, ...]] = [("real queries, NDCG@10 / Recall@100", "documents", "queries", *methods)]
    for name, row in result["real queries"].items():
        cells = [_figures(row["scores"][method], "ndcg@10", "recall@100") for method in methods]
        rows.append((name, f"{row['documents']:,}", row["queries"], *cells))
    known: list[tuple[Any, ...]] = [("known items, share in the first 10", "documents", "queries", *methods)]
    for name, row in result["known items"].items():
        cells = [_figures(row["scores"][method], "first_10") for method in methods]
        known.append((name, f"{row['documents']:,}", row["queries"], *cells))
    return [*_rows(*rows), "", *_rows(*known)]


def queries_short() -> list[str]:
    """NDCG@10 and known items, for the README."""
    result = _result("queries")
    methods = {"hybrid": "parabit", "bm25s": "bm25s, stemmed", "tantivy": "tantivy, stemmed"}
    real, known = result["real queries"], result["known items"]
    rows: list[tuple[Any, ...]] = [
        ("", *(f"{name}, NDCG@10" for name in real), f"known items in the first 10, {len(known)} collections")
    ]
    for method, title in methods.items():
        mean = sum(row["scores"][method]["first_10"] for row in known.values()) / len(known)
        cells = [_figures(row["scores"][method], "ndcg@10") for row in real.values()]
        rows.append((title, *cells, _figures({"mean": mean}, "mean")))
    return _rows(*rows)


def dedupe_short() -> list[str]:
    """The least precision and recall over all collections, for the README."""
    planted = _result("dedupe")["planted"].values()
    rows: list[tuple[Any, ...]] = [("", "least precision", "least recall", "mean recall")]
    for method, title in (("parabit", "parabit"), ("minhash", "datasketch's MinHash"), ("semhash", "semhash")):
        scores = [row["methods"][method] for row in planted]
        least = {name: min(row[name] for row in scores) for name in ("precision", "recall")}
        mean = {"recall": sum(row["recall"] for row in scores) / len(scores)}
        rows.append((title, _figures(least, "precision"), _figures(least, "recall"), _figures(mean, "recall")))
    return _rows(*rows)


def size_short() -> list[str]:
    """Bytes per document, for the README."""
    rows: list[tuple[Any, ...]] = [("bytes per document", "codes and ids alone", "of all: words", "all, with texts")]
    for row, name in zip(
        _result("search_speed")["rows"], ("posts of 20 Newsgroups", "abstracts of arXiv"), strict=False
    ):
        size = row["bytes per document"]
        cells = [f"{size[part]:,.0f}" for part in ("codes and ids alone", "words", "with texts and words")]
        rows.append((f"{row['documents']:,} {name}", *cells))
    return _rows(*rows)


def query_weights() -> list[str]:
    """The hybrid score by how much the code counts."""
    found = _result("queries")["weights"]
    weights = list(next(iter(found.values())))
    return _rows(
        ("", *weights), *((name, *(_figures(row, weight) for weight in weights)) for name, row in found.items())
    )


def search_speed() -> list[str]:
    """One text query beside the bare engines."""
    result = _result("search_speed")["rows"]
    methods = list(result[0]["ms"])
    rows: list[tuple[Any, ...]] = [("documents", *(f"{name}, ms" for name in methods), "hybrid / (faiss + tantivy)")]
    sizes: list[tuple[Any, ...]] = [("documents", "learning, s", "building, s", *result[0]["bytes per document"])]
    for row in result:
        rows.append((f"{row['documents']:,}", *row["ms"].values(), row["hybrid / (faiss + tantivy)"]))
        sizes.append((f"{row['documents']:,}", *row["seconds"].values(), *row["bytes per document"].values()))
    return [*_rows(*rows), "", "Seconds to build, and bytes per document:", "", *_rows(*sizes)]


def _figures(scores: dict[str, float], *names: str) -> str:
    return " / ".join(f"{scores[name]:.3f}".replace("0.", ".") for name in names)


def index_hashing() -> list[str]:
    """faiss's hash indexes beside ours: milliseconds alone and in a batch, and what it takes to have them."""
    rows: list[tuple[Any, ...]] = [
        (
            "bits",
            "asked, faiss's flips",
            "parabit",
            "faiss",
            "faiss finds all 10 for",
            "built",
            "opened",
            "bytes per code",
        )
    ]
    for result in _result("index_hashing")["results"]:
        costs = [result["build_seconds"], result["open_seconds"], result["bytes_per_code"]]
        beside = ["{parabit} s, faiss {faiss} s", "{parabit} s, faiss {faiss} s", "{parabit}, faiss {faiss}"]
        for number, row in enumerate(result["rows"]):
            times = row["milliseconds_alone_and_in_a_batch"]
            complete = f"{row['faiss_complete']:.1%} of queries" if "faiss_complete" in row else ""
            shown = [form.format(**cost) if number == 0 else "" for form, cost in zip(beside, costs, strict=True)]
            own, peer = ("{} / {}".format(*times[name]) for name in ("parabit", "faiss"))
            rows.append((result["bits"], row["ask"], f"{result['backend']} {own}", peer, complete, *shown))
    return _rows(*rows)


def index_speed() -> list[str]:
    """The exact back ends beside faiss, 5 million codes."""
    methods = ("faiss flat", "flat", "tables", "multi", "faiss IVF")
    rows: list[tuple[Any, ...]] = [("5,000,000 codes", "bits", "asked", "queries", *methods)]
    for name, what in (("index_speed_real_128", "of a model"), ("index_speed", "synthetic")):
        for row in (row for size in _result(name)["sizes"] for row in size["rows"] if row["codes"] == 5_000_000):
            cells = []
            for method in methods:
                recall = f", recall {row['recall'][method]:.2f}" if method in row["recall"] else ""
                ms, times = row["milliseconds"].get(method), row["times_as_fast_as_faiss_flat"].get(method)
                cells.append(
                    ""
                    if ms is None
                    else f"{ms:.2f} ({times:.2g}x{recall})"
                    if times < 10
                    else f"{ms:.2f} ({times:.0f}x{recall})"
                )
            rows.append((what, row["bits"], row["ask"], row["queries"], *cells))
    return _rows(*rows)


def index_keeping() -> list[str]:
    """Making, opening, changing and compacting an index."""
    rows: list[tuple[Any, ...]] = [
        (
            "documents",
            "made",
            "opened",
            "10,000 added",
            "1,000 deleted",
            "opened with that log",
            "compacted",
            "size",
            "peak memory",
        )
    ]
    rows += [
            (
                f"{r['documents']:,}", f"{r['make_seconds']:.1f} s", f"{r['open_first_milliseconds']:.0f} ms",
                f"{r['add_10000_seconds']:.2f} s", f"{r['delete_1000_seconds']:.3f} s",
                f"{r['open_with_that_log_milliseconds']:.0f} ms", f"{r['compact_seconds']:.1f} s",
                f"{r['megabytes']:,.0f} MB", f"{r['peak_megabytes']:,} MB",
            )
            for r in _result("index_keeping")["sizes"]
        ]  # fmt: skip
    return _rows(*rows)


def evaluate_speed() -> list[str]:
    """Scoring beside scikit-learn."""
    rows: list[tuple[Any, ...]] = [("scored", "seconds", "floor", "scikit-learn, seconds", "times as fast")]
    for name, r in _result("evaluate_speed")["evaluations"].items():
        rows.append(
            (
                name,
                f"{r['seconds']:.1f}",
                f"{r['floor_seconds']:.2f}",
                f"{r['scikit_learn_seconds']:.0f}",
                f"{r['ratio']['median']:.0f}",
            )
        )
    return _rows(*rows)


def scaling() -> list[str]:
    """What one machine does."""
    kept, [near] = (
        _result("index_keeping")["sizes"][-1],
        [
            row
            for row in _result("index_speed_real_128")["sizes"][0]["rows"]
            if (row["ask"], row["queries"]) == ("top 10", 1)
        ],
    )
    memory = f"{kept['megabytes'] / 1e3:.1f} GB on disk, {kept['peak_megabytes'] / 1e3:.1f} GB peak memory"
    return _rows(
        ("what", "measured"),
        (f"building an index of {kept['documents']:,} codes", f"{kept['make_seconds']:.0f} s, {memory}"),
        ("opening that index", f"{kept['open_first_milliseconds']:.0f} ms"),
        (f"the 10 nearest of {near['codes']:,} codes, exactly", f"{near['milliseconds']['multi']:.1f} ms per query"),
    )


def dedupe() -> list[str]:
    """Planted copies found by parabit and its peers, and what large collections take."""
    result, methods = _result("dedupe"), ("parabit", "minhash", "semhash")
    heads = (
        "precision / recall",
        "documents",
        "median of different words",
        "parabit",
        "heavy edits",
        "MinHash",
        "semhash",
    )
    rows: list[tuple[Any, ...]] = [(*heads, "seconds, in this order")]
    for name, row in result["planted"].items():
        ours, *peers = (row["methods"][method] for method in methods)
        seconds = ", ".join(f"{one['seconds']:.1f}" for one in (ours, *peers))
        cells = [_figures(ours, "precision", "recall"), _figures(ours, "recall, heavy")]
        cells += [_figures(peer, "precision", "recall") for peer in peers]
        rows.append((name, f"{row['documents']:,}", row["different words"], *cells, seconds))
    large = [("from files to groups", "documents", "copies", "seconds", "of a processor", "peak memory")]
    for name, row in result["large"].items():
        seconds = (f"{row['seconds']:.0f}", f"{row['processor seconds']:.0f}")
        large.append((name, f"{row['documents']:,}", f"{row['copies']:,}", *seconds, f"{row['gigabytes']:.1f} GB"))
    return [*_rows(*rows), "", *_rows(*large)]


def serve_load() -> list[str]:
    """The server under load, beside an older commit."""
    result = _result("serve_load")
    rows: list[tuple[Any, ...]] = [
        ("server", "clients", "requests per second", "search p50, p99 in ms", "failed", "memory at the end")
    ]
    for name, row in result.items():
        if not isinstance(row, dict) or "clients" not in row:
            continue
        search, failed = row["search"], sum(row["errors"].values())
        waits = f"{search['p50_ms']:,.0f}, {search['p99_ms']:,.0f}"
        who = name if name.startswith("commit") else "parabit"
        memory = f"{row['memory_mb']['at_the_end']:,.0f} MB"
        rows.append((who, row["clients"], f"{row['requests_per_second']:,.0f}", waits, failed, memory))
    return [f"{result['index']['documents']:,} documents, {result['index']['megabytes']:,} MB:", "", *_rows(*rows)]


def written(page: str) -> str:
    """A page with its tables as the result files have them now."""

    def table(found: re.Match[str]) -> str:
        try:
            lines = globals()[found["name"]]()
        except (FileNotFoundError, KeyError):  # not measured yet
            return found[0]
        return "\n".join([f"<!-- {found['name']} -->", "", *lines, "", f"<!-- end of {found['name']} -->"])

    return re.sub(r"<!-- (?P<name>\w+) -->\n.*?<!-- end of (?P=name) -->", table, page, flags=re.DOTALL)


def main() -> None:
    """Write or check all pages."""
    stale = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = written(text)
        if new != text:
            stale.append(str(page.relative_to(HERE.parent)))
            if "--check" not in sys.argv:
                page.write_text(new, encoding="utf-8")
    if "--check" in sys.argv and stale:
        sys.exit(f"out of date: {', '.join(stale)}; run python benchmarks/pages.py")
    print(f"written: {', '.join(stale) or 'nothing'}")


if __name__ == "__main__":
    main()

"""Writes the tables of the pages from the result files, so that no figure is typed by hand.

    python benchmarks/pages.py          # write
    python benchmarks/pages.py --check  # only say which pages are out of date

A table stands between `<!-- NAME -->` and `<!-- end of NAME -->`; NAME is a function of this file. On the page of
benchmarks, when, where and how it was measured stands below it.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGES = [HERE.parent / "README.md", *sorted((HERE.parent / "docs").rglob("*.md"))]
BENCHMARKS = HERE.parent / "docs" / "benchmarks.md"
_read: list[dict[str, Any]] = []  # the results that the table in work has used


def _result(name: str, part: str | None = None) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((HERE / "results" / f"{name}.json").read_text())
    result = result[part] if part else result
    _read.append(result)
    return result


def _runs(result: Any, label: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """What was measured at one time, and that time."""
    if isinstance(result, list):
        for row in result:
            known = isinstance(row, dict) and "codes" in row
            yield from _runs(
                row,
                f"{row['codes']:,} codes of {row['bits']} bits ({row['of']})" if known else label,
            )
    elif isinstance(result, dict):
        for name, value in result.items():
            if name == "run" or name.startswith("run of "):
                yield name.removeprefix("run").removeprefix(" of ") or label, value
            else:
                yield from _runs(value, name)


def _measured(run: dict[str, Any]) -> tuple[Any, ...]:
    """When, where and how."""
    machine = (
        f"{run['processor']}, {run['cores']} cores, {run['memory_gb']:.0f} GB"
        if run["cores"]
        else run["processor"]
    )
    threads, others = run["threads"], run["cores_of_others"]
    if isinstance(threads, dict):
        threads = ", ".join(f"{name} {number}" for name, number in threads.items())
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    busy = [] if others is None else [f"other processes took {others} cores"]
    notes = "; ".join([*busy, *([run["note"]] if "note" in run else [])])
    return (
        f"{run['date']}, commit {run['commit']}",
        machine,
        threads,
        run["repetitions"],
        versions,
        notes,
    )


def _how(results: list[dict[str, Any]]) -> list[str]:
    """A row for each time of measurement, with what was measured then unless it was everything."""
    labels: dict[tuple[Any, ...], list[str]] = {}
    for result in results:
        for label, run in _runs(result):
            labels.setdefault(_measured(run), []).append(label or "the rest")
    heads = ("", "measured", "machine", "threads", "repetitions", "versions", "")
    names = [
        ", ".join(dict.fromkeys(shown)) if len(labels) > 1 else "" for shown in labels.values()
    ]
    return ["", *_rows(heads, *((name, *row) for name, row in zip(names, labels, strict=True)))]


def _rows(*rows: tuple[Any, ...]) -> list[str]:
    head, *rest = (f"| {' | '.join(map(str, row))} |" for row in rows)
    return [head, f"|{' --- |' * len(rows[0])}", *rest]


def _pair(scores: dict[str, Any], spread: bool = False) -> str:
    values = []
    for metric in ("map", "ndcg@10"):
        value = scores[metric]
        mean, deviation = value if isinstance(value, list) else (value, None)
        values.append(
            f"{mean:.3f}".lstrip("0")
            + (f" ±{deviation:.3f}".replace("0.", ".") if spread and deviation is not None else "")
        )
    return " / ".join(values)


def quality() -> list[str]:
    """Codes of 128 and 32 bits on all collections."""
    knobs = ("sample", "epochs", "min_count")
    chosen: dict[tuple[float, ...], list[str]] = {}
    for name, row in _result("quality")["collections"].items():
        chosen.setdefault(tuple(row["Doc2Vec"][knob] for knob in knobs), []).append(name)
    settings = _rows(
        (*knobs, "chosen for Doc2Vec on"),
        *((*values, ", ".join(names)) for values, names in sorted(chosen.items())),
    )
    return ["128 bits:", "", *_quality("128"), "", "32 bits:", "", *_quality("32"), "", *settings]


def _quality(bits: str) -> list[str]:
    result = _result("quality")
    before = result["network default of commit fc30e91"]
    peers = {"Doc2Vec": "Doc2Vec, 128 floats", "MiniLM": "MiniLM, 384 floats"}
    heads = ("collection", "parabit", "LSA + ITQ", "network, commit fc30e91", *peers.values())
    rows: list[tuple[Any, ...]] = [heads]
    for name, row in result["collections"].items():
        old = _pair(before[name][bits]) if name in before else ""
        own = (_pair(row[bits][method], True) for method in ("closed form", "LSA + ITQ"))
        rows.append((name, *own, old, *(_pair(row[peer], True) for peer in peers)))
    return _rows(*rows)


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
    for peer, title in (
        ("Doc2Vec", "Doc2Vec, 128 floats (512 bytes)"),
        ("MiniLM", "MiniLM, 384 floats (1,536 bytes)"),
    ):
        rows.append((title, *(_pair(collections[name][peer]) for name in names)))
    return _rows(*rows)


def sizes() -> list[str]:
    """The mean over collections by the number of bits, on validation parts of training data."""
    found = _result("choices")["rows"]
    rows: list[tuple[Any, ...]] = [("bits", "bytes", "MAP / NDCG@10", "LSA + ITQ")]
    for row in found:
        if row["question"] == "levels" and row["used"]:
            [peer] = [
                one
                for one in found
                if one["question"] == "LSA + ITQ" and one["bits"] == row["bits"]
            ]
            rows.append((row["bits"], row["bits"] // 8, _pair(row), _pair(peer)))
    return _rows(*rows)


def token_choices() -> list[str]:
    """Which tokens make the best codes."""
    rows = (row for row in _result("choices")["rows"] if row["question"] == "tokens")
    return _rows(("tokens", "MAP / NDCG@10"), *((row["variant"], _pair(row)) for row in rows))


def text_speed() -> list[str]:
    """Text to bags beside scikit-learn."""
    result = _result("text_speed", "speed")
    rates = [(name, f"{rate:,}") for name, rate in result["documents_per_second"].items()]
    ratios = [(name, *ratio.values()) for name, ratio in result["ratios"].items()]
    first, second = (
        ("what", "documents per second"),
        ("ratio, within a round", "median", "least", "most"),
    )
    return [*_rows(first, *rates), "", *_rows(second, *ratios)]


def text_memory() -> list[str]:
    """The memory that counting takes."""
    columns = ("corpus", "documents", "words", "bigrams", "peak_mb", "documents_per_second")
    heads = ("corpus", "documents", "words", "bigrams", "peak memory, MB", "documents per second")
    runs = _result("text_speed", "memory")["runs"]
    return _rows(
        heads, *(tuple(f"{run[c]:,}" if c != "corpus" else run[c] for c in columns) for run in runs)
    )


def learn_speed() -> list[str]:
    """Seconds of the steps of learning, and the ratio to gensim."""
    result = _result("learn_speed", "learning")
    rows = [
        ("step", "seconds", "floor"),
        *((s, r["seconds"], r["floor"] or "") for s, r in result["steps"].items()),
    ]
    ratios = ", ".join(str(one["ratio"]) for one in result["rounds"])
    return [
        *_rows(*rows),
        "",
        f"Of the time of gensim's Doc2Vec ({result['gensim']}): {result['ratio']} ({ratios}).",
    ]


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
    r = _result("learn_speed", "million")
    heads = ("documents", "learned from", "reading", "learning", "peak memory", "model")
    seconds = f"{r['reading_seconds']} s", f"{r['learning_seconds']} s"
    return _rows(
        heads,
        (
            f"{r['documents']:,}",
            f"{r['sampled']:,}",
            *seconds,
            f"{r['peak_mb']:,} MB",
            f"{r['model_mb']} MB",
        ),
    )


def encode_speed() -> list[str]:
    """Documents per second."""
    r = _result("learn_speed", "encoding")
    heads = ("documents per second", "gensim's infer_vector", "times as fast", "one text")
    rates = f"{r['documents_per_second']:,}", f"{r['gensim_documents_per_second']:,}"
    return _rows(heads, (*rates, f"{r['ratio_to_gensim']:.0f}", f"{r['ms_per_text']:.3f} ms"))


def queries() -> list[str]:
    """Real queries and known items by every rank."""
    result = _result("queries", "ranks")
    methods = ("hybrid", "words", "asymmetric", "hamming", "bm25s", "tantivy")
    rows: list[tuple[Any, ...]] = [
        ("real queries, NDCG@10 / Recall@100", "documents", "queries", *methods, "MiniLM")
    ]
    for name, row in result["real queries"].items():
        cells = [
            _figures(row["scores"][method], "ndcg@10", "recall@100")
            for method in (*methods, "MiniLM")
        ]
        rows.append((name, f"{row['documents']:,}", row["queries"], *cells))
    known: list[tuple[Any, ...]] = [
        ("known items, share in the first 10", "documents", "queries", *methods)
    ]
    for name, row in result["known items"].items():
        cells = [_figures(row["scores"][method], "first_10") for method in methods]
        known.append((name, f"{row['documents']:,}", row["queries"], *cells))
    return [*_rows(*rows), "", *_rows(*known)]


def queries_short() -> list[str]:
    """NDCG@10 and known items, for the README."""
    result = _result("queries", "ranks")
    methods = {"hybrid": "parabit", "bm25s": "bm25s, stemmed", "tantivy": "tantivy, stemmed"}
    real, known = result["real queries"], result["known items"]
    rows: list[tuple[Any, ...]] = [
        (
            "",
            *(f"{name}, NDCG@10" for name in real),
            f"known items in the first 10, {len(known)} collections",
        )
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
    for method, title in (
        ("parabit", "parabit"),
        ("minhash", "datasketch's MinHash"),
        ("semhash", "semhash"),
    ):
        scores = [row["methods"][method] for row in planted]
        least = {name: min(row[name] for row in scores) for name in ("precision", "recall")}
        mean = {"recall": sum(row["recall"] for row in scores) / len(scores)}
        rows.append(
            (
                title,
                _figures(least, "precision"),
                _figures(least, "recall"),
                _figures(mean, "recall"),
            )
        )
    return _rows(*rows)


def size_short() -> list[str]:
    """Bytes per document, for the README."""
    rows: list[tuple[Any, ...]] = [
        ("bytes per document", "codes and ids alone", "of all: words", "all, with texts")
    ]
    for row, name in zip(
        _result("search_speed")["rows"],
        ("posts of 20 Newsgroups", "abstracts of arXiv"),
        strict=False,
    ):
        size = row["bytes per document"]
        cells = [
            f"{size[part]:,.0f}"
            for part in ("codes and ids alone", "words", "with texts and words")
        ]
        rows.append((f"{row['documents']:,} {name}", *cells))
    return _rows(*rows)


def query_weights() -> list[str]:
    """The hybrid score by how much the code counts."""
    found = _result("queries", "weights")["scores"]
    weights = list(next(iter(found.values())))
    return _rows(
        ("", *weights),
        *((name, *(_figures(row, weight) for weight in weights)) for name, row in found.items()),
    )


def search_speed() -> list[str]:
    """One text query beside the bare engines."""
    result = _result("search_speed")["rows"]
    methods = list(result[0]["ms"])
    rows: list[tuple[Any, ...]] = [
        ("documents", *(f"{name}, ms" for name in methods), "hybrid / (faiss + tantivy)")
    ]
    sizes: list[tuple[Any, ...]] = [
        ("documents", "learning, s", "building, s", *result[0]["bytes per document"])
    ]
    for row in result:
        rows.append(
            (f"{row['documents']:,}", *row["ms"].values(), row["hybrid / (faiss + tantivy)"])
        )
        sizes.append(
            (f"{row['documents']:,}", *row["seconds"].values(), *row["bytes per document"].values())
        )
    return [*_rows(*rows), "", "Seconds to build, and bytes per document:", "", *_rows(*sizes)]


def _figures(scores: dict[str, float], *names: str) -> str:
    return " / ".join(f"{scores[name]:.3f}".replace("0.", ".") for name in names)


def _speed(row: dict[str, Any], name: str) -> str:
    """Milliseconds, and how many times as fast as the scan."""
    if name not in row["milliseconds"]:
        return ""
    times = row["times_as_fast"].get(name)
    shown = "" if times is None else f" ({times:.2g}x)" if times < 10 else f" ({times:.0f}x)"
    return f"{row['milliseconds'][name]:.3f}{shown}"


def index_speed() -> list[str]:
    """The exact back ends beside faiss and usearch."""
    sets = _result("index_speed")["sets"]
    methods = list(
        dict.fromkeys(name for one in sets for row in one["rows"] for name in row["milliseconds"])
    )
    rows: list[tuple[Any, ...]] = [("codes", "bits", "asked", "queries", *methods)]
    costs: list[tuple[Any, ...]] = [
        ("codes", "bits", "method", "setting", "recall", "built", "bytes per code")
    ]
    for one in sets:
        about = f"{one['codes']:,}: {one['of']}", one["bits"]
        for row in one["rows"]:
            cells = [_speed(row, name) for name in methods]
            rows.append((*about, row["ask"], row["queries"], *cells))
        for name, size in one["bytes_per_code"].items():
            built = f"{one['build_seconds'][name]:,.1f} s" if name in one["build_seconds"] else ""
            costs.append(
                (
                    *about,
                    name,
                    one["settings"].get(name, ""),
                    one["recall"].get(name, "exact"),
                    built,
                    size,
                )
            )
    return [*_rows(*rows), "", *_rows(*costs)]


def index_keeping() -> list[str]:
    """Making, opening, changing and compacting an index."""
    heads = (
        "documents",
        "made",
        "opened",
        "10,000 added",
        "1,000 deleted",
        "opened with that log",
        "compacted",
    )
    rows = [
        (
            f"{r['documents']:,}", f"{r['make_seconds']:.1f} s", f"{r['open_first_milliseconds']:.0f} ms",
            f"{r['add_10000_seconds']:.2f} s", f"{r['delete_1000_seconds']:.3f} s",
            f"{r['open_with_that_log_milliseconds']:.0f} ms", f"{r['compact_seconds']:.1f} s",
            f"{r['megabytes']:,.0f} MB", f"{r['peak_megabytes']:,} MB",
        )
        for r in _result("index_keeping")["sizes"]
    ]  # fmt: skip
    return _rows((*heads, "size", "peak memory"), *rows)


def evaluate_speed() -> list[str]:
    """Scoring beside scikit-learn."""
    rows: list[tuple[Any, ...]] = [
        ("scored", "seconds", "floor", "scikit-learn, seconds", "times as fast")
    ]
    for name, r in _result("evaluate_speed")["evaluations"].items():
        times = (
            f"{r['seconds']:.1f}",
            f"{r['floor_seconds']:.2f}",
            f"{r['scikit_learn_seconds']:.0f}",
        )
        rows.append((name, *times, f"{r['ratio']['median']:.0f}"))
    return _rows(*rows)


def scaling() -> list[str]:
    """What one machine does."""
    kept = _result("index_keeping")["sizes"][-1]
    *_, most = (
        one
        for one in _result("index_speed")["sets"]
        if one["bits"] == 128 and "faiss flat" in one["build_seconds"]
    )
    [near] = [
        row["milliseconds"] for row in most["rows"] if (row["ask"], row["queries"]) == ("top 10", 1)
    ]
    best = min(time for name, time in near.items() if name.startswith("parabit"))
    memory = f"{kept['megabytes'] / 1e3:.1f} GB on disk, {kept['peak_megabytes'] / 1e3:.1f} GB peak memory"
    return _rows(
        ("what", "measured"),
        (
            f"building an index of {kept['documents']:,} codes",
            f"{kept['make_seconds']:.0f} s, {memory}",
        ),
        ("opening that index", f"{kept['open_first_milliseconds']:.0f} ms"),
        (f"the 10 nearest of {most['codes']:,} codes, exactly", f"{best:.1f} ms per query"),
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
    )
    rows: list[tuple[Any, ...]] = [(*heads, "MinHash", "semhash", "seconds, in this order")]
    for name, row in result["planted"].items():
        ours, *peers = (row["methods"][method] for method in methods)
        seconds = ", ".join(f"{one['seconds']:.1f}" for one in (ours, *peers))
        cells = [_figures(ours, "precision", "recall"), _figures(ours, "recall, heavy")]
        cells += [_figures(peer, "precision", "recall") for peer in peers]
        rows.append((name, f"{row['documents']:,}", row["different words"], *cells, seconds))
    large = [
        ("from files to groups", "documents", "copies", "seconds", "of a processor", "peak memory")
    ]
    for name, row in result["large"].items():
        seconds = (f"{row['seconds']:.0f}", f"{row['processor seconds']:.0f}")
        large.append(
            (
                name,
                f"{row['documents']:,}",
                f"{row['copies']:,}",
                *seconds,
                f"{row['gigabytes']:.1f} GB",
            )
        )
    return [*_rows(*rows), "", *_rows(*large)]


def serve_load() -> list[str]:
    """The server under load, beside an older commit."""
    result = _result("serve_load")
    rows: list[tuple[Any, ...]] = [
        (
            "server",
            "clients",
            "requests per second",
            "search p50, p99 in ms",
            "failed",
            "memory at the end",
        )
    ]
    for name, row in result.items():
        if not isinstance(row, dict) or "clients" not in row:
            continue
        search, failed = row["search"], sum(row["errors"].values())
        waits = f"{search['p50_ms']:,.0f}, {search['p99_ms']:,.0f}"
        who = (
            name
            if name.startswith("commit")
            else "parabit" + ", no text twice" * (name == "no_text_twice")
        )
        memory = f"{row['memory_mb']['at_the_end']:,.0f} MB"
        rows.append(
            (who, row["clients"], f"{row['requests_per_second']:,.0f}", waits, failed, memory)
        )
    return [
        f"{result['index']['documents']:,} documents, {result['index']['megabytes']:,} MB:",
        "",
        *_rows(*rows),
    ]


_ATTACKS = {
    "by signals": "verbs that write, killed by signals at random times",
    "at system calls": "verbs that write, killed at fsync, rename, unlink and so on",
    "full disk": "verbs that write, on a disk that becomes full",
    "failing calls": "verbs that write, with system calls that fail",
    "attacks": "indexes of strangers: names, links and sizes that were thought out, with every verb",
    "mutated": "indexes and models with files changed at random, checksums wrong or right",
}


def attacks() -> list[str]:
    """What was tried against files, indexes, models and threads, how often, and what did not hold."""
    path = HERE / "results" / "attacks.json"
    heads = ("what", "how many", "not held", "measured")
    if not path.exists():
        return _rows(heads, ("`tests/attacks`", "not run yet", "", ""))
    result = _result("attacks")
    rows: list[tuple[Any, ...]] = []
    for harness in ("kills", "full_disk", "hostile", "sharing", "fuzz"):
        if harness not in result:
            continue
        run = result[harness]["run"]
        when = f"{run['date']}, commit {run['commit']}"
        rows += [(*row, when) for row in _attacks_of(harness, result[harness])]
    return _rows(heads, *rows)


def _attacks_of(harness: str, result: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What one harness tried: what, how many, and how many did not hold."""
    if harness == "fuzz":
        for target, tried in result["targets"].items():
            yield f"fuzzing: {target}", f"{tried['cases']:,}", f"{len(tried['failures']):,}"
    elif harness == "sharing":
        for way, shared in result.items():
            if isinstance(shared, dict) and "searches" in shared:
                problems = sum(shared["problems"].values())
                yield way, f"{shared['searches']:,} searches", f"{problems:,}"
    elif harness == "hostile":
        for name in ("attacks", "mutated"):
            if name in result:
                tried = result[name]
                yield _ATTACKS[name], f"{tried['cases']:,}", f"{len(tried['problems']):,}"
    else:
        for name, title in _ATTACKS.items():
            if name in result:
                yield title, f"{result[name]['runs']:,}", f"{result[name]['problems']:,}"


def written(page: str, how: bool = False) -> str:
    """A page with its tables as the result files have them now, and how they were measured if that is wanted."""

    def table(found: re.Match[str]) -> str:
        _read.clear()
        lines = globals()[found["name"]]()
        below = _how(_read) if how else []
        return "\n".join(
            [
                f"<!-- {found['name']} -->",
                "",
                *lines,
                *below,
                "",
                f"<!-- end of {found['name']} -->",
            ]
        )

    return re.sub(
        r"<!-- (?P<name>\w+) -->\n.*?<!-- end of (?P=name) -->", table, page, flags=re.DOTALL
    )


def main() -> None:
    """Write or check all pages."""
    stale = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = written(text, page == BENCHMARKS)
        if new != text:
            stale.append(str(page.relative_to(HERE.parent)))
            if "--check" not in sys.argv:
                page.write_text(new, encoding="utf-8")
    if "--check" in sys.argv and stale:
        sys.exit(f"out of date: {', '.join(stale)}; run python benchmarks/pages.py")
    print(f"written: {', '.join(stale) or 'nothing'}")


if __name__ == "__main__":
    main()

"""The table of an index on Milvus is what was measured."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
MEASURED = BENCHMARKS / "results" / "milvus_search.json"


def loaded(name: str) -> Any:
    spec = spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def milvus_table() -> Any:
    return loaded("milvus_table")


def made_up(**found: int) -> dict[str, Any]:
    """A result with figures that are easy to find again."""
    figures = {"build_seconds": 1234.5, "memory_mb": 80.0, "disk_mb": 90.1}
    times = {"alone_ms": 1.5, "batch_ms": 0.25}
    row = {
        "strong": {"alone_ms": 200.1, "batch_ms": 2.5},
        "bounded": times,
        "embedded": times,
        "recall": 0.987,
        **found,
    }
    return {
        "floor": {**figures, "alone_ms": 0.5},
        "embedded": figures,
        "servers": [{"index": "BIN_FLAT", **figures, "rows": [{"ask": "top 10", "queries": 256, **row}]}],
    }


def test_the_table_on_the_page_is_what_was_measured(milvus_table: Any) -> None:
    shown = milvus_table.filled().strip()
    if not MEASURED.exists():
        assert shown == "It was not measured yet."
        return
    result = json.loads(MEASURED.read_text())
    assert shown == milvus_table.table(result).strip()
    assert (result["size"], result["servers"][0]["index"]) == (5_000_000, "BIN_FLAT")
    for server in result["servers"]:
        for row in server["rows"]:
            if server["index"] == "BIN_FLAT":
                assert (row["same_answers"], row["recall"]) == (row["queries"], 1)


def test_a_table_has_all_that_was_measured_and_goes_where_it_belongs(milvus_table: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{milvus_table.BEGIN}old\n{milvus_table.END}after\n")
    milvus_table.fill(made_up(same_answers=256), page)
    written = page.read_text().splitlines()
    assert (written[0], written[-1], "old" in written) == ("before", "after", False)
    lines = milvus_table.filled(page).strip().splitlines()
    assert lines[2:5] == [
        "| build | 1,234.5 s | 1,234.5 s | 1,234.5 s |",
        "| memory | 80.0 MB | 80.0 MB | 80.0 MB |",
        "| on the disk | 90.1 MB | 90.1 MB | 90.1 MB |",
    ]
    assert lines[5:] == [
        "| top 10, a query alone | 0.5 ms | 1.5 ms | 200.1 ms, bounded 1.5 ms |",
        "| top 10, a query of 256 at once |  | 0.25 ms | 2.5 ms, bounded 0.25 ms |",
        "| top 10, the same answers |  |  | 256 of 256 |",
    ]
    milvus_table.fill(made_up(same_answers=250), page)
    assert milvus_table.filled(page).strip().splitlines()[-1] == "| top 10, hits found |  |  | 98.7% |"


class Server:
    """A server whose memory is told one figure after the other, and then stays."""

    def __init__(self, *figures: int) -> None:
        self._figures = list(figures)

    @property
    def resident(self) -> int:
        return self._figures.pop(0) if len(self._figures) > 1 else self._figures[0]


def test_the_server_is_at_rest_where_that_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    settled = loaded("milvus_search").settled
    for name in ("common", "index_codes", "milvus_table"):
        sys.modules.pop(name, None)  # names that others may have, too
    assert settled(Server(100, 200, 300, 301), every=0)
    assert not settled(Server(100, 200, 300, 301), most=0, every=0)
    assert not settled(Server(*range(100, 10**6, 100)), most=0.05, every=0.02)


def test_what_was_not_seen_at_rest_is_told() -> None:
    if not MEASURED.exists():
        pytest.skip("it was not measured yet")
    seen = all(server.get("at_rest", False) for server in json.loads(MEASURED.read_text())["servers"])
    said = " ".join((BENCHMARKS / "README.md").read_text(encoding="utf-8").split())
    assert ("That the server's memory came to rest was not seen in this run" in said) is not seen

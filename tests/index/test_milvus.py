"""An index on a real Milvus server answers as the embedded one does, whatever is asked and done."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import index_oracle as oracle
import numpy as np
import pytest
from index_models import TEXTS, UNKNOWN, documents, queries, real_binary
from test_index_where import CASES, EVERYTHING, FIELDS

from milvus_server import Running
from parabit import Document, Index
from parabit.choices import RANKS
from parabit.errors import CodesError, IndexFolderError
from parabit.index import Hits, Milvus
from parabit.index.labels import labels_of
from parabit.index.milvus import collection, finding

pytest_plugins = ("milvus_fixtures",)
pytestmark = [pytest.mark.scale]

Both = tuple[Index, Index]


@pytest.fixture(scope="module")
def texts(server: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """The same documents in an embedded index and on the server."""
    folder = tmp_path_factory.mktemp("milvus") / "news"
    options: dict[str, Any] = {"vectors": True}
    with (
        Index.build(real_binary(), documents(0, 120), **options) as embedded,
        Index.build(real_binary(), documents(0, 120), folder, milvus=Milvus(server.uri), **options) as milvus,
    ):
        yield embedded, milvus


def same(one: Hits, other: Hits) -> None:
    """Make sure that two answers are the same, to the last field."""
    assert one.ids == other.ids
    assert [some.tolist() for some in one.distances] == [some.tolist() for some in other.distances]
    assert [some.tolist() for some in one.scores] == [some.tolist() for some in other.scores]
    assert (one.known.tolist(), one.codes.tolist()) == (other.known.tolist(), other.codes.tolist())
    assert list(one) == list(other)
    for query in range(len(one)):
        assert one.words(query) == other.words(query)
        assert np.array_equal(one.differing(query), other.differing(query))


def ask_both(both: Both, asked: Any, **options: Any) -> None:
    one, other = (index.search(asked, **options) for index in both)
    same(one, other)


def do_both(both: Both, work: Callable[[Index], Any]) -> Any:
    one, other = (work(index) for index in both)
    assert one == other
    return one


@pytest.mark.parametrize("rank", RANKS)
def test_texts_are_ranked_alike(texts: Both, rank: str) -> None:
    asked = [*queries(5), UNKNOWN]
    for options in (
        {"k": 3},
        {"k": 500},
        {"radius": 3},
        {"k": 4, "radius": 3},
        {"k": 2, "candidates": 9, "where": {"odd": True}},
    ):
        ask_both(texts, asked, rank=rank, **options)
    one, other = (index.like(["d3", "d9"], k=5, rank=rank) for index in texts)
    same(one, other)


def test_an_index_tells_the_same_of_itself(texts: Both) -> None:
    for tell in (
        lambda index: (len(index), index.bits, index.ranks, index.best_rank, sorted(index.fields)),
        lambda index: (index.keeps_text, index.knows_texts, index.labels(), index.labels(most=1)),
        lambda index: (index.has(["d1", "none", 1]).tolist(), index.ids_of(["d1", "7"])),
        lambda index: [(one.id, one.code.tolist(), one.text, one.fields) for one in index.stored(["d7", "d0"])],
        lambda index: [sorted(zip(some.first, some.second, strict=True)) for some in index.pairs(1)],
    ):
        do_both(texts, tell)
    embedded, milvus = (index.info() for index in texts)
    for same_in_both in ("documents", "bits", "bytes_a_code", "keeps", "fingerprint"):
        assert embedded[same_in_both] == milvus[same_in_both]
    assert (milvus["backends"], milvus["notes"], milvus["milvus"]["consistency"]) == (["BIN_FLAT"], [], "strong")
    with pytest.raises(IndexFolderError, match="there is no document 'nobody'"):
        texts[1].stored(["d1", "nobody"])
    with pytest.raises(CodesError, match="on Milvus, which has no back end tables"):
        texts[1].search(queries(1), backend="tables")


def test_what_is_done_is_done_alike(server: Running, tmp_path: Path) -> None:
    folder = tmp_path / "changing"
    with (
        Index.build(real_binary(), documents(0, 40)) as embedded,
        Index.build(real_binary(), documents(0, 40), folder, milvus=Milvus(server.uri)) as milvus,
        Index.open(folder) as reader,
    ):
        both = (embedded, milvus)
        late = [Document("ü \U0001f680", TEXTS[50], ("late",), {"only": "here"}), Document("\n'\"\\", TEXTS[51])]
        old = [Document("d3", TEXTS[60], ("new",), {"place": -1}), Document("d4", UNKNOWN), Document("x", TEXTS[61])]
        assert not reader.refresh() or not reader.refresh()  # the clock of the reader may be behind, for once
        for work, changes in (
            (lambda index: index.add([*documents(40, 60), *late]), True),
            (lambda index: index.update([Document("d1", TEXTS[70], ("moved",))]), True),
            (lambda index: vars(index.put(old)), True),
            (lambda index: index.delete(["d2", "ü \U0001f680"]), True),
            (lambda index: index.add([]), False),
        ):
            do_both(both, work)
            assert reader.refresh() is changes
            for index in (milvus, reader):
                same(embedded.search(queries(3), k=99), index.search(queries(3), k=99))
                assert len(index) == len(embedded)
        for refused, words in (
            (lambda index: index.add([*documents(70, 71), documents(5, 6)[0]]), "the id 'd5' is in the index already"),
            (lambda index: index.update([Document("none", "x")]), "there is no document with the id 'none'"),
            (lambda index: index.delete(["d5", "none"]), "there is no document with the id 'none'; nothing was"),
            (lambda index: index.delete(["d5", "d5"]), "the id 'd5' is given twice"),
        ):
            for index in both:
                with pytest.raises(IndexFolderError, match=words):
                    refused(index)
        assert embedded.has(["d5", "d70"]).tolist() == milvus.has(["d5", "d70"]).tolist() == [True, False]
        with pytest.raises(IndexFolderError, match="open for reading"):
            reader.delete(["d5"])
        with pytest.raises(IndexFolderError, match="is being written by process"):
            Index.open(folder, write=True)
        milvus.verify()
        milvus.save(tmp_path / "copy")
        with Index.open(tmp_path / "copy") as copy:
            assert copy.info()["backends"] == ["flat"]
            same(embedded.search(queries(3), k=20, rank="hybrid"), copy.search(queries(3), k=20, rank="hybrid"))


@pytest.fixture(scope="module")
def filtered(server: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """The documents of test_index_where, of which two were deleted."""
    codes = np.zeros((8, 2), dtype=np.uint8)
    gone = {"labels": ["space", "gone"], "year": 1993, "good": True, "note": None}
    quick = Milvus(server.uri, consistency="session")  # what this process wrote, it finds
    folder = tmp_path_factory.mktemp("milvus") / "filtered"
    ids, fields = ["gone", *EVERYTHING, "gone too"], [gone, *FIELDS.values(), gone]
    with Index.of_codes(codes, 16, folder, ids=ids, fields=fields, milvus=quick) as index:
        index.delete(["gone", "gone too"])
        yield index


@pytest.mark.parametrize(("where", "expected"), CASES)
def test_a_filter_lets_through_what_it_lets_through(
    filtered: Index, where: dict[str, Any], expected: list[Any]
) -> None:
    asked = np.zeros((2, 2), dtype=np.uint8)
    assert filtered.search(asked, k=99, where=where).ids == [expected] * 2
    assert filtered.search(asked, radius=0, where=where).ids == [expected] * 2
    assert filtered.search(asked, k=2, radius=3, where=where).ids == [expected[:2]] * 2


def test_a_field_that_no_document_has_is_told(filtered: Index) -> None:
    with pytest.raises(IndexFolderError, match="no document has a field 'lables'.*there are id, labels, year"):
        filtered.search(np.zeros((1, 2), dtype=np.uint8), where={"lables": "space"})


def test_lists_that_the_server_cuts_are_made_whole(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, asked = oracle.made_up(300, 12, flips=0.05), oracle.made_up(4, 12, seed=5)
    quick = Milvus(server.uri, consistency="session")
    with Index.of_codes(codes, 12) as embedded, Index.of_codes(codes, 12, tmp_path / "m", milvus=quick) as milvus:
        both = (embedded, milvus)
        for place in (collection, finding):
            monkeypatch.setattr(place, "WINDOW", 20)
        monkeypatch.setattr(finding, "_FIRST", 10)
        monkeypatch.setattr(finding, "_SPARE", 0)
        for options in ({"k": 1}, {"k": 3}, {"k": 30}, {"k": 150}, {"k": 999}, {"k": 200, "radius": 3}):
            ask_both(both, asked, **options)
        for radius in (0, 1, 4, 12):
            ask_both(both, asked, radius=radius)
        do_both(both, lambda index: sum(len(some.first) for some in index.pairs(0)))
        assert milvus.search(asked, k=1).notes == ("with the consistency session the latest changes may be missing",)


def test_more_hits_than_milvus_gives(server: Running, tmp_path: Path) -> None:
    codes = np.zeros((17_000, 2), dtype=np.uint8)
    codes[::100, 0] = 1
    asked = np.zeros((1, 2), dtype=np.uint8)
    with (
        Index.of_codes(codes, 16) as embedded,
        Index.of_codes(codes, 16, tmp_path / "m", milvus=Milvus(server.uri)) as milvus,
    ):
        for k, radius in ((None, 0), (None, 1), (16_900, None), (10, None)):
            assert milvus.search(asked, k, radius).ids == embedded.search(asked, k, radius).ids
        milvus.save(tmp_path / "copy")
        with Index.open(tmp_path / "copy") as copy:
            assert copy.search(asked, k=17_000).ids == embedded.search(asked, k=17_000).ids


def test_what_is_too_long_for_a_field_comes_back_whole(server: Running, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    huge = "".join(map(chr, rng.choice([*range(32, 127), 0xE9, 0x4E2D, 0x1F680, 0xD800], 300_000)))
    codes, vectors = np.arange(4, dtype=np.uint8)[:, None], rng.standard_normal((4, 30_000))
    ids: list[str | int] = ["x" * 1000, 7, "7", "half \ud800"]
    fields: list[dict[str, Any]] = [{"text": huge}, {"text": "short", "n": 1}, {}, {"text": huge[::-1], "n": [1, 2]}]
    with (
        Index.of_codes(codes, 8, ids=ids, fields=fields, vectors=vectors) as embedded,
        Index.of_codes(
            codes, 8, tmp_path / "m", ids=ids, fields=fields, vectors=vectors, milvus=Milvus(server.uri)
        ) as milvus,
    ):
        both = (embedded, milvus)
        asked = {"query_vectors": rng.standard_normal((2, 30_000)), "rank": "cosine", "k": 9}
        ask_both(both, codes[:2], **asked)
        do_both(both, lambda index: index.update_codes(codes[:1], ids[:1], [{"text": huge[5:]}], vectors[:1]))
        do_both(both, lambda index: index.delete(["half \ud800"]))
        ask_both(both, codes[:2], **asked)
        milvus.verify()
        # What the server keeps of the rest are the parts that are needed.
        more = milvus._home._collection  # type: ignore[attr-defined]
        kept = more.server.ask("query", f"{more.name}_more", filter='id like "%"', output_fields=["id"], limit=999)
        assert len({row["id"].split(".")[0] for row in kept}) == 3


def test_approximate_lists_say_so_and_can_be_asked_for_all(server: Running, tmp_path: Path) -> None:
    codes, asked = oracle.made_up(4000, 64, flips=0.3), oracle.made_up(10, 64, seed=5)
    place = Milvus(server.uri, index="BIN_IVF_FLAT", lists=64, probes=1)
    with Index.of_codes(codes, 64) as embedded, Index.of_codes(codes, 64, tmp_path / "m", milvus=place) as milvus:
        exact, some = embedded.search(asked, k=10), milvus.search(asked, k=10)
        assert some.notes == (
            "Milvus looks at 1 of 64 lists (BIN_IVF_FLAT), so near documents may be missing",
        )  # fmt: skip
        start = time.monotonic()
        while some.ids == exact.ids:  # the server takes the lists into use some seconds after they are made
            assert time.monotonic() < start + 60
            time.sleep(0.5)
            some = milvus.search(asked, k=10)
        found = [len(set(one) & set(other)) for one, other in zip(exact.ids, some.ids, strict=True)]
        assert 20 < sum(found) < 100
        whole = milvus.search(asked, k=10, backend="flat")
        assert (whole.ids, whole.notes) == (exact.ids, ())
        assert milvus.search(asked, radius=20, backend="flat").ids == embedded.search(asked, radius=20).ids


def test_the_map_is_drawn_and_kept(texts: Both) -> None:
    milvus = texts[1]
    drawn = milvus.draw_map()
    assert (len(drawn.ids), drawn.documents) == (120, 120)
    milvus.keep_map(drawn)
    kept = milvus.map()
    assert kept is not None
    assert kept.ids == drawn.ids
    view = milvus._home.view()
    sample = view.sample(30)
    assert 29 <= len(set(sample.tolist())) <= 31  # one in four
    assert labels_of(view, 9, looked_at=30).complete is False
    about = labels_of(view, 9, looked_at=30).counts
    for label, count in milvus.labels().counts.items():
        assert abs(about[label] - count) <= 0.6 * count

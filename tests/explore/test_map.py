"""The map: codes lie where they belong, and a map that does not show the index is drawn again."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parabit import Document, Index
from parabit.errors import CodesError
from parabit.explore import Map, draw_map, embed_codes, keep_map, kept_map


@pytest.fixture
def index(news: Path) -> Index:
    return Index.open(news, write=True)


def test_the_map_lays_codes_where_they_belong(index: Index) -> None:
    assert kept_map(index) is None
    drawn = draw_map(index)
    labels = np.array([index.stored([identity])[0].fields["labels"][0] for identity in drawn.ids])
    points = drawn.points.astype(float)
    inside, outside = [], []
    for place in range(0, 300, 10):
        away = np.hypot(*(points - points[place]).T)
        inside.append(np.median(away[labels == labels[place]]))
        outside.append(np.median(away[labels != labels[place]]))
    assert np.mean(inside) < 0.6 * np.mean(outside)  # documents on one topic lie together
    assert np.array_equal(drawn.place(drawn.codes[:1]), drawn.points[:1])
    keep_map(index, drawn)
    kept = kept_map(index)
    assert kept is not None
    assert kept.ids == drawn.ids
    assert np.array_equal(kept.points, drawn.points)
    assert np.array_equal(draw_map(index).points, drawn.points)


def test_an_outdated_map_is_not_given(
    index: Index, topic_documents: list[Document], news: Path
) -> None:
    ids = [document.id for document in topic_documents]
    keep_map(index, draw_map(index))
    index.delete(ids[:50])
    assert kept_map(index) is not None
    index.delete(ids[50:80])
    assert kept_map(index) is None
    index.close()
    codes = np.random.default_rng(0).integers(0, 256, (300, 3), dtype=np.uint8) & np.uint8(0xF0)
    with Index.of_codes(
        codes, 20, news, ids=ids, overwrite=True
    ) as other:  # the map is no stranger there
        assert kept_map(other) is None
    path = news / "map.safetensors"
    for content in (b"", b"{}", path.read_bytes()[:-9]):
        path.write_bytes(content)
        assert Map.load(path) is None
    with pytest.raises(CodesError, match="a map needs 4 documents"):
        draw_map(Index.of_codes(codes[:3], 20))


def test_few_codes_and_equal_ones_are_laid_out_and_what_cannot_be_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (31, 8), dtype=np.uint8)
    for some in (codes[:4], codes[:5], codes[:7], codes, np.zeros((12, 4), dtype=np.uint8)):
        points = embed_codes(some)
        assert points.shape == (len(some), 2)
        assert np.isfinite(points).all()
    wrong: Any
    for wrong, words in (
        (codes[:3], "a map needs 4 documents or more"),
        (codes.astype(np.int64), "uint8"),
    ):
        with pytest.raises(CodesError, match=words):
            embed_codes(wrong)
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    with pytest.raises(CodesError, match=r"openTSNE is not installed.*\[plot\]"):
        embed_codes(codes)


def test_a_map_from_elsewhere_is_drawn_again_unless_all_in_it_fits_together(
    index: Index, news: Path
) -> None:
    drawn = draw_map(index)
    keep_map(index, drawn)
    assert sorted(path.name for path in news.iterdir() if path.name.startswith(".")) == []
    assert kept_map(index) is not None
    path = news / "map.safetensors"
    wrong: list[dict[str, Any]] = [
        {"bits": 0},
        {"bits": -8},
        {"bits": "20"},
        {"bits": 10**30},
        {"bits": 19},  # the codes have a bit after it
        {"bits": 64},
        {"documents": None},
        {"documents": -1},
        {"ids": drawn.ids[:-1]},
        {"ids": []},
        {"ids": {"0": 1}},
        {"ids": [["a"]] * len(drawn.ids)},
        {"ids": ["\ud800"] * len(drawn.ids)},
        {"codes": drawn.codes[:, :1]},
        {"codes": drawn.codes.astype(np.float32)},
        {"points": drawn.points[:, :1]},
        {"points": drawn.points.astype(np.int64)},
    ]
    for changes in wrong:
        drawn._replace(**changes).save(path)
        assert Map.load(path) is None, changes
    drawn.save(news.parent / "elsewhere")
    path.unlink()
    path.symlink_to(news.parent / "elsewhere")
    assert Map.load(path) is None
    path.unlink()
    path.mkdir()
    assert Map.load(path) is None

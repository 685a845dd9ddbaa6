from collections.abc import Callable
from pathlib import Path

import pytest

from parabit.corpus import open_corpus
from parabit.corpus.datasets import data_folder
from parabit.errors import CorpusError


def test_what_may_not_be_downloaded_says_what_to_put_where(data: Path) -> None:
    for name in ("rcv1", "wikipedia", "enwiki", "arxiv"):
        with pytest.raises(CorpusError, match=f"the data set {name} is not in {data}; .*{name}/.*PARABIT_DATA"):
            open_corpus(f"{name}/test")


def test_an_unknown_split_is_refused_with_those_that_exist() -> None:
    for name in ("20newsgroups/trian", "docstrings/xyz"):
        with pytest.raises(CorpusError, match="its splits are train and test"):
            open_corpus(name)


def test_a_path_that_is_called_like_a_data_set_is_still_reachable(
    write: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write("arxiv/1.txt", "mine").parents[1])
    assert [document.text for document in open_corpus("./arxiv")] == ["mine"]


def test_the_data_folder_is_the_users_cache_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARABIT_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("PARABIT_DATA")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "parabit"


# Documents, and labels among them, of the real data sets.
SIZES = {
    "20newsgroups/train": (11_314, 20),
    "20newsgroups/test": (7_532, 20),
    "reuters21578/train": (9_603, 115),
    "reuters21578/test": (3_299, 93),
    "reuters21578": (21_578, 120),
    "enwiki/test": (5_672, 260),
    "arxiv/train": (49_817, 174),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_real_data_sets_have_their_known_sizes(name: str, real: Callable[[str], str]) -> None:
    found = [(document.id, document.labels) for document in open_corpus(real(name))]
    ids, labels = {id for id, _ in found}, {label for _, labels in found for label in labels}
    assert (len(found), len(labels)) == SIZES[name]
    assert len(ids) == len(found)

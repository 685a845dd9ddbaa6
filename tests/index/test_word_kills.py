"""Killed at any moment, an index with words finds what was acknowledged, by words and by code, and nothing else.

`PARABIT_KILLS=200 pytest tests/index/test_word_kills.py` kills as often as the project promises.
"""

import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
from index_models import TEXTS, binary
from killed_indexer import IDS, document
from test_store_kills import Writer, applied, operations_in

from parabit import Index
from parabit.index.store import Id

KILLS = int(os.environ.get("PARABIT_KILLS", "10"))
SOME = TEXTS[:20]


def check(index: Index, seeds: dict[Id, int], gone: set[int]) -> None:
    """Make sure that the documents with these seeds are found, and those of other seeds are not."""
    assert len(index) == len(seeds)
    words = [f"own{seed}word" for seed in (*seeds.values(), *gone)]
    found = index.search(words, k=3, rank="words").ids
    assert found == [*([identity] for identity in seeds), *([] for _ in gone)]
    if seeds:
        documents = [document(identity, seed, SOME) for identity, seed in seeds.items()]
        same = index.search(binary().transform([one.text for one in documents]), radius=0)
        assert all(one.id in ids for one, ids in zip(documents, same.ids, strict=True))
        hybrid = index.search([one.text for one in documents], k=1)
        assert hybrid.ids == [[one.id] for one in documents]


def test_killed_anywhere_what_was_acknowledged_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    seeds: dict[Id, int] = {identity: number for number, identity in enumerate(IDS[::2])}
    Index.build([document(identity, seed, SOME) for identity, seed in seeds.items()], folder, model=binary()).close()
    rng, gone, hit = np.random.default_rng(0), set[int](), Counter[str]()
    with Writer("killed_indexer.py", json.dumps(SOME)) as writer, Index.open(folder, model=binary()) as reader:
        for kill in range(KILLS):
            said = writer.run(folder=str(folder), seed=kill, calls=int(10 ** rng.uniform(3, 5)))
            operations, unfinished = operations_in(said)
            for operation in operations:
                gone |= set(seeds.values())
                seeds = applied(seeds, operation, int)
            with Index.open(folder, write=bool(kill % 2), model=binary()) as index:
                stored = {one.id: one.text for one in index.stored([id for id in IDS if index.has([id])[0]])}
                if unfinished is not None:  # it was done as a whole, or not at all
                    hit[unfinished["kind"]] += 1
                    if stored != {identity: document(identity, seed, SOME).text for identity, seed in seeds.items()}:
                        gone, seeds = gone | set(seeds.values()), applied(seeds, unfinished, int)
                gone -= set(seeds.values())
                lost = set(list(gone)[-50:])
                if kill % 2 == 0:  # before another writer has cleared up
                    reader.refresh()
                    check(reader, seeds, lost)
                check(index, seeds, lost)
            with Index.open(folder, model=binary()) as index:
                check(index, seeds, set())
                index.verify()
    assert hit.total() > KILLS // 4, hit

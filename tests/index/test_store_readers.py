"""Readers in other processes, while one writes."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
from made_up_documents import rows_having

from parabit.index.store import Batch, Manifest, Store

IDS = list(range(20))

# Every document has the number of the latest update; an update of all is one step, so all have the same.
READER = """
import sys
import numpy as np
from parabit.index.store import Store
store = Store(sys.argv[1])
print("ready", flush=True)
seen, generations = [], set()
while not seen or seen[-1] < int(sys.argv[2]):
    if len(seen) % 3:
        store.refresh()
    else:
        store.close()
        store = Store(sys.argv[1])
    snapshot = store.snapshot()
    rows = snapshot.rows_of(list(range(20)))
    assert (rows >= 0).all(), rows
    (number,) = {some["number"] for some in snapshot.fields_of(rows)}
    assert {bytes(code) for code in snapshot.codes(snapshot.sample(1000))} == {number.to_bytes(2, "big")}
    assert snapshot.documents == 20
    assert not seen or number >= seen[-1]
    if not seen or number > seen[-1]:
        print(number, flush=True)
    seen.append(number)
    generations.add(snapshot.manifest.generation)
print("end", len(set(seen)), len(generations))
"""


def batch(number: int) -> Batch:
    codes = np.tile(np.frombuffer(number.to_bytes(2, "big"), dtype=np.uint8), (len(IDS), 1))
    return Batch(IDS, codes, [{"number": number, "text": "x" * 2000}] * len(IDS))


def test_threads_read_while_another_writes(tmp_path: Path) -> None:
    Store.create(tmp_path / "index", Manifest(16), [batch(0)])
    with closing(Store(tmp_path / "index", write=True)) as store, ThreadPoolExecutor(4) as pool:
        done, looks = False, [0] * 3

        def read(reader: int) -> None:
            while not done:
                snapshot = store.snapshot()
                rows = snapshot.rows_of(IDS)
                (number,) = set(snapshot.numbers("number")[rows].tolist())
                assert (
                    snapshot.count("number", number)
                    == rows_having(snapshot, "number", number).sum()
                    == len(IDS)
                )
                assert snapshot.fields_of(rows[:1])[0]["number"] == number
                assert snapshot.find(
                    snapshot.codes(rows[:1]), most=30, radius=0
                ).rows.tolist() == sorted(rows)
                assert set(snapshot.field_names) >= {"number", "text"}
                looks[reader] += 1

        readers = [pool.submit(read, reader) for reader in range(3)]
        number = 0
        try:
            while number < 100 or (min(looks) < 4 and not any(reader.done() for reader in readers)):
                number += 1
                store.put(batch(number))
                if number % 40 == 0:
                    store.compact()
        finally:
            done = True
        for reader in readers:
            reader.result()


def test_readers_see_whole_steps_in_their_order(tmp_path: Path) -> None:
    last = 150
    folder = tmp_path / "index"
    Store.create(folder, Manifest(16), [batch(0)])
    command = [sys.executable, "-c", READER, str(folder), str(last)]
    readers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
    with closing(Store(folder, write=True)) as store:
        for number in range(1, last + 1):
            store.put(batch(number))
            if number % 10 == 0:
                store.compact()
            if number % 20 == 0:  # however slow they are, they see some of the steps
                for reader in readers:
                    assert reader.stdout is not None
                    while int(reader.stdout.readline() or last) < number:
                        pass
    for reader in readers:
        output, complaint = reader.communicate()
        assert reader.returncode == 0, complaint
        numbers, generations = map(int, output.split()[-2:])
        assert numbers > 5
        assert generations > 2

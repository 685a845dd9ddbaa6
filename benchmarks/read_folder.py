"""A folder of 5,000 files of every kind, read from start to end: what is read or skipped and why, time and memory.

    PARABIT_DATA=FOLDER python benchmarks/read_folder.py

Posts of 20 Newsgroups as text, compressed text, Markdown, UTF-16 and Windows-1252, arXiv abstracts as JSON lines and
CSV, pictures, an archive of 200 MB, empty, locked and broken files and links in a circle. It is read in a process of
its own, whose peak resident memory the system reports.
"""

import csv
import gzip
import itertools
import json
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from common import about, apart, keep, options, peak_mb, run
from parabit import open_corpus

FILES, ARCHIVE_MB = 5_000, 200
PICTURE = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000")


def write(folder: Path, files: int, archive_mb: int) -> None:
    """Write the files."""
    posts = itertools.cycle(document.text for document in open_corpus("20newsgroups/train"))
    abstracts = itertools.cycle(open_corpus("arxiv/train"))
    for number in range(files - 7):
        below = folder / f"part-{number % 20}"
        below.mkdir(exist_ok=True)
        kind, text = number % 10, next(posts)
        if kind <= 3:
            (below / f"{number}.txt").write_text(text)
        elif kind == 4:
            (below / f"{number}.txt.gz").write_bytes(gzip.compress(text.encode()))
        elif kind == 5:
            (below / f"{number}.md").write_text(f"# Post {number}\n\n{text}")
        elif kind == 6:
            rows = itertools.islice(abstracts, 20)
            lines = [json.dumps({"title": row.fields["title"], "text": row.text}) for row in rows]
            (below / f"{number}.jsonl").write_text("\n".join([*lines, "not JSON"]))
        elif kind == 7:
            with (below / f"{number}.csv").open("w", newline="") as file:
                rows = ([row.id, row.text] for row in itertools.islice(abstracts, 20))
                csv.writer(file).writerows([["number", "text"], *rows])
        elif kind == 8:
            (below / f"{number}.png").write_bytes(PICTURE)
        else:
            (below / f"{number}").write_bytes(
                f"{text} naïve café".encode("utf-16" if number % 20 == 9 else "cp1252")
            )
    with gzip.open(folder / "backup.tar.gz", "wb", compresslevel=0) as file:
        for _ in range(archive_mb):
            file.write(random.Random(0).randbytes(10**6))
    os.link(folder / "backup.tar.gz", folder / "backup.gz")  # a name that does not say what it is
    (folder / "empty.txt").touch()
    (folder / "locked.txt").write_text("secret")
    (folder / "locked.txt").chmod(0)
    (folder / "broken").symlink_to("nowhere")
    (folder / "loop").symlink_to(".")
    (folder / "itself").symlink_to("itself")


def read(folder: Path) -> dict[str, Any]:
    """Read all documents in this process."""
    start = time.perf_counter()
    corpus = open_corpus(folder)
    opened = time.perf_counter() - start
    documents = characters = 0
    for document in corpus:
        documents += 1
        characters += len(document.text)
    return {
        "documents": documents,
        "characters": characters,
        "skipped": dict(corpus.skipped.counts),
        "notes": dict(corpus.notes.counts),
        "open_seconds": round(opened, 2),
        "seconds": round(time.perf_counter() - start, 2),
        "peak_mb": peak_mb(),
    }


def main() -> None:
    """Make the folder, read it in another process, keep the result."""
    small = options(__doc__).parse_args().small
    files, archive_mb = (100, 2) if small else (FILES, ARCHIVE_MB)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "folder")
        folder.mkdir()
        write(folder, files, archive_mb)
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
        result = apart(read, folder)
    result |= {
        "files": files,
        "folder_mb": round(size / 1e6),
        "as_root": os.geteuid() == 0,
    }  # root may read all files
    keep("read_folder", {**result, "run": about("polars", threads=1, repetitions=1)}, small)


if __name__ == "__main__":
    run(main)

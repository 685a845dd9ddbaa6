"""How many files of the package a command passes through, and how many it imports.

    python benchmarks/traced_files.py [--list]

A command passes through a file if one of its functions or class bodies runs. Each command runs in a process of its own,
on 300 short text files.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

from common import options

WORDS = [
    a + b + c
    for a in ("ba", "ke", "lo", "mi", "su")
    for b in ("ra", "te", "no")
    for c in ("l", "s", "th", "x")
]


def trace(target: Path, arguments: list[str]) -> None:
    """Run a command in this process, and write the files that it imported, each with whether something in it ran."""
    files: dict[str, bool] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        path, what = frame.f_code.co_filename, frame.f_code.co_name
        if event == "call" and "/parabit/" in path:
            name = path.rpartition("/parabit/")[2]
            files[name] = files.get(name, False) or what != "<module>"

    sys.argv = ["parabit", *arguments, "--quiet"]
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        from parabit.cli import main

        main()
    finally:
        sys.setprofile(None)
        target.write_text(json.dumps(files))


def main() -> None:
    """Trace the four main commands."""
    parser = options(__doc__)
    parser.add_argument(
        "--list", action="store_true", help="name the files that a command passes through"
    )
    parser.add_argument("--trace", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.trace:
        trace(Path(given.trace[0]), given.trace[1:])
        return
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "texts").mkdir()
        for number in range(30 if given.small else 300):
            (folder / "texts" / f"{number}.txt").write_text(" ".join(draw.choices(WORDS, k=40)))
        for command in (
            "train texts -o model",
            "encode model texts -o codes.npy",
            "index texts -o index --model model",
            "search index baral",
        ):
            target = folder / "files.json"
            process = [sys.executable, __file__, "--trace", target, *command.split()]
            subprocess.run(process, check=True, capture_output=True, cwd=folder)
            files = json.loads(target.read_text())
            passed = sorted(file for file, ran in files.items() if ran)
            print(f"parabit {command}: passes through {len(passed)} files, imports {len(files)}")
            if given.list:
                print(*(f"    {file}" for file in passed), sep="\n")


if __name__ == "__main__":
    main()

"""Installs a wheel into an empty environment away from the checkout, and does a new user's jobs with it.

    python tests/try_wheel.py dist/parabit-0.1.0-py3-none-any.whl

`make test-wheel` builds the wheel and runs this.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"
SUBJECTS = {
    "space": "The shuttle crew repaired the telescope in orbit and checked its mirror number {}.",
    "hockey": "The goalie stopped the puck in period {} and the home team won the game on ice.",
    "kitchen": "Knead the dough for {} minutes, let it rise, and bake the bread in a hot oven.",
}


def make_folder(folder: Path) -> None:
    """Sixty text files about three subjects."""
    for subject, sentence in SUBJECTS.items():
        for number in range(20):
            file = folder / subject / f"{number:02}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            words = f"{subject} report {number}: " + sentence.format(number) * (1 + number % 3)
            file.write_text(f"{words} Written by author{number} in town{number * 7 % 13}.\n")
    (folder / "copy.txt").write_text((folder / "space" / "07.txt").read_text())


def main() -> None:
    """Install the wheel and use it."""
    wheel = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        venv.create(home / "venv", with_pip=True)
        scripts = home / "venv" / ("Scripts" if os.name == "nt" else "bin")
        install = [str(scripts / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--constraint", str(CONSTRAINTS), str(wheel)], check=True)
        make_folder(home / "files")

        def parabit(*arguments: str) -> dict[str, Any]:
            command = [str(scripts / "parabit"), *arguments, "--json"]
            done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"parabit {' '.join(arguments)}: {done.stderr}"
            answer: dict[str, Any] = json.loads(done.stdout)
            return answer

        assert parabit("index", "files", "-o", "x.index")["documents"] == 61
        hits = parabit("search", "x.index", "telescope mirror", "-k", "5")["hits"]
        assert all(hit["id"].startswith(("space/", "copy")) for hit in hits), hits
        (home / "files" / "space" / "00.txt").unlink()
        (home / "files" / "new.txt").write_text("A comet passed the telescope.\n")
        assert parabit("sync", "x.index")["deleted"] == 1
        groups = parabit("dedupe", "files")["groups"]
        assert any({"copy.txt", "space/07.txt"} <= ids_of(group) for group in groups), groups
        print("the wheel indexes, searches, syncs and finds copies")


def ids_of(group: dict[str, Any]) -> set[str]:
    """The ids of a group's documents."""
    return {group["kept"], *(copy["id"] for copy in group["copies"])}


if __name__ == "__main__":
    main()

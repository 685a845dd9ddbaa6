"""Installs a wheel into an empty environment away from the checkout, and does a new user's jobs with it.

    python tests/try_wheel.py dist/parabit-0.1.0-py3-none-any.whl [web,pdf]

`make test-wheel` builds the wheel and runs this. Of extras, `web` and `pdf` are used too.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from made_up_files import make_pdf

CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"
SUBJECTS = {
    "space": "The shuttle crew repaired the telescope in orbit and checked its mirror number {}.",
    "hockey": "The goalie stopped the puck in period {} and the home team won the game on ice.",
    "kitchen": "Knead the dough for {} minutes, let it rise, and bake the bread in a hot oven.",
}


def make_folder(folder: Path) -> None:
    """Sixty text files about three subjects."""
    for subject, sentence in SUBJECTS.items():
        (folder / subject).mkdir(parents=True)
        for number in range(20):
            words = f"{subject} report {number}: " + sentence.format(number) * (1 + number % 3)
            (folder / subject / f"{number:02}.txt").write_text(
                f"{words} Written by author{number} in town{number * 7 % 13}.\n"
            )
    (folder / "copy.txt").write_text((folder / "space" / "07.txt").read_text())


def main() -> None:
    """Install the wheel and use it."""
    wheel, extras = Path(sys.argv[1]).resolve(), "".join(sys.argv[2:])
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        venv.create(home / "venv", with_pip=True)
        scripts = home / "venv" / ("Scripts" if os.name == "nt" else "bin")
        install = [
            str(scripts / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        wanted = f"{wheel}[{extras}]" if extras else str(wheel)
        subprocess.run([*install, "--constraint", str(CONSTRAINTS), wanted], check=True)
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
        groups = [json.dumps(group) for group in parabit("dedupe", "files")["groups"]]
        assert any('"copy.txt"' in group and '"space/07.txt"' in group for group in groups), groups
        print("the wheel indexes, searches, syncs and finds copies")
        if "pdf" in extras:
            (home / "files" / "saturn.pdf").write_bytes(
                make_pdf("A probe photographed the rings of Saturn.")
            )
            assert parabit("sync", "x.index")["added"] == 1
            assert parabit("search", "x.index", "rings of Saturn")["hits"][0]["id"] == "saturn.pdf"
            print("it reads PDF")
        if "web" in extras:
            assert all(
                hit["id"].startswith("hockey/")
                for hit in served_hits(scripts / "parabit", home, "goalie puck")
            )
            print("it serves the page and answers its searches")


def served_hits(parabit: Path, home: Path, query: str) -> list[dict[str, Any]]:
    """The hits that the server finds, once it has shown its page."""
    command = [str(parabit), "serve", "x.index", "--port", "0", "--no-map"]
    with subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.findall(r"http://\S+?:\d+", server.stdout.readline())[0]
            with urlopen(address) as page:
                assert b"<title>" in page.read()
            asked = json.dumps({"query": query, "k": 5}).encode()
            with urlopen(
                Request(f"{address}/api/search", asked, {"content-type": "application/json"})
            ) as answer:
                hits: list[dict[str, Any]] = json.load(answer)["hits"]
                return hits
        finally:
            server.terminate()


if __name__ == "__main__":
    main()

"""A folder of files, an index of them, and a model in plain Python of what the index must hold."""

import json
import random
import shutil
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from isolation import Ending, run_parabit

State: TypeAlias = dict[str, int]  # the number of each document by its id; a number says the text
_LETTERS = "bcdfghjklmnprtvz"
_TOPICS = 4


@cache
def word_of(number: int) -> str:
    """A word that only one text has, and that resembles no other."""
    digest = sha256(str(number).encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:12]) + "q"


@cache
def text_of(number: int) -> str:
    """The text with a number: words of one of four topics, and a word of its own."""
    rng = random.Random(number)
    topic = number % _TOPICS
    words = [f"{rng.choice(_topic_words(topic))}" for _ in range(rng.randint(20, 40))]
    return f"{word_of(number)} {' '.join(words)}"


@cache
def _topic_words(topic: int) -> list[str]:
    rng = random.Random(f"topic {topic}")
    syllables = ["ba", "do", "ki", "lu", "me", "no", "pa", "ri", "su", "ta", "ve", "zo"]
    return ["".join(rng.choice(syllables) for _ in range(3)) for _ in range(40)]


@dataclass
class World:
    """Everything lies in one folder: `corpus`, `model`, `index`, and what the verbs write beside them."""

    folder: Path
    seed: int = 0
    files: State = field(default_factory=dict)  # of the corpus, by their path in it
    indexed: State = field(default_factory=dict)  # what the index holds
    renamed: list[tuple[str, str]] = field(default_factory=list)  # by the latest change of files

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self._numbers = 0

    @property
    def corpus(self) -> Path:
        return self.folder / "corpus"

    @property
    def index(self) -> Path:
        return self.folder / "index"

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def outside(self) -> State:
        """The documents of the index that did not come from the corpus."""
        return {
            identity: number for identity, number in self.indexed.items() if "/" not in identity
        }

    @property
    def synced(self) -> State:
        """What the index holds after a sync."""
        return self.files | self.outside

    @property
    def numbers(self) -> range:
        """The numbers of all texts that there have ever been."""
        return range(self._numbers)

    def make(self, documents: int) -> "World":
        """Begin: a corpus, a model that was learned from it, and an index."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o755)  # another user must be able to read the index
        for _ in range(documents):
            self.new_file()
        self.run("train", self.corpus, "-o", self.model, "--bits", "20", "--quiet")
        self.run("index", self.corpus, "--model", self.model, "-o", self.index, "--quiet")
        self.indexed = dict(self.files)
        return self

    def run(self, *arguments: str | Path) -> Ending:
        """A command that must succeed."""
        ending = run_parabit(*arguments, folder=self.folder)
        if ending.status != 0:
            command = " ".join(map(str, arguments))
            raise RuntimeError(
                f"parabit {command} ended with {ending.status}: {ending.errors} {ending.traceback}"
            )
        return ending

    def new_number(self) -> int:
        self._numbers += 1
        return self._numbers - 1

    def new_file(self) -> str:
        """Write a file with a text of its own; its id."""
        number = self.new_number()
        identity = f"s{self.rng.randrange(5)}/f{number}.txt"
        self._write(identity, number)
        return identity

    def change_files(self) -> None:
        """Add, change, delete and rename some files of the corpus."""
        for _ in range(self.rng.randint(1, 3)):
            self.new_file()
        chosen = self.rng.sample(sorted(self.files), 6)
        changed, deleted, renamed = chosen[:2], chosen[2:4], chosen[4:]
        for identity in changed:
            self._write(identity, self.new_number())
        for identity in deleted:
            self.remove_file(identity)
        self.renamed = []
        for identity in renamed:
            name = f"s{self.rng.randrange(5)}/renamed{self.new_number()}.txt"
            (self.corpus / name).parent.mkdir(exist_ok=True)
            (self.corpus / identity).rename(self.corpus / name)
            self.files[name] = self.files.pop(identity)
            self.renamed.append((identity, name))

    def remove_file(self, identity: str) -> None:
        (self.corpus / identity).unlink()
        del self.files[identity]

    def write_lines(self, name: str, documents: State) -> Path:
        """Write documents as JSON lines, beside the corpus."""
        path = self.folder / name
        lines = [
            json.dumps({"id": identity, "text": text_of(number)})
            for identity, number in documents.items()
        ]
        path.write_text("\n".join(lines) + "\n")
        return path

    def _write(self, identity: str, number: int) -> None:
        path = self.corpus / identity
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(number) + "\n")
        self.files[identity] = number

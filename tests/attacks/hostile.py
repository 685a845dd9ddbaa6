"""Indexes and models of strangers: what their files say must do no harm.

    python tests/attacks/hostile.py --cases 1000

First the attacks that were found by hand, each with every verb; then files that were changed at random, with
checksums that are wrong (a bad disk) or right (an attacker). Commands run in children, as a user who owns nothing
but the folder where that is possible. Each must answer rightly or with a clear error: no crash, no hang, no gigabyte,
and nothing beside the index is touched.
"""

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from attack_results import keep
from isolation import Ending, Limits, import_all, other_user, run_parabit
from snapshots import Tree, differences, tree_of
from spoiling import (
    BAD_NAMES,
    MANIFEST,
    as_json,
    header_size,
    mutated_bytes,
    mutated_json,
    mutated_log,
    mutated_safetensors,
    places_in,
    read_manifest,
    replace_sealed,
    write_manifest,
)
from world import World, text_of, word_of

SECRET = "verysecretword"
MOST_MB = 1000
_SECONDS = 60.0
_WRITTEN = ("codes.npy", "second")  # beside the index, by a command that says so
_FAILURE = re.compile(r"Traceback|unexpected |please report")


@dataclass
class Case:
    """A changed index or model, and what came of it."""

    name: str
    answers: int = 0  # commands that ended well
    refusals: int = 0  # commands that ended with a clear error
    peak_mb: int = 0
    problems: list[str] = field(default_factory=list)
    skipped: str = ""  # why the attack does not apply


class Range:
    """A place to shoot at: an index and a model of a stranger, beside files of the user's own."""

    def __init__(self, folder: Path, documents: int = 60) -> None:
        self.documents = documents
        self._user = other_user()
        self._victims: Tree = {}
        self._limits = Limits(_SECONDS, memory_mb=6144, user=self._user)
        self.template = folder / "template"
        self.folder = folder / "case"
        world = World(self.template).make(documents)
        for number in range(8):  # so that the log has records
            new = {f"post{number}": world.new_number()}
            world.run("add", world.index, world.write_lines("more.jsonl", new), "--quiet")
        world.run("delete", world.index, "post0")
        World(self.template / "other", seed=1).make(documents)
        self._write_victims()
        self.reset()
        self.query = word_of(3)
        self.right_answer = self.answer()

    @property
    def index(self) -> Path:
        return self.folder / "index"

    @property
    def model(self) -> Path:
        return self.folder / "model"

    def reset(self) -> None:
        """Everything as it was, for another case."""
        if self.folder.exists() and self.victims() == self._victims:
            for name in (*_WRITTEN, "index", "model"):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            for name in ("index", "model"):
                shutil.copytree(self.template / name, self.folder / name, symlinks=True)
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.template, self.folder, symlinks=True)
        self._victims = self.victims()

    def hand_over(self) -> None:
        """Give everything to the user that the commands run as."""
        if self._user is None:
            return
        for above, folders, files in os.walk(self.folder):
            for name in (".", *folders, *files):
                os.chown(Path(above, name), self._user, self._user, follow_symlinks=False)

    def victims(self) -> Tree:
        """All that lies beside the index."""
        return tree_of(self.folder, leave_out=("index", *_WRITTEN))

    def run(self, *arguments: str | Path) -> Ending:
        return run_parabit(*arguments, folder=self.folder, limits=self._limits)

    def answer(self) -> list[Any] | str:
        """The ids that a query finds; the error if there is one."""
        ending = self.run("search", self.index, self.query, "--json", "-k", "5")
        if ending.status:
            return ending.errors
        return [hit["id"] for hit in _hits_of(json.loads(ending.output))]

    def _write_victims(self) -> None:
        victim = self.template / "victim"
        (victim / "deep").mkdir(parents=True)
        (victim / "letter.txt").write_text("Dear aunt\n")
        (victim / "deep" / "more.txt").write_text("and more\n")
        (self.template / "bashrc").write_text("export EDITOR=ed\n")
        private = self.template / "private"
        private.mkdir()
        for number in range(3):
            (private / f"diary{number}.txt").write_text(f"{SECRET} {text_of(number)}\n")
        (self.template / "extra.jsonl").write_text(
            json.dumps({"id": "extra", "text": text_of(5)}) + "\n"
        )


def _hits_of(result: Any) -> list[Any]:
    """The hits in what `search --json` prints, wherever they are."""
    for container, key in places_in(result):
        if key == "hits":
            hits: list[Any] = container[key]
            return hits
    return []


def judge(case: Case, ending: Ending, command: str) -> None:
    """Count how a command ended; anything but an answer or a clear error is a problem."""
    case.peak_mb = max(case.peak_mb, ending.peak_mb)
    said = ending.errors.strip()
    if ending.late:
        case.problems.append(f"{command}: no end within {_SECONDS:g} s")
    elif ending.status < 0 or ending.status not in (0, 1, 2):
        case.problems.append(f"{command}: ended with {ending.status}: {said[-200:]}")
    elif ending.traceback or _FAILURE.search(said):
        case.problems.append(f"{command}: {(ending.problem or said)[-300:]}")
    elif ending.peak_mb > MOST_MB:
        case.problems.append(f"{command}: {ending.peak_mb} MB")
    elif ending.status:
        case.refusals += 1
    else:
        case.answers += 1


Commands: TypeAlias = tuple[tuple[str, ...], ...]

READING: Commands = (
    ("info", "{index}"),
    ("info", "{index}", "--verify"),
    ("search", "{index}", "{query}"),
)
WRITING: Commands = (
    ("sync", "{index}"),
    ("add", "{index}", "extra.jsonl"),
    ("delete", "{index}", "post1"),
    ("compact", "{index}"),
    ("retrain", "{index}"),
    ("index", "corpus", "--model", "model", "-o", "{index}", "--overwrite"),
)


def shoot(place: Range, case: Case, commands: Commands) -> None:
    """Run commands on what a case has made of the index; nothing beside it may change."""
    place.hand_over()
    before = place.victims()
    for command in commands:
        arguments = [argument.format(index=place.index, query=place.query) for argument in command]
        judge(case, place.run(*arguments), command[0])
        harm = differences(before, place.victims())
        if harm:
            case.problems.append(f"{command[0]}: {'; '.join(harm[:5])}")
            return


# Attacks that were found by hand.


def names_in(place: Range) -> list[tuple[int, str]]:
    """Which strings of the manifest name something in the index, with their number among all places."""
    manifest = read_manifest(place.index)
    entries = {path.name for path in place.index.iterdir()}
    return [
        (number, str(container[key]))
        for number, (container, key) in enumerate(places_in(manifest))
        if isinstance(container[key], str) and container[key] in entries
    ]


def change_manifest(place: Range, number: int, value: Any) -> None:
    manifest = read_manifest(place.index)
    container, key = list(places_in(manifest))[number]
    container[key] = value
    write_manifest(place.index, manifest)


def attacks(place: Range) -> list[Callable[[], Case]]:
    """Every attack that was found by hand, with every verb that could do harm."""
    place.reset()
    bad_names = (*BAD_NAMES[:7], str(place.folder / "victim"), str(place.folder / "bashrc"), "link")
    both = (READING, WRITING)
    return [
        *(
            partial(_bad_name, place, name, bad, commands)
            for name in names_in(place)
            for bad in bad_names
            for commands in both
        ),
        *(
            partial(_link, place, name, moved, commands)
            for name in sorted(path.name for path in place.index.iterdir())
            for moved in (False, True)
            for commands in both
        ),
        *(partial(_name_of_the_user, place, name, verb) for name in USED_NAMES for verb in WRITING),
        partial(_model_in_an_index, place),
        partial(_private, place),
        partial(_mixed_words, place),
        *(partial(_wide_rows, place, width) for width in (1 << 12, 1 << 20)),
    ]


USED_NAMES = ("generation-2", "generation-77", "model-mine", "words-abcd", "notes", "log-9")


def _bad_name(place: Range, name: tuple[int, str], bad: str, commands: Commands) -> Case:
    """The manifest names another thing than what lies in the index."""
    place.reset()
    if bad == "link":
        _make_link(place.index / "link", place.folder / "victim")
    number, right = name
    change_manifest(place, number, bad)
    case = Case(f"the manifest says {bad.replace(str(place.folder), '')!r} instead of {right!r}")
    shoot(place, case, commands)
    return case


def _make_link(link: Path, target: Path) -> None:
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    else:
        link.unlink(missing_ok=True)
    link.symlink_to(target)


def _link(place: Range, name: str, moved: bool, commands: Commands) -> Case:
    """An entry of the index is a link to what is the user's: to another thing, or to where it was moved."""
    place.reset()
    entry, victim = place.index / name, place.folder / "victim"
    target = victim if entry.is_dir() else victim / "letter.txt"
    if moved:
        target = victim / f"moved-{name}"
        entry.rename(target)
    _make_link(entry, target)
    case = Case(f"{name} is a link to {'itself elsewhere' if moved else 'a victim'}")
    shoot(place, case, commands)
    return case


def _name_of_the_user(place: Range, name: str, command: tuple[str, ...]) -> Case:
    """A folder of the user's own in the folder of an index, with a name as the index gives them, must stay."""
    place.reset()
    mine = place.index / name
    mine.mkdir()
    (mine / "mine.txt").write_text("mine\n")
    case = Case(f"{name} of the user's own, then {command[0]}")
    shoot(place, case, (command,))
    if not (mine / "mine.txt").is_file():
        case.problems.append(f"{command[0]}: {name}/mine.txt is gone")
    return case


def _model_in_an_index(place: Range) -> Case:
    place.reset()
    case = Case("a model that was trained into the folder of an index, then add")
    place.hand_over()
    into = place.index / "model-mine"
    trained = place.run("train", "corpus", "-o", into, "--bits", "20")
    judge(case, trained, "train")
    judge(case, place.run("add", place.index, "extra.jsonl"), "add")
    if trained.status == 0 and not into.exists():
        case.problems.append("add: the model is gone")
    return case


def _private(place: Range) -> Case:
    """The manifest says that the corpus lies where the user keeps a diary."""
    place.reset()
    case = Case("the manifest says that the corpus is a private folder, then sync")
    manifest = read_manifest(place.index)
    corpus = str(place.template / "corpus")
    places = [
        (container, key) for container, key in places_in(manifest) if container[key] == corpus
    ]
    if not places:
        case.skipped = "the manifest does not say where the corpus is"
        return case
    for container, key in places:
        container[key] = str(place.folder / "private")
    write_manifest(place.index, manifest)
    shoot(place, case, (("sync", "{index}"), ("sync", "{index}", "--allow-empty")))
    if _found(place, place.index, SECRET):
        case.problems.append("sync: private files are in the index")
    return case


def _mixed_words(place: Range) -> Case:
    """The folder of words of another index of the same size."""
    place.reset()
    case = Case("the words of another index of the same size")
    index = place.folder / "other" / "index"
    query = word_of(1)
    right_answer = _found(place, index, query)
    other = World(place.folder / "second", seed=2).make(place.documents)
    own_words = sorted(index.glob("words-*"))
    other_words = sorted(other.index.glob("words-*"))
    if not own_words or not other_words:
        case.skipped = "there is no folder words-…"
        return case
    shutil.rmtree(own_words[0])
    shutil.copytree(other_words[0], own_words[0])
    place.hand_over()
    verified = place.run("info", index, "--verify")
    judge(case, verified, "info --verify")
    if verified.status == 0 and _found(place, index, query) != right_answer:
        case.problems.append("info --verify says that all is well, and the answer is wrong")
    return case


def _found(place: Range, index: Path, query: str) -> list[Any]:
    """The ids that a search by words finds; nothing if it fails."""
    ending = place.run("search", index, query, "--rank", "words", "--json")
    if ending.status:
        return []
    return [hit["id"] for hit in _hits_of(json.loads(ending.output))]


def _wide_rows(place: Range, width: int) -> Case:
    """Codes with far wider rows than the manifest's bits say."""
    place.reset()
    case = Case(f"rows of {width:,} bytes for codes of few bits")
    [codes] = sorted(place.index.glob("generation-*/codes.npy"))
    shape = [*np.load(codes).shape]
    rows = shape[0]
    replace_sealed(place.index, codes, _npy(np.zeros((rows, width), np.uint8)))
    manifest = read_manifest(place.index)
    for container, key in places_in(manifest):
        if container[key] == shape:
            container[key] = [rows, width]
    write_manifest(place.index, manifest)
    shoot(place, case, READING)
    return case


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    from io import BytesIO

    written = BytesIO()
    np.save(written, array)
    return written.getvalue()


# Changes at random.


def _manifest(place: Range, rng: random.Random) -> str:
    names = (*BAD_NAMES, str(place.folder / "victim"), str(place.folder / "bashrc"))
    write_manifest(place.index, mutated_json(read_manifest(place.index), rng, names))
    return "a manifest with the right digest"


def _manifest_bytes(place: Range, rng: random.Random) -> str:
    path = place.index / MANIFEST
    path.write_bytes(mutated_bytes(path.read_bytes(), rng))
    return "flipped: a manifest"


def _array(place: Range, rng: random.Random) -> str:
    """An array with other numbers, or another header, and the right checksums."""
    path = rng.choice(sorted(place.index.glob("generation-*/*.npy")))
    content = path.read_bytes()
    start = header_size(content)
    kind = rng.random()
    if kind < 0.6:
        body = bytearray(content[start:])
        for _ in range(rng.choice((1, 2, 8))):
            number = rng.choice((-1, 0, 1, 1 << 20, 1 << 31, (1 << 62), -(1 << 63), (1 << 63) - 1))
            where = rng.randrange(max(1, len(body) // 8)) * 8
            body[where : where + 8] = number.to_bytes(8, "little", signed=True)
        changed = content[:start] + bytes(body)
    elif kind < 0.8:
        changed = content[:start] + mutated_bytes(content[start:], rng)
    else:
        changed = mutated_bytes(content[:start], rng) + content[start:]
    replace_sealed(place.index, path, changed)
    return f"an array with the right checksum: {path.name}"


def _array_and_manifest(place: Range, rng: random.Random) -> str:
    _array(place, rng)
    return f"{_manifest(place, rng)}, and an array"


def _log(place: Range, rng: random.Random) -> str:
    [path] = sorted(place.index.glob("log-*"))
    path.write_bytes(mutated_log(path.read_bytes(), rng))
    return "a log with the right checksums"


def _any_file(place: Range, rng: random.Random) -> str:
    files = [path for path in sorted(place.index.rglob("*")) if path.is_file()]
    path = rng.choice(files)
    path.write_bytes(mutated_bytes(path.read_bytes(), rng))
    return f"flipped: {path.relative_to(place.index)}"


def _config(place: Range, rng: random.Random) -> str:
    path = rng.choice([place.model, *place.index.glob("model-*")]) / "config.json"
    if rng.random() < 0.8:
        changed = mutated_json(json.loads(path.read_text()), rng)
        path.write_text(as_json(changed))
        return "a model's config"
    path.write_bytes(mutated_bytes(path.read_bytes(), rng))
    return "flipped: a model's config"


def _tensors(place: Range, rng: random.Random) -> str:
    model = rng.choice([place.model, *place.index.glob("model-*")])
    path = rng.choice(sorted(model.glob("*.safetensors")))
    path.write_bytes(mutated_safetensors(path.read_bytes(), rng))
    return f"a model's {path.name}"


_KINDS: tuple[tuple[int, Callable[[Range, random.Random], str]], ...] = (
    (35, _manifest),
    (5, _manifest_bytes),
    (20, _array),
    (5, _array_and_manifest),
    (10, _log),
    (10, _any_file),
    (10, _config),
    (5, _tensors),
)


def mutated(place: Range, cases: int, seed: int) -> Iterator[Case]:
    """Indexes and models with a file that was changed at random."""
    kinds = [spoil for share, spoil in _KINDS for _ in range(share)]
    for number in range(cases):
        rng = random.Random(f"{seed} {number}")
        place.reset()
        name = rng.choice(kinds)(place, rng)
        case = Case(f"{name} ({seed} {number})")
        commands = [*READING]
        if "model" in name:
            commands.append(("encode", "model", "corpus", "-o", "codes.npy", "--overwrite"))
        more = WRITING if number % 10 == 0 else ()
        shoot(place, case, (*commands, *more))
        if name.startswith("flipped") and not more:
            _need_right_answer(place, case)
        yield case


def _need_right_answer(place: Range, case: Case) -> None:
    """If every byte is said to be right, answers must be."""
    verified = place.run("info", place.index, "--verify")
    if verified.status == 0:
        answer = place.answer()
        if answer != place.right_answer:
            case.problems.append(f"verified, and the answer is {str(answer)[:200]}")


def check_sealing(place: Range) -> None:
    """A manifest that was written here must be one that parabit takes, or nothing here would mean anything."""
    place.reset()
    write_manifest(place.index, {**read_manifest(place.index), "parabit": "0.1.1"})
    ending = place.run("info", place.index, "--verify")
    if ending.status:
        sys.exit(f"manifests have another digest now, see spoiling.write_manifest: {ending}")
    [codes] = place.index.glob("generation-*/codes.npy")
    content = bytearray(codes.read_bytes())
    content[-2] ^= 0x10
    replace_sealed(place.index, codes, bytes(content))
    ending = place.run("info", place.index, "--verify")
    if ending.status:
        sys.exit(f"arrays have other checksums now, see spoiling.replace_sealed: {ending}")


def kind_of(case: Case) -> str:
    """The kind of a case, without its numbers."""
    return re.sub(r" \(.*\)$|: .*$", "", case.name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000, help="files changed at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--every", type=int, default=1, help="of the attacks found by hand; 0: none"
    )
    parser.add_argument("--only", help="attacks whose name contains this")
    parser.add_argument(
        "--keep", action="store_true", help="write the result for the documentation"
    )
    given = parser.parse_args()
    import_all()
    start = time.perf_counter()
    results: dict[str, list[Case]] = {}
    with tempfile.TemporaryDirectory(prefix="parabit-hostile-") as folder:
        Path(folder).chmod(0o755)
        place = Range(Path(folder))
        check_sealing(place)
        if given.every:
            by_hand = (attack() for attack in attacks(place)[:: given.every])
            results["attacks"] = _shown(by_hand, given.only)
        results["mutated"] = _shown(mutated(place, given.cases, given.seed), given.only)
    bad = [case for cases in results.values() for case in cases if case.problems]
    if given.keep:
        summary = {
            name: {
                "cases": len([case for case in cases if not case.skipped]),
                "answers": sum(case.answers for case in cases),
                "refusals": sum(case.refusals for case in cases),
                "peak_mb": max((case.peak_mb for case in cases), default=0),
                "kinds": Counter(map(kind_of, cases)) if name == "mutated" else {},
                "problems": [asdict(case) for case in cases if case.problems],
            }
            for name, cases in results.items()
        }
        keep("hostile", summary, time.perf_counter() - start)
    count = sum(map(len, results.values()))
    print(f"{count} cases in {time.perf_counter() - start:.0f} s, {len(bad)} with problems")
    sys.exit(1 if bad else 0)


def _shown(cases: Iterator[Case], only: str | None) -> list[Case]:
    """The cases, said as they come: those with problems, and what was skipped."""
    done = []
    for case in cases:
        if only is not None and only not in case.name:
            continue
        done.append(case)
        if case.skipped:
            print(f"skipped: {case.name}: {case.skipped}", flush=True)
        for problem in case.problems[:2]:
            print(f"{case.name}: {problem}", flush=True)
    answers = sum(case.answers for case in done)
    refusals = sum(case.refusals for case in done)
    bad = sum(bool(case.problems) for case in done)
    peak = max((case.peak_mb for case in done), default=0)
    print(
        f"{len(done)} cases, {answers} answers, {refusals} clear errors, {bad} with problems, "
        f"{peak} MB at most"
    )
    return done


if __name__ == "__main__":
    main()

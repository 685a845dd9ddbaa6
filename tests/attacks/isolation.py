"""Work in a child process that may crash, hang or take all memory, and how that ended.

The process that uses this must have no threads: it forks, and the child goes on with what was imported already. That
takes milliseconds where a new Python takes half a second.
"""

import encodings
import os
import pickle
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import IO, Any, NoReturn

from parabit import ParabitError

NOBODY = 65534  # a user without permission to write anywhere


@dataclass(frozen=True)
class Limits:
    """What a child may take."""

    seconds: float = 60.0
    memory_mb: int = 8192  # of addresses, which libraries reserve far more of than they use
    user: int | None = None  # whom the child runs as, if not as this process


@dataclass(frozen=True)
class Ending:
    """How a child ended."""

    status: int  # its exit code, or minus the number of the signal that ended it
    output: str
    errors: str
    seconds: float
    peak_mb: int
    late: bool  # it was ended because its time was over
    value: Any = None  # what the work returned
    problem: str = ""  # an exception, in one line
    traceback: str = ""  # of an exception that is no ParabitError

    @property
    def crashed(self) -> bool:
        return self.status < 0 and not self.late


class Child:
    """A process that runs a function; what it says and returns is there when it has ended."""

    def __init__(self, work: Callable[[], Any], limits: Limits) -> None:
        self._files = ExitStack()
        self._output = self._files.enter_context(_new_file())
        self._errors = self._files.enter_context(_new_file())
        self._result = self._files.enter_context(_new_file())
        # A child ends without clearing up; what it puts aside is removed with this folder.
        self._scratch = tempfile.mkdtemp(prefix="parabit-child-")
        Path(self._scratch).chmod(0o777)
        sys.stdout.flush()
        sys.stderr.flush()
        self._start = time.perf_counter()
        self._process = os.fork()
        if self._process == 0:
            numbers = (self._output.fileno(), self._errors.fileno(), self._result.fileno())
            os.environ["TMPDIR"] = tempfile.tempdir = self._scratch
            _run_child(work, limits, *numbers)
        self._watched = os.pidfd_open(self._process)

    def ended(self, seconds: float) -> bool:
        """Wait until it has ended, or so long."""
        ended, _, _ = select.select([self._watched], [], [], seconds)
        return bool(ended)

    def end(self) -> Ending:
        """End it, if it has not ended, and all processes that it has started."""
        late = not self.ended(0)
        _end_group(self._process)
        _, status, usage = os.wait4(self._process, 0)
        os.close(self._watched)
        outcome = _read(self._result)
        value, problem, trace = pickle.loads(outcome) if outcome else (None, "", "")
        ending = Ending(
            os.waitstatus_to_exitcode(status),
            _read(self._output).decode(errors="replace"),
            _read(self._errors).decode(errors="replace"),
            time.perf_counter() - self._start,
            usage.ru_maxrss // 1024,
            late,
            value,
            problem,
            trace,
        )
        self._files.close()
        shutil.rmtree(self._scratch, ignore_errors=True)
        return ending


def isolated(work: Callable[[], Any], limits: Limits | None = None) -> Ending:
    """Run a function in a child, and wait until it ends or its time is over."""
    limits = limits or Limits()
    child = Child(work, limits)
    child.ended(limits.seconds)
    return child.end()


def other_user() -> int | None:
    """A user without rights, if there may be one and it can start Python; None if not."""
    if os.geteuid() != 0:
        return None
    command = [sys.executable, "-c", "import fractions"]
    works = isolated(lambda: subprocess.run(command, check=True), Limits(user=NOBODY))
    return NOBODY if works.status == 0 else None


def run_parabit(
    *arguments: str | Path, folder: Path | None = None, limits: Limits | None = None
) -> Ending:
    """Run the command line in a child, in a folder and without input."""

    def work() -> None:
        from parabit.cli import main

        if folder is not None:
            os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.argv = ["parabit", *map(str, arguments)]
        main()

    return isolated(work, limits)


def import_all() -> None:
    """Import what commands use, so that children need not, and those of another user can do without reading it.

    Nothing of it may have been used here: a process in which a library has started threads cannot be forked safely.
    """
    modules: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="parabit-imports-") as folder:
        for command in _USUAL_COMMANDS:
            ending = isolated(partial(_modules_after, command.split(), Path(folder)))
            if ending.value is None:
                raise RuntimeError(f"parabit {command}: {ending.traceback or ending.errors}")
            modules |= ending.value
    modules |= {f"encodings.{module.name}" for module in iter_modules(encodings.__path__)}
    # Those in C last: `_asyncio` before `asyncio` makes two lists of tasks.
    for name in sorted(modules, key=lambda name: (name.startswith("_"), name)):
        with suppress(ImportError):
            import_module(name)
    assert threading.active_count() == 1, "a module that was imported started a thread"


_USUAL_COMMANDS = (
    "train corpus -o model --bits 20",
    "index corpus --model model -o index",
    "info index --verify",
    "search index word --json",
    "add index more.csv",
    "sync index",
    "encode model corpus -o codes.parquet",
)


def _modules_after(command: list[str], folder: Path) -> set[str]:
    """The modules that are there after a command on a small corpus."""
    os.chdir(folder)
    corpus = Path("corpus")
    if not corpus.exists():
        corpus.mkdir()
        for number in range(40):
            text = f"word {number % 7} topic{number % 4} of this text{number % 9} is é\n"
            (corpus / f"{number}.txt").write_text(text * 5)
        (corpus / "page.html").write_text("<p>word of a page</p>")
        (corpus / "page.md").write_text("---\ntitle: a\n---\nword of *a* page\n")
        Path("more.csv").write_text("id,text\na,another word\n")
    from parabit.cli import main

    sys.argv = ["parabit", *command]
    with suppress(SystemExit):
        main()
    return {name for name in sys.modules if not name.startswith("__")}


def _run_child(
    work: Callable[[], Any], limits: Limits, output: int, errors: int, result: int
) -> NoReturn:
    status = 70  # of something that is wrong here, not in parabit
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(errors, 2)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        size = limits.memory_mb << 20
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if limits.user is not None:
            os.setgroups([])
            os.setgid(limits.user)
            os.setuid(limits.user)
        value, problem, trace = None, "", ""
        try:
            value = work()
            status = 0
        except SystemExit as leaving:
            status = leaving.code if isinstance(leaving.code, int) else 1
        except ParabitError as expected:
            status = 1
            problem = f"{type(expected).__name__}: {expected}"
        except BaseException as unexpected:
            status = 1
            problem = f"{type(unexpected).__name__}: {str(unexpected)[:300]}"
            trace = traceback.format_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(result, pickle.dumps((value, problem, trace)))
    finally:
        os._exit(status)


def _new_file() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _end_group(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # It has ended already, or had no time to make a group.
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            return


def _read(file: Any) -> bytes:
    file.seek(0)
    content: bytes = file.read()
    return content

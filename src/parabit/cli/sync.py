"""`parabit sync`: an index brought up to date with its files."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, cast

from parabit.cli.command import Result, progress, verb
from parabit.cli.index import say_unknown, unknown_words
from parabit.cli.options import IndexFolder, Reading, argument, option
from parabit.cli.output import complain, escape, headline, print_json, reading_of, say, say_skipped
from parabit.errors import ParabitError, need
from parabit.progress import silent

_ROUND = 500  # milliseconds without a change, after which it is looked whether to stop
_PAUSE = 1.0  # seconds until it is tried again, if a folder is missing or another process writes the index


def _show(result: Result) -> None:
    changes = result["changes"]
    if result["dry_run"]:
        for mark, kind in (("+", "added"), ("~", "replaced"), ("-", "deleted")):
            for identity in changes[kind]:
                say(f"{mark} {escape(identity)}")
        for old, new in changes["renamed"]:
            say(f"> {escape(old)} -> {escape(new)}")
    done = ", ".join(f"{len(ids):,} {kind}" for kind, ids in changes.items())
    done = f"would be {done}" if result["dry_run"] else done
    headline(result, "index", "{done}, {unchanged:,} unchanged; {seconds:.1f} s", done=done)
    if result["left_out"]:
        say(f"  {result['left_out']:,} skipped: no words to find them by")
    for one in result["kept"]:
        say(f"  {escape(one['place'])} cannot be read now, its documents stay: {escape(one['reason'])}")
    say_skipped(result)
    if result["retrain"]:
        say(f"  {result['retrain']}: parabit retrain {escape(result['index'])}")
    else:
        say_unknown(result)


@verb()
def sync(
    index: IndexFolder,
    corpus: Annotated[
        list[str] | None, argument("Other files and folders than before; the index remembers them.", "CORPUS")
    ] = None,
    dry_run: Annotated[bool, option("Only list what would be done.", "--dry-run", "-n")] = False,
    watch: Annotated[bool, option("Go on: sync again whenever a file changes.", "--watch")] = False,
    allow_empty: Annotated[bool, option("Go on if a whole folder is missing or empty.", "--allow-empty")] = False,
    *,
    reading: Reading,
    json: bool,
    quiet: bool,
) -> None:
    """Bring an index up to date with its files.

    It adds what is new, replaces what changed and deletes what is gone. Files with the size and time that they had are
    not read, and a renamed file is not encoded again. Documents that did not come from these files stay. Options of
    reading are for a CORPUS; without them files are read as before.

    Examples:
        parabit sync notes.index
        parabit sync notes.index --dry-run
        parabit sync notes.index --watch
    """
    from parabit.index import Index

    if watch and dry_run:
        raise ParabitError("--watch with --dry-run", hint="choose one of them")
    if watch:
        need("watchfiles", "watch")
    chosen = reading != Reading()
    if chosen and not corpus:
        raise ParabitError("options of reading, but no CORPUS", hint=f"name it: parabit sync {index} CORPUS …")
    given: Any = reading.open(corpus, silent) if corpus and chosen else corpus or None
    roots: list[str] = []

    def once() -> None:
        start = time.perf_counter()
        with progress(quiet or json) as report, Index.open(index, write=not dry_run) as opened:
            done = opened.sync(given, dry_run=dry_run, allow_empty=allow_empty, report=report)
            total, written = len(opened), [] if dry_run or not opened.keeps_text else done.added + done.replaced
            unknown = unknown_words(opened.model, opened.stored(written[:500])) if written else 0.0
        changes: dict[str, Any] = {name: getattr(done, name) for name in ("added", "replaced", "renamed", "deleted")}
        result = {
            "index": str(index),
            "dry_run": dry_run,
            **{name: len(ids) for name, ids in changes.items()},
            "unchanged": done.unchanged,
            "changes": changes,
            "left_out": done.left_out,
            "kept": [one._asdict() for one in done.kept],
            **reading_of(Reading(corpora=[cast(Any, done)])),
            "documents": total,
            "retrain": done.retrain,
            "unknown_words": unknown,
            "seconds": round(time.perf_counter() - start, 3),
        }
        if json:
            print_json(result)
        elif done.changed or done.kept or not roots:
            _show(result)
        roots[:] = done.roots

    once()
    if watch:
        try:
            _follow(roots, index, once, quiet or json)
        except KeyboardInterrupt:  # the way to end it
            if not (quiet or json):
                say("stopped")


def _follow(roots: list[str], index: Path, once: Callable[[], None], quiet: bool) -> None:
    """Sync whenever a file changes, until Ctrl-C."""
    from watchfiles import watch

    inside = index.resolve()
    if not quiet:
        say(f"watching {escape(', '.join(roots))}; Ctrl-C stops it")
    last = ""
    while True:
        try:
            changes = watch(
                *roots, watch_filter=lambda _, path: not Path(path).is_relative_to(inside), rust_timeout=_ROUND,
                yield_on_timeout=True,
            )  # fmt: skip
            for number, found in enumerate(changes):
                # Also once at the beginning: something may have changed just before the files were watched.
                if number == 0 or found:
                    once()
                    last = ""
        except (ParabitError, FileNotFoundError) as problem:
            if str(problem) != last:
                complain(str(problem))
            last = str(problem)
            time.sleep(_PAUSE)

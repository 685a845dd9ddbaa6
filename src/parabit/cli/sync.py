"""`parabit sync`: an index brought up to date with its files."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, err, print_json, progress, say, verb
from parabit.cli.options import IndexFolder, complete_corpus, reads_corpus
from parabit.cli.output import reading_of, say_skipped
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import ParabitError, need

if TYPE_CHECKING:
    from parabit.index import Synced

_ROUND = 500  # milliseconds without a change, after which it is looked whether to stop
_PAUSE = 1.0  # seconds until it is tried again, if a folder is missing or another process writes the index


@verb
@reads_corpus
def sync(
    index: IndexFolder,
    corpus: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CORPUS",
            help="Other files and folders than those that the index was made of; it remembers them from then on.",
            show_default=False,
            autocompletion=complete_corpus,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only list what would be done.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on: sync again whenever a file changes.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Delete documents even if a whole folder is missing or empty.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
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
    chosen = (options, format) != (ReadOptions(), None)
    if chosen and not corpus:
        raise ParabitError("options of reading, but no CORPUS", hint=f"name it: parabit sync {index} CORPUS …")
    given: Any = open_corpus(corpus, options, format) if corpus and chosen else corpus or None

    def once() -> "Synced":
        start = time.perf_counter()
        with progress(quiet or json) as report, Index.open(index, write=not dry_run) as opened:
            done = opened.sync(given, dry_run=dry_run, allow_empty=allow_empty, report=report)
            total = len(opened)
        if json:
            print_json(_result(index, done, dry_run, total, time.perf_counter() - start))
        elif not watch or done.changed or done.kept or not shown:
            _show(index, done, dry_run, time.perf_counter() - start)
        shown.append(True)
        return done

    shown: list[bool] = []
    done = once()
    if watch:
        try:
            _follow(done.roots, index, once, quiet or json)
        except KeyboardInterrupt:  # the way to end it
            if not (quiet or json):
                say("stopped")


def _follow(roots: list[str], index: Path, once: Callable[[], Any], quiet: bool) -> None:
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
                err.print(f"parabit: {problem}", markup=False, soft_wrap=True)
            last = str(problem)
            time.sleep(_PAUSE)


def _result(index: Path, done: "Synced", dry_run: bool, total: int, seconds: float) -> dict[str, Any]:
    changes: dict[str, Any] = {name: getattr(done, name) for name in ("added", "replaced", "renamed", "deleted")}
    return {
        "index": str(index),
        "dry_run": dry_run,
        **{name: len(ids) for name, ids in changes.items()},
        "unchanged": done.unchanged,
        "changes": changes,
        "left_out": done.left_out,
        "kept": [one._asdict() for one in done.kept],
        "reading": reading_of(cast(Any, done)),
        "documents": total,
        "retrain": done.retrain,
        "seconds": round(seconds, 3),
    }


def _show(index: Path, done: "Synced", dry_run: bool, seconds: float) -> None:
    if dry_run:
        for mark, ids in (("+", done.added), ("~", done.replaced), ("-", done.deleted)):
            for identity in ids:
                say(f"{mark} {escape(identity)}")
        for old, new in done.renamed:
            say(f"> {escape(old)} -> {escape(new)}")
    say(
        f"[bold]{escape(str(index))}[/bold]: {'would be ' if dry_run else ''}{len(done.added):,} added, "
        f"{len(done.replaced):,} replaced, {len(done.renamed):,} renamed, {len(done.deleted):,} deleted, "
        f"{done.unchanged:,} unchanged; {seconds:.1f} s"
    )
    if done.left_out:
        say(f"  {done.left_out:,} skipped: no words to find them by")
    for place, reason in done.kept:
        say(f"  {escape(place)} cannot be read now, its documents stay: {escape(reason)}")
    say_skipped(reading_of(cast(Any, done)))
    if done.retrain:
        say(f"  {done.retrain}: parabit retrain {escape(str(index))}")

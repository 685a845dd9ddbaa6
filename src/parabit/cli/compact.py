"""`parabit compact`: an index as if it had been built anew."""

import time

from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, progress, say, verb
from parabit.cli.index_options import IndexFolder, readable_size


@verb
def compact(index: IndexFolder, json: Json = False, quiet: Quiet = False) -> None:
    """Merge what was added to an index and deleted since it was built, so that it opens and searches as fast as new.

    Everything is checked on the way. Readers go on with what they have open. Interrupted, it leaves the index as it
    was. Examples:

        parabit compact news.index

        parabit compact news.index --quiet --json
    """
    from parabit.index import Index

    start = time.perf_counter()
    with progress(quiet or json) as report, Index.open(index, write=True) as opened:
        before = opened.info()
        opened.compact(report)
        after = opened.info()
    result = {
        "index": str(index),
        "documents": after["documents"],
        "added": before["to_merge"]["added"],
        "deleted": before["to_merge"]["deleted"],
        "bytes_before": before["bytes"],
        "bytes": after["bytes"],
        "backend": after["backends"][-1],
        "seconds": round(time.perf_counter() - start, 3),
    }
    if json:
        print_json(result)
        return
    say(
        f"[bold]{escape(str(index))}[/bold]: {result['documents']:,} documents, {readable_size(result['bytes'])} on "
        f"the disk, {readable_size(result['bytes_before'])} before; {result['seconds']:.1f} s"
    )
    say(f"  merged {result['added']:,} that were added and {result['deleted']:,} that were deleted")

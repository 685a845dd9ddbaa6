"""What an index tells of itself."""

from pathlib import Path
from typing import Any

from parabit.index.store import Segment, Store


def about(store: Store) -> dict[str, Any]:
    """What an index is, what it keeps, and what is left to be merged; for JSON."""
    base = store.base
    return {
        "folder": str(store.folder),
        "documents": store.documents,
        "bits": store.bits,
        "bytes_a_code": -(-store.bits // 8),
        "bytes_a_document": {name: _bytes_a_document(base, name) for name in store.extra},
        "bytes": bytes_in(store.folder),
        "model_bytes": bytes_in(store.model_folder),
        "backends": ["flat", *sorted({name.partition(".")[0] for name in base.derived})],
        "keeps": sorted([*store.extra, *(["text"] if store.meta["text"] else [])]),
        "fields": [name for name in store.field_names if name != "text"],
        "fingerprint": store.fingerprint,
        "to_merge": {
            "added": len(store.tail),
            "deleted": len(base) + len(store.tail) - store.documents,
            "bytes": store.log_bytes,
        },
    }


def _bytes_a_document(segment: Segment, name: str) -> float:
    """What an extra array takes, on the average."""
    if not len(segment):
        return 0.0
    if not segment.kinds[name].ragged:
        return segment.extra(name).nbytes / len(segment)
    rows = segment.ragged(name)
    return round((rows.values.nbytes + rows.offsets.nbytes) / len(segment), 1)


def bytes_in(folder: Path) -> int:
    """How much room a folder takes; a writer may remove files meanwhile."""
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return size

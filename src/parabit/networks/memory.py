"""How much memory there is, asked before it is needed."""

from pathlib import Path


def free_memory() -> int | None:
    """Bytes that this process can still get; None where the system does not tell.

    In a container, the container's limit counts.

    Example:
        >>> free = free_memory()
        >>> free is None or free > 0
        True
    """
    limits = [_available(), _group_limit(Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"))]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith("MemAvailable:")), None)
    return None if found is None else int(found.split()[1]) * 1024


def _group_limit(most: Path, used: Path) -> int | None:
    try:
        limit = most.read_text().strip()
        return None if limit == "max" else max(int(limit) - int(used.read_text()), 0)
    except (OSError, ValueError):
        return None


def gigabytes(size: float) -> str:
    """A size for people.

    Example:
        >>> gigabytes(2_340_000_000)
        '2.3 GB'
    """
    return f"{size / 1e9:,.1f} GB"

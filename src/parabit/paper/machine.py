"""The machine and the versions that figures were measured with."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from parabit.parallel import cores


def machine() -> dict[str, str]:
    """What the machine is, in a few words.

    Example:
        >>> sorted(machine())
        ['cores', 'memory', 'processor', 'system']
    """
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    processor = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    memory = ""
    if hasattr(os, "sysconf"):  # not on Windows
        memory = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.1f} GB"
    return {
        "processor": processor or platform.processor(),
        "cores": str(cores()),
        "memory": memory,
        "system": platform.system(),
    }


def versions(*packages: str) -> dict[str, str]:
    """The versions of Python and of packages, those that are installed.

    Example:
        >>> list(versions("numpy", "nothing-of-this-name"))
        ['python', 'numpy']
    """
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found

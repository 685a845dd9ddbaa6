"""The machine and the versions that figures were measured with."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from parabit.parallel import cores


def processor() -> str:
    """The name of the processor; empty where the system does not tell it.

    Example:
        >>> isinstance(processor(), str)
        True
    """
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return name or platform.processor()


def memory_gb() -> float | None:
    """The memory in gigabytes; None where the system does not tell it.

    Example:
        >>> memory_gb() is None or memory_gb() > 0
        True
    """
    if not hasattr(os, "sysconf"):  # on Windows
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)


def machine() -> dict[str, str]:
    """What the machine is, in a few words.

    Example:
        >>> sorted(machine())
        ['cores', 'memory', 'processor', 'system']
    """
    memory = memory_gb()
    return {
        "processor": processor(),
        "cores": str(cores()),
        "memory": "" if memory is None else f"{memory:.1f} GB",
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

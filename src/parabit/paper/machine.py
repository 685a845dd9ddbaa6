"""The machine and the versions that figures were measured with."""

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from parabit import __version__


def processor() -> str:
    """The name of the processor; empty if the system does not say it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return name or platform.processor()


def versions(*packages: str) -> dict[str, str]:
    """The versions of Python and of packages, those that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def code_version() -> str:
    """The version of parabit, with the commit if it runs from a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = ""
    return f"{__version__} {commit}".strip()

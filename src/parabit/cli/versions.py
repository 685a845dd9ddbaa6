"""The versions of what matters, read without importing any of it."""

import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from parabit import __version__

_NEEDED = ("numpy", "polars", "faiss-cpu", "scipy", "scikit-learn", "safetensors")
_EXTRAS = {"torch": "networks", "fastapi": "web"}  # and the extra that brings each


def version_lines() -> Iterator[str]:
    """A line for parabit, for Python, and for each library; the extras' too, or how to get them.

    Example:
        >>> next(version_lines()) == f"parabit {__version__}"
        True
    """
    yield f"parabit {__version__}"
    yield f"Python {platform.python_version()}"
    for name in _NEEDED:
        yield f"{name} {_version(name) or 'not installed'}"
    for name, extra in _EXTRAS.items():
        found = _version(name)
        if found is None:
            yield f"{name} not installed; pip install 'parabit[{extra}]'"
        else:
            yield f"{name} {found}{_cuda(found) if name == 'torch' else ''}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cuda(torch: str) -> str:
    """The CUDA that torch was built with: its version says so, or one of the packages that came with it."""
    if built := re.search(r"\+cu(\d+)(\d)$", torch):
        return f", CUDA {built[1]}.{built[2]}"
    for needed in requires("torch") or ():
        if (runtime := re.match(r"nvidia-cuda-runtime[\w-]*|cuda-toolkit", needed)) and (found := _version(runtime[0])):
            return f", CUDA {found}"
    return ", without CUDA"

"""Names of a package that are imported on first use, so that each part loads only the libraries that it needs."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """A package's `__getattr__` that finds each name in its module."""

    def find(name: str) -> Any:
        for module, names in modules.items():
            if name in names:
                return getattr(import_module(module), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find

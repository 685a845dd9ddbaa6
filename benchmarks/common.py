"""What the benchmarks share: the machine they ran on, and where results are kept."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parabit import ParabitError
from parabit.paper.machine import processor, versions
from parabit.parallel import cores

RESULTS = Path(__file__).parent / "results"


def machine(*packages: str) -> dict[str, Any]:
    """The machine and the versions that a result was measured with."""
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    return {"processor": processor(), "cores": cores(), "memory_gb": memory, **versions(*packages)}


def run(main: Callable[[], None]) -> None:
    """Run a benchmark; what it lacks is explained in one line."""
    try:
        main()
    except ParabitError as problem:
        sys.exit(f"{sys.argv[0]}: {problem}")


def keep(name: str, result: dict[str, Any]) -> None:
    """Write a result where it is committed."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"\nkept in {path.relative_to(Path(__file__).parent.parent)}")

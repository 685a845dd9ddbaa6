"""What the harnesses found, where the documentation takes its figures from."""

import json
import platform
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
PATH = _ROOT / "benchmarks" / "results" / "attacks.json"


def keep(name: str, result: dict[str, Any], seconds: float) -> None:
    """Write the result of one harness beside those of the others."""
    results = json.loads(PATH.read_text()) if PATH.exists() else {}
    results[name] = {**result, "seconds": round(seconds), "run": _about()}
    PATH.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    print(f"kept in {PATH.relative_to(_ROOT)}")


def _about() -> dict[str, str]:
    git = ["git", "-C", str(_ROOT)]
    commit = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src"], check=False)
    return {
        "date": date.today().isoformat(),
        "commit": commit.stdout.strip() + (" and changes" if changed.returncode else ""),
        "python": platform.python_version(),
    }

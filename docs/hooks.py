"""What the pages take from elsewhere in the repository: the report of the paper's tables."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).parent.parent


def on_files(files: Files, config: Any) -> Files:
    """Have the report among the pages, with its pictures."""
    report = _ROOT / "results"
    named = [report / name for name in ("report.html", "results.jsonl", "runs.jsonl")]
    for path in [*named, *sorted((report / "figures").iterdir())]:
        files.append(
            File.generated(config, path.relative_to(_ROOT).as_posix(), abs_src_path=str(path))
        )
    return files

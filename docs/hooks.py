"""What the pages take from elsewhere in the repository: the report of the paper's tables, and the benchmarks."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).parent.parent
_MARK = "<!-- benchmarks/README.md -->"


def on_files(files: Files, config: Any) -> Files:
    """Have the report among the pages, with its pictures."""
    report = _ROOT / "results"
    named = [report / name for name in ("report.html", "results.jsonl", "runs.jsonl")]
    for path in [*named, *sorted((report / "figures").iterdir())]:
        files.append(File.generated(config, path.relative_to(_ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the benchmarks' own page in its place, without its heading and with links that lead from here."""
    if _MARK not in markdown:
        return markdown
    text = (_ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"\A# .*\n", "", text).replace("](../results/", "](results/")
    text = re.sub(r"^## (.*): (`.*`)$", r"## \1\n\n\2", text, flags=re.MULTILINE)
    return markdown.replace(_MARK, text)

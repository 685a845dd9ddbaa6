"""Plain English: phrases that must not come back, in source, help, messages, docs and the page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PHRASES = {
    "a document per line, not a document a line": (
        r"\ban? (document|record|word|code|query|row) an? (line|row|file|document)\b"
    ),
    "bytes per document, not bytes a document": (
        r"\b(bytes?|bits?|words|lines|numbers|characters|milliseconds|ms|MB) an? "
        r"(document|word|code|query|line|row|dimension|file|request)\b(?! (has|of))"
    ),
    "one per line, not one a line": r"\b(one|two|ids?|each) a (line|row)\b",
    "explained or shown, not told": r"\b(is|are|was|were|be|been) told\b|\btold (in|of|by|to)\b|\btells? of\b",
    "no known words, not for want of": r"\bfor want of\b",
    "again, not anew": r"\banew\b",
    "about ten, not some ten": r"\bsome (\d|two|three|five|ten|twenty|thirty|fifty|a? ?hundred|thousand)",
    "if there is, not where there is": r"\b(where|should) there (is|are|be)\b",
    "candidates, not looked through": r"\blooked through\b",
    "if you outgrow, not who outgrows": r"\bwho (outgrows|wants|has|needs|asks) (it|one|this|that)\b",
    "did not start, not did not come": r"\bdid not come\b(?! from)",
    "show versions": r"\btell the versions\b",
    "neighbours, rotated": r"\b(eloquence|surroundings)\b",
    "modern words": r"\b(thereof|wherein|whosoever|whomever|thereby|hither|henceforth|lest|nought|aught)\b",
}


def _files() -> list[Path]:
    folders = [
        (ROOT / "src", ("*.py", "*.js", "*.html", "*.css")),
        (ROOT / "docs", ("*.md", "*.py")),
    ]
    folders += [(ROOT / "benchmarks", ("*.py", "*.md")), (ROOT / "examples", ("*.ipynb",))]
    found = [
        path for folder, kinds in folders for kind in kinds for path in sorted(folder.rglob(kind))
    ]
    return [*found, *sorted(ROOT.glob("*.md")), ROOT / "Makefile", ROOT / "pyproject.toml"]


@pytest.mark.parametrize("instead", PHRASES)
def test_old_phrases_do_not_occur(instead: str) -> None:
    found = []
    for path in _files():
        # Phrases may be broken across lines, in comments too.
        text = re.sub(r"\s*\n\s*(?:#\s*|//\s*|\*\s*)?", " ", path.read_text())
        found += [
            f"{path.relative_to(ROOT)}: …{text[max(0, match.start() - 40) : match.end() + 20]}…"
            for match in re.finditer(PHRASES[instead], text, re.IGNORECASE)
        ]
    assert not found, f"{instead}:\n" + "\n".join(found)
